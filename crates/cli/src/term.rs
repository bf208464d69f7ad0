//! Standard output and error: the one place that prints, and what the terminal can show.

use std::io::{self, IsTerminal, PipeReader, PipeWriter, Write};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(crate) use wiggum_engine::words::{harmless, thousands};

/// Writes to standard output. A reader that went away is not our failure.
pub(crate) fn print(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Standard output of a run. Whoever reads it may hold the run up, but not beyond a signal: what nobody takes then
/// is lost, and the run ends in order.
#[derive(Debug, Default)]
pub(crate) struct Output;

/// A pipe that says it can be written to takes this much at once.
const AT_ONCE: usize = 4096;

/// How long whoever reads may take once a signal came: longer than a pause of a program that is at work.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// Readable once a signal came.
static SIGNALLED: LazyLock<Option<(PipeReader, PipeWriter)>> = LazyLock::new(|| io::pipe().ok());

/// A signal came: nobody waits for readers any more.
pub(crate) fn stop_waiting_for_readers() {
    if let Some((_, writer)) = &*SIGNALLED {
        drop((&*writer).write_all(b"."));
    }
}

impl Output {
    /// Can it be written to? Waits for that.
    fn is_read() -> bool {
        static IS_LOST: AtomicBool = AtomicBool::new(false);
        if IS_LOST.load(Ordering::Relaxed) {
            return false;
        }
        let Some((signalled, _)) = &*SIGNALLED else { return true };
        let stdout = io::stdout();
        let mut both = [PollFd::new(&stdout, PollFlags::OUT), PollFd::new(signalled, PollFlags::IN)];
        while matches!(poll(&mut both, None), Err(rustix::io::Errno::INTR)) {}
        if !both[0].revents().is_empty() {
            return true;
        }
        let mut alone = [PollFd::new(&stdout, PollFlags::OUT)];
        let is_read = poll(&mut alone, Some(&PATIENCE)).is_ok_and(|ready| ready > 0);
        IS_LOST.store(!is_read, Ordering::Relaxed);
        is_read
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !Self::is_read() {
            return Ok(bytes.len());
        }
        let portion = &bytes[..bytes.len().min(AT_ONCE)];
        Ok(rustix::io::write(io::stdout(), portion)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Is anybody there to read what is printed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

/// Writes to standard output at once, for commands that go on for as long as somebody reads.
pub(crate) fn print_to_reader(text: &str) -> Reader {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Reader::There,
        Err(_) => Reader::Gone,
    }
}

/// Writes to standard error, where everything goes that is not the answer itself.
pub(crate) fn note(text: &str) {
    drop(std::io::stderr().lock().write_all(text.as_bytes()));
}

/// Colours, or nothing where nobody would see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    pub(crate) fn for_stderr() -> Self {
        Self::when(std::io::stderr().is_terminal())
    }

    pub(crate) fn for_stdout() -> Self {
        Self::when(std::io::stdout().is_terminal())
    }

    pub(crate) fn plain() -> Self {
        Self { colour: false }
    }

    fn when(terminal: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let forced = set("CLICOLOR_FORCE") || set("FORCE_COLOR");
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { colour: !set("NO_COLOR") && (forced || (terminal && !dumb)) }
    }

    pub(crate) fn is_coloured(self) -> bool {
        self.colour
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Rows below each other, the first column to the left and the others to the right.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let cell = |(number, text): (usize, &String)| match number {
        0 => format!("  {text:<width$}", width = widths[0]),
        number => format!("  {text:>width$}", width = widths[number]),
    };
    rows.iter().map(|row| row.iter().enumerate().map(cell).collect::<String>() + "\n").collect()
}
