//! Files that are created, read and taken away below a directory and nowhere else, whoever changes links meanwhile;
//! and files that others name, of which only plain ones are opened, without waiting, and only so much is read.
//!
//! Every directory on the way is opened by its name inside the one before it, and links are not
//! followed: there is no moment at which somebody could put another one in its place.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path};

use thiserror::Error;

#[derive(Debug, Error)]
pub enum CreateError {
    #[error("`{path}` is not a path below the directory")]
    Outside { path: String },
    #[error("`{path}` leads through a symbolic link or a file")]
    Link { path: String },
    #[error("`{path}` exists already and is something else")]
    Exists { path: String },
    #[error("cannot write `{path}`")]
    Write { path: String, source: io::Error },
    #[error("cannot read `{path}`")]
    Read { path: String, source: io::Error },
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    New,
    /// It was there, with this very content.
    Same,
    Replaced,
}

/// Creates a file with this content, all of it or nothing, and the directories it needs. Another
/// content is replaced only where that is wanted.
pub fn create(root: &Path, relative: &str, bytes: &[u8], overwrite: bool) -> Result<Created, CreateError> {
    let names = names(relative).ok_or_else(|| CreateError::Outside { path: relative.to_owned() })?;
    system::create(root, &names, bytes, overwrite).map_err(|problem| named(problem, relative))
}

/// Puts a file with this content in place of whatever file or link has that name, and makes the
/// directories it needs. Readers see all of it or nothing; a power cut may take it.
pub fn replace(root: &Path, relative: &str, bytes: &[u8]) -> Result<(), CreateError> {
    let names = names(relative).ok_or_else(|| CreateError::Outside { path: relative.to_owned() })?;
    system::replace(root, &names, bytes).map_err(|problem| named(problem, relative))
}

/// What is in a file below the directory, if there is one. No link is followed, and what is no plain file or longer
/// than this is refused.
pub fn read(root: &Path, relative: &str, most: usize) -> Result<Option<Vec<u8>>, CreateError> {
    let names = names(relative).ok_or_else(|| CreateError::Outside { path: relative.to_owned() })?;
    system::read_below(root, &names, most).map_err(|problem| match problem {
        Problem::Io(source) => CreateError::Read { path: relative.to_owned(), source },
        Problem::Link | Problem::Exists => named(problem, relative),
    })
}

/// Adds to the end of a plain file below the directory, which is made where there is none; its directory is there.
/// It is on the disk when this returns.
pub fn append(root: &Path, relative: &str, bytes: &[u8]) -> Result<(), CreateError> {
    let names = names(relative).ok_or_else(|| CreateError::Outside { path: relative.to_owned() })?;
    system::append(root, &names, bytes).map_err(|problem| named(problem, relative))
}

/// Cuts a plain file below the directory to this length.
pub fn cut(root: &Path, relative: &str, length: u64) -> Result<(), CreateError> {
    let names = names(relative).ok_or_else(|| CreateError::Outside { path: relative.to_owned() })?;
    system::cut(root, &names, length).map_err(|problem| named(problem, relative))
}

/// Makes a plain file below the directory as young as if it had been written now. What is in it stays.
pub fn touch(root: &Path, relative: &str) -> Result<(), CreateError> {
    let names = names(relative).ok_or_else(|| CreateError::Outside { path: relative.to_owned() })?;
    system::touch(root, &names).map_err(|problem| named(problem, relative))
}

/// Takes a file below the directory to another place, in one step: of two who try, one succeeds.
pub fn take_away(root: &Path, relative: &str, to: &Path) -> Result<(), CreateError> {
    let names = names(relative).ok_or_else(|| CreateError::Outside { path: relative.to_owned() })?;
    system::take_away(root, &names, to).map_err(|problem| named(problem, relative))
}

/// Is a link that a path ends with followed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    Follow,
    Refuse,
}

/// Opens a plain file to be read. Whoever named a pipe or a device would have us wait for ever, even to open it.
pub fn open_plain(path: &Path, links: Links) -> io::Result<File> {
    system::open_plain(path, links)
}

/// All of a plain file, or nothing of one that is longer than this.
pub fn read_plain(path: &Path, links: Links, most: usize) -> io::Result<Vec<u8>> {
    bounded(&open_plain(path, links)?, most)
}

/// The same as text.
pub fn read_plain_text(path: &Path, links: Links, most: usize) -> io::Result<String> {
    let bytes = read_plain(path, links, most)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text"))
}

/// Far more than any file of a project that we read by ourselves has.
const MOST: usize = 64 * 1024 * 1024;

