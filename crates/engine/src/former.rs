//! The judge's own copy: what of an attempt's changes defines its checks, and putting the former
//! definition in place of it for a second run.
//!
//! In place, in the work tree itself: a scratch copy would lack what git ignores, such as installed
//! packages and build caches. The tree that was taken is put back before anything else happens, also
//! after a crash.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use wiggum_core::definition::{ChangedFile, Definition, Former, Put, Tree, is_test_file, wants_tests};
use wiggum_core::event::{Flag, FlagKind};
use wiggum_core::state::{Loop, OpenIteration};
use wiggum_core::task::Task;
use wiggum_core::verdict::{checks_for, own_checks};
use wiggum_core::weaken;
use wiggum_workspace::beneath;
use wiggum_workspace::crash;
use wiggum_workspace::git::{Change, Entry, Git};

use crate::copies::Copies;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::tree::flag;

/// A larger file defines nothing that we could read.
const MAX_TEXT: u64 = 1 << 20;

/// How git writes that a file is a symbolic link.
pub(crate) const LINK_MODE: u32 = 0o120_000;

/// What is said of a check's definition that the attempt wrote itself.
const WRITTEN: &str = "new: the check could not run before";

/// What is said of tests that the attempt wrote where there were none.
const FIRST_TESTS: &str = "new: the check ran no tests before";

/// What is said of tests that a task asked for and that say nothing.
const IDLE_TESTS: &str = "new tests that cannot fail";

/// What an attempt changed of its checks, and the commands to run again.
#[derive(Default)]
pub(crate) struct Redefinition {
    pub(crate) former: Former,
    pub(crate) checks: Vec<String>,
    /// The checks that could not run before, and what the attempt wrote to make them run.
    pub(crate) written_checks: Vec<String>,
    written: BTreeMap<String, &'static str>,
}

impl Redefinition {
    pub(crate) fn flags(&self) -> impl Iterator<Item = Flag> {
        let changed = self.former.changes.iter().map(|change| {
            let kind = if change.product { FlagKind::CheckedProduct } else { FlagKind::CheckRedefined };
            flag(kind, &change.path, &change.what)
        });
        let written = self.written.iter().map(|(path, why)| flag(FlagKind::CheckRedefined, path, why));
        changed.chain(written)
    }
}

