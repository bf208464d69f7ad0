//! What is shown, without any terminal: a loop folded from its journal, what its agent prints, what lies in the
//! inbox, and the rows that lists are made of.

pub(crate) mod graph;
pub(crate) mod output;
pub(crate) mod page;

use std::collections::VecDeque;
use std::path::PathBuf;

use jiff::Timestamp;
use wiggum_core::activity::EngineState;
use wiggum_core::decide::{Why, why};
use wiggum_core::event::{Envelope, Event};
use wiggum_core::ids::{LoopId, TaskId};
use wiggum_core::state::{Loop, Stage};
use wiggum_core::tasks::{TaskEntry, TaskState};
use wiggum_engine::desk::chronicle::{Chronicle, Span};
use wiggum_engine::desk::cost::{By, Report};
use wiggum_engine::desk::health::LoopHealth;
use wiggum_engine::desk::inbox::Letter;
use wiggum_engine::words::describe;
use wiggum_store::LoopRecord;

use graph::Node;
use output::Output;

/// Events that are kept in words.
pub(crate) const MOST_WORDS: usize = 2000;

/// A loop as it was read from its journal.
pub(crate) struct Book {
    pub(crate) workspace: PathBuf,
    pub(crate) record: LoopRecord,
    pub(crate) chronicle: Chronicle,
    pub(crate) words: VecDeque<(Timestamp, String)>,
}

impl Book {
    pub(crate) fn new(workspace: PathBuf, record: LoopRecord) -> Self {
        let chronicle = Chronicle::of_the_present(record.id);
        Self { workspace, record, chronicle, words: VecDeque::new() }
    }

    /// Takes in an event of long ago, which nobody is going to read.
    pub(crate) fn pass(&mut self, envelope: &Envelope) {
        self.chronicle.take(envelope);
    }

    pub(crate) fn take(&mut self, envelope: &Envelope) {
        if self.words.len() == MOST_WORDS {
            self.words.pop_front();
        }
        self.words.push_back((envelope.at, describe(&envelope.event)));
        self.chronicle.take(envelope);
    }
}

/// The loop that is looked at.
pub(crate) struct Model {
    pub(crate) book: Book,
    pub(crate) health: Option<LoopHealth>,
    /// Of all loops of the repository.
    pub(crate) letters: Vec<Letter>,
    pub(crate) live: Output,
    /// The output of an earlier attempt that somebody looks at.
    pub(crate) earlier: Option<Output>,
    /// The tasks that are listed, in their order.
    pub(crate) tasks: Vec<TaskId>,
    pub(crate) graph: Vec<Node>,
    pub(crate) cost: Option<Report>,
    filter: Filter,
    query: String,
    stale: Stale,
}

/// What has to be made again before it is shown.
#[derive(Clone, Copy, Debug)]
struct Stale {
    tasks: bool,
    graph: bool,
    cost: Option<By>,
}

/// Which tasks are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Filter {
    #[default]
    All,
    Open,
    Asked,
    Failed,
    Done,
}

impl Filter {
    pub(crate) fn next(self) -> Self {
        match self {
            Self::All => Self::Open,
            Self::Open => Self::Asked,
            Self::Asked => Self::Failed,
            Self::Failed => Self::Done,
            Self::Done => Self::All,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Open => "open",
            Self::Asked => "asked",
            Self::Failed => "failed or skipped",
            Self::Done => "done",
        }
    }

    fn fits(self, state: &TaskState) -> bool {
        match self {
            Self::All => true,
            Self::Open => matches!(state, TaskState::Open | TaskState::Running | TaskState::Parked(_)),
            Self::Asked => matches!(state, TaskState::Parked(_)),
            Self::Failed => matches!(state, TaskState::Failed { .. } | TaskState::Skipped),
            Self::Done => matches!(state, TaskState::Done { .. }),
        }
    }
}

/// How a task stands, as one mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Ready,
    Waiting,
    Running,
    Interrupted,
    Asked,
    Done,
    Unverified,
    ByHand,
    Failed,
    Skipped,
}

impl Model {
    pub(crate) fn new(book: Book) -> Self {
        Self {
            book,
            health: None,
            letters: Vec::new(),
            live: Output::default(),
            earlier: None,
            tasks: Vec::new(),
            graph: Vec::new(),
            cost: None,
            filter: Filter::default(),
            query: String::new(),
            stale: Stale { tasks: true, graph: true, cost: Some(By::Task) },
        }
    }

