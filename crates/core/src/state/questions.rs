//! Questions to people, and what their answers change.

use jiff::Timestamp;

use super::{Loop, OpenQuestion};
use crate::baseline::Decision;
use crate::event::{Answer, Question, QuestionKind};
use crate::ids::{Iteration, QuestionId, TaskId};
use crate::question::{Meaning, failed_question, meaning};
use crate::tasks::TaskState;

impl Loop {
    pub(super) fn raise(
        &mut self,
        id: QuestionId,
        task: &Option<TaskId>,
        question: &Question,
        at: Timestamp,
    ) {
        self.next_question = self.next_question.max(id.0);
        if self.to_ask.front().is_some_and(|(of, asked)| of == task && asked == question) {
            self.to_ask.pop_front();
        }
        self.questions
            .insert(id, OpenQuestion { task: task.clone(), question: question.clone(), raised_at: at });
        if let Some(task) = task {
            match question.kind {
                QuestionKind::Stuck
                | QuestionKind::Deviation
                | QuestionKind::Repeated
                | QuestionKind::Flagged
                | QuestionKind::Uncertain => self.set_state(task, TaskState::Parked(id), at),
                QuestionKind::Failed | QuestionKind::Blocked => {
                    self.run.asked_about.insert(task.clone());
                }
                QuestionKind::Unresponsive => {
                    if let Some(open) = self.open.of_task_mut(task) {
                        open.vitals.question = Some(id);
                    }
                }
                QuestionKind::Baseline => {}
            }
        }
        if question.kind == QuestionKind::Baseline {
            self.baseline.question = Some(id);
        }
    }

    pub(super) fn answer(&mut self, id: QuestionId, answer: &Answer, at: Timestamp) {
        let Some(asked) = self.questions.remove(&id) else { return };
        self.breaker.close();
        if asked.question.kind == QuestionKind::Unresponsive {
            self.answer_about_agent(id, asked.task.as_ref(), answer, at);
            return;
        }
        let meaning = meaning(&asked.question, answer);
        if meaning == Meaning::Abort && asked.question.kind != QuestionKind::Baseline {
            self.run.stop_requested = Some(format!("answer to {id}"));
        }
        if asked.question.kind == QuestionKind::Baseline {
            self.baseline.question = None;
            self.baseline.decide(match meaning {
                Meaning::GoOn | Meaning::Guide(_) => Some(Decision::GoOn),
                Meaning::Repair => Some(Decision::Repair),
                Meaning::Abort => Some(Decision::Stop),
                Meaning::Retry
                | Meaning::Approve
                | Meaning::Done
                | Meaning::Skip
                | Meaning::SkipDependents => None,
            });
            return;
        }
        let Some(task) = asked.task else { return };
        match meaning {
            // Nobody reads words for it. Requests are refused before; a journal of an older version may
            // have them, and what was not done because of them yet is not done now.
            Meaning::Guide(_) if self.is_own_work(&task) => {
                self.to_ask.push_back((Some(task), asked.question));
            }
            Meaning::Guide(text) => {
                if let Some(slot) = self.tasks.slot(&task) {
                    self.tasks.entries[slot].guidance.push(text);
                }
                self.open_again(&task, at);
            }
            Meaning::Approve => {
                if let Some(slot) = self.tasks.slot(&task) {
                    let reasons = asked.question.context.lines().map(str::to_owned);
                    self.tasks.entries[slot].approved.extend(reasons);
                }
                self.open_again(&task, at);
                let kept = self.task(&task).and_then(|entry| entry.kept.clone());
                self.accept_kept(&task, kept);
            }
            // Only of the loop's own checks.
            Meaning::GoOn | Meaning::Repair => {}
            Meaning::Retry => self.reopen(&task, at),
            Meaning::Done => {
                self.call_happened(&task);
                self.settle_by_person(&task, TaskState::BY_HAND, at);
            }
            Meaning::Skip => self.settle_by_person(&task, TaskState::Skipped, at),
            Meaning::SkipDependents => {
                for waiting in self.tasks.waiting_on(&task) {
                    self.settle_by_person(&waiting, TaskState::Skipped, at);
                }
            }
            // Whether it happened is still unknown.
            Meaning::Abort if asked.question.kind == QuestionKind::Uncertain => {
                self.to_ask.push_back((Some(task), asked.question));
            }
            Meaning::Abort => {
                if matches!(self.tasks.get(&task).map(|entry| &entry.state), Some(TaskState::Parked(_))) {
                    self.set_state(&task, TaskState::Open, at);
                    // The question stood in for its failure, which nobody has forgiven.
                    self.note_exhausted(&task, "nobody said how to go on");
                }
            }
        }
    }

    fn answer_about_agent(&mut self, id: QuestionId, task: Option<&TaskId>, answer: &Answer, at: Timestamp) {
        if *answer == Answer::Abort {
            self.run.stop_requested = Some(format!("answer to {id}"));
        }
        let Some(open) = task.and_then(|task| self.open.of_task_mut(task)) else { return };
        open.vitals.answer(answer, at);
        if let Answer::Words { text } = answer
            && let Some(slot) = self.tasks.slot(&open.task)
        {
            self.tasks.entries[slot].guidance.push(text.clone());
        }
    }

    pub(super) fn ask_about_failed(&mut self, task: &TaskId, reason: &str) {
        let Some(entry) = self.tasks.get(task) else { return };
        if self.run.asked_about.insert(task.clone()) {
            let waiting = self.tasks.waiting_on(task);
            let question = failed_question(task, &entry.spec.work, reason, &waiting);
            self.to_ask.push_back((Some(task.clone()), question));
        }
    }

    /// Whatever the agent has come to, there is nothing left to ask about it.
    pub(super) fn close_question_of_agent(&mut self, iteration: Iteration) {
        if let Some(id) = self.open.get_mut(iteration).and_then(|open| open.vitals.question.take()) {
            self.questions.remove(&id);
        }
    }

    pub(crate) fn close_questions_of(&mut self, task: &TaskId) {
        self.to_fail.retain(|(failing, _)| failing != task);
        self.questions.retain(|_, asked| asked.task.as_ref() != Some(task));
        self.to_ask.retain(|(of, _)| of.as_ref() != Some(task));
    }
}
