//! Agents that break the product and then see to it that the checks pass, in the ways that real ones were seen to.
//! Each has an honest twin that touches the same thing for a good reason.
//!
//! The cases are in `cheats/*.txt`: a project, a way to break it, work that is right, and pairs of a cheat and its
//! twin. The checks are those that `wiggum run` finds by itself, unless the file names one.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::path::{Path, PathBuf};

use support::Sandbox;
use wiggum_testkit::runners;

#[derive(Default)]
struct Corpus {
    files: Vec<(String, String)>,
    verify: Option<String>,
    breaks: String,
    works: String,
    cases: Vec<Case>,
}

struct Case {
    name: String,
    cheat: String,
    honest: String,
}

impl Corpus {
    fn read(text: &str) -> Self {
        let mut corpus = Self::default();
        for section in format!("\n{text}").split("\n=== ").skip(1) {
            let (head, body) = section.split_once('\n').unwrap();
            match (head, head.strip_prefix("cheat: ")) {
                (_, Some(name)) => corpus.cases.push(Case {
                    name: name.to_owned(),
                    cheat: body.to_owned(),
                    honest: String::new(),
                }),
                ("project", None) => corpus.files = files(body),
                ("verify", None) => corpus.verify = Some(body.trim().to_owned()),
                ("break", None) => corpus.breaks = body.to_owned(),
                ("work", None) => corpus.works = body.to_owned(),
                ("honest", None) => corpus.cases.last_mut().unwrap().honest = body.to_owned(),
                (other, None) => panic!("{other}"),
            }
        }
        assert!(corpus.cases.iter().all(|case| !case.honest.is_empty()), "every cheat has an honest twin");
        corpus
    }

    /// Sees every cheat refused and every honest twin accepted; tells of all that went otherwise.
    fn judge(&self, surroundings: &Surroundings) {
        let wrong: Vec<String> =
            self.cases.iter().flat_map(|case| self.judge_case(case, surroundings)).collect();
        assert!(
            wrong.is_empty(),
            "{} of {} are judged wrongly:\n{}",
            wrong.len(),
            2 * self.cases.len(),
            wrong.join("\n")
        );
    }

    fn judge_case(&self, case: &Case, surroundings: &Surroundings) -> Vec<String> {
        let mut wrong = Vec::new();
        for (what, script, is_honest) in [("cheat", &case.cheat, false), ("honest", &case.honest, true)] {
            let changes = if is_honest { &self.works } else { &self.breaks };
            let sandbox = self.project(surroundings);
            let agent = format!("set -e\n{changes}\n{script}\nclaim");
            let mut args = vec!["--max-retries", "0"];
            args.extend(self.verify.iter().flat_map(|verify| ["--verify", verify.as_str()]));
            let run = sandbox.run(&agent, &args);
            let is_done = sandbox.state_of("A") == "done";
            if sandbox.worked_on().len() != 1 || is_done != is_honest {
                let said = format!("{}{}", run.stdout, run.stderr);
                wrong.push(format!("--- {what} of \"{}\":\n{said}", case.name));
            }
            // Whoever believes the checks as they are now believes both.
            let changed = self.project(surroundings);
            let mut all = vec![format!("set -e\n{changes}\n{script}")];
            all.extend(sandbox.state().policy.checks.verify.clone());
            for script in all {
                let run =
                    changed.command("sh").args(["-c", &script]).current_dir(&changed.root).output().unwrap();
                if !run.status.success() {
                    let said = String::from_utf8_lossy(&run.stderr);
                    wrong.push(format!("--- {what} of \"{}\" does not work:\n{script}\n{said}", case.name));
                }
            }
        }
        wrong
    }

    fn project(&self, surroundings: &Surroundings) -> Sandbox {
        let mut sandbox = Sandbox::with_tasks(&["A"]);
        for (path, text) in &self.files {
            if let Some(target) = text.strip_prefix("-> ") {
                std::os::unix::fs::symlink(target.trim_end(), sandbox.root.join(path)).unwrap();
                continue;
            }
            let is_program = text.starts_with("#!");
            if is_program { sandbox.write_program(path, text) } else { sandbox.write(path, text) }
        }
        sandbox.commit_all("project");
        surroundings.prepare(&mut sandbox);
        sandbox
    }
}

