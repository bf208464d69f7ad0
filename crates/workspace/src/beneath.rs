//! Files that are created below a directory and nowhere else, whoever changes links meanwhile.
//!
//! Every directory on the way is opened by its name inside the one before it, and links are not
//! followed: there is no moment at which somebody could put another one in its place.

use std::io;
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
    system::create(root, &names, bytes, overwrite).map_err(|problem| match problem {
        Problem::Link => CreateError::Link { path: relative.to_owned() },
        Problem::Exists => CreateError::Exists { path: relative.to_owned() },
        Problem::Io(source) => CreateError::Write { path: relative.to_owned(), source },
    })
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
    use std::io::{self, Read, Write};
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{AtFlags, Mode, OFlags};
    use rustix::io::Errno;

    use super::{Created, Problem};
    use crate::crash;

    pub(super) fn create(
        root: &Path,
        names: &[&str],
        bytes: &[u8],
        overwrite: bool,
    ) -> Result<Created, Problem> {
        let Some((name, directories)) = names.split_last() else { return Err(Problem::Link) };
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut directory = rustix::fs::open(root, flags, Mode::empty()).map_err(io::Error::from)?;
        for name in directories {
            directory = enter(&directory, name)?;
        }
        let there = read(&directory, name)?;
        match &there {
            Some(there) if there == bytes => return Ok(Created::Same),
            Some(_) if !overwrite => return Err(Problem::Exists),
            Some(_) | None => {}
        }
        let temporary = write_beside(&directory, name, bytes)?;
        crash::point("file written beside");
        let placed = place(&directory, &temporary, name, there.is_some());
        // Where it was put in its place it is not there any more.
        remove(&directory, &temporary);
        placed?;
        rustix::fs::fsync(&directory).map_err(io::Error::from)?;
        Ok(if there.is_some() { Created::Replaced } else { Created::New })
    }

    fn enter(directory: &OwnedFd, name: &str) -> Result<OwnedFd, Problem> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(directory, name, flags, Mode::empty());
        let entered = match open() {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) => rustix::fs::fsync(directory).map_err(io::Error::from)?,
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
    fn read(directory: &OwnedFd, name: &str) -> Result<Option<Vec<u8>>, Problem> {
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
        let mut bytes = Vec::new();
        (&file).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn write_beside(directory: &OwnedFd, name: &str, bytes: &[u8]) -> Result<String, Problem> {
        let temporary = format!(".{name}.wiggum-tmp");
        // Always the same name, so that what was left when we were killed goes when it is done again.
        remove(directory, &temporary);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, &temporary, flags, Mode::from_raw_mode(0o666));
        let mut file = File::from(file.map_err(problem)?);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
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
    use std::path::Path;

    use super::{Created, Problem};
    use crate::paths::{inside, write_atomic};

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
