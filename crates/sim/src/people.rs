//! The people of a simulated world: they answer late, never or twice, edit the backlog and change
//! their minds. And what agents write into the backlog although only people may.

use std::fs;
use std::time::Duration;

use wiggum_backlog::{Backlog, NewTask};
use wiggum_core::event::{Answer, Envelope, Event, Request};
use wiggum_core::ids::{QuestionId, TaskId};
use wiggum_core::state::Loop;
use wiggum_core::task::FileStatus;
use wiggum_engine::Input;

use crate::fault::Fault;
use crate::rng::Rng;
use crate::theatre::{Stage, Step, Theatre};
use crate::world::People;

/// Something a person does.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    Ask(Request),
    Say(Request),
    /// Asks something of whatever task there is.
    AskOfSome(fn(TaskId) -> Request),
    Edit(Edit),
    /// Ctrl-C.
    Interrupt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    Retitle,
    Add,
    /// An old copy of the file comes back: what was done is open again.
    Untick,
    /// The file is not a backlog any more, for a while.
    Break,
    Mend,
}

const HOUR: Duration = Duration::from_secs(3600);

impl Theatre {
    /// What people will do in this world of their own accord.
    pub(crate) fn plan_moves(&self, people: People, rng: &mut Rng) {
        if people == People::Nobody {
            return;
        }
        for _ in 0..rng.below(5) {
            let after = rng.duration(Duration::from_secs(1), 8 * HOUR);
            let then = after + rng.duration(Duration::from_secs(1), HOUR);
            let word =
                |request| if people == People::AtTerminal { Move::Say(request) } else { Move::Ask(request) };
            match rng.below(13) {
                0 | 1 => {
                    self.plan(after, Step::Person(word(Request::Pause)));
                    self.plan(then, Step::Person(word(Request::Resume)));
                }
                2 => self.plan(after, Step::Person(word(Request::Stop))),
                3 => self.plan(after, Step::Person(Move::AskOfSome(|task| Request::Skip { task }))),
                4 => self.plan(after, Step::Person(Move::AskOfSome(|task| Request::Retry { task }))),
                5 => self.plan(after, Step::Person(Move::AskOfSome(done_by_hand))),
                6 | 10 => {
                    self.plan(after, Step::Person(word(Request::Nudge { text: "mind the gap".to_owned() })))
                }
                7 => self.plan(after, Step::Person(Move::Interrupt)),
                8 => {
                    self.plan(after, Step::Person(Move::Edit(Edit::Break)));
                    self.plan(then, Step::Person(Move::Edit(Edit::Mend)));
                }
                9 => self.plan(after, Step::Person(Move::Edit(Edit::Add))),
                11 => self.plan(after, Step::Person(Move::Edit(Edit::Untick))),
                _ => self.plan(after, Step::Person(Move::Edit(Edit::Retitle))),
            }
        }
    }

    /// People saw something happen.
    pub(crate) fn seen(&self, people: People, envelope: &Envelope, state: &Loop) {
        self.note(|| format!("{:>6} {}", envelope.seq, told(&envelope.event)));
        if let Event::QuestionRaised { id, .. } = &envelope.event {
            self.consider(people, *id, state);
        }
    }

    /// Somebody sees a question and will answer it, or not.
    pub(crate) fn consider(&self, people: People, id: QuestionId, state: &Loop) {
        let Some(asked) = state.questions.get(&id) else { return };
        let options = asked.question.options.len() as u64;
        let mut stage = self.stage();
        let rng = &mut stage.rng;
        if people == People::Nobody || rng.percent(15) {
            return;
        }
        let late = if rng.percent(30) { 20 * HOUR } else { HOUR / 4 };
        let after = rng.duration(Duration::from_secs(2), late);
        let (first, second) = (answer(options, rng), answer(options, rng));
        let twice = rng.percent(10);
        drop(stage);
        let word = |answer| {
            let request = Request::Answer { question: id, answer };
            if people == People::AtTerminal { Move::Say(request) } else { Move::Ask(request) }
        };
        self.plan(after, Step::Person(word(first)));
        if twice {
            self.plan(after + Duration::from_secs(30), Step::Person(word(second)));
        }
    }

    pub(crate) fn make(&self, made: Move) -> Option<Input> {
        self.note(|| format!("       person: {made:?}"));
        match made {
            Move::Say(request) => Some(Input::Person(request)),
            Move::Interrupt => Some(Input::Interrupt("interrupted")),
            Move::Ask(request) => {
                self.ask(&request);
                None
            }
            Move::AskOfSome(request) => {
                let task = self.stage().some_task();
                if let Some(task) = task {
                    self.ask(&request(task));
                }
                None
            }
            Move::Edit(edit) => {
                self.stage().edit_backlog(edit);
                None
            }
        }
    }