fn files(text: &str) -> Vec<(String, String)> {
    let text = format!("\n{text}\n");
    let each = text.split("\n--- ").skip(1).map(|file| file.split_once('\n').unwrap());
    each.map(|(path, text)| (path.to_owned(), format!("{}\n", text.trim_end()))).collect()
}

/// What a project needs beside its own files.
#[derive(Default)]
struct Surroundings {
    programs: Option<PathBuf>,
    node_modules: Option<PathBuf>,
    env: Vec<(&'static str, String)>,
}

impl Surroundings {
    fn prepare(&self, sandbox: &mut Sandbox) {
        if let Some(programs) = &self.programs {
            let path = std::env::var("PATH").unwrap();
            sandbox.env("PATH", &format!("{}:{path}", programs.display()));
        }
        if let Some(modules) = &self.node_modules {
            // A directory of the project's own: runners write beside the packages, and checks only in the project.
            let own = sandbox.root.join("node_modules");
            std::fs::create_dir(&own).unwrap();
            let packages = std::fs::read_dir(modules).unwrap().flatten();
            for package in
                packages.filter(|package| !package.file_name().as_encoded_bytes().starts_with(b".vite"))
            {
                std::os::unix::fs::symlink(package.path(), own.join(package.file_name())).unwrap();
            }
        }
        for (name, value) in &self.env {
            sandbox.env(name, value);
        }
    }
}

#[expect(clippy::print_stderr, reason = "what is skipped must be seen")]
fn has(program: &str, what: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    if !found {
        eprintln!("SKIPPED: {program} is not installed: {what}");
    }
    found
}

const CHEATS: &str = "cheats with checks";

#[test]
fn python() {
    let Some(programs) = runners::python_or_skip(CHEATS) else { return };
    let surroundings = Surroundings { programs: Some(programs), ..Surroundings::default() };
    Corpus::read(include_str!("cheats/python.txt")).judge(&surroundings);
}

#[test]
fn just() {
    let Some(programs) = runners::python_or_skip(CHEATS) else { return };
    let surroundings = Surroundings { programs: Some(programs), ..Surroundings::default() };
    Corpus::read(include_str!("cheats/just.txt")).judge(&surroundings);
}

#[test]
fn make() {
    if has("make", CHEATS) {
        Corpus::read(include_str!("cheats/make.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/included.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/make-needs.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/make-below.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/search-path.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/patterns.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/wildcards.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/entry.txt")).judge(&Surroundings::default());
        if has("cc", CHEATS) {
            // A name that says that it is a test, and one that does not.
            let builds = include_str!("cheats/make-builds.txt");
            Corpus::read(builds).judge(&Surroundings::default());
            Corpus::read(&builds.replace("build/t", "build/test_t")).judge(&Surroundings::default());
        }
    }
}

#[test]
fn shell() {
    for text in [
        include_str!("cheats/shell.txt"),
        include_str!("cheats/golden.txt"),
        include_str!("cheats/sourced.txt"),
        include_str!("cheats/indirect.txt"),
        include_str!("cheats/taken-in.txt"),
        include_str!("cheats/parts.txt"),
    ] {
        Corpus::read(text).judge(&Surroundings::default());
    }
}

#[test]
fn scripts_of_python() {
    if has("python3", CHEATS) {
        for text in [
            include_str!("cheats/other-languages.txt"),
            include_str!("cheats/helpers.txt"),
            include_str!("cheats/added.txt"),
            include_str!("cheats/doctests.txt"),
            include_str!("cheats/helpers-behind.txt"),
            include_str!("cheats/product.txt"),
            include_str!("cheats/called.txt"),
            include_str!("cheats/environment.txt"),
            include_str!("cheats/entry-scripts.txt"),
            include_str!("cheats/narrowed.txt"),
        ] {
            Corpus::read(text).judge(&Surroundings::default());
        }
    }
}

#[test]
fn links() {
    if has("make", CHEATS) {
        Corpus::read(include_str!("cheats/links.txt")).judge(&Surroundings::default());
    }
}

#[test]
fn node() {
    if has("npm", CHEATS) {
        Corpus::read(include_str!("cheats/node.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/npm-below.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/product-node.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/product-script.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/helpers-node.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/installed.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/entry-node.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/narrowed-node.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/shadowed-node.txt")).judge(&Surroundings::default());
        Corpus::read(include_str!("cheats/golden-joined.txt")).judge(&Surroundings::default());
    }
}

#[test]
fn jest_mocha_and_vitest() {
    let Some(modules) = runners::node_modules_or_skip(CHEATS) else { return };
    let surroundings = Surroundings { node_modules: Some(modules), ..Surroundings::default() };
    for text in
        [include_str!("cheats/jest.txt"), include_str!("cheats/mocha.txt"), include_str!("cheats/vitest.txt")]
    {
        Corpus::read(text).judge(&surroundings);
    }
}

#[test]
fn rust() {
    let home = |name: &str, fallback: &str| {
        let home = || Path::new(&std::env::var_os("HOME").unwrap()).join(fallback);
        std::env::var_os(name).map_or_else(home, PathBuf::from).display().to_string()
    };
    let env = vec![("RUSTUP_HOME", home("RUSTUP_HOME", ".rustup")), ("CARGO_NET_OFFLINE", "true".to_owned())];
    let surroundings = Surroundings { env, ..Surroundings::default() };
    Corpus::read(include_str!("cheats/rust.txt")).judge(&surroundings);
    Corpus::read(include_str!("cheats/rust-units.txt")).judge(&surroundings);
    Corpus::read(include_str!("cheats/rust-helpers.txt")).judge(&surroundings);
    Corpus::read(include_str!("cheats/narrowed-cargo.txt")).judge(&surroundings);
}

#[test]
fn go() {
    if has("go", CHEATS) {
        // One cache for all, or each would compile the standard library.
        let cache = tempfile::tempdir().unwrap();
        let cache = cache.path().display().to_string();
        let env = vec![("GOCACHE", cache), ("GOFLAGS", "-mod=mod".to_owned())];
        Corpus::read(include_str!("cheats/go.txt")).judge(&Surroundings { env, ..Surroundings::default() });
    }
}

#[test]
fn there_are_many() {
    let all = [
        include_str!("cheats/python.txt"),
        include_str!("cheats/just.txt"),
        include_str!("cheats/make.txt"),
        include_str!("cheats/included.txt"),
        include_str!("cheats/make-needs.txt"),
        include_str!("cheats/make-below.txt"),
        include_str!("cheats/npm-below.txt"),
        include_str!("cheats/shell.txt"),
        include_str!("cheats/golden.txt"),
        include_str!("cheats/sourced.txt"),
        include_str!("cheats/indirect.txt"),
        include_str!("cheats/taken-in.txt"),
        include_str!("cheats/other-languages.txt"),
        include_str!("cheats/helpers.txt"),
        include_str!("cheats/added.txt"),
        include_str!("cheats/doctests.txt"),
        include_str!("cheats/search-path.txt"),
        include_str!("cheats/links.txt"),
        include_str!("cheats/node.txt"),
        include_str!("cheats/jest.txt"),
        include_str!("cheats/mocha.txt"),
        include_str!("cheats/vitest.txt"),
        include_str!("cheats/rust.txt"),
        include_str!("cheats/rust-units.txt"),
        include_str!("cheats/go.txt"),
        include_str!("cheats/patterns.txt"),
        include_str!("cheats/wildcards.txt"),
        include_str!("cheats/parts.txt"),
        include_str!("cheats/helpers-behind.txt"),
        include_str!("cheats/product.txt"),
        include_str!("cheats/called.txt"),
        include_str!("cheats/environment.txt"),
        include_str!("cheats/product-node.txt"),
        include_str!("cheats/product-script.txt"),
        include_str!("cheats/helpers-node.txt"),
        include_str!("cheats/installed.txt"),
        include_str!("cheats/rust-helpers.txt"),
        include_str!("cheats/entry.txt"),
        include_str!("cheats/entry-scripts.txt"),
        include_str!("cheats/entry-node.txt"),
        include_str!("cheats/narrowed.txt"),
        include_str!("cheats/narrowed-node.txt"),
        include_str!("cheats/narrowed-cargo.txt"),
        include_str!("cheats/make-builds.txt"),
        include_str!("cheats/shadowed-node.txt"),
        include_str!("cheats/golden-joined.txt"),
    ];
    assert!(all.iter().map(|text| Corpus::read(text).cases.len()).sum::<usize>() >= 60);
}
