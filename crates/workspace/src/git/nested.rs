//! Repositories inside the work tree that are no submodules.
//!
//! Git would commit one as a bare link to a commit that nobody else has, and would run what its own
//! configuration names whenever it looks at it. Programs that set up a project often leave one behind.
//! Its files are part of the work, so what makes it a repository is taken away.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Git, GitError, index, owned, text};

/// So many repositories are taken apart at a time; an agent that makes more has to look after them itself.
const MOST: usize = 100;

impl Git {
    /// Puts the whole work tree into the index, but for these paths. What makes the repositories inside it
    /// repositories is moved into the git directory; says which they were and where that is.
    pub fn stage_all(&self, exclude: &[&str]) -> Result<Vec<(String, PathBuf)>, GitError> {
        let known = self.links()?;
        let mut dissolved = Vec::new();
        loop {
            let mut found = match self.add_all(exclude) {
                Ok(()) => self.links()?,
                // One without a commit cannot be added at all.
                Err(GitError::Failed { message, .. }) if without_commit(&message).is_some() => {
                    without_commit(&message).into_iter().collect()
                }
                Err(error) => return Err(error),
            };
            found.retain(|path| !known.contains(path));
            if !found.is_empty() {
                let submodules = self.submodule_paths();
                found.retain(|path| !submodules.contains(path));
            }
            if found.is_empty() || dissolved.len() >= MOST {
                return Ok(dissolved);
            }
            for path in found {
                let to = self.dissolve(&path)?;
                dissolved.push((path, to));
            }
        }
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
        let text = fs::read_to_string(self.root.join(".gitmodules")).unwrap_or_default();
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
