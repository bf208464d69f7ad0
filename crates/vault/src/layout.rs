//! The folders of a vault, and the only door to its files: every path is checked on its way in.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use wiggum_workspace::beneath::{self, CreateError};
use wiggum_workspace::crash;
use wiggum_workspace::paths::file_id;

/// Where plans wait that nobody has approved.
pub(crate) const WAITING: [&str; 2] = ["Plans", "Pending_Approval"];
pub(crate) const APPROVED: &str = "Approved/Plans";
pub(crate) const IN_PROGRESS: &str = "In_Progress";
pub(crate) const NEEDS_ACTION: &str = "Needs_Action";
pub(crate) const LOGS: &str = "Logs/Plan_Execution";
pub(crate) const DONE: &str = "Done";
pub(crate) const DASHBOARD: &str = "Dashboard.md";

/// Folders in which a file means something, so that no step of a plan may create one there: an approval,
/// an answer, a record.
pub(crate) const CLOSED: [&str; 6] = ["Approved", IN_PROGRESS, NEEDS_ACTION, "Logs", DONE, DASHBOARD];

/// Nobody sorts plans deeper than this.
const MAX_DEPTH: usize = 16;

/// A note of more than this is not one of ours.
const MAX_READ: usize = 4 << 20;

const SAMPLE: &str = "---
plan_id: hello_vault
objective: \"See how a plan is carried out\"
total_steps: 2
completed_steps: 0
status: awaiting_approval
approval_required: true
iterations_used: 0
max_iterations: 10
---

# Plan: Hello, vault

Move this file to `Approved/Plans` to approve it.

## Steps

- [ ] **Step 1:** Write a note (action_type: create_file)
  - Dependencies: none
  - File: Notes/hello.md
  - Content: |
      # Hello
      This note was written by a plan.

- [ ] **Step 2:** Tell me that it is there (action_type: notify_human)
  - Dependencies: step_1
  - Message: Look at Notes/hello.md.
";

