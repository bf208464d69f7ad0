//! Finds out what a project is: its backlog, its language and the command that verifies it.
//!
//! It only looks at files, reads few of them, and runs nothing. What it finds is a suggestion that
//! says why it was made; it changes nothing.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wiggum_workspace::beneath;

/// What was found in a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Detected {
    /// Relative to the directory.
    pub(crate) backlog: Option<Found<PathBuf>>,
    pub(crate) language: Option<Found<&'static str>>,
    pub(crate) verify: Option<Found<String>>,
}

/// A finding, and why it is believed, as in "found Cargo.toml".
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Found<T> {
    pub(crate) value: T,
    pub(crate) because: String,
}

/// Looks at a directory. The names of backlogs are tried in the order given.
pub(crate) fn detect(directory: &Path, backlog_names: &[&str]) -> Detected {
    let project = Project { directory, root: directory };
    let backlog = backlog_names.iter().find(|name| project.has(name));
    Detected {
        backlog: backlog.map(|name| Found { value: PathBuf::from(name), because: format!("found {name}") }),
        language: language(&project),
        verify: checks(directory).next(),
    }
}

/// The commands that may verify a project, the best one first.
pub(crate) fn checks(directory: &Path) -> impl Iterator<Item = Found<String>> {
    VERIFY_RULES.iter().filter_map(move |rule| rule(&Project { directory, root: directory }))
}

/// The command that verifies a part of a repository, as it is called at the repository's root: that of the nearest
/// directory from `inside` on up that has one, the root itself left out.
pub(crate) fn verify_inside(root: &Path, inside: &Path) -> Option<Found<String>> {
    let between = inside.ancestors().take_while(|directory| *directory != root);
    between.filter(|directory| directory.starts_with(root)).find_map(|directory| {
        let found = verify(&Project { directory, root })?;
        let part = directory.strip_prefix(root).ok()?.display().to_string();
        Some(Found {
            value: format!("cd {} && {}", crate::started::shell_word(&part), found.value),
            because: format!("{} in {part}", found.because),
        })
    })
}

/// The command that verifies a project.
fn verify(project: &Project<'_>) -> Option<Found<String>> {
    VERIFY_RULES.iter().find_map(|rule| rule(project))
}

