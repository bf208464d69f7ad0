//! A repository of an agent's own: it stands in for the user's while an agent or a check runs.
//!
//! It is made anew each time: HEAD, the branches and tags of that moment, an index, the rules that the
//! user's repository has. Objects are borrowed from the user's, read-only. Whoever works in it may do
//! with it what they like: commits, hooks, configuration and references stay there, and nothing of
//! ours ever runs in it. What comes back is the work tree alone.
//!
//! It is mounted over the real one ([`Private::mounts`]), so it needs a sandbox that can do that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::beneath::text_of;

use super::{Git, GitError, Head, copy, head, references, remove_if_there, text};
use crate::paths::remove_tree;
use crate::sandbox::Mount;

/// Where the stand-in of one work tree is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Private {
    git_dir: PathBuf,
    /// What is needed to mount it over the real one.
    mounted: Option<Mounted>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mounted {
    /// Where the user's objects are seen.
    borrowed: PathBuf,
    /// What stands in for the file `.git` of a linked work tree.
    git_file: PathBuf,
}

impl Private {
    /// To be mounted over the real one. `directory` is ours alone: nobody else writes to it but through what is
    /// mounted of it.
    pub fn mounted(directory: &Path) -> Self {
        let mounted = Mounted { borrowed: directory.join("borrowed"), git_file: directory.join("git-file") };
        Self { git_dir: directory.join("git"), mounted: Some(mounted) }
    }

    /// In a work tree of our own, where it is simply `.git`.
    pub fn inside(root: &Path) -> Self {
        Self { git_dir: root.join(".git"), mounted: None }
    }

    /// Can it stand in for this repository? Repositories inside of it (submodules) have directories of their
    /// own in it, to which an agent may have to write; filters see the repository that they run for.
    pub fn fits(git: &Git) -> Result<bool, GitError> {
        Ok(Self::still_fits(git)
            && !git.root.join(".git").is_symlink()
            && !git.names_programs()?
            && git.links()?.is_empty())
    }

    /// The part of the same question whose answer may change while a loop runs.
    pub fn still_fits(git: &Git) -> bool {
        !git.common_dir.join("modules").is_dir() && !git.root.join(".gitmodules").exists()
    }

    /// An agent may have added a submodule, whose repository is then in this one. It is moved to the user's, with
    /// nothing in it that git would obey.
    pub fn hand_over_submodules(&self, git: &Git) -> Result<(), GitError> {
        let from = self.git_dir.join("modules");
        let to = git.common_dir.join("modules");
        if !is_directory(&from) || to.exists() {
            return Ok(());
        }
        fs::rename(&from, &to).map_err(|source| GitError::File { path: from, source })?;
        disarm(&to).map_err(|source| GitError::File { path: to, source })
    }