impl Engine<'_> {
    /// What of the staged changes defines the checks of the attempt.
    pub(crate) fn redefinition(
        &self,
        git: Option<&Git>,
        open: &OpenIteration,
        staged: &[Entry],
    ) -> Result<Redefinition, EngineError> {
        let Some(task) = self.journal.state.spec_of(open).filter(|_| !staged.is_empty()) else {
            return Ok(Redefinition::default());
        };
        let policy = &self.journal.state.policy;
        let all = checks_for(policy, task);
        let (root, copies) = (self.settings.workspace(), self.copies.as_ref());
        let before = FilesBefore { git, copies, root, staged, files: OnceCell::new() };
        let changed: Vec<ChangedFile<'_>> = staged
            .iter()
            .map(|entry| ChangedFile {
                path: &entry.path,
                existed: entry.change != Change::Added,
                exists: entry.change != Change::Deleted,
            })
            .collect();
        let after = |path: &str| read_text(&self.settings.workspace().join(path));
        let of = |commands: &[String]| Definition::of(commands.iter().map(String::as_str), &before);
        let commands: Vec<String> = all.iter().map(|check| check.command.clone()).collect();
        let whole = of(&commands);
        let former = whole.former(&changed, &before, &after, task);
        let (mut written_checks, mut written) = (Vec::new(), BTreeMap::new());
        let is_any_written = !whole.written(&changed, task).is_empty();
        for command in commands.iter().filter(|_| is_any_written) {
            let files = of(std::slice::from_ref(command)).written(&changed, task);
            if !files.is_empty() {
                written_checks.push(command.clone());
            }
            written.extend(files.into_iter().map(|path| (path.to_owned(), WRITTEN)));
        }
        if let Some((files, why)) = self.own_tests(task, &changed, &after) {
            let says_nothing = |command: &String| {
                let had_none = had_no_tests(&self.journal.state, command);
                (why == IDLE_TESTS || had_none) && of(std::slice::from_ref(command)).runs_tests()
            };
            let idle: Vec<String> =
                commands.iter().filter(|command| says_nothing(command)).cloned().collect();
            if !idle.is_empty() {
                written.extend(files.into_iter().map(|path| (path, why)));
                written_checks.extend(idle);
            }
        }
        if !former.is_redefined() {
            return Ok(Redefinition { former, checks: Vec::new(), written_checks, written });
        }
        let own: Vec<String> = own_checks(task).into_iter().map(|check| check.command).collect();
        let concerns = |command: &String| {
            !own.contains(command) || of(std::slice::from_ref(command)).concerns(command, &changed)
        };
        let loops = policy.checks.verify.iter().filter(|command| {
            of(std::slice::from_ref(*command)).former(&changed, &before, &after, task).is_redefined()
        });
        let checks = loops.chain(own.iter().filter(|command| concerns(command))).cloned().collect();
        Ok(Redefinition { former, checks, written_checks, written })
    }

    /// Tests that the attempt wrote by which it cannot be judged: the first ones where nobody asked for any, or
    /// those that were asked for and cannot fail.
    fn own_tests(
        &self,
        task: &Task,
        changed: &[ChangedFile<'_>],
        after: &dyn Fn(&str) -> Option<String>,
    ) -> Option<(Vec<String>, &'static str)> {
        let tests = changed.iter().filter(|file| file.exists && is_test_file(file.path));
        let (old, new): (Vec<&ChangedFile<'_>>, Vec<&ChangedFile<'_>>) = tests.partition(|file| file.existed);
        if new.is_empty() || !old.is_empty() {
            return None;
        }
        let can_fail = |path: &str| after(path).is_none_or(|text| weaken::can_fail(path, &text));
        let why = match wants_tests(task) {
            true if new.iter().any(|file| can_fail(file.path)) => return None,
            true => IDLE_TESTS,
            false => FIRST_TESTS,
        };
        Some((new.into_iter().map(|file| file.path.to_owned()).collect(), why))
    }

    /// Puts the former definition in place, unless it is.
    pub(crate) fn put_former_in_place(&mut self) -> Result<(), EngineError> {
        if self.git.is_none() && !self.former_in_place {
            self.put_copies_in_place()?;
            self.former_in_place = true;
            crash::point("former definition in place");
        }
        let (Some(git), Some(open)) = (&self.git, self.journal.state.open.here()) else { return Ok(()) };
        let Some(base) = open.base.as_deref().filter(|_| !self.former_in_place) else { return Ok(()) };
        let files = &self.redefinition.former.files;
        let as_before: Vec<&str> =
            files.iter().filter(|(_, put)| *put == Put::AsBefore).map(|(path, _)| path.as_str()).collect();
        git.restore_files(base, &as_before)?;
        let root = self.settings.workspace();
        for (path, put) in files {
            let written = match put {
                Put::AsBefore => Ok(()),
                Put::Gone => remove(root, path),
                Put::Text(text) => {
                    beneath::replace(root, path, text.as_bytes()).map_err(std::io::Error::other)
                }
                Put::Younger => {
                    make_younger(root, path);
                    Ok(())
                }
            };
            written.map_err(|source| EngineError::Write { path: root.join(path), source })?;
        }
        self.former_in_place = true;
        crash::point("former definition in place");
        Ok(())
    }

    /// The tree is the attempt's again.
    pub(crate) fn put_former_away(&mut self) -> Result<(), EngineError> {
        if std::mem::take(&mut self.former_in_place) {
            self.put_copies_away()?;
            self.return_to_taken_tree()?;
            self.make_again();
            crash::point("former definition put away");
        }
        Ok(())
    }

    /// What make made by the former definition is not done by the attempt's own.
    fn make_again(&self) {
        let files = self.redefinition.former.files.iter().filter(|(_, put)| *put == Put::Younger);
        for (path, _) in files.filter(|_| self.git.is_some()) {
            make_younger(self.settings.workspace(), path);
        }
    }

    /// The files as they are now, for whoever asks what defines a check.
    pub(crate) fn files_now(&self) -> FilesNow {
        FilesNow::new(self.settings.workspace())
    }
}

/// A file behind a link, or that is gone by now, keeps its age.
fn make_younger(root: &Path, path: &str) {
    drop(beneath::touch(root, path));
}

/// Is it known of a check that it ran without a single test before?
fn had_no_tests(state: &Loop, command: &str) -> bool {
    state.tests.get(command) == Some(&0)
}

/// Removes a file, and the directories that it leaves empty: a directory can have the name of a target.
pub(crate) fn remove(root: &Path, path: &str) -> std::io::Result<()> {
    let path = root.join(path);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let above = path.ancestors().skip(1).take_while(|directory| *directory != root);
    for directory in above {
        match fs::remove_dir(directory) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The work tree as it was before the attempt: what it changed is read from git, the rest as it lies there.
struct FilesBefore<'a> {
    git: Option<&'a Git>,
    /// What was there, where no git tells.
    copies: Option<&'a Copies>,
    root: &'a Path,
    staged: &'a [Entry],
    /// All files, once somebody asked for them.
    files: OnceCell<Vec<String>>,
}

impl FilesBefore<'_> {
    /// What git has of a changed file.
    fn blob(&self, entry: &Entry) -> Option<String> {
        let Some(git) = self.git else {
            let kept = self.copies?.text(&entry.path).map(str::to_owned);
            // Of product there is no copy; what it is now says as much of the check.
            return kept.or_else(|| read_text(&self.root.join(&entry.path)));
        };
        let blob = entry.blob_before.as_deref().filter(|_| entry.change != Change::Added)?;
        git.read_blobs(&[Some(blob)]).ok()?.pop()?
    }
}