type Rule = fn(&Project<'_>) -> Option<Found<String>>;

/// The first that fits wins. A recipe of the project's own says best what its people mean by
/// "test"; after that comes what is usual for the language. A project may well have a package.json
/// for its tooling only, while Cargo.toml or go.mod say what it is. Each rule knows one command: what an earlier run
/// found is still found here after a better one has come.
const VERIFY_RULES: &[Rule] = &[
    |project| just_recipe(project, "test"),
    |project| just_recipe(project, "check"),
    |project| make_target(project, "test"),
    |project| make_target(project, "check"),
    |project| project.because("Cargo.toml", "cargo test"),
    |project| project.because("go.mod", "go test ./..."),
    node_by_name,
    |project| node_by_lock(project, "pnpm-lock.yaml", "pnpm"),
    |project| node_by_lock(project, "yarn.lock", "yarn"),
    |project| node_by_lock(project, "bun.lock", "bun"),
    |project| node_by_lock(project, "bun.lockb", "bun"),
    |project| node(project, "npm", ""),
    deno_task,
    deno,
    python_by_lock,
    python_unittest,
    python,
    python_by_folder,
    |project| project.because("mix.exs", "mix test"),
    |project| project.with("mvnw", "pom.xml", "./mvnw -q test"),
    |project| project.because("pom.xml", "mvn -q test"),
    |project| project.with("gradlew", "build.gradle.kts", "./gradlew test"),
    |project| project.with("gradlew", "build.gradle", "./gradlew test"),
    |project| project.because("build.gradle.kts", "gradle test"),
    |project| project.because("build.gradle", "gradle test"),
    rspec,
    rake,
    |project| project.because("Package.swift", "swift test"),
    dotnet,
    composer,
    phpunit,
    |project| project.because("build.zig", "zig build test"),
    dart,
];

/// Files that tell a language, the telling ones first.
const LANGUAGES: &[(&str, &str)] = &[
    ("Cargo.toml", "Rust"),
    ("go.mod", "Go"),
    ("tsconfig.json", "TypeScript"),
    ("deno.json", "TypeScript"),
    ("deno.jsonc", "TypeScript"),
    ("mix.exs", "Elixir"),
    ("pom.xml", "Java"),
    ("build.gradle.kts", "Kotlin"),
    ("build.gradle", "Java"),
    ("Package.swift", "Swift"),
    ("composer.json", "PHP"),
    ("build.zig", "Zig"),
    ("pubspec.yaml", "Dart"),
    ("pyproject.toml", "Python"),
    ("setup.py", "Python"),
    ("requirements.txt", "Python"),
    ("pytest.ini", "Python"),
    ("Gemfile", "Ruby"),
    ("package.json", "JavaScript"),
    ("CMakeLists.txt", "C or C++"),
];

const DOTNET_PROJECTS: &[(&str, &str)] = &[("sln", "C#"), ("slnx", "C#"), ("csproj", "C#"), ("fsproj", "F#")];

fn language(project: &Project<'_>) -> Option<Found<&'static str>> {
    let by_name = LANGUAGES.iter().find(|(file, _)| project.has(file));
    if let Some((file, language)) = by_name {
        return Some(Found { value: language, because: format!("found {file}") });
    }
    DOTNET_PROJECTS.iter().find_map(|(extension, language)| {
        let file = project.file_with_extension(extension)?;
        Some(Found { value: *language, because: format!("found {file}") })
    })
}

fn just_recipe(project: &Project<'_>, name: &str) -> Option<Found<String>> {
    let file = ["justfile", "Justfile", ".justfile"].into_iter().find(|file| project.has(file))?;
    recipe(file, &just_recipes(&project.read(file)?), "just", name)
}

fn make_target(project: &Project<'_>, name: &str) -> Option<Found<String>> {
    // The order in which GNU make looks for them.
    let file = ["GNUmakefile", "makefile", "Makefile"].into_iter().find(|file| project.has(file))?;
    recipe(file, &make_targets(&project.read(file)?), "make", name)
}

fn recipe(file: &str, recipes: &[String], program: &str, name: &str) -> Option<Found<String>> {
    recipes
        .iter()
        .any(|recipe| recipe == name)
        .then(|| Found { value: format!("{program} {name}"), because: format!("found `{name}` in {file}") })
}

/// The names of recipes that need no argument: `test:`, `@test: build`, `test filter="":`.
fn just_recipes(text: &str) -> Vec<String> {
    let heads = text.lines().filter(|line| !line.starts_with([' ', '\t', '#', '[']));
    let recipes = heads.filter_map(|line| {
        let (head, rest) = line.split_once(':')?;
        if rest.starts_with('=') {
            return None;
        }
        let mut words = head.trim_start_matches('@').split_whitespace();
        let name = words.next()?;
        let optional = |word: &str| word.contains('=') || word.starts_with('*');
        words.all(optional).then(|| name.to_owned())
    });
    recipes.collect()
}

/// The names of targets: `test:`, `lint test: build`, `test::`; not `test := …` or `.PHONY: test`.
fn make_targets(text: &str) -> Vec<String> {
    let heads = text.lines().filter(|line| !line.starts_with([' ', '\t', '#', '.']));
    let rules = heads.filter_map(|line| {
        let (names, rest) = line.split_once(':')?;
        let assigns = rest.starts_with('=') || rest.starts_with(":=") || names.contains(['=', '?', '+', '!']);
        (!assigns).then(|| names.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    });
    rules.flatten().collect()
}

/// `package.json` with a test script somebody wrote: the one `npm init` leaves behind always fails.
fn node(project: &Project<'_>, manager: &str, why: &str) -> Option<Found<String>> {
    let package = project.json("package.json")?;
    let script = package["scripts"]["test"].as_str()?;
    if script.trim().is_empty() || script.contains("no test specified") {
        return None;
    }
    // `bun test` would be bun's own test runner, not the script.
    let command = if manager == "bun" { "bun run test".to_owned() } else { format!("{manager} test") };
    Some(Found { value: command, because: format!("found a test script in package.json{why}") })
}

fn node_by_name(project: &Project<'_>) -> Option<Found<String>> {
    let package = project.json("package.json")?;
    let of_root = Project { directory: project.root, root: project.root }.json("package.json");
    let of_root = of_root.as_ref().and_then(|root| root["packageManager"].as_str());
    let named = package["packageManager"].as_str().or(of_root)?.split('@').next()?;
    let manager = ["pnpm", "yarn", "bun", "npm"].into_iter().find(|name| *name == named)?;
    node(project, manager, " and its packageManager")
}

fn node_by_lock(project: &Project<'_>, lock: &str, manager: &str) -> Option<Found<String>> {
    project.is_locked_by(lock).then(|| node(project, manager, &format!(" and {lock}")))?
}

fn deno_file(project: &Project<'_>) -> Option<&'static str> {
    ["deno.json", "deno.jsonc"].into_iter().find(|file| project.has(file))
}

fn deno_task(project: &Project<'_>) -> Option<Found<String>> {
    let file = deno_file(project)?;
    // Comments in deno.jsonc make it unreadable here; plain `deno test` is right then, too.
    let settings = project.json(file)?;
    let because = || format!("found a test task in {file}");
    (!settings["tasks"]["test"].is_null())
        .then(|| Found { value: "deno task test".to_owned(), because: because() })
}

fn deno(project: &Project<'_>) -> Option<Found<String>> {
    project.because(deno_file(project)?, "deno test")
}

fn python_by_lock(project: &Project<'_>) -> Option<Found<String>> {
    let locks =
        [("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"), ("Pipfile.lock", "pipenv")];
    let (lock, manager) = locks.into_iter().find(|(lock, _)| project.is_locked_by(lock))?;
    let own = python_unittest(project);
    let command = match &own {
        Some(found) => found.value.replacen("python3", "python", 1),
        None => "pytest".to_owned(),
    };
    let Found { because, .. } = own.or_else(|| python(project)).or_else(|| python_by_folder(project))?;
    Some(Found { value: format!("{manager} run {command}"), because: format!("{because} and {lock}") })
}

/// Tests of Python's own kind, in a project in which nothing speaks of pytest.
fn python_unittest(project: &Project<'_>) -> Option<Found<String>> {
    let names_pytest = |file: &str| project.read(file).is_some_and(|text| text.contains("pytest"));
    let is_configured =
        ["pytest.ini", "conftest.py", "tests/conftest.py"].iter().any(|file| project.has(file));
    let is_installed = [".venv/bin/pytest", "venv/bin/pytest"].iter().any(|file| project.has(file));
    if is_configured || is_installed || PYTHON_MANIFESTS.iter().any(|file| names_pytest(file)) {
        return None;
    }
    let folder = ["tests", "test", ""].into_iter().find(|folder| project.tests_with_unittest(folder))?;
    // Only packages are looked into without being named.
    let is_package = folder.is_empty() || project.has(&format!("{folder}/__init__.py"));
    let discover = if is_package { String::new() } else { format!(" discover -s {folder}") };
    let place = if folder.is_empty() { "here".to_owned() } else { format!("in {folder}/") };
    let because = format!("found unittest tests {place} and no pytest");
    Some(Found { value: format!("python3 -m unittest{discover}"), because })
}

/// Files in which a Python project says what it needs.
const PYTHON_MANIFESTS: [&str; 14] = [
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "noxfile.py",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-test.txt",
    "dev-requirements.txt",
    "requirements/dev.txt",
    "requirements/test.txt",
    "Pipfile",
    "uv.lock",
    "poetry.lock",
];

fn python(project: &Project<'_>) -> Option<Found<String>> {
    let configured = ["pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "setup.py"];
    project.because(configured.into_iter().find(|file| project.has(file))?, "pytest")
}

/// Without any configuration nothing but `-m` puts the project itself on the import path.
fn python_by_folder(project: &Project<'_>) -> Option<Found<String>> {
    let folder = ["tests", "test"].into_iter().find(|folder| project.has_python(folder))?;
    let because = format!("found Python files in {folder}/");
    Some(Found { value: "python -m pytest".to_owned(), because })
}

fn rspec(project: &Project<'_>) -> Option<Found<String>> {
    let gems = project.read("Gemfile")?;
    let named = [".rspec", "spec"].into_iter().find(|name| project.directory.join(name).exists());
    let because = match named {
        Some(name) => format!("found Gemfile and {name}"),
        None if gems.contains("rspec") => "found rspec in Gemfile".to_owned(),
        None => return None,
    };
    Some(Found { value: "bundle exec rspec".to_owned(), because })
}

fn rake(project: &Project<'_>) -> Option<Found<String>> {
    project.with("Gemfile", "Rakefile", "bundle exec rake test")
}

fn dotnet(project: &Project<'_>) -> Option<Found<String>> {
    let file = DOTNET_PROJECTS.iter().find_map(|(extension, _)| project.file_with_extension(extension))?;
    Some(Found { value: "dotnet test".to_owned(), because: format!("found {file}") })
}

fn composer(project: &Project<'_>) -> Option<Found<String>> {
    let composer = project.json("composer.json")?;
    let because = || "found a test script in composer.json".to_owned();
    (!composer["scripts"]["test"].is_null())
        .then(|| Found { value: "composer test".to_owned(), because: because() })
}

fn phpunit(project: &Project<'_>) -> Option<Found<String>> {
    project.json("composer.json")?;
    let file = ["phpunit.xml", "phpunit.xml.dist"].into_iter().find(|file| project.has(file))?;
    project.because(file, "vendor/bin/phpunit")
}

fn dart(project: &Project<'_>) -> Option<Found<String>> {
    let flutter = project.read("pubspec.yaml")?.contains("flutter:");
    project.because("pubspec.yaml", if flutter { "flutter test" } else { "dart test" })
}

/// The little that the rules need to see of a directory.
struct Project<'a> {
    directory: &'a Path,
    /// Of the repository that it is a part of.
    root: &'a Path,
}

impl Project<'_> {
    fn has(&self, file: &str) -> bool {
        self.directory.join(file).is_file()
    }

    /// A package manager keeps one lock file for all parts of a repository.
    fn is_locked_by(&self, file: &str) -> bool {
        self.has(file) || self.root.join(file).is_file()
    }

    /// Nothing if it is missing or no text: then it tells nothing either.
    fn read(&self, file: &str) -> Option<String> {
        beneath::text_of(&self.directory.join(file)).ok()
    }

    fn json(&self, file: &str) -> Option<serde_json::Value> {
        serde_json::from_str(&self.read(file)?).ok()
    }

    fn with(&self, other: &str, file: &str, command: &str) -> Option<Found<String>> {
        self.has(other).then(|| self.because(file, command))?
    }

    fn because(&self, file: &str, command: &str) -> Option<Found<String>> {
        self.has(file).then(|| Found { value: command.to_owned(), because: format!("found {file}") })
    }

    /// The first by name, so that the answer is always the same.
    fn file_with_extension(&self, extension: &str) -> Option<String> {
        let names = self.names("").into_iter();
        names.filter(|name| Path::new(name).extension().is_some_and(|found| found == extension)).min()
    }

    fn has_python(&self, folder: &str) -> bool {
        self.names(folder).iter().any(|name| Path::new(name).extension().is_some_and(|found| found == "py"))
    }

    /// Are all tests of this folder classes of unittest, as far as that can be seen?
    fn tests_with_unittest(&self, folder: &str) -> bool {
        let is_test = |name: &String| name.starts_with("test") && name.ends_with(".py");
        let texts: Vec<String> = self
            .names(folder)
            .into_iter()
            .filter(is_test)
            .filter_map(|name| self.read(&Path::new(folder).join(name).display().to_string()))
            .collect();
        let is_pytests =
            |text: &String| text.contains("pytest") || text.lines().any(|line| line.starts_with("def test"));
        texts.iter().any(|text| text.contains("unittest")) && !texts.iter().any(is_pytests)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.directory.join(folder)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect_in(files: &[(&str, &str)]) -> Detected {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        detect(directory.path(), &["PRD.json", "tasks.json", ".ralph/fix_plan.md"])
    }

    /// `expected` is the command and why, or nothing.
    fn check(files: &[(&str, &str)], expected: &str) {
        let found = detect_in(files).verify;
        let found = found.map_or(String::new(), |found| format!("{} ({})", found.value, found.because));
        assert_eq!(found, expected, "{files:?}");
    }

    #[test]
    fn verify_commands_by_language() {
        check(&[], "");
        check(&[("README.md", "")], "");
        check(&[("Cargo.toml", "")], "cargo test (found Cargo.toml)");
        check(&[("go.mod", "")], "go test ./... (found go.mod)");
        check(&[("mix.exs", "")], "mix test (found mix.exs)");
        check(&[("pom.xml", "")], "mvn -q test (found pom.xml)");
        check(&[("pom.xml", ""), ("mvnw", "")], "./mvnw -q test (found pom.xml)");
        check(&[("build.gradle", ""), ("gradlew", "")], "./gradlew test (found build.gradle)");
        check(&[("build.gradle.kts", "")], "gradle test (found build.gradle.kts)");
        check(&[("Gemfile", ""), ("spec/a_spec.rb", "")], "bundle exec rspec (found Gemfile and spec)");
        check(&[("Gemfile", "gem 'rspec'")], "bundle exec rspec (found rspec in Gemfile)");
        check(&[("Gemfile", ""), ("Rakefile", "")], "bundle exec rake test (found Rakefile)");
        check(&[("Gemfile", "")], "");
        check(&[("Package.swift", "")], "swift test (found Package.swift)");
        check(&[("b.csproj", ""), ("a.csproj", "")], "dotnet test (found a.csproj)");
        check(&[("a.csproj", ""), ("z.sln", "")], "dotnet test (found z.sln)");
        check(&[("deno.json", "{}")], "deno test (found deno.json)");
        check(
            &[("deno.json", r#"{"tasks": {"test": "x"}}"#)],
            "deno task test (found a test task in deno.json)",
        );
        check(&[("deno.jsonc", "// hi\n{}")], "deno test (found deno.jsonc)");
        check(
            &[("composer.json", r#"{"scripts": {"test": "phpunit"}}"#)],
            "composer test (found a test script in composer.json)",
        );
        check(&[("composer.json", "{}"), ("phpunit.xml", "")], "vendor/bin/phpunit (found phpunit.xml)");
        check(&[("build.zig", "")], "zig build test (found build.zig)");
        check(&[("pubspec.yaml", "name: x")], "dart test (found pubspec.yaml)");
        check(&[("CMakeLists.txt", "")], "");
    }

    #[test]
    fn node_needs_a_real_test_script() {
        let package = |script: &str| format!(r#"{{"scripts": {{"test": {}}}}}"#, serde_json::json!(script));
        let real = package("vitest run");
        let why = "found a test script in package.json";
        check(&[("package.json", &real)], &format!("npm test ({why})"));
        check(&[("package.json", &real), ("package-lock.json", "")], &format!("npm test ({why})"));
        check(
            &[("package.json", &real), ("pnpm-lock.yaml", "")],
            &format!("pnpm test ({why} and pnpm-lock.yaml)"),
        );
        check(&[("package.json", &real), ("yarn.lock", "")], &format!("yarn test ({why} and yarn.lock)"));
        check(&[("package.json", &real), ("bun.lock", "")], &format!("bun run test ({why} and bun.lock)"));
        check(
            &[("package.json", r#"{"packageManager": "pnpm@9.1.0", "scripts": {"test": "jest"}}"#)],
            &format!("pnpm test ({why} and its packageManager)"),
        );
        for nothing in [
            &package("echo \"Error: no test specified\" && exit 1"),
            &package(""),
            "{}",
            "{\"scripts\": 3}",
            "no json",
            "[]",
        ] {
            check(&[("package.json", nothing)], "");
        }
    }

    #[test]
    fn a_part_of_a_repository_is_verified_from_the_root() {
        let check = |files: &[(&str, &str)], inside: &str, expected: &str| {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join(inside)).unwrap();
            for (name, text) in files {
                let path = root.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let found = verify_inside(root.path(), &root.path().join(inside));
            let found = found.map_or(String::new(), |found| format!("{} ({})", found.value, found.because));
            assert_eq!(found, expected, "{files:?}");
        };
        let package = r#"{"scripts": {"test": "vitest run"}}"#;
        let a = ("packages/a/package.json", package);
        let why = "found a test script in package.json";
        check(&[a], "packages/a", &format!("cd packages/a && npm test ({why} in packages/a)"));
        check(&[a], "packages/a/src/x", &format!("cd packages/a && npm test ({why} in packages/a)"));
        check(&[a], "packages/b", "");
        check(&[("package.json", package)], "packages/a", "");
        check(
            &[a, ("pnpm-lock.yaml", "")],
            "packages/a",
            &format!("cd packages/a && pnpm test ({why} and pnpm-lock.yaml in packages/a)"),
        );
        check(
            &[a, ("package.json", r#"{"packageManager": "yarn@4"}"#)],
            "packages/a",
            &format!("cd packages/a && yarn test ({why} and its packageManager in packages/a)"),
        );
        check(
            &[("it's mine/Cargo.toml", "")],
            "it's mine",
            r"cd 'it'\''s mine' && cargo test (found Cargo.toml in it's mine)",
        );
    }

    #[test]
    fn python_by_configuration_and_lock_file() {
        check(&[("pyproject.toml", "")], "pytest (found pyproject.toml)");
        check(&[("pytest.ini", "")], "pytest (found pytest.ini)");
        check(&[("pyproject.toml", ""), ("uv.lock", "")], "uv run pytest (found pyproject.toml and uv.lock)");
        check(
            &[("pyproject.toml", ""), ("poetry.lock", "")],
            "poetry run pytest (found pyproject.toml and poetry.lock)",
        );
        check(&[("tests/test_a.py", "")], "python -m pytest (found Python files in tests/)");
        check(&[("tests/run.sh", "")], "");
    }

    #[test]
    fn unittest_where_nothing_speaks_of_pytest() {
        let test = (
            "tests/test_a.py",
            "import unittest\n\nclass A(unittest.TestCase):\n    def test_a(self): ...\n",
        );
        let why = "(found unittest tests in tests/ and no pytest)";
        let manifest = ("pyproject.toml", "[project]\nname = \"x\"\n");
        check(&[test], &format!("python3 -m unittest discover -s tests {why}"));
        check(&[test, manifest], &format!("python3 -m unittest discover -s tests {why}"));
        check(&[test, manifest, ("tests/__init__.py", "")], &format!("python3 -m unittest {why}"));
        check(
            &[("test_a.py", test.1), manifest],
            "python3 -m unittest (found unittest tests here and no pytest)",
        );
        check(
            &[test, ("uv.lock", "")],
            "uv run python -m unittest discover -s tests (found unittest tests in tests/ and no pytest and uv.lock)",
        );
        // Its twins: pytest is named, configured, installed, or what the tests are written for.
        check(&[test, ("pyproject.toml", "[tool.pytest.ini_options]\n")], "pytest (found pyproject.toml)");
        check(&[test, manifest, ("requirements.txt", "pytest==8\n")], "pytest (found pyproject.toml)");
        check(&[test, manifest, (".venv/bin/pytest", "")], "pytest (found pyproject.toml)");
        check(&[test, ("pytest.ini", "")], "pytest (found pytest.ini)");
        check(
            &[test, ("tests/test_b.py", "def test_b():\n    assert True\n")],
            "python -m pytest (found Python files in tests/)",
        );
    }

    #[test]
    fn own_recipes_come_first() {
        let cargo = ("Cargo.toml", "");
        let make = ("Makefile", "all: build\n\nlint test: build\n\tcargo test\n");
        check(&[cargo, make], "make test (found `test` in Makefile)");
        check(&[cargo, make, ("justfile", "test:\n  cargo test\n")], "just test (found `test` in justfile)");
        check(
            &[cargo, make, ("justfile", "build:\n  cargo build\n")],
            "make test (found `test` in Makefile)",
        );
        check(
            &[cargo, ("justfile", "@check: lint\n  cargo test\n")],
            "just check (found `check` in justfile)",
        );
        check(&[cargo, ("justfile", "test filter=\"\" *rest:\n")], "just test (found `test` in justfile)");
        check(&[("Makefile", "check:\ntest::\n")], "make test (found `test` in Makefile)");
    }

    #[test]
    fn what_is_no_recipe() {
        for text in [
            "test := 1\n",
            "\ttest:\n",
            "# test:\n",
            "test NAME:\n",
            "set test\n",
            "retest:\n",
            "[group: 'test']\n",
        ] {
            check(&[("justfile", text)], "");
        }
        for text in [
            ".PHONY: test\n",
            "test := x\n",
            "test ::= x\n",
            "X = test: y\n",
            "\ttest:\n",
            "#test:\n",
            "all: test\n",
        ] {
            check(&[("Makefile", text)], "");
        }
    }

    /// A better check does not hide those that were found before it came.
    #[test]
    fn all_that_could_be_found() {
        let all = |files: &[(&str, &str)]| {
            let directory = tempfile::tempdir().unwrap();
            for (name, text) in files {
                fs::write(directory.path().join(name), text).unwrap();
            }
            checks(directory.path()).map(|found| found.value).collect::<Vec<_>>()
        };
        let script = r#"{"scripts": {"test": "jest"}}"#;
        assert_eq!(all(&[("Cargo.toml", "")]), ["cargo test"]);
        assert_eq!(
            all(&[("Cargo.toml", ""), ("justfile", "test:\n  true\n"), ("package.json", script)]),
            ["just test", "cargo test", "npm test"]
        );
        assert_eq!(all(&[("Makefile", "check:\n\ttest:\ntest:\n\ttrue\n")]), ["make test", "make check"]);
        assert_eq!(all(&[("package.json", script), ("yarn.lock", "")]), ["yarn test", "npm test"]);
        assert_eq!(all(&[("build.gradle", ""), ("gradlew", "")]), ["./gradlew test", "gradle test"]);
        assert_eq!(all(&[("deno.json", r#"{"tasks": {"test": "x"}}"#)]), ["deno task test", "deno test"]);
    }

    #[test]
    fn what_the_project_is_beats_its_tooling() {
        let tooling = ("package.json", r#"{"scripts": {"test": "prettier --check ."}}"#);
        check(&[tooling, ("Cargo.toml", "")], "cargo test (found Cargo.toml)");
        check(&[tooling, ("pyproject.toml", "")], "npm test (found a test script in package.json)");
    }

    #[test]
    fn backlog_and_language() {
        let found = detect_in(&[("tasks.json", "[]"), ("PRD.json", "{}"), ("Cargo.toml", "")]);
        assert_eq!(
            found.backlog,
            Some(Found { value: "PRD.json".into(), because: "found PRD.json".to_owned() })
        );
        assert_eq!(found.language.map(|found| found.value), Some("Rust"));
        let found = detect_in(&[(".ralph/fix_plan.md", ""), ("package.json", "{}"), ("tsconfig.json", "{}")]);
        assert_eq!(found.backlog.map(|found| found.value), Some(".ralph/fix_plan.md".into()));
        assert_eq!(found.language.map(|found| found.value), Some("TypeScript"));
        assert_eq!(detect_in(&[("PRD.json/not-a-file", "")]), Detected::default());
        assert_eq!(detect_in(&[("a.fsproj", "")]).language.map(|found| found.value), Some("F#"));
    }
}
