//! What defines a check: the script it runs, the recipe or script entry it stands for, the settings of
//! its test runner, and the tests that there were.
//!
//! An attempt that changes any of it is checked a second time, with the former definition over its own
//! tree ([`Definition::former`]). A file that a check merely runs to see what it does is product, and
//! changing it is what the task is about.

mod builds;
mod command;
mod doctests;
mod glob;
mod manifests;
mod mentions;
mod names;
mod recipes;
mod resolve;
mod runners;
mod rust;
mod wishes;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::task::Task;
use command::{join, simple_commands};
use recipes::Dialect;
use resolve::Resolver;

pub use runners::{is_runner_config, is_test_file};

/// The files of a work tree before the task.
pub trait Tree {
    /// A file's text; nothing where there is none, or where it is no text.
    fn read(&self, path: &str) -> Option<String>;

    /// Where a symbolic link leads, as it is written in the link.
    fn link(&self, path: &str) -> Option<String>;

    /// The directory itself: absolute paths below it are files of the tree too.
    fn root(&self) -> &str;

    /// Directories of the tree in which checks look for programs, as `PATH` says.
    fn search_path(&self) -> Vec<String>;

    /// The paths of all files, up to a limit, without those of directories that hold no files of the project
    /// (`.git`, installed packages, build output).
    fn files(&self) -> Vec<String>;
}

/// Something of what defines a check was changed, or a file that a check runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    pub path: String,
    /// Which part of the file, such as "recipe `test`"; empty for all of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub what: String,
    /// A check runs the file, but what it does is what the task is about.
    #[serde(default, skip_serializing_if = "is_false")]
    pub product: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(on: &bool) -> bool {
    !on
}

/// What defines some checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    parts: BTreeSet<Part>,
    /// A test runner is among what they run, or something that may be one.
    runs_tests: bool,
    /// Some of what they run cannot be known by reading.
    is_unresolved: bool,
    /// The names of the programs that they call.
    programs: BTreeSet<String>,
    /// Commands that compare something, with the directories that they run in.
    comparing: BTreeSet<(String, String)>,
    /// Files that they need and that are not there: without them they cannot run yet.
    missing: BTreeSet<String>,
    /// Files that they do without where they are not there, and take in where they are.
    optional: BTreeSet<String>,
    /// Where in the tree the programs that they call lie, or would be found first if they lay there.
    places: BTreeSet<String>,
    /// What they run in folders that builds write to.
    artefacts: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// A file that is run.
    Script { path: String, how: How },
    /// Targets of a Makefile or justfile.
    Recipe { path: String, just: bool, targets: BTreeSet<String> },
    /// A script of a `package.json`.
    PackageScript { path: String, script: String },
    /// A file that a test runner is told to read.
    Config { path: String },
    /// A module whose docstrings have examples that are run; without a path, every module.
    Doctests { path: Option<String> },
    /// A directory in which programs are looked for first.
    Programs { path: String },
    /// A target of make that is no file: one of that name, or a directory, would keep it from being made.
    NoFile { path: String },
    /// Files that are run, or taken into one that runs, by a pattern of their names.
    Pattern { pattern: String, is_sourced: bool },
}

/// How a check comes to run a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    Run,
    /// A part of the check itself, whatever its name: a link with a name that speaks of checking leads to it,
    /// a command compares with it, or it says what is run.
    Part,
}

impl How {
    /// Is changing a file that is run so what a task may be about?
    fn makes_product(self, path: &str) -> bool {
        match self {
            Self::Run => is_product_by_name(path),
            Self::Part => false,
        }
    }
}

/// A file that an attempt changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedFile<'a> {
    pub path: &'a str,
    pub existed: bool,
    pub exists: bool,
}

/// What has to be put in place to run checks by their former definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Former {
    pub changes: Vec<Change>,
    pub files: Vec<(String, Put)>,
}

/// What a file is while the former definition is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    AsBefore,
    Gone,
    Text(String),
    /// As the attempt left it, but younger than what was made of it: make goes by that.
    Younger,
}

impl Former {
    /// Was more changed than product?
    pub fn is_redefined(&self) -> bool {
        self.changes.iter().any(|change| !change.product)
    }
}

