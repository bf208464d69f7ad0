//! Events without secrets in the words that others wrote: agents, checks, files and branches named by them.
//!
//! They are hidden after everything was decoded, where a value stands as it is whatever it was written in. What the
//! engine acts on is left as it is: tasks and commands, which are the backlog's and the configuration's, names of
//! commits and of the branch that was there before, and what people said. Verdicts, questions that follow from
//! them and ends are made of what was recorded, and so of words without secrets.

use super::{Secrets, text};
use crate::definition::Change;
use crate::event::{BaselineOutcome, BlobRef, Claim, Event, Evidence, Failure, Flag, Question, Report};
use crate::signal::Notes;

/// Hides in an event what must not be recorded.
pub fn event(secrets: &Secrets, event: &mut Event) {
    Hide { secrets }.event(event);
}

struct Hide<'s> {
    secrets: &'s Secrets,
}

impl Hide<'_> {
    fn event(&self, event: &mut Event) {
        match event {
            Event::AgentEnded { message, claim, questions, error, phrase, flags, notes, .. } => {
                self.blob(message);
                self.each(claim, Self::claim);
                self.each(questions, Self::question);
                self.each(error, Self::failure);
                self.each(phrase, Self::words);
                self.each(flags, Self::flag);
                self.notes(notes);
            }
            Event::WorkEnded { result, error, .. } => {
                self.blob(result);
                self.each(error, Self::failure);
            }
            Event::AgentReported { report, .. } => self.report(report),
            Event::CommitsFound { subjects, .. } => self.each(subjects, Self::words),
            Event::TreeTaken { flags, .. } => self.each(flags, Self::flag),
            Event::EvidenceGathered { evidence, .. } | Event::CleanChecked { evidence, .. } => {
                self.evidence(evidence);
            }
            Event::WorkInspected { changed, flags, redefined, .. } => {
                self.each(changed, Self::words);
                self.each(flags, Self::flag);
                self.each(redefined, Self::change);
            }
            Event::BaselineChecked { outcome, evidence, .. } => {
                self.outcome(outcome);
                self.each(evidence, Self::evidence);
            }
            Event::TaskBaselineChecked { outcome, .. } => self.outcome(outcome),
            Event::CommitRefused { output: blob, .. } | Event::CallStarted { params: blob, .. } => {
                self.blob(blob);
            }
            Event::BacklogBroken { message: words }
            | Event::HealthChanged { detail: words, .. }
            | Event::RequestRefused { why: words, .. }
            | Event::Noticed { message: words, .. } => self.words(words),
            Event::LoopCreated { .. }
            | Event::LoopMoved { .. }
            | Event::RunStarted { .. }
            | Event::RunResumed { .. }
            | Event::BacklogRead { .. }
            | Event::StatusWritten { .. }
            | Event::IterationStarted { .. }
            | Event::TreeAltered { .. }
            | Event::Judged { .. }
            | Event::WorkKept { .. }
            | Event::WorkspaceReset { .. }
            | Event::TaskCompleted { .. }
            | Event::TaskFailed { .. }
            | Event::SkipAsked { .. }
            | Event::TaskSkipped { .. }
            | Event::SkipsCommitted { .. }
            | Event::TaskReopened { .. }
            | Event::StatusSet { .. }
            | Event::StatusPutBack { .. }
            | Event::QuestionRaised { .. }
            | Event::QuestionAnswered { .. }
            | Event::Nudged { .. }
            | Event::HandoffStarted { .. }
            | Event::Checkpointed { .. }
            | Event::RestoreStarted { .. }
            | Event::Restored { .. }
            | Event::Paused { .. }
            | Event::Resumed { .. }
            | Event::StopRequested { .. }
            | Event::Interrupted { .. }
            | Event::UserChangesSetAside { .. }
            | Event::UserChangesPutBack { .. }
            | Event::BaselineStarted { .. }
            | Event::RepairPlanned { .. }
            | Event::BudgetAlert { .. }
            | Event::BudgetAsked { .. }
            | Event::BudgetReached { .. }
            | Event::UsageSeen { .. }
            | Event::Charged { .. }
            | Event::RunEnded { .. } => {}
        }
    }

    fn each<'t, T: 't>(&self, all: impl IntoIterator<Item = &'t mut T>, hide: fn(&Self, &mut T)) {
        all.into_iter().for_each(|one| hide(self, one));
    }

    fn words(&self, words: &mut String) {
        let hidden = self.secrets.hide(words);
        let shown = text(&hidden);
        if *shown != *words {
            *words = shown.into_owned();
        }
    }

    fn blob(&self, blob: &mut BlobRef) {
        self.words(&mut blob.excerpt);
    }

    fn claim(&self, claim: &mut Claim) {
        self.words(&mut claim.text);
    }

    fn failure(&self, failure: &mut Failure) {
        self.words(&mut failure.message);
        self.words(&mut failure.signature);
    }

    fn flag(&self, flag: &mut Flag) {
        self.words(&mut flag.what);
        self.words(&mut flag.detail);
    }

    fn change(&self, change: &mut Change) {
        self.words(&mut change.path);
        self.words(&mut change.what);
    }

    fn evidence(&self, evidence: &mut Evidence) {
        self.blob(&mut evidence.output);
    }

    fn question(&self, question: &mut Question) {
        let Question { kind: _, summary, context, options, question } = question;
        self.each([summary, context, question], Self::words);
        self.each(options, Self::words);
    }

    fn report(&self, report: &mut Report) {
        match report {
            Report::Done { text } | Report::Progress { text } => self.words(text),
            Report::Question { question } => self.question(question),
        }
    }

    fn outcome(&self, outcome: &mut BaselineOutcome) {
        match outcome {
            BaselineOutcome::CannotRun { why } | BaselineOutcome::LeftOut { why } => self.words(why),
            BaselineOutcome::Green | BaselineOutcome::Red | BaselineOutcome::Interrupted => {}
        }
    }

    fn notes(&self, notes: &mut Notes) {
        let Notes { decisions, assumptions, constraints, next_steps, learnt, handoff, changed_checks } =
            notes;
        for list in [decisions, assumptions, constraints, next_steps, learnt] {
            self.each(list, Self::words);
        }
        self.each(handoff, Self::words);
        self.each(changed_checks, Self::words);
    }
}
