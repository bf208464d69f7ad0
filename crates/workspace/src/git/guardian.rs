//! What git obeys, as it was before an agent ran: hooks, configuration, rules, where objects are, and
//! what branches and tags point to; that of submodules too. And links and pipes where git writes.
//!
//! A hook that an agent plants would run in the next commit of the user's, and a changed
//! configuration can name commands too. The snapshot is a file, so that it outlives a kill -9.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use crate::beneath::{bytes_of, text_of};

use super::references::{self, References};
use super::{Git, GitError};
use crate::paths::{remove_temporary, write_atomic};

/// A snapshot, and where it is stored.
#[derive(Clone, Debug)]
pub struct Guardian {
    git: Git,
    seen: Seen,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    files: BTreeMap<String, Thing>,
    references: References,
    /// Branches that came while an agent worked are for agents to move.
    of_agents: BTreeSet<String>,
    /// The branch that is worked on has rules of its own.
    checked_out: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Thing {
    File {
        mode: u32,
        bytes: Vec<u8>,
    },
    Link {
        target: PathBuf,
    },
    /// A pipe, a socket or a device: whoever opens it may wait for ever.
    Odd,
}

impl Guardian {
    /// Looks at it now and stores what it saw in `directory`.
    pub fn take(git: &Git, directory: &Path) -> Result<Self, GitError> {
        let known = Self::open(git, directory)?;
        let mut guardian = known.unwrap_or_else(|| Self { git: git.clone(), seen: Seen::default() });
        guardian.seen.checked_out = references::checked_out(&git.git_dir);
        guardian.seen = guardian.look()?;
        guardian.store(directory)?;
        guardian.keep_packed(directory)?;
        Ok(guardian)
    }

    /// Takes away links and pipes that came where git reads and writes, before git is asked anything: it would follow
    /// them, or wait. What has to be there for git to know the repository is written anew.
    pub fn clear_the_way(&self, directory: &Path) -> Result<Vec<String>, GitError> {
        let mut found = BTreeMap::new();
        for name in WRITTEN.iter().chain(&[HEAD]) {
            self.look_for_detours(name, &mut found)?;
            if self.git.git_dir != self.git.common_dir {
                self.look_for_detours(&format!("{WORKTREE}{name}"), &mut found)?;
            }
        }
        self.look_for_detours(MODULES, &mut found)?;
        found.retain(|name, _| !self.seen.files.contains_key(name));
        for name in found.keys() {
            let path = self.path_of(name);
            let on_file = |source| GitError::File { path: path.clone(), source };
            remove(&path).map_err(on_file)?;
            let last = name.strip_prefix(WORKTREE).unwrap_or(name);
            let former = match last {
                HEAD => self.seen.checked_out.as_ref().map(|branch| format!("ref: {branch}\n").into_bytes()),
                PACKED => bytes_of(&directory.join(PACKED)).ok(),
                _ => None,
            };
            if let Some(bytes) = former {
                write(&path, &bytes).map_err(on_file)?;
            }
        }
        Ok(found.into_keys().collect())
    }

    /// References that are in no file of their own; the snapshot has those that agents may not move.
    fn keep_packed(&self, directory: &Path) -> Result<(), GitError> {
        let (from, to) = (self.git.common_dir.join(PACKED), directory.join(PACKED));
        let Ok(bytes) = bytes_of(&from) else { return Ok(()) };
        if bytes_of(&to).ok().as_deref() == Some(&bytes) {
            return Ok(());
        }
        write(&to, &bytes).map_err(|source| GitError::File { path: to.clone(), source })
    }

    /// Stores the snapshot, for whoever comes after a kill.
    pub fn store(&self, directory: &Path) -> Result<(), GitError> {
        let path = directory.join(SNAPSHOT);
        let on_file = |source| GitError::File { path: path.clone(), source };
        let bytes = encode(&self.seen);
        // Usually nothing changed since the last time.
        if bytes_of(&path).ok().as_deref() == Some(&bytes) {
            return Ok(());
        }
        fs::create_dir_all(directory).map_err(on_file)?;
        write(&path, &bytes).map_err(on_file)
    }

