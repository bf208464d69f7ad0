//! Who waits on whom, as a picture of rows: a task each, in an order in which they can be done, and lines from
//! what has to be done first to what waits on it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use wiggum_core::ids::TaskId;
use wiggum_core::state::Loop;

/// Lines beside each other; a task whose line has no room is named where it is waited on.
const MOST_LANES: usize = 16;

/// Steps to the right before a chain goes straight down.
const MOST_STEPS: usize = 8;

/// One task of the picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) task: TaskId,
    /// What is drawn in each lane.
    pub(crate) lanes: Vec<Lane>,
    /// What it waits on without a line.
    pub(crate) unlinked: Vec<TaskId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Empty,
    /// A line goes by, or another crosses it.
    Through,
    Crossed,
    /// A line passes from side to side.
    Dash,
    /// A line goes on and one branches off, to the right or to the left.
    BranchRight,
    BranchLeft,
    /// A line ends here and leads to the right or to the left.
    EndRight,
    EndLeft,
    /// The same where another one comes along from further away.
    BranchAlong,
    EndAlong,
    /// The task itself, and whether a line leaves it to the right.
    Task {
        right: bool,
    },
}

impl Lane {
    /// As two columns; the task's own mark is put in by whoever knows it.
    pub(crate) fn cells(self) -> (char, char) {
        match self {
            Self::Empty => (' ', ' '),
            Self::Through => ('│', ' '),
            Self::Crossed => ('│', '─'),
            Self::Dash => ('─', '─'),
            Self::BranchRight => ('├', '─'),
            Self::BranchLeft => ('┤', ' '),
            Self::EndRight => ('╰', '─'),
            Self::EndLeft => ('╯', ' '),
            Self::BranchAlong => ('┼', '─'),
            Self::EndAlong => ('┴', '─'),
            Self::Task { right: true } => ('●', '─'),
            Self::Task { right: false } => ('●', ' '),
        }
    }
}

/// The tasks and their lines.
pub(crate) fn picture(state: &Loop) -> Vec<Node> {
    let ids: Vec<TaskId> = state.tasks.iter().map(|entry| entry.spec.id.clone()).collect();
    let places: HashMap<&str, usize> =
        ids.iter().enumerate().map(|(place, id)| (id.as_str(), place)).collect();
    let after: Vec<Vec<usize>> = state
        .tasks
        .iter()
        .map(|entry| {
            let mut after: Vec<usize> =
                entry.spec.depends_on.iter().filter_map(|id| places.get(id.as_str()).copied()).collect();
            after.sort_unstable();
            after.dedup();
            after
        })
        .collect();
    let mut waiting = vec![0; ids.len()];
    after.iter().flatten().for_each(|place| waiting[*place] += 1);
    let mut lanes = Lanes { running: Vec::new() };
    in_order(&after)
        .into_iter()
        .map(|place| {
            let (lanes, unlinked) = lanes.draw(place, &after[place], waiting[place]);
            let unlinked = unlinked.into_iter().map(|place: usize| ids[place].clone()).collect();
            Node { task: ids[place].clone(), lanes, unlinked }
        })
        .collect()
}

/// Tasks after all that they wait on, otherwise as in the file.
fn in_order(after: &[Vec<usize>]) -> Vec<usize> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); after.len()];
    let mut open: Vec<usize> = after.iter().map(Vec::len).collect();
    for (place, after) in after.iter().enumerate() {
        after.iter().for_each(|earlier| before[*earlier].push(place));
    }
    let ready = (0..after.len()).filter(|place| open[*place] == 0).map(Reverse);
    let mut ready: BinaryHeap<Reverse<usize>> = ready.collect();
    let mut order = Vec::with_capacity(after.len());
    let mut placed = vec![false; after.len()];
    while let Some(Reverse(place)) = ready.pop() {
        order.push(place);
        placed[place] = true;
        for later in &before[place] {
            open[*later] -= 1;
            if open[*later] == 0 {
                ready.push(Reverse(*later));
            }
        }
    }
    // Those that wait on each other in a circle, which no backlog should have.
    order.extend((0..after.len()).filter(|place| !placed[*place]));
    order
}

struct Lanes {
    /// Whose line is in a lane, and how many wait for it.
    running: Vec<Option<(usize, usize)>>,
}

