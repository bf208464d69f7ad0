//! The iterations under way.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::budget::Gauge;
use crate::definition::Change;
use crate::event::{Claim, ClaimSource, Event, Evidence, Exit, Failure, Flag, Question, Trouble, Usage};
use crate::handoff::{Handover, Trigger};
use crate::health::Vitals;
use crate::ids::{Attempt, Iteration, TaskId};
use crate::mutant::{Mutant, planted};
use crate::policy::Millis;
use crate::signal::notes::Notes;
use crate::task::Task;
use crate::weaken::is_test_path;
use crate::work::{Call, Reported};

/// How many changed paths are remembered of an attempt.
const REMEMBERED_PATHS: usize = 20;

/// The iterations under way, by their numbers. What happens to one is told by its number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnderWay(BTreeMap<Iteration, OpenIteration>);

impl UnderWay {
    pub fn get(&self, iteration: Iteration) -> Option<&OpenIteration> {
        self.0.get(&iteration)
    }

    /// The iteration in the workspace itself, which has one at most.
    pub fn here(&self) -> Option<&OpenIteration> {
        self.0.values().next()
    }

    /// The iteration that works on a task.
    pub fn of_task(&self, task: &TaskId) -> Option<&OpenIteration> {
        self.0.values().find(|open| open.task == *task)
    }

