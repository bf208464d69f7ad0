//! Makefiles and justfiles: the recipe a target stands for, with what it depends on.
//!
//! The targets of the check and all that they need define it, except for rules of make that only build
//! something: how a project is built is product. How tests are built, and what the recipes start, is looked at more
//! closely ([`builds`]). A file that cannot be read line by line (conditions,
//! `define`, generated rules) is compared as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::builds::{self, Built};
use super::command::{join, simple_commands};
use super::{runners, speaks_of_checking};

/// Which program reads the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Make,
    Just,
}

/// What of a file defines a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Closure {
    /// Lines of each rule, header included, by the target's name.
    rules: BTreeMap<String, String>,
    /// Lines of each variable or setting that these use.
    settings: BTreeMap<String, String>,
    /// Of all there are in the file.
    all_settings: BTreeMap<String, String>,
    /// The values of all variables of the file, as they are written.
    variables: BTreeMap<String, String>,
    /// For each pattern rule, what its `%` stands for.
    stems: BTreeMap<String, BTreeSet<String>>,
    /// Targets that a file of the same name would keep from being made.
    files: BTreeSet<String>,
    /// How tests are built, and what the recipes start, by the target's name.
    built: BTreeMap<String, Built>,
    /// Lines of each variable that is used for that alone.
    built_settings: BTreeMap<String, String>,
    /// What each target needs.
    needs: BTreeMap<String, Vec<String>>,
    /// The whole text.
    text: String,
    /// Could it not be taken apart?
    is_whole: bool,
}

impl Closure {
    /// The command lines of all its recipes.
    pub(super) fn commands(&self, dialect: Dialect) -> Vec<String> {
        let mut found = Vec::new();
        for (name, text) in &self.rules {
            let no_stem = BTreeSet::from([String::new()]);
            for stem in self.stems.get(name).unwrap_or(&no_stem) {
                let commands = recipe_lines(text, dialect, stem);
                found.extend(commands.into_iter().map(|line| filled_in(&line, &self.variables, dialect)));
            }
        }
        found.retain(|line| !line.is_empty() && !line.starts_with('#'));
        found
    }

    /// Where programs are looked for, if the file says so.
    pub(super) fn search_path(&self, dialect: Dialect) -> Option<String> {
        self.variables
            .get("PATH")
            .map(|value| filled_in(&value.replace("$(PATH)", ""), &self.variables, dialect))
    }

