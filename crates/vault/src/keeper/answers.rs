//! What people say in notes, as requests to the loop and leave to go on.

use jiff::Timestamp;
use wiggum_backlog::PlanValue;
use wiggum_core::event::Request;
use wiggum_core::ids::LoopId;
use wiggum_engine::wake;
use wiggum_store::{Left, LoopRecord, Pending};

use super::{Keeper, StateDir, VaultError, carry};
use crate::notes::{self, About, Kind, Reply};
use crate::plans::Approved;
use crate::projection::{Snapshot, fold, write_note};
use crate::story::Story;

/// Who answers, as the journal names them.
const BY: &str = "vault";

/// What people want of a plan that does not go on by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) go_on: bool,
    /// It is to be left as it is.
    pub(super) left: bool,
}

impl Keeper {
    /// Takes the ticks in a plan's notes; says what they come to.
    pub(super) fn take_answers(
        &mut self,
        plan: &Approved,
        record: &LoopRecord,
        story: &Story,
        about: &About<'_>,
    ) -> Result<Said, VaultError> {
        let mut said = Said::default();
        for kind in Kind::ALL {
            let path = kind.path(plan.id());
            let Some(text) = self.vault.read(&path)? else { continue };
            let sections = notes::sections(kind, story, about);
            let mut complaints = Vec::new();
            let mut left = false;
            for (section, ticks) in notes::read(&text, &sections) {
                match notes::reply(section, &ticks) {
                    Err(complaint) => complaints.push((section.key().to_owned(), complaint)),
                    Ok(Reply::Answer(question, answer)) => {
                        self.post(record.id, &Request::Answer { question, answer })?;
                    }
                    Ok(Reply::Limit(limit)) => {
                        self.granted.insert(plan.id().to_owned(), limit);
                        carry::edit(&self.vault, plan, &[PlanValue::MaxIterations(limit)])?;
                        said.go_on = true;
                    }
                    Ok(Reply::GoOn) => said.go_on = true,
                    Ok(Reply::Leave) => left = true,
                    // Read together with the words under them.
                    Ok(Reply::Words(_) | Reply::Unread | Reply::OwnLimit) => {}
                }
            }
            if left || !complaints.is_empty() {
                write_note(&self.vault, kind, about, story, &complaints)?;
            }
            said.left |= left;
        }
        Ok(said)
    }

    /// A note was written, by us or by a person.
    pub(super) fn note_changed(&mut self, stem: &str) -> Result<(), VaultError> {
        let prefixes = Kind::ALL.map(|kind| kind.name(""));
        let Some(id) = prefixes.iter().find_map(|prefix| stem.strip_prefix(prefix)).map(str::to_owned) else {
            return Ok(());
        };
        let Some(name) = self.owners.get(&id).cloned() else { return Ok(()) };
        if !self.running.contains_key(&id) {
            return self.consider(&name);
        }
        let (Some(plan), Some(record)) = (self.plan(&id), self.record(&id)?) else { return Ok(()) };
        let (state, story) = fold(&self.store, Some(record.id))?;
        let snapshot = Snapshot::of(&state);
        let about = snapshot.about(&plan, self.limit(&plan));
        self.take_answers(&plan, &record, &story, &about)?;
        Ok(())
    }

    /// Somebody posted a request to a loop, perhaps to one that rests.
    pub(super) fn woken(&mut self, id: &str) -> Result<(), VaultError> {
        let resting: Vec<String> =
            self.owners.keys().filter(|plan| !self.running.contains_key(*plan)).cloned().collect();
        for plan in resting {
            let Some(record) = self.record(&plan)? else { continue };
            if record.id.to_string() == id && !self.store.pending(record.id)?.is_empty() {
                self.enqueue(&plan);
            }
        }
        Ok(())
    }

    fn post(&mut self, id: LoopId, request: &Request) -> Result<(), VaultError> {
        // Of several answers to a question the first counts, wherever it was given.
        let same = |other: &Pending| match (&other.request, request) {
            (Request::Answer { question: one, .. }, Request::Answer { question: other, .. }) => one == other,
            (other, request) => other == request,
        };
        let same = |waiting: &[Pending]| waiting.iter().find(|other| same(other)).cloned();
        if let Left::Taken(_) = self.store.post_first(id, request, BY, Timestamp::now(), None, &same)? {
            return Ok(());
        }
        wake::wake(&self.dir, id)
            .map_err(|source| VaultError::Write { path: StateDir::NAME.to_owned(), source })
    }
}