    /// The snapshot stored in `directory`, if there is one that can be read.
    pub fn open(git: &Git, directory: &Path) -> Result<Option<Self>, GitError> {
        let path = directory.join(SNAPSHOT);
        match bytes_of(&path) {
            Ok(bytes) => Ok(decode(&bytes).map(|seen| Self { git: git.clone(), seen })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(GitError::File { path, source }),
        }
    }

    /// What is not as it was, as names like `hooks/pre-commit` and `refs/heads/main`.
    pub fn compare(&mut self, directory: &Path) -> Result<Vec<String>, GitError> {
        let now = self.look_again(directory)?;
        let (before, now_files) = (&self.seen.files, &now.files);
        let names: BTreeSet<&String> = now_files.keys().chain(before.keys()).collect();
        let files = names.into_iter().filter(|name| now_files.get(*name) != before.get(*name)).cloned();
        let mut changed: Vec<String> = files.collect();
        changed.extend(references::compare(&self.seen.references, &now.references));
        changed.dedup();
        Ok(changed)
    }

    /// Branches, tags and notes that were not there when the snapshot was taken, or came with an earlier agent.
    pub fn came(&self) -> Result<Vec<String>, GitError> {
        let mut but = references::checked_out_elsewhere(&self.git.common_dir, &self.git.git_dir);
        but.extend(self.seen.checked_out.clone());
        let now = references::read(&self.git.common_dir, &but)?;
        let is_new = |name: &String| !self.seen.references.contains_key(name) && !name.contains('@');
        Ok(now.into_keys().filter(is_new).collect())
    }

    /// Makes everything as it was and returns what was not, as [`Guardian::compare`] names it.
    pub fn compare_and_put_back(&mut self, directory: &Path) -> Result<Vec<String>, GitError> {
        let now = self.look_again(directory)?;
        let mut changed = Vec::new();
        // What is new goes first: it may be a link in the place of a directory that was there.
        for name in now.files.keys().filter(|name| !self.seen.files.contains_key(*name)) {
            let path = self.path_of(name);
            remove(&path).map_err(|source| GitError::File { path, source })?;
            changed.push(name.clone());
        }
        for (name, thing) in &self.seen.files {
            if now.files.get(name) != Some(thing) {
                self.put_back(name, thing)?;
                changed.push(name.clone());
            }
        }
        // Git is asked for these, so what it obeys comes first.
        let references = references::compare(&self.seen.references, &now.references);
        if !references.is_empty() {
            references::put_back(&self.git, &self.seen.references, &now.references)?;
            changed.extend(references);
        }
        changed.sort_unstable();
        changed.dedup();
        Ok(changed)
    }

    /// Stores which branches came.
    fn look_again(&mut self, directory: &Path) -> Result<Seen, GitError> {
        let mut now = self.look()?;
        // A submodule that an agent added is its work.
        now.files.retain(|name, _| {
            let known = |module: &str| self.seen.files.keys().any(|other| module_of(other) == Some(module));
            module_of(name).is_none_or(known)
        });
        let came = references::branches_that_came(&self.seen.references, &now.references);
        if !came.is_empty() {
            now.references.retain(|name, _| !came.contains(name));
            self.seen.of_agents.extend(came);
            self.store(directory)?;
        }
        Ok(now)
    }

    fn path_of(&self, name: &str) -> PathBuf {
        match name.strip_prefix(WORKTREE) {
            Some(name) => self.git.git_dir.join(name),
            None => self.git.common_dir.join(name),
        }
    }

    fn look(&self) -> Result<Seen, GitError> {
        let mut seen = BTreeMap::new();
        self.look_at_repository("", &mut seen)?;
        if self.git.git_dir != self.git.common_dir {
            for name in OF_WORKTREE {
                self.look_at(&format!("{WORKTREE}{name}"), &mut seen)?;
            }
            for name in WRITTEN {
                self.look_for_detours(&format!("{WORKTREE}{name}"), &mut seen)?;
            }
        }
        for name in WRITTEN {
            self.look_for_detours(name, &mut seen)?;
        }
        self.look_for_detours(MODULES, &mut seen)?;
        let hooks = match seen.get("config") {
            Some(Thing::File { bytes, .. }) => hooks_path_in(&String::from_utf8_lossy(bytes)),
            Some(Thing::Link { .. }) => hooks_path(&self.git.common_dir),
            Some(Thing::Odd) | None => None,
        };
        if let Some(name) = hooks.and_then(|path| self.name_inside(&path)) {
            self.look_at(&name, &mut seen)?;
        }
        let Seen { of_agents, checked_out, .. } = self.seen.clone();
        let mut but = references::checked_out_elsewhere(&self.git.common_dir, &self.git.git_dir);
        but.extend(of_agents.iter().cloned().chain(checked_out.clone()));
        let references = references::read(&self.git.common_dir, &but)?;
        Ok(Seen { files: seen, references, of_agents, checked_out })
    }

    /// Those of a repository and of its submodules, which lie in its `modules`, one in another where their
    /// names have a `/`. `place` is empty, or ends with one.
    fn look_at_repository(&self, place: &str, seen: &mut BTreeMap<String, Thing>) -> Result<(), GitError> {
        for name in OF_REPOSITORY {
            self.look_at(&format!("{place}{name}"), seen)?;
        }
        let modules = self.git.common_dir.join(format!("{place}modules"));
        // Few repositories have any.
        if modules.is_dir() { self.look_at_modules(&format!("{place}modules/"), seen) } else { Ok(()) }
    }

    fn look_at_modules(&self, place: &str, seen: &mut BTreeMap<String, Thing>) -> Result<(), GitError> {
        let path = self.git.common_dir.join(place);
        let on_path = |source| GitError::File { path: path.clone(), source };
        for entry in fs::read_dir(&path).map_err(on_path)? {
            let entry = entry.map_err(on_path)?;
            if !entry.file_type().map_err(on_path)?.is_dir() {
                continue;
            }
            let module = format!("{place}{}/", entry.file_name().to_string_lossy());
            if self.git.common_dir.join(&module).join("HEAD").exists() {
                self.look_at_repository(&module, seen)?;
            } else {
                self.look_at_modules(&module, seen)?;
            }
        }
        Ok(())
    }

    /// A hooks directory in the work tree is the user's own source and guarded as such.
    fn name_inside(&self, hooks: &str) -> Option<String> {
        let root = self.git.common_dir.parent()?;
        let path = root.join(hooks);
        let name = path.strip_prefix(&self.git.common_dir).ok()?;
        let plain = name.components().all(|component| matches!(component, Component::Normal(_)));
        (plain && name.components().next().is_some()).then(|| name.to_str().map(str::to_owned))?
    }

    fn look_at(&self, name: &str, seen: &mut BTreeMap<String, Thing>) -> Result<(), GitError> {
        let path = self.path_of(name);
        let on_file = |source| GitError::File { path: path.clone(), source };
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(on_file(error)),
        };
        if metadata.is_symlink() {
            let target = fs::read_link(&path).map_err(on_file)?;
            seen.insert(name.to_owned(), Thing::Link { target });
        } else if metadata.is_dir() {
            for entry in fs::read_dir(&path).map_err(on_file)? {
                let child = entry.map_err(on_file)?.file_name().to_string_lossy().into_owned();
                // Git itself never runs these.
                if !child.ends_with(".sample") {
                    self.look_at(&format!("{name}/{child}"), seen)?;
                }
            }
        } else if metadata.is_file() {
            let bytes = bytes_of(&path).map_err(on_file)?;
            seen.insert(name.to_owned(), Thing::File { mode: metadata.permissions().mode() & 0o7777, bytes });
        } else {
            seen.insert(name.to_owned(), Thing::Odd);
        }
        Ok(())
    }

