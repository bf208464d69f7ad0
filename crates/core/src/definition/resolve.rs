//! Follows commands to what they run: scripts, recipes, entries of manifests, and the settings of runners.

use std::collections::BTreeSet;

use super::command::{self, Scope, Simple, join, simple_commands};
use super::recipes::{self, Dialect};
use super::runners::{self, Role, role_of};
use super::{
    Definition, How, Part, Tree, glob, is_built, is_product_by_name, is_test_file, manifests, mentions,
    parent_of, speaks_of_checking,
};

/// How deep recipes and scripts that run others are followed.
const MAX_DEPTH: usize = 5;

/// How many files of one pattern are followed.
const MAX_MATCHES: usize = 200;

/// How many symbolic links are followed on the way to one file.
const MAX_LINKS: usize = 8;

/// How many files of the product are followed, one behind the other, to what judges behind them.
const MAX_PRODUCT_HOPS: usize = 3;

/// How many files of the product are read on the way to what judges behind them.
const MAX_PRODUCT: usize = 300;

/// Follows a command to what it runs.
pub(super) struct Resolver<'a> {
    tree: &'a dyn Tree,
    definition: &'a mut Definition,
    reach: Reach,
    /// What was followed already as product: files, and targets or scripts of build files.
    followed: BTreeSet<String>,
}

/// Whose commands are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Those of a check: all that they run says something about how it judges.
    Check,
    /// Those of product that a check runs, so many files behind it: only what judges by its own name counts.
    Product(usize),
}

