//! The table of all tasks ever seen, with what is known of each and the queue of those that can
//! start, kept up to date with every change of state.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::OnceLock;

use jiff::Timestamp;

use crate::admit::normalised;
use crate::budget::{Reached, Sum};
use crate::event::{BaselineOutcome, BlobRef};
use crate::forecast::Group;
use crate::ids::{Attempt, QuestionId, TaskId};
use crate::mutant::{Mutant, planted};
use crate::policy::Policy;
use crate::redact;
use crate::schedule::{Rank, ReadyQueue, fixed_score};
use crate::signal::notes::Notes;
use crate::signal::notes::summary;
use crate::task::{FileStatus, Selection, Task};
use crate::work::Fate;

/// How many past attempts of a task are remembered for its next prompt.
const REMEMBERED_ATTEMPTS: usize = 5;

/// More than any score: a longer chain goes first, whatever else is said of a task.
const CHAIN: i64 = 1 << 40;

/// More than any score and any chain: behind all others of its phase that have had fewer turns.
const BEHIND: i64 = 1 << 58;

/// After so many turns nobody counts them any more; the ranks end there.
const MOST_TURNS: u32 = 31;

/// All tasks ever seen, with what is known of each, and the queue of those that can start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tasks {
    pub(crate) entries: Vec<TaskEntry>,
    by_id: HashMap<TaskId, usize>,
    texts: Texts,
    /// Who waits directly on a task.
    dependents: Vec<Vec<usize>>,
    /// How many dependencies lead to tasks that nobody knows.
    dangling: usize,
    ready: ReadyQueue,
    /// How many tasks of each phase are neither done nor skipped.
    unsettled: BTreeMap<u32, usize>,
    delayed: BTreeSet<(Timestamp, usize)>,
    /// Tasks that wait on others, by their place in the file.
    waiting: BTreeSet<(u32, usize)>,
    /// Tasks that failed, or wait for a person, by their place in the file.
    blocked: BTreeSet<(u32, usize)>,
    counts: Counts,
    /// How many tasks of each kind may still be worked on.
    left: BTreeMap<Group, usize>,
    /// Does what most others wait on go first?
    pub(crate) critical: bool,
    pub(crate) selection: Selection,
}

/// The slots of tasks by what they say. Made when it is first asked for, since most loops never ask, and kept up to
/// date from then on.
#[derive(Clone, Debug, Default)]
struct Texts(OnceLock<HashMap<u64, Vec<usize>>>);

impl Texts {
    fn of(&self, entries: &[TaskEntry]) -> &HashMap<u64, Vec<usize>> {
        self.0.get_or_init(|| {
            let mut slots: HashMap<u64, Vec<usize>> = HashMap::with_capacity(entries.len());
            for (slot, entry) in entries.iter().enumerate() {
                slots.entry(hash(&normalised(&entry.spec))).or_default().push(slot);
            }
            slots
        })
    }

    fn add(&mut self, slot: usize, task: &Task) {
        if let Some(slots) = self.0.get_mut() {
            slots.entry(hash(&normalised(task))).or_default().push(slot);
        }
    }

    fn remove(&mut self, slot: usize, task: &Task) {
        if let Some(slots) = self.0.get_mut().and_then(|slots| slots.get_mut(&hash(&normalised(task)))) {
            slots.retain(|other| *other != slot);
        }
    }
}

/// It says nothing that the entries do not say.
impl PartialEq for Texts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub total: usize,
    pub done: usize,
    pub unverified: usize,
    /// Done by the word of a person.
    pub by_hand: usize,
    pub failed: usize,
    pub skipped: usize,
    pub parked: usize,
    pub running: usize,
}

