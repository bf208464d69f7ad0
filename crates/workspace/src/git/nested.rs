//! Staging a work tree in which somebody left what git cannot commit.
//!
//! A repository inside the work tree that is no submodule: git would commit a bare link to a commit that
//! nobody else has, and would run what the configuration inside names whenever it looks at it. Programs
//! that set up a project often leave one behind. Its files are part of the work, so what makes it a
//! repository is taken away. And a pipe, socket or device in the place of a file: it is removed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::beneath::text_of;

use super::pipes::READ_BY_GIT;
use super::{Git, GitError, index, owned, text};

/// So many are dealt with at a time; an agent that makes more has to look after them itself.
const MOST: usize = 100;

/// Something in the work tree that could not be committed as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Odd {
    /// Plain files now; what made it a repository is kept there.
    Repository { path: String, kept: PathBuf },
    /// Neither file nor link nor directory, in the place of a file; it is gone.
    Special { path: String },
}

impl Git {
    /// Puts the whole work tree into the index, but for these paths; says what had to be dealt with for that.
    pub fn stage_all(&self, exclude: &[&str]) -> Result<Vec<Odd>, GitError> {
        let known = self.links()?;
        let mut found = self.remove_pipes()?;
        loop {
            let mut repositories = match self.add_all(exclude) {
                Ok(()) => self.links()?,
                Err(error) => {
                    let said = error.to_string();
                    if let Some(path) = special(&said).filter(|_| found.len() < MOST) {
                        found.push(self.remove_special(path)?);
                        continue;
                    }
                    // A repository without a commit cannot be added at all.
                    BTreeSet::from([without_commit(&said).ok_or(error)?])
                }
            };
            repositories.retain(|path| !known.contains(path));
            if !repositories.is_empty() {
                let submodules = self.submodule_paths();
                repositories.retain(|path| !submodules.contains(path));
            }
            if repositories.is_empty() || found.len() >= MOST {
                return Ok(found);
            }
            for path in repositories {
                let kept = self.dissolve(&path)?;
                found.push(Odd::Repository { path, kept });
            }
        }
    }

    /// A pipe or device at which git would wait, at the root of the work tree.
    pub fn special_file(&self) -> Option<&'static str> {
        self.special_files().next()
    }

    fn special_files(&self) -> impl Iterator<Item = &'static str> {
        READ_BY_GIT.into_iter().filter(|name| {
            let found = fs::symlink_metadata(self.root.join(name)).map(|found| found.file_type());
            found.is_ok_and(|kind| !kind.is_file() && !kind.is_dir() && !kind.is_symlink())
        })
    }

    /// Removes those, which would keep git waiting rather than make it say that it cannot add them.
    pub fn remove_pipes(&self) -> Result<Vec<Odd>, GitError> {
        self.special_files().map(|name| self.remove_special(name.to_owned())).collect()
    }

    fn remove_special(&self, path: String) -> Result<Odd, GitError> {
        let at = self.root.join(&path);
        let on_path = |source| GitError::File { path: at.clone(), source };
        let kind = fs::symlink_metadata(&at).map_err(on_path)?.file_type();
        if kind.is_file() || kind.is_dir() {
            let message = "git says that it is neither file nor link nor directory";
            return Err(on_path(std::io::Error::other(message)));
        }
        fs::remove_file(&at).map_err(on_path)?;
        Ok(Odd::Special { path })
    }

    /// The paths of the index that stand for commits of other repositories.
    pub(super) fn links(&self) -> Result<BTreeSet<String>, GitError> {
        if let Some(links) = index::links(&self.index_path()) {
            return Ok(links);
        }
        let listed = self.bytes(&["ls-files", "-s", "-z"])?;
        let listed = text(&listed);
        let lines = listed.split('\0').filter(|line| line.starts_with("160000 "));
        Ok(lines.filter_map(|line| line.split_once('\t')).map(|(_, path)| path.to_owned()).collect())
    }

    /// As `.gitmodules` names them; who wrote it does not matter here.
    fn submodule_paths(&self) -> BTreeSet<String> {
        let text = text_of(&self.root.join(".gitmodules")).unwrap_or_default();
        let values =
            text.lines().filter_map(|line| line.trim().strip_prefix("path")?.trim().strip_prefix('='));
        values.map(|value| value.trim().trim_matches('"').trim_end_matches('/').to_owned()).collect()
    }

    fn dissolve(&self, path: &str) -> Result<PathBuf, GitError> {
        let kept = self.common_dir.join("wiggum/nested");
        fs::create_dir_all(&kept).map_err(|source| GitError::File { path: kept.clone(), source })?;
        let to = free_name(&kept);
        let from = self.root.join(path).join(".git");
        fs::rename(&from, &to).map_err(|source| GitError::File { path: from, source })?;
        let mut command = owned(&["update-index", "--force-remove", "--"]);
        command.push(path.to_owned());
        self.run(&command)?;
        Ok(to)
    }
}

fn free_name(directory: &Path) -> PathBuf {
    let names = (1..).map(|number: u32| directory.join(number.to_string()));
    let mut free = names.filter(|path| fs::symlink_metadata(path).is_err());
    free.next().unwrap_or_else(|| directory.join("0"))
}

/// The repository that git says it cannot add because nothing is committed in it.
fn without_commit(message: &str) -> Option<String> {
    let (before, _) = message.split_once("' does not have a commit checked out")?;
    let (_, path) = before.rsplit_once("error: '")?;
    Some(path.trim_end_matches('/').to_owned())
}

/// The path that git says it cannot add because it is a pipe, a socket or a device.
fn special(message: &str) -> Option<String> {
    let (before, _) = message.split_once(": can only add regular files")?;
    let (_, path) = before.rsplit_once("error: ")?;
    Some(path.to_owned())
}
