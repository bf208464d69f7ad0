//! Files with a role of their own: what is protected, what belongs to the loop rather than to a
//! task, and what is obeyed later, of which an agent's version is not in force before a person took it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use globset::{Glob, GlobSet, GlobSetBuilder};
use wiggum_core::event::{Flag, FlagKind};
use wiggum_core::obeyed;
use wiggum_workspace::beneath::{self, Links};
use wiggum_workspace::git::{Git, GitError};
use wiggum_workspace::paths::{remove_temporary, remove_tree, write_atomic};

use crate::engine::Settings;
use crate::error::EngineError;
use crate::state_dir::StateDir;
use crate::tree::flag;

/// Paths with a role of their own.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) protected: Arc<GlobSet>,
    /// Paths that never belong to an attempt's work.
    pub(crate) excluded: Vec<String>,
    pub(crate) backlog_tracked: bool,
    /// It is staged, and in no commit yet.
    pub(crate) backlog_added: bool,
    /// Submodules in which files were not committed when the run began.
    pub(crate) uncommitted_inside: Vec<String>,
    own: Vec<OwnFile>,
    /// It is known what was there before the attempt that may lie in the workspace.
    is_noted: bool,
}

/// A file that is obeyed by more than an attempt's own agent, as it was before that agent ran.
#[derive(Debug)]
pub(crate) struct OwnFile {
    pub(crate) name: String,
    path: PathBuf,
    is_prompt: bool,
    before: Option<Vec<u8>>,
}

/// Where the path of the prompt in use is kept.
const PROMPT_PATH: &str = "prompt-path";

/// There while the work of an attempt may lie in the workspace.
const IN_TREE: &str = "in-tree";

/// More than anybody writes into such a file.
const MOST: usize = 16 * 1024 * 1024;

/// The prompt that the engine before us worked with.
pub(crate) fn prompt_in_use(copies: &Path) -> Option<PathBuf> {
    let path = beneath::text_of(&copies.join(PROMPT_PATH)).ok()?;
    (!path.is_empty()).then(|| path.into())
}

/// What a file says that is in force, for whoever reads it while the work of an attempt may lie in the
/// workspace, also after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InForce {
    /// What is there now.
    Present,
    /// What was there before the attempt changed it; nothing if the attempt made the file.
    Former(Option<Vec<u8>>),
}

/// What is in force of the file `name` in the workspace of these loops.
pub fn in_force(dir: &StateDir, workspace: &Path, name: &str) -> InForce {
    let now = read(&workspace.join(name));
    let mut under_way = dir.guard_dirs().into_iter().filter(|copies| copies.join(IN_TREE).exists());
    let former = under_way.find_map(|copies| {
        let before = read(&copy_in(&copies, name));
        (before != now).then_some(before)
    });
    former.map_or(InForce::Present, InForce::Former)
}

/// By name, since another prompt may be in use after a crash.
fn copy_in(copies: &Path, name: &str) -> PathBuf {
    copies.join(format!("own-{}", name.replace(['/', '\\'], "-")))
}

/// What is said there. A pipe or a device is something, but nothing that anybody wrote before.
fn read(path: &Path) -> Option<Vec<u8>> {
    match beneath::read_plain(path, Links::Follow, MOST) {
        Ok(bytes) => Some(bytes),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        Err(_) if path.is_dir() => None,
        Err(error) => Some(error.to_string().into_bytes()),
    }
}

/// The last that was made: loops of one process mostly have the same patterns, and it is large.
static MATCHER: Mutex<Option<(Vec<String>, Arc<GlobSet>)>> = Mutex::new(None);

fn matcher(patterns: &[String]) -> Result<Arc<GlobSet>, EngineError> {
    let mut last = MATCHER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, matcher)) = last.as_ref().filter(|(of, _)| of == patterns) {
        return Ok(Arc::clone(matcher));
    }
    let mut globs = GlobSetBuilder::new();
    for pattern in patterns {
        let glob =
            Glob::new(pattern).map_err(|source| EngineError::Glob { pattern: pattern.clone(), source })?;
        globs.add(glob);
    }
    let matcher = globs.build().map_err(|source| EngineError::Glob { pattern: String::new(), source })?;
    let matcher = Arc::new(matcher);
    *last = Some((patterns.to_vec(), Arc::clone(&matcher)));
    Ok(matcher)
}

impl Watched {
    pub(crate) fn new(settings: &Settings) -> Result<Self, EngineError> {
        let protected = matcher(&settings.policy.protect.paths)?;
        let workspace = settings.workspace();
        let obeyed = obeyed::in_workspace().map(|name| (workspace.join(name), false));
        let own = settings.prompt.iter().map(|path| (path.clone(), true)).chain(obeyed);
        let own = own.map(|(path, is_prompt)| OwnFile {
            name: relative(workspace, &path),
            path,
            is_prompt,
            before: None,
        });
        Ok(Self {
            protected,
            excluded: Vec::new(),
            backlog_tracked: false,
            backlog_added: false,
            uncommitted_inside: Vec::new(),
            own: own.collect(),
            is_noted: false,
        })
    }

