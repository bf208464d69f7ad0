//! Looking around: what files there are, and where something is said in them.

use std::fs;
use std::path::Path;

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};
use regex_automata::meta::Regex;
use serde::Deserialize;
use wiggum_workspace::beneath;

use super::{Place, RESULT_LIMIT, ToolError, shorten};

const MOST_ENTRIES: usize = 500;
const MOST_MATCHES: usize = 200;
const LINE_SHOWN: usize = 300;
/// Larger files are data.
const FILE_LIMIT: u64 = 4 * 1024 * 1024;

#[derive(Debug, Deserialize)]
pub(super) struct List {
    path: Option<String>,
    depth: Option<usize>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Search {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
}

pub(super) fn list(place: &Place, List { path, depth }: &List) -> Result<String, ToolError> {
    let start = place.existing(path.as_deref().unwrap_or("."))?;
    if !start.is_dir() {
        let path = path.clone().unwrap_or_default();
        return Err(ToolError::Failed(format!("`{path}` is not a directory")));
    }
    let entries = walk(place, &start, Override::empty(), Some(depth.unwrap_or(2).max(1)));
    let mut lines = Vec::new();
    for entry in entries.filter(|entry| entry.path() != start) {
        if lines.len() == MOST_ENTRIES {
            lines.push(format!("… more than {MOST_ENTRIES}: name a directory, or a smaller depth"));
            break;
        }
        let sign = if entry.file_type().is_some_and(|kind| kind.is_dir()) { "/" } else { "" };
        lines.push(place.shown(entry.path()) + sign);
    }
    Ok(if lines.is_empty() { "(nothing)".to_owned() } else { lines.join("\n") })
}

pub(super) fn search(place: &Place, Search { pattern, path, glob }: &Search) -> Result<String, ToolError> {
    let start = place.existing(path.as_deref().unwrap_or("."))?;
    let regex = Regex::new(pattern).map_err(|error| bad_pattern(pattern, &error))?;
    let glob = glob.as_ref().map_or_else(|| Ok(Override::empty()), |glob| only(place, glob))?;
    let mut lines: Vec<String> = Vec::new();
    let mut bytes = 0;
    let found = walk(place, &start, glob, None);
    let found = found.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    // A file that was named is meant, ignored or not.
    let named = start.is_file().then(|| start.clone());
    let others = found.map(DirEntry::into_path).filter(|path| *path != start);
    for path in named.into_iter().chain(others) {
        let Some(text) = searchable(&path) else { continue };
        let shown = place.shown(&path);
        for (number, line) in text.lines().enumerate().filter(|(_, line)| regex.is_match(line)) {
            let line = &line[..line.floor_char_boundary(LINE_SHOWN)];
            lines.push(format!("{shown}:{}: {line}", number + 1));
            bytes += lines.last().map_or(0, String::len);
            if lines.len() == MOST_MATCHES || bytes > RESULT_LIMIT {
                lines.push("… and more: search for something narrower".to_owned());
                return Ok(lines.join("\n"));
            }
        }
    }
    Ok(if lines.is_empty() { "(no match)".to_owned() } else { shorten(lines.join("\n")) })
}

/// In the order of their names, without following links, by the rules of this workspace alone: what
/// is ignored above it or by the user is not ignored here. So it always begins at the root.
fn walk(place: &Place, start: &Path, glob: Override, depth: Option<usize>) -> impl Iterator<Item = DirEntry> {
    let root = place.root();
    let above = start.strip_prefix(root).map_or(0, |inside| inside.components().count());
    let (towards, below) = (start.to_owned(), start.to_owned());
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .require_git(false)
        .follow_links(false)
        .max_depth(depth.map(|depth| depth.saturating_add(above)))
        .overrides(glob)
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .filter_entry(move |entry| {
            let on_the_way = towards.starts_with(entry.path()) || entry.path().starts_with(&towards);
            on_the_way && !Place::is_hidden(entry.file_name())
        })
        .build();
    walk.filter_map(Result::ok).filter(move |entry| entry.path().starts_with(&below))
}

fn only(place: &Place, glob: &str) -> Result<Override, ToolError> {
    let bad =
        |error: ignore::Error| ToolError::Failed(format!("`{glob}` is not a pattern of files: {error}"));
    // Otherwise it would exclude.
    let glob_text = glob.trim_start_matches('!');
    let mut builder = OverrideBuilder::new(place.root());
    builder.add(glob_text).map_err(bad)?;
    builder.build().map_err(bad)
}

fn searchable(path: &Path) -> Option<String> {
    let small = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= FILE_LIMIT);
    let text = small.then(|| beneath::bytes_of(path).ok()).flatten()?;
    if text.contains(&0) { None } else { String::from_utf8(text).ok() }
}

