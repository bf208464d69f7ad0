//! Judges a backlog as a whole: ids used twice, dependencies on nothing, cycles.
//!
//! Everything here is iterative: a chain of a hundred thousand tasks must not exhaust the stack.

use std::collections::{HashMap, HashSet};

use wiggum_core::ids::TaskId;
use wiggum_core::task::{FileStatus, Task};

use crate::json::quote;
use crate::problem::Findings;
use crate::slug::slug;
use crate::{Parsed, Place};

/// A file with more cycles than this needs to be looked at as a whole anyway.
const MAX_CYCLES: usize = 100;
/// Members of a cycle that are named before the rest is counted.
const MAX_NAMED: usize = 20;

/// Ids that are named where one is not in the file, and tasks that are looked at for them.
const MAX_NEAR: usize = 3;
const MAX_COMPARED: usize = 1000;

/// Where each id is among the tasks; the first wins where one is used twice, which is reported.
pub(crate) fn index(parsed: &Parsed, findings: &mut Findings) -> HashMap<TaskId, usize> {
    let mut by_id = HashMap::with_capacity(parsed.tasks.len());
    for (position, task) in parsed.tasks.iter().enumerate() {
        let first = *by_id.entry(task.id.clone()).or_insert(position);
        if first != position {
            let message = format!("duplicate id `{}`; expected every id once", task.id);
            findings.add(parsed.places[position].id_at, message);
        }
    }
    by_id
}

/// Reports unknown dependencies and cycles.
pub(crate) fn check(text: &str, parsed: &Parsed, by_id: &HashMap<TaskId, usize>, findings: &mut Findings) {
    let mut edges = Edges::default();
    for (task, place) in parsed.tasks.iter().zip(&parsed.places) {
        for dependency in &task.depends_on {
            match by_id.get(dependency) {
                // What is done waits on nothing any more.
                Some(_) if task.status == FileStatus::Done => {}
                Some(&position) => edges.targets.push(position),
                None => {
                    let message = format!(
                        "`{}` depends on `{dependency}`, which is not in the file; expected the id of a task{}",
                        task.id,
                        nearest(dependency.as_str(), &parsed.tasks)
                    );
                    findings.add(mention(text, place, dependency), message);
                }
            }
        }
        edges.ends.push(edges.targets.len());
    }
    for cycle in cycles(&edges) {
        let message = format!("dependency cycle {}; expected none", name_cycle(&cycle, &parsed.tasks));
        findings.add(parsed.places[cycle[0]].id_at, message);
    }
}

/// What a finished task waited on and is no more changes nothing.
pub(crate) fn forget_finished(parsed: &mut Parsed) {
    if parsed.tasks.iter().all(|task| task.status != FileStatus::Done || task.depends_on.is_empty()) {
        return;
    }
    let ids: HashSet<TaskId> = parsed.tasks.iter().map(|task| task.id.clone()).collect();
    let done = parsed.tasks.iter_mut().filter(|task| task.status == FileStatus::Done);
    done.for_each(|task| task.depends_on.retain(|id| ids.contains(id)));
}

/// The ids that may be meant, if any come near.
fn nearest(name: &str, tasks: &[Task]) -> String {
    let wanted = slug(name);
    let near = |task: &&Task| {
        let id = slug(task.id.as_str());
        let is_part = id.split('-').next() == Some(&wanted) || wanted.split('-').next() == Some(&id);
        is_part || differ_little(&id, &wanted)
    };
    let ids: Vec<String> = tasks
        .iter()
        .take(MAX_COMPARED)
        .filter(near)
        .take(MAX_NEAR)
        .map(|task| format!("`{}`", task.id))
        .collect();
    if ids.is_empty() { String::new() } else { format!(", perhaps {}", ids.join(", ")) }
}

/// Is one the other but for a letter that was added, lost, changed or swapped with its neighbour? Another number is
/// another task.
fn differ_little(one: &str, other: &str) -> bool {
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    if digits(one) != digits(other) {
        return false;
    }
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // In short ids a letter is most of what tells them apart.
    if one.len().min(other.len()) < 4 || one.len().abs_diff(other.len()) > 1 {
        return false;
    }
    let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same..], &other[same..]);
    let behind = |text: &[char], count: usize| text.get(count..).map(<[char]>::to_vec);
    let is_swapped = one.len() >= 2 && other.len() >= 2 && one[0] == other[1] && one[1] == other[0];
    behind(one, 1) == behind(other, 1)
        || behind(one, 1).as_deref() == Some(other)
        || behind(other, 1).as_deref() == Some(one)
        || is_swapped && one[2..] == other[2..]
}

