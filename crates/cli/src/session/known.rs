//! The workspaces of this user in which sessions or dispatched agents have had a loop: one small file
//! for each, so that a monitor finds them from anywhere. What runs by `wiggum run` is in the registry.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use wiggum_workspace::beneath::{self, Links};

use crate::config;

/// Systems allow 4096 bytes.
const LONGEST_PATH: usize = 16 * 1024;

/// Notes a workspace. Whoever cannot be noted is found only where it is.
pub(crate) fn note(workspace: &Path) {
    let Some(directory) = directory() else { return };
    let mut hasher = DefaultHasher::new();
    workspace.hash(&mut hasher);
    let name = format!("{:016x}", hasher.finish());
    if !directory.join(&name).exists() && fs::create_dir_all(&directory).is_ok() {
        drop(beneath::replace(&directory, &name, workspace.as_os_str().as_bytes()));
    }
}

/// Those that are still there, in the order of their paths.
pub(crate) fn all() -> Vec<PathBuf> {
    let entries = directory().and_then(|directory| fs::read_dir(directory).ok());
    let read = |entry: fs::DirEntry| {
        let path = PathBuf::from(std::ffi::OsString::from_vec(
            beneath::read_plain(&entry.path(), Links::Refuse, LONGEST_PATH).ok()?,
        ));
        if path.is_dir() {
            return Some(path);
        }
        // A repository that is gone does not come back under this path.
        drop(fs::remove_file(entry.path()));
        None
    };
    let mut known: Vec<PathBuf> = entries.into_iter().flatten().flatten().filter_map(read).collect();
    known.sort_unstable();
    known
}

fn directory() -> Option<PathBuf> {
    let names = ["WIGGUM_DATA_DIR", "XDG_DATA_HOME", "HOME"];
    let set = names.into_iter().filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)));
    Some(config::data_dir(&set.collect::<BTreeMap<_, _>>())?.join("sessions"))
}
