//! Files with a role of their own: what is protected, what belongs to the loop rather than to a
//! task, and what of the user's set-up an agent must not change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use globset::{Glob, GlobSet, GlobSetBuilder};
use wiggum_core::event::{Flag, FlagKind};
use wiggum_workspace::paths::{remove_temporary, write_atomic};

use crate::engine::Settings;
use crate::error::EngineError;
use crate::tree::flag;

/// Paths with a role of their own.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) protected: Arc<GlobSet>,
    /// Paths that never belong to an attempt's work.
    pub(crate) excluded: Vec<String>,
    pub(crate) backlog_tracked: bool,
    /// Submodules in which files were not committed when the run began.
    pub(crate) uncommitted_inside: Vec<String>,
    own: Vec<OwnFile>,
}

/// A file of the user's set-up of the loop, as it was before the agent ran.
#[derive(Debug)]
pub(crate) struct OwnFile {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    is_prompt: bool,
    before: Option<Vec<u8>>,
}

/// Where the path of the prompt in use is kept.
const PROMPT_PATH: &str = "prompt-path";

/// The prompt that the engine before us worked with.
pub(crate) fn prompt_in_use(copies: &Path) -> Option<PathBuf> {
    let path = fs::read_to_string(copies.join(PROMPT_PATH)).ok()?;
    (!path.is_empty()).then(|| path.into())
}

impl OwnFile {
    fn copy_in(&self, copies: &Path) -> PathBuf {
        // By name, since another prompt may be in use after a crash.
        copies.join(format!("own-{}", self.name.replace(['/', '\\'], "-")))
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

/// The settings of loops in a workspace.
pub(crate) const CONFIGURATION: &str = "wiggum.toml";

impl Watched {
    pub(crate) fn new(settings: &Settings) -> Result<Self, EngineError> {
        let protected = matcher(&settings.policy.protect.paths)?;
        let configuration = settings.workspace().join(CONFIGURATION);
        let own = settings.prompt.iter().map(|path| (path, true)).chain([(&configuration, false)]);
        let own = own.map(|(path, is_prompt)| OwnFile {
            name: relative(settings.workspace(), path),
            path: path.clone(),
            is_prompt,
            before: None,
        });
        Ok(Self {
            protected,
            excluded: Vec::new(),
            backlog_tracked: false,
            uncommitted_inside: Vec::new(),
            own: own.collect(),
        })
    }

    /// Remembers the user's files as they are before the agent runs, also for whoever comes after a
    /// crash.
    pub(crate) fn note_own_files(&mut self, copies: &Path) -> std::io::Result<()> {
        let prompt = self.own.iter().find(|own| own.is_prompt).map(|own| own.path.clone());
        if prompt != prompt_in_use(copies) {
            fs::create_dir_all(copies)?;
            let path = prompt.map(PathBuf::into_os_string).unwrap_or_default();
            remove_temporary(&copies.join(PROMPT_PATH))?;
            write_atomic(&copies.join(PROMPT_PATH), path.as_encoded_bytes())?;
        }
        for own in &mut self.own {
            let now = fs::read(&own.path).ok();
            let copy = own.copy_in(copies);
            match &now {
                Some(bytes) if fs::read(&copy).ok().as_ref() != Some(bytes) => {
                    fs::create_dir_all(copies)?;
                    remove_temporary(&copy)?;
                    write_atomic(&copy, bytes)?;
                }
                None if copy.exists() => fs::remove_file(&copy)?,
                Some(_) | None => {}
            }
            own.before = now;
        }
        Ok(())
    }

    /// What an engine before us remembered.
    pub(crate) fn recall_own_files(&mut self, copies: &Path) {
        for own in &mut self.own {
            own.before = fs::read(own.copy_in(copies)).ok();
        }
    }

    pub(crate) fn recalled(&self, name: &str) -> Option<&Vec<u8>> {
        self.own.iter().find(|own| own.name == name)?.before.as_ref()
    }

    /// Those of them that have to be put back: no commit could bring them back, or the next attempt
    /// needs them.
    pub(crate) fn changed_own_files(&self) -> impl Iterator<Item = (&OwnFile, &Vec<u8>)> {
        self.own.iter().filter_map(|own| {
            let before = own.before.as_ref()?;
            let now = fs::read(&own.path).ok();
            let gone = now.is_none() && own.is_prompt;
            let due = gone || self.excluded.contains(&own.name);
            (now.as_ref() != Some(before) && due).then_some((own, before))
        })
    }

    pub(crate) fn touched_own_files(&self) -> Vec<Flag> {
        self.changed_own_files()
            .map(|(own, _)| flag(FlagKind::ProtectedPath, &own.name, "put back"))
            .collect()
    }

    pub(crate) fn put_back_own_files(&self) -> Result<(), EngineError> {
        for (own, before) in self.changed_own_files() {
            remove_temporary(&own.path)
                .and_then(|()| write_atomic(&own.path, before))
                .map_err(|source| EngineError::Write { path: own.path.clone(), source })?;
        }
        Ok(())
    }

    /// A prompt that is tracked may be part of a task's work, but not unseen.
    pub(crate) fn prompt_flag(&self) -> Option<Flag> {
        let own = self.own.iter().find(|own| own.is_prompt)?;
        (fs::read(&own.path).ok() != own.before)
            .then(|| flag(FlagKind::ProtectedPath, &own.name, "the prompt"))
    }

    pub(crate) fn excluded(&self) -> Vec<&str> {
        self.excluded.iter().map(String::as_str).collect()
    }
}

/// A path relative to the workspace where it lies inside, as git writes it.
pub(crate) fn relative(workspace: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(workspace).unwrap_or(path);
    inside.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
