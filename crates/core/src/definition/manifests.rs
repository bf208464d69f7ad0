//! Manifests: files that say both what a project is made of and how it is tested. Only the second part
//! defines a check; the first stays as the attempt left it, or new dependencies would be missing.

use serde_json::{Map, Value};

/// Keys of `package.json` by which test runners are configured.
const RUNNER_KEYS: [&str; 11] =
    ["jest", "vitest", "mocha", "ava", "tap", "c8", "nyc", "cypress", "karma", "babel", "workspaces"];

/// The scripts of a `package.json` that `npm run NAME` runs, each with its text: those before and after
/// it, and those that it runs in turn.
pub(super) fn npm_scripts(text: &str, name: &str) -> Vec<(String, String)> {
    let package: Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = package["scripts"].as_object().cloned().unwrap_or_default();
    let mut found: Vec<(String, String)> = Vec::new();
    let mut todo = vec![name.to_owned()];
    while let Some(name) = todo.pop() {
        for name in [format!("pre{name}"), name.clone(), format!("post{name}")] {
            let Some(script) = scripts.get(&name).and_then(Value::as_str) else { continue };
            if found.iter().any(|(known, _)| *known == name) {
                continue;
            }
            found.push((name, script.to_owned()));
            todo.extend(called_scripts(script));
        }
    }
    found
}

/// The names in `npm run NAME`, `yarn NAME`, `npm-run-all a b` and the like.
fn called_scripts(script: &str) -> Vec<String> {
    let words: Vec<&str> = script.split_whitespace().collect();
    let mut called = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let rest = words.get(at + 1..).unwrap_or_default();
        let names: &[&str] = match *word {
            "npm" | "pnpm" | "bun" if matches!(rest.first(), Some(&("run" | "run-script"))) => &rest[1..],
            "npm" | "yarn" | "pnpm" => rest,
            "npm-run-all" | "run-s" | "run-p" => rest,
            _ => continue,
        };
        let many = matches!(*word, "npm-run-all" | "run-s" | "run-p");
        let names = names.iter().filter(|name| !name.starts_with('-'));
        called.extend(names.take(if many { usize::MAX } else { 1 }).map(|name| (*name).to_owned()));
    }
    called
}

/// What of a `package.json` says how it is tested: these scripts, and the runners' settings.
pub(super) fn package_difference(before: &str, after: &str, script: &str) -> Option<String> {
    let (scripts, later) = (npm_scripts(before, script), npm_scripts(after, script));
    let mut differs: Vec<String> = Vec::new();
    for (name, text) in &scripts {
        if !later.iter().any(|(other, now)| other == name && now == text) {
            differs.push(format!("script `{name}`"));
        }
    }
    let added = later.iter().filter(|(name, _)| !scripts.iter().any(|(other, _)| other == name));
    differs.extend(added.map(|(name, _)| format!("script `{name}`")));
    differs.extend(runner_keys(before, after));
    (!differs.is_empty()).then(|| differs.join(", "))
}

fn runner_keys(before: &str, after: &str) -> Vec<String> {
    let parse = |text| serde_json::from_str::<Value>(text).unwrap_or_default();
    let (before, after) = (parse(before), parse(after));
    let differs = |key: &str| before[key] != after[key];
    RUNNER_KEYS.iter().filter(|key| differs(key)).map(|key| format!("`{key}`")).collect()
}

/// The later `package.json` with the former scripts and settings of runners. Scripts that are new stay,
/// but for those that would run before or after a former one.
pub(super) fn package_with_former_scripts(before: &str, after: &str) -> String {
    let (Ok(Value::Object(before)), Ok(Value::Object(mut after))) =
        (serde_json::from_str::<Value>(before), serde_json::from_str::<Value>(after))
    else {
        return before.to_owned();
    };
    let mut scripts = after.get("scripts").and_then(Value::as_object).cloned().unwrap_or_default();
    let former: Map<String, Value> =
        before.get("scripts").and_then(Value::as_object).cloned().unwrap_or_default();
    let is_around = |name: &str| {
        let inner = ["pre", "post"].iter().filter_map(|start| name.strip_prefix(start));
        inner.into_iter().any(|inner| former.contains_key(inner))
    };
    scripts.retain(|name, _| former.contains_key(name) || !is_around(name));
    scripts.extend(former);
    after.insert("scripts".to_owned(), Value::Object(scripts));
    for key in RUNNER_KEYS {
        match before.get(key) {
            Some(value) => drop(after.insert(key.to_owned(), value.clone())),
            None => drop(after.remove(key)),
        }
    }
    serde_json::to_string_pretty(&Value::Object(after)).unwrap_or_default()
}

