//! The one gate for new and changed tasks, whoever proposes them: a person at any surface, the agent at work, and
//! later planners, plan files and boards.
//!
//! What a loop knows stays consistent behind it: every id once, nothing said twice, dependencies that exist and lead
//! nowhere in circles, no more tasks than allowed, completed work as it was, and work that is left to do not taken out by
//! an agent. Each change is judged by itself:
//! those that cannot be are refused with the reason, the others are admitted. A single new task costs the same
//! however many there are; whatever else is proposed is judged in time linear in all there is.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::ids::TaskId;
use crate::state::Loop;
use crate::task::{Task, Work};
use crate::tasks::{TaskEntry, TaskState};
use crate::verdict::own_checks;

/// How many of the tasks of a circle are found for a message; whoever proposed more than these has to look at the
/// whole of it anyway.
const EXPLAINED_CYCLES: usize = 20;

/// What somebody wants to be different about the tasks of a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub by: Proposer,
    pub changes: Vec<Change>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposer {
    Person {
        /// It is meant, though another task may say the same: they gave it an id of its own.
        insists: bool,
    },
    /// The agent at work: in the backlog file, by command or by tool.
    Agent,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Add(Task),
    /// The whole task as it is to be, under the id it has.
    Update(Task),
    Move(TaskId),
    Remove(TaskId),
}