/// How product comes to use a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// It runs or sources the file.
    Runs,
    /// It names the file in its text, or compares with it.
    Names,
    /// It imports the file. A product has modules of its own that check something.
    Imports,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(tree: &'a dyn Tree, definition: &'a mut Definition) -> Self {
        Self { tree, definition, reach: Reach::Check, followed: BTreeSet::new() }
    }

    pub(super) fn line(&mut self, line: &str, directory: &str, depth: usize) {
        self.line_in(line, directory, depth, &mut Scope::default());
    }

    fn line_in(&mut self, line: &str, directory: &str, depth: usize, scope: &mut Scope) {
        if depth > MAX_DEPTH {
            return;
        }
        let line = command::with_work_directory(line);
        let mut commands: Vec<Simple> = Vec::new();
        for simple in scope.commands(&line) {
            let directory = self.inside(&join(directory, &simple.directory));
            commands.extend(self.with_files_of_patterns(Simple { directory, ..simple }));
        }
        // `cat verify.sh | sh`, `eval "$(cat verify.sh)"`, `bash <(cat verify.sh)`.
        let feeds_a_shell = commands.iter().any(|simple| command::reads_its_program(&simple.words))
            || ["eval ", "sh -c", "<("].iter().any(|form| line.contains(form));
        if commands.iter().any(|simple| matches!(simple.program(), "diff" | "cmp" | "comm")) {
            self.definition.comparing.insert((directory.to_owned(), line.clone()));
        }
        let goes_through_lists =
            commands.iter().any(|simple| matches!(simple.program(), "xargs" | "parallel" | "read"));
        for value in command::search_paths(&line) {
            self.search_path(&value, directory);
        }
        for (index, simple) in commands.iter().enumerate() {
            self.definition.programs.insert(simple.program().to_owned());
            let how = match simple.program() {
                "." | "source" => self.how_taken_in(simple),
                _ => How::Run,
            };
            self.compared_with(simple);
            self.looked_for(simple);
            match simple.program() {
                "find" => self.found_and_run(simple, depth),
                "xargs" | "parallel" => self.fed_and_run(simple, &commands[..index], depth),
                _ => self.simple(simple, how, depth),
            }
            if runners::prints_files(simple.program()) && (goes_through_lists || simple.is_argument) {
                self.list(simple, depth);
            }
            if feeds_a_shell && runners::prints_files(simple.program()) {
                for word in simple.arguments().iter().filter(|word| !word.starts_with('-')) {
                    self.script(&join(&simple.directory, word), how, depth);
                }
            }
        }
    }

    /// What a script of the check takes in is product by the same rules as what it runs, unless it judges itself.
    /// `[ -f .env ]`: what follows may take the file in.
    fn looked_for(&mut self, simple: &Simple) {
        if matches!(simple.program(), "[" | "[[" | "test")
            && let [flag, word, ..] = simple.arguments()
            && matches!(flag.as_str(), "-e" | "-f" | "-r" | "-s")
        {
            let path = self.inside(&join(&simple.directory, word));
            if self.tree.read(&path).is_none() && !self.is_behind_product() {
                self.definition.optional.insert(path);
            }
        }
    }

    fn how_taken_in(&mut self, simple: &Simple) -> How {
        let word = simple.arguments().first().map_or("", String::as_str);
        let (path, _) = self.behind_links(&self.inside(&join(&simple.directory, word)));
        if self.definition.optional.contains(&path) {
            // The check ran without it before.
            self.definition.parts.insert(Part::Pattern { pattern: path.clone(), is_sourced: true });
        }
        let text = self.tree.read(&path).unwrap_or_default();
        let is_helper = runners::is_helper(&path) || runners::judges(&text);
        if is_helper || !is_product_by_name(&path) { How::Part } else { How::Run }
    }

    /// Directories of the tree that come to stand before those of the system.
    fn search_path(&mut self, value: &str, directory: &str) {
        for part in value.split(':').map(|part| part.trim_matches(['"', '\''])) {
            let path = self.inside(&join(directory, part));
            if !part.is_empty() && !part.contains('$') && !path.starts_with(['/', '.']) {
                self.definition.parts.insert(Part::Programs { path });
            }
        }
    }

    /// Files that say what is run, and the scripts that they name.
    fn list(&mut self, simple: &Simple, depth: usize) {
        for word in simple.arguments().iter().filter(|word| !word.starts_with('-')) {
            let path = self.inside(&join(&simple.directory, word));
            let Some(text) = self.tree.read(&path) else { continue };
            if !self.is_behind_product() || judges_behind_product(&path, None, Use::Names) {
                self.definition.parts.insert(Part::Script { path, how: How::Part });
            }
            for name in text.split_whitespace().take(MAX_MATCHES) {
                let named = self.inside(&join(&simple.directory, name));
                if self.tree.read(&named).is_some() {
                    self.script(&named, How::Run, depth + 1);
                }
            }
        }
    }

    /// `find DIRECTORY … -exec COMMAND {} \;`
    fn found_and_run(&mut self, simple: &Simple, depth: usize) {
        let arguments = simple.arguments();
        let is_exec = |word: &String| matches!(word.as_str(), "-exec" | "-execdir" | "-ok");
        let Some(at) = arguments.iter().position(is_exec) else { return };
        let command = arguments[at + 1..].iter().take_while(|word| !matches!(word.as_str(), ";" | "+"));
        let command: Vec<String> = command.cloned().collect();
        self.run_with_each(&command, &self.found_by(simple), simple, depth);
    }

    /// The files that a `find`, or what else prints names, may mean.
    fn found_by(&self, simple: &Simple) -> Vec<String> {
        let arguments = simple.arguments();
        let is_option = |word: &String| word.starts_with(['-', '(', '!']);
        let name = arguments.iter().position(|word| matches!(word.as_str(), "-name" | "-iname"));
        let name = name.and_then(|at| arguments.get(at + 1));
        let starts = arguments.iter().skip_while(|word| simple.program() != "find" && is_option(word));
        let starts = starts
            .take_while(|word| !is_option(word))
            .map(|word| self.inside(&join(&simple.directory, word)));
        let starts: Vec<String> = starts.collect();
        let is_below = |path: &str| {
            starts.iter().any(|start| {
                let rest = path.strip_prefix(start.as_str());
                start.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let is_named =
            |path: &str| name.is_none_or(|name| glob::matches(name, path.rsplit('/').next().unwrap_or(path)));
        let files = self.tree.files().into_iter();
        files.filter(|path| is_below(path) && is_named(path)).take(MAX_MATCHES).collect()
    }

    /// `ls scripts/*.sh | xargs -n1 sh`
    fn fed_and_run(&mut self, simple: &Simple, feeding: &[Simple], depth: usize) {
        let mut rest = simple.arguments();
        while let Some(option) = rest.first().filter(|word| word.starts_with('-')) {
            let takes_value = option.len() == 2 && "nPLIdasE".contains(&option[1..]);
            rest = rest.get(if takes_value { 2 } else { 1 }..).unwrap_or_default();
        }
        let files: Vec<String> = feeding.iter().flat_map(|simple| self.found_by(simple)).collect();
        self.cannot_be_followed();
        self.run_with_each(rest, &files, simple, depth);
    }

    /// A command with each of these files, in the place of `{}` or at its end.
    fn run_with_each(&mut self, command: &[String], files: &[String], of: &Simple, depth: usize) {
        for file in files {
            let file = self.absolute(file);
            let mut words: Vec<String> = command.iter().map(|word| word.replace("{}", &file)).collect();
            if words == command {
                words.push(file);
            }
            for simple in simple_commands(&words.join(" ")) {
                self.simple(&Simple { directory: of.directory.clone(), ..simple }, How::Run, depth + 1);
            }
        }
    }

    /// A command for each file or directory that a pattern in it, or in its directory, stands for.
    fn with_files_of_patterns(&mut self, simple: Simple) -> Vec<Simple> {
        if glob::is_pattern(&simple.directory) {
            let found = self.matching(&simple.directory);
            return found.into_iter().map(|directory| Simple { directory, ..simple.clone() }).collect();
        }
        let runs_files = !matches!(role_of(&simple), Role::Inert | Role::TestRunner | Role::Builder);
        let at = simple.words.iter().position(|word| glob::is_pattern(word)).filter(|_| runs_files);
        let Some(at) = at else { return vec![simple] };
        let pattern = self.inside(&join(&simple.directory, &simple.words[at]));
        let found = self.matching(&pattern);
        let is_sourced = matches!(simple.program(), "." | "source");
        if !self.is_behind_product() || runners::is_likely_check(&pattern) {
            self.definition.parts.insert(Part::Pattern { pattern, is_sourced });
        }
        if found.is_empty() {
            return vec![simple];
        }
        let from_root = |path: String| {
            let mut words = simple.words.clone();
            words[at] = self.absolute(&path);
            Simple { words, ..simple.clone() }
        };
        found.into_iter().map(from_root).collect()
    }

    /// The files and directories that match a pattern.
    fn matching(&self, pattern: &str) -> Vec<String> {
        let files = self.tree.files();
        let mut found: BTreeSet<String> = BTreeSet::new();
        for path in &files {
            let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            found.extend(
                ends.map(|end| &path[..end]).filter(|part| glob::matches(pattern, part)).map(str::to_owned),
            );
        }
        found.into_iter().take(MAX_MATCHES).collect()
    }

    fn simple(&mut self, simple: &Simple, how: How, depth: usize) {
        let role = role_of(simple);
        self.note_place(simple, &role);
        self.named_program(simple, &role);
        match role {
            Role::Make => self.make(simple, depth),
            Role::Just => self.just(simple, depth),
            Role::PackageScript(script) => self.package_script(simple, &script, depth),
            Role::Runs(rest) => {
                let inner = Simple { words: rest, ..simple.clone() };
                self.simple(&inner, how, depth + 1);
            }
            Role::Script(word) => {
                let path = join(&simple.directory, &word);
                if self.script(&path, how, depth) {
                    self.given_to_product(&path, simple, depth);
                    return;
                }
                if word.contains('$') || glob::is_pattern(&word) {
                    self.cannot_be_followed();
                }
                // A program of the system of which we know nothing.
                if !word.contains('/') {
                    self.may_run_tests();
                }
            }
            Role::GoProgram(word) => self.go_program(&join(&simple.directory, &word), depth),
            Role::Builder => self.may_run_tests(),
            Role::Module(name) if name == "doctest" => {
                self.definition.runs_tests = true;
                for word in simple.arguments() {
                    let path = self.inside(&join(&simple.directory, word));
                    if self.tree.read(&path).is_some() {
                        self.definition.parts.insert(match path.ends_with(".py") {
                            true => Part::Doctests { path: Some(path) },
                            false => Part::Config { path },
                        });
                    }
                }
            }
            Role::Module(name) => {
                let file = join(&simple.directory, &name.replace('.', "/"));
                let files = [format!("{file}.py"), format!("{file}/__main__.py")];
                let found = files.into_iter().find(|file| self.tree.read(file).is_some());
                match found {
                    Some(file) => drop(self.script(&file, how, depth)),
                    None if runners::runs_others(&name) => self.definition.runs_tests = true,
                    None => self.may_run_tests(),
                }
                self.named_configs(simple);
            }
            Role::TestRunner => {
                self.definition.runs_tests = true;
                self.named_configs(simple);
            }
            Role::Inert => {}
            Role::Unknown => {
                let word = simple.words.first().map_or("", String::as_str);
                let path = join(&simple.directory, word);
                if self.script(&path, how, depth) {
                    self.given_to_product(&path, simple, depth);
                } else {
                    self.may_run_tests();
                    self.cannot_be_followed();
                    self.named_scripts(simple, depth);
                }
            }
        }
    }

    /// Where a program lies in the tree, or where package managers would find it first. One of which we know nothing
    /// may be what the project builds.
    fn note_place(&mut self, simple: &Simple, role: &Role) {
        let word = simple.words.first().map_or("", String::as_str);
        let run = match role {
            Role::Script(script) => script,
            _ => word,
        };
        let path = self.inside(&join(&simple.directory, run));
        let is_artefact = is_built(&path) && !self.is_behind_product();
        self.definition.artefacts.extend(is_artefact.then_some(path));
        if word.is_empty() || word.contains('$') || word.contains('/') && *role == Role::Unknown {
            return;
        }
        let place = if word.contains('/') { word.to_owned() } else { format!("node_modules/.bin/{word}") };
        let path = self.inside(&join(&simple.directory, &place));
        if !path.starts_with('/') && !path.starts_with("../") {
            self.definition.places.insert(path);
        }
    }

    /// A program that is known by its name and called by its place: what lies there is part of the check.
    fn named_program(&mut self, simple: &Simple, role: &Role) {
        let word = simple.words.first().map_or("", String::as_str);
        if *role == Role::Unknown || !word.contains('/') {
            return;
        }
        let (path, links) = self.behind_links(&self.inside(&join(&simple.directory, word)));
        if self.tree.read(&path).is_some() {
            let all = links.into_iter().chain([path]);
            self.definition.parts.extend(all.map(|path| Part::Script { path, how: How::Part }));
        }
    }

    /// Scripts that a program of which we know nothing is given.
    fn named_scripts(&mut self, simple: &Simple, depth: usize) {
        for word in simple.arguments() {
            let path = self.inside(&join(&simple.directory, word));
            if !is_product_by_name(&path) && self.tree.read(&path).is_some() {
                self.script(&path, How::Run, depth + 1);
            }
        }
    }

    /// What product is called with: scripts of checks that it may run, or a word by which it runs tests, as in
    /// `manage.py test`.
    fn given_to_product(&mut self, path: &str, simple: &Simple, depth: usize) {
        let path = self.inside(path);
        if !is_product_by_name(&path) {
            return;
        }
        let is_test = |word: &String| matches!(word.as_str(), "test" | "tests" | "--test" | "--tests");
        self.definition.runs_tests |= simple.arguments().iter().any(is_test);
        self.behind_product(format!("arguments of {path}"), |this| this.named_scripts(simple, depth));
    }

    /// All files of a package of Go, or the one file that is named.
    fn go_program(&mut self, path: &str, depth: usize) {
        let path = self.inside(path);
        let is_of_it = |file: &String| *file == path || parent_of(file) == path && file.ends_with(".go");
        let files: Vec<String> = self.tree.files().into_iter().filter(is_of_it).collect();
        for file in files {
            self.script(&file, How::Run, depth);
        }
    }

    /// A file of the tree that is run; false if there is none.
    fn script(&mut self, path: &str, how: How, depth: usize) -> bool {
        self.used(path, how, Use::Runs, depth)
    }

    /// A file of the tree that is run or imported; false if there is none.
    fn used(&mut self, path: &str, how: How, usage: Use, depth: usize) -> bool {
        if !self.is_behind_product() {
            return self.of_check(path, how, depth);
        }
        let named = self.inside(path);
        let (path, _) = self.behind_links(&named);
        let text = self.tree.read(&path);
        let judges = |path: &str| judges_behind_product(path, text.as_deref(), usage);
        if judges(&named) || judges(&path) {
            self.reaching(Reach::Check, |this| this.of_check_behind_product(&named, how, depth));
        } else if let Some(text) = &text {
            self.product(&path, text, depth);
        }
        text.is_some()
    }

    /// A file by which product judges: a script, or data that it compares with.
    fn of_check_behind_product(&mut self, path: &str, how: How, depth: usize) {
        if mentions::is_code(path) || !path.rsplit('/').next().unwrap_or(path).contains('.') {
            self.of_check(path, how, depth);
        } else if self.tree.read(path).is_some() {
            self.definition.parts.insert(Part::Script { path: path.to_owned(), how: How::Part });
        }
    }

    /// What judges behind a file that is product itself.
    fn product(&mut self, path: &str, text: &str, depth: usize) {
        if depth < MAX_DEPTH {
            self.behind_product(path.to_owned(), |this| this.inside_script(path, text, depth));
        }
    }

    /// A file that a check runs.
    fn of_check(&mut self, path: &str, how: How, depth: usize) -> bool {
        let named = self.inside(path);
        let (path, links) = self.behind_links(&named);
        let is_product = how.makes_product(&named) && how.makes_product(&path);
        let how = if links.is_empty() || is_product { how } else { How::Part };
        self.definition.parts.extend(links.into_iter().map(|path| Part::Script { path, how }));
        let Some(text) = self.tree.read(&path) else {
            if !how.makes_product(&path) {
                self.definition.missing.insert(path);
            }
            return false;
        };
        let known = self.definition.parts.iter().any(|part| part.path() == path);
        self.definition.parts.insert(Part::Script { path: path.clone(), how });
        if how.makes_product(&path) {
            self.product(&path, &text, depth);
        } else if !known && depth < MAX_DEPTH {
            self.inside_script(&path, &text, depth);
        }
        true
    }

    /// What a script runs and takes in.
    fn inside_script(&mut self, path: &str, text: &str, depth: usize) {
        let parent = parent_of(path);
        let first = text.lines().next().unwrap_or_default();
        let is_shell = path.ends_with(".sh")
            || path.ends_with(".bash")
            || (first.starts_with("#!") && first.ends_with("sh"))
            || (!path.rsplit('/').next().unwrap_or(path).contains('.') && !first.starts_with("#!"));
        if is_shell {
            let text = text.replace("\\\n", " ");
            let text = command::with_known_places(&text, if parent.is_empty() { "." } else { parent });
            let mut scope = Scope::default();
            for line in text.lines() {
                let mut same = scope.clone();
                self.line_in(line, "", depth + 1, &mut scope);
                // Scripts often go to their own directory first.
                if !parent.is_empty() && line.contains('/') {
                    self.line_in(line, parent, depth + 1, &mut same);
                }
            }
            return;
        }
        let imports = runners::imports(path, text);
        for name in &imports {
            let candidates = [parent, ""].map(|from| runners::import_candidates(from, name));
            let found = candidates.iter().flatten().find(|path| self.tree.read(path).is_some());
            if let Some(found) = found {
                let how = if is_beside(path, found) { How::Part } else { How::Run };
                // `spawn("./verify.sh")` looks like an import.
                let usage = if mentions::is_shell(found) { Use::Runs } else { Use::Imports };
                self.used(found, how, usage, depth + 1);
            }
        }
        for name in text.lines().flat_map(runners::literals).filter(|name| !imports.contains(name)) {
            let candidates = [join(parent, &name), join("", &name)];
            let found = candidates.into_iter().find(|path| self.tree.read(path).is_some());
            let is_of_check = |path: &String| !is_product_by_name(path) || self.is_behind_product();
            if let Some(found) = found.filter(is_of_check) {
                self.used(&found, How::Run, Use::Names, depth + 1);
            }
        }
        self.definition.runs_tests |= runners::names_a_runner(text);
        // What else a script in another language starts is not followed.
        self.may_run_tests();
        self.cannot_be_followed();
    }

    fn make(&mut self, simple: &Simple, depth: usize) {
        let arguments = runners::make_arguments(simple);
        let names = match &arguments.file {
            Some(file) => vec![file.clone()],
            // The order in which GNU make looks for them.
            None => ["GNUmakefile", "makefile", "Makefile"].map(str::to_owned).to_vec(),
        };
        self.recipe(&arguments, names, false, depth);
    }

    fn just(&mut self, simple: &Simple, depth: usize) {
        let arguments = runners::just_arguments(simple);
        let names = match &arguments.file {
            Some(file) => vec![file.clone()],
            None => ["justfile", "Justfile", ".justfile"].map(str::to_owned).to_vec(),
        };
        self.recipe(&arguments, names, true, depth);
    }

    fn recipe(&mut self, arguments: &runners::Arguments, names: Vec<String>, just: bool, depth: usize) {
        let directory = self.inside(&arguments.directory);
        let paths: Vec<String> = names.iter().map(|name| self.inside(&join(&directory, name))).collect();
        if !self.is_behind_product() {
            self.recipe_of_check(arguments, &paths, just, depth);
        } else if arguments.targets.iter().any(|target| speaks_of_checking(target)) {
            self.reaching(Reach::Check, |this| this.recipe_of_check(arguments, &paths, just, depth));
        } else if let Some(path) = paths.iter().find(|path| self.tree.read(path).is_some()) {
            let text = self.tree.read(path).unwrap_or_default();
            let targets: Vec<&str> = arguments.targets.iter().map(String::as_str).collect();
            let targets = if targets.is_empty() { vec![recipes::FIRST_TARGET] } else { targets };
            let dialect = if just { Dialect::Just } else { Dialect::Make };
            let closure = recipes::closure(&text, &targets, dialect);
            self.behind_product(format!("{path}: {}", targets.join(" ")), |this| {
                this.commands_of(&closure, &directory, dialect, depth);
            });
        }
    }

    fn recipe_of_check(
        &mut self,
        arguments: &runners::Arguments,
        paths: &[String],
        just: bool,
        depth: usize,
    ) {
        let directory = self.inside(&arguments.directory);
        let Some(path) = self.first_file(paths) else {
            self.definition.runs_tests = true;
            self.definition.missing.extend(paths.iter().cloned());
            return;
        };
        // A file that would be read instead of this one defines the check as well.
        let is_absent = |path: &&String| self.tree.read(path).is_none() && self.tree.link(path).is_none();
        let others: Vec<Part> =
            paths.iter().take_while(is_absent).map(|path| Part::Config { path: path.clone() }).collect();
        self.definition.parts.extend(others);
        let mut targets: BTreeSet<String> = arguments.targets.iter().cloned().collect();
        if targets.is_empty() {
            targets.insert(recipes::FIRST_TARGET.to_owned());
        }
        if !self.definition.add_targets(&path, just, &targets) {
            return;
        }
        let dialect = if just { Dialect::Just } else { Dialect::Make };
        let text = self.with_included(&path, &directory, dialect);
        // A recipe of a module is named `module::recipe`.
        let inner = targets.iter().filter_map(|target| target.rsplit_once("::").map(|(_, inner)| inner));
        let targets: Vec<&str> = targets.iter().map(String::as_str).chain(inner).collect();
        let closure = recipes::closure(&text, &targets, dialect);
        for target in closure.files() {
            let path = self.inside(&join(&directory, target));
            if self.tree.read(&path).is_none() {
                self.definition.parts.insert(Part::NoFile { path });
            }
        }
        if let Some(value) = closure.search_path(dialect) {
            let value = value.replace("$CURDIR", &self.absolute(&directory));
            self.search_path(&command::with_work_directory(&value), &directory);
        }
        self.commands_of(&closure, &directory, dialect, depth);
    }

    fn commands_of(&mut self, closure: &recipes::Closure, directory: &str, dialect: Dialect, depth: usize) {
        for command in closure.commands(dialect) {
            // make tells its own directory.
            let command = command.replace("$CURDIR", &self.absolute(directory));
            self.line(&command, directory, depth + 1);
        }
    }

    /// The text of a file with those that it takes in, which are parts of the definition too.
    fn with_included(&mut self, path: &str, directory: &str, dialect: Dialect) -> String {
        let mut text = String::new();
        let mut todo = vec![path.to_owned()];
        let mut seen = BTreeSet::new();
        while let Some(file) = todo.pop() {
            if !seen.insert(file.clone()) {
                continue;
            }
            let (real, links) = self.behind_links(&file);
            if file != path {
                let parts = links.into_iter().chain([real.clone()]);
                self.definition.parts.extend(parts.map(|path| Part::Config { path }));
            }
            let more = self.tree.read(&real).unwrap_or_default();
            // make looks from where it runs, just from where the file is.
            let from = match dialect {
                Dialect::Make => directory,
                Dialect::Just => parent_of(&file),
            };
            for name in recipes::included(&more, dialect) {
                let name = self.inside(&join(from, &name));
                match glob::is_pattern(&name) {
                    true => {
                        todo.extend(self.matching(&name));
                        self.definition.parts.insert(Part::Pattern { pattern: name, is_sourced: true });
                    }
                    false => todo.push(name),
                }
            }
            text.push_str(&more);
            text.push('\n');
        }
        text
    }

    fn package_script(&mut self, simple: &Simple, script: &str, depth: usize) {
        let directory = runners::package_directory(simple).0.unwrap_or_default();
        let directory = self.inside(&join(&simple.directory, &directory));
        let path = join(&directory, "package.json");
        if !self.is_behind_product() {
            self.package_script_of_check(simple, &path, script, depth);
        } else if speaks_of_checking(script) {
            self.reaching(Reach::Check, |this| this.package_script_of_check(simple, &path, script, depth));
        } else if let Some(text) = self.tree.read(&path) {
            self.behind_product(format!("{path}: {script}"), |this| {
                this.npm_scripts(simple, &text, script, &directory, depth);
            });
        }
    }

    fn package_script_of_check(&mut self, simple: &Simple, path: &str, script: &str, depth: usize) {
        let directory = parent_of(path);
        let Some(path) = self.first_file(&[path.to_owned()]) else {
            self.definition.runs_tests = true;
            self.definition.missing.insert(path.to_owned());
            return;
        };
        let text = self.tree.read(&path).unwrap_or_default();
        if self.definition.parts.insert(Part::PackageScript { path, script: script.to_owned() }) {
            self.npm_scripts(simple, &text, script, directory, depth);
            // The manager reads settings of its own, one of which is the shell for scripts.
            self.definition.runs_tests = true;
        }
    }

    fn npm_scripts(&mut self, simple: &Simple, text: &str, script: &str, directory: &str, depth: usize) {
        for (_, script) in manifests::npm_scripts(text, script) {
            // Where npm was called, which need not be where the package is.
            let from = self.absolute(&simple.directory);
            let script = script.replace("${INIT_CWD}", &from).replace("$INIT_CWD", &from);
            self.line(&script, directory, depth + 1);
        }
    }

    /// Files of the tree that a judging command compares with are part of the check.
    fn compared_with(&mut self, simple: &Simple) {
        let path_of = |word: &str| self.behind_links(&self.inside(&join(&simple.directory, word))).0;
        let is_there = |word: &str| self.tree.read(&path_of(word)).is_some();
        let words = runners::compared_with(simple, &is_there);
        let paths = words.iter().filter(|word| is_there(word)).map(|word| path_of(word));
        let is_behind_product = self.is_behind_product();
        let paths = paths.filter(|path| !is_behind_product || judges_behind_product(path, None, Use::Names));
        let parts: Vec<Part> = paths.map(|path| Part::Script { path, how: How::Part }).collect();
        self.definition.parts.extend(parts);
    }

    /// Files that a runner's arguments name and that are no tests.
    fn named_configs(&mut self, simple: &Simple) {
        if simple.arguments().iter().any(|word| word == "--doctest-modules") {
            self.definition.parts.insert(Part::Doctests { path: None });
        }
        for word in simple.arguments() {
            let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
            let path = self.inside(&join(&simple.directory, value));
            let is_file = value.contains('.') && !value.starts_with('-');
            if is_file && !is_test_file(&path) && self.tree.read(&path).is_some() {
                self.definition.parts.insert(Part::Config { path });
            }
        }
    }

    /// Files that the settings of a runner name in turn.
    pub(super) fn named_in_configs(&mut self) {
        for config in runners::naming_configs() {
            let Some(text) = self.tree.read(&config) else { continue };
            let names = runners::named_in_config(&text);
            for name in names.iter().filter(|name| name.contains(['/', '.'])) {
                let candidates = runners::import_candidates("", name);
                let found = candidates.into_iter().find(|path| self.tree.read(path).is_some());
                self.definition.parts.extend(found.map(|path| Part::Config { path }));
            }
        }
    }

    fn is_behind_product(&self) -> bool {
        self.reach != Reach::Check
    }

    /// What a check calls may run tests. What product calls does so only where it is known.
    fn may_run_tests(&mut self) {
        self.definition.runs_tests |= !self.is_behind_product();
    }

    fn cannot_be_followed(&mut self) {
        self.definition.is_unresolved |= !self.is_behind_product();
    }

    /// Follows commands with another reach.
    fn reaching(&mut self, reach: Reach, follow: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.reach, reach);
        follow(self);
        self.reach = before;
    }

    /// Follows product to what judges behind it, each file or target once.
    fn behind_product(&mut self, name: String, follow: impl FnOnce(&mut Self)) {
        let hops = match self.reach {
            Reach::Check => 1,
            Reach::Product(hops) => hops + 1,
        };
        let is_new =
            hops <= MAX_PRODUCT_HOPS && self.followed.len() < MAX_PRODUCT && self.followed.insert(name);
        if is_new {
            self.reaching(Reach::Product(hops), follow);
        }
    }

    /// Where a path leads in the end, and the symbolic links on the way, those of directories included.
    fn behind_links(&self, path: &str) -> (String, Vec<String>) {
        let mut path = path.to_owned();
        let mut links = Vec::new();
        while links.len() < MAX_LINKS {
            let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            let found = ends.filter(|end| *end > 0).find_map(|end| {
                let target = self.tree.link(&path[..end])?;
                Some((end, target))
            });
            let Some((end, target)) = found else { break };
            let link = path[..end].to_owned();
            let target = self.inside(&join(parent_of(&link), &target));
            path = join(&target, path[end..].trim_start_matches('/'));
            links.push(link);
        }
        (path, links)
    }

    /// The file that is read under one of these names, behind links, which are parts of the definition too.
    fn first_file(&mut self, names: &[String]) -> Option<String> {
        let found = names.iter().find_map(|name| {
            let (path, links) = self.behind_links(name);
            self.tree.read(&path).map(|_| (path, links))
        });
        let (path, links) = found?;
        self.definition.parts.extend(links.into_iter().map(|path| Part::Config { path }));
        Some(path)
    }

    fn absolute(&self, directory: &str) -> String {
        format!("{}/{directory}", self.tree.root().trim_end_matches('/')).trim_end_matches('/').to_owned()
    }

    /// A path as one of the tree.
    fn inside(&self, path: &str) -> String {
        let root = self.tree.root().trim_end_matches('/');
        match path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')) {
            Some(rest) if !root.is_empty() => join("", rest),
            _ => path.to_owned(),
        }
    }
}