/// Was a changed file a symbolic link before?
fn was_link(entry: &Entry) -> bool {
    let is_link = entry.mode == LINK_MODE;
    match entry.change {
        Change::Modified | Change::Deleted => is_link,
        // The mode is that of the newer side.
        Change::TypeChanged => !is_link,
        Change::Added | Change::Unmerged => false,
    }
}

impl Tree for FilesBefore<'_> {
    fn read(&self, path: &str) -> Option<String> {
        match self.staged.iter().find(|entry| entry.path == path) {
            Some(entry) if self.git.is_none() && entry.change == Change::Added => None,
            Some(entry) => self.blob(entry).filter(|_| !was_link(entry)),
            None => read_text(&self.root.join(path)),
        }
    }

    fn link(&self, path: &str) -> Option<String> {
        match self.staged.iter().find(|entry| entry.path == path) {
            Some(entry) => self.blob(entry).filter(|_| was_link(entry)),
            None => read_link(&self.root.join(path)),
        }
    }

    fn root(&self) -> &str {
        self.root.to_str().unwrap_or_default()
    }

    fn search_path(&self) -> Vec<String> {
        search_path_inside(self.root)
    }

    fn files(&self) -> Vec<String> {
        let found = self.files.get_or_init(|| {
            let mut files = all_files(self.root);
            let added = |path: &String| {
                self.staged.iter().any(|entry| entry.change == Change::Added && entry.path == *path)
            };
            files.retain(|path| !added(path));
            let deleted = self.staged.iter().filter(|entry| entry.change == Change::Deleted);
            files.extend(deleted.map(|entry| entry.path.clone()));
            files.sort_unstable();
            files
        });
        found.clone()
    }
}

/// The files of a work tree as they are.
pub struct FilesNow {
    root: PathBuf,
}

impl FilesNow {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
}

impl Tree for FilesNow {
    fn read(&self, path: &str) -> Option<String> {
        read_text(&self.root.join(path))
    }

    fn link(&self, path: &str) -> Option<String> {
        read_link(&self.root.join(path))
    }

    fn root(&self) -> &str {
        self.root.to_str().unwrap_or_default()
    }

    fn search_path(&self) -> Vec<String> {
        search_path_inside(&self.root)
    }

    fn files(&self) -> Vec<String> {
        all_files(&self.root)
    }
}

/// The directories of `PATH` that lie in a work tree, as they are called from its root. Relative ones are meant from
/// where a check runs.
fn search_path_inside(root: &Path) -> Vec<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let inside = std::env::split_paths(&path).filter_map(|directory| {
        let directory = match directory.strip_prefix(root) {
            Ok(inside) => inside.to_owned(),
            Err(_) if directory.is_relative() => directory,
            Err(_) => return None,
        };
        let name = directory.to_str()?.trim_start_matches("./").trim_end_matches('/').to_owned();
        (!matches!(name.as_str(), "" | "." | "..") && !name.starts_with("../")).then_some(name)
    });
    inside.collect()
}

/// Directories that hold no files of a project itself.
const OTHERS: [&str; 9] =
    [".git", ".wiggum", "node_modules", "target", ".venv", "venv", "__pycache__", ".tox", ".cache"];

/// More than people look through; a project with more files is read in part.
const MAX_FILES: usize = 20_000;

/// The paths of the files below a directory, in their order.
fn all_files(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![String::new()];
    while let Some(directory) = todo.pop() {
        let Ok(entries) = fs::read_dir(root.join(&directory)) else { continue };
        for entry in entries.flatten() {
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
            let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
            match kind.is_dir() {
                true if OTHERS.contains(&name.as_str()) => {}
                true => todo.push(path),
                false => found.push(path),
            }
        }
        if found.len() > MAX_FILES {
            break;
        }
    }
    found.sort_unstable();
    found
}

/// Plain files of a moderate size; whatever else lies there defines nothing.
pub(crate) fn read_text(path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > MAX_TEXT {
        return None;
    }
    beneath::text_of(path).ok()
}

fn read_link(path: &Path) -> Option<String> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_symlink)?;
    fs::read_link(path).ok()?.to_str().map(str::to_owned)
}
