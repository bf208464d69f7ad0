//! The folder of approved plans: what is in it, what came, and what is gone.

use std::time::{Duration, Instant};

use wiggum_engine::Input;

use super::{Keeper, Known, is_same_id};
use crate::layout::{APPROVED, IN_PROGRESS, NEEDS_ACTION, VaultError};
use crate::plans::{Look, is_note, look, stamp, stem};
use crate::projection::Standing;
use crate::watch::Watch;

/// A file that is gone for so long is not being written by an editor.
const GONE: Duration = Duration::from_millis(500);
/// A file that cannot be read for so long is told of.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How often everything is looked at where nobody watches and plans are only carried out once.
const LOOK_UNWATCHED: Duration = Duration::from_secs(60);

impl Keeper {
    /// Looks at everything: at the start, when signals were lost, and now and then.
    pub(super) fn look_at_all(&mut self) -> Result<(), VaultError> {
        let again = self.watch.as_ref().map_or(LOOK_UNWATCHED, Watch::look_every);
        self.next_look = Instant::now() + again;
        let tree = self.vault.tree(APPROVED);
        let names: Vec<&String> = tree.files.iter().filter(|name| is_note(name)).collect();
        let is_gone = |name: &&String| names.binary_search(name).is_err();
        let gone: Vec<String> = self.files.keys().filter(is_gone).cloned().collect();
        for name in names.into_iter().chain(&gone) {
            self.look_at(name)?;
        }
        self.refuse_links(&tree.links)?;
        for name in self.vault.names(NEEDS_ACTION).iter().filter(|name| is_note(name)) {
            self.note_changed(stem(name))?;
        }
        self.remove_leftovers()?;
        self.look_at_waiting();
        Ok(())
    }

    /// A file of the folder of approved plans may have changed.
    pub(super) fn look_at(&mut self, name: &str) -> Result<(), VaultError> {
        let now = Instant::now();
        let found = self.vault.place(&format!("{APPROVED}/{name}")).ok().and_then(|path| stamp(&path));
        let Some(stamp) = found else {
            if self.files.contains_key(name) {
                self.timers.insert((now + GONE, name.to_owned()));
            }
            return Ok(());
        };
        let known = self.files.get(name);
        if known.is_some_and(|known| known.stamp == stamp) {
            return Ok(());
        }
        // A file that comes says itself since when nobody has written it; one that is seen to change is
        // waited for anew, whatever its clock says.
        let settle = self.rules.settle.as_duration();
        let quiet = if known.is_some() { Duration::ZERO } else { stamp.age() };
        self.files.insert(name.to_owned(), Known { stamp, since: now, look: None });
        self.timers.insert((now + settle.saturating_sub(quiet), name.to_owned()));
        Ok(())
    }

    pub(super) fn take_timers(&mut self) -> Result<(), VaultError> {
        let now = Instant::now();
        while let Some((at, name)) = self.timers.first().cloned()
            && at <= now
        {
            self.timers.pop_first();
            self.settled(&name)?;
        }
        Ok(())
    }

    /// A file had time to settle, or to come back.
    pub(super) fn settled(&mut self, name: &str) -> Result<(), VaultError> {
        let found = self.vault.place(&format!("{APPROVED}/{name}")).ok().and_then(|path| stamp(&path));
        let Some(known) = self.files.get(name) else { return Ok(()) };
        if found.is_none() {
            return self.moved_away(name);
        }
        if found != Some(known.stamp) {
            return self.look_at(name);
        }
        if known.look.is_none() {
            let look = self.look(name)?;
            if let Some(known) = self.files.get_mut(name) {
                known.look = Some(look);
            }
            return self.consider(name);
        }
        self.tell_of_broken(PATIENCE)
    }

    /// What a file is. A plan that has not the steps it says is not begun: more may be to come, and nobody
    /// knows which of them were approved.
    fn look(&self, name: &str) -> Result<Look, VaultError> {
        let found = look(&self.vault, name);
        if let Look::Plan(plan) = &found
            && let Some(problem) = &plan.miscounted
            && self.record(plan.id())?.is_none()
        {
            return Ok(Look::Broken(problem.clone()));
        }
        Ok(found)
    }

    /// Looks at a file at once, however short ago it was written: by us.
    pub(super) fn look_once_more(&mut self, name: &str) -> Result<(), VaultError> {
        let found = self.vault.place(&format!("{APPROVED}/{name}")).ok().and_then(|path| stamp(&path));
        let Some(stamp) = found.filter(|_| self.files.contains_key(name)) else { return Ok(()) };
        let known = Known { stamp, since: Instant::now(), look: Some(self.look(name)?) };
        self.files.insert(name.to_owned(), known);
        self.consider(name)
    }

    /// The file of a plan was moved out of the folder.
    pub(super) fn moved_away(&mut self, name: &str) -> Result<(), VaultError> {
        let id = self.owners.iter().find(|(_, owner)| *owner == name).map(|(id, _)| id.clone());
        self.problem_is_over(name)?;
        self.forget(name);
        let Some(id) = id else { return Ok(()) };
        if let Some(Some(remote)) = self.running.get(&id) {
            remote.send(Input::Interrupt("the plan was moved away"));
        }
        self.vault.remove_state(&id)?;
        // Another file may have waited for its id.
        let is_same =
            |known: &Known| matches!(&known.look, Some(Look::Plan(plan)) if is_same_id(plan.id(), &id));
        let others: Vec<String> =
            self.files.iter().filter(|(_, known)| is_same(known)).map(|(name, _)| name.clone()).collect();
        others.iter().try_for_each(|other| self.consider(other))
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.files.remove(name);
        let ids: Vec<String> =
            self.owners.iter().filter(|(_, owner)| *owner == name).map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.owners.remove(&id);
            self.rows.remove(&id);
            self.queue.retain(|queued| *queued != id);
        }
        self.dashboard_soon();
    }

    /// State of plans that are done, left by a crash in between.
    pub(super) fn remove_leftovers(&mut self) -> Result<(), VaultError> {
        for id in self.vault.names(IN_PROGRESS) {
            if self.running.contains_key(&id) || self.owners.contains_key(&id) || id.starts_with('.') {
                continue;
            }
            let Some(record) = self.record(&id)? else { continue };
            let state = wiggum_engine::read_state(&self.store, record.id)?;
            if Standing::of(&state) == Standing::Completed {
                self.vault.remove_state(&id)?;
            }
        }
        Ok(())
    }
}
