//! What there is in a vault, for the dashboard and for whoever starts a keeper: counted as it is, and read
//! again only where it changed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::problems::PROBLEM;
use super::{Keeper, Told};
use crate::copies::{Origin, origin};
use crate::dashboard::{self, MOST_LISTED, Overview};
use crate::layout::{DASHBOARD, DONE, NEEDS_ACTION, Vault, VaultError, WAITING};
use crate::plans::{Stamp, is_note, reads_like_a_plan, stamp, stem};
use crate::words;

/// Which notes of a folder have something in common, with the versions of them that were looked at.
#[derive(Debug, Default)]
pub(super) struct Index(BTreeMap<String, (Stamp, bool)>);

impl Index {
    /// The paths of such notes without their endings, in order.
    fn find(&mut self, vault: &Vault, folders: &[&str], wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let mut seen = BTreeMap::new();
        let mut found = Vec::new();
        for folder in folders {
            for (path, now) in notes(vault, folder) {
                let known = self.0.get(&path).filter(|(then, _)| *then == now).map(|(_, is_one)| *is_one);
                // One that cannot be read is looked at again when it changes.
                let look = || vault.read(&path).ok().flatten().is_some_and(|text| wanted(&text));
                let is_one = known.unwrap_or_else(look);
                if is_one {
                    found.push(stem(&path).to_owned());
                }
                seen.insert(path, (now, is_one));
            }
        }
        self.0 = seen;
        found
    }
}

/// All notes below a folder, with their paths in the vault; not the copies that programs made of them. What we
/// say about such a copy has its name.
fn notes(vault: &Vault, folder: &str) -> Vec<(String, Stamp)> {
    let is_copy = |path: &str| matches!(origin(path), Origin::Conflict { .. }) && !path.starts_with(PROBLEM);
    let is_meant = |path: &String| is_note(path) && !is_copy(path);
    let paths = vault.tree(folder).files.into_iter().filter(is_meant);
    let stamped = paths.filter_map(|path| {
        let path = format!("{folder}/{path}");
        let now = stamp(&vault.root().join(&path))?;
        Some((path, now))
    });
    stamped.collect()
}

impl Keeper {
    /// Something happened where plans wait for approval. They are looked at together, when it is written.
    pub(super) fn waiting_changed(&mut self) {
        self.waiting_stale = true;
        self.dashboard_soon();
    }

    pub(super) fn look_at_waiting(&mut self) {
        self.waiting_stale = false;
        let waiting = self.plans_waiting.find(&self.vault, &WAITING, reads_like_a_plan);
        if waiting != self.waiting {
            self.waiting = waiting;
            self.dashboard_soon();
        }
        if self.dashboard_due.is_none() && !self.vault.exists(DASHBOARD) {
            self.dashboard_soon();
        }
    }

    /// Says what it found.
    pub(super) fn tell_of_start(&mut self, watching: bool) {
        let told = Told::Opened {
            vault: self.vault.root().display().to_string(),
            watching,
            approved: self.files.len(),
            waiting: self.waiting.len(),
            needs_action: self.notes_that_wait().len(),
        };
        (self.tell)(&told);
    }

    pub(super) fn write_dashboard(&mut self) -> Result<(), VaultError> {
        if self.waiting_stale {
            self.look_at_waiting();
        }
        self.dashboard_due = None;
        let mut done = notes(&self.vault, DONE);
        done.sort_by_key(|(path, stamp)| (Reverse(stamp.modified()), path.clone()));
        let overview = Overview {
            rows: self.rows.values().cloned().collect(),
            waiting: self.waiting.clone(),
            completed: done.len(),
            newest: done.iter().take(MOST_LISTED).map(|(path, _)| stem(path).to_owned()).collect(),
            needs_action: self.notes_that_wait(),
        };
        self.vault.rewrite(DASHBOARD, |old| dashboard::render(old, &overview))
    }

    fn notes_that_wait(&mut self) -> Vec<String> {
        let waits = |text: &str| words::value(text, "action_required") == Some("true");
        self.notes_waiting.find(&self.vault, &[NEEDS_ACTION], waits)
    }
}