impl Lanes {
    fn draw(&mut self, task: usize, after: &[usize], waiting: usize) -> (Vec<Lane>, Vec<usize>) {
        let before: Vec<Option<(usize, usize)>> = self.running.clone();
        let mut joined: Vec<usize> = Vec::new();
        for (lane, line) in self.running.iter_mut().enumerate() {
            if let Some((source, left)) = line
                && after.binary_search(source).is_ok()
            {
                joined.push(lane);
                *left -= 1;
                if *left == 0 {
                    *line = None;
                }
            }
        }
        let linked: Vec<usize> =
            joined.iter().filter_map(|lane| before[*lane]).map(|(source, _)| source).collect();
        let unlinked = after.iter().copied().filter(|source| !linked.contains(source)).collect();
        let own = self.place(&before, &joined);
        if waiting > 0 && own < MOST_LANES {
            if self.running.len() <= own {
                self.running.resize(own + 1, None);
            }
            self.running[own] = Some((task, waiting));
        }
        (row(&before, &self.running, &joined, own), unlinked)
    }

    /// A step to the right of what it waits on, in the first lane that is free. A long chain stays where it is
    /// instead: the line that ends there goes on in the task.
    fn place(&self, before: &[Option<(usize, usize)>], joined: &[usize]) -> usize {
        let least = joined.last().map_or(0, |last| last + 1);
        let ends = joined.iter().find(|lane| self.running[**lane].is_none());
        if let Some(ends) = ends.filter(|_| least >= MOST_STEPS) {
            return *ends;
        }
        let free = (least..before.len()).find(|lane| before[*lane].is_none());
        free.unwrap_or_else(|| before.len().max(least))
    }
}

fn row(
    before: &[Option<(usize, usize)>],
    now: &[Option<(usize, usize)>],
    joined: &[usize],
    own: usize,
) -> Vec<Lane> {
    let first = joined.first().map_or(own, |first| own.min(*first));
    let last = joined.last().map_or(own, |last| own.max(*last));
    let used = before.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    (0..used.max(last + 1))
        .map(|lane| {
            let goes_on = now.get(lane).is_some_and(Option::is_some);
            let was = before.get(lane).is_some_and(Option::is_some);
            let inside = first < lane && lane < last;
            if lane == own {
                return Lane::Task { right: last > own };
            }
            match (joined.contains(&lane), lane < own) {
                (true, _) if inside && goes_on => Lane::BranchAlong,
                (true, _) if inside => Lane::EndAlong,
                (true, true) if goes_on => Lane::BranchRight,
                (true, true) => Lane::EndRight,
                (true, false) if goes_on => Lane::BranchLeft,
                (true, false) => Lane::EndLeft,
                (false, _) if was && inside => Lane::Crossed,
                (false, _) if was => Lane::Through,
                (false, _) if inside => Lane::Dash,
                (false, _) => Lane::Empty,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The picture of tasks 0, 1 … that wait on these.
    fn drawn(after: &[&[usize]]) -> Vec<String> {
        let after: Vec<Vec<usize>> = after.iter().map(|after| after.to_vec()).collect();
        let mut waiting = vec![0; after.len()];
        after.iter().flatten().for_each(|place| waiting[*place] += 1);
        let mut lanes = Lanes { running: Vec::new() };
        in_order(&after)
            .into_iter()
            .map(|place| {
                let (row, _) = lanes.draw(place, &after[place], waiting[place]);
                let cells = row.iter().flat_map(|lane| <[char; 2]>::from(lane.cells()));
                format!("{}{place}", cells.collect::<String>())
            })
            .collect()
    }

    #[test]
    fn lines_lead_from_what_comes_first_to_what_waits() {
        assert_eq!(drawn(&[&[], &[0], &[1], &[]]), ["● 0", "╰─● 1", "  ╰─● 2", "● 3"]);
        assert_eq!(
            drawn(&[&[], &[0], &[0], &[0], &[1, 2]]),
            ["● 0", "├─● 1", "├─│─● 2", "╰─│─│─● 3", "  ╰─┴─● 4"],
        );
        assert_eq!(drawn(&[&[1], &[]]), ["● 1", "╰─● 0"], "in an order in which they can be done");
        let chain: Vec<Vec<usize>> =
            (0..40_usize).map(|place| place.checked_sub(1).into_iter().collect()).collect();
        let chain: Vec<&[usize]> = chain.iter().map(Vec::as_slice).collect();
        assert!(
            drawn(&chain)[39].ends_with("● 39") && drawn(&chain)[39].chars().count() < 24,
            "{:#?}",
            drawn(&chain)
        );
        assert_eq!(drawn(&[&[1], &[0]]).len(), 2, "a circle is drawn all the same");
    }

    #[test]
    fn however_many_lines_there_are_the_picture_stays_narrow() {
        let mut after: Vec<Vec<usize>> = (0..100).map(|_| Vec::new()).collect();
        after.extend((0..100).map(|place| vec![place]));
        let after: Vec<&[usize]> = after.iter().map(Vec::as_slice).collect();
        let rows = drawn(&after);
        assert!(rows.iter().all(|row| row.chars().count() <= 2 * MOST_LANES + 5), "{rows:#?}");
    }
}