/// What is in a plain file that lies where agents can write: links are followed, since people put them there; a pipe
/// or a device is an error at once, and so is a file that nobody can mean.
pub fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    read_plain(path, Links::Follow, MOST)
}

/// The same as text.
pub fn text_of(path: &Path) -> io::Result<String> {
    read_plain_text(path, Links::Follow, MOST)
}

fn bounded(mut file: &File, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    Read::by_ref(&mut file).take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

fn no_plain_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file")
}

fn named(problem: Problem, relative: &str) -> CreateError {
    match problem {
        Problem::Link => CreateError::Link { path: relative.to_owned() },
        Problem::Exists => CreateError::Exists { path: relative.to_owned() },
        Problem::Io(source) => CreateError::Write { path: relative.to_owned(), source },
    }
}

enum Problem {
    Link,
    Exists,
    Io(io::Error),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The directories and the file, if the path names a file below where it starts.
fn names(relative: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    // A path of another system must not become one long name here, or the other way round.
    if relative.ends_with(['/', '\\']) || relative.contains(['\\', '\0']) {
        return None;
    }
    for component in Path::new(relative).components() {
        match component {
            Component::Normal(name) => names.push(name.to_str()?),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!names.is_empty()).then_some(names)
}

#[cfg(unix)]
mod system {
    use std::fs::File;
    use std::io::{self, Write};
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
    use rustix::io::Errno;

    use super::{Created, Links, Problem, bounded, no_plain_file};
    use crate::crash;

    pub(super) fn create(
        root: &Path,
        names: &[&str],
        bytes: &[u8],
        overwrite: bool,
    ) -> Result<Created, Problem> {
        let (directory, name) = directory_of(root, names, Synced::Yes)?;
        let there = read(&directory, name, bytes.len());
        let there = match there {
            // What is longer is something else.
            Err(Problem::Io(error)) if error.kind() == io::ErrorKind::FileTooLarge => Some(None),
            there => there?.map(Some),
        };
        match &there {
            Some(Some(there)) if there == bytes => return Ok(Created::Same),
            Some(_) if !overwrite => return Err(Problem::Exists),
            Some(_) | None => {}
        }
        let temporary = write_beside(&directory, name, bytes, Synced::Yes)?;
        crash::point("file written beside");
        let placed = place(&directory, &temporary, name, there.is_some());
        // Where it was put in its place it is not there any more.
        remove(&directory, &temporary);
        placed?;
        rustix::fs::fsync(&directory).map_err(io::Error::from)?;
        Ok(if there.is_some() { Created::Replaced } else { Created::New })
    }

    pub(super) fn replace(root: &Path, names: &[&str], bytes: &[u8]) -> Result<(), Problem> {
        let (directory, name) = directory_of(root, names, Synced::No)?;
        let temporary = write_beside(&directory, name, bytes, Synced::No)?;
        let placed = place(&directory, &temporary, name, true);
        if placed.is_err() {
            remove(&directory, &temporary);
        }
        placed
    }

    pub(super) fn read_below(root: &Path, names: &[&str], most: usize) -> Result<Option<Vec<u8>>, Problem> {
        match existing_directory(root, names)? {
            Some((directory, name)) => read(&directory, name, most),
            None => Ok(None),
        }
    }

    pub(super) fn append(root: &Path, names: &[&str], bytes: &[u8]) -> Result<(), Problem> {
        let mut file = plain_for(root, names, OFlags::APPEND | OFlags::CREATE)?;
        file.write_all(bytes)?;
        Ok(file.sync_data()?)
    }

    pub(super) fn cut(root: &Path, names: &[&str], length: u64) -> Result<(), Problem> {
        Ok(plain_for(root, names, OFlags::empty())?.set_len(length)?)
    }

    pub(super) fn touch(root: &Path, names: &[&str]) -> Result<(), Problem> {
        let Some((directory, name)) = existing_directory(root, names)? else {
            return Err(io::Error::from(io::ErrorKind::NotFound).into());
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&directory, name, flags, Mode::empty()).map_err(problem)?);
        if !file.metadata()?.is_file() {
            return Err(Problem::Exists);
        }
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        Ok(rustix::fs::futimens(&file, &times).map_err(io::Error::from)?)
    }

    /// A plain file to be written. A pipe that nobody reads is an error at once.
    fn plain_for(root: &Path, names: &[&str], how: OFlags) -> Result<File, Problem> {
        let Some((directory, name)) = existing_directory(root, names)? else {
            return Err(io::Error::from(io::ErrorKind::NotFound).into());
        };
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | how;
        let file = rustix::fs::openat(&directory, name, flags, Mode::from_raw_mode(0o666));
        let file = File::from(file.map_err(problem)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(Problem::Exists) }
    }

    pub(super) fn take_away(root: &Path, names: &[&str], to: &Path) -> Result<(), Problem> {
        let Some((directory, name)) = existing_directory(root, names)? else {
            return Err(io::Error::from(io::ErrorKind::NotFound).into());
        };
        Ok(rustix::fs::renameat(&directory, name, rustix::fs::CWD, to).map_err(io::Error::from)?)
    }

    pub(super) fn open_plain(path: &Path, links: Links) -> io::Result<File> {
        let follow = match links {
            Links::Follow => OFlags::empty(),
            Links::Refuse => OFlags::NOFOLLOW,
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | follow;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(no_plain_file()) }
    }

    /// As [`directory_of`], of what is there.
    fn existing_directory<'a>(root: &Path, names: &[&'a str]) -> Result<Option<(OwnedFd, &'a str)>, Problem> {
        let Some((name, directories)) = names.split_last() else { return Err(Problem::Link) };
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut directory = match rustix::fs::open(root, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            directory => directory.map_err(io::Error::from)?,
        };
        for name in directories {
            directory = match rustix::fs::openat(&directory, *name, flags | OFlags::NOFOLLOW, Mode::empty()) {
                Err(Errno::NOENT) => return Ok(None),
                entered => entered.map_err(problem)?,
            };
        }
        Ok(Some((directory, name)))
    }

    /// Does a power cut find it?
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Synced {
        Yes,
        No,
    }

    /// The directory of a file, made if need be, and the file's name in it.
    fn directory_of<'a>(
        root: &Path,
        names: &[&'a str],
        synced: Synced,
    ) -> Result<(OwnedFd, &'a str), Problem> {
        let Some((name, directories)) = names.split_last() else { return Err(Problem::Link) };
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut directory = rustix::fs::open(root, flags, Mode::empty()).map_err(io::Error::from)?;
        for name in directories {
            directory = enter(&directory, name, synced)?;
        }
        Ok((directory, name))
    }

    fn enter(directory: &OwnedFd, name: &str, synced: Synced) -> Result<OwnedFd, Problem> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(directory, name, flags, Mode::empty());
        let entered = match open() {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) if synced == Synced::Yes => {
                        rustix::fs::fsync(directory).map_err(io::Error::from)?;
                    }
                    Ok(()) => {}
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(io::Error::from(error).into()),
                }
                open()
            }
            entered => entered,
        };
        entered.map_err(problem)
    }

    /// What is there, if it is a file.
    fn read(directory: &OwnedFd, name: &str, most: usize) -> Result<Option<Vec<u8>>, Problem> {
        // Not blocking: somebody may have put a pipe there.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(problem(error)),
        };
        if !file.metadata()?.is_file() {
            return Err(Problem::Link);
        }
        Ok(Some(bounded(&file, most)?))
    }

    fn write_beside(
        directory: &OwnedFd,
        name: &str,
        bytes: &[u8],
        synced: Synced,
    ) -> Result<String, Problem> {
        let temporary = format!(".{name}.wiggum-tmp");
        // Always the same name, so that what was left when we were killed goes when it is done again.
        remove(directory, &temporary);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, &temporary, flags, Mode::from_raw_mode(0o666));
        let mut file = File::from(file.map_err(problem)?);
        let written = file.write_all(bytes).and_then(|()| match synced {
            Synced::Yes => file.sync_all(),
            Synced::No => Ok(()),
        });
        if let Err(error) = written {
            remove(directory, &temporary);
            return Err(error.into());
        }
        Ok(temporary)
    }

    /// What cannot be removed is in nobody's way.
    fn remove(directory: &OwnedFd, name: &str) {
        let _gone = rustix::fs::unlinkat(directory, name, AtFlags::empty());
    }

    /// A new file takes its name only if nobody else has it by now.
    fn place(directory: &OwnedFd, temporary: &str, name: &str, replace: bool) -> Result<(), Problem> {
        let placed = if replace {
            rustix::fs::renameat(directory, temporary, directory, name)
        } else {
            rustix::fs::linkat(directory, temporary, directory, name, AtFlags::empty())
        };
        match placed {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(Problem::Exists),
            // A file system without hard links.
            Err(Errno::PERM | Errno::NOTSUP) if !replace => place(directory, temporary, name, true),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    fn problem(error: Errno) -> Problem {
        match error {
            Errno::LOOP | Errno::NOTDIR => Problem::Link,
            // A pipe that nobody reads, or a directory.
            Errno::NXIO | Errno::ISDIR => Problem::Exists,
            error => Problem::Io(error.into()),
        }
    }
}

/// Without descriptors of directories a link could be put in place between the look and the write:
/// whoever can do that can write there anyway.
#[cfg(not(unix))]
mod system {
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::path::{Path, PathBuf};

    use super::{Created, Links, Problem, bounded, no_plain_file};
    use crate::paths::{inside, write_atomic, write_whole};

    pub(super) fn open_plain(path: &Path, links: Links) -> std::io::Result<fs::File> {
        let is_link = links == Links::Refuse && path.is_symlink();
        if is_link || !fs::metadata(path)?.is_file() { Err(no_plain_file()) } else { fs::File::open(path) }
    }

    pub(super) fn read_below(root: &Path, names: &[&str], most: usize) -> Result<Option<Vec<u8>>, Problem> {
        let path = inside(root, &names.join("/")).map_err(|_| Problem::Link)?;
        match open_plain(&path, Links::Refuse) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            file => Ok(Some(bounded(&file?, most)?)),
        }
    }

    pub(super) fn append(root: &Path, names: &[&str], bytes: &[u8]) -> Result<(), Problem> {
        let path = plain_or_none(root, names)?;
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        file.write_all(bytes)?;
        Ok(file.sync_data()?)
    }

    pub(super) fn cut(root: &Path, names: &[&str], length: u64) -> Result<(), Problem> {
        let path = plain_or_none(root, names)?;
        Ok(OpenOptions::new().write(true).open(path)?.set_len(length)?)
    }

    pub(super) fn touch(root: &Path, names: &[&str]) -> Result<(), Problem> {
        let path = plain_or_none(root, names)?;
        let text = fs::read(&path)?;
        Ok(fs::write(&path, text)?)
    }

    fn plain_or_none(root: &Path, names: &[&str]) -> Result<PathBuf, Problem> {
        let path = inside(root, &names.join("/")).map_err(|_| Problem::Link)?;
        match fs::symlink_metadata(&path) {
            Ok(data) if !data.is_file() => Err(Problem::Exists),
            Ok(_) | Err(_) => Ok(path),
        }
    }

    pub(super) fn take_away(root: &Path, names: &[&str], to: &Path) -> Result<(), Problem> {
        let path = inside(root, &names.join("/")).map_err(|_| Problem::Link)?;
        Ok(fs::rename(path, to)?)
    }

    pub(super) fn replace(root: &Path, names: &[&str], bytes: &[u8]) -> Result<(), Problem> {
        let path = inside(root, &names.join("/")).map_err(|_| Problem::Link)?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        Ok(write_whole(&path, bytes)?)
    }

    pub(super) fn create(
        root: &Path,
        names: &[&str],
        bytes: &[u8],
        overwrite: bool,
    ) -> Result<Created, Problem> {
        let path = inside(root, &names.join("/")).map_err(|_| Problem::Link)?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        match fs::read(&path) {
            Ok(there) if there == bytes => return Ok(Created::Same),
            Ok(_) if !overwrite => return Err(Problem::Exists),
            Ok(_) => {
                write_atomic(&path, bytes)?;
                return Ok(Created::Replaced);
            }
            Err(_) => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(Created::New)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_replaced_is_the_name_and_not_what_it_leads_to() {
        let root = tempfile::tempdir().unwrap();
        let theirs = root.path().join("theirs");
        fs::write(&theirs, "theirs").unwrap();
        symlink(&theirs, root.path().join("status.json")).unwrap();
        symlink(&theirs, root.path().join(".other.json.wiggum-tmp")).unwrap();
        for name in ["status.json", "other.json", "a/b.json", "a/b.json"] {
            replace(root.path(), name, name.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(root.path().join(name)).unwrap(), name);
        }
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
        symlink(root.path().join("a"), root.path().join("link")).unwrap();
        assert!(matches!(replace(root.path(), "link/c.json", b""), Err(CreateError::Link { .. })));
        assert!(matches!(replace(root.path(), "../c.json", b""), Err(CreateError::Outside { .. })));
    }

    #[test]
    fn a_file_gets_younger_and_keeps_what_is_in_it() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        fs::write(&path, "text").unwrap();
        let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000);
        let set_back = |path| fs::File::options().write(true).open(path).unwrap().set_modified(long_ago);
        set_back(&path).unwrap();
        touch(root.path(), "file").unwrap();
        assert!(fs::metadata(&path).unwrap().modified().unwrap() > long_ago);
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
        set_back(&path).unwrap();
        symlink(&path, root.path().join("link")).unwrap();
        assert!(touch(root.path(), "link").is_err());
        assert!(touch(root.path(), "../file").is_err());
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), long_ago);
    }

    #[test]
    fn only_plain_files_below_are_read_or_taken() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        fs::create_dir_all(root.join("dir")).unwrap();
        fs::write(base.path().join("outside"), "theirs").unwrap();
        fs::write(root.join("dir/file"), "12345").unwrap();
        symlink("../outside", root.join("link")).unwrap();
        symlink("dir", root.join("way")).unwrap();
        pipe(&root.join("pipe"));
        let read = |path, most| read(&root, path, most);
        assert_eq!(read("dir/file", 5).unwrap().unwrap(), b"12345");
        assert!(read("dir/none", 5).unwrap().is_none() && read("none/file", 5).unwrap().is_none());
        assert!(matches!(read("dir/file", 4), Err(CreateError::Read { .. })), "too long");
        for path in ["link", "way/file", "pipe", "dir", "../outside"] {
            assert!(read(path, 100).is_err(), "{path}");
        }
        for path in ["pipe", "dir", "link"] {
            assert!(read_plain(&root.join(path), Links::Refuse, 100).is_err(), "{path}");
        }
        assert!(read_plain(Path::new("/dev/zero"), Links::Follow, 100).is_err());
        assert_eq!(read_plain(&root.join("link"), Links::Follow, 100).unwrap(), b"theirs");
        let to = base.path().join("taken");
        assert!(matches!(take_away(&root, "way/file", &to), Err(CreateError::Link { .. })));
        take_away(&root, "dir/file", &to).unwrap();
        assert!(take_away(&root, "dir/file", &to).is_err(), "only once");
        assert_eq!(fs::read_to_string(to).unwrap(), "12345");
    }

    fn pipe(path: &Path) {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("pipes can be made");
    }

    #[test]
    fn what_is_added_goes_to_plain_files_below() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        fs::create_dir_all(root.join("dir")).unwrap();
        fs::write(base.path().join("outside"), "theirs").unwrap();
        symlink("../outside", root.join("link")).unwrap();
        symlink("dir", root.join("way")).unwrap();
        pipe(&root.join("pipe"));
        append(&root, "dir/file", b"one ").unwrap();
        append(&root, "dir/file", b"two").unwrap();
        assert_eq!(fs::read_to_string(root.join("dir/file")).unwrap(), "one two");
        cut(&root, "dir/file", 3).unwrap();
        assert_eq!(fs::read_to_string(root.join("dir/file")).unwrap(), "one");
        for path in ["link", "way/file", "pipe", "dir", "../outside", "none/file"] {
            assert!(append(&root, path, b"x").is_err(), "{path}");
            assert!(cut(&root, path, 0).is_err(), "{path}");
        }
        assert!(cut(&root, "nothing", 0).is_err());
        assert_eq!(fs::read_to_string(base.path().join("outside")).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(root.join("dir/file")).unwrap(), "one");
    }

    #[test]
    fn a_file_is_created_with_its_directories_and_never_replaced_unasked() {
        let root = tempfile::tempdir().unwrap();
        let create = |path, text: &str, overwrite| create(root.path(), path, text.as_bytes(), overwrite);
        assert_eq!(create("a/b/c.md", "one", false).unwrap(), Created::New);
        assert_eq!(create("./a/b/c.md", "one", false).unwrap(), Created::Same);
        assert!(matches!(create("a/b/c.md", "two", false), Err(CreateError::Exists { .. })));
        assert_eq!(fs::read_to_string(root.path().join("a/b/c.md")).unwrap(), "one");
        assert_eq!(create("a/b/c.md", "two", true).unwrap(), Created::Replaced);
        assert_eq!(fs::read_to_string(root.path().join("a/b/c.md")).unwrap(), "two");
        assert_eq!(fs::read_dir(root.path().join("a/b")).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn no_path_leads_out() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("vault");
        fs::create_dir_all(root.join("in")).unwrap();
        fs::create_dir(base.path().join("out")).unwrap();
        symlink("../out", root.join("link")).unwrap();
        symlink("in", root.join("inner")).unwrap();
        symlink("../out/file.md", root.join("dangling.md")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        let paths = [
            "",
            ".",
            "..",
            "../x.md",
            "in/../../x.md",
            "/tmp/x.md",
            "link/x.md",
            "inner/x.md",
            "dangling.md",
            "file/x.md",
            "in/",
            "a\\b.md",
            "in",
        ];
        for path in paths {
            assert!(create(&root, path, b"x", true).is_err(), "{path}");
        }
        assert_eq!(fs::read_dir(base.path().join("out")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(root.join("in")).unwrap().count(), 0);
    }
}
