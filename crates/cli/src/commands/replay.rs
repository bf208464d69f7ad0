//! `wiggum replay`: shows a recorded run as it was, without agent, model or repository.

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use wiggum_core::checker;
use wiggum_core::decide::decide;
use wiggum_core::event::Envelope;
use wiggum_core::state::Loop;
use wiggum_engine::Observer;
use wiggum_engine::error::chain;
use wiggum_store::recording::{self, Entry, Line};

use crate::args::ReplayArgs;
use crate::failure::{FAILURE, Failure};
use crate::narrate::{JsonLines, Narrator};
use crate::record::told;
use crate::term;
use wiggum_engine::words::counted;

/// The longest that somebody at a terminal has to look at nothing, unless they say how fast.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

pub(crate) fn replay(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let reader = recording::read(&args.file).map_err(|error| {
        Failure::usage(chain(&error)).hint("`wiggum run --record FILE` makes a recording")
    })?;
    let header = reader.header.clone();
    let pace = pace(args);
    let mut player = Player::new(pace);
    let whole = if args.json {
        // What came before the recording belongs to the journal too.
        player.play(reader, &mut JsonLines::default(), Before::Shown)
    } else {
        player.play(reader, &mut Narrator::new(None), Before::Folded)
    };
    let recorded = format!("recorded {:.0} by wiggum {}", header.at, header.wiggum);
    if !whole {
        let events = counted(player.journal.len(), "event");
        term::note(&format!("warning: the recording is cut: it ends after {events}, within the run\n"));
    }
    if player.dropped > 0 {
        let bytes = player.dropped;
        term::note(&format!("warning: {bytes} bytes of output were not recorded: the disk was too slow\n"));
    }
    Ok(player.judge(&recorded))
}

fn pace(args: &ReplayArgs) -> Pace {
    let at_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    match args.speed {
        _ if args.json => Pace::AtOnce,
        _ if args.step => Pace::Step(lines_typed()),
        Some(speed) => Pace::Timed { speed, longest: None, skip: at_terminal.then(lines_typed) },
        None if at_terminal => {
            Pace::Timed { speed: 1.0, longest: Some(LONGEST_PAUSE), skip: Some(lines_typed()) }
        }
        None => Pace::AtOnce,
    }
}

/// A message for each line that is typed, until there are no more.
fn lines_typed() -> Receiver<()> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for _line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// How fast a recording is shown.
enum Pace {
    AtOnce,
    /// As it was, so much faster. A line that is typed ends a pause.
    Timed {
        speed: f64,
        longest: Option<Duration>,
        skip: Option<Receiver<()>>,
    },
    /// One event for each line that is typed.
    Step(Receiver<()>),
}

impl Pace {
    fn pause(&mut self, was: Duration) {
        let Self::Timed { speed, longest, skip } = self else { return };
        let pause = shortened(was, *speed, *longest);
        let (_nobody, silence) = channel();
        let typed = skip.as_ref().unwrap_or(&silence);
        if typed.recv_timeout(pause) == Err(std::sync::mpsc::RecvTimeoutError::Disconnected) {
            *skip = None;
        }
    }

    fn step(&mut self) {
        if let Self::Step(typed) = self
            && typed.recv().is_err()
        {
            // Nobody is there to go on; so it goes on by itself.
            *self = Self::AtOnce;
        }
    }
}

fn shortened(was: Duration, speed: f64, longest: Option<Duration>) -> Duration {
    let pause = Duration::try_from_secs_f64(was.as_secs_f64() / speed).unwrap_or(Duration::MAX);
    longest.map_or(pause, |longest| pause.min(longest))
}

/// What becomes of the journal from before the recording.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Shown,
    Folded,
}

struct Player {
    pace: Pace,
    shown_at: u64,
    state: Loop,
    journal: Vec<Envelope>,
    /// Events that were shown together, and are not complete yet.
    together: Vec<Envelope>,
    dropped: u64,
}

impl Player {
    fn new(pace: Pace) -> Self {
        Self {
            pace,
            shown_at: 0,
            state: Loop::default(),
            journal: Vec::new(),
            together: Vec::new(),
            dropped: 0,
        }
    }