/// A part of a TOML or INI file that says how tests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A whole section, by its header.
    Section(&'static str),
    /// All sections whose headers begin so.
    Sections(&'static str),
    /// One key, in every section whose header begins so.
    Key(&'static str, &'static str),
}

/// How Cargo.toml says what `cargo test` runs.
pub(super) const CARGO: [Part; 15] = [
    Part::Section("[[test]]"),
    Part::Key("[lib]", "path"),
    Part::Key("[lib]", "test"),
    Part::Key("[lib]", "doctest"),
    Part::Key("[lib]", "harness"),
    Part::Key("[[bin]]", "test"),
    Part::Key("[[bin]]", "harness"),
    Part::Key("[[example]]", "test"),
    Part::Key("[package]", "autotests"),
    Part::Key("[package]", "autolib"),
    Part::Key("[workspace]", "members"),
    Part::Key("[workspace]", "exclude"),
    Part::Key("[workspace]", "default-members"),
    Part::Sections("[profile.test"),
    Part::Sections("[profile.dev"),
];

pub(super) const PYPROJECT: [Part; 5] = [
    Part::Sections("[tool.pytest"),
    Part::Sections("[tool.tox"),
    Part::Sections("[tool.poe"),
    Part::Sections("[tool.pdm.scripts"),
    Part::Sections("[tool.taskipy"),
];

pub(super) const SETUP_CFG: [Part; 1] = [Part::Section("[tool:pytest]")];

/// Which of these parts differ, in words.
pub(super) fn section_difference(before: &str, after: &str, parts: &[Part]) -> Option<String> {
    let (before, after) = (sections(before), sections(after));
    let differs: Vec<String> = parts
        .iter()
        .filter(|part| part.of(&before) != part.of(&after))
        .map(|part| match part {
            Part::Section(header) => format!("`{header}`"),
            Part::Sections(start) => format!("`{start}]`"),
            Part::Key(header, key) => format!("`{key}` of `{header}`"),
        })
        .collect();
    (!differs.is_empty()).then(|| differs.join(", "))
}

/// The later file with these parts as they were.
pub(super) fn with_former_sections(before: &str, after: &str, parts: &[Part]) -> String {
    let before = sections(before);
    let mut after = sections(after);
    for part in parts {
        if part.of(&before) == part.of(&after) {
            continue;
        }
        match part {
            Part::Section(_) | Part::Sections(_) => {
                after.retain(|section| !part.is_of(&section.header));
                after.extend(before.iter().filter(|section| part.is_of(&section.header)).cloned());
            }
            Part::Key(_, key) => {
                for section in after.iter_mut().filter(|section| part.is_of(&section.header)) {
                    section.entries.retain(|entry| entry.key != *key);
                }
                let former = before.iter().filter(|section| part.is_of(&section.header));
                for section in former {
                    let entries: Vec<Entry> =
                        section.entries.iter().filter(|entry| entry.key == *key).cloned().collect();
                    match after.iter_mut().find(|other| other.is_same(section)) {
                        Some(same) => same.entries.extend(entries),
                        None if !entries.is_empty() => {
                            after.push(Section { header: section.header.clone(), entries });
                        }
                        None => {}
                    }
                }
            }
        }
    }
    after.iter().map(Section::text).collect()
}

impl Part {
    fn is_of(self, header: &str) -> bool {
        match self {
            Self::Section(wanted) | Self::Key(wanted, _) => header == wanted,
            Self::Sections(start) => header.starts_with(start),
        }
    }

    /// What a file says there, without regard to blank space and comments.
    fn of(self, sections: &[Section]) -> Vec<String> {
        let ours = sections.iter().filter(|section| self.is_of(&section.header));
        let entries = ours.flat_map(|section| {
            let name = section.name().unwrap_or_default();
            section.entries.iter().map(move |entry| (section.header.clone(), name.clone(), entry))
        });
        let mut texts: Vec<String> = entries
            .filter(|(_, _, entry)| match self {
                Self::Key(_, key) => entry.key == key,
                Self::Section(_) | Self::Sections(_) => !entry.key.is_empty(),
            })
            .map(|(header, name, entry)| {
                let value: String = entry.value.split_whitespace().collect();
                format!("{header} {name} {} {value}", entry.key)
            })
            .collect();
        texts.sort_unstable();
        texts
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Section {
    /// With its brackets and without blank space; empty for what stands before the first.
    header: String,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// Empty for comments and blank lines.
    key: String,
    value: String,
    /// Whole lines.
    text: String,
}

impl Section {
    fn name(&self) -> Option<String> {
        let name = self.entries.iter().find(|entry| entry.key == "name");
        name.map(|entry| entry.value.trim().to_owned())
    }

    /// Sections of an array are told apart by their names.
    fn is_same(&self, other: &Self) -> bool {
        self.header == other.header && (!self.header.starts_with("[[") || self.name() == other.name())
    }

    fn text(&self) -> String {
        let header = if self.header.is_empty() { String::new() } else { format!("{}\n", self.header) };
        let entries = self.entries.iter().map(|entry| match entry.text.ends_with('\n') {
            true => entry.text.clone(),
            false => format!("{}\n", entry.text),
        });
        header + &entries.collect::<String>()
    }
}

/// Takes a TOML or INI file apart into sections, keys and the lines of their values.
fn sections(text: &str) -> Vec<Section> {
    let mut found = vec![Section::default()];
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let plain = line.trim();
        if plain.starts_with('[') && plain.contains(']') && !plain.contains('=') {
            let header = plain.split('#').next().unwrap_or(plain).split_whitespace().collect();
            found.push(Section { header, entries: Vec::new() });
            continue;
        }
        let Some(section) = found.last_mut() else { continue };
        let Some((key, value)) = plain.split_once('=').filter(|_| !plain.starts_with(['#', ';'])) else {
            section.entries.push(Entry { key: String::new(), value: String::new(), text: line.to_owned() });
            continue;
        };
        let (mut text, mut value) = (line.to_owned(), value.to_owned());
        // An array, a long string, or lines of INI that are indented belong to the value.
        while !is_closed(&value) || lines.peek().is_some_and(|next| is_continued(next)) {
            let Some(next) = lines.next() else { break };
            text.push_str(next);
            value.push_str(next);
        }
        let key = key.trim().trim_matches(['"', '\'']).to_owned();
        section.entries.push(Entry { key, value, text });
    }
    found
}

fn is_continued(line: &str) -> bool {
    line.starts_with([' ', '\t']) && !line.trim().is_empty() && !line.contains('=')
}

fn is_closed(value: &str) -> bool {
    if value.matches("\"\"\"").count() % 2 == 1 || value.matches("'''").count() % 2 == 1 {
        return false;
    }
    let count = |c: char| value.matches(c).count();
    count('[') <= count(']') && count('{') <= count('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGE: &str = r#"{
        "scripts": { "test": "npm run lint && jest", "lint": "eslint .", "build": "tsc", "pretest": "tsc" },
        "dependencies": { "a": "1" },
        "jest": { "testTimeout": 5 }
    }"#;

    #[test]
    fn the_scripts_behind_a_script() {
        let names: Vec<String> = npm_scripts(PACKAGE, "test").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["pretest", "test", "lint"]);
    }

    #[test]
    fn what_of_a_package_defines_its_test() {
        for (from, to, expected) in [
            ("npm run lint && jest", "true", Some("script `test`, script `lint`")),
            ("eslint .", "true", Some("script `lint`")),
            ("\"testTimeout\": 5", "\"testMatch\": []", Some("`jest`")),
            ("\"a\": \"1\"", "\"a\": \"1\", \"b\": \"2\"", None),
            ("\"build\": \"tsc\"", "\"build\": \"esbuild\", \"start\": \"node .\"", None),
        ] {
            let after = PACKAGE.replace(from, to);
            assert_eq!(package_difference(PACKAGE, &after, "test").as_deref(), expected, "{from}");
            let put_back = package_with_former_scripts(PACKAGE, &after);
            assert_eq!(package_difference(PACKAGE, &put_back, "test"), None);
        }
        let after = PACKAGE.replace("\"build\":", "\"posttest\": \"true\", \"prelint\": \"x\", \"build\":");
        assert_eq!(
            package_difference(PACKAGE, &after, "test").as_deref(),
            Some("script `posttest`, script `prelint`")
        );
        let put_back = package_with_former_scripts(PACKAGE, &after);
        assert!(!put_back.contains("posttest") && !put_back.contains("prelint"), "{put_back}");
        let after = PACKAGE.replace("\"a\": \"1\"", "\"b\": \"2\"").replace("npm run lint && jest", "true");
        assert!(package_with_former_scripts(PACKAGE, &after).contains("\"b\": \"2\""));
    }

    const MANIFEST: &str = "\
[package]
name = \"a\"
version = \"0.1.0\"

[lib]
path = \"src/lib.rs\"

[[bin]]
name = \"tool\"
path = \"src/tool.rs\"

[dependencies]
serde = \"1\"
";

    #[test]
    fn what_of_a_manifest_defines_its_tests() {
        for (from, to, expected) in [
            ("[lib]\n", "[lib]\ntest = false\n", Some("`test` of `[lib]`")),
            ("src/lib.rs", "src/other.rs", Some("`path` of `[lib]`")),
            ("name = \"tool\"\n", "name = \"tool\"\ntest = false\n", Some("`test` of `[[bin]]`")),
            (
                "version = \"0.1.0\"\n",
                "version = \"0.1.0\"\nautotests = false\n",
                Some("`autotests` of `[package]`"),
            ),
            (
                "[dependencies]",
                "[[test]]\nname = \"x\"\nharness = false\n\n[dependencies]",
                Some("`[[test]]`"),
            ),
            (
                "serde = \"1\"\n",
                "serde = { version = \"1\",\n  features = [\"derive\"] }\nuuid = \"1\"\n",
                None,
            ),
            ("version = \"0.1.0\"", "version = \"0.2.0\"", None),
            ("[lib]\n", "[lib]\n# a word\ncrate-type = [\n  \"cdylib\",\n]\n", None),
        ] {
            let after = MANIFEST.replace(from, to);
            assert_ne!(after, MANIFEST);
            assert_eq!(section_difference(MANIFEST, &after, &CARGO).as_deref(), expected, "{from}");
            let put_back = with_former_sections(MANIFEST, &after, &CARGO);
            assert_eq!(section_difference(MANIFEST, &put_back, &CARGO), None, "{put_back}");
        }
        let after =
            MANIFEST.replace("[lib]\n", "[lib]\ntest = false\n").replace("serde = \"1\"", "uuid = \"1\"");
        let put_back = with_former_sections(MANIFEST, &after, &CARGO);
        assert!(put_back.contains("uuid = \"1\"") && !put_back.contains("test = false"), "{put_back}");
    }

    #[test]
    fn sections_of_python_projects() {
        let before =
            "[project]\ndependencies = [\n  \"a\",\n]\n[tool.pytest.ini_options]\naddopts = \"-q\"\n";
        let cheat = before.replace("\"-q\"", "\"-q -k nothing\"").replace("\"a\",", "\"a\",\n  \"b\",");
        assert_eq!(section_difference(before, &cheat, &PYPROJECT).as_deref(), Some("`[tool.pytest]`"));
        let put_back = with_former_sections(before, &cheat, &PYPROJECT);
        assert!(put_back.contains("\"b\"") && !put_back.contains("nothing"), "{put_back}");
        assert_eq!(section_difference(before, &before.replace("\"a\",", "\"c\","), &PYPROJECT), None);
        let ini = "[metadata]\nname = a\n[tool:pytest]\naddopts =\n  -q\n  --strict\n";
        let cheat = ini.replace("  --strict\n", "  --co\n");
        assert_eq!(section_difference(ini, &cheat, &SETUP_CFG).as_deref(), Some("`[tool:pytest]`"));
    }
}