    pub(crate) fn id(&self) -> LoopId {
        self.book.record.id
    }

    pub(crate) fn head(&self) -> &Loop {
        self.book.chronicle.head()
    }

    pub(crate) fn spans(&self) -> &[Span] {
        self.book.chronicle.iterations()
    }

    pub(crate) fn take(&mut self, events: &[Envelope]) {
        for envelope in events {
            self.book.take(envelope);
            // Only a changed backlog changes who waits on whom.
            self.stale.graph |= matches!(envelope.event, Event::BacklogRead { .. });
        }
        self.stale.tasks = true;
        self.stale.cost = self.stale.cost.or_else(|| self.cost.as_ref().map(|report| by(report.by)));
    }

    pub(crate) fn filter(&self) -> Filter {
        self.filter
    }

    pub(crate) fn query(&self) -> &str {
        &self.query
    }

    pub(crate) fn list_only(&mut self, filter: Filter, query: &str) {
        (self.filter, self.query) = (filter, query.to_lowercase());
        self.stale.tasks = true;
    }

    pub(crate) fn cost_by(&mut self, by: By) {
        self.stale.cost = Some(by);
    }

    /// Makes again what changed, as far as it is shown.
    pub(crate) fn freshen(&mut self, graph: bool, cost: bool) {
        if std::mem::take(&mut self.stale.tasks) {
            let (filter, query) = (self.filter, &self.query);
            let entries = self.book.chronicle.head().tasks.iter();
            self.tasks = entries
                .filter(|entry| filter.fits(&entry.state) && is_about(entry, query))
                .map(|entry| entry.spec.id.clone())
                .collect();
        }
        if graph && std::mem::take(&mut self.stale.graph) {
            self.graph = graph::picture(self.head());
        }
        if cost && let Some(by) = self.stale.cost.take() {
            self.cost = Some(self.book.chronicle.cost(by));
        }
    }

    /// Where a task stands in the list.
    pub(crate) fn place_of(&self, task: &TaskId) -> Option<usize> {
        self.tasks.iter().position(|id| id == task)
    }

    /// The output that is looked at.
    pub(crate) fn output(&self) -> &Output {
        self.earlier.as_ref().unwrap_or(&self.live)
    }

    pub(crate) fn output_mut(&mut self) -> &mut Output {
        self.earlier.as_mut().unwrap_or(&mut self.live)
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.health.as_ref().is_some_and(|health| health.engine.is_some())
    }

    /// What was found of the engine of an unfinished run; before anybody looked, it is taken to be there.
    pub(crate) fn engine(&self) -> EngineState {
        let interrupted = self.health.as_ref().is_some_and(|health| health.interrupted);
        if interrupted { EngineState::Gone } else { EngineState::Alive }
    }

    /// Is an agent at work?
    pub(crate) fn is_working(&self) -> bool {
        self.is_alive() && self.head().open.here().is_some_and(|open| open.stage == Stage::Agent)
    }
}

/// How a task stands now.
pub(crate) fn mark(model: &Model, entry: &TaskEntry, now: Timestamp) -> Mark {
    match &entry.state {
        TaskState::Running if model.engine() != EngineState::Alive => Mark::Interrupted,
        TaskState::Running => Mark::Running,
        TaskState::Parked(_) => Mark::Asked,
        TaskState::Done { verified: true, .. } => Mark::Done,
        TaskState::Done { by_hand: true, .. } => Mark::ByHand,
        // What was done before the loop came needs no proof of it.
        TaskState::Done { verified: false, .. } if entry.attempts == 0 => Mark::Done,
        TaskState::Done { verified: false, .. } => Mark::Unverified,
        TaskState::Failed { .. } => Mark::Failed,
        TaskState::Skipped => Mark::Skipped,
        TaskState::Open => match why(model.head(), &entry.spec.id, now) {
            Some(Why::Ready) => Mark::Ready,
            _ => Mark::Waiting,
        },
    }
}

pub(crate) fn is_about(entry: &TaskEntry, query: &str) -> bool {
    query.is_empty()
        || entry.spec.title.to_lowercase().contains(query)
        || entry.spec.id.as_str().to_lowercase().contains(query)
}

fn by(name: &str) -> By {
    [By::Agent, By::Model, By::Day].into_iter().find(|by| by.name() == name).unwrap_or_default()
}