    /// Leaves a request in the store. The engine may not notice at once.
    fn ask(&self, request: &Request) {
        let wall = self.wall_now();
        let mut stage = self.stage();
        let (Some(id), lost) = (stage.loop_id, stage.has(Fault::LostAnswer)) else { return };
        if let Request::SetStatus { task, status: FileStatus::Done } = request {
            stage.done_by_hand.insert(task.to_string());
        }
        let posted = stage.witness.store().map(|store| store.post(id, request, "somebody", wall));
        if let Some(Err(error)) = posted {
            stage.violations.push(format!("a request cannot be left: {error}"));
        }
        let unheard = lost && stage.rng.percent(20);
        drop(stage);
        if !unheard {
            self.wake_engine();
        }
    }
}

fn done_by_hand(task: TaskId) -> Request {
    Request::SetStatus { task, status: FileStatus::Done }
}

fn answer(options: u64, rng: &mut Rng) -> Answer {
    match rng.below(8) {
        0 => Answer::Skip,
        1 => Answer::Retry,
        2 | 3 => Answer::Words { text: "try it the other way".to_owned() },
        4 if rng.percent(30) => Answer::Abort,
        5 if rng.percent(20) => Answer::Done,
        // Now and then one that is not there.
        _ => Answer::Option { number: u32::try_from(1 + rng.below(options + 1)).unwrap_or(1) },
    }
}

/// An event in a line.
fn told(event: &Event) -> String {
    let text = serde_json::to_string(event).unwrap_or_default();
    let short: String = text.chars().take(200).collect();
    short.trim_start_matches("{\"type\":").to_owned()
}

impl Stage {
    fn some_task(&mut self) -> Option<TaskId> {
        let backlog = self.read_backlog()?;
        let ids: Vec<TaskId> = backlog.tasks().iter().map(|task| task.id.clone()).collect();
        self.rng.pick(&ids).cloned()
    }

    pub(crate) fn read_backlog(&self) -> Option<Backlog> {
        let text = fs::read_to_string(self.backlog_path()).ok()?;
        Backlog::parse(&self.backlog_name, text).ok()
    }

    pub(crate) fn edit_backlog(&mut self, edit: Edit) {
        let path = self.backlog_path();
        let text = match edit {
            Edit::Break if self.mended.is_none() => {
                self.mended = fs::read_to_string(&path).ok();
                Some("[{ not a backlog".to_owned())
            }
            // Somebody else may have put it back already.
            Edit::Mend => self.mended.take().filter(|_| self.read_backlog().is_none()),
            Edit::Break => None,
            Edit::Retitle | Edit::Add | Edit::Untick => {
                self.read_backlog().and_then(|backlog| self.edited(backlog, edit))
            }
        };
        let Some(text) = text else { return };
        // As editors do it: another file in its place.
        let beside = path.with_extension("new");
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &path));
        if let Err(error) = written {
            self.violations.push(format!("the simulation cannot edit the backlog: {error}"));
        }
    }

    fn edited(&mut self, mut backlog: Backlog, edit: Edit) -> Option<String> {
        match edit {
            Edit::Add => {
                let id = wiggum_backlog::generate_task_id(&backlog, "T");
                let new = NewTask { title: format!("one more: {id}"), id, ..NewTask::default() };
                backlog.add(&new).ok()?;
                Some(backlog.text().to_owned())
            }
            Edit::Retitle => Some(backlog.text().replace("something to be", "a thing to be")),
            Edit::Untick => {
                self.unticked_at = self.witness.journal().ok().map(|journal| journal.len());
                let done = backlog.tasks().iter().filter(|task| task.status == FileStatus::Done);
                let done: Vec<TaskId> = done.map(|task| task.id.clone()).collect();
                for id in done {
                    backlog.set_status(id.as_str(), FileStatus::Open).ok()?;
                }
                Some(backlog.text().to_owned())
            }
            Edit::Break | Edit::Mend => None,
        }
    }
}

/// An agent sets all other tasks to done, which is not its to do.
pub(crate) fn write_statuses(stage: &mut Stage, own: &str) {
    let Some(mut backlog) = stage.read_backlog() else { return };
    let others: Vec<TaskId> =
        backlog.tasks().iter().map(|task| task.id.clone()).filter(|id| id.as_str() != own).collect();
    for id in others {
        drop(backlog.set_status(id.as_str(), FileStatus::Done));
    }
    if let Err(error) = fs::write(stage.backlog_path(), backlog.text()) {
        stage.violations.push(format!("the simulation cannot write the backlog: {error}"));
    }
}