/// What became of a proposal: all of it is admitted but for what was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// In the order of the proposal.
    pub refused: Vec<Refused>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{task}` {why}")]
pub struct Refused {
    /// Which change of the proposal.
    pub place: usize,
    pub task: TaskId,
    pub why: Refusal,
}

/// Why a change is refused. The words go on from the task's id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("needs an id that is not blank")]
    NoId,
    #[error("is there already")]
    IdTaken,
    #[error("says the same as `{other}`")]
    SaysTheSame { other: TaskId },
    #[error("is changed twice at once")]
    Twice,
    #[error("is not there")]
    UnknownTask,
    #[error("would depend on {}, which {} not there", quoted(.unknown), are(.unknown))]
    UnknownDependency { unknown: Vec<TaskId> },
    #[error("would depend on itself{}", by_way_of(.through))]
    Cycle { through: Vec<TaskId> },
    #[error("would be more than the {max} tasks that are allowed")]
    Full { max: u32 },
    #[error("is done: completed work is not changed")]
    Completed,
    #[error("lost or changed a check, which is for people to do")]
    CheckTaken,
    #[error("was taken out and is still to be done")]
    TakenOut,
    #[error("is `{other}` in other words")]
    Rewords { other: TaskId },
}

impl Proposal {
    pub fn of_person(change: Change) -> Self {
        Self { by: Proposer::Person { insists: false }, changes: vec![change] }
    }
}

impl Admission {
    /// Of a proposal that makes sense only as a whole: the first refusal, if there is one.
    pub fn whole(self) -> Result<(), Refused> {
        self.refused.into_iter().next().map_or(Ok(()), Err)
    }
}

/// Judges every change of a proposal against what the loop knows.
pub fn admit(state: &Loop, proposal: &Proposal) -> Admission {
    let mut gate = Gate::new(state, proposal);
    gate.refuse_singly();
    gate.settle();
    gate.refuse_surplus();
    gate.settle();
    gate.admission()
}

/// Do two tasks say the same? Capitals, punctuation and white space make no difference, nor does a title that
/// only repeats how the description begins.
pub(crate) fn normalised(task: &Task) -> String {
    let repeats = task.description.trim_start().starts_with(task.title.trim());
    let title = if repeats { "" } else { task.title.as_str() };
    let parent = task.parent.as_ref().map_or("", |parent| parent.as_str());
    let mut text = String::with_capacity(title.len() + task.description.len() + parent.len() + 2);
    let letters = title.chars().chain([' ']).chain(task.description.chars());
    for c in letters {
        if c.is_alphanumeric() {
            text.extend(c.to_lowercase());
        } else if !text.is_empty() && !text.ends_with(' ') {
            text.push(' ');
        }
    }
    text.truncate(text.trim_end().len());
    // Parts of different tasks may well be called alike.
    text.push('\n');
    text.push_str(parent);
    text
}

/// Is it the same task with more or fewer words? Agents add to the title what they did.
pub fn rewords(before: &Task, after: &Task) -> bool {
    let said = |task: &Task| normalised(&Task { description: String::new(), parent: None, ..task.clone() });
    let (before, after) = (said(before), said(after));
    let (before, after) = (before.trim(), after.trim());
    let begins_with = |long: &str, short: &str| {
        let rest = long.strip_prefix(short).filter(|_| !short.is_empty());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    begins_with(before, after) || begins_with(after, before)
}

/// Where ids are made of titles, other words are another task. Is this one taken out while it is worked on, or with its
/// checks, to come back in other words?
fn is_evaded(entry: &TaskEntry, proposal: &Proposal) -> bool {
    let is_again = |task: &Task| {
        rewords(&entry.spec, task) && (entry.state == TaskState::Running || loses_check(&entry.spec, task))
    };
    proposal.changes.iter().any(|change| matches!(change, Change::Add(task) if is_again(task)))
}

/// Is a check gone that was there before? Another one may come.
fn loses_check(before: &Task, after: &Task) -> bool {
    let after = own_checks(after);
    own_checks(before).iter().any(|check| after.iter().all(|other| other.command != check.command))
}

/// Can this task be told from others by its words alone? What the engine does itself is told by more than them.
fn has_words(task: &Task) -> bool {
    match task.work {
        Work::Agent => true,
        Work::Command { .. }
        | Work::File { .. }
        | Work::Notice { .. }
        | Work::McpCall { .. }
        | Work::Gate { .. }
        | Work::Flow { .. } => false,
    }
}

/// A proposal while it is judged. Changes go by their place in it.
struct Gate<'a> {
    state: &'a Loop,
    proposal: &'a Proposal,
    refusals: Vec<Option<Refusal>>,
    /// The additions that are still candidates, by id.
    added: HashMap<&'a TaskId, usize>,
    updated: HashSet<&'a TaskId>,
    removed: HashMap<&'a TaskId, usize>,
    /// What stays, though an agent took it out to bring it back in other words.
    evaded: Vec<&'a Task>,
}

impl<'a> Gate<'a> {
    fn new(state: &'a Loop, proposal: &'a Proposal) -> Self {
        let by_agent = proposal.by == Proposer::Agent;
        let mut removed = HashMap::new();
        let mut evaded = Vec::new();
        for (place, change) in proposal.changes.iter().enumerate() {
            let Change::Remove(id) = change else { continue };
            // An agent may tidy away what is settled; whether the rest need not be done is for people to say.
            match state.task(id).filter(|entry| by_agent && entry.is_unsettled()) {
                Some(entry) if is_evaded(entry, proposal) => evaded.push(&entry.spec),
                Some(_) => {}
                None => drop(removed.insert(id, place)),
            }
        }
        Self {
            state,
            proposal,
            refusals: vec![None; proposal.changes.len()],
            added: HashMap::new(),
            updated: HashSet::new(),
            removed,
            evaded,
        }
    }

    fn known(&self, id: &TaskId) -> Option<&'a TaskEntry> {
        self.state.task(id).filter(|entry| !entry.is_removed())
    }

    /// What can be said of each change without looking at the others, but that two may be the same.
    fn refuse_singly(&mut self) {
        let mut said: HashMap<String, &TaskId> = HashMap::new();
        for (place, change) in self.proposal.changes.iter().enumerate() {
            let refusal = match change {
                Change::Add(task) => self.refuse_addition(task, &mut said),
                Change::Update(task) if !self.updated.insert(&task.id) => Some(Refusal::Twice),
                Change::Update(task) => self.refuse_update(task, &mut said),
                Change::Move(id) => self.known(id).is_none().then_some(Refusal::UnknownTask),
                Change::Remove(id) => self.refuse_removal(id),
            };
            if let (Change::Add(task), None) = (change, &refusal) {
                self.added.insert(&task.id, place);
            }
            self.refusals[place] = refusal;
        }
    }

    fn refuse_addition(&self, task: &'a Task, said: &mut HashMap<String, &'a TaskId>) -> Option<Refusal> {
        if task.id.as_str().trim().is_empty() {
            return Some(Refusal::NoId);
        }
        let is_taken = self.known(&task.id).is_some() && !self.removed.contains_key(&task.id);
        if is_taken || self.added.contains_key(&task.id) {
            return Some(Refusal::IdTaken);
        }
        if let Some(other) = self.evaded.iter().find(|other| rewords(other, task)) {
            return Some(Refusal::Rewords { other: other.id.clone() });
        }
        self.says_the_same(task, said)
    }

    fn refuse_removal(&self, id: &TaskId) -> Option<Refusal> {
        if self.known(id).is_none() {
            return Some(Refusal::UnknownTask);
        }
        (!self.removed.contains_key(id)).then_some(Refusal::TakenOut)
    }

    fn refuse_update(&self, task: &'a Task, said: &mut HashMap<String, &'a TaskId>) -> Option<Refusal> {
        let Some(known) = self.known(&task.id) else { return Some(Refusal::UnknownTask) };
        if known.is_done() && self.proposal.by == Proposer::Agent && is_changed(&known.spec, task) {
            return Some(Refusal::Completed);
        }
        if self.proposal.by == Proposer::Agent && loses_check(&known.spec, task) {
            return Some(Refusal::CheckTaken);
        }
        let says_otherwise = normalised(task) != normalised(&known.spec);
        if says_otherwise { self.says_the_same(task, said) } else { None }
    }

    /// Another task that says the same and is not settled yet.
    fn says_the_same(&self, task: &'a Task, said: &mut HashMap<String, &'a TaskId>) -> Option<Refusal> {
        if !has_words(task) || self.proposal.by == (Proposer::Person { insists: true }) {
            return None;
        }
        let text = normalised(task);
        let is_other = |entry: &&TaskEntry| {
            entry.spec.id != task.id
                && entry.is_unsettled()
                && has_words(&entry.spec)
                && !self.removed.contains_key(&entry.spec.id)
        };
        let known = self.state.tasks.saying(&text).find(is_other).map(|entry| &entry.spec.id);
        if let Some(other) = known.or_else(|| said.get(&text).copied()) {
            return Some(Refusal::SaysTheSame { other: other.clone() });
        }
        said.insert(text, &task.id);
        None
    }

    /// Of additions and updates that are not refused: their place and the task.
    fn candidates(&self) -> impl Iterator<Item = (usize, &'a Task)> {
        let changes = self.proposal.changes.iter().enumerate();
        changes.filter(|(place, _)| self.refusals[*place].is_none()).filter_map(
            |(place, change)| match change {
                Change::Add(task) | Change::Update(task) => Some((place, task)),
                Change::Move(_) | Change::Remove(_) => None,
            },
        )
    }

    fn refuse(&mut self, place: usize, why: Refusal) {
        self.refusals[place] = Some(why);
        if let Change::Add(task) = &self.proposal.changes[place] {
            self.added.remove(&task.id);
        }
    }

    /// Until all that is left fits: a refused update leaves what the task depended on before, which may close a
    /// circle with other updates.
    fn settle(&mut self) {
        loop {
            let before = self.refused();
            self.refuse_unknown_dependencies();
            self.refuse_cycles();
            if self.refused() == before {
                return;
            }
        }
    }

    fn refused(&self) -> usize {
        self.refusals.iter().flatten().count()
    }

    /// What depends on a task that is refused is refused too, and so on.
    fn refuse_unknown_dependencies(&mut self) {
        let mut waiting: HashMap<&TaskId, Vec<usize>> = HashMap::new();
        let mut lost = VecDeque::new();
        for (place, task) in self.candidates() {
            for needed in needs(task) {
                if self.added.contains_key(needed) {
                    waiting.entry(needed).or_default().push(place);
                }
            }
            let unknown = self.unknown_to(task);
            if !unknown.is_empty() {
                lost.push_back((place, unknown));
            }
        }
        while let Some((place, unknown)) = lost.pop_front() {
            if self.refusals[place].is_some() {
                continue;
            }
            self.refuse(place, Refusal::UnknownDependency { unknown });
            let Change::Add(task) = &self.proposal.changes[place] else { continue };
            for place in waiting.remove(&task.id).unwrap_or_default() {
                lost.push_back((place, vec![task.id.clone()]));
            }
        }
    }

    fn unknown_to(&self, task: &Task) -> Vec<TaskId> {
        let is_known = |id: &TaskId| {
            let stays = self.known(id).is_some() && !self.removed.contains_key(id);
            stays || self.added.contains_key(id)
        };
        needs(task).filter(|id| !is_known(id)).cloned().collect()
    }

    /// Where what is proposed leads in circles, all that is proposed of them is refused: nobody knows which part
    /// of it was the mistake.
    fn refuse_cycles(&mut self) {
        for (place, task) in self.candidates().collect::<Vec<_>>() {
            if task.depends_on.contains(&task.id) {
                self.refuse(place, Refusal::Cycle { through: Vec::new() });
            }
        }
        let graph = Graph::new(self, Former::Replaced);
        if graph.circling().is_empty() {
            return;
        }
        // A refused update leaves what the task depended on before, which may close another circle.
        let safe = Graph::new(self, Former::Kept);
        let places = safe.circling();
        let explained: Vec<Refusal> = places
            .iter()
            .enumerate()
            .map(|(count, place)| {
                let through = if count < EXPLAINED_CYCLES { graph.way_back(*place) } else { Vec::new() };
                Refusal::Cycle { through }
            })
            .collect();
        for (place, why) in places.into_iter().zip(explained) {
            self.refuse(place, why);
        }
    }

    /// What is more than allowed, from the end of the proposal. A backlog that had more from the start keeps them.
    fn refuse_surplus(&mut self) {
        let max = self.state.policy.limits.max_tasks;
        let taken_out = self.removed.keys().filter(|id| self.known(id).is_some()).count();
        let mut count = self.state.tasks.counts().total.saturating_sub(taken_out);
        let additions: Vec<usize> = (0..self.refusals.len())
            .filter(|place| self.refusals[*place].is_none())
            .filter(|place| matches!(self.proposal.changes[*place], Change::Add(_)))
            .collect();
        for place in additions {
            if count >= max as usize {
                self.refuse(place, Refusal::Full { max });
            } else {
                count += 1;
            }
        }
    }

    fn admission(self) -> Admission {
        let changes = self.proposal.changes.iter().enumerate().zip(self.refusals);
        let refused = changes.filter_map(|((place, change), refusal)| {
            let task = match change {
                Change::Add(task) | Change::Update(task) => &task.id,
                Change::Move(id) | Change::Remove(id) => id,
            };
            Some(Refused { place, task: task.clone(), why: refusal? })
        });
        Admission { refused: refused.collect() }
    }
}

/// Does anything differ that is not the engine's own to write?
fn is_changed(before: &Task, after: &Task) -> bool {
    let own = |task: &Task| Task {
        status: after.status,
        failed_attempts: 0,
        last_attempt_at: None,
        ..task.clone()
    };
    own(before) != own(after)
}

fn needs(task: &Task) -> impl Iterator<Item = &TaskId> {
    task.depends_on.iter().chain(&task.parent)
}

/// Do updated tasks still depend on what they depended on before?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Former {
    Replaced,
    Kept,
}

/// Who waits on whom among the tasks that could be part of a circle: all that wait on a candidate, directly or
/// not. A node is a task the loop knows, by its slot, or behind those an addition, by its place in the proposal.
struct Graph<'a> {
    state: &'a Loop,
    known: usize,
    /// How many there could be.
    nodes: usize,
    /// The places of updates, by slot.
    updates: HashMap<usize, usize>,
    former: Former,
    /// Who waits on a node because of the proposal.
    proposed: HashMap<usize, Vec<usize>>,
    /// The nodes of the candidates, with their places.
    candidates: Vec<(usize, usize)>,
    ids: HashMap<usize, &'a TaskId>,
}

impl<'a> Graph<'a> {
    fn new(gate: &Gate<'a>, former: Former) -> Self {
        let known = gate.state.tasks.slots();
        let node_of =
            |id: &TaskId| gate.added.get(id).map(|place| known + place).or_else(|| gate.state.tasks.slot(id));
        let mut graph = Self {
            state: gate.state,
            known,
            nodes: known + gate.proposal.changes.len(),
            updates: HashMap::new(),
            former,
            proposed: HashMap::new(),
            candidates: Vec::new(),
            ids: HashMap::new(),
        };
        for (place, task) in gate.candidates() {
            let Some(node) = node_of(&task.id) else { continue };
            if node < known {
                graph.updates.insert(node, place);
            }
            graph.candidates.push((node, place));
            graph.ids.insert(node, &task.id);
            for needed in task.depends_on.iter().filter_map(node_of) {
                graph.proposed.entry(needed).or_default().push(node);
            }
        }
        graph
    }

    fn id(&self, node: usize) -> TaskId {
        let proposed = self.ids.get(&node).copied();
        proposed.unwrap_or_else(|| self.state.tasks.id_at(node)).clone()
    }

    /// Who waits on a node.
    fn waiting(&self, node: usize) -> impl Iterator<Item = usize> {
        let known = if node < self.known { self.state.tasks.dependents_at(node) } else { &[] };
        let stays = |other: &usize| self.former == Former::Kept || !self.updates.contains_key(other);
        let known = known.iter().copied().filter(stays);
        known.chain(self.proposed.get(&node).into_iter().flatten().copied())
    }

    /// The places of the candidates that lie on a circle, or between two.
    fn circling(&self) -> Vec<usize> {
        // Nobody can wait on what is new unless that is proposed too.
        if self.candidates.iter().all(|(node, _)| self.waiting(*node).next().is_none()) {
            return Vec::new();
        }
        let Reached { nodes, edges } = self.reached();
        let mut left = vec![false; self.nodes];
        nodes.iter().for_each(|node| left[*node] = true);
        peel(&nodes, &edges, &mut left);
        let reversed: Vec<(usize, usize)> = edges.iter().map(|(from, to)| (*to, *from)).collect();
        peel(&nodes, &reversed, &mut left);
        self.candidates.iter().filter(|(node, _)| left[*node]).map(|(_, place)| *place).collect()
    }

    /// The candidates and everybody who waits on one of them.
    fn reached(&self) -> Reached {
        let mut seen = vec![false; self.nodes];
        let mut todo: Vec<usize> = self.candidates.iter().map(|(node, _)| *node).collect();
        let mut reached = Reached::default();
        while let Some(node) = todo.pop() {
            if std::mem::replace(&mut seen[node], true) {
                continue;
            }
            reached.nodes.push(node);
            for next in self.waiting(node) {
                reached.edges.push((node, next));
                todo.push(next);
            }
        }
        reached
    }

    /// How one comes from what the candidate at this place would depend on back to it.
    fn way_back(&self, place: usize) -> Vec<TaskId> {
        let Some(&(start, _)) = self.candidates.iter().find(|(_, of)| *of == place) else {
            return Vec::new();
        };
        let mut came_from: HashMap<usize, usize> = HashMap::new();
        let mut todo = VecDeque::from([start]);
        while let Some(node) = todo.pop_front() {
            for next in self.waiting(node) {
                if next == start {
                    let back = |at: &usize| came_from.get(at).copied();
                    let way = std::iter::successors(Some(node), back).take_while(|at| *at != start);
                    return way.map(|at| self.id(at)).collect();
                }
                came_from.entry(next).or_insert_with(|| {
                    todo.push_back(next);
                    node
                });
            }
        }
        Vec::new()
    }
}

#[derive(Default)]
struct Reached {
    nodes: Vec<usize>,
    /// From a node to one that waits on it.
    edges: Vec<(usize, usize)>,
}

/// Takes away nodes that no edge leads to, until there are none: what is left lies on circles or behind them.
fn peel(nodes: &[usize], edges: &[(usize, usize)], left: &mut [bool]) {
    // The edges of a node in one piece: they end where those of the next begin.
    let mut ends = vec![0; left.len() + 1];
    let mut degrees = vec![0_u32; left.len()];
    let among = || edges.iter().copied().filter(|(from, to)| left[*from] && left[*to]);
    for (from, to) in among() {
        ends[from + 1] += 1;
        degrees[to] += 1;
    }
    for node in 0..left.len() {
        ends[node + 1] += ends[node];
    }
    let mut next = ends.clone();
    let mut targets = vec![0; ends[left.len()]];
    for (from, to) in among() {
        targets[next[from]] = to;
        next[from] += 1;
    }
    let mut bare: Vec<usize> =
        nodes.iter().copied().filter(|node| left[*node] && degrees[*node] == 0).collect();
    while let Some(node) = bare.pop() {
        left[node] = false;
        for &to in &targets[ends[node]..ends[node + 1]] {
            degrees[to] -= 1;
            if degrees[to] == 0 {
                bare.push(to);
            }
        }
    }
}

fn quoted(ids: &[TaskId]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}

fn are(ids: &[TaskId]) -> &'static str {
    if ids.len() == 1 { "is" } else { "are" }
}

fn by_way_of(ids: &[TaskId]) -> String {
    if ids.is_empty() { String::new() } else { format!(", through {}", quoted(ids)) }
}