/// What is said of a source file of which only the tests were changed.
pub const ITS_TESTS: &str = "its tests";

impl Definition {
    /// What defines these commands in a tree.
    pub fn of<'a>(commands: impl IntoIterator<Item = &'a str>, tree: &dyn Tree) -> Self {
        let mut definition = Self::default();
        let own = tree.search_path().into_iter().map(|path| Part::Programs { path });
        definition.parts.extend(own);
        for line in commands {
            Resolver::new(tree, &mut definition).line(line, "", 0);
        }
        if definition.runs_tests {
            Resolver::new(tree, &mut definition).named_in_configs();
        }
        definition
    }

    /// The files among it.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let is_file = |part: &&Part| {
            !matches!(
                part,
                Part::NoFile { .. }
                    | Part::Programs { .. }
                    | Part::Pattern { .. }
                    | Part::Doctests { path: None }
            )
        };
        let parts = self.parts.iter().filter(is_file);
        parts.map(Part::path)
    }

    /// Is a test runner among what they run, or something that may be one?
    pub fn runs_tests(&self) -> bool {
        self.runs_tests
    }

    /// What they run that a build makes, by its folder. Whether it was made of this tree, no commit tells.
    pub fn artefacts(&self) -> impl Iterator<Item = &str> {
        self.artefacts.iter().map(String::as_str)
    }

    /// Do they ask git about something?
    pub fn asks_git(&self) -> bool {
        self.programs.contains("git")
    }

    /// Where in the tree the programs that they call lie, or would be found first if they lay there. What git
    /// ignores there, no commit tells of.
    pub fn places_of_programs(&self) -> Vec<String> {
        let first = self.parts.iter().filter_map(|part| match part {
            Part::Programs { path } => Some(path),
            Part::Script { .. }
            | Part::Recipe { .. }
            | Part::PackageScript { .. }
            | Part::Config { .. }
            | Part::Doctests { .. }
            | Part::Pattern { .. }
            | Part::NoFile { .. } => None,
        });
        let first = first.flat_map(|path| self.programs.iter().map(move |name| format!("{path}/{name}")));
        first.chain(self.places.iter().cloned()).collect()
    }

    /// In words, one line for each part.
    pub fn describe(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .parts
            .iter()
            .map(|part| match part {
                Part::Script { path, how } if how.makes_product(path) => {
                    format!("{path} is run, but is product: changing it is no change of the check")
                }
                Part::Script { path, .. } => path.clone(),
                Part::Recipe { path, targets, .. } => format!("{} of {path}", named_targets(targets)),
                Part::PackageScript { path, script } => format!("script `{script}` of {path}"),
                Part::Config { path } => path.clone(),
                Part::Doctests { path: Some(path) } => format!("examples in the docstrings of {path}"),
                Part::Doctests { path: None } => "examples in docstrings".to_owned(),
                Part::Programs { path } => format!("no program in {path} in the place of one that it calls"),
                Part::NoFile { path } => format!("no file or directory `{path}` in the way of its target"),
                Part::Pattern { pattern, .. } => format!("which files match {pattern}"),
            })
            .collect();
        if self.runs_tests {
            lines.push("the tests that exist, and the settings of their runner".to_owned());
        }
        lines
    }

    /// What of it an attempt changed, and what to put in place of that for a check by the former definition.
    /// `after`: the text of a file as the attempt left it.
    pub fn former(
        &self,
        changed: &[ChangedFile<'_>],
        before: &dyn Tree,
        after: &dyn Fn(&str) -> Option<String>,
        task: &Task,
    ) -> Former {
        let mut former = Former::default();
        for part in &self.parts {
            self.compare(part, changed, before, after, task, &mut former);
        }
        if self.is_unresolved {
            compare_likely_scripts(changed, task, &mut former);
        }
        if self.runs_tests {
            compare_runners(changed, before, after, task, &mut former);
        }
        self.compare_mentioned(changed, before, task, &mut former);
        // What only gets younger gives way to what is put in place otherwise.
        former.files.sort_by_key(|(path, put)| (path.clone(), *put == Put::Younger));
        former.files.dedup_by(|one, other| one.0 == other.0);
        former
    }

    /// What existing tests and scripts of the checks expect, and what helps them.
    fn compare_mentioned(
        &self,
        changed: &[ChangedFile<'_>],
        before: &dyn Tree,
        task: &Task,
        former: &mut Former,
    ) {
        let is_new = |path: &str| !former.changes.iter().any(|change| change.path == path);
        let candidates: Vec<&str> = changed
            .iter()
            .filter(|file| file.existed && is_new(file.path))
            .map(|file| file.path)
            .filter(|path| !is_test_file(path) && mentions::is_candidate(path))
            .collect();
        if candidates.is_empty() || !self.runs_tests && self.parts.is_empty() && self.comparing.is_empty() {
            return;
        }
        let scripts = self.parts.iter().filter_map(|part| match part {
            Part::Script { path, how } if !how.makes_product(path) => Some(path),
            Part::Script { .. }
            | Part::Recipe { .. }
            | Part::PackageScript { .. }
            | Part::Config { .. }
            | Part::Doctests { .. }
            | Part::Programs { .. }
            | Part::Pattern { .. }
            | Part::NoFile { .. } => None,
        });
        let scripts = scripts
            .filter_map(|path| Some(mentions::Checking { path: path.clone(), text: before.read(path)? }));
        let lines = self.comparing.iter().map(|(directory, line)| mentions::Checking {
            path: join(directory, "line.sh"),
            text: line.clone(),
        });
        let own: Vec<mentions::Checking> = scripts.chain(lines).collect();
        for path in mentions::of_checks(&candidates, &own, before) {
            let product = is_named_by(task, path);
            former.note(path, String::new(), product);
            if !product {
                former.files.push((path.to_owned(), Put::AsBefore));
            }
        }
    }

    /// Adds targets of a file; false if all of them are known. One part for each file: it is put back as a whole.
    fn add_targets(&mut self, path: &str, just: bool, targets: &BTreeSet<String>) -> bool {
        let known = self.parts.iter().find_map(|part| {
            let Part::Recipe { path: other, just: is_just, targets } = part else { return None };
            (other == path && *is_just == just).then(|| targets.clone())
        });
        let known = known.unwrap_or_default();
        let all: BTreeSet<String> = known.union(targets).cloned().collect();
        if all == known {
            return false;
        }
        self.parts.remove(&Part::Recipe { path: path.to_owned(), just, targets: known });
        self.parts.insert(Part::Recipe { path: path.to_owned(), just, targets: all })
    }

    /// Files that the checks need, that were not there before and that the attempt wrote itself, unless the task
    /// asks for them. What such a check says is the agent's own word.
    pub fn written<'a>(&self, changed: &[ChangedFile<'a>], task: &Task) -> Vec<&'a str> {
        let is_written = |file: &&ChangedFile<'_>| {
            !file.existed && file.exists && self.missing.contains(file.path) && !is_named_by(task, file.path)
        };
        changed.iter().filter(is_written).map(|file| file.path).collect()
    }

    fn compare(
        &self,
        part: &Part,
        changed: &[ChangedFile<'_>],
        before: &dyn Tree,
        after: &dyn Fn(&str) -> Option<String>,
        task: &Task,
        former: &mut Former,
    ) {
        let find = |path: &str| changed.iter().find(|file| file.path == path);
        match part {
            Part::Script { path, how } => {
                let Some(file) = find(path).filter(|file| file.existed) else { return };
                let product = !is_runner_config(path) && (how.makes_product(path) || is_named_by(task, path));
                former.note(path, String::new(), product);
                if !product {
                    former.files.push((path.clone(), put_for(file)));
                }
            }
            Part::Config { path } => {
                if let Some(file) = find(path) {
                    former.note(path, String::new(), false);
                    former.files.push((path.clone(), put_for(file)));
                }
            }
            Part::Doctests { path } => {
                let is_it = |file: &&ChangedFile<'_>| {
                    let is_named = path.as_ref().is_none_or(|path| path == file.path);
                    is_named && file.existed && file.path.ends_with(".py") && !is_test_file(file.path)
                };
                for file in changed.iter().filter(is_it) {
                    let was = before.read(file.path).unwrap_or_default();
                    let is = after(file.path).unwrap_or_default();
                    if file.exists && doctests::differ(&was, &is) {
                        former.note(file.path, "its doctests".to_owned(), false);
                        former
                            .files
                            .push((file.path.to_owned(), Put::Text(doctests::with_former(&was, &is))));
                    }
                }
            }
            Part::Programs { path } => {
                let takes_a_place = |file: &&ChangedFile<'_>| {
                    let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", file.path));
                    let is_called = self.programs.contains(name) && !file.existed;
                    folder == path && (is_called || runners::is_known(name))
                };
                for file in changed.iter().filter(takes_a_place) {
                    former.note(
                        file.path,
                        "in the place of a program that the check calls".to_owned(),
                        false,
                    );
                    former.files.push((file.path.to_owned(), put_for(file)));
                }
            }
            Part::NoFile { path } => {
                let is_in_the_way = |file: &&ChangedFile<'_>| {
                    let rest = file.path.strip_prefix(path.as_str());
                    !file.existed && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                };
                for file in changed.iter().filter(is_in_the_way) {
                    former.note(file.path, format!("in the way of target `{path}`"), false);
                    former.files.push((file.path.to_owned(), Put::Gone));
                }
            }
            Part::Pattern { pattern, is_sourced } => {
                // A program of its own does nothing to others, unless it is one of the checks.
                let joins = |file: &&ChangedFile<'_>| {
                    !file.existed
                        && glob::matches(pattern, file.path)
                        && (*is_sourced || !is_product_by_name(file.path))
                        && !is_named_by(task, file.path)
                };
                for file in changed.iter().filter(joins) {
                    former.note(file.path, format!("new among `{pattern}`"), false);
                    former.files.push((file.path.to_owned(), Put::Gone));
                }
            }
            Part::Recipe { path, just, targets } => {
                let Some(file) = find(path) else { return };
                let dialect = if *just { Dialect::Just } else { Dialect::Make };
                let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
                let (was, is) = (before.read(path).unwrap_or_default(), after(path).unwrap_or_default());
                let (old, new) =
                    (recipes::closure(&was, &targets, dialect), recipes::closure(&is, &targets, dialect));
                if let Some(what) = old.difference(&new) {
                    former.note(path, what, false);
                    let put = match file.exists {
                        true => Put::Text(old.put_back_into(&is, &new, dialect)),
                        false => Put::AsBefore,
                    };
                    former.files.push((path.clone(), put));
                    former.files.extend(Self::to_make_again(path, &old.made_otherwise(&new), before, after));
                }
            }
            Part::PackageScript { path, script } => {
                let Some(file) = find(path) else { return };
                let (was, is) = (before.read(path).unwrap_or_default(), after(path).unwrap_or_default());
                if let Some(what) = manifests::package_difference(&was, &is, script) {
                    former.note(path, what, false);
                    let put = match file.exists {
                        true => Put::Text(manifests::package_with_former_scripts(&was, &is)),
                        false => Put::AsBefore,
                    };
                    former.files.push((path.clone(), put));
                }
            }
        }
    }

    /// Sources of what was made by the later definition, which make would take for done by the former one too.
    fn to_make_again(
        makefile: &str,
        needs: &BTreeSet<String>,
        before: &dyn Tree,
        after: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<(String, Put)> {
        // make knows by itself what objects are made of.
        let sources = |need: &String| match need.strip_suffix(".o") {
            Some(stem) => ["c", "cc", "cpp", "cxx"].map(|end| format!("{stem}.{end}")).to_vec(),
            None => vec![need.clone()],
        };
        let paths = needs
            .iter()
            .flat_map(sources)
            .flat_map(|name| ["", parent_of(makefile)].map(|directory| join(directory, &name)));
        let is_there = |path: &String| before.read(path).is_some() && after(path).is_some();
        let paths: BTreeSet<String> = paths.filter(is_there).collect();
        paths.into_iter().map(|path| (path, Put::Younger)).collect()
    }

    /// Does a check by the former definition of this command tell anything? A task's own check may be about
    /// what did not exist before; then only a changed file that it runs or names itself counts.
    pub fn concerns(&self, command: &str, changed: &[ChangedFile<'_>]) -> bool {
        let words: Vec<String> = simple_commands(command)
            .iter()
            .flat_map(|simple| simple.words.iter().map(|word| join(&simple.directory, word)))
            .collect();
        let names = |file: &ChangedFile<'_>| words.iter().any(|word| *word == file.path);
        let is_part = |file: &&ChangedFile<'_>| {
            file.existed && (names(file) || self.parts.iter().any(|part| part.path() == file.path))
        };
        let needs_new = changed.iter().any(|file| !file.existed && names(file));
        !needs_new && changed.iter().any(|file| is_part(&file))
    }
}

