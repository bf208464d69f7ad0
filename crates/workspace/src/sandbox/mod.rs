//! Confining a program to the places it may write to, and hiding others from it.
//!
//! Two ways, both Linux only: `bwrap`, which gives it a view of the file system that is read-only elsewhere, and
//! Landlock, which the kernel applies to a process and all it starts, alone or inside of the other. Landlock alone
//! hides nothing. Neither is done between fork and exec: a program is started through a helper (this very binary, by [`HELPER`]),
//! which confines itself and then becomes the program. Its process, session and resource limits stay
//! the same, and so does everything that finds what it leaves behind.
//!
//! A confinement that cannot be put in force is an error: a program is never started without it.
//! Which places an agent gets is not decided here.

mod bwrap;
mod helper;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(not(target_os = "linux"))]
#[path = "portable.rs"]
mod landlock;
#[cfg(target_os = "linux")]
mod powers;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

pub use helper::become_program;

/// The argument by which this binary is the helper.
pub const HELPER: &str = "sandboxed-exec";

/// How a program is confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Landlock(Strength),
    Bwrap {
        /// Where it was found, so that no other can take its place.
        program: PathBuf,
        /// With Landlock inside, which keeps what a view of the file system cannot: signals, the memory of other
        /// processes, sockets that are no files.
        landlock: bool,
    },
}

/// How much of it this kernel knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    Full,
    /// Before Linux 6.12: processes outside can be sent signals, and asked by sockets that are no files.
    WithoutScopes,
    /// Before Linux 6.2, as well: a file that may not be written to can still be cut by its path.
    WithoutTruncation,
}

/// What a program may write to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    pub kind: Kind,
    /// This very program.
    pub helper: PathBuf,
    /// Directories with all that is in them, and single files. What does not exist is left out.
    pub writable: Vec<PathBuf>,
    /// Places inside them that stay read-only, and places inside those that do not. Landlock cannot
    /// make such exceptions: whoever may write to a directory may write to all of it.
    pub read_only: Vec<PathBuf>,
    pub writable_again: Vec<PathBuf>,
    /// Directories that look empty and files that cannot be opened, before anything that is read-only or writable
    /// inside of them. Only where [`Kind::can_mount`].
    pub hidden: Vec<PathBuf>,
    /// What is seen in another place than where it is; later ones lie over earlier ones. Only where [`Kind::can_mount`].
    pub mounts: Vec<Mount>,
}

/// Something that is seen in another place than where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub from: PathBuf,
    pub at: PathBuf,
    pub writable: bool,
}

impl Kind {
    /// Can a program be shown something else in the place of a file or directory?
    pub fn can_mount(&self) -> bool {
        match self {
            Self::Bwrap { .. } => true,
            Self::Landlock(_) => false,
        }
    }
}

#[derive(Debug, Error)]
pub enum SandboxError {
    #[error("this system is not Linux")]
    NotLinux,
    #[error("this kernel has no Landlock of the kind that is needed (Linux 5.19 or later)")]
    OldKernel(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("Landlock was accepted, but is not in force")]
    NotEnforced,
    #[error("the rights of the administrator cannot be given up")]
    Powers(#[source] io::Error),
    #[error("bwrap is not installed")]
    NoBwrap,
    #[error("bwrap does not work here: {0}")]
    BrokenBwrap(String),
    #[error("cannot start {}", program.display())]
    Exec { program: PathBuf, source: io::Error },
    #[error("the helper was called with `{0}`, which it does not understand")]
    Arguments(String),
}

/// Tries Landlock on a thread that then ends, and looks whether it is really in force.
pub fn landlock() -> Result<Kind, SandboxError> {
    landlock::probe().map(Kind::Landlock)
}

/// Looks for `bwrap` and tries it.
pub fn bwrap() -> Result<Kind, SandboxError> {
    let inside = landlock::probe().is_ok();
    bwrap::probe().map(|program| Kind::Bwrap { program, landlock: inside })
}

impl Confinement {
    /// The arguments that make the helper become `program` with its own arguments.
    pub(crate) fn arguments(&self, program: OsString, args: &[OsString]) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec![HELPER.into()];
        match &self.kind {
            Kind::Landlock(_) => {
                all.push(helper::LANDLOCK.into());
                all.extend(self.writable.iter().map(Into::into));
            }
            Kind::Bwrap { program: bwrap, landlock } => {
                all.extend([helper::BWRAP.into(), bwrap.into()]);
                all.extend(bwrap::arguments(self));
                all.extend(
                    [helper::END, if *landlock { helper::LANDLOCK } else { helper::INSIDE }].map(Into::into),
                );
                let mounted = self.mounts.iter().filter(|mount| mount.writable).map(|mount| &mount.at);
                let places = self.writable.iter().chain(&self.writable_again).chain(mounted);
                all.extend(places.filter(|_| *landlock).map(Into::into));
            }
        }
        all.push(helper::END.into());
        all.push(program);
        all.extend(args.iter().cloned());
        all
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Landlock(Strength::Full | Strength::WithoutScopes) => "landlock",
            Self::Landlock(Strength::WithoutTruncation) => "landlock of an old kernel",
            Self::Bwrap { landlock: true, .. } => "bwrap with landlock",
            Self::Bwrap { landlock: false, .. } => "bwrap",
        })
    }
}