/// Where a task's text names a dependency; its id where the name is spelled differently there.
fn mention(text: &str, place: &Place, dependency: &TaskId) -> usize {
    let own = &text[place.span.clone()];
    let found = own.rfind(&quote(dependency.as_str())).or_else(|| own.rfind(dependency.as_str()));
    found.map_or(place.id_at, |at| place.span.start + at)
}

fn name_cycle(cycle: &[usize], tasks: &[Task]) -> String {
    let name = |position: &usize| tasks[*position].id.to_string();
    let mut names: Vec<String> = cycle.iter().take(MAX_NAMED).map(name).collect();
    if cycle.len() > MAX_NAMED {
        names.push(format!("… {} more …", cycle.len() - MAX_NAMED));
    }
    names.push(name(&cycle[0]));
    names.join(" → ")
}

/// The edges of all nodes in one piece: those of a node end at its entry in `ends`.
#[derive(Default)]
struct Edges {
    targets: Vec<usize>,
    ends: Vec<usize>,
}

impl Edges {
    fn len(&self) -> usize {
        self.ends.len()
    }

    /// The `n`th edge of a node.
    fn get(&self, node: usize, n: usize) -> Option<usize> {
        let start = node.checked_sub(1).map_or(0, |before| self.ends[before]);
        (start + n < self.ends[node]).then(|| self.targets[start + n])
    }
}

/// One cycle for each edge that leads back, each starting with its earliest member. Taking those
/// edges away would leave no cycle, so whoever mends all of them is done.
fn cycles(edges: &Edges) -> Vec<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        OnPath,
        Done,
    }
    let mut seen = vec![Seen::No; edges.len()];
    let mut found = Vec::new();
    for root in 0..edges.len() {
        if seen[root] != Seen::No {
            continue;
        }
        // Each member of the path with the number of its edges already followed.
        let mut path = vec![(root, 0)];
        seen[root] = Seen::OnPath;
        while let Some((node, followed)) = path.last_mut() {
            let Some(target) = edges.get(*node, *followed) else {
                seen[*node] = Seen::Done;
                path.pop();
                continue;
            };
            *followed += 1;
            match seen[target] {
                Seen::No => {
                    seen[target] = Seen::OnPath;
                    path.push((target, 0));
                }
                Seen::OnPath => found.push(cycle_from(&path, target)),
                Seen::Done => {}
            }
            if found.len() == MAX_CYCLES {
                return found;
            }
        }
    }
    found
}

fn cycle_from(path: &[(usize, usize)], target: usize) -> Vec<usize> {
    let start = path.iter().rposition(|(node, _)| *node == target).unwrap_or(0);
    let mut cycle: Vec<usize> = path[start..].iter().map(|(node, _)| *node).collect();
    let earliest =
        cycle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(position, _)| position);
    cycle.rotate_left(earliest);
    cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(of: &[&[usize]]) -> Edges {
        let mut edges = Edges::default();
        for targets in of {
            edges.targets.extend(*targets);
            edges.ends.push(edges.targets.len());
        }
        edges
    }

    fn check(of: &[&[usize]], expected: &[&[usize]]) {
        assert_eq!(cycles(&edges(of)), expected);
    }

    #[test]
    fn finds_each_cycle_once() {
        check(&[&[], &[0], &[0, 1]], &[]);
        check(&[&[0]], &[&[0]]);
        check(&[&[1], &[2], &[0]], &[&[0, 1, 2]]);
        check(&[&[1], &[0], &[3], &[2]], &[&[0, 1], &[2, 3]]);
        check(&[&[1], &[2], &[1]], &[&[1, 2]]);
        check(&[&[2], &[2], &[1]], &[&[1, 2]]);
        check(&[&[1], &[0, 2], &[0]], &[&[0, 1], &[0, 1, 2]]);
    }

    #[test]
    fn long_chains_need_no_stack() {
        let mut chain = Edges { targets: (1..200_000).collect(), ends: (1..200_000).collect() };
        chain.ends.push(199_999);
        assert!(cycles(&chain).is_empty());
        chain.targets.push(0);
        chain.ends[199_999] = 200_000;
        assert_eq!(cycles(&chain).len(), 1);
    }
}