impl Part {
    fn path(&self) -> &str {
        match self {
            Self::Script { path, .. }
            | Self::Recipe { path, .. }
            | Self::PackageScript { path, .. }
            | Self::Config { path }
            | Self::Programs { path }
            | Self::NoFile { path }
            | Self::Pattern { pattern: path, .. } => path,
            Self::Doctests { path } => path.as_deref().unwrap_or_default(),
        }
    }
}

fn named_targets(targets: &BTreeSet<String>) -> String {
    let named = targets.iter().map(|target| match target.as_str() {
        recipes::FIRST_TARGET => "first target".to_owned(),
        target => format!("`{target}`"),
    });
    named.collect::<Vec<_>>().join(", ")
}

impl Former {
    fn note(&mut self, path: &str, what: String, product: bool) {
        let change = Change { path: path.to_owned(), what, product };
        if !self.changes.contains(&change) {
            self.changes.push(change);
        }
    }
}

fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn put_for(file: &ChangedFile<'_>) -> Put {
    if file.existed { Put::AsBefore } else { Put::Gone }
}

/// Where it is not known which files a check runs: those that speak of checking.
fn compare_likely_scripts(changed: &[ChangedFile<'_>], task: &Task, former: &mut Former) {
    for file in changed.iter().filter(|file| file.existed && runners::is_likely_check(file.path)) {
        if former.changes.iter().any(|change| change.path == file.path) {
            continue;
        }
        let product = is_named_by(task, file.path);
        former.note(file.path, String::new(), product);
        if !product {
            former.files.push((file.path.to_owned(), Put::AsBefore));
        }
    }
}

/// Tests and the settings of test runners: with the former ones, added files are gone too. New tests
/// alone change nothing that was there.
fn compare_runners(
    changed: &[ChangedFile<'_>],
    before: &dyn Tree,
    after: &dyn Fn(&str) -> Option<String>,
    task: &Task,
    former: &mut Former,
) {
    let is_test = |file: &ChangedFile<'_>| {
        is_test_file(file.path) || rust::is_test_module(file.path, &|path| before.read(path))
    };
    // A new manifest of a project that has tests already says how they run from now on.
    let had_tests = || before.files().iter().any(|path| is_test_file(path));
    let governs = |file: &ChangedFile<'_>| {
        let is_new_settings =
            matches!(file.path, "pyproject.toml" | "setup.cfg") && !is_named_by(task, file.path);
        file.existed || is_new_settings && had_tests()
    };
    for file in changed {
        let path = file.path;
        let takes_over =
            |text: String| runners::is_main(path, &text) || !file.existed && runners::ends_its_process(&text);
        // Tests below an added go.mod are no longer among those of the module above.
        let cuts_off = !file.existed && path.ends_with("/go.mod");
        let is_unasked = !file.existed && !is_named_by(task, path);
        let is_taken = is_unasked && names::takes_a_known_name(path);
        let place = || names::takes_the_place_of(path, &after(path).unwrap_or_default(), before);
        if let Some(taken) = is_unasked.then(place).flatten() {
            former.note(path, format!("in the place of {taken}"), false);
            former.files.push((path.to_owned(), Put::Gone));
            continue;
        }
        let is_plugin = path.ends_with("-info/entry_points.txt")
            && after(path).is_some_and(|text| text.contains("[pytest11]"));
        if is_runner_config(path)
            || cuts_off
            || is_taken
            || is_plugin
            || is_test(file) && after(path).is_some_and(takes_over)
        {
            former.note(path, String::new(), false);
            former.files.push((path.to_owned(), put_for(file)));
        } else if let Some(parts) = runners::sections_of(path).filter(|_| file.exists && governs(file)) {
            let (was, is) = (before.read(path).unwrap_or_default(), after(path).unwrap_or_default());
            if let Some(what) = manifests::section_difference(&was, &is, parts) {
                former.note(path, what, false);
                let text = manifests::with_former_sections(&was, &is, parts);
                former.files.push((path.to_owned(), Put::Text(text)));
            }
        } else if path.rsplit('/').next() == Some("package.json") && file.existed && file.exists {
            // Of a workspace's member, or read by a runner that was started without its script.
            let (was, is) = (before.read(path).unwrap_or_default(), after(path).unwrap_or_default());
            let is_known = former.changes.iter().any(|change| change.path == path);
            if let Some(what) = manifests::package_difference(&was, &is, "test").filter(|_| !is_known) {
                former.note(path, what, false);
                let text = manifests::package_with_former_scripts(&was, &is);
                former.files.push((path.to_owned(), Put::Text(text)));
            }
        } else if is_test(file) && file.existed {
            former.note(path, String::new(), false);
        } else if path.ends_with(".rs") && file.existed && file.exists {
            let (was, is) = (before.read(path).unwrap_or_default(), after(path).unwrap_or_default());
            if rust::tests_differ(&was, &is)
                && let Some(text) = rust::with_former_tests(&was, &is)
            {
                former.note(path, ITS_TESTS.to_owned(), false);
                former.files.push((path.to_owned(), Put::Text(text)));
            }
        }
    }
    if former.is_redefined() {
        let tests = changed.iter().filter(|file| is_test(file));
        former.files.extend(tests.map(|file| (file.path.to_owned(), put_for(file))));
    }
}