    /// Targets of make, and what they need, that are not declared as `.PHONY`: where a file of that name
    /// exists, nothing is run.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str).filter(|name| !name.contains(['%', '$']))
    }

    /// What differs from a later version of the same targets, in words.
    pub(super) fn difference(&self, later: &Self) -> Option<String> {
        if self.is_whole || later.is_whole {
            return (self.text != later.text).then(|| "the file".to_owned());
        }
        let rules = differing(&self.rules, &later.rules).map(|name| format!("recipe `{name}`"));
        let used: BTreeSet<&String> = self.settings.keys().chain(later.settings.keys()).collect();
        let settings = differing(&self.all_settings, &later.all_settings)
            .filter(|name| used.contains(name))
            .map(|name| format!("`{name}`"));
        let built = self.differently_built(later);
        let built = built.iter().map(|(target, _)| format!("how `{target}` is built"));
        let options = self.differing_options(later).into_iter().map(|name| format!("`{name}`"));
        let all: Vec<String> = rules.chain(settings).chain(built).chain(options).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// What is built by other rules than later.
    fn differently_built<'a>(&'a self, later: &'a Self) -> Vec<(&'a String, &'a Built)> {
        let nothing = Built::default();
        let differs =
            |(target, built): &(&String, &Built)| built.differs(later.built.get(*target).unwrap_or(&nothing));
        self.built.iter().filter(differs).collect()
    }

    /// The variables by which something is built otherwise later.
    fn differing_options<'a>(&'a self, later: &'a Self) -> Vec<&'a String> {
        let names: BTreeSet<&String> =
            self.built_settings.keys().chain(later.built_settings.keys()).collect();
        let is_own = |name: &String| self.settings.contains_key(name) || later.settings.contains_key(name);
        let text =
            |all: &'_ BTreeMap<String, String>, name: &String| all.get(name).cloned().unwrap_or_default();
        let differs = |name: &&String| {
            let (was, is) = (text(&self.all_settings, name), text(&later.all_settings, name));
            !is_own(name) && builds::differ(&was, &is, true)
        };
        names.into_iter().filter(differs).collect()
    }

    /// The files from which the former definition would make its targets in another way than the later one: what
    /// was made of them later has to be made again.
    pub(super) fn made_otherwise(&self, later: &Self) -> BTreeSet<String> {
        let rules: BTreeSet<&String> = differing(&self.rules, &later.rules).collect();
        let built: BTreeSet<&String> =
            self.differently_built(later).into_iter().map(|(target, _)| target).collect();
        let mut settings: BTreeSet<&String> = differing(&self.all_settings, &later.all_settings).collect();
        settings.extend(self.differing_options(later));
        let is_whole = self.is_whole || later.is_whole;
        let is_concerned = |target: &String| {
            let uses = |built: &Built| built.settings.iter().any(|name| settings.contains(name));
            let is_rule = self.rules.contains_key(target);
            is_whole
                || rules.contains(target)
                || built.contains(target)
                || is_rule && !settings.is_empty()
                || self.built.get(target).is_some_and(uses)
        };
        let concerned = self.needs.iter().filter(|(target, _)| is_concerned(target));
        concerned.flat_map(|(_, needs)| needs.iter().cloned()).collect()
    }

    /// The later text of the file with these definitions in place of its own.
    pub(super) fn put_back_into(&self, after: &str, later: &Self, dialect: Dialect) -> String {
        if self.is_whole || later.is_whole {
            return self.text.clone();
        }
        let parsed = File::parse(after, dialect);
        let options = self.differing_options(later);
        let built = self.differently_built(later);
        let is_setting = |name: &String| {
            self.settings.contains_key(name) || later.settings.contains_key(name) || options.contains(&name)
        };
        let is_built = |name: &String| {
            built.iter().any(|(target, built)| {
                let later = later.built.get(*target);
                built.names.contains(name) || later.is_some_and(|later| later.names.contains(name))
            })
        };
        let is_ours = |block: &Block| match &block.kind {
            Kind::Rule { names, .. } => {
                let is_rule = |name: &String| {
                    self.rules.contains_key(name) || later.rules.contains_key(name) || is_built(name)
                };
                names.iter().any(|name| is_rule(name) || is_setting(name))
            }
            Kind::Setting { name } => is_setting(name),
            Kind::Other => false,
        };
        let rest: String =
            parsed.blocks.iter().filter(|block| !is_ours(block)).map(|block| block.text.as_str()).collect();
        let options = self.built_settings.iter().filter(|(name, _)| options.contains(name));
        let options = options.filter(|(name, _)| !self.settings.contains_key(*name));
        let settings: String = self.settings.iter().chain(options).map(|(_, text)| text.as_str()).collect();
        let built: BTreeSet<&str> = built.iter().map(|(_, built)| built.text.as_str()).collect();
        let rules: String = self.rules.values().map(String::as_str).chain(built).collect();
        let gap = if rest.is_empty() || rest.ends_with('\n') { "" } else { "\n" };
        // Variables come first: what is built from them at once would find them empty otherwise.
        format!("{settings}{rest}{gap}{rules}")
    }
}

fn differing<'a>(
    one: &'a BTreeMap<String, String>,
    other: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = &'a String> {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let plain = |text: Option<&'a String>| text.map(|text| without_blank_ends(text));
    names.into_iter().filter(move |name| plain(one.get(*name)) != plain(other.get(*name)))
}

