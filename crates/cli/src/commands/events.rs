//! `wiggum events`: the journal, as it is or as it grows.

use std::process::ExitCode;
use std::time::Duration;

use wiggum_core::event::{Envelope, Event};
use wiggum_core::ids::{LoopId, Seq};
use wiggum_core::redact;

use crate::args::EventsArgs;
use crate::commands::loops::{self, Lease, Loops};
use crate::failure::Failure;
use crate::term::{self, Reader, Style};
use wiggum_engine::desk::watch::{Happened, Watch};
use wiggum_engine::words::describe;

/// Bytes collected before they are written: fewer system calls for a long journal.
const CHUNK: usize = 64 * 1024;

/// How often it is looked for a first event that nobody told us of: its store may be anywhere.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(crate) fn events(args: &EventsArgs) -> Result<ExitCode, Failure> {
    let json = args.of.output.json;
    let begun = if args.follow { first_event()? } else { loops::open()? };
    let Some(loops) = begun else {
        // No lines of JSON are fine; a line of text among them would not be.
        return if json || args.follow { Ok(ExitCode::SUCCESS) } else { super::no_loops(false) };
    };
    let record = loops.select(args.of.which.as_deref())?;
    let mut printer = Printer { json, style: Style::for_stdout(), last: args.after, ended: false };
    if args.follow {
        follow(&loops, record.id, &mut printer)?;
    } else {
        printer.print_new(&loops, record.id)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until a loop has begun here: it may have been started a moment ago. Nothing if our reader goes away before.
fn first_event() -> Result<Option<Loops>, Failure> {
    let checkout = loops::checkout()?;
    let mut is_told = false;
    loop {
        // Watching starts first, so that nothing is missed.
        let watch = Watch::before_first(&checkout);
        if let Some(loops) = Loops::of(&checkout)?
            && has_events(&loops)?
        {
            return Ok(Some(loops));
        }
        if !std::mem::replace(&mut is_told, true) {
            term::note("no loop has run here yet: waiting for its first event\n");
        }
        watch.tell_end_of_reader();
        match watch.wait(Some(LOOK_AGAIN)) {
            Happened::Changed | Happened::Nothing => {}
            Happened::ReaderGone => return Ok(None),
        }
    }
}

fn has_events(loops: &Loops) -> Result<bool, Failure> {
    for record in loops.all()? {
        if loops.store.last_seq(record.id)? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn follow(loops: &Loops, id: LoopId, printer: &mut Printer) -> Result<(), Failure> {
    let mut watch = Watch::new(&loops.dir, id);
    watch.tell_end_of_reader();
    let engine = loops.lease(id)?;
    if let Some(holder) = engine.alive() {
        watch.tell_end_of(holder.pid);
    }
    // What ended before we came is history: the engine that lives now is followed.
    let mut reader = printer.print_new(loops, id)?;
    printer.ended = false;
    loop {
        if reader == Reader::Gone || printer.ended {
            return Ok(());
        }
        match loops.lease(id)? {
            Lease::Alive(_) => {}
            // Its last words may have come after we last looked.
            Lease::Dead(_) | Lease::None => return printer.print_new(loops, id).map(drop),
        }
        match watch.wait(None) {
            Happened::Changed | Happened::Nothing => reader = printer.print_new(loops, id)?,
            Happened::ReaderGone => return Ok(()),
        }
    }
}

struct Printer {
    json: bool,
    style: Style,
    last: Seq,
    /// The run ended with the events printed last.
    ended: bool,
}

impl Printer {
    /// Prints what came since, and says whether somebody still reads it.
    fn print_new(&mut self, loops: &Loops, id: LoopId) -> Result<Reader, Failure> {
        let (mut out, mut reader) = (String::new(), Reader::There);
        loops.store.for_each(id, self.last, |envelope| {
            self.last = envelope.seq;
            self.ended = matches!(envelope.event, Event::RunEnded { .. });
            if reader == Reader::Gone {
                return;
            }
            self.add(&mut out, &envelope);
            if out.len() >= CHUNK {
                reader = term::print_to_reader(&out);
                out.clear();
            }
        })?;
        if reader == Reader::There && !out.is_empty() {
            reader = term::print_to_reader(&out);
        }
        Ok(reader)
    }

    fn add(&self, out: &mut String, envelope: &Envelope) {
        if self.json {
            out.push_str(&redact::json(&envelope.to_json().unwrap_or_default()));
        } else {
            let at = self.style.dim(&format!("{:.0}", envelope.at));
            out.push_str(&format!("{:>6}  {at}  {}", envelope.seq, describe(&envelope.event)));
        }
        out.push('\n');
    }
}