    /// Makes it anew, with HEAD where it is said to be and a copy of that index.
    pub fn make(&self, git: &Git, head: &Head, index: &Path) -> Result<(), GitError> {
        let to = &self.git_dir;
        let on = |path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| GitError::File { path, source }
        };
        remove_tree(to).map_err(on(to))?;
        for name in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"] {
            let directory = to.join(name);
            fs::create_dir_all(&directory).map_err(on(&directory))?;
        }
        self.write("config", &git.configuration()?.for_another_repository())?;
        self.write("objects/info/alternates", &self.alternates(git))?;
        self.write("packed-refs", &packed_references(git, head)?)?;
        self.write("HEAD", &head_text(head))?;
        for (from, name) in [
            (git.common_dir.join("info/exclude"), "info/exclude"),
            (git.common_dir.join("info/attributes"), "info/attributes"),
            (git.git_dir.join("info/sparse-checkout"), "info/sparse-checkout"),
            (git.common_dir.join("shallow"), "shallow"),
            (index.to_owned(), "index"),
        ] {
            copy_if_there(&from, &to.join(name)).map_err(on(&from))?;
        }
        self.copy_shared_indexes(git)?;
        self.copy_hooks(git)?;
        let Some(Mounted { borrowed, git_file }) = &self.mounted else { return Ok(()) };
        fs::create_dir_all(borrowed).map_err(on(borrowed))?;
        fs::write(git_file, format!("gitdir: {}\n", to.display())).map_err(on(git_file))
    }

    /// Another index than it was made with: the tree that is about to be checked, say.
    pub fn put_index(&self, index: &Path) -> Result<(), GitError> {
        let to = self.git_dir.join("index");
        remove_if_there(&to)
            .and_then(|()| copy_if_there(index, &to))
            .map_err(|source| GitError::File { path: to, source })
    }

    /// What is to be seen where. Later ones lie over earlier ones.
    pub fn mounts(&self, git: &Git) -> Vec<Mount> {
        let Some(Mounted { borrowed, git_file }) = &self.mounted else { return Vec::new() };
        let dot_git = git.root.join(".git");
        let own = |at: &Path| Mount { from: self.git_dir.clone(), at: at.to_owned(), writable: true };
        let read_only =
            |from: &Path, at: &Path| Mount { from: from.to_owned(), at: at.to_owned(), writable: false };
        let mut mounts = vec![read_only(&git.common_dir.join("objects"), borrowed)];
        if dot_git.is_dir() {
            mounts.push(own(&dot_git));
        } else {
            mounts.push(own(&self.git_dir));
            mounts.push(read_only(git_file, &dot_git));
        }
        mounts
    }

    /// Where HEAD is now. Whoever worked there may have written anything, so this is good for telling people.
    pub fn head(&self) -> Option<Head> {
        head::read_head(&self.git_dir, &self.git_dir)
    }

    fn write(&self, name: &str, content: &str) -> Result<(), GitError> {
        let path = self.git_dir.join(name);
        fs::write(&path, content).map_err(|source| GitError::File { path, source })
    }

    /// The user's objects, and those that they borrow themselves.
    fn alternates(&self, git: &Git) -> String {
        let objects = git.common_dir.join("objects");
        let further = text_of(&objects.join("info/alternates")).unwrap_or_default();
        let further = further.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let first = self.mounted.as_ref().map_or(&objects, |mounted| &mounted.borrowed);
        let all = [first.clone()].into_iter().chain(further.map(|line| objects.join(line)));
        all.map(|path| format!("{}\n", path.display())).collect()
    }

    /// The user's hooks run for whoever commits here. Copies, since programs that set a project up write there.
    fn copy_hooks(&self, git: &Git) -> Result<(), GitError> {
        let hooks = git.common_dir.join("hooks");
        let on_hooks = |source| GitError::File { path: hooks.clone(), source };
        let entries = match fs::read_dir(&hooks) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(on_hooks)?,
        };
        for entry in entries {
            let entry = entry.map_err(on_hooks)?;
            let is_hook = entry.path().is_file() && !entry.file_name().to_string_lossy().ends_with(".sample");
            if is_hook {
                fs::copy(entry.path(), self.git_dir.join("hooks").join(entry.file_name()))
                    .map_err(on_hooks)?;
            }
        }
        Ok(())
    }

    /// An index may be split: its larger part is then in a file that it names.
    fn copy_shared_indexes(&self, git: &Git) -> Result<(), GitError> {
        let on_dir = |source| GitError::File { path: git.git_dir.clone(), source };
        for entry in fs::read_dir(&git.git_dir).map_err(on_dir)? {
            let entry = entry.map_err(on_dir)?;
            if entry.file_name().to_string_lossy().starts_with("sharedindex.") {
                let to = self.git_dir.join(entry.file_name());
                copy_if_there(&entry.path(), &to)
                    .map_err(|source| GitError::File { path: entry.path(), source })?;
            }
        }
        Ok(())
    }
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Takes away what git obeys in the repositories below a directory, and says itself where their work trees are.
fn disarm(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if !is_directory(&path) {
            fs::remove_file(&path)?;
        } else if !path.join("HEAD").exists() {
            disarm(&path)?;
        } else {
            let work_tree = submodule_work_tree(&text_of(&path.join("config")).unwrap_or_default());
            for name in ["hooks", "info", "modules", "objects/info", "worktrees"] {
                remove_tree(&path.join(name))?;
            }
            for name in ["config.worktree", "commondir", "config"] {
                remove_if_there(&path.join(name))?;
            }
            let text = format!("[core]\n\trepositoryformatversion = 0\n\tbare = false\n{work_tree}");
            fs::write(path.join("config"), text)?;
        }
    }
    Ok(())
}

/// The line that says where a submodule's work tree is, if it leads into the work tree around it and to nowhere else.
fn submodule_work_tree(config: &str) -> String {
    let value = config.lines().find_map(|line| line.trim().strip_prefix("worktree = "));
    let inside = |value: &&str| {
        let rest = value.trim_start_matches("../");
        let goes_up = (value.len() - rest.len()) / 3;
        goes_up >= 3 && !rest.split('/').any(|part| part == ".." || part == ".git" || part.is_empty())
    };
    let plain = |value: &&str| !value.contains(['"', '\\', '\n', '#', ';']);
    value.filter(inside).filter(plain).map_or_else(String::new, |value| format!("\tworktree = {value}\n"))
}

fn head_text(head: &Head) -> String {
    match (&head.branch, &head.commit) {
        (Some(branch), _) => format!("ref: refs/heads/{branch}\n"),
        (None, Some(commit)) => format!("{commit}\n"),
        (None, None) => "ref: refs/heads/main\n".to_owned(),
    }
}

/// Branches, tags and what was fetched, with the branch at work where HEAD is said to be.
fn packed_references(git: &Git, head: &Head) -> Result<String, GitError> {
    let mut found = if references::are_in_files(&git.common_dir) {
        references::read_below(&git.common_dir, &SEEN)?
    } else {
        let mut command = vec!["for-each-ref", "--format=%(objectname) %(refname)"];
        command.extend(SEEN);
        let listed = git.bytes(&command)?;
        let listed = text(&listed);
        let lines = listed.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(id, name)| (name.to_owned(), id.to_owned())).collect()
    };
    if let Some(branch) = &head.branch {
        let name = format!("refs/heads/{branch}");
        match &head.commit {
            Some(commit) => drop(found.insert(name, commit.clone())),
            None => drop(found.remove(&name)),
        }
    }
    Ok(found.into_iter().map(|(name, id)| format!("{id} {name}\n")).collect())
}

/// What of the user's references an agent may look at.
const SEEN: [&str; 4] = ["refs/heads/", "refs/tags/", "refs/remotes/", "refs/notes/"];

fn copy_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match copy(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        copied => copied,
    }
}