fn bad_pattern(pattern: &str, error: &regex_automata::meta::BuildError) -> ToolError {
    let reason = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
    ToolError::Pattern { pattern: pattern.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::super::call;
    use super::*;
    use serde_json::{Value, json};
    use std::os::unix::fs::symlink;

    fn place(directory: &Path) -> Place {
        let root = directory.join("root");
        let files: [(&str, &[u8]); 8] = [
            (".gitignore", b"target\n"),
            (".github/ci.yml", b"needle here\n"),
            (".git/config", b"needle\n"),
            ("src/a.rs", b"one\nthe Needle, the needle\n"),
            ("src/deep/b.txt", b"needle\n"),
            ("src/deep/er/c.rs", b"nothing\n"),
            ("target/built", b"needle\n"),
            ("data.bin", b"needle\0"),
        ];
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        // As a work tree lies in the directory of the loop, which git ignores.
        fs::write(directory.join(".gitignore"), "*\n").unwrap();
        fs::create_dir(directory.join("outside")).unwrap();
        fs::write(directory.join("outside/x"), "needle\n").unwrap();
        symlink("../outside", root.join("link")).unwrap();
        symlink("../outside/x", root.join("file-link")).unwrap();
        Place::new(&root, Vec::new()).unwrap()
    }

    #[track_caller]
    fn check(tool: &str, arguments: Value, expected: &[&str]) {
        let directory = tempfile::tempdir().unwrap();
        let place = place(directory.path());
        let result = call(&place, tool, &arguments.to_string()).unwrap_or_else(|error| error.to_string());
        assert_eq!(result.lines().collect::<Vec<_>>(), expected, "{arguments}");
    }

    #[test]
    fn directories_are_listed_without_what_git_ignores() {
        check(
            "list",
            json!({}),
            &[
                ".github/",
                ".github/ci.yml",
                ".gitignore",
                "data.bin",
                "file-link",
                "link",
                "src/",
                "src/a.rs",
                "src/deep/",
            ],
        );
        check("list", json!({"path": "src/deep", "depth": 1}), &["src/deep/b.txt", "src/deep/er/"]);
        check("list", json!({"path": "src/a.rs"}), &["`src/a.rs` is not a directory"]);
        check("list", json!({"path": "link"}), &["`link` leads out of the workspace"]);
        check("list", json!({"path": ".."}), &["`..` leads out of the workspace"]);
    }

    #[test]
    fn files_are_searched_by_line_and_never_outside() {
        check(
            "search",
            json!({"pattern": "needle"}),
            &[
                ".github/ci.yml:1: needle here",
                "src/a.rs:2: the Needle, the needle",
                "src/deep/b.txt:1: needle",
            ],
        );
        check(
            "search",
            json!({"pattern": "(?i)^THE", "path": "src"}),
            &["src/a.rs:2: the Needle, the needle"],
        );
        check("search", json!({"pattern": "needle", "glob": "*.txt"}), &["src/deep/b.txt:1: needle"]);
        check(
            "search",
            json!({"pattern": "needle", "path": "src/deep/b.txt"}),
            &["src/deep/b.txt:1: needle"],
        );
        check("search", json!({"pattern": "needle", "path": "target/built"}), &["target/built:1: needle"]);
        check("search", json!({"pattern": "haystack"}), &["(no match)"]);
        check("search", json!({"pattern": "needle", "path": "link"}), &["`link` leads out of the workspace"]);
        check(
            "search",
            json!({"pattern": "needle", "path": "/etc"}),
            &["`/etc` is not relative to the workspace"],
        );
    }

    #[test]
    fn a_broken_pattern_is_explained() {
        let directory = tempfile::tempdir().unwrap();
        let place = place(directory.path());
        let error =
            |arguments: Value| call(&place, "search", &arguments.to_string()).unwrap_err().to_string();
        assert!(error(json!({"pattern": "("})).contains("unclosed group"));
        assert!(error(json!({"pattern": "x", "glob": "[a"})).contains("is not a pattern of files"));
    }

    #[test]
    fn much_is_told_in_part() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for number in 0..MOST_ENTRIES + 10 {
            fs::write(root.join(format!("{number:04}")), format!("x{}\n", "y".repeat(1000)).repeat(3))
                .unwrap();
        }
        let place = Place::new(root, Vec::new()).unwrap();
        let listed = call(&place, "list", "{}").unwrap();
        assert_eq!(listed.lines().count(), MOST_ENTRIES + 1);
        let found = call(&place, "search", "{\"pattern\": \"x\"}").unwrap();
        assert!(found.ends_with("search for something narrower") && found.len() < RESULT_LIMIT + 1000);
    }
}
