//! Plans that are not carried out, and why: a note for each, told once.

use std::time::{Duration, Instant};

use super::{Keeper, NotCarriedOut, OWN_ID, Told};
use crate::copies::{Origin, is_copy_of, origin};
use crate::dashboard::Row;
use crate::layout::{APPROVED, DONE, NEEDS_ACTION, Vault, VaultError};
use crate::plans::{Approved, Look, stamp, stem};
use crate::words::{self, fenced, plan_link};

/// How the names of notes about files begin.
pub(super) const PROBLEM: &str = "plan_problem_";

/// Why something in the folder of approved plans was not carried out.
#[derive(Debug)]
pub struct Problem {
    /// Its path in that folder.
    pub file: String,
    pub message: String,
    /// What failed, where it is not the plan or the configuration.
    pub error: Option<VaultError>,
}

impl Keeper {
    /// Tells of files that cannot be read, if they have been so for a while.
    pub(super) fn tell_of_broken(&mut self, patience: Duration) -> Result<(), VaultError> {
        let now = Instant::now();
        let broken: Vec<(String, String)> = self
            .files
            .iter()
            .filter(|(_, known)| now.saturating_duration_since(known.since) >= patience)
            .filter_map(|(name, known)| match &known.look {
                Some(Look::Broken(why)) => Some((name.clone(), why.clone())),
                Some(Look::Plan(_) | Look::NotStarted | Look::Gone) | None => None,
            })
            .collect();
        for (name, why) in broken {
            self.refuse(&name, &why, "Mend the plan; it is looked at again when it is saved.")?;
        }
        Ok(())
    }

    /// A plan's loop failed at its start or on the way.
    pub(super) fn could_not_start(&mut self, name: &str, error: NotCarriedOut) -> Result<(), VaultError> {
        let message = error.to_string();
        let plan = self.files.get(name).and_then(|known| match &known.look {
            Some(Look::Plan(plan)) => Some(Approved::clone(plan)),
            Some(Look::Broken(_) | Look::NotStarted | Look::Gone) | None => None,
        });
        let now = self.vault.place(&format!("{APPROVED}/{name}")).ok().and_then(|path| stamp(&path));
        if let Some(known) = self.files.get_mut(name) {
            // What was written to it meanwhile was written by us.
            known.stamp = now.unwrap_or(known.stamp);
            known.look = Some(Look::NotStarted);
        }
        if let Some(plan) = plan {
            let row = self.not_started(&plan);
            self.show(row);
        }
        self.problems.remove(name);
        let hint = "Mend that, then save the plan again: it is tried again whenever it or the vault's \
                    configuration is changed.";
        self.refuse(name, &message, hint)?;
        if let (Some(problem), NotCarriedOut::Vault(error)) = (self.problems.get_mut(name), error) {
            problem.error = Some(error);
        }
        Ok(())
    }

    fn not_started(&self, plan: &Approved) -> Row {
        let known = self.rows.get(plan.id()).cloned();
        let row = known.unwrap_or_else(|| Row {
            plan_id: plan.id().to_owned(),
            file: plan.stem().to_owned(),
            status: String::new(),
            done: plan.done,
            total: plan.total,
            iterations_used: plan.header.iterations_used.unwrap_or(0),
            max_iterations: self.limit(plan),
            needs_action: None,
        });
        Row { status: "broken".to_owned(), needs_action: Some(problem_name(&plan.name)), ..row }
    }

    /// Plans that could not be started may be able to by now.
    pub(super) fn try_again(&mut self) {
        for (name, known) in &mut self.files {
            if matches!(known.look, Some(Look::NotStarted)) {
                known.look = None;
                self.timers.insert((Instant::now(), name.clone()));
            }
        }
    }

    /// The file that a plan's file is a copy of. Of a copy of a copy it is the file that is carried out.
    pub(super) fn original_of(&self, name: &str, plan: &Approved) -> Option<String> {
        let mut original = self.copied_from(name, plan)?;
        while let Origin::Conflict { of } | Origin::Copy { of } = origin(&original)
            && self.files.contains_key(&of)
            && self.is_same_plan(&original, &of)
        {
            original = of;
        }
        Some(original)
    }

    /// A file that says that it is another plan is one, whatever it is called, and so was one that is done.
    fn is_same_plan(&self, name: &str, other: &str) -> bool {
        let done = format!("{DONE}/{}", name.rsplit('/').next().unwrap_or(name));
        if !self.files.contains_key(name) && self.vault.exists(&done) {
            return false;
        }
        let plan = |name: &str| match self.files.get(name)?.look.as_ref()? {
            Look::Plan(plan) => Some(plan),
            Look::Gone | Look::Broken(_) | Look::NotStarted => None,
        };
        match (plan(name), plan(other)) {
            (Some(plan), Some(other)) => !plan.header.says_id || plan.id() == other.id(),
            (Some(_) | None, Some(_) | None) => true,
        }
    }