impl Counts {
    pub fn open(&self) -> usize {
        self.total.saturating_sub(self.done + self.failed + self.skipped + self.parked + self.running)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TaskEntry {
    pub spec: Task,
    pub state: TaskState,
    /// Attempts that ended (interruptions left out).
    pub attempts: Attempt,
    /// Attempts that failed since the task was last opened.
    pub failures: u32,
    /// The last of them would fail again in the same way.
    pub permanent: bool,
    /// The last attempt has to be made again: the next one is a retry.
    pub came_to_nothing: bool,
    pub history: VecDeque<AttemptMemory>,
    pub guidance: Vec<String>,
    pub error_streak: Option<(String, u32)>,
    pub not_before: Option<Timestamp>,
    pub last_attempt: Option<i64>,
    /// Commit with the unfinished work of the last attempt.
    pub kept: Option<String>,
    /// What its attempts have cost.
    pub spent: Sum,
    /// Of that, what it had cost when it was last opened.
    pub(crate) spent_before: Sum,
    /// An agent had to stop at this limit since it was last opened.
    pub(crate) budget_reached: Option<Reached>,
    /// How many tasks, one after the other, wait on it.
    chain: u32,
    pub last_digest: Option<String>,
    /// The newest checkpoint of one of its iterations, by its hash.
    pub checkpoint: Option<String>,
    /// What was flagged and a person approved: that, and nothing else that may be flagged later.
    pub approved: BTreeSet<String>,
    /// The kept work that a person accepted as it is: it is landed without another agent.
    pub accepted: Option<String>,
    /// What its own checks said before its first attempt.
    pub baseline: Vec<(String, BaselineOutcome)>,
    /// Attempts in a row that changed the tree and claimed nothing.
    pub unclaimed: u32,
    /// How often there were so many of them that other tasks go first.
    pub turns: u32,
    /// What failed in its checks the last time, and how often in a row.
    pub evidence_streak: Option<(String, u32)>,
    /// What its attempts decided, assumed and were bound by, and what they would do next.
    pub notes: Notes,
    /// What its own work came to, for later tasks to use.
    pub result: Option<BlobRef>,
    /// Its call happened, or may have, and must not be made again unless a person says so.
    pub fate: Option<Fate>,
    /// It was skipped since the loop first read of it: by the loop, or by somebody who changed the file.
    skipped_since: bool,
    /// Failed attempts the file knew of before those of this loop, and those.
    failed_before: u32,
    failed_since: u32,
    position: u32,
    unmet: usize,
    removed: bool,
    rank: Option<Rank>,
}

/// What the next attempt should know of an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptMemory {
    pub attempt: Attempt,
    pub outcome: String,
    /// Why: the failed check, the error, what was flagged.
    pub feedback: String,
    pub agent: String,
    /// What was tried: the paths it changed, the first of them, and its own words.
    pub changed: Vec<String>,
    pub changed_total: u32,
    /// The beginning of its message, read only when somebody asks what it tried.
    pub message: String,
}

impl AttemptMemory {
    /// What was tried, in a line.
    pub fn tried(&self) -> String {
        let mut text = summary(&self.message);
        if self.changed_total > 0 {
            let more = if self.changed.len() < self.changed_total as usize { ", …" } else { "" };
            let space = if text.is_empty() { "" } else { " " };
            text.push_str(&format!("{space}Changed: {}{more}", self.changed.join(", ")));
        }
        text
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    Open,
    Running,
    Parked(QuestionId),
    Done {
        verified: bool,
        /// It is the word of a person.
        by_hand: bool,
    },
    Failed {
        reason: String,
    },
    Skipped,
}

impl TaskState {
    pub(crate) const BY_HAND: Self = Self::Done { verified: false, by_hand: true };

    /// The word users see.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Running => "running",
            Self::Parked(_) => "parked",
            Self::Done { .. } => "done",
            Self::Failed { .. } => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// What the backlog file should say of a task in this state.
    pub fn file_status(&self) -> FileStatus {
        match self {
            Self::Open | Self::Running | Self::Parked(_) => FileStatus::Open,
            Self::Done { .. } => FileStatus::Done,
            Self::Failed { .. } => FileStatus::Failed,
            Self::Skipped => FileStatus::Skipped,
        }
    }
}

impl Tasks {
    pub fn get(&self, id: &TaskId) -> Option<&TaskEntry> {
        self.slot(id).map(|slot| &self.entries[slot])
    }