    pub fn iter(&self) -> impl Iterator<Item = &OpenIteration> {
        self.0.values()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get_mut(&mut self, iteration: Iteration) -> Option<&mut OpenIteration> {
        self.0.get_mut(&iteration)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut OpenIteration> {
        self.0.values_mut()
    }

    pub(super) fn of_task_mut(&mut self, task: &TaskId) -> Option<&mut OpenIteration> {
        self.0.values_mut().find(|open| open.task == *task)
    }

    pub(super) fn begin(&mut self, open: OpenIteration) {
        self.0.insert(open.iteration, open);
    }

    pub(super) fn end(&mut self, iteration: Iteration) -> Option<OpenIteration> {
        self.0.remove(&iteration)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct OpenIteration {
    pub iteration: Iteration,
    pub task: TaskId,
    pub attempt: Attempt,
    pub agent: String,
    pub base: Option<String>,
    pub branch: Option<String>,
    pub carried: Option<String>,
    pub started_at: Timestamp,
    pub stage: Stage,
    pub claim: Option<Claim>,
    pub asked: Vec<Question>,
    pub error: Option<Failure>,
    pub trouble: Option<Trouble>,
    pub session: Option<String>,
    pub exit: Option<Exit>,
    pub message: String,
    pub tree_taken: bool,
    pub evidence: Vec<Evidence>,
    /// The same checks with their definition as it was before the task.
    pub former_evidence: Vec<Evidence>,
    /// What they say in a clean checkout.
    pub clean_evidence: Vec<Evidence>,
    pub inspection: Option<Inspection>,
    pub flags: Vec<Flag>,
    /// How often a hook changed the tree of this attempt.
    pub altered: u32,
    pub usage: Option<Usage>,
    /// The model that worked, by the agent's own word.
    pub model: Option<String>,
    pub vitals: Vitals,
    /// A phrase of its message that supports a claim.
    pub phrase: Option<String>,
    pub tool_calls: u32,
    pub agent_duration: Millis,
    pub notes: Notes,
    /// The agent should come to an end so that another can go on.
    pub handoff: Option<Handover>,
    /// The budget that the agent has used up.
    pub over_budget: Option<Gauge>,
    /// What it had used when that was last recorded, as long as it is not paid for.
    pub seen: Option<Seen>,
    /// The iteration before it handed over.
    pub after_handoff: Option<Trigger>,
    /// The engine does the work itself, without an agent.
    pub own: bool,
    /// It is one of the iterations that are limited.
    pub counts: bool,
    /// The engine saw for itself that its own work is done.
    pub witnessed: bool,
    /// The call that was begun.
    pub call: Option<Call>,
    /// Its error would be the same in another attempt.
    pub permanent: bool,
    /// What the agent said through tools of ours.
    pub reported: Reported,
    /// A person accepted the kept work: it is checked and committed, without an agent.
    pub accepted: bool,
    /// The task as it was when this began, if it was changed since.
    pub spec: Option<Box<Task>>,
    /// Tasks that were added since it began.
    pub added: Vec<TaskId>,
    /// Who skips its task: it is interrupted first.
    pub skipped_by: Option<String>,
}

/// What an agent at work has used so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub usage: Usage,
    pub model: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The agent runs.
    Agent,
    /// The agent is gone; evidence is gathered.
    Judging,
    /// Accepted; to be written to the backlog and committed.
    Landing { verified: bool },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// The first paths that differ.
    pub changed: Vec<String>,
    pub changed_total: u32,
    /// Tests were changed, and nothing else.
    pub only_tests: bool,
    pub digest: String,
    /// What was changed of what defines the checks, and of the files they run.
    pub redefined: Vec<Change>,
    /// The commands to be run again, with their former definition.
    pub former_checks: Vec<String>,
    /// The commands that could not run before, and whose definition the attempt wrote itself.
    pub written_checks: Vec<String>,
}

impl OpenIteration {
    /// As it starts; the loop knows the rest.
    pub(super) fn new(
        event: &Event,
        own: bool,
        after_handoff: Option<Trigger>,
        at: Timestamp,
    ) -> Option<Self> {
        let Event::IterationStarted {
            iteration,
            task,
            attempt,
            agent,
            session,
            base,
            branch,
            carried,
            accepted,
            ..
        } = event
        else {
            return None;
        };
        Some(Self {
            iteration: *iteration,
            task: task.clone(),
            attempt: *attempt,
            agent: agent.clone(),
            base: base.clone(),
            branch: branch.clone(),
            carried: carried.clone(),
            started_at: at,
            // Accepted work has been worked on.
            stage: if *accepted { Stage::Judging } else { Stage::Agent },
            claim: accepted.then(|| Claim { text: "accepted".to_owned(), source: ClaimSource::Person }),
            asked: Vec::new(),
            error: None,
            trouble: None,
            session: session.clone(),
            exit: None,
            message: String::new(),
            tree_taken: false,
            evidence: Vec::new(),
            former_evidence: Vec::new(),
            clean_evidence: Vec::new(),
            inspection: None,
            flags: Vec::new(),
            altered: 0,
            usage: None,
            model: None,
            vitals: Vitals::new(at),
            phrase: None,
            tool_calls: 0,
            agent_duration: Millis(0),
            notes: Notes::default(),
            handoff: None,
            over_budget: None,
            seen: None,
            after_handoff,
            own,
            counts: true,
            witnessed: false,
            call: None,
            permanent: false,
            reported: Reported::default(),
            accepted: *accepted,
            spec: None,
            added: Vec::new(),
            skipped_by: None,
        })
    }

    /// The work tree differs from what it was at the start.
    pub(super) fn has_changes(&self) -> bool {
        self.inspection.as_ref().is_some_and(|seen| seen.changed_total > 0)
    }

    /// What the agent said and did, as far as its end tells.
    pub(super) fn end_agent(&mut self, event: &Event) {
        let Event::AgentEnded {
            message,
            usage,
            claim,
            phrase,
            questions,
            error,
            exit,
            flags,
            facts,
            notes,
            duration,
            ..
        } = event
        else {
            return;
        };
        self.tool_calls = facts.tool_calls;
        self.agent_duration = *duration;
        self.notes.clone_from(notes);
        self.stage = Stage::Judging;
        self.message.clone_from(&message.excerpt);
        self.usage = *usage;
        self.seen = None;
        self.claim.clone_from(claim);
        self.phrase.clone_from(phrase);
        self.asked.clone_from(questions);
        self.error.clone_from(error);
        self.trouble.clone_from(&facts.trouble);
        if facts.session.is_some() {
            self.session.clone_from(&facts.session);
        }
        if matches!(facts.trouble, Some(Trouble::ContextFull | Trouble::SessionLost)) {
            // Going on with it would only fail again.
            self.session = None;
        }
        self.exit = Some(*exit);
        self.note_flags(flags);
    }

    pub(super) fn take_tree(&mut self, flags: &[Flag]) {
        self.tree_taken = true;
        self.note_flags(flags);
    }

    /// A hook refused the commit and changed files: may its changes be taken in, checked and tried
    /// again, without another agent? Once: a hook that is never content must not go on for ever.
    pub fn may_take_hooks_changes(&self) -> bool {
        self.altered == 0
    }

    pub(crate) fn is_judged_again(&self) -> bool {
        self.altered > 0
    }

    /// A hook changed what was judged: it is judged again.
    pub(super) fn alter_tree(&mut self) {
        self.stage = Stage::Judging;
        if planted(Mutant::TrustsAltered) {
            return;
        }
        self.altered += 1;
        self.tree_taken = false;
        self.forget_evidence();
    }

    pub(super) fn gather(&mut self, evidence: &Evidence) {
        let all = match (evidence.clean, evidence.former) {
            (true, _) => &mut self.clean_evidence,
            (false, true) => &mut self.former_evidence,
            (false, false) => &mut self.evidence,
        };
        all.push(evidence.clone());
    }

    /// In the order in which it was gathered.
    pub fn all_evidence(&self) -> impl Iterator<Item = &Evidence> {
        self.evidence.iter().chain(&self.former_evidence).chain(&self.clean_evidence)
    }

    pub(super) fn inspect(&mut self, event: &Event) {
        let Event::WorkInspected {
            changed,
            changed_total,
            digest,
            flags,
            redefined,
            former_checks,
            written_checks,
            ..
        } = event
        else {
            return;
        };
        self.inspection = Some(Inspection {
            changed: changed.iter().take(REMEMBERED_PATHS).cloned().collect(),
            changed_total: *changed_total,
            digest: digest.clone(),
            only_tests: !changed.is_empty() && changed.iter().all(|path| is_test_path(path)),
            redefined: redefined.clone(),
            former_checks: former_checks.clone(),
            written_checks: written_checks.clone(),
        });
        self.note_flags(flags);
    }

    pub(super) fn forget_evidence(&mut self) {
        self.evidence.clear();
        self.former_evidence.clear();
        self.clean_evidence.clear();
        self.inspection = None;
    }

    /// What is looked at again after a crash is flagged once.
    fn note_flags(&mut self, flags: &[Flag]) {
        for flag in flags {
            if !self.flags.contains(flag) {
                self.flags.push(flag.clone());
            }
        }
    }
}