    /// What is neither a file nor a directory where git writes without looking.
    fn look_for_detours(&self, name: &str, seen: &mut BTreeMap<String, Thing>) -> Result<(), GitError> {
        let path = self.path_of(name);
        let on_file = |source| GitError::File { path: path.clone(), source };
        let kind = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(on_file(error)),
        };
        if kind.is_dir() {
            for entry in fs::read_dir(&path).map_err(on_file)? {
                let entry = entry.map_err(on_file)?;
                // Many, and git looks for none of them by a name that an agent could know before.
                let is_objects = entry.file_name() == "objects" && name.starts_with(MODULES);
                if !is_objects && !entry.file_type().map_err(on_file)?.is_file() {
                    let child = entry.file_name().to_string_lossy().into_owned();
                    self.look_for_detours(&format!("{name}/{child}"), seen)?;
                }
            }
        } else if !kind.is_file() {
            self.look_at(name, seen)?;
        }
        Ok(())
    }

    fn put_back(&self, name: &str, thing: &Thing) -> Result<(), GitError> {
        let path = self.path_of(name);
        let on_file = |source| GitError::File { path: path.clone(), source };
        // Also in place of a directory that is now a link, or a file that is now a directory.
        for ancestor in path.ancestors().skip(1).take_while(|path| **path != self.git.common_dir) {
            if ancestor.is_symlink() || ancestor.is_file() {
                remove(ancestor).map_err(on_file)?;
            }
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(on_file)?;
        }
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
            remove(&path).map_err(on_file)?;
        }
        match thing {
            Thing::Link { target } => {
                remove(&path).map_err(on_file)?;
                symlink(target, &path).map_err(on_file)
            }
            Thing::Odd => Ok(()),
            Thing::File { mode, bytes } => {
                write(&path, bytes).map_err(on_file)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).map_err(on_file)
            }
        }
    }
}

/// The submodule whose repository a file belongs to, as the directory of that.
fn module_of(name: &str) -> Option<&str> {
    name.strip_prefix("modules/")?;
    let ends = OF_REPOSITORY.iter().filter_map(|part| name.find(&format!("/{part}")));
    ends.min().map(|end| &name[..end])
}

