//! Steps with names and durations; the first that fails ends it.

use std::fmt::Display;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// What to print last when something failed.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) String);

pub(crate) struct Steps {
    name: &'static str,
    started: Instant,
    done: usize,
    tests: Tests,
}

/// How many tests ran, as cargo counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tests {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Steps {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, started: Instant::now(), done: 0, tests: Tests::default() }
    }

    /// A step done by ourselves; what it returns is printed beside its name.
    pub(crate) fn step<T: Display, E: Display>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<(), Failed> {
        let started = Instant::now();
        println!("==> {name}");
        match work() {
            Ok(said) => {
                self.finish(name, started, &said.to_string());
                Ok(())
            }
            Err(problem) => {
                println!("{problem}");
                Err(self.fail(name, started))
            }
        }
    }

    /// A step that is one command.
    pub(crate) fn run(&mut self, name: &str, mut command: Command) -> Result<(), Failed> {
        self.step(name, || succeed(command.status()).map(|()| ""))
    }

    /// A step that is one `cargo test`, its tests counted.
    pub(crate) fn counted(&mut self, name: &str, mut command: Command) -> Result<(), Failed> {
        self.counting(name, |tests| count(&mut command, tests))
    }

    /// A step that runs tests and counts them.
    pub(crate) fn counting(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Tests) -> Result<(), String>,
    ) -> Result<(), Failed> {
        let mut tests = Tests::default();
        let result = self.step(name, || {
            work(&mut tests)?;
            if tests.passed == 0 { Err("no test ran".to_owned()) } else { Ok(tests) }
        });
        self.tests += tests;
        result
    }

    pub(crate) fn summary(&self) -> String {
        let (name, done, took) = (self.name, self.done, seconds(self.started.elapsed()));
        match self.tests.passed {
            0 => format!("{name} ok: {done} steps in {took}"),
            _ => format!("{name} ok: {done} steps, {} in {took}", self.tests),
        }
    }

    fn finish(&mut self, name: &str, started: Instant, said: &str) {
        self.done += 1;
        let gap = if said.is_empty() { "" } else { ": " };
        println!("    {name} ok in {}{gap}{said}", seconds(started.elapsed()));
    }

    fn fail(&self, name: &str, started: Instant) -> Failed {
        let (step, total) = (seconds(started.elapsed()), seconds(self.started.elapsed()));
        Failed(format!("{} FAILED at `{name}` after {step} ({total} in all)", self.name))
    }
}

impl Display for Tests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} tests passed, {} failed, {} ignored", self.passed, self.failed, self.ignored)
    }
}

/// The very cargo that runs this, with nothing of this run's own settings.
#[expect(clippy::disallowed_methods, reason = "starting tools is what xtask is for")]
pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

pub(crate) fn succeed(status: std::io::Result<std::process::ExitStatus>) -> Result<(), String> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the command failed ({status})")),
        Err(error) => Err(format!("the command cannot be started: {error}")),
    }
}

/// A test program that says nothing for so long hangs; the slowest build of all takes less.
const SILENCE: Duration = Duration::from_secs(20 * 60);

/// Passes the output on and adds up cargo's `test result:` lines.
fn count(command: &mut Command, tests: &mut Tests) -> Result<(), String> {
    listen(command, |line| {
        println!("{line}");
        tests.add(line);
    })
}

/// What a test program prints, in one piece, and whether it succeeded.
pub(crate) fn collect(command: &mut Command) -> (String, Result<(), String>) {
    let mut output = String::new();
    let result = listen(command, |line| {
        output.push_str(line);
        output.push('\n');
    });
    (output, result)
}

/// Both streams come line by line; a program that falls silent is ended.
fn listen(command: &mut Command, mut hear: impl FnMut(&str)) -> Result<(), String> {
    let cannot = |error| format!("the command cannot be started: {error}");
    let (reader, writer) = std::io::pipe().map_err(cannot)?;
    let second = writer.try_clone().map_err(cannot)?;
    let mut child = command.stdout(writer).stderr(second).spawn().map_err(cannot)?;
    // Its ends of the pipe would keep ours open.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (lines, printed) = mpsc::channel();
    thread::spawn(move || {
        let all = BufReader::new(reader).split(b'\n').map_while(Result::ok);
        all.map_while(|line| lines.send(line).ok()).for_each(drop);
    });
    loop {
        match printed.recv_timeout(SILENCE) {
            Ok(line) => hear(&String::from_utf8_lossy(&line)),
            Err(RecvTimeoutError::Disconnected) => return succeed(child.wait()),
            Err(RecvTimeoutError::Timeout) => {
                drop(child.kill());
                return Err(format!(
                    "nothing was printed for {}: what is named above hangs, and is still there to be looked at",
                    seconds(SILENCE)
                ));
            }
        }
    }
}

impl std::ops::AddAssign for Tests {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

impl Tests {
    pub(crate) fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ") else { return };
        for part in counts.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(Ok(number)), Some(what)) = (words.next().map(str::parse::<u64>), words.next()) else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

pub(crate) fn seconds(duration: Duration) -> String {
    let tenths = duration.as_millis().div_ceil(100);
    match tenths {
        0..600 => format!("{}.{} s", tenths / 10, tenths % 10),
        _ => format!("{} min {} s", tenths / 600, tenths / 10 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::{Tests, seconds};
    use std::time::Duration;

    #[test]
    fn results_of_several_test_programs_add_up() {
        let mut tests = Tests::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out; finished in 1.00s",
        ] {
            tests.add(line);
        }
        assert_eq!(tests, Tests { passed: 4, failed: 2, ignored: 1 });
    }

    #[test]
    fn durations_read_well() {
        let check = |millis, text: &str| assert_eq!(seconds(Duration::from_millis(millis)), text);
        check(1, "0.1 s");
        check(59_900, "59.9 s");
        check(60_000, "1 min 0 s");
        check(125_300, "2 min 5 s");
    }
}
