//! How soon the program answers: its version, a hook that an agent waits for, and the status of a
//! long journal.

use std::process::{Command, Stdio};
use std::time::Instant;

use wiggum_store::Store;

use crate::place::{Place, WIGGUM};
use crate::table::Table;
use crate::{Outcome, journal, median};

const STARTS: usize = 300;
const EVENTS: usize = 100_000;

pub(crate) fn version(table: &mut Table) -> Outcome<()> {
    let place = Place::new()?;
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        floor.push(millis_of(&mut place.command("/bin/true"))?);
        ours.push(millis_of(place.command(WIGGUM).arg("--version"))?);
    }
    let (floor, ours) = (median(floor), median(ours));
    table.limited("`wiggum --version`, against `/bin/true`", ours / floor, "×", 3.0);
    Ok(())
}

/// A session that is sent back: state found, transcript and repository looked at, state written.
pub(crate) fn hook(table: &mut Table) -> Outcome<()> {
    let place = Place::with_backlog(3)?;
    let start = "session start --session s --prompt task --max-iterations 0 --no-progress 0";
    let status = place.command(WIGGUM).args(start.split(' ')).stdout(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("wiggum {start}: {status}").into());
    }
    let question = place.root().join(".git/question.json");
    let message = "Not yet. ".repeat(50);
    let text =
        format!(r#"{{"session_id":"s","cwd":{:?},"last_assistant_message":"{message}"}}"#, place.root());
    std::fs::write(&question, text)?;
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        floor.push(millis_of(&mut place.command("/bin/true"))?);
        let asked = std::fs::File::open(&question)?;
        ours.push(millis_of(place.command(WIGGUM).args(["hook", "stop"]).stdin(asked))?);
    }
    let (floor, ours) = (median(floor), median(ours));
    table.limited("`wiggum hook stop`, against `/bin/true`", ours / floor, "×", 3.0);
    Ok(())
}

pub(crate) fn status(table: &mut Table) -> Outcome<()> {
    let place = Place::with_backlog(3)?;
    let (store, loop_id) = journal::store(&place.checkout(), EVENTS)?;
    let path = store.path().to_owned();
    drop(store);
    let mut opened = Vec::new();
    for _ in 0..21 {
        let start = Instant::now();
        let store = Store::open_existing(&path)?.ok_or("no store")?;
        store.projection(loop_id)?.ok_or("no status")?;
        opened.push(start.elapsed().as_secs_f64() * 1e3);
    }
    table.told("opening a journal of 100 000 events and reading its status", median(opened), "ms");
    let mut ours = Vec::new();
    for _ in 0..41 {
        match millis_of(place.command(WIGGUM).arg("status")) {
            Ok(millis) => ours.push(millis),
            Err(error) => {
                println!("not measured: {error}");
                return Ok(());
            }
        }
    }
    table.limited("`wiggum status` on a journal of 100 000 events", median(ours), "ms", 30.0);
    Ok(())
}

fn millis_of(command: &mut Command) -> Outcome<f64> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status()?;
    let took = start.elapsed().as_secs_f64() * 1e3;
    if status.success() { Ok(took) } else { Err(format!("{command:?}: {status}").into()) }
}