    /// All tasks of the backlog, in file order.
    pub fn iter(&self) -> impl Iterator<Item = &TaskEntry> {
        let mut slots: Vec<usize> =
            (0..self.entries.len()).filter(|&slot| !self.entries[slot].removed).collect();
        slots.sort_by_key(|&slot| self.entries[slot].position);
        slots.into_iter().map(|slot| &self.entries[slot])
    }

    /// The tasks that could start, phase by phase and roughly in their order.
    pub fn ready(&self) -> impl Iterator<Item = &TaskEntry> {
        self.ready.slots().map(|slot| &self.entries[slot])
    }

    /// Those that wait on others, in the order of the file.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &TaskEntry> {
        self.waiting.iter().map(|(_, slot)| &self.entries[*slot])
    }

    /// Those that failed or wait for a person, in the order of the file.
    pub fn blocked(&self) -> impl Iterator<Item = &TaskEntry> {
        self.blocked.iter().map(|(_, slot)| &self.entries[*slot])
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many tasks of each kind may still be worked on.
    pub fn left(&self) -> &BTreeMap<Group, usize> {
        &self.left
    }

    /// The task to work on next, if one can start now. Where file order decides, the first one is
    /// waited for while it is delayed; by score, others may go before it.
    pub fn next(&self, now: Timestamp) -> Option<&TaskEntry> {
        let phase = *self.unsettled.keys().next()?;
        let slot = self.ready.best(
            phase,
            now.as_second(),
            |slot| self.entries[slot].rank.unwrap_or_else(|| self.rank(slot)),
            |slot| self.selection == Selection::FileOrder || self.entries[slot].may_start(now),
        )?;
        Some(&self.entries[slot]).filter(|entry| entry.may_start(now))
    }

    /// When the next task that waits after an error may start.
    pub fn next_delayed(&self, now: Timestamp) -> Option<(Timestamp, &TaskEntry)> {
        let phase = *self.unsettled.keys().next()?;
        self.delayed
            .iter()
            .find(|(until, slot)| *until > now && self.entries[*slot].spec.phase == phase)
            .map(|(until, slot)| (*until, &self.entries[*slot]))
    }

    /// The tasks whose [normalised] text is this.
    pub(crate) fn saying(&self, text: &str) -> impl Iterator<Item = &TaskEntry> {
        let slots = self.texts.of(&self.entries).get(&hash(text));
        let entries = slots.into_iter().flatten().map(|slot| &self.entries[*slot]);
        entries.filter(move |entry| normalised(&entry.spec) == text)
    }

    /// How many slots there are; a task that was removed keeps its own.
    pub(crate) fn slots(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn id_at(&self, slot: usize) -> &TaskId {
        &self.entries[slot].spec.id
    }

    pub(crate) fn dependents_at(&self, slot: usize) -> &[usize] {
        &self.dependents[slot]
    }

    /// Who depends on a task itself.
    pub fn dependents(&self, id: &TaskId) -> impl Iterator<Item = &TaskEntry> {
        let slots = self.slot(id).map_or(&[][..], |slot| &self.dependents[slot]);
        slots.iter().map(|slot| &self.entries[*slot])
    }

    /// Tasks that cannot start, directly or through others, as long as this one is not done.
    pub fn waiting_on(&self, id: &TaskId) -> Vec<TaskId> {
        let Some(slot) = self.slot(id) else { return Vec::new() };
        let mut seen = BTreeSet::new();
        let mut todo = vec![slot];
        while let Some(slot) = todo.pop() {
            for &dependent in &self.dependents[slot] {
                let entry = &self.entries[dependent];
                if entry.state == TaskState::Open
                    && !entry.removed
                    && seen.insert((entry.position, dependent))
                {
                    todo.push(dependent);
                }
            }
        }
        seen.into_iter().map(|(_, slot)| self.entries[slot].spec.id.clone()).collect()
    }

    /// The lowest phase with work left in it.
    pub fn current_phase(&self) -> Option<u32> {
        self.unsettled.keys().next().copied()
    }

    /// Skipped and failed tasks that others wait on, in file order.
    pub fn blockers(&self) -> Vec<&TaskEntry> {
        self.iter()
            .filter(|entry| match entry.state {
                TaskState::Failed { .. } => true,
                TaskState::Skipped => !self.waiting_on(&entry.spec.id).is_empty(),
                TaskState::Open | TaskState::Running | TaskState::Parked(_) | TaskState::Done { .. } => false,
            })
            .collect()
    }

    pub(crate) fn slot(&self, id: &TaskId) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn upsert(&mut self, task: &Task) {
        match self.slot(&task.id) {
            Some(slot) => {
                let entry = &mut self.entries[slot];
                // What we would write ourselves we may have written: the record of it is lost in a crash.
                let changed = task.status != entry.spec.status && task.status != entry.state.file_status();
                entry.fate = entry.fate.filter(|_| redact::is_same_work(&task.work, &entry.spec.work));
                // A call is not made again because its box is empty: a copy of the file may have come back
                // from elsewhere. The box is ticked again.
                let stays = entry.fate.is_some() && task.status == FileStatus::Open;
                let by_person = (changed || entry.removed) && !stays;
                self.texts.remove(slot, &entry.spec);
                self.texts.add(slot, task);
                entry.note_file(task);
                entry.spec = task.clone();
                entry.removed = false;
                if by_person && entry.state != TaskState::Running {
                    let by_hand = task.status == FileStatus::Done;
                    let state = state_from_file(task);
                    entry.state = if by_hand { TaskState::BY_HAND } else { state };
                    entry.forget_failures();
                }
            }
            None => self.push(task),
        }
    }

    fn push(&mut self, task: &Task) {
        let slot = self.entries.len();
        self.by_id.insert(task.id.clone(), slot);
        self.texts.add(slot, task);
        self.entries.push(TaskEntry::new(task, u32::try_from(slot).unwrap_or(u32::MAX)));
    }

    /// Adds tasks behind all others without looking at those. False where that does not do: the caller has to
    /// take them in one by one and rebuild.
    pub(crate) fn append(&mut self, tasks: &[Task], at: Timestamp) -> bool {
        let is_new = |task: &Task| !self.by_id.contains_key(&task.id);
        if self.critical || self.dangling > 0 || !tasks.iter().all(is_new) {
            return false;
        }
        let first = self.entries.len();
        for task in tasks {
            // The same id twice in one event: the last one counts, as for any other change.
            self.upsert(task);
        }
        self.dependents.resize(self.entries.len(), Vec::new());
        for slot in first..self.entries.len() {
            self.connect(slot, at);
        }
        for slot in first..self.entries.len() {
            self.count(slot, 1);
            self.enqueue(slot, at);
        }
        true
    }

    /// Enters a new task with those it depends on, whose rank may change with that.
    fn connect(&mut self, slot: usize, at: Timestamp) {
        let dependencies = self.dependencies(slot);
        self.dangling += self.entries[slot].spec.depends_on.len() - dependencies.len();
        for &dependency in &dependencies {
            let entry = &self.entries[dependency];
            let is_queued = entry.rank.is_some() || self.waiting.contains(&(entry.position, dependency));
            self.dequeue(dependency);
            self.dependents[dependency].push(slot);
            if is_queued {
                self.enqueue(dependency, at);
            }
        }
        self.entries[slot].unmet =
            dependencies.iter().filter(|&&dependency| !self.entries[dependency].is_done()).count();
    }

    fn dependencies(&self, slot: usize) -> Vec<usize> {
        self.entries[slot].spec.depends_on.iter().filter_map(|id| self.slot(id)).collect()
    }

    pub(crate) fn remove(&mut self, id: &TaskId) {
        if let Some(slot) = self.slot(id) {
            self.entries[slot].removed = true;
        }
    }

    pub(crate) fn reorder(&mut self, order: &[TaskId]) {
        for (position, id) in order.iter().enumerate() {
            if let Some(slot) = self.slot(id) {
                self.entries[slot].position = u32::try_from(position).unwrap_or(u32::MAX);
            }
        }
    }

    /// Derives everything that hangs on dependencies anew; only after the backlog itself changed.
    pub(crate) fn rebuild(&mut self, at: Timestamp) {
        self.dependents = vec![Vec::new(); self.entries.len()];
        self.ready = ReadyQueue::default();
        self.unsettled.clear();
        self.delayed.clear();
        self.waiting.clear();
        self.blocked.clear();
        self.left.clear();
        self.dangling = 0;
        self.counts = Counts::default();
        for slot in 0..self.entries.len() {
            let dependencies = self.dependencies(slot);
            self.dangling += self.entries[slot].spec.depends_on.len() - dependencies.len();
            for &dependency in &dependencies {
                if !self.entries[slot].removed {
                    self.dependents[dependency].push(slot);
                }
            }
            let unmet =
                dependencies.iter().filter(|&&dependency| !self.entries[dependency].is_done()).count();
            self.entries[slot].unmet = unmet;
            self.entries[slot].rank = None;
        }
        if self.critical {
            self.measure_chains();
        }
        for slot in 0..self.entries.len() {
            if !self.entries[slot].removed {
                self.count(slot, 1);
                self.enqueue(slot, at);
                if let Some(until) = self.entries[slot].not_before {
                    self.delayed.insert((until, slot));
                }
            }
        }
    }

    pub(crate) fn set_state(&mut self, slot: usize, state: TaskState, at: Timestamp) {
        let was_done = self.entries[slot].is_done();
        self.dequeue(slot);
        self.count(slot, -1);
        if !matches!(state, TaskState::Open | TaskState::Running) {
            // Nobody should wait for what does not come.
            self.undelay(slot);
        }
        self.entries[slot].state = state;
        self.count(slot, 1);
        self.enqueue(slot, at);
        let is_done = self.entries[slot].is_done();
        if was_done != is_done {
            for dependent in self.dependents[slot].clone() {
                self.dequeue(dependent);
                let entry = &mut self.entries[dependent];
                entry.unmet = if is_done { entry.unmet.saturating_sub(1) } else { entry.unmet + 1 };
                self.enqueue(dependent, at);
            }
        }
    }

    /// `works_on`: it changed something and claimed nothing, and so many retries it would have.
    pub(crate) fn note_attempt(&mut self, slot: usize, at: Timestamp, failed: bool, works_on: Option<u32>) {
        self.dequeue(slot);
        let entry = &mut self.entries[slot];
        entry.last_attempt = Some(at.as_second());
        if failed {
            entry.failures += 1;
            entry.failed_since += 1;
        }
        entry.unclaimed = if works_on.is_some() { entry.unclaimed + 1 } else { 0 };
        entry.turns = works_on.map_or(0, |retries| (entry.unclaimed / retries.max(1)).min(MOST_TURNS));
        self.enqueue(slot, at);
    }

    pub(crate) fn delay(&mut self, slot: usize, until: Timestamp) {
        self.undelay(slot);
        self.entries[slot].not_before = Some(until);
        self.delayed.insert((until, slot));
    }

    pub(crate) fn undelay(&mut self, slot: usize) {
        if let Some(until) = self.entries[slot].not_before.take() {
            self.delayed.remove(&(until, slot));
        }
    }

    fn enqueue(&mut self, slot: usize, at: Timestamp) {
        let entry = &self.entries[slot];
        let open = entry.state == TaskState::Open || planted(Mutant::WorksOnSettled);
        let blocked = entry.unmet > 0 && !planted(Mutant::IgnoresDependencies);
        if open && blocked && !entry.removed {
            self.waiting.insert((entry.position, slot));
        }
        if !open || blocked || entry.removed {
            return;
        }
        let rank = self.rank(slot);
        self.entries[slot].rank = Some(rank);
        self.ready.insert(slot, &rank, at.as_second());
    }

    fn dequeue(&mut self, slot: usize) {
        self.waiting.remove(&(self.entries[slot].position, slot));
        if let Some(rank) = self.entries[slot].rank.take() {
            self.ready.remove(slot, &rank);
        }
    }

    fn rank(&self, slot: usize) -> Rank {
        let entry = &self.entries[slot];
        let (fixed, last_attempt) = match self.selection {
            Selection::FileOrder => (0, None),
            Selection::Score => {
                let failures = entry.spec.failed_attempts.max(entry.failures);
                let fan_out = self.dependents[slot].len();
                let fixed = fixed_score(entry.spec.priority, entry.spec.complexity, fan_out, failures);
                (fixed, entry.last_attempt.or(entry.spec.last_attempt_at))
            }
        };
        let urgent = if self.critical { i64::from(entry.chain) * CHAIN } else { 0 };
        let behind = i64::from(entry.turns) * BEHIND;
        let fixed = fixed.saturating_add(urgent).saturating_sub(behind);
        Rank { phase: entry.spec.phase, fixed, last_attempt, position: entry.position }
    }

    /// How long the longest row of unfinished tasks is that waits on each, from its end backwards.
    fn measure_chains(&mut self) {
        let mut open: Vec<usize> = self.dependents.iter().map(Vec::len).collect();
        let mut ends: Vec<usize> = (0..open.len()).filter(|&slot| open[slot] == 0).collect();
        self.entries.iter_mut().for_each(|entry| entry.chain = 0);
        while let Some(slot) = ends.pop() {
            let entry = &self.entries[slot];
            let length = if entry.is_done() { entry.chain } else { entry.chain + 1 };
            let dependencies: Vec<usize> =
                entry.spec.depends_on.iter().filter_map(|id| self.slot(id)).collect();
            for dependency in dependencies {
                self.entries[dependency].chain = self.entries[dependency].chain.max(length);
                open[dependency] = open[dependency].saturating_sub(1);
                if open[dependency] == 0 {
                    ends.push(dependency);
                }
            }
        }
    }

    fn count(&mut self, slot: usize, by: isize) {
        let entry = &self.entries[slot];
        if entry.removed {
            return;
        }
        let counts = &mut self.counts;
        let add = |n: &mut usize| *n = n.saturating_add_signed(by);
        add(&mut counts.total);
        match &entry.state {
            TaskState::Open => {}
            TaskState::Running => add(&mut counts.running),
            TaskState::Parked(_) => add(&mut counts.parked),
            TaskState::Done { verified, by_hand } => {
                add(&mut counts.done);
                if *by_hand {
                    add(&mut counts.by_hand);
                } else if !verified && entry.attempts > 0 {
                    add(&mut counts.unverified);
                }
            }
            TaskState::Failed { .. } => add(&mut counts.failed),
            TaskState::Skipped => add(&mut counts.skipped),
        }
        if matches!(entry.state, TaskState::Parked(_) | TaskState::Failed { .. }) {
            let place = (entry.position, slot);
            if by > 0 {
                self.blocked.insert(place)
            } else {
                self.blocked.remove(&place)
            };
        }
        let unfinished = matches!(entry.state, TaskState::Open | TaskState::Running | TaskState::Parked(_));
        if unfinished && entry.spec.work.is_agents() {
            let group = Group::of(&entry.spec);
            let left = self.left.entry(group.clone()).or_default();
            *left = left.saturating_add_signed(by);
            if *left == 0 {
                self.left.remove(&group);
            }
        }
        if !matches!(entry.state, TaskState::Done { .. } | TaskState::Skipped) {
            let left = self.unsettled.entry(entry.spec.phase).or_default();
            *left = left.saturating_add_signed(by);
            if *left == 0 {
                self.unsettled.remove(&entry.spec.phase);
            }
        }
    }
}

impl TaskEntry {
    /// Did the backlog say that it is done before anybody here worked on it?
    pub fn came_done(&self) -> bool {
        self.attempts == 0 && self.state == TaskState::Done { verified: false, by_hand: false }
    }

    fn new(task: &Task, position: u32) -> Self {
        Self {
            spec: task.clone(),
            state: state_from_file(task),
            attempts: 0,
            failures: 0,
            permanent: false,
            came_to_nothing: false,
            history: VecDeque::new(),
            guidance: Vec::new(),
            error_streak: None,
            not_before: None,
            last_attempt: None,
            kept: None,
            spent: Sum::default(),
            spent_before: Sum::default(),
            budget_reached: None,
            chain: 0,
            last_digest: None,
            checkpoint: None,
            approved: BTreeSet::new(),
            accepted: None,
            baseline: Vec::new(),
            unclaimed: 0,
            turns: 0,
            evidence_streak: None,
            notes: Notes::default(),
            result: None,
            fate: None,
            skipped_since: false,
            failed_before: task.failed_attempts,
            failed_since: 0,
            position,
            unmet: 0,
            removed: false,
            rank: None,
        }
    }

    /// Is anything left to be done, now or after a person said so?
    pub fn is_unsettled(&self) -> bool {
        match self.state {
            TaskState::Open | TaskState::Running | TaskState::Parked(_) | TaskState::Failed { .. } => {
                !self.is_removed()
            }
            TaskState::Done { .. } | TaskState::Skipped => false,
        }
    }

    pub fn is_done(&self) -> bool {
        matches!(self.state, TaskState::Done { .. })
    }

    /// Does the loop know by itself that it is skipped, whatever mark stands for that in the file?
    pub fn is_known_skipped(&self) -> bool {
        self.state == TaskState::Skipped && self.skipped_since
    }

    /// All its failed attempts, those before this loop included.
    pub fn failed_attempts(&self) -> u32 {
        self.failed_before.saturating_add(self.failed_since)
    }

    /// What another reading of the file says, before it is taken over.
    fn note_file(&mut self, task: &Task) {
        if task.status != self.spec.status {
            self.skipped_since = task.status == FileStatus::Skipped;
        }
        // Our own count is no news.
        if task.failed_attempts != self.spec.failed_attempts && task.failed_attempts != self.failed_attempts()
        {
            (self.failed_before, self.failed_since) = (task.failed_attempts, 0);
        }
    }

    /// The loop wrote this status into the file.
    pub(crate) fn note_written(&mut self, status: FileStatus) {
        self.spec.status = status;
        self.skipped_since = status == FileStatus::Skipped;
    }

    fn may_start(&self, now: Timestamp) -> bool {
        self.not_before.is_none_or(|until| until <= now)
    }

    /// Is the task no longer in the backlog?
    pub fn is_removed(&self) -> bool {
        self.removed
    }

    /// Attempts allowed after the first one.
    pub fn max_retries(&self, policy: &Policy) -> u32 {
        self.spec.max_retries.unwrap_or(policy.retry.max_retries)
    }

    pub(crate) fn remember(&mut self, memory: AttemptMemory) {
        if self.history.len() == REMEMBERED_ATTEMPTS {
            self.history.pop_front();
        }
        self.history.push_back(memory);
    }

    /// Counts an error; true when the same one came often enough to ask, which clears the streak.
    pub(crate) fn count_error(&mut self, signature: &str, threshold: u32) -> bool {
        let count = match self.error_streak.take() {
            Some((same, count)) if same == signature => count + 1,
            Some(_) | None => 1,
        };
        if threshold > 0 && count >= threshold {
            return true;
        }
        self.error_streak = Some((signature.to_owned(), count));
        false
    }

    /// Counts failing checks; true when the same ones failed often enough to ask, which clears the streak.
    pub(crate) fn count_evidence(&mut self, signature: &str, threshold: u32) -> bool {
        let count = match self.evidence_streak.take() {
            Some((same, count)) if same == signature => count + 1,
            Some(_) | None => 1,
        };
        if threshold > 0 && count >= threshold {
            return true;
        }
        self.evidence_streak = Some((signature.to_owned(), count));
        false
    }

    pub(crate) fn forget_failures(&mut self) {
        self.failures = 0;
        self.unclaimed = 0;
        self.turns = 0;
        self.evidence_streak = None;
        self.permanent = false;
        self.spent_before = self.spent;
        self.budget_reached = None;
        self.error_streak = None;
    }
}

fn state_from_file(task: &Task) -> TaskState {
    match task.status {
        FileStatus::Open => TaskState::Open,
        FileStatus::Done => TaskState::Done { verified: false, by_hand: false },
        FileStatus::Failed => TaskState::Failed { reason: "marked failed in the backlog".to_owned() },
        FileStatus::Skipped => TaskState::Skipped,
    }
}