    /// Remembers these files as they are before the agent runs, also for whoever comes after a crash.
    pub(crate) fn note_own_files(&mut self, copies: &Path) -> io::Result<()> {
        fs::create_dir_all(copies)?;
        let prompt = self.own.iter().find(|own| own.is_prompt).map(|own| own.path.clone());
        if prompt != prompt_in_use(copies) {
            let path = prompt.map(PathBuf::into_os_string).unwrap_or_default();
            put(&copies.join(PROMPT_PATH), path.as_encoded_bytes())?;
        }
        for own in &mut self.own {
            let now = read(&own.path);
            if self.is_noted && now == own.before {
                continue;
            }
            let copy = copy_in(copies, &own.name);
            match &now {
                Some(bytes) if read(&copy).as_ref() != Some(bytes) => put(&copy, bytes)?,
                None if copy.exists() => fs::remove_file(&copy)?,
                Some(_) | None => {}
            }
            own.before = now;
        }
        self.is_noted = true;
        fs::write(copies.join(IN_TREE), "")
    }

    /// No attempt lies in the workspace any more: what is there is in force.
    pub(crate) fn forget_attempt(copies: &Path) -> io::Result<()> {
        match fs::remove_file(copies.join(IN_TREE)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// What an engine before us remembered of an attempt that may still lie there.
    pub(crate) fn recall_own_files(&mut self, copies: &Path) {
        self.is_noted = copies.join(IN_TREE).exists();
        for own in &mut self.own {
            own.before = read(&copy_in(copies, &own.name));
        }
    }

    pub(crate) fn recalled(&self, name: &str) -> Option<&Vec<u8>> {
        self.own.iter().find(|own| own.name == name)?.before.as_ref()
    }

    /// What the prompt said before an attempt that still lies in the workspace.
    pub(crate) fn prompt_before(&self) -> Option<&Vec<u8>> {
        self.own.iter().find(|own| own.is_prompt)?.before.as_ref()
    }

    /// Those of them that have to be put back: no commit of ours would have them, so that nobody could be
    /// asked about them, or the next attempt needs them.
    fn changed_own_files(&self, git: Option<&Git>) -> Result<Vec<&OwnFile>, EngineError> {
        let mut changed = Vec::new();
        // What nobody looked at before cannot be put back.
        for own in self.own.iter().filter(|_| self.is_noted) {
            let now = read(&own.path);
            if now == own.before {
                continue;
            }
            let prompt_is_gone = own.is_prompt && now.is_none();
            let is_apart = match git {
                None => true,
                Some(git) => {
                    let seen = as_git_sees(git.root(), &own.name);
                    let ignored = || Ok::<_, GitError>(git.ignored(seen)? && !git.is_tracked(seen)?);
                    self.excluded.contains(&own.name) || ignored()?
                }
            };
            if prompt_is_gone || is_apart {
                changed.push(own);
            }
        }
        Ok(changed)
    }

    pub(crate) fn touched_own_files(&self, git: Option<&Git>) -> Result<Vec<Flag>, EngineError> {
        let changed = self.changed_own_files(git)?;
        Ok(changed.into_iter().map(|own| flag(FlagKind::ProtectedPath, &own.name, "put back")).collect())
    }

    /// The agent's version is kept beside the copies.
    pub(crate) fn put_back_own_files(
        &self,
        git: Option<&Git>,
        workspace: &Path,
        copies: &Path,
    ) -> Result<(), EngineError> {
        for own in self.changed_own_files(git)? {
            own.put_back(workspace, copies)
                .map_err(|source| EngineError::Write { path: own.path.clone(), source })?;
        }
        Ok(())
    }

    pub(crate) fn excluded(&self) -> Vec<&str> {
        self.excluded.iter().map(String::as_str).collect()
    }
}

impl OwnFile {
    fn put_back(&self, workspace: &Path, copies: &Path) -> io::Result<()> {
        if let Some(now) = read(&self.path) {
            put(&copies.join(format!("refused-{}", self.name.replace(['/', '\\'], "-"))), &now)?;
        }
        if self.path.strip_prefix(workspace).is_err() {
            return self.before.as_ref().map_or(Ok(()), |before| put(&self.path, before));
        }
        let seen = as_git_sees(workspace, &self.name);
        if seen != self.name {
            fs::remove_file(workspace.join(seen))?;
        }
        match fs::symlink_metadata(&self.path) {
            Ok(found) if found.is_dir() => remove_tree(&self.path)?,
            Ok(_) if self.before.is_none() => fs::remove_file(&self.path)?,
            Ok(_) | Err(_) => {}
        }
        match &self.before {
            Some(before) => beneath::replace(workspace, &self.name, before).map_err(io::Error::other),
            None => Ok(()),
        }
    }
}

/// A link in place of a folder is all that git sees of what seems to be below it.
fn as_git_sees<'a>(root: &Path, name: &'a str) -> &'a str {
    let mut folders = name.match_indices('/').map(|(at, _)| &name[..at]);
    folders.find(|folder| root.join(folder).is_symlink()).unwrap_or(name)
}

fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    remove_temporary(path)?;
    write_atomic(path, bytes)
}

/// A path relative to the workspace where it lies inside, as git writes it.
pub(crate) fn relative(workspace: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(workspace).unwrap_or(path);
    inside.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
