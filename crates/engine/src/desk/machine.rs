//! The loops of this machine: every workspace its registry knows, so that a surface started in one of them
//! can show and steer the loops of all.
//!
//! What a client names is the id of a loop, never a path: where that loop keeps its state is what the engine
//! entered when it ran.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use wiggum_store::{Entry, Registry};

use crate::checkout::Checkout;
use crate::desk::DeskError;

/// A checkout of this machine in which loops ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Registered {
    pub checkout: Checkout,
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
        let checkout = Checkout::at(&entry.identity.repository, &entry.state_dir);
        let place = *places.entry(entry.state_dir.clone()).or_insert_with(|| {
            found.push(Registered { checkout, loops: Vec::new() });
            found.len() - 1
        });
        found[place].loops.push(entry);
    }
    found.retain(|place| place.checkout.find().is_ok_and(|dir| dir.is_some()));
    Ok(found)
}

/// Leaves out what leads to the same directory or the same store a second time. A checkout that was moved is
/// registered under its former path until a loop runs in it again.
pub fn each_once<T>(places: Vec<T>, checkout: impl Fn(&T) -> &Checkout) -> Vec<T> {
    let (mut paths, mut stores) = (HashSet::new(), HashSet::new());
    let mut is_new = |place: &T| {
        let checkout = checkout(place);
        let store = checkout.find().ok().flatten().map(|dir| dir.path().to_owned());
        paths.insert(checkout.path().to_owned()) && store.is_none_or(|store| stores.insert(store))
    };
    places.into_iter().filter(|place| is_new(place)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkout::StateRoot;

    #[test]
    fn a_checkout_that_was_moved_is_one_place() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let root = StateRoot::new(base.join("state"));
        let (former, here, other) = (base.join("former"), base.join("here"), base.join("other"));
        for path in [&former, &other] {
            std::fs::create_dir(path).unwrap();
        }
        let state = Checkout::new(&former, &root).open(None).unwrap().path().to_owned();
        std::fs::write(state.join(crate::state_dir::DATABASE), "").unwrap();
        std::fs::rename(&former, &here).unwrap();
        let places = vec![
            Checkout::new(&here, &root),
            Checkout::at(&former, &state),
            Checkout::new(&other, &root),
            Checkout::new(&other, &root),
        ];
        let found = each_once(places, |place| place);
        assert_eq!(found.iter().map(Checkout::path).collect::<Vec<_>>(), [&here, &other]);
    }
}