fn without_blank_ends(text: &str) -> String {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The commands of a rule's text, with what stands for its target and what it needs written out.
fn recipe_lines(text: &str, dialect: Dialect, stem: &str) -> Vec<String> {
    let (mut target, mut needs) = (String::new(), Vec::new());
    let mut found = Vec::new();
    for line in logical_lines(text) {
        let is_recipe = line.starts_with(['\t', ' ']) && (dialect == Dialect::Just || line.starts_with('\t'));
        let mut command = line;
        if !is_recipe {
            let Kind::Rule { names, needs: found } = (match dialect {
                Dialect::Make => make_kind(line),
                Dialect::Just => continue,
            }) else {
                continue;
            };
            target = names.first().cloned().unwrap_or_default().replace('%', stem);
            needs = found.iter().map(|need| need.replace('%', stem)).collect();
            let Some((_, inline)) = line.split_once(';') else { continue };
            command = inline;
        }
        let command = command.replace("\\\r\n", " ").replace("\\\n", " ");
        let command = command.trim_start_matches(['@', '-', '+', ' ', '\t']).trim();
        found.push(match dialect {
            Dialect::Make => with_automatic_variables(command, &target, &needs, stem),
            Dialect::Just => command.to_owned(),
        });
    }
    found
}

/// A command of make's with `$@`, `$<` and the like written out.
fn with_automatic_variables(command: &str, target: &str, needs: &[String], stem: &str) -> String {
    let first = needs.first().map_or("", String::as_str);
    let all = needs.join(" ");
    let values = [("@", target), ("<", first), ("^", all.as_str()), ("+", &all), ("?", &all), ("*", stem)];
    values.iter().fold(command.to_owned(), |line, (name, value)| {
        // `$$@` is the shell's own.
        let line = line.replace(&format!("$${name}"), "\0");
        let line = line.replace(&format!("$({name})"), value).replace(&format!("${name}"), value);
        line.replace('\0', &format!("$${name}"))
    })
}

/// How often variables that stand in the values of others are filled in.
const MAX_NESTED: usize = 4;

/// A line with the variables of its file filled in.
fn filled_in(line: &str, variables: &BTreeMap<String, String>, dialect: Dialect) -> String {
    let mut line = line.to_owned();
    for _ in 0..MAX_NESTED {
        let before = line.clone();
        for (name, value) in variables {
            let forms = match dialect {
                Dialect::Make => [format!("$({name})"), format!("${{{name}}}")],
                Dialect::Just => [format!("{{{{{name}}}}}"), format!("{{{{ {name} }}}}")],
            };
            for form in forms {
                line = line.replace(&form, value);
            }
        }
        if line == before {
            break;
        }
    }
    if dialect == Dialect::Make {
        for (name, value) in MADE_BY_MAKE {
            line = line.replace(&format!("$({name})"), value).replace(&format!("${{{name}}}"), value);
        }
        line = with_patterns(&without_unset(&line)).replace("$(shell ", "$(").replace("$$", "$");
    }
    line
}

/// What make sets by itself.
const MADE_BY_MAKE: [(&str, &str); 8] = [
    ("MAKE", "make"),
    ("CC", "cc"),
    ("CXX", "c++"),
    ("LD", "ld"),
    ("AR", "ar"),
    ("RM", "rm -f"),
    ("CURDIR", "$$CURDIR"),
    ("PWD", "$$PWD"),
];

/// `$(wildcard PATTERN)` stands for what the shell would make of the pattern.
fn with_patterns(line: &str) -> String {
    const CALLS: [&str; 4] = ["$(wildcard ", "${wildcard ", "$(sort $(wildcard ", "$(sort "];
    let mut line = line.to_owned();
    for call in CALLS {
        while let Some(at) = line.find(call) {
            let inside = &line[at + call.len()..];
            let Some(end) = inside.find([')', '}']) else { break };
            line = format!("{}{}{}", &line[..at], &inside[..end], &inside[end + 1..]);
        }
    }
    line
}

/// Variables of make that nobody has set are empty.
fn without_unset(line: &str) -> String {
    let mut rest = line;
    let mut text = String::new();
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        // `$$` is the shell's.
        if let Some(after) = from.strip_prefix("$$") {
            text.push_str("$$");
            rest = after;
            continue;
        }
        let close = if from.starts_with("$(") { ')' } else { '}' };
        let inner = from.strip_prefix("$(").or_else(|| from.strip_prefix("${"));
        let name = inner.and_then(|inner| inner.split_once(close));
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        };
        match name.filter(|(name, _)| is_name(name)) {
            Some((_, after)) => rest = after,
            None => {
                text.push('$');
                rest = &from[1..];
            }
        }
    }
    text.push_str(rest);
    text
}

/// Stands for the first target of a file.
pub(super) const FIRST_TARGET: &str = "";

/// What defines these targets in a file.
pub(super) fn closure(text: &str, targets: &[&str], dialect: Dialect) -> Closure {
    let file = File::parse(text, dialect);
    let mut closure = Closure {
        text: text.to_owned(),
        is_whole: file.is_beyond_us,
        variables: file.variables(dialect),
        ..Closure::default()
    };
    let first = file.first_target();
    let named =
        targets.iter().filter_map(|target| if *target == FIRST_TARGET { first } else { Some(*target) });
    let wanted: Vec<String> = named.map(str::to_owned).collect();
    let mut todo = wanted.clone();
    let mut seen = BTreeSet::new();
    while let Some(target) = todo.pop() {
        if !seen.insert(target.clone()) {
            continue;
        }
        let rules = file.rules_for(&target, dialect);
        let is_ours = wanted.contains(&target) || !file.builds(&target, &closure.variables, dialect, 0);
        let is_made = rules.iter().any(|rule| is_ours || rule.stem.is_none());
        if dialect == Dialect::Make && is_made && !file.phony.contains(&target) {
            closure.files.insert(target.clone());
        }
        for rule in rules {
            todo.extend(rule.needs(&closure.variables, dialect));
            if is_ours {
                if let Some(stem) = &rule.stem {
                    closure.stems.entry(rule.name.to_owned()).or_default().insert(stem.clone());
                }
                let lines = closure.rules.entry(rule.name.to_owned()).or_default();
                if !lines.contains(&rule.block.text) {
                    lines.push_str(&rule.block.text);
                }
            }
        }
    }
    closure.settings = file.settings_of(&closure.rules, dialect);
    closure.all_settings = file.all_settings();
    if dialect == Dialect::Make {
        closure.note_built(&file, &seen);
    }
    closure
}