const SNAPSHOT: &str = "git-guard";

/// What git obeys or believes in any repository.
const OF_REPOSITORY: [&str; 8] = [
    "commondir",
    "config",
    "config.worktree",
    "hooks",
    "info",
    "objects/info/alternates",
    "objects/info/http-alternates",
    "shallow",
];

const HEAD: &str = "HEAD";
/// The repositories of submodules.
const MODULES: &str = "modules";
const PACKED: &str = "packed-refs";

/// Where git writes through whatever has the name.
const WRITTEN: [&str; 8] =
    ["COMMIT_EDITMSG", "FETCH_HEAD", "ORIG_HEAD", "index", "index.lock", "logs", "packed-refs", "refs"];

const OF_WORKTREE: [&str; 4] = ["commondir", "config.worktree", "gitdir", "info"];

/// Marks names that belong to this work tree rather than to the whole repository.
const WORKTREE: &str = "worktree:";

/// `core.hooksPath` as the repository's own configuration has it.
pub(super) fn hooks_path(common_dir: &Path) -> Option<String> {
    hooks_path_in(&text_of(&common_dir.join("config")).ok()?)
}

fn hooks_path_in(config: &str) -> Option<String> {
    let mut in_core = false;
    let mut found = None;
    for line in config.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            in_core = section.split(']').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("core"));
        }
        let assignment = line.rsplit(']').next().unwrap_or(line).split_once('=');
        match assignment {
            Some((name, value)) if in_core && name.trim().eq_ignore_ascii_case("hookspath") => {
                found = Some(value.trim().trim_matches('"').to_owned());
            }
            Some(_) | None => {}
        }
    }
    found
}

/// Also removes what a crash left of the same write: it is then made again, so it is due here.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    remove_temporary(path)?;
    write_atomic(path, bytes)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

const HEADING: &[u8] = b"wiggum git guard 2\n";

/// Each field with its length before it, since names and content may hold any byte.
fn encode(seen: &Seen) -> Vec<u8> {
    let mut out = HEADING.to_vec();
    let mut add = |fields: [&[u8]; 3]| {
        for field in fields {
            out.extend(format!("{}\n", field.len()).into_bytes());
            out.extend_from_slice(field);
        }
    };
    for (name, thing) in &seen.files {
        match thing {
            Thing::File { mode, bytes } => {
                add([name.as_bytes(), format!("file {mode:o}").as_bytes(), bytes]);
            }
            Thing::Link { target } => {
                add([name.as_bytes(), b"link", target.as_os_str().as_encoded_bytes()]);
            }
            Thing::Odd => add([name.as_bytes(), b"odd", b""]),
        }
    }
    for (name, id) in &seen.references {
        add([name.as_bytes(), b"reference", id.as_bytes()]);
    }
    if let Some(name) = &seen.checked_out {
        add([name.as_bytes(), b"checked out", b""]);
    }
    for name in &seen.of_agents {
        add([name.as_bytes(), b"of agents", b""]);
    }
    out.extend_from_slice(b"end\n");
    out
}

/// `None` for anything but a whole snapshot.
fn decode(bytes: &[u8]) -> Option<Seen> {
    use std::os::unix::ffi::OsStrExt;
    let mut rest = bytes.strip_prefix(HEADING)?;
    let mut seen = Seen::default();
    while rest != b"end\n" {
        let name = String::from_utf8(field(&mut rest)?.to_vec()).ok()?;
        let kind = std::str::from_utf8(field(&mut rest)?).ok()?;
        let content = field(&mut rest)?;
        let thing = match (kind, kind.strip_prefix("file ")) {
            (_, Some(mode)) => {
                Thing::File { mode: u32::from_str_radix(mode, 8).ok()?, bytes: content.to_vec() }
            }
            ("link", None) => Thing::Link { target: PathBuf::from(std::ffi::OsStr::from_bytes(content)) },
            ("odd", None) => Thing::Odd,
            ("reference", None) => {
                seen.references.insert(name, String::from_utf8(content.to_vec()).ok()?);
                continue;
            }
            ("checked out", None) => {
                seen.checked_out = Some(name);
                continue;
            }
            ("of agents", None) => {
                seen.of_agents.insert(name);
                continue;
            }
            (_, None) => return None,
        };
        seen.files.insert(name, thing);
    }
    Some(seen)
}

fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let line_end = rest.iter().position(|byte| *byte == b'\n')?;
    let length: usize = std::str::from_utf8(&rest[..line_end]).ok()?.parse().ok()?;
    let start = line_end + 1;
    let field = rest.get(start..start.checked_add(length)?)?;
    *rest = &rest[start + length..];
    Some(field)
}
