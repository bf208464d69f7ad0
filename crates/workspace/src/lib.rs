//! The ground an iteration stands on: process trees, the git repository and paths inside it.
//!
//! Everything here is synchronous. [`process`] is the only door through which this program starts
//! other programs; [`git`] goes through it too. Nothing here decides anything: it does what it is
//! told and reports what it saw.
//!
//! ```
//! use wiggum_workspace::process::{self, CommandLine, Launch};
//!
//! let said = process::run(Launch::new(CommandLine::parse("echo 'two words'")?, "/"))?;
//! assert!(said.exit.success());
//! assert_eq!(said.stdout, b"two words\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod beneath;
pub mod crash;
pub mod git;
pub mod paths;
pub mod process;
pub mod sandbox;
