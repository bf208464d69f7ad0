//! Which file a plan is. The file a plan was begun from stays that plan, over all starts of a keeper: another
//! file with the same id would otherwise be carried out in its place as soon as it is looked at first.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fs, io};

use wiggum_core::redact;
use wiggum_core::state::Loop;
use wiggum_core::task::Task;
use wiggum_engine::state_dir::StateDir;
use wiggum_store::Store;
use wiggum_workspace::paths::write_atomic;

use super::{Keeper, VaultError, backlog_name};
use crate::copies::is_copy_of;
use crate::plans::{Approved, Look};

/// Ids that differ in upper and lower case alone would have the same notes to Obsidian and to some file systems.
pub(super) fn is_same_id(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Plans that were begun, and from which files. It is kept in the private state, where no agent can write.
pub(super) struct Begun {
    folder: PathBuf,
    /// By their ids in lower case. Of ids that differ in case alone, the first that was begun.
    ids: BTreeMap<String, String>,
}

impl Begun {
    pub(super) fn open(store: &Store, dir: &StateDir) -> Result<Self, VaultError> {
        let mut ids = BTreeMap::new();
        for record in store.loops()? {
            let id = record.identity.name;
            if record.identity.backlog == backlog_name(&id) {
                ids.entry(id.to_lowercase()).or_insert(id);
            }
        }
        Ok(Self { folder: dir.path().join("plans"), ids })
    }

    fn id(&self, id: &str) -> Option<&str> {
        self.ids.get(&id.to_lowercase()).map(String::as_str)
    }

    /// The file a plan was last started from.
    fn file(&self, id: &str) -> Option<String> {
        fs::read_to_string(self.path(id)).ok()
    }

    pub(super) fn note(&mut self, id: &str, file: &str) -> Result<(), VaultError> {
        self.ids.entry(id.to_lowercase()).or_insert_with(|| id.to_owned());
        if self.file(id).as_deref() == Some(file) {
            return Ok(());
        }
        let path = self.path(id);
        let failed = |source: io::Error| VaultError::Write { path: path.display().to_string(), source };
        fs::create_dir_all(&self.folder).map_err(failed)?;
        write_atomic(&path, file.as_bytes()).map_err(failed)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(id.to_lowercase())
    }
}

/// What a file is to the plan whose id it has.
pub(super) enum Claim {
    /// It is the plan.
    Plan,
    /// That depends on a file that was not read yet.
    Unclear,
    CopyOf(String),
    /// Another file is the plan.
    Taken(String),
    /// Another plan has the same id but for upper and lower case, and was begun.
    OtherCase(String),
}

impl Keeper {
    pub(super) fn claim(&self, name: &str, plan: &Approved) -> Result<Claim, VaultError> {
        let begun = self.begun_as(plan.id())?;
        if let Some(other) = begun.as_ref().filter(|begun| *begun != plan.id()) {
            return Ok(Claim::OtherCase(other.clone()));
        }
        let started = self.begun.file(plan.id()).filter(|file| self.may_be(file, plan.id()));
        if begun.is_some()
            && let Some(file) = &started
        {
            return Ok(if file == name {
                Claim::Plan
            } else if self.is_unread(file) || self.waits_for_original(name) {
                Claim::Unclear
            } else {
                self.original_of(name, plan).map_or_else(|| Claim::Taken(file.clone()), Claim::CopyOf)
            });
        }
        if self.waits_for_original(name) {
            return Ok(Claim::Unclear);
        }
        if let Some(original) = self.original_of(name, plan) {
            return Ok(Claim::CopyOf(original));
        }
        // One that could not be started keeps its place as well, but for a copy.
        let owner = self.owner_of(plan.id()).map(|(_, owner)| owner).or(started);
        Ok(match owner.filter(|owner| owner != name) {
            None => Claim::Plan,
            Some(owner) if self.is_unread(&owner) => Claim::Unclear,
            Some(owner) if is_copy_of(&owner, name) && begun.is_none() => Claim::Plan,
            Some(owner) => Claim::Taken(owner),
        })
    }

    /// Is it the plan that was begun? Its file may have been renamed; then it still has the steps that were
    /// approved. A file with other steps is another plan, whatever its id.
    pub(super) fn is_the_plan_begun(&self, plan: &Approved, state: &Loop) -> bool {
        let other = |name: &&String| **name != plan.name && self.may_be(name, plan.id());
        let is_known = match self.begun.file(plan.id()) {
            Some(file) => file == plan.name,
            // It was begun before files were noted.
            None => !self.files.keys().any(|name| other(&name)),
        };
        is_known || has_steps_of(plan, state)
    }

    /// The file that a plan was begun from, for people to read.
    pub(super) fn begun_from(&self, id: &str) -> String {
        self.begun.file(id).map_or_else(|| "another file".to_owned(), |file| format!("`{file}`"))
    }

    /// The id under which a plan was begun.
    fn begun_as(&self, id: &str) -> Result<Option<String>, VaultError> {
        let Some(begun) = self.begun.id(id) else { return Ok(None) };
        Ok(self.record(begun)?.map(|_| begun.to_owned()))
    }

    fn is_unread(&self, name: &str) -> bool {
        self.files.get(name).is_some_and(|known| known.look.is_none())
    }

    /// Is there such a file, and is it none that says that it is another plan?
    fn may_be(&self, name: &str, id: &str) -> bool {
        self.files.get(name).is_some_and(|known| match &known.look {
            Some(Look::Plan(plan)) => is_same_id(plan.id(), id),
            Some(Look::Gone) => false,
            Some(Look::Broken(_) | Look::NotStarted) | None => true,
        })
    }
}

fn has_steps_of(plan: &Approved, state: &Loop) -> bool {
    let same = |step: &Task, spec: &Task| {
        let (step, spec) = (redact::task(step.clone()), redact::task(spec.clone()));
        (step.title, step.description, step.work) == (spec.title, spec.description, spec.work)
    };
    state.tasks.iter().map(|entry| &entry.spec).all(|spec| {
        let step = plan.steps.iter().find(|step| step.id == spec.id);
        step.is_some_and(|step| same(step, spec))
    })
}