impl Closure {
    /// Notes how those of these targets are built that tests go into, or that the recipes start.
    fn note_built(&mut self, file: &File, reached: &BTreeSet<String>) {
        let dialect = Dialect::Make;
        let started = self.started();
        for target in reached {
            let needs = file.needs_of(target, &self.variables);
            let has_tests = file.is_built_from_tests(target, &self.variables, 0);
            let rules = file.rules_for(target, dialect);
            let is_own = rules.iter().any(|rule| self.rules.contains_key(rule.name));
            self.needs.insert(target.clone(), needs);
            if is_own || !(has_tests || started.contains(target)) {
                continue;
            }
            let mut built = Built { has_tests, ..Built::default() };
            for rule in rules {
                built.names.insert(rule.name.to_owned());
                match rule.has_recipe() {
                    true => built.compared.push_str(&rule.block.text),
                    // What is needed besides.
                    false => built.compared.push_str(&rule.needs(&self.variables, dialect).join(" ")),
                }
                built.compared.push('\n');
                if !built.text.contains(&rule.block.text) {
                    built.text.push_str(&rule.block.text);
                }
            }
            let lines = BTreeMap::from([(target.clone(), built.text.clone())]);
            let mut settings = file.settings_of(&lines, dialect);
            settings.extend(file.settings_named(&builds::IMPLICIT_SETTINGS, dialect));
            built.settings = settings.keys().cloned().collect();
            self.built_settings.extend(settings);
            self.built.insert(target.clone(), built);
        }
    }

    /// What the recipes start, or give to what they start.
    fn started(&self) -> BTreeSet<String> {
        let commands = self.commands(Dialect::Make);
        let simple = commands.iter().flat_map(|line| simple_commands(line));
        let simple = simple.filter(|simple| !runners::only_looks(simple.program()));
        simple.flat_map(|simple| simple.words).map(|word| join("", &word)).collect()
    }
}

/// A rule by which a target is made.
struct Rule<'a> {
    /// The target, or the pattern that it matches.
    name: &'a str,
    stem: Option<String>,
    block: &'a Block,
}

