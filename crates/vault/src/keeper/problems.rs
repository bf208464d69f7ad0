//! Plans that are not carried out, and why: a note for each, told once.

use std::time::{Duration, Instant};

use super::{Keeper, Told};
use crate::layout::{NEEDS_ACTION, VaultError};
use crate::plans::{Look, stem};
use crate::words::{self, fenced, link};

impl Keeper {
    /// Tells of files that cannot be read, once, if they have been so for a while.
    pub(super) fn tell_of_broken(&mut self, patience: Duration) -> Result<(), VaultError> {
        let now = Instant::now();
        let broken: Vec<(String, String)> = self
            .files
            .iter()
            .filter(|(_, known)| !known.told && now.saturating_duration_since(known.since) >= patience)
            .filter_map(|(name, known)| match &known.look {
                Some(Look::Broken(why)) => Some((name.clone(), why.clone())),
                Some(Look::Plan(_) | Look::Gone) | None => None,
            })
            .collect();
        for (name, why) in broken {
            self.refuse(&name, &why, "Mend the plan; it is looked at again when it is saved.")?;
        }
        Ok(())
    }

    /// Tells a person why a plan is not carried out.
    pub(super) fn refuse(&mut self, name: &str, why: &str, hint: &str) -> Result<(), VaultError> {
        if let Some(known) = self.files.get_mut(name) {
            if known.told {
                return Ok(());
            }
            known.told = true;
        }
        let path = problem_note(name);
        let front = [
            ("plan_file", words::yaml(name)),
            ("severity", "high".to_owned()),
            ("action_required", "true".to_owned()),
        ];
        let body =
            format!("# Plan not carried out\n\n**Plan:** {}\n\n{}\n{hint}\n", link(stem(name)), fenced(why));
        self.vault.rewrite(&path, |old| words::note(old, &front, &body))?;
        (self.tell)(&Told::Problem { what: name.to_owned(), message: why.to_owned() });
        Ok(())
    }

    pub(super) fn problem_is_over(&mut self, name: &str) -> Result<(), VaultError> {
        if let Some(known) = self.files.get_mut(name) {
            known.told = false;
        }
        let path = problem_note(name);
        if !self.vault.exists(&path) {
            return Ok(());
        }
        let over = |old: &str| old.replacen("action_required: true", "action_required: false", 1);
        self.vault.rewrite(&path, |old| old.map_or_else(String::new, over))
    }
}

fn problem_note(name: &str) -> String {
    format!("{NEEDS_ACTION}/plan_problem_{}.md", stem(name))
}
