//! The gate for new and changed tasks, with 100 000 of them.

use std::hint::black_box;
use std::time::Duration;

use wiggum_core::admit;
use wiggum_core::admit::{Change, Proposal, Proposer};
use wiggum_core::event::Event;
use wiggum_core::ids::TaskId;
use wiggum_core::policy::Policy;
use wiggum_core::state::Loop;
use wiggum_core::task::Task;

use crate::journal::Writer;
use crate::table::Table;
use crate::{Outcome, busy, median};

const TASKS: usize = 100_000;
/// How many of the last additions are looked at.
const LAST: usize = 1_000;
/// A change is slower than an addition, so fewer of them tell as much.
const CHANGES: usize = 20;

pub(crate) fn measure(table: &mut Table) -> Outcome<()> {
    let mut policy = Policy::default();
    policy.limits.max_tasks = u32::MAX;
    let mut state = Loop { policy, ..Loop::default() };
    let mut writer = Writer::new();
    let mut spent = Vec::with_capacity(TASKS);
    for number in 0..TASKS {
        let task = task(number);
        let start = busy()?;
        admitted(&state, Change::Add(task.clone()))?;
        state.apply(&writer.envelope(Event::BacklogRead {
            revision: String::new(),
            added: vec![task],
            changed: Vec::new(),
            removed: Vec::new(),
            order: None,
        }));
        spent.push(busy()? - start);
    }
    let millis =
        |spent: &[Duration]| spent.iter().map(|spent| spent.as_secs_f64() * 1e3).collect::<Vec<f64>>();
    let last = millis(&spent[TASKS - LAST..]);
    let slowest = last.iter().copied().fold(0.0, f64::max);
    table.limited(
        "admitting one more of 100 000 tasks and taking it in, the slowest of 1 000",
        slowest,
        "ms",
        5.0,
    );
    let quarter =
        |part: usize| spent[part * TASKS / 4..(part + 1) * TASKS / 4].iter().sum::<Duration>().as_secs_f64();
    // Tables that double now and then make it uneven; work that grew with the tasks would make it seven.
    table.limited(
        "the last quarter of 100 000 additions against the second",
        quarter(3) / quarter(1),
        "×",
        3.0,
    );
    // The first of a chain, on which all others wait: the longest way round there is.
    let mut changes = Vec::new();
    for number in 0..CHANGES {
        let mut first = task(0);
        first.description = format!("said otherwise: {number}");
        let start = busy()?;
        admitted(&state, Change::Update(first))?;
        changes.push(busy()? - start);
    }
    table.limited("admitting a change that 100 000 tasks wait on", median(millis(&changes)), "ms", 5.0);
    Ok(())
}

/// Each waits on the one before it.
fn task(number: usize) -> Task {
    let mut task = Task::new(
        TaskId::new(format!("task-{number}")),
        format!("Task number {number} does something useful"),
    );
    task.depends_on =
        number.checked_sub(1).map(|before| TaskId::new(format!("task-{before}"))).into_iter().collect();
    task
}

fn admitted(state: &Loop, change: Change) -> Outcome<()> {
    let proposal = Proposal { by: Proposer::Agent, changes: vec![change] };
    let admission = black_box(admit(state, &proposal));
    admission.whole().map_err(|refused| refused.to_string().into())
}