impl Rule<'_> {
    fn needs(&self, variables: &BTreeMap<String, String>, dialect: Dialect) -> Vec<String> {
        let Kind::Rule { needs, .. } = &self.block.kind else { return Vec::new() };
        let stem = self.stem.as_deref().unwrap_or("%");
        let needs = needs.iter().map(|need| filled_in(need, variables, dialect).replace('%', stem));
        needs.flat_map(|need| need.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    fn has_recipe(&self) -> bool {
        self.block.text.contains("\n\t") || self.block.text.lines().next().unwrap_or_default().contains(';')
    }
}

/// What the `%` of a pattern stands for in a name that matches it.
fn stem_of(pattern: &str, name: &str) -> Option<String> {
    let (start, end) = pattern.split_once('%')?;
    let stem = name.strip_prefix(start)?.strip_suffix(end)?;
    (!stem.is_empty()).then(|| stem.to_owned())
}

/// The files that a file takes in, by their names or by patterns.
pub(super) fn included(text: &str, dialect: Dialect) -> Vec<String> {
    let mut found = Vec::new();
    let variables = File::parse(text, dialect).variables(dialect);
    for line in logical_lines(text) {
        let line = line.split('#').next().unwrap_or_default().replace("\\\n", " ");
        let is_of_make = dialect == Dialect::Make
            && line.trim_start().trim_start_matches(['-', 's']).starts_with("include ");
        let line = if is_of_make { filled_in(&line, &variables, dialect) } else { line };
        let mut words = line.split_whitespace();
        let (first, rest) =
            (words.next().unwrap_or_default(), words.map(|word| word.trim_matches(['"', '\''])));
        match (dialect, first) {
            (Dialect::Make, "include" | "-include" | "sinclude") => {
                found.extend(rest.filter(|name| !name.contains('$')).map(str::to_owned));
            }
            (Dialect::Just, "import" | "import?") => found.extend(rest.take(1).map(str::to_owned)),
            (Dialect::Just, "mod" | "mod?") => {
                let words: Vec<&str> = rest.collect();
                match words[..] {
                    [name] => {
                        let ends = [".just", "/mod.just", "/justfile", "/.justfile"];
                        found.extend(ends.map(|end| format!("{name}{end}")));
                    }
                    [_, path] => found.push(path.to_owned()),
                    _ => {}
                }
            }
            (Dialect::Make | Dialect::Just, _) => {}
        }
    }
    found
}

/// Settings that change how every recipe runs.
const MAKE_SETTINGS: [&str; 10] = [
    "SHELL",
    ".SHELLFLAGS",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    ".IGNORE",
    ".SILENT",
    ".ONESHELL",
    "MAKE",
    "PATH",
    ".RECIPEPREFIX",
];

struct File {
    blocks: Vec<Block>,
    phony: BTreeSet<String>,
    is_beyond_us: bool,
}

struct Block {
    kind: Kind,
    /// Whole lines.
    text: String,
}

enum Kind {
    Rule { names: Vec<String>, needs: Vec<String> },
    Setting { name: String },
    Other,
}

impl File {
    fn parse(text: &str, dialect: Dialect) -> Self {
        let mut file = Self { blocks: Vec::new(), phony: BTreeSet::new(), is_beyond_us: false };
        for line in logical_lines(text) {
            let is_recipe = match dialect {
                Dialect::Make => line.starts_with('\t'),
                Dialect::Just => line.starts_with([' ', '\t']) && !line.trim().is_empty(),
            };
            if is_recipe && let Some(Block { kind: Kind::Rule { .. }, text }) = file.blocks.last_mut() {
                text.push_str(line);
                continue;
            }
            if dialect == Dialect::Make && is_directive(line) {
                file.is_beyond_us = true;
            }
            let kind = match dialect {
                Dialect::Make => make_kind(line),
                Dialect::Just => just_kind(line),
            };
            if let Kind::Rule { names, needs } = &kind
                && names.iter().any(|name| name == ".PHONY")
            {
                file.phony.extend(needs.iter().cloned());
            }
            // A blank line inside a rule belongs to it.
            match (&kind, file.blocks.last_mut()) {
                (Kind::Other, Some(last)) if line.trim().is_empty() => last.text.push_str(line),
                _ => file.blocks.push(Block { kind, text: line.to_owned() }),
            }
        }
        file
    }

    fn first_target(&self) -> Option<&str> {
        self.blocks.iter().find_map(|block| match &block.kind {
            Kind::Rule { names, .. } => {
                names.first().map(String::as_str).filter(|name| !name.starts_with('.') && !name.contains('%'))
            }
            Kind::Setting { .. } | Kind::Other => None,
        })
    }

    /// The rules by which a target is made; those of patterns where it has no recipe of its own.
    fn rules_for(&self, target: &str, dialect: Dialect) -> Vec<Rule<'_>> {
        let rules = || {
            self.blocks.iter().flat_map(|block| match &block.kind {
                Kind::Rule { names, .. } => names.iter().map(|name| (name.as_str(), block)).collect(),
                Kind::Setting { .. } | Kind::Other => Vec::new(),
            })
        };
        let is_it = |name: &str| {
            let is_variable = dialect == Dialect::Make && name.contains('$');
            let named = || filled_in(name, &self.variables(dialect), dialect);
            name == target || is_variable && named().split_whitespace().any(|name| name == target)
        };
        let own = rules().filter(|(name, _)| is_it(name));
        let mut found: Vec<Rule<'_>> = own.map(|(name, block)| Rule { name, stem: None, block }).collect();
        if dialect == Dialect::Make && !found.iter().any(Rule::has_recipe) {
            let of_pattern = |(name, block)| Some(Rule { name, stem: Some(stem_of(name, target)?), block });
            found.extend(rules().filter_map(of_pattern).find(Rule::has_recipe));
        }
        found
    }

    /// Is a target a program or an object that is compiled from tests, rather than something that runs them?
    fn compiles_tests(&self, target: &str, variables: &BTreeMap<String, String>) -> bool {
        let rules = self.rules_for(target, Dialect::Make);
        let lines = rules.iter().flat_map(|rule| {
            recipe_lines(&rule.block.text, Dialect::Make, rule.stem.as_deref().unwrap_or_default())
        });
        let lines: Vec<String> = lines.map(|line| filled_in(&line, variables, Dialect::Make)).collect();
        let simple: Vec<_> = lines.iter().flat_map(|line| simple_commands(line)).collect();
        // make itself knows how to compile an object.
        let is_object = simple.is_empty() && target.ends_with(".o");
        let names_its_file = || lines.iter().any(|line| line.split_whitespace().any(|word| word == target));
        !self.phony.contains(target)
            && (is_object || names_its_file())
            && simple.iter().all(runners::is_builder)
            && self.is_built_from_tests(target, variables, 0)
    }

    fn needs_of(&self, target: &str, variables: &BTreeMap<String, String>) -> Vec<String> {
        let rules = self.rules_for(target, Dialect::Make);
        rules.iter().flat_map(|rule| rule.needs(variables, Dialect::Make)).collect()
    }

    /// Is a target a file of tests, or is it built from one, directly or not?
    fn is_built_from_tests(&self, target: &str, variables: &BTreeMap<String, String>, depth: usize) -> bool {
        let from_tests =
            |need: &String| depth < MAX_NESTED && self.is_built_from_tests(need, variables, depth + 1);
        builds::is_of_tests(target) || self.needs_of(target, variables).iter().any(from_tests)
    }

    /// Does make only build something by this target's rules, rather than check it?
    fn builds(
        &self,
        target: &str,
        variables: &BTreeMap<String, String>,
        dialect: Dialect,
        depth: usize,
    ) -> bool {
        let is_check = || speaks_of_checking(target) && !self.compiles_tests(target, variables);
        if dialect == Dialect::Just || depth > MAX_NESTED || is_check() {
            return false;
        }
        let rules = self.rules_for(target, dialect);
        let commands: Vec<String> = rules
            .iter()
            .flat_map(|rule| {
                recipe_lines(&rule.block.text, dialect, rule.stem.as_deref().unwrap_or_default())
            })
            .map(|line| filled_in(&line, variables, dialect))
            .collect();
        if commands.is_empty() {
            // A name for others.
            let mut needs = rules.iter().flat_map(|rule| rule.needs(variables, dialect));
            return needs.all(|need| self.builds(&need, variables, dialect, depth + 1));
        }
        let simple: Vec<_> = commands.iter().flat_map(|line| simple_commands(line)).collect();
        let is_built = |line: &String| {
            let line = line.replace('>', " > ");
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_output = words.windows(2).any(|pair| matches!(pair[0], ">" | "-o") && pair[1] == target);
            // The name of a target is no file yet, unless it looks like one.
            is_output || target.contains(['.', '/']) && words.contains(&target)
        };
        let makes_its_file = !self.phony.contains(target) && commands.iter().any(is_built);
        !simple.iter().any(|simple| runners::is_judge(simple.program()))
            && (makes_its_file || simple.iter().all(runners::is_builder))
    }

    fn variables(&self, dialect: Dialect) -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for block in &self.blocks {
            let Kind::Setting { name } = &block.kind else { continue };
            let line = block.text.replace("\\\n", " ");
            let Some((head, value)) = line.split_once('=') else { continue };
            let value = value.split(" #").next().unwrap_or_default().trim();
            let value = match dialect {
                Dialect::Make => value,
                Dialect::Just => value.trim_matches(['"', '\'']),
            };
            match head.chars().next_back() {
                Some('+') => {
                    let known = all.entry(name.clone()).or_default();
                    known.push(' ');
                    known.push_str(value);
                }
                Some('?') if all.contains_key(name) => {}
                _ => drop(all.insert(name.clone(), value.to_owned())),
            }
        }
        all
    }

    fn all_settings(&self) -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for block in &self.blocks {
            let names = match &block.kind {
                Kind::Setting { name } => std::slice::from_ref(name),
                Kind::Rule { names, .. } => names.as_slice(),
                Kind::Other => &[],
            };
            let settings = names
                .iter()
                .filter(|name| name.starts_with('.') || matches!(block.kind, Kind::Setting { .. }));
            for name in settings {
                all.entry(name.clone()).or_default().push_str(&block.text);
            }
        }
        all
    }

    /// The variables that these rules use, directly or through others, and what holds for all.
    fn settings_of(&self, rules: &BTreeMap<String, String>, dialect: Dialect) -> BTreeMap<String, String> {
        let used: Vec<String> = rules.values().flat_map(|text| references(text, dialect)).collect();
        let general: &[&str] = match dialect {
            Dialect::Make => &MAKE_SETTINGS,
            Dialect::Just => &["set"],
        };
        let names: Vec<&str> = used.iter().map(String::as_str).chain(general.iter().copied()).collect();
        self.settings_named(&names, dialect)
    }

    /// These variables and those that they use.
    fn settings_named(&self, names: &[&str], dialect: Dialect) -> BTreeMap<String, String> {
        let mut settings: BTreeMap<String, String> = BTreeMap::new();
        let mut todo: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        while let Some(name) = todo.pop() {
            if settings.contains_key(&name) {
                continue;
            }
            let mut lines = String::new();
            for block in &self.blocks {
                let is_it = match &block.kind {
                    Kind::Setting { name: found } => *found == name,
                    Kind::Rule { names, .. } => name.starts_with('.') && names.contains(&name),
                    Kind::Other => false,
                };
                if is_it {
                    lines.push_str(&block.text);
                }
            }
            if !lines.is_empty() {
                todo.extend(references(&lines, dialect));
                settings.insert(name, lines);
            }
        }
        settings
    }
}

