//! Paths that stay inside a directory, files that are never half written, and locks between processes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use thiserror::Error;

use crate::crash;

#[derive(Debug, Error)]
pub enum Escape {
    #[error("`{path}` is empty")]
    Empty { path: String },
    #[error("`{path}` is not relative to the workspace")]
    Absolute { path: String },
    #[error("`{path}` leads out of the workspace")]
    Outside { path: String },
    #[error("cannot look at {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

/// Which file a name stands for at the moment: another one after it was replaced, the same under another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] std::time::SystemTime);

/// Nothing where there is no such file. Links are not followed.
pub fn file_id(path: &Path) -> Option<FileId> {
    let found = fs::symlink_metadata(path).ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some(FileId((found.dev(), found.ino())))
    }
    #[cfg(not(unix))]
    found.created().ok().map(FileId)
}

/// The path of `relative` below `root`, if it stays there: no `..`, nothing absolute, no symbolic
/// link that leads out. What does not exist yet is fine.
pub fn inside(root: &Path, relative: &str) -> Result<PathBuf, Escape> {
    let named = || relative.to_owned();
    if relative.is_empty() {
        return Err(Escape::Empty { path: named() });
    }
    for component in Path::new(relative).components() {
        match component {
            Component::Normal(_) | Component::CurDir => {}
            Component::ParentDir => return Err(Escape::Outside { path: named() }),
            Component::RootDir | Component::Prefix(_) => return Err(Escape::Absolute { path: named() }),
        }
    }
    let path = root.join(relative);
    let real_root =
        root.canonicalize().map_err(|source| Escape::Unreadable { path: root.to_owned(), source })?;
    if real(&path)?.starts_with(&real_root) { Ok(path) } else { Err(Escape::Outside { path: named() }) }
}

/// As many links as the kernel follows.
const MAX_LINKS: u32 = 40;

/// Where a path really is, also when its end does not exist yet or is a link to nothing.
pub fn real(path: &Path) -> Result<PathBuf, Escape> {
    let unreadable = |source| Escape::Unreadable { path: path.to_owned(), source };
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match path.canonicalize() {
            Ok(real) => return Ok(real),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(error)),
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(path) };
        let parent = real(parent)?;
        let here = parent.join(name);
        match fs::read_link(&here) {
            Ok(target) => path = parent.join(target),
            Err(_) => return Ok(here),
        }
    }
    Err(unreadable(io::Error::other("too many symbolic links")))
}

/// Replaces a file's content so that a reader, or a crash at any moment, sees all of the old or all
/// of the new. A symbolic link is followed and stays one; the file's mode stays.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = real(path).map_err(io::Error::other)?;
    let directory = replace(&path, bytes, Synced::Yes)?;
    File::open(directory)?.sync_all()
}

/// As [`write_atomic`], with something else to be done before the new content may be seen: both wait
/// for the disk at the same time. The old content stays if it says so. What is seen at once survives a
/// power cut only when the directory is [synced](Replaced::sync) too.
pub fn write_atomic_after(path: &Path, bytes: &[u8], before: impl FnOnce() -> bool) -> io::Result<Replaced> {
    let path = real(path).map_err(io::Error::other)?;
    let directory = path.parent().ok_or_else(|| io::Error::other("a file needs a directory"))?;
    let temporary = directory.join(temporary_name(&path));
    let (written, go_on) = at_once(|| write_new(&temporary, &path, bytes, Synced::Yes), before);
    crash::point("temporary file written");
    let replaced = match written {
        Ok(()) if go_on => fs::rename(&temporary, &path),
        Ok(()) => fs::remove_file(&temporary),
        Err(error) => Err(error),
    };
    crash::point("file replaced");
    if replaced.is_err() {
        drop(fs::remove_file(&temporary));
    }
    replaced?;
    Ok(Replaced { directory: File::open(directory)? })
}

/// Does the first on a thread of its own, where there is one to spare, while the second is done here.
fn at_once<A: Send, B>(beside: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    let beside = Mutex::new(Some(beside));
    let take = || beside.lock().unwrap_or_else(PoisonError::into_inner).take().map(|beside| beside());
    let (done, result) = thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, take);
        let result = here();
        let done = thread.ok().and_then(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (done, result)
    });
    match done.or_else(take) {
        Some(done) => (done, result),
        None => unreachable!("it is done by the thread or after it"),
    }
}