#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("{} is not a directory", path.display())]
    NoDirectory { path: PathBuf },
    #[error("{} is not a vault: it has no folder {APPROVED}", path.display())]
    NotAVault { path: PathBuf },
    #[error("`{path}` of the vault is a symbolic link, or in one")]
    Link { path: String },
    #[error("cannot write {path} in the vault")]
    Write { path: String, source: io::Error },
    #[error("cannot write {path} in the vault")]
    Create { path: String, source: CreateError },
    #[error("cannot read {path} in the vault")]
    Read { path: String, source: io::Error },
    #[error("the vault {} is looked after already", path.display())]
    Busy { path: PathBuf },
    #[error(transparent)]
    Store(#[from] wiggum_store::StoreError),
    #[error(transparent)]
    Engine(#[from] wiggum_engine::EngineError),
    #[error(transparent)]
    Backlog(#[from] wiggum_engine::backlog_file::BacklogError),
}

#[derive(Clone, Debug)]
pub struct Vault {
    root: PathBuf,
}

impl Vault {
    pub fn open(dir: &Path) -> Result<Self, VaultError> {
        let missing = || VaultError::NoDirectory { path: dir.to_owned() };
        let root = dir.canonicalize().map_err(|_| missing())?;
        if root.is_dir() { Ok(Self { root }) } else { Err(missing()) }
    }

    /// Nobody's directory becomes a vault by being looked at: it is one if plans can be approved in it.
    pub(crate) fn require_folders(&self) -> Result<(), VaultError> {
        match self.place(APPROVED)?.is_dir() {
            true => Ok(()),
            false => Err(VaultError::NotAVault { path: self.root.clone() }),
        }
    }

    /// Creates the folders and a sample plan that are missing, and says which; nothing is overwritten.
    pub fn init(&self) -> Result<Vec<String>, VaultError> {
        let mut created = self.make_folders()?;
        let sample = format!("{}/hello_vault.md", WAITING[0]);
        let used = [WAITING[0], WAITING[1], APPROVED, DONE]
            .iter()
            .any(|folder| self.exists(&format!("{folder}/hello_vault.md")));
        if !used {
            self.create(&sample, SAMPLE)?;
            created.push(sample);
        }
        Ok(created)
    }

    pub(crate) fn make_folders(&self) -> Result<Vec<String>, VaultError> {
        let mut created = Vec::new();
        for folder in [WAITING[0], WAITING[1], APPROVED, IN_PROGRESS, NEEDS_ACTION, LOGS, DONE] {
            let path = self.place(folder)?;
            if !path.is_dir() {
                fs::create_dir_all(&path)
                    .map_err(|source| VaultError::Write { path: folder.to_owned(), source })?;
                created.push(format!("{folder}/"));
            }
        }
        Ok(created)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path of the vault none of whose parts is a symbolic link.
    pub(crate) fn place(&self, relative: &str) -> Result<PathBuf, VaultError> {
        let mut path = self.root.clone();
        for part in relative.split('/') {
            path.push(part);
            if part == ".." || fs::symlink_metadata(&path).is_ok_and(|data| data.is_symlink()) {
                return Err(VaultError::Link { path: relative.to_owned() });
            }
        }
        Ok(path)
    }

    pub(crate) fn exists(&self, relative: &str) -> bool {
        fs::symlink_metadata(self.root.join(relative)).is_ok()
    }

    /// `None` if there is no such file.
    pub(crate) fn read(&self, relative: &str) -> Result<Option<String>, VaultError> {
        match beneath::read(&self.root, relative, MAX_READ) {
            Ok(bytes) => Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())),
            Err(CreateError::Read { path, source }) => Err(VaultError::Read { path, source }),
            Err(_) => Err(VaultError::Link { path: relative.to_owned() }),
        }
    }

    /// Replaces a file as a whole, unless it says the same already.
    pub(crate) fn write(&self, relative: &str, text: &str) -> Result<(), VaultError> {
        let written = beneath::create(&self.root, relative, text.as_bytes(), true);
        written.map(drop).map_err(|source| VaultError::Create { path: relative.to_owned(), source })
    }

    /// Replaces a file by what is made of it. Whoever changes it meanwhile is not overwritten: it is made
    /// again of what they wrote.
    pub(crate) fn rewrite(
        &self,
        relative: &str,
        make: impl Fn(Option<&str>) -> String,
    ) -> Result<(), VaultError> {
        let mut old = self.read(relative)?;
        for _ in 0..10 {
            let new = make(old.as_deref());
            if old.as_deref() == Some(new.as_str()) {
                return Ok(());
            }
            let now = self.read(relative)?;
            // An editor empties a file before it writes it, and tells of it when it is done.
            if now.as_deref() == Some("") {
                return Ok(());
            }
            if now == old {
                return self.write(relative, &new);
            }
            old = now;
        }
        // Somebody writes it all the time; the next change comes soon.
        Ok(())
    }

    fn create(&self, relative: &str, text: &str) -> Result<(), VaultError> {
        let written = beneath::create(&self.root, relative, text.as_bytes(), false);
        written.map(drop).map_err(|source| VaultError::Create { path: relative.to_owned(), source })
    }

    /// Adds to the end of a file; it is on the disk when this returns.
    pub(crate) fn append(&self, relative: &str, text: &str) -> Result<(), VaultError> {
        let written = beneath::append(&self.root, relative, text.as_bytes());
        written.map_err(|source| VaultError::Create { path: relative.to_owned(), source })
    }

    /// Cuts a file to this length.
    pub(crate) fn cut(&self, relative: &str, length: u64) -> Result<(), VaultError> {
        let cut = beneath::cut(&self.root, relative, length);
        cut.map_err(|source| VaultError::Create { path: relative.to_owned(), source })
    }

    /// Moves a file into a folder under its own name, or one beside it if that is taken. Says where it
    /// is now.
    pub(crate) fn move_into(&self, from: &str, folder: &str) -> Result<String, VaultError> {
        let failed = |source| VaultError::Write { path: folder.to_owned(), source };
        let (source, name) = (self.place(from)?, from.rsplit('/').next().unwrap_or(from));
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "md"));
        fs::create_dir_all(self.place(folder)?).map_err(failed)?;
        for number in 1..10_000 {
            let target = match number {
                1 => format!("{folder}/{name}"),
                number => format!("{folder}/{stem} {number}.{ending}"),
            };
            match place_new(&source, &self.place(&target)?) {
                Ok(()) => return Ok(target),
                // We were killed between giving it its new name and taking the old one.
                Err(_) if is_same(&source, &self.place(&target)?) => {
                    fs::remove_file(&source).map_err(failed)?;
                    return Ok(target);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }

    /// Removes what we wrote into a plan's folder, and the folder if nothing else is in it.
    pub(crate) fn remove_state(&self, plan: &str) -> Result<(), VaultError> {
        let folder = format!("{IN_PROGRESS}/{plan}");
        let path = self.place(&folder)?;
        let gone = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty => Ok(()),
            _ => Err(VaultError::Write { path: folder.clone(), source: error }),
        };
        fs::remove_file(path.join("state.md")).or_else(gone)?;
        fs::remove_dir(&path).or_else(gone)
    }

    /// The names in a folder, in order; none if it is not there.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = self.place(folder).and_then(|path| {
            fs::read_dir(path).map_err(|source| VaultError::Read { path: folder.to_owned(), source })
        }) else {
            return Vec::new();
        };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// All that is below a folder.
    pub(crate) fn tree(&self, folder: &str) -> Tree {
        let mut tree = Tree::default();
        if let Ok(path) = self.place(folder) {
            tree.add(&path, "", 0);
        }
        tree.files.sort_unstable();
        tree
    }
}