/// Does a name speak of checking rather than of what is checked?
pub fn speaks_of_checking(name: &str) -> bool {
    const WORDS: [&str; 30] = [
        "test",
        "tests",
        "testing",
        "tester",
        "check",
        "checks",
        "checker",
        "checking",
        "verify",
        "verifies",
        "verifier",
        "verification",
        "validate",
        "validates",
        "validator",
        "validation",
        "lint",
        "linter",
        "ci",
        "spec",
        "specs",
        "qa",
        "e2e",
        "assert",
        "asserts",
        "smoke",
        "acceptance",
        "gate",
        "audit",
        "coverage",
    ];
    let is_one =
        |word: &str| WORDS.contains(&word) || WORDS.contains(&word.trim_end_matches(char::is_numeric));
    words_of(name).iter().any(|word| is_one(word))
}

/// `runTests-now` is run, tests, now.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// Does a file of this path lie where builds write to?
pub fn is_built(path: &str) -> bool {
    const FOLDERS: [&str; 8] = ["target", "dist", "build", "out", "_build", ".build", ".next", "obj"];
    const INSTALLED: [&str; 3] = ["node_modules", ".venv", "venv"];
    let mut folders = parent_of(path).split('/');
    !parent_of(path).split('/').any(|folder| INSTALLED.contains(&folder))
        && folders.any(|folder| FOLDERS.contains(&folder))
}