/// A file has a new content, of which the disk may not know yet.
#[derive(Debug)]
#[must_use = "a power cut may bring the old content back until it is synced"]
pub struct Replaced {
    directory: File,
}

impl Replaced {
    pub fn sync(&self) -> io::Result<()> {
        self.directory.sync_all()
    }
}

/// As [`write_atomic`] for readers and for programs that are killed, without waiting for the disk:
/// when the power fails, the file may be lost.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = real(path).map_err(io::Error::other)?;
    replace(&path, bytes, Synced::No).map(drop)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Synced {
    Yes,
    No,
}

/// Returns the directory, which is not synced.
fn replace<'a>(path: &'a Path, bytes: &[u8], synced: Synced) -> io::Result<&'a Path> {
    let directory = path.parent().ok_or_else(|| io::Error::other("a file needs a directory"))?;
    let temporary = directory.join(temporary_name(path));
    let written = write_new(&temporary, path, bytes, synced).and_then(|()| {
        crash::point("temporary file written");
        fs::rename(&temporary, path)
    });
    crash::point("file replaced");
    if let Err(error) = written {
        drop(fs::remove_file(&temporary));
        return Err(error);
    }
    Ok(directory)
}

/// [`write_atomic`] for a path that must stay inside `root`.
pub fn write_inside(root: &Path, relative: &str, bytes: &[u8]) -> io::Result<()> {
    let path = inside(root, relative).map_err(io::Error::other)?;
    write_atomic(&path, bytes)
}

const TEMPORARY: &str = ".wiggum-tmp";

/// Hidden, so that it is not taken for the user's, and known by its ending if a crash leaves it.
fn temporary_name(path: &Path) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(".{name}.{}-{count}{TEMPORARY}", std::process::id())
}

/// Copies a file, a directory or a link as it is, with the times of its files; what is none of these is left out.
pub fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(from)?;
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    if found.is_file() {
        fs::copy(from, to)?;
        let modified = found.modified()?;
        // A copy that may not be written to keeps the time at which it was made.
        return OpenOptions::new().write(true).open(to).map_or(Ok(()), |file| file.set_modified(modified));
    }
    if found.is_symlink() {
        return link(&fs::read_link(from)?, to);
    }
    if found.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(target: &Path, place: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, place)
}

/// Whether it leads to a file or to a directory would have to be known.
#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Removes a directory with all that is in it, also where somebody took away the right to look inside. Links are
/// removed, not followed. What is not there is fine.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

/// Makes all directories below one writable to us.
#[cfg(unix)]
fn open_up(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn open_up(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Removes what a crash in [`write_atomic`] left beside this file. Nobody may be writing it now.
pub fn remove_temporary(path: &Path) -> io::Result<()> {
    let path = real(path).map_err(io::Error::other)?;
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let start = format!(".{}.", name.to_string_lossy());
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let middle = name.strip_prefix(&start).and_then(|rest| rest.strip_suffix(TEMPORARY));
        let numbers = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        if middle.is_some_and(numbers) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn write_new(temporary: &Path, target: &Path, bytes: &[u8], synced: Synced) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(temporary)?;
    if let Ok(metadata) = fs::metadata(target) {
        file.set_permissions(metadata.permissions())?;
    }
    file.write_all(bytes)?;
    match synced {
        Synced::Yes => file.sync_all(),
        Synced::No => Ok(()),
    }
}

/// The files that standard output and standard error of this process go to, as with `> journal.jsonl`.
/// Only Linux tells; elsewhere there are none.
pub fn redirected_output() -> Vec<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let mut files: Vec<PathBuf> = ["/proc/self/fd/1", "/proc/self/fd/2"]
        .into_iter()
        .filter_map(|open| {
            let path = fs::read_link(open).ok()?;
            let (there, named) = (fs::metadata(open).ok()?, fs::symlink_metadata(&path).ok()?);
            // Not one that was removed, or whose name was given to another.
            let same = (there.dev(), there.ino()) == (named.dev(), named.ino());
            (there.is_file() && same).then_some(path)
        })
        .collect();
    files.dedup();
    files
}

/// A lock between processes, held until it is dropped or its process dies.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    /// Waits until the lock is free. The file is created if need be and stays afterwards.
    pub fn acquire(path: &Path) -> io::Result<Self> {
        let file = Self::open(path)?;
        file.lock()?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// `None` if somebody else holds it.
    pub fn try_acquire(path: &Path) -> io::Result<Option<Self>> {
        let file = Self::open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file, path: path.to_owned() })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open(path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // A link or a pipe in its place is somebody's who wants us to write elsewhere, or to wait.
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
            options.custom_flags(flags.bits().cast_signed());
        }
        let file = options.open(path)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no plain file")) }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file would do; a child that inherited it would keep the lock alive, though.
        drop(self.file.unlock());
    }
}

