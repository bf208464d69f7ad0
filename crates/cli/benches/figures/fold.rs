//! The pure part: folding a long journal, loading a large backlog, picking the next task.

use std::hint::black_box;
use std::time::{Duration, Instant};

use uuid::Uuid;
use wiggum_backlog::Backlog;
use wiggum_core::decide::{Action, decide};
use wiggum_core::event::Event;
use wiggum_core::ids::LoopId;
use wiggum_core::state::Loop;

use crate::journal::{PER_TASK, Writer};
use crate::table::Table;
use crate::{Outcome, busy, median};

const EVENTS: usize = 1_000_000;
/// Events in memory at a time; making them is not measured.
const CHUNK: usize = 1_000;
const TASKS: usize = 100_000;
const PICKS: usize = 1_000;

pub(crate) fn fold(table: &mut Table) -> Outcome<()> {
    let tasks = EVENTS / PER_TASK;
    let (mut writer, mut state) = (Writer::new(), Loop::default());
    let mut spent = Duration::ZERO;
    let mut chunk = writer.opening(LoopId(Uuid::nil()), "/repository", tasks);
    for number in 0..tasks {
        chunk.extend(writer.task(number));
        if chunk.len() >= CHUNK || number + 1 == tasks {
            let start = busy()?;
            for envelope in &chunk {
                state.apply(envelope);
            }
            spent += busy()? - start;
            chunk.clear();
        }
    }
    if state.tasks.counts().done != tasks {
        return Err(format!("{:?} after {} events", state.tasks.counts(), state.seq).into());
    }
    let million = spent.as_secs_f64() * 1e6 / state.seq as f64;
    table.limited("fold of 1 000 000 decoded events", million, "s", 1.0);
    Ok(())
}

pub(crate) fn schedule(table: &mut Table) -> Outcome<()> {
    let text = tasks_json();
    let mut loads = Vec::new();
    let mut state = Loop::default();
    let mut writer = Writer::new();
    for _ in 0..5 {
        let copy = text.clone();
        (writer, state) = (Writer::new(), Loop::default());
        let mut opening = writer.opening(LoopId(Uuid::nil()), "/repository", 0);
        let Event::RunStarted { policy, .. } = &mut opening[1].event else { return Err("no run".into()) };
        policy.selection = wiggum_core::task::Selection::Score;
        policy.limits.iterations = None;
        opening.truncate(2);
        let start = busy()?;
        let backlog = Backlog::parse("tasks.json", copy).map_err(|problems| problems.to_string())?;
        opening.push(writer.envelope(Event::BacklogRead {
            revision: wiggum_engine::backlog_file::revision(backlog.text()),
            added: backlog.tasks().to_vec(),
            changed: Vec::new(),
            removed: Vec::new(),
            order: None,
        }));
        for envelope in &opening {
            state.apply(envelope);
        }
        loads.push((busy()? - start).as_secs_f64());
    }
    table.limited("100 000 tasks, from text to a plan that can be asked", median(loads), "s", 0.9);
    table.limited("picking the next of 100 000 tasks", picks(&mut state, &mut writer)?, "ms", 1.0);
    Ok(())
}

/// Completes tasks one after the other; the median time from an event to the next choice.
fn picks(state: &mut Loop, writer: &mut Writer) -> Outcome<f64> {
    let mut spent = Vec::new();
    for iteration in 1..=u32::try_from(PICKS)? {
        let now = writer.envelope(Event::Noticed { task: None, message: String::new() }).at;
        let start = Instant::now();
        let plan = black_box(decide(state, now));
        let picked = start.elapsed();
        let task = match plan.actions.first() {
            Some(Action::StartIteration { task, .. }) => task.clone(),
            other => return Err(format!("expected a start, not {other:?}").into()),
        };
        let event = Event::StatusSet {
            task,
            status: wiggum_core::task::FileStatus::Done,
            by: format!("bench {iteration}"),
        };
        let envelope = writer.envelope(event);
        let start = Instant::now();
        state.apply(&envelope);
        // The file would now be written; here it is enough that nothing is due.
        state.status_due.clear();
        spent.push((picked + start.elapsed()).as_secs_f64() * 1e3);
    }
    Ok(median(spent))
}

fn tasks_json() -> String {
    let task = |n: usize| {
        // Most of them are ready at once, which is what makes choosing hard.
        let depends_on =
            if n % 10 == 9 { format!("\"task-{}\", \"task-{}\"", n - 1, n / 2) } else { String::new() };
        format!(
            "  {{\n    \"id\": \"task-{n}\",\n    \"description\": \"Task number {n} does something useful and \
             says so\",\n    \"status\": \"pending\",\n    \"phase\": 1,\n    \"priority\": {n},\n    \
             \"depends_on\": [{depends_on}]\n  }}"
        )
    };
    format!("[\n{}\n]\n", (0..TASKS).map(task).collect::<Vec<_>>().join(",\n"))
}
