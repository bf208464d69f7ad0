//! Branches, tags and the stash as they were before an agent ran.
//!
//! They are read from the files. What was moved or removed is put back; what is new stays, but for
//! replacements of objects. Not looked at: the branch that is checked out, which has its own rules,
//! those of other work trees, where somebody may be committing, what was fetched, and our own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use crate::beneath::text_of;

use super::{Git, GitError};
use crate::paths::write_atomic;

/// By name, what it points to.
pub(super) type References = BTreeMap<String, String>;

const LOOKED_AT: [&str; 4] = ["refs/heads/", "refs/tags/", "refs/notes/", REPLACEMENTS];
const REPLACEMENTS: &str = "refs/replace/";
const STASH: &str = "refs/stash";
const STASH_LOG: &str = "logs/refs/stash";
const NOTHING: &str = "0000000000000000000000000000000000000000";

/// Branches that are checked out in other work trees.
pub(super) fn checked_out_elsewhere(common_dir: &Path, git_dir: &Path) -> BTreeSet<String> {
    let linked = fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
    let all = linked.map(|entry| entry.path()).chain([common_dir.to_owned()]);
    all.filter(|directory| directory != git_dir).filter_map(|directory| checked_out(&directory)).collect()
}

/// The branch that is checked out.
pub(super) fn checked_out(git_dir: &Path) -> Option<String> {
    let head = text_of(&git_dir.join("HEAD")).ok()?;
    Some(head.strip_prefix("ref: ")?.trim_end().to_owned())
}

/// All but these. Nothing is known of a repository whose references are not in files.
pub(super) fn read(common_dir: &Path, but: &BTreeSet<String>) -> Result<References, GitError> {
    let mut found = read_below(common_dir, &LOOKED_AT)?;
    // All stashes but the newest are in its log alone.
    let log = text_of(&common_dir.join(STASH_LOG)).unwrap_or_default();
    for (number, (id, rest)) in log.lines().filter_map(stash_entry).enumerate() {
        found.insert(format!("{STASH}@{{{id}}}"), format!("{number} {rest}"));
    }
    found.retain(|name, _| !but.contains(name));
    Ok(found)
}

/// All whose names begin with one of these, each of which ends with `/`.
pub(super) fn read_below(common_dir: &Path, starts: &[&str]) -> Result<References, GitError> {
    let mut found = References::new();
    let packed = common_dir.join("packed-refs");
    match text_of(&packed) {
        Ok(text) => {
            let lines = text.lines().filter_map(|line| line.split_once(' '));
            let wanted = lines.filter(|(_, name)| starts.iter().any(|start| name.starts_with(start)));
            found.extend(wanted.map(|(id, name)| (name.to_owned(), id.to_owned())));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(GitError::File { path: packed, source }),
    }
    for name in starts {
        read_loose(common_dir, name.trim_end_matches('/'), &mut found)?;
    }
    Ok(found)
}

/// Are the references in files, where they can be read?
pub(super) fn are_in_files(common_dir: &Path) -> bool {
    !common_dir.join("reftable").exists()
}

fn read_loose(common_dir: &Path, name: &str, found: &mut References) -> Result<(), GitError> {
    let path = common_dir.join(name);
    let on_path = |source| GitError::File { path: path.clone(), source };
    match fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_dir() => {
            for entry in fs::read_dir(&path).map_err(on_path)? {
                let child = entry.map_err(on_path)?.file_name();
                read_loose(common_dir, &format!("{name}/{}", child.to_string_lossy()), found)?;
            }
        }
        Ok(metadata) if metadata.is_file() && !name.ends_with(".lock") => {
            let id = text_of(&path).map_err(on_path)?;
            // One that stands for another points to nothing itself.
            if !id.starts_with("ref: ") {
                found.insert(name.to_owned(), id.trim_end().to_owned());
            }
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(on_path(error)),
    }
    Ok(())
}

/// What a line of the stash's log adds, and who made it, when and why.
fn stash_entry(line: &str) -> Option<(&str, &str)> {
    line.split_once(' ')?.1.split_once(' ')
}

/// The names of what was moved or removed, and of new replacements.
pub(super) fn compare(before: &References, now: &References) -> Vec<String> {
    let lost = before.iter().filter(|(name, id)| now.get(*name) != Some(*id)).map(|(name, _)| name);
    let replacements =
        now.keys().filter(|name| name.starts_with(REPLACEMENTS) && !before.contains_key(*name));
    lost.chain(replacements).map(|name| plain_name(name)).collect()
}

pub(super) fn branches_that_came(before: &References, now: &References) -> BTreeSet<String> {
    let is_new = |name: &&String| name.starts_with("refs/heads/") && !before.contains_key(*name);
    now.keys().filter(is_new).cloned().collect()
}

/// All stashes are one name to people.
fn plain_name(name: &str) -> String {
    if name.starts_with(STASH) { STASH.to_owned() } else { name.to_owned() }
}

/// Puts back what [`compare`] names.
pub(super) fn put_back(git: &Git, before: &References, now: &References) -> Result<(), GitError> {
    for name in compare(before, now) {
        match before.get(&name) {
            Some(id) => git.run(&["update-ref", "-m", "wiggum: put back", &name, id])?,
            None if name == STASH => put_back_stashes(git, before)?,
            None => git.run(&["update-ref", "-d", &name])?,
        }
    }
    Ok(())
}

/// Those of before first, in their order; then those that came.
fn put_back_stashes(git: &Git, before: &References) -> Result<(), GitError> {
    let path = git.common_dir.join(STASH_LOG);
    let log = text_of(&path).unwrap_or_default();
    let known = |id: &str| before.contains_key(&format!("{STASH}@{{{id}}}"));
    let mut stashes: Vec<(usize, &str, &str)> = before.iter().filter_map(numbered_stash).collect();
    stashes.sort_unstable();
    let came = log.lines().filter_map(stash_entry).filter(|(id, _)| !known(id));
    stashes.extend(came.map(|(id, rest)| (usize::MAX, id, rest)));
    let mut text = String::new();
    let mut last = NOTHING;
    for (_, id, rest) in stashes {
        text.push_str(&format!("{last} {id} {rest}\n"));
        last = id;
    }
    git.run(&["update-ref", "-m", "wiggum: put back", STASH, last])?;
    let on_log = |source| GitError::File { path: path.clone(), source };
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(on_log)?;
    write_atomic(&path, text.as_bytes()).map_err(on_log)
}

/// Its place in the log, its id, and who made it, when and why.
fn numbered_stash<'a>((name, rest): (&'a String, &'a String)) -> Option<(usize, &'a str, &'a str)> {
    let id = name.strip_prefix(STASH)?.trim_matches(['@', '{', '}']);
    let (number, rest) = rest.split_once(' ')?;
    Some((number.parse().ok()?, id, rest))
}