/// Does a file that product uses judge, by its name and place? What the product imports has to lie among the tests,
/// or to say that it can fail.
fn judges_behind_product(path: &str, text: Option<&str>, usage: Use) -> bool {
    const FAILING: [&str; 4] = ["assert", "exit(", "SystemExit", "exitCode"];
    const EXPECTED: [&str; 5] = ["golden", "goldens", "gold", "expected", "approved"];
    let mut words = path.split('/').flat_map(super::words_of);
    match usage {
        Use::Runs => runners::is_likely_check(path) || mentions::is_code(path) && is_test_file(path),
        Use::Imports => {
            let can_fail = || text.is_some_and(|text| FAILING.iter().any(|word| text.contains(word)));
            runners::is_likely_check(path) && (is_test_file(path) || can_fail())
        }
        Use::Names => {
            let is_expected =
                !runners::is_source(path) && words.any(|word| EXPECTED.contains(&word.as_str()));
            runners::is_likely_check(path) || is_expected
        }
    }
}

/// Does a module that a script of a check takes in lie beside it, in a folder of scripts, and not call itself
/// a program?
fn is_beside(script: &str, module: &str) -> bool {
    const PROGRAMS: [&str; 12] = [
        "app", "main", "index", "server", "cli", "lib", "build", "generate", "gen", "deploy", "release",
        "run",
    ];
    const FOLDERS: [&str; 8] = ["scripts", "script", "tools", "tool", "hack", "dev", "bin", "utils"];
    let folder = parent_of(script);
    let is_of_scripts = FOLDERS.contains(&folder.rsplit('/').next().unwrap_or(folder));
    let name = module.rsplit('/').next().unwrap_or(module);
    let stem = name.split('.').next().unwrap_or(name);
    is_of_scripts && parent_of(module) == folder && !runners::is_source(module) && !PROGRAMS.contains(&stem)
}
