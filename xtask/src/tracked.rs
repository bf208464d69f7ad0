//! Tracked files say nothing about the machine they were written on: no addresses of package
//! registries (a mirror's would not work elsewhere), no paths of somebody's disk.

use std::fs;
use std::path::Path;
use std::process::Command;

/// In two pieces each, so that this file passes its own check.
const REGISTRIES: [(&str, &str); 6] = [
    ("crates", ".io"),
    ("npmjs", ".org"),
    ("pypi", ".org"),
    ("pythonhosted", ".org"),
    ("rubygems", ".org"),
    ("proxy.golang", ".org"),
];

const DISKS: [(&str, &str); 4] = [("/home", "/"), ("/root", "/"), ("/Users", "/"), ("/work", "/")];

/// The home of the user in our examples.
const EXAMPLE_HOME: &str = "/home/ralph";

pub(crate) fn check() -> Result<String, String> {
    let mut problems = Vec::new();
    let files = tracked_files()?;
    let needles = Needles::new(std::env::current_dir().ok().as_deref());
    for path in &files {
        // What is not text, or was deleted just now, says nothing.
        let Ok(text) = fs::read_to_string(path) else { continue };
        for (number, line) in text.lines().enumerate() {
            if let Some(what) = needles.found_in(path, line) {
                problems.push(format!("{path}:{}: {what}: {}", number + 1, line.trim()));
            }
        }
    }
    match problems.len() {
        0 => Ok(format!("{} files", files.len())),
        _ => Err(problems.join("\n")),
    }
}

#[expect(clippy::disallowed_methods, reason = "starting tools is what xtask is for")]
pub(crate) fn tracked_files() -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .output()
        .map_err(|error| format!("git cannot be started: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

struct Needles {
    registries: Vec<String>,
    disks: Vec<String>,
}

impl Needles {
    fn new(repository: Option<&Path>) -> Self {
        let join =
            |pieces: &[(&str, &str)]| pieces.iter().map(|(a, b)| format!("{a}{b}")).collect::<Vec<_>>();
        let mut disks = join(&DISKS);
        // The path of this very checkout, unless it is so short that any text may have it.
        let repository = repository.filter(|path| path.components().count() > 3);
        disks.extend(repository.map(|path| format!("{}/", path.display())));
        Self { registries: join(&REGISTRIES), disks }
    }

    fn found_in(&self, path: &str, line: &str) -> Option<&'static str> {
        // Cargo writes the name of the default registry there; where else packages come from is
        // looked at with their licences.
        if path != "Cargo.lock" && self.registries.iter().any(|name| line.contains(name.as_str())) {
            return Some("names a package registry");
        }
        let line = line.replace(EXAMPLE_HOME, "");
        let begins = |at: usize| {
            let before = line[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || "._-~/}$*".contains(c))
        };
        let named = |disk: &str| line.match_indices(disk).any(|(at, _)| begins(at));
        self.disks.iter().any(|disk| named(disk)).then_some("names a path of one machine")
    }
}

#[cfg(test)]
mod tests {
    use super::Needles;
    use std::path::Path;

    #[track_caller]
    fn check(line: &str, expected: bool) {
        let needles = Needles::new(Some(Path::new("/builds/somewhere/wiggum")));
        // Written with a bar, which keeps this file clean.
        let line = line.replace('|', "");
        assert_eq!(needles.found_in("a.txt", &line).is_some(), expected, "{line}");
    }

    #[test]
    fn machine_paths_and_registries_are_found() {
        check("see /home|/somebody/code", true);
        check("`/root|/.cargo`", true);
        check("in /builds|/somewhere/wiggum/crates", true);
        check("https://index.crates|.io/config.json", true);
        check("from pypi|.org", true);
    }

    #[test]
    fn what_only_looks_like_it_is_left_alone() {
        check("../root|/a", false);
        check("~/work|/x", false);
        check("/home/ralph/p.md", false);
        check("src/home|/page.rs", false);
        check("crates/core and docs", false);
        let short = Needles::new(Some(Path::new("/project")));
        assert_eq!(short.found_in("a.txt", "GET /project/page"), None, "everybody has such paths");
    }
}
