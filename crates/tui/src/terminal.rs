//! The terminal itself: taken and given back whatever happens, keys in, frames out. A frame is drawn when
//! something changed, and once a second while an agent is at work.

use std::io::{self, Stdout, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::Show;
use ratatui_crossterm::crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event, read,
};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use crate::app::{App, Effect, Message};
use crate::desk::{Clerk, Errand};
use crate::view::draw;
use crate::view::theme::Theme;
use crate::{Left, Setup, TuiError};

/// Between two frames that nobody pressed a key for.
const FRAME: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);
/// Messages that may wait; whoever reads the loop waits with more.
const WAITING: usize = 64;

type Screen = Terminal<CrosstermBackend<Stdout>>;

/// Shows the interface until somebody leaves it, or the terminal is gone.
pub(crate) fn run(setup: Setup) -> Result<Left, TuiError> {
    let (sender, messages) = sync_channel(WAITING);
    let (errands, for_clerk) = channel();
    hear_signals(&sender)?;
    let clerk = Clerk {
        home: setup.checkout.clone(),
        registry: setup.registry,
        by: setup.by,
        sender: sender.clone(),
        at: None,
    };
    let worker = std::thread::spawn(move || clerk.work(&for_clerk));
    let attached = setup.target.as_ref().map(|(_, record)| record.id);
    let first = match setup.target {
        Some((checkout, record)) => Errand::Attach { checkout, record: Box::new(record) },
        None => Errand::ListLoops,
    };
    drop(errands.send(first));
    let mut app = App::new(attached, Timestamp::now());
    app.zone = TimeZone::system();
    let taken = Taken::take()?;
    hear_keys(sender);
    let theme = Theme { colour: setup.colour };
    let left = Stage { app, theme, errands, messages }.play();
    drop(taken);
    // Whatever was asked for last is still done.
    drop(worker.join());
    left
}

struct Stage {
    app: App,
    theme: Theme,
    errands: std::sync::mpsc::Sender<Errand>,
    messages: Receiver<Message>,
}

impl Stage {
    fn play(mut self) -> Result<Left, TuiError> {
        let mut screen = Screen::new(CrosstermBackend::new(io::stdout())).map_err(TuiError::Terminal)?;
        let mut drawn = Instant::now();
        self.draw(&mut screen)?;
        loop {
            let mut urgent = false;
            let mut next = match self.wait(&self.messages) {
                Some(message) => Some(message),
                None => return Ok(self.left()),
            };
            while let Some(message) = next.take() {
                urgent |= matches!(message, Message::Input(_));
                for effect in self.app.update(message, Timestamp::now()) {
                    match effect {
                        Effect::Leave => return Ok(self.left()),
                        Effect::Redraw => screen.clear().map_err(TuiError::Terminal)?,
                        other => self.carry_out(other)?,
                    }
                }
                next = match FRAME.saturating_sub(drawn.elapsed()) {
                    left if urgent || left.is_zero() => self.messages.try_recv().ok(),
                    left => self.messages.recv_timeout(left).ok(),
                };
            }
            self.draw(&mut screen)?;
            drawn = Instant::now();
        }
    }

    /// The next thing that happens. Time alone is one only while an agent is at work.
    fn wait(&self, messages: &Receiver<Message>) -> Option<Message> {
        let working =
            self.app.model.as_ref().is_some_and(|model| model.is_alive() && !model.head().open.is_empty());
        if !working {
            return messages.recv().ok();
        }
        match messages.recv_timeout(SECOND) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => Some(Message::Tick),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    fn draw(&mut self, screen: &mut Screen) -> Result<(), TuiError> {
        let mut found = None;
        screen
            .draw(|frame| {
                let (seen, cursor) = draw(&self.app, self.theme, frame.buffer_mut());
                if let Some(cursor) = cursor {
                    frame.set_cursor_position(cursor);
                }
                found = Some(seen);
            })
            .map_err(TuiError::Terminal)?;
        if let Some(seen) = found {
            self.app.see(seen);
        }
        Ok(())
    }

    fn carry_out(&self, effect: Effect) -> Result<(), TuiError> {
        let errand = match effect {
            Effect::Do(act) => Errand::Do(act),
            Effect::Attach(row) => Errand::Attach { checkout: row.checkout, record: Box::new(row.record) },
            Effect::LoadAttempt(span) => Errand::LoadAttempt(span),
            Effect::LoadOutput(span) => Errand::LoadOutput(span),
            Effect::ListLoops => Errand::ListLoops,
            Effect::TakeMouse(true) => {
                return execute!(io::stdout(), EnableMouseCapture).map_err(TuiError::Terminal);
            }
            Effect::TakeMouse(false) => {
                return execute!(io::stdout(), DisableMouseCapture).map_err(TuiError::Terminal);
            }
            Effect::Redraw | Effect::Leave => return Ok(()),
        };
        drop(self.errands.send(errand));
        Ok(())
    }

    fn left(self) -> Left {
        match self.app.model {
            Some(model) => {
                let running = model.is_alive();
                let ended = model.head().run.ended.as_ref().filter(|_| !running).map(|(reason, _)| *reason);
                let workspace = model.book.workspace.clone();
                Left { name: Some(model.head().name.clone()), workspace: Some(workspace), running, ended }
            }
            None => Left::default(),
        }
    }
}

/// The terminal while it is ours.
struct Taken;

impl Taken {
    fn take() -> Result<Self, TuiError> {
        enable_raw_mode().map_err(TuiError::Terminal)?;
        let taken = Self;
        execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste)
            .map_err(TuiError::Terminal)?;
        let earlier = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            earlier(panic);
        }));
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// A terminal that is gone cannot be given back, and need not be.
fn give_back() {
    let mut out = io::stdout();
    drop(execute!(out, DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen, Show));
    drop(out.flush());
    drop(disable_raw_mode());
}

fn hear_keys(sender: SyncSender<Message>) {
    std::thread::spawn(move || {
        loop {
            let message = match read() {
                Ok(event @ (Event::Key(_) | Event::Mouse(_) | Event::Paste(_) | Event::Resize(..))) => {
                    Message::Input(event)
                }
                Ok(Event::FocusGained | Event::FocusLost) => continue,
                // Nobody can press a key any more.
                Err(_) => Message::Leave,
            };
            let over = matches!(message, Message::Leave);
            if sender.send(message).is_err() || over {
                return;
            }
        }
    });
}

fn hear_signals(sender: &SyncSender<Message>) -> Result<(), TuiError> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals =
        signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(TuiError::Terminal)?;
    let sender = sender.clone();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            drop(sender.send(Message::Leave));
        }
    });
    Ok(())
}
