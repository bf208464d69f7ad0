//! Another work tree of the user's repository that the repository knows nothing of: git is told where it is.

use std::path::Path;
use std::sync::Arc;

use super::{Git, GitError, literal, remove_if_there};

impl Git {
    /// The same repository with its files in `root`, which need not exist, and an index of their own.
    #[must_use]
    pub fn elsewhere(&self, root: &Path, index: &Path) -> Self {
        let mut other = self.clone().with_index(index);
        root.clone_into(&mut other.root);
        other.env.push(("GIT_DIR".into(), self.git_dir.clone().into()));
        other.env.push(("GIT_WORK_TREE".into(), root.into()));
        if let Some(confinement) = &self.confinement {
            let mut wider = confinement.as_ref().clone();
            wider.writable.extend([root.to_owned()]);
            wider.writable.extend(index.parent().map(Path::to_owned));
            other.confinement = Some(Arc::new(wider));
        }
        other
    }

    /// Makes the files those of a commit or tree, and nothing else: what git ignores goes too.
    pub fn check_out_clean(&self, tree: &str) -> Result<(), GitError> {
        std::fs::create_dir_all(&self.root)
            .map_err(|source| GitError::File { path: self.root.clone(), source })?;
        // Whoever worked there may have left anything in the place of a file.
        let index = self.index_path();
        remove_if_there(&index).map_err(|source| GitError::File { path: index, source })?;
        self.run(&["read-tree", tree])?;
        self.run(&["clean", "-ffdxq"])?;
        self.run(&["checkout-index", "--all", "--force", "--quiet", "--index"])
    }

    /// The submodules of a checkout elsewhere: for each the user's, and the checkout's, with the commit to be checked
    /// out. Those that the user has not got are left out, as in a clone.
    pub fn submodules_elsewhere(&self, user: &Self) -> Result<Vec<(Self, String)>, GitError> {
        let mut found = Vec::new();
        for (number, path) in self.links()?.into_iter().enumerate() {
            let here = user.root.join(&path);
            let listed = self.line(&["ls-files", "-s", "--", &literal(&path)])?;
            let commit = listed.split(' ').nth(1).unwrap_or_default().to_owned();
            if !here.join(".git").exists() || commit.is_empty() {
                continue;
            }
            let mut module = Self::new(&here, self.marker.clone()).with_env(user.env.clone());
            module.confinement.clone_from(&self.confinement);
            let mut index = self.index_path().into_os_string();
            index.push(format!(".{number}"));
            found.push((module.elsewhere(&self.root.join(&path), Path::new(&index)), commit));
        }
        Ok(found)
    }
}
