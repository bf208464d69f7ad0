//! The loops of this machine: every workspace its registry knows, so that a surface started in one of them
//! can show and steer the loops of all.
//!
//! What a client names is the id of a loop, never a path: where that loop keeps its state is what the engine
//! entered when it ran.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use wiggum_store::{Entry, Registry};

use crate::desk::DeskError;
use crate::state_dir::StateDir;

/// A workspace of this machine in which loops ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Registered {
    pub workspace: PathBuf,
    /// Its loops as the registry knows them, the one heard of last first.
    pub loops: Vec<Entry>,
}

impl Registered {
    /// Is a loop of this id entered here?
    pub fn has(&self, id: &str) -> bool {
        self.loops.iter().any(|entry| entry.id.to_string() == id)
    }
}

/// Every workspace that is registered and still has its store, the one heard of last first.
pub fn registered(registry: &Path) -> Result<Vec<Registered>, DeskError> {
    let Some(registry) = Registry::open_existing(registry)? else { return Ok(Vec::new()) };
    let mut found: Vec<Registered> = Vec::new();
    let mut places: HashMap<PathBuf, usize> = HashMap::new();
    for entry in registry.entries()? {
        let Some(workspace) = entry.state_dir.parent().map(Path::to_owned) else { continue };
        let place = *places.entry(workspace.clone()).or_insert_with(|| {
            found.push(Registered { workspace, loops: Vec::new() });
            found.len() - 1
        });
        found[place].loops.push(entry);
    }
    found.retain(|place| StateDir::of(&place.workspace).database().exists());
    Ok(found)
}
