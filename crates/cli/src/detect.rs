//! Finds out what a project is: its backlog, its language and the command that verifies it.
//!
//! It only looks at files, reads few of them, and runs nothing. What it finds is a suggestion that
//! says why it was made; it changes nothing.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

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
    let project = Project { directory };
    let backlog = backlog_names.iter().find(|name| project.has(name));
    Detected {
        backlog: backlog.map(|name| Found { value: PathBuf::from(name), because: format!("found {name}") }),
        language: language(&project),
        verify: verify(&project),
    }
}

/// The command that verifies a project.
fn verify(project: &Project<'_>) -> Option<Found<String>> {
    VERIFY_RULES.iter().find_map(|rule| rule(project))
}

type Rule = fn(&Project<'_>) -> Option<Found<String>>;

/// The first that fits wins. A recipe of the project's own says best what its people mean by
/// "test"; after that comes what is usual for the language. A project may well have a package.json
/// for its tooling only, while Cargo.toml or go.mod say what it is.
const VERIFY_RULES: &[Rule] = &[
    just_recipe,
    make_target,
    |project| project.because("Cargo.toml", "cargo test"),
    |project| project.because("go.mod", "go test ./..."),
    node,
    deno,
    python,
    |project| project.because("mix.exs", "mix test"),
    |project| project.because("pom.xml", if project.has("mvnw") { "./mvnw -q test" } else { "mvn -q test" }),
    gradle,
    ruby,
    |project| project.because("Package.swift", "swift test"),
    dotnet,
    php,
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

/// The recipes that verify a project, the better one first.
const RECIPES: &[&str] = &["test", "check"];

fn just_recipe(project: &Project<'_>) -> Option<Found<String>> {
    let file = ["justfile", "Justfile", ".justfile"].into_iter().find(|file| project.has(file))?;
    recipe(file, &just_recipes(&project.read(file)?), "just")
}

fn make_target(project: &Project<'_>) -> Option<Found<String>> {
    // The order in which GNU make looks for them.
    let file = ["GNUmakefile", "makefile", "Makefile"].into_iter().find(|file| project.has(file))?;
    recipe(file, &make_targets(&project.read(file)?), "make")
}

fn recipe(file: &str, recipes: &[String], program: &str) -> Option<Found<String>> {
    let name = RECIPES.iter().find(|name| recipes.iter().any(|recipe| recipe == *name))?;
    Some(Found { value: format!("{program} {name}"), because: format!("found `{name}` in {file}") })
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
fn node(project: &Project<'_>) -> Option<Found<String>> {
    let package: serde_json::Value = serde_json::from_str(&project.read("package.json")?).ok()?;
    let script = package["scripts"]["test"].as_str()?;
    if script.trim().is_empty() || script.contains("no test specified") {
        return None;
    }
    let (manager, why) = node_manager(project, package["packageManager"].as_str());
    // `bun test` would be bun's own test runner, not the script.
    let command = if manager == "bun" { "bun run test".to_owned() } else { format!("{manager} test") };
    Some(Found { value: command, because: format!("found a test script in package.json{why}") })
}

fn node_manager(project: &Project<'_>, named: Option<&str>) -> (&'static str, String) {
    let managers = ["pnpm", "yarn", "bun", "npm"];
    let by_name =
        named.and_then(|named| managers.into_iter().find(|name| named.split('@').next() == Some(name)));
    if let Some(manager) = by_name {
        return (manager, " and its packageManager".to_owned());
    }
    let locks =
        [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")];
    match locks.into_iter().find(|(lock, _)| project.has(lock)) {
        Some((lock, manager)) => (manager, format!(" and {lock}")),
        None => ("npm", String::new()),
    }
}

fn deno(project: &Project<'_>) -> Option<Found<String>> {
    let file = ["deno.json", "deno.jsonc"].into_iter().find(|file| project.has(file))?;
    // Comments in deno.jsonc make it unreadable here; plain `deno test` is right then, too.
    let settings: Option<serde_json::Value> =
        project.read(file).and_then(|text| serde_json::from_str(&text).ok());
    if settings.is_some_and(|settings| !settings["tasks"]["test"].is_null()) {
        return Some(Found {
            value: "deno task test".to_owned(),
            because: format!("found a test task in {file}"),
        });
    }
    project.because(file, "deno test")
}

fn python(project: &Project<'_>) -> Option<Found<String>> {
    let locks =
        [("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"), ("Pipfile.lock", "pipenv")];
    let lock = locks.into_iter().find(|(lock, _)| project.has(lock));
    let configured = ["pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "setup.py"];
    let because = match configured.into_iter().find(|file| project.has(file)) {
        Some(file) => format!("found {file}"),
        None => format!(
            "found Python files in {}/",
            ["tests", "test"].into_iter().find(|d| project.has_python(d))?
        ),
    };
    if let Some((lock, manager)) = lock {
        return Some(Found {
            value: format!("{manager} run pytest"),
            because: format!("{because} and {lock}"),
        });
    }
    // Without any configuration nothing but `-m` puts the project itself on the import path.
    let command = if because.ends_with('/') { "python -m pytest" } else { "pytest" };
    Some(Found { value: command.to_owned(), because })
}

fn gradle(project: &Project<'_>) -> Option<Found<String>> {
    let command = if project.has("gradlew") { "./gradlew test" } else { "gradle test" };
    project.because("build.gradle.kts", command).or_else(|| project.because("build.gradle", command))
}

fn ruby(project: &Project<'_>) -> Option<Found<String>> {
    let gems = project.read("Gemfile")?;
    let rspec = [".rspec", "spec"].into_iter().find(|name| project.directory.join(name).exists());
    if let Some(name) = rspec {
        let because = format!("found Gemfile and {name}");
        return Some(Found { value: "bundle exec rspec".to_owned(), because });
    }
    if gems.contains("rspec") {
        return Some(Found {
            value: "bundle exec rspec".to_owned(),
            because: "found rspec in Gemfile".to_owned(),
        });
    }
    project.because("Rakefile", "bundle exec rake test")
}

fn dotnet(project: &Project<'_>) -> Option<Found<String>> {
    let file = DOTNET_PROJECTS.iter().find_map(|(extension, _)| project.file_with_extension(extension))?;
    Some(Found { value: "dotnet test".to_owned(), because: format!("found {file}") })
}

fn php(project: &Project<'_>) -> Option<Found<String>> {
    let composer: serde_json::Value = serde_json::from_str(&project.read("composer.json")?).ok()?;
    if !composer["scripts"]["test"].is_null() {
        let because = "found a test script in composer.json".to_owned();
        return Some(Found { value: "composer test".to_owned(), because });
    }
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
}

impl Project<'_> {
    fn has(&self, file: &str) -> bool {
        self.directory.join(file).is_file()
    }

    /// Nothing if it is missing or no text: then it tells nothing either.
    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.directory.join(file)).ok()
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
