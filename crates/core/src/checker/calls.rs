//! A call that must not be made twice is not: apart from the state, which should know it too.

use std::collections::BTreeMap;

use super::{Broken, Rule};
use crate::event::Event;
use crate::ids::TaskId;
use crate::question::{Meaning, meaning};
use crate::redact::is_same_work;
use crate::state::Loop;
use crate::task::{FileStatus, Task, Work};

/// What became of the calls that must not be made twice, by their tasks.
#[derive(Default)]
pub(super) struct Calls(BTreeMap<TaskId, Fate>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    UnderWay,
    InDoubt,
    Happened,
}

impl Calls {
    pub(super) fn check(&mut self, before: &Loop, event: &Event) -> Option<Broken> {
        let task_of = |iteration| before.open.get(iteration).map(|open| &open.task);
        match event {
            Event::CallStarted { iteration, repeatable, tool, .. } => {
                let task = task_of(*iteration)?;
                let known = self.0.get(task).copied();
                if !repeatable {
                    self.0.insert(task.clone(), Fate::UnderWay);
                }
                let why = match known? {
                    Fate::Happened => "has happened",
                    Fate::InDoubt | Fate::UnderWay => "may have happened",
                };
                Some((Rule::CallOnce, format!("{tool} is called again for {task}, though it {why}")))
            }
            Event::WorkEnded { iteration, error, uncertain, .. } => {
                let task = task_of(*iteration)?;
                let fate = self.0.get_mut(task)?;
                match (error, uncertain) {
                    (_, true) => *fate = Fate::InDoubt,
                    (None, false) => *fate = Fate::Happened,
                    (Some(_), false) => {
                        self.0.remove(task);
                    }
                }
                None
            }
            Event::Interrupted { iteration, .. } => self.forgotten(task_of(*iteration)?),
            Event::RunEnded { .. } => before.open.iter().find_map(|open| self.forgotten(&open.task)),
            Event::TaskReopened { task, .. } | Event::StatusSet { task, status: FileStatus::Open, .. } => {
                self.0.remove(task);
                None
            }
            Event::QuestionAnswered { id, answer, .. } => {
                let asked = before.questions.get(id)?;
                self.answered(asked.task.as_ref()?, &meaning(&asked.question, answer));
                None
            }
            Event::BacklogRead { changed, .. } => {
                changed.iter().filter(|task| is_other_work(before, task)).for_each(|task| {
                    self.0.remove(&task.id);
                });
                None
            }
            _ => None,
        }
    }

    fn forgotten(&self, task: &TaskId) -> Option<Broken> {
        let under_way = self.0.get(task) == Some(&Fate::UnderWay);
        under_way.then(|| {
            (Rule::CallSettled, format!("the call of {task} is forgotten, though it may have happened"))
        })
    }

    /// Only who says that it is to be done again gives leave to call again.
    fn answered(&mut self, task: &TaskId, meaning: &Meaning) {
        match meaning {
            Meaning::Retry => {
                self.0.remove(task);
            }
            Meaning::Done => {
                self.0.entry(task.clone()).and_modify(|fate| *fate = Fate::Happened);
            }
            Meaning::Guide(_)
            | Meaning::Approve
            | Meaning::Skip
            | Meaning::SkipDependents
            | Meaning::GoOn
            | Meaning::Repair
            | Meaning::Abort => {}
        }
    }
}

fn is_other_work(before: &Loop, task: &Task) -> bool {
    let known = before.task(&task.id).map(|entry| &entry.spec.work);
    known.is_some_and(|known: &Work| !is_same_work(known, &task.work))
}