/// Lines with those that they are continued on.
fn logical_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        if !line.trim_end().ends_with('\\') {
            lines.push(&text[start..at]);
            start = at;
        }
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// What makes a Makefile more than a list of rules.
fn is_directive(line: &str) -> bool {
    let words = ["ifeq", "ifneq", "ifdef", "ifndef", "define", "include", "-include", "sinclude"];
    let first = line.split_whitespace().next().unwrap_or_default();
    words.contains(&first) || line.contains("$(eval") || line.contains("$(call")
}

fn make_kind(line: &str) -> Kind {
    let plain = line.trim_start();
    if plain.starts_with('#') || plain.is_empty() {
        return Kind::Other;
    }
    let plain = ["export ", "override ", "private "]
        .iter()
        .fold(plain, |line, word| line.strip_prefix(word).unwrap_or(line).trim_start());
    let assignment = plain.find('=');
    let colon = plain.find(':').filter(|at| !plain[*at..].starts_with(":="));
    match (assignment, colon) {
        (Some(at), colon) if colon.is_none_or(|colon| at < colon || is_double_assignment(plain, colon)) => {
            let name = plain[..at].trim_end_matches([':', '?', '+', '!']).trim();
            Kind::Setting { name: name.to_owned() }
        }
        (_, Some(at)) => {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
            let needs = plain[at + 1..].trim_start_matches(':');
            let needs = needs.split([';', '#']).next().unwrap_or_default().replace('|', " ");
            Kind::Rule { names: words(&plain[..at]), needs: words(&needs) }
        }
        (_, None) => Kind::Other,
    }
}