    fn copied_from(&self, name: &str, plan: &Approved) -> Option<String> {
        match origin(name) {
            Origin::Conflict { of } => return Some(of),
            // It may well be another plan, if it says so itself, and if the other one can be read.
            Origin::Copy { of } => {
                let approved = self.files.get(&of);
                let unclear = approved.is_some_and(|known| matches!(known.look, Some(Look::Broken(_))));
                if unclear || (approved.is_some() && !plan.header.says_id) {
                    return Some(of);
                }
                let done = format!("{DONE}/{}", of.rsplit('/').next().unwrap_or(&of));
                if !plan.header.says_id && self.vault.exists(&done) {
                    return Some(done);
                }
            }
            Origin::Own => {}
        }
        let is_same =
            |look: &Option<Look>| matches!(look, Some(Look::Plan(other)) if other.id() == plan.id());
        let others = self.files.iter().filter(|(other, known)| *other != name && is_same(&known.look));
        let others = others.map(|(other, _)| other).filter(|other| is_copy_of(name, other));
        others.min_by_key(|other| other.len()).cloned()
    }

    /// Whether a file is a copy cannot be told before what may be its original was read.
    pub(super) fn waits_for_original(&self, name: &str) -> bool {
        let is_unread = |other: &String| self.files.get(other).is_some_and(|known| known.look.is_none());
        self.files.keys().any(|other| is_copy_of(name, other) && is_unread(other))
    }

    /// What a file is depends on one that was not read yet: then it waits for that.
    pub(super) fn look_later(&mut self, name: &str) {
        if let Some(known) = self.files.get_mut(name) {
            known.look = None;
            self.timers.insert((Instant::now() + self.rules.settle.as_duration(), name.to_owned()));
        }
    }

    pub(super) fn refuse_taken(&mut self, name: &str, id: &str, owner: &str) -> Result<(), VaultError> {
        self.refuse(name, &format!("the plan_id `{id}` is that of `{owner}` already"), OWN_ID)
    }

    pub(super) fn refuse_copy(&mut self, name: &str, original: &str) -> Result<(), VaultError> {
        let message = match origin(name) {
            Origin::Conflict { .. } => {
                format!("`{name}` is a conflict copy of `{original}`, made by a program that syncs them")
            }
            Origin::Copy { .. } | Origin::Own => format!("`{name}` is a copy of `{original}`"),
        };
        let hint = "Only the original is carried out. Put what you want to keep of the copy into it, then \
                    remove the copy. If it is another plan, give it another name and a plan_id of its own.";
        self.refuse(name, &message, hint)
    }

    /// Symbolic links are not followed, and nobody should wait for what is behind one.
    pub(super) fn refuse_links(&mut self, links: &[String]) -> Result<(), VaultError> {
        let over = |name: &&String| !self.files.contains_key(*name) && !links.contains(*name);
        let over: Vec<String> = self.problems.keys().filter(over).cloned().collect();
        over.iter().try_for_each(|name| self.problem_is_over(name))?;
        links.iter().try_for_each(|name| {
            self.refuse(name, "it is a symbolic link, which is not followed", "Move the plan itself here.")
        })
    }

    /// Tells a person why a plan is not carried out.
    pub(super) fn refuse(&mut self, name: &str, why: &str, hint: &str) -> Result<(), VaultError> {
        if self.problems.get(name).is_some_and(|told| told.message == why) {
            return Ok(());
        }
        let problem = Problem { file: name.to_owned(), message: why.to_owned(), error: None };
        self.problems.insert(name.to_owned(), problem);
        let front = [
            ("plan_file", words::yaml(name)),
            ("severity", "high".to_owned()),
            ("action_required", "true".to_owned()),
        ];
        let link = plan_link(stem(name));
        let body = format!("# Plan not carried out\n\n**Plan:** {link}\n\n{}\n{hint}\n", fenced(why));
        self.vault.rewrite(&problem_note(name), |old| words::note(old, &front, &body))?;
        self.dashboard_soon();
        (self.tell)(&Told::Problem { what: name.to_owned(), message: why.to_owned() });
        Ok(())
    }

    pub(super) fn problem_is_over(&mut self, name: &str) -> Result<(), VaultError> {
        self.problems.remove(name);
        let path = problem_note(name);
        if !self.vault.exists(&path) {
            return Ok(());
        }
        self.dashboard_soon();
        let over = |old: &str| old.replacen("action_required: true", "action_required: false", 1);
        self.vault.rewrite(&path, |old| old.map_or_else(String::new, over))
    }
}

fn problem_note(name: &str) -> String {
    format!("{NEEDS_ACTION}/{}.md", problem_name(name))
}

/// The name of the note about a file, without its ending.
pub(super) fn problem_name(name: &str) -> String {
    format!("{PROBLEM}{}", stem(name).replace('/', " - "))
}

/// Does a note say that somebody has to do something about this file?
pub(super) fn is_told_of(vault: &Vault, name: &str) -> bool {
    let text = vault.read(&problem_note(name)).ok().flatten();
    text.is_some_and(|text| words::value(&text, "action_required") == Some("true"))
}