    /// Shows everything; false if its end is missing.
    fn play(
        &mut self,
        lines: impl Iterator<Item = Line>,
        observer: &mut dyn Observer,
        before: Before,
    ) -> bool {
        let mut whole = false;
        for Line { ms, entry } in lines {
            match entry {
                Entry::Before { envelope } => {
                    self.together.push(*envelope);
                    match before {
                        Before::Shown => self.show_events(observer),
                        Before::Folded => drop(self.take_in()),
                    }
                }
                Entry::Event { envelope, upto } => {
                    let complete = envelope.seq >= upto;
                    self.together.push(*envelope);
                    if complete {
                        self.wait_until(ms);
                        self.show_events(observer);
                    }
                }
                Entry::Shown { event } => {
                    self.wait_until(ms);
                    observer.agent(&told(event));
                }
                Entry::CheckOutput { text } => {
                    self.wait_until(ms);
                    observer.check_output(&text);
                }
                Entry::Waiting { at } => {
                    if let Some(waiting) = decide(&self.state, at).waiting {
                        observer.waiting(&waiting, &self.state);
                    }
                }
                Entry::Dropped { bytes } => self.dropped += bytes,
                Entry::End { .. } => whole = true,
                Entry::Header(_)
                | Entry::Blob { .. }
                | Entry::AgentStarted { .. }
                | Entry::Output { .. }
                | Entry::AgentEnded { .. } => {}
            }
        }
        self.show_events(observer);
        whole
    }

    fn wait_until(&mut self, ms: u64) {
        self.pace.pause(Duration::from_millis(ms.saturating_sub(self.shown_at)));
        self.shown_at = ms;
    }

    /// As the engine does: all of them have happened before the first of them is shown.
    fn show_events(&mut self, observer: &mut dyn Observer) {
        for envelope in self.take_in() {
            self.pace.step();
            observer.event(&envelope, &self.state);
            observer.shown();
        }
    }

    fn take_in(&mut self) -> Vec<Envelope> {
        let together = std::mem::take(&mut self.together);
        together.iter().for_each(|envelope| self.state.apply(envelope));
        self.journal.extend(together.iter().cloned());
        together
    }

    /// Looks whether what happened may have.
    fn judge(&self, recorded: &str) -> ExitCode {
        let violations = checker::check(&self.journal);
        let events = counted(self.journal.len(), "event");
        if violations.is_empty() {
            term::note(&format!("{recorded}: {events} in order\n"));
            return ExitCode::SUCCESS;
        }
        for violation in &violations {
            term::note(&format!("broken: {violation}\n"));
        }
        let broken = counted(violations.len(), "broken rule");
        Failure { message: format!("{recorded}: {broken} in {events}"), hint: None, code: FAILURE }
            .hint("this is our bug: please report it with the recording")
            .report()
    }
}

#[cfg(test)]
mod tests {
    use wiggum_agents::AgentEvent;
    use wiggum_core::decide::Waiting;
    use wiggum_core::event::Event;

    use super::*;

    #[test]
    fn pauses_are_as_long_as_they_were_divided_by_the_speed() {
        let was = Duration::from_secs(60);
        assert_eq!(shortened(was, 1.0, None), was);
        assert_eq!(shortened(was, 30.0, None), Duration::from_secs(2));
        assert_eq!(shortened(was, 0.5, None), Duration::from_secs(120));
        assert_eq!(shortened(was, 1.0, Some(LONGEST_PAUSE)), LONGEST_PAUSE);
        assert_eq!(shortened(Duration::from_millis(5), 1.0, Some(LONGEST_PAUSE)), Duration::from_millis(5));
    }

    /// Notes how far the journal was at each event.
    #[derive(Default)]
    struct Seen(Vec<(u64, u64)>);

    impl Observer for Seen {
        fn event(&mut self, envelope: &Envelope, state: &Loop) {
            self.0.push((envelope.seq, state.seq));
        }

        fn agent(&mut self, _event: &AgentEvent) {}

        fn check_output(&mut self, _text: &str) {}

        fn waiting(&mut self, _waiting: &Waiting, _state: &Loop) {}
    }

    #[test]
    fn what_was_shown_together_is_shown_together() {
        let event = |seq, upto| {
            let event = Event::Noticed { task: None, message: String::new() };
            let (id, at) = (uuid::Uuid::nil(), jiff::Timestamp::UNIX_EPOCH);
            let envelope = Box::new(Envelope { v: 1, seq, id, at, epoch: 1, event });
            Line { ms: seq, entry: Entry::Event { envelope, upto } }
        };
        let mut seen = Seen::default();
        let lines = [event(1, 1), event(2, 3), event(3, 3), event(4, 5)];
        let whole = Player::new(Pace::AtOnce).play(lines.into_iter(), &mut seen, Before::Folded);
        assert_eq!(seen.0, [(1, 1), (2, 3), (3, 3), (4, 4)], "the last of them was cut off");
        assert!(!whole);
    }

    #[test]
    fn a_step_is_a_line_until_there_are_no_more() {
        let (sender, receiver) = channel();
        let mut pace = Pace::Step(receiver);
        for _ in 0..2 {
            sender.send(()).unwrap();
            pace.step();
        }
        let Pace::Step(typed) = &pace else { panic!("there may be more") };
        assert!(typed.try_recv().is_err(), "both lines were used");
        drop(sender);
        pace.step();
        assert!(matches!(pace, Pace::AtOnce));
    }
}
