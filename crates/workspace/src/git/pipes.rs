//! Named pipes in the place of files that git reads: git waits for somebody who writes, for ever.
//!
//! Whoever finds such a pipe while git waits at it opens its other end and closes it again, so that git sees an empty
//! file and goes on. Pipes of other names, at which programs of the user may wait, are left alone.

use std::fs;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use crate::process::{Attend, Patience};

/// Files that git looks for in every directory of a work tree, or at its root.
pub(super) const READ_BY_GIT: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];

/// Looking takes a moment, and somebody waits.
const MOST_ENTRIES: usize = 200_000;

/// Makes git go on that waits at a named pipe of this work tree or its repository; how often that was so.
pub fn free_readers(work_tree: &Path) -> usize {
    let mut todo: Vec<(PathBuf, Of)> = vec![(work_tree.to_owned(), Of::WorkTree)];
    let (mut seen, mut freed) = (0, 0);
    while let Some((directory, of)) = todo.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST_ENTRIES {
                return freed;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            let is_gits = of == Of::Repository || READ_BY_GIT.iter().any(|known| name == *known);
            if kind.is_dir() {
                let of = if name == ".git" { Of::Repository } else { of };
                todo.push((entry.path(), of));
            } else if kind.is_fifo() && is_gits && free_reader(&entry.path()) {
                freed += 1;
            }
        }
    }
    freed
}

/// Looks after a git that nobody else attends to.
#[derive(Debug)]
pub(super) struct AtPipes {
    work_tree: PathBuf,
    /// Nobody ever writes to it.
    wake: (PipeReader, PipeWriter),
}

impl AtPipes {
    /// How long git may take before anybody wonders, and how soon it may have come to the next pipe.
    const LONG: Duration = Duration::from_secs(1);
    const SOON: Duration = Duration::from_millis(50);

    /// Nothing where that cannot be had.
    pub(super) fn of(work_tree: &Path) -> Option<Arc<dyn Attend>> {
        let wake = std::io::pipe().ok()?;
        Some(Arc::new(Self { work_tree: work_tree.to_owned(), wake }))
    }
}

impl Attend for AtPipes {
    fn wake(&self) -> BorrowedFd<'_> {
        self.wake.0.as_fd()
    }

    fn look(&self, ran: Duration) -> Patience {
        Patience::Wait(Some(match Self::LONG.checked_sub(ran).filter(|left| !left.is_zero()) {
            Some(left) => left,
            None if free_readers(&self.work_tree) > 0 => Self::SOON,
            None => ran,
        }))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    WorkTree,
    Repository,
}

/// Without a reader there is nothing to open.
fn free_reader(path: &Path) -> bool {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).is_ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn pipe(path: &Path) {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .unwrap();
    }

    #[test]
    fn whoever_waits_at_a_pipe_that_git_reads_goes_on_and_nobody_else() {
        let place = tempfile::tempdir().unwrap();
        let (of_git, of_user) = (place.path().join("sub/.gitignore"), place.path().join("control"));
        fs::create_dir(place.path().join("sub")).unwrap();
        pipe(&of_git);
        pipe(&of_user);
        assert_eq!(free_readers(place.path()), 0, "nobody waits");

        // Opened without waiting, as somebody does who waits for words from many.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let _users = rustix::fs::open(&of_user, flags, Mode::empty()).unwrap();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            fs::File::open(of_git).unwrap().read_to_string(&mut text).unwrap();
            text
        });
        while free_readers(place.path()) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(reader.join().unwrap(), "");
        assert_eq!(free_readers(place.path()), 0, "the user's is left alone");
    }
}