/// `NAME ::= value`
fn is_double_assignment(line: &str, colon: usize) -> bool {
    line[colon..].starts_with("::=") || line[colon..].starts_with(":::=")
}

fn just_kind(line: &str) -> Kind {
    let plain = line.trim_end();
    if plain.is_empty() || plain.starts_with(['#', '[']) {
        return Kind::Other;
    }
    if plain.starts_with("set ") {
        return Kind::Setting { name: "set".to_owned() };
    }
    if let Some((name, _)) = plain.split_once(":=") {
        let name = name.trim().trim_start_matches("export ").trim();
        return Kind::Setting { name: name.to_owned() };
    }
    let Some((head, needs)) = plain.split_once(':') else { return Kind::Other };
    let name = head.trim_start_matches('@').split_whitespace().next().unwrap_or_default();
    let needs = needs.replace("&&", " ").replace(['(', ')'], " ");
    let needs = needs.split_whitespace().map(str::to_owned).collect();
    Kind::Rule { names: vec![name.to_owned()], needs }
}

/// The names of variables in a text.
fn references(text: &str, dialect: Dialect) -> Vec<String> {
    let (opens, closes): (&[&str], &[char]) = match dialect {
        Dialect::Make => (&["$(", "${"], &[')', '}', ' ', ':']),
        Dialect::Just => (&["{{"], &['}', ' ']),
    };
    let mut found = Vec::new();
    for open in opens {
        for (at, _) in text.match_indices(open) {
            let rest = text[at + open.len()..].trim_start();
            let name = rest.split(closes).next().unwrap_or_default();
            if !name.is_empty() {
                found.push(name.to_owned());
            }
        }
    }
    if dialect == Dialect::Just {
        // In assignments, names stand as they are.
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
        found.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKEFILE: &str = "\
PYTEST ?= pytest
OBJS = a.o b.o

.PHONY: all test lint
all: $(OBJS)

%.o: %.c
\tcc -c $<

test: all lint
\t$(PYTEST) -q
\t@echo done

lint:
\truff check .

clean:
\trm -f *.o
";

    fn make(text: &str) -> Closure {
        closure(text, &["test"], Dialect::Make)
    }

    #[track_caller]
    fn differs(from: &str, to: &str, expected: Option<&str>) {
        let before = make(MAKEFILE);
        let after = make(&MAKEFILE.replace(from, to));
        assert_eq!(before.difference(&after).as_deref(), expected, "{from:?} -> {to:?}");
    }

    #[test]
    fn the_recipe_its_checks_and_its_variables_define_a_target() {
        let found = make(MAKEFILE);
        assert_eq!(found.rules.keys().collect::<Vec<_>>(), ["lint", "test"]);
        assert_eq!(found.settings.keys().collect::<Vec<_>>(), ["PYTEST"]);
        assert_eq!(found.commands(Dialect::Make), ["ruff check .", "pytest -q", "echo done"]);
    }

    #[test]
    fn cheats_differ_and_the_rest_of_the_file_does_not_matter() {
        differs("$(PYTEST) -q", "@true", Some("recipe `test`"));
        differs("PYTEST ?= pytest", "PYTEST = true", Some("`PYTEST`"));
        differs("ruff check .", "true", Some("recipe `lint`"));
        differs("test: all lint", "test:", Some("recipe `lint`, recipe `test`"));
        differs("OBJS =", "SHELL = /bin/true\nOBJS =", Some("`SHELL`"));
        differs("clean:", ".IGNORE:\nclean:", Some("`.IGNORE`"));
        differs("a.o b.o", "a.o b.o c.o", None);
        differs("rm -f *.o", "rm -rf build", None);
        differs("cc -c $<", "gcc -O2 -c $<", None);
        differs("clean:", "docs:\n\tmkdocs build\n\nclean:", None);
        differs("clean:", "ifdef CI\nendif\nclean:", Some("the file"));
    }

    #[test]
    fn former_definitions_go_into_the_later_file() {
        let cheat = MAKEFILE.replace("$(PYTEST) -q", "true").replace("?= pytest", "= true");
        let cheat = cheat.replace("a.o b.o", "a.o b.o c.o");
        let (before, later) = (make(MAKEFILE), make(&cheat));
        let put_back = before.put_back_into(&cheat, &later, Dialect::Make);
        assert_eq!(make(&put_back).difference(&before), None);
        assert!(put_back.contains("a.o b.o c.o") && put_back.contains("rm -f *.o"), "{put_back}");
        assert!(!put_back.contains("= true"), "{put_back}");
    }

    #[test]
    fn a_target_that_is_gone_comes_back() {
        let later = MAKEFILE.split("test:").next().unwrap();
        let put_back = make(MAKEFILE).put_back_into(later, &make(later), Dialect::Make);
        assert_eq!(make(&put_back).difference(&make(MAKEFILE)), None);
    }

    const JUSTFILE: &str = "\
set shell := [\"bash\", \"-c\"]
runner := \"pytest\"
port := \"8080\"

# all of it
test filter=\"\": lint
    {{runner}} {{filter}}

lint:
    ruff check

serve:
    python -m http.server {{port}}
";

    #[test]
    fn files_that_are_taken_in() {
        let make = "include a.mk $(DEPS) b/*.mk\n-include b.mk # c.mk\n\techo include d.mk\nsinclude e.mk\n";
        assert_eq!(included(make, Dialect::Make), ["a.mk", "b/*.mk", "b.mk", "e.mk"]);
        let make = "DIR = mk\ninclude $(DIR)/a.mk\n-include $(wildcard $(DIR)/*.mk *.local)\n";
        assert_eq!(included(make, Dialect::Make), ["mk/a.mk", "mk/*.mk", "*.local"]);
        let just = "import 'a.just'\nimport? \"b.just\"\nmod c\nmod d 'e/f.just'\n";
        let found = included(just, Dialect::Just);
        assert_eq!(found[..2], ["a.just", "b.just"]);
        assert!(found.contains(&"c.just".to_owned()) && found.contains(&"e/f.just".to_owned()), "{found:?}");
    }

    #[test]
    fn targets_that_a_file_would_keep_from_being_made() {
        assert_eq!(make(MAKEFILE).files().count(), 0);
        assert_eq!(make(&MAKEFILE.replace(" test lint", "")).files().collect::<Vec<_>>(), ["lint", "test"]);
    }

    #[test]
    fn justfiles_are_read_in_the_same_way() {
        let just = |text: &str| closure(text, &["test"], Dialect::Just);
        let found = just(JUSTFILE);
        assert_eq!(found.rules.keys().collect::<Vec<_>>(), ["lint", "test"]);
        assert_eq!(found.commands(Dialect::Just), ["ruff check", "pytest {{filter}}"]);
        for (from, to, expected) in [
            ("{{runner}} {{filter}}", "true", Some("recipe `test`")),
            ("runner := \"pytest\"", "runner := \"true\"", Some("`runner`")),
            ("ruff check", "true", Some("recipe `lint`")),
            ("\"bash\", \"-c\"", "\"true\"", Some("`set`")),
            ("\"8080\"", "\"9090\"", None),
            ("http.server", "other.server", None),
        ] {
            let later = JUSTFILE.replace(from, to);
            assert_eq!(found.difference(&just(&later)).as_deref(), expected, "{from}");
            let put_back = found.put_back_into(&later, &just(&later), Dialect::Just);
            assert_eq!(just(&put_back).difference(&found), None, "{put_back}");
        }
    }
}