/// A lock that belongs to the process itself: unlike [`FileLock`], a child between fork and exec does
/// not hold it, so it is free the moment its process is killed. It does not keep threads of one
/// process apart, and the file must not be opened elsewhere in it.
#[derive(Debug)]
pub struct ProcessLock {
    _file: File,
}

impl ProcessLock {
    /// `None` if another process holds it.
    pub fn try_acquire(path: &Path) -> io::Result<Option<Self>> {
        use rustix::fs::{FlockOperation, fcntl_lock};
        use rustix::io::Errno;
        let file = FileLock::open(path)?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(Errno::AGAIN | Errno::ACCESS) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Does another process hold it? Asking does not take it, so nobody is refused because of that.
    pub fn is_held(path: &Path) -> io::Result<bool> {
        use rustix::process::{Flock, FlockType, fcntl_getlk};
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        Ok(fcntl_getlk(&file, &Flock::from(FlockType::WriteLock))?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn paths_stay_inside() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir(base.path().join("outside")).unwrap();
        symlink("../outside", root.join("out")).unwrap();
        symlink("src", root.join("in")).unwrap();
        symlink("../outside/not yet", root.join("dangling out")).unwrap();
        symlink("src/not yet", root.join("dangling in")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("/etc/passwd", root.join("passwd")).unwrap();

        let allowed = ["a", "src/new/deep", "./a", "in/a", "dangling in", "-a", "ü b", "..a"];
        for path in allowed {
            assert_eq!(inside(&root, path).unwrap(), root.join(path), "{path}");
        }
        let refused = [
            "",
            "..",
            "../root/a",
            "src/../../x",
            "/etc/passwd",
            "out/a",
            "out",
            "dangling out",
            "loop",
            "passwd",
        ];
        for path in refused {
            assert!(inside(&root, path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_file_is_replaced_and_keeps_its_mode() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("file");
        write_atomic(&path, b"one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        write_whole(&path, b"three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o751);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_link_stays_a_link_and_never_leads_out() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(base.path().join("secret"), "old").unwrap();
        symlink("docs/real.md", root.join("link.md")).unwrap();
        symlink("../secret", root.join("out.md")).unwrap();

        write_inside(&root, "link.md", b"new").unwrap();
        assert!(root.join("link.md").is_symlink());
        assert_eq!(fs::read(root.join("docs/real.md")).unwrap(), b"new");
        write_inside(&root, "out.md", b"new").unwrap_err();
        assert_eq!(fs::read(base.path().join("secret")).unwrap(), b"old");
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("directory");
        fs::create_dir(&path).unwrap();
        write_atomic(&path, b"x").unwrap_err();
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_crash_left_beside_a_file_is_removed_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("prd.json");
        let others = ["prd.json", ".prd.json", ".prd.json.mine.wiggum-tmp", ".other.1-0.wiggum-tmp"];
        for name in others.iter().chain(&[".prd.json.4711-0.wiggum-tmp", ".prd.json.1-12.wiggum-tmp"]) {
            fs::write(base.path().join(name), "").unwrap();
        }
        remove_temporary(&path).unwrap();
        let mut left: Vec<String> = fs::read_dir(base.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort_unstable();
        let mut expected = others.map(str::to_owned);
        expected.sort_unstable();
        assert_eq!(left, expected);
    }

    #[test]
    fn a_lock_has_one_holder() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("lock");
        let held = FileLock::acquire(&path).unwrap();
        assert_eq!(held.path(), path);
        assert!(FileLock::try_acquire(&path).unwrap().is_none());
        drop(held);
        assert!(FileLock::try_acquire(&path).unwrap().is_some());
    }
}