/// Neither name nor path speaks of checking.
fn is_product_by_name(path: &str) -> bool {
    !path.split('/').any(speaks_of_checking)
}

/// Does a task's own text, its checks apart, ask for a change of this file?
pub fn is_named_by(task: &Task, path: &str) -> bool {
    wishes::asks_for_file(task, path)
}

/// Could a file of this path be part of what judges the work, whatever the checks are?
pub fn may_judge(path: &str) -> bool {
    is_test_file(path)
        || is_runner_config(path)
        || runners::sections_of(path).is_some()
        || runners::is_likely_check(path)
        || mentions::is_candidate(path)
        || path.rsplit('/').next() == Some("package.json")
        || path.ends_with(".rs")
}

/// Does the task ask for tests to be written?
pub fn wants_tests(task: &Task) -> bool {
    wishes::asks_for_new_tests(task)
}

/// Does the task ask for all of these changes in its own words? Tests need not be named one by one.
pub fn is_asked_for(task: &Task, changes: &[Change]) -> bool {
    let asks_for_tests = wishes::asks_for_tests(task);
    let is_test = |change: &Change| is_test_file(&change.path) || change.what == ITS_TESTS;
    let mut redefined = changes.iter().filter(|change| !change.product).peekable();
    redefined.peek().is_some()
        && redefined.all(|change| is_named_by(task, &change.path) || asks_for_tests && is_test(change))
}

#[cfg(test)]
mod tests;