/// What is below a folder, as paths in it. Hidden files and folders are left out.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<String>,
    /// Symbolic links, which are not followed.
    pub(crate) links: Vec<String>,
}

impl Tree {
    fn add(&mut self, path: &Path, before: &str, depth: usize) {
        let Ok(entries) = fs::read_dir(path) else { return };
        for entry in entries.flatten() {
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
            if name.starts_with('.') {
                continue;
            }
            let relative = format!("{before}{name}");
            if kind.is_symlink() {
                self.links.push(relative);
            } else if kind.is_file() {
                self.files.push(relative);
            } else if kind.is_dir() && depth < MAX_DEPTH {
                self.add(&entry.path(), &format!("{relative}/"), depth + 1);
            }
        }
    }
}

/// Gives a file its new name only if nobody has it.
fn place_new(source: &Path, target: &Path) -> io::Result<()> {
    match fs::hard_link(source, target) {
        Ok(()) => {
            crash::point("plan has both names");
            fs::remove_file(source)?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
        // A file system without hard links.
        Err(_) if target.exists() => return Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(source, target)?,
    }
    let directory = target.parent().unwrap_or(target);
    File::open(directory).and_then(|directory| directory.sync_all())
}

/// Are these two names of one file?
fn is_same(one: &Path, other: &Path) -> bool {
    file_id(one).is_some_and(|found| file_id(other) == Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn vault() -> (tempfile::TempDir, Vault) {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::open(dir.path()).unwrap();
        (dir, vault)
    }

    #[test]
    fn init_creates_what_is_missing_and_nothing_twice() {
        let (dir, vault) = vault();
        let created = vault.init().unwrap();
        assert!(
            created.contains(&"Approved/Plans/".to_owned())
                && created.contains(&"Plans/hello_vault.md".to_owned())
        );
        let plan = dir.path().join("Plans/hello_vault.md");
        fs::write(&plan, "mine").unwrap();
        fs::remove_dir(dir.path().join("Done")).unwrap();
        assert_eq!(vault.init().unwrap(), ["Done/"]);
        assert_eq!(fs::read_to_string(plan).unwrap(), "mine");
        wiggum_backlog::Backlog::parse("hello_vault.md", SAMPLE).unwrap();
    }

    #[test]
    fn nothing_leads_out() {
        let (dir, vault) = vault();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), dir.path().join("Logs")).unwrap();
        symlink(outside.path().join("x.md"), dir.path().join("Dashboard.md")).unwrap();
        assert!(vault.append("Logs/Plan_Execution/a.md", "x").is_err());
        assert!(vault.write("Dashboard.md", "x").is_err());
        assert!(vault.write("../x.md", "x").is_err());
        assert!(vault.read("Dashboard.md").is_err());
        assert!(vault.cut("Dashboard.md", 0).is_err());
        assert!(vault.init().is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_in_the_way_is_never_overwritten() {
        let (dir, vault) = vault();
        vault.init().unwrap();
        for expected in ["Done/p.md", "Done/p 2.md", "Done/p 3.md"] {
            fs::write(dir.path().join("Approved/Plans/p.md"), expected).unwrap();
            assert_eq!(vault.move_into("Approved/Plans/p.md", "Done").unwrap(), expected);
            assert_eq!(fs::read_to_string(dir.path().join(expected)).unwrap(), expected);
        }
        assert!(!vault.exists("Approved/Plans/p.md"));
        // Killed in the middle of a move, it has two names.
        fs::hard_link(dir.path().join("Done/p.md"), dir.path().join("Approved/Plans/p.md")).unwrap();
        assert_eq!(vault.move_into("Approved/Plans/p.md", "Done").unwrap(), "Done/p.md");
        assert!(!vault.exists("Approved/Plans/p.md"));
    }
}
