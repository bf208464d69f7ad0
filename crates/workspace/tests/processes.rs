//! Nothing a program started outlives it, whatever it tried, and nobody else's processes are hit.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use wiggum_core::event::Exit;
use wiggum_workspace::process::{
    Attend, CommandLine, Ended, Grace, Input, Launch, LaunchError, Patience, Running, Sink, Stop, Stream,
    end_marked, launch, marked, run,
};

enum Seen {
    Line(String),
    Ended(Ended),
}

/// Sends standard output line by line, then the end.
struct Lines {
    seen: Sender<Seen>,
    partial: Vec<u8>,
}

impl Sink for Lines {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Stderr {
            return;
        }
        for byte in bytes {
            if *byte == b'\n' {
                let line = String::from_utf8(std::mem::take(&mut self.partial)).unwrap();
                self.seen.send(Seen::Line(line)).unwrap();
            } else {
                self.partial.push(*byte);
            }
        }
    }

    fn ended(&mut self, ended: Ended) {
        self.seen.send(Seen::Ended(ended)).unwrap();
    }
}

struct Program {
    running: Running,
    seen: Receiver<Seen>,
    lines: Vec<String>,
}

impl Program {
    fn start(launched: Launch) -> Self {
        let (sender, seen) = mpsc::channel();
        let running = launch(launched, Lines { seen: sender, partial: Vec::new() }).unwrap();
        Self { running, seen, lines: Vec::new() }
    }

    fn script(script: &str) -> Self {
        Self::start(sh(script))
    }

    /// Long enough for a loaded machine; a test that gets this far has failed.
    fn next(&self) -> Seen {
        self.seen.recv_timeout(Duration::from_secs(60)).expect("the program is silent")
    }

    fn line(&mut self) -> String {
        match self.next() {
            Seen::Line(line) => {
                self.lines.push(line.clone());
                line
            }
            Seen::Ended(ended) => panic!("ended too early: {ended:?} after {:?}", self.lines),
        }
    }

    fn pid_line(&mut self) -> u32 {
        self.line().parse().unwrap()
    }

    fn ended(&mut self) -> Ended {
        loop {
            match self.next() {
                Seen::Line(line) => self.lines.push(line),
                Seen::Ended(ended) => {
                    assert!(self.seen.recv().is_err(), "nothing comes after the end");
                    return ended;
                }
            }
        }
    }
}

fn sh(script: &str) -> Launch {
    Launch::new(CommandLine::new("sh", ["-c", script]), "/")
}

fn python(script: &str) -> Launch {
    Launch::new(CommandLine::new("python3", ["-c", script]), "/")
}

/// Not even as a zombie.
fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

const SHORT: Grace = Grace { int: Duration::from_millis(100), term: Duration::from_millis(100) };

#[test]
fn exit_and_output_are_reported() {
    let mut program = Program::script("echo one; echo two; exit 7");
    let ended = program.ended();
    assert_eq!((ended.exit, ended.ended_processes), (Exit::Code { code: 7 }, 0));
    assert_eq!(program.lines, ["one", "two"]);
    let ended = Program::script("kill -SEGV $$").ended();
    assert_eq!(ended.exit, Exit::Signal { signal: 11 });
}

#[test]
fn a_program_that_cannot_be_started_is_an_error() {
    let (sender, seen) = mpsc::channel();
    let nothing = Launch::new(CommandLine::new("/no/such/program", [""; 0]), "/");
    let error = launch(nothing, Lines { seen: sender, partial: Vec::new() }).unwrap_err();
    assert!(error.to_string().contains("/no/such/program"), "{error}");
    assert!(seen.recv().is_err(), "an end is reported only for what began");
}

/// Each script writes the number of a process that should survive, then the main process ends.
#[test]
fn nothing_survives() {
    let cases = [
        ("background", "sleep 100 & echo $!"),
        ("nohup", "nohup sleep 100 >/dev/null 2>&1 & echo $!"),
        ("own session", "setsid sh -c 'echo $$; exec sleep 100 >/dev/null 2>&1' & read x <&3"),
        ("double fork", "(sh -c 'echo $$; exec sleep 100 >/dev/null 2>&1' &) & wait; read x <&3"),
        (
            "ignores TERM",
            "sh -c 'trap \"\" TERM INT HUP; echo $$; for i in 1 2 3; do sleep 100; done' & read x <&3",
        ),
        (
            "no environment, own session",
            "env -i setsid sh -c 'echo $$; exec sleep 100 >/dev/null' & read x <&3",
        ),
        (
            "no environment, own session, double fork",
            "(env -i setsid sh -c '(sh -c \"echo \\$\\$; exec sleep 100 >/dev/null 2>&1\" &)' &) & read x <&3",
        ),
        ("holds our pipes", "setsid sh -c 'echo $$; exec sleep 100' & read x <&3"),
    ];
    for (name, script) in cases {
        // The main process waits at the fifo until the survivor's line was seen here.
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("go");
        let script = format!("mkfifo '{0}'; echo ready; exec 3<>'{0}'; {script}", fifo.display());
        let mut program = Program::script(&script);
        assert_eq!(program.line(), "ready");
        let pid = program.pid_line();
        if script.contains("<&3") {
            std::fs::write(&fifo, "go\n").unwrap();
        }
        let ended = program.ended();
        assert_eq!(ended.exit, Exit::Code { code: 0 }, "{name}");
        assert!(ended.ended_processes >= 1, "{name}");
        assert!(!exists(pid), "{name}");
    }
}

#[test]
fn nothing_survives_that_forks_while_it_is_killed() {
    let script = r#"
import os, signal, sys, time
# A failing test must not leave the machine forking for ever.
end = time.monotonic() + 20
r, w = os.pipe()
if os.fork():
    os.read(r, 1)
    sys.exit(0)
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)
os.setsid()
for _ in range(4): os.fork()
os.write(w, b"x")
while time.monotonic() < end:
    if os.fork(): os._exit(0)
    os.setpgid(0, 0)
"#;
    let mut launched = python(script);
    let marker = ("WIGGUM_TEST_FORKER".to_owned(), format!("{:?}", Instant::now()));
    launched.marker = Some(marker.clone());
    let ended = Program::start(launched).ended();
    assert!(ended.ended_processes >= 1);
    assert_eq!(end_marked(&marker.0, &marker.1), 0, "the end was reported while something was left");
}

#[test]
fn no_zombies_are_left() {
    // Sixteen orphans that end by themselves while the main process runs.
    let script = "for i in 1 2 3 4 5 6 7 8; do (setsid sh -c 'echo $$' & setsid true &) ; done; read x <&3";
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("go");
    let mut program = Program::script(&format!("mkfifo '{0}'; exec 3<>'{0}'; {script}", fifo.display()));
    let pids: Vec<u32> = (0..8).map(|_| program.pid_line()).collect();
    std::fs::write(&fifo, "go\n").unwrap();
    program.ended();
    assert!(!pids.iter().any(|pid| exists(*pid)));
}

#[test]
fn one_programs_end_spares_the_others() {
    let daemon = "setsid env -i sh -c '(sh -c \"echo \\$\\$; exec sleep 100\" &)'; exec sleep 100";
    let mut first = Program::script(daemon);
    let mut second = Program::script(daemon);
    let (of_first, of_second) = (first.pid_line(), second.pid_line());

    first.running.stop(Stop::Asked, SHORT);
    let ended = first.ended();
    assert_eq!((ended.exit, ended.ended_processes), (Exit::Signal { signal: 2 }, 1));
    assert!(!exists(of_first));
    assert!(exists(of_second) && exists(second.running.pid()));

    second.running.stop(Stop::TimedOut, SHORT);
    let ended = second.ended();
    assert_eq!((ended.exit, ended.ended_processes), (Exit::TimedOut, 1));
    assert!(!exists(of_second));
}

#[test]
fn stopping_goes_from_int_over_term_to_kill() {
    let trap =
        |traps: &str| format!("{traps} echo ready; for i in 1 2 3 4 5 6; do sleep 100 & wait $!; done");
    let cases = [
        (trap("trap 'exit 3' INT;"), Exit::Code { code: 3 }),
        (trap("trap '' INT; trap 'exit 4' TERM;"), Exit::Code { code: 4 }),
        (trap("trap '' INT TERM;"), Exit::Signal { signal: 9 }),
    ];
    for (script, exit) in cases {
        let mut program = Program::script(&script);
        assert_eq!(program.line(), "ready");
        program.running.stop(Stop::Asked, SHORT);
        program.running.stop(Stop::TimedOut, SHORT);
        assert_eq!(program.ended().exit, exit, "{script}");
    }
}

#[test]
fn a_second_request_can_only_hurry_it() {
    let patient = Grace { int: Duration::from_secs(600), term: Duration::from_secs(600) };
    let hurry = Grace { int: Duration::ZERO, term: Duration::ZERO };
    let mut program = Program::script("trap '' INT TERM; echo ready; while :; do sleep 100; done");
    program.line();
    program.running.stop(Stop::TimedOut, patient);
    program.running.stop(Stop::Asked, hurry);
    program.running.stop(Stop::Asked, patient);
    assert_eq!(program.ended().exit, Exit::TimedOut);
}

#[test]
fn a_stop_is_noticed_at_once_and_does_not_wait_out_the_grace() {
    let mut program = Program::script("echo ready; exec sleep 100");
    program.line();
    let grace = Grace { int: Duration::from_secs(600), term: Duration::from_secs(600) };
    program.running.stop(Stop::TimedOut, grace);
    assert_eq!(program.ended().exit, Exit::TimedOut);
    // After the end a stop is harmless.
    program.running.stop(Stop::Asked, grace);
}

#[test]
fn any_prompt_is_fine_whether_it_is_read_or_not() {
    let megabyte = vec![b'x'; 1 << 20];
    let cases = [
        ("true", megabyte.clone(), Exit::Code { code: 0 }),
        ("exec <&-; echo ready; exit 5", megabyte.clone(), Exit::Code { code: 5 }),
        ("test $(wc -c) = 1048576", megabyte, Exit::Code { code: 0 }),
        ("test $(wc -c) = 0", Vec::new(), Exit::Code { code: 0 }),
    ];
    for (script, bytes, exit) in cases {
        let mut launched = sh(script);
        launched.stdin = Input::Bytes(bytes);
        assert_eq!(Program::start(launched).ended().exit, exit, "{script}");
    }
    let without = Program::script("test $(wc -c) = 0").ended();
    assert_eq!(without.exit, Exit::Code { code: 0 });
}

#[test]
fn a_program_that_never_reads_its_prompt_can_be_stopped() {
    let mut launched = sh("echo ready; exec sleep 100");
    launched.stdin = Input::Bytes(vec![b'x'; 1 << 20]);
    let mut program = Program::start(launched);
    program.line();
    program.running.stop(Stop::Asked, SHORT);
    assert_eq!(program.ended().exit, Exit::Signal { signal: 2 });
}

#[test]
fn the_last_words_of_a_survivor_are_delivered() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("go");
    let script = format!(
        "mkfifo '{0}'; exec 3<>'{0}'
        sh -c 'trap \"echo bye; exit\" TERM; echo ready; sleep 100 & wait' & read x <&3",
        fifo.display()
    );
    let mut program = Program::script(&script);
    assert_eq!(program.line(), "ready");
    std::fs::write(&fifo, "go\n").unwrap();
    program.ended();
    assert_eq!(program.lines, ["ready", "bye"]);
}

#[test]
fn a_flood_on_both_streams_arrives_whole() {
    struct Count(Sender<(u64, u64)>, u64, u64);
    impl Sink for Count {
        fn output(&mut self, stream: Stream, bytes: &[u8]) {
            match stream {
                Stream::Stdout => self.1 += bytes.len() as u64,
                Stream::Stderr => self.2 += bytes.len() as u64,
            }
        }
        fn ended(&mut self, _: Ended) {
            self.0.send((self.1, self.2)).unwrap();
        }
    }
    let (sender, receiver) = mpsc::channel();
    let flood = sh("head -c 20000000 /dev/zero & head -c 10000000 /dev/zero >&2; wait");
    launch(flood, Count(sender, 0, 0)).unwrap();
    assert_eq!(receiver.recv().unwrap(), (20_000_000, 10_000_000));
}

#[test]
fn a_program_may_close_its_output_and_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let done = directory.path().join("done");
    let script = format!("exec >&- 2>&-; sleep 0.05; touch '{}'", done.display());
    assert_eq!(Program::script(&script).ended().exit, Exit::Code { code: 0 });
    assert!(done.exists());
}

/// A loop of the shell that takes long enough for the system to count it.
const SPIN: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";

#[test]
fn the_time_of_its_tools_is_told_apart_from_its_own() {
    let used = |program: &Program| -> Duration {
        program.running.tools().unwrap().iter().map(|tool| tool.used).sum()
    };
    let busy = Duration::from_millis(50);
    // It spins itself, or has run programs that are gone.
    let mut own = Program::script(&format!("{SPIN}; (setsid sh -c '{SPIN}'); echo done; sleep 1000"));
    own.line();
    assert!(used(&own) < busy, "{:?}", own.running.tools());
    // A tool is at work, or has something at work.
    let mut at_work = Program::script(&format!("({SPIN}; echo done; sleep 1000) & wait"));
    at_work.line();
    assert!(used(&at_work) >= busy, "{:?}", at_work.running.tools());
    let mut of_tool = Program::script(&format!("(setsid sh -c '{SPIN}'; echo done; sleep 1000) & wait"));
    of_tool.line();
    assert!(used(&of_tool) >= busy, "{:?}", of_tool.running.tools());
    for program in [own, at_work, of_tool] {
        program.running.stop(Stop::Asked, SHORT);
    }
}

#[test]
fn the_environment_is_as_asked() {
    let mut launched = sh("echo $ONE-$HOME-; pwd");
    launched.env = vec![("ONE".into(), "1".into())];
    launched.env_remove = vec!["HOME".into()];
    launched.cwd = "/tmp".into();
    let mut program = Program::start(launched);
    program.ended();
    assert_eq!(program.lines, ["1--", "/tmp"]);
}

/// After a kill -9 of the engine nobody is a child of the next one; the marker finds them anyway.
#[test]
fn marked_processes_are_found_without_being_children() {
    let value = format!("{:?}", Instant::now());
    // The first is found by its environment, the second by the inherited limit alone.
    let script = "
        sh -c 'trap \"\" TERM; echo $$; for i in 1 2 3; do sleep 100; done' &
        env -i setsid sh -c 'echo $$; exec sleep 100' &
        wait";
    let mut launched = sh(script);
    launched.marker = Some(("WIGGUM_TEST_MARK".to_owned(), value.clone()));
    let mut other = sh("echo $$; exec sleep 100");
    other.marker = Some(("WIGGUM_TEST_MARK".to_owned(), "another".to_owned()));
    let (mut program, mut other) = (Program::start(launched), Program::start(other));
    let pids = [program.pid_line(), program.pid_line(), program.running.pid()];
    let spared = other.pid_line();

    assert!(marked("WIGGUM_TEST_MARK", &value).len() >= 3, "looking ends nobody");
    assert!(end_marked("WIGGUM_TEST_MARK", &value) >= 3);
    program.ended();
    assert!(!pids.iter().any(|pid| exists(*pid)));
    assert!(exists(spared));
    other.running.stop(Stop::Asked, SHORT);
    other.ended();
    assert_eq!(end_marked("WIGGUM_TEST_MARK", &value), 0);
}

#[test]
fn marked_processes_are_found_without_their_environment() {
    let value = format!("{:?}", Instant::now());
    let mut launched = sh("exec env -i sh -c 'echo $$; exec sleep 100'");
    launched.marker = Some(("WIGGUM_TEST_BARE".to_owned(), value.clone()));
    let mut program = Program::start(launched);
    program.line();
    assert_eq!(end_marked("WIGGUM_TEST_BARE", "another"), 0);
    assert_eq!(end_marked("WIGGUM_TEST_BARE", &value), 1);
    assert_eq!(program.ended().exit, Exit::Signal { signal: 15 });
}

#[test]
fn a_program_starts_in_a_session_of_its_own_with_no_signal_blocked_or_ignored() {
    // No shell, which does things to signals of its own.
    let files = ["/proc/self/status", "/proc/self/stat"];
    let mut program = Program::start(Launch::new(CommandLine::new("cat", files), "/"));
    assert_eq!(program.ended().exit, Exit::Code { code: 0 });
    let signals = |name: &str| {
        let line = program.lines.iter().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim_start(), 16).unwrap()
    };
    assert_eq!(signals("SigBlk:"), 0);
    // Rust programs, this one too, ignore SIGPIPE; nobody else expects that. Signals from 32 on are
    // the C library's own.
    assert_eq!(signals("SigIgn:") & 0x7fff_ffff, 0);
    let session = program.lines.last().unwrap().split(' ').nth(5).unwrap();
    assert_eq!(session, program.running.pid().to_string());
}

#[test]
fn a_script_that_does_not_say_what_runs_it_is_for_the_shell() {
    let directory = tempfile::tempdir().unwrap();
    write_script(&directory.path().join("agent"), "echo \"$0 got $1\"\n");
    let command = CommandLine::new("./agent", ["this"]);
    let mut program = Program::start(Launch::new(command, directory.path()));
    assert_eq!(program.ended().exit, Exit::Code { code: 0 });
    assert_eq!(program.lines, ["./agent got this"]);
}

#[test]
fn a_program_is_looked_for_in_the_path_it_will_have() {
    let directory = tempfile::tempdir().unwrap();
    write_script(&directory.path().join("some-tool"), "#!/bin/sh\necho found\n");
    let mut launched = Launch::new(CommandLine::new("some-tool", [""; 0]), "/");
    launched.env = vec![("PATH".into(), directory.path().into())];
    let mut program = Program::start(launched);
    assert_eq!(program.ended().exit, Exit::Code { code: 0 });
    assert_eq!(program.lines, ["found"]);
}

#[test]
fn the_last_value_of_a_variable_counts_and_stands_there_once() {
    let mut launched = sh("tr '\\0' '\\n' < /proc/$$/environ | grep ^TWICE=");
    launched.env = vec![("TWICE".into(), "one".into()), ("TWICE".into(), "two".into())];
    let mut program = Program::start(launched);
    program.ended();
    assert_eq!(program.lines, ["TWICE=two"]);
}

fn write_script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn silence_after_output_is_told_once() {
    struct Notes(Sender<&'static str>);
    impl Sink for Notes {
        fn output(&mut self, _: Stream, _: &[u8]) {
            self.0.send("output").unwrap();
        }
        fn silence(&mut self) {
            self.0.send("silence").unwrap();
        }
        fn ended(&mut self, _: Ended) {
            self.0.send("ended").unwrap();
        }
    }
    let (sender, notes) = mpsc::channel();
    let running = launch(sh("echo x; exec sleep 1000"), Notes(sender)).unwrap();
    let next = || notes.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!((next(), next()), ("output", "silence"));
    running.stop(Stop::Asked, Grace { int: Duration::ZERO, term: Duration::ZERO });
    assert_eq!(next(), "ended", "silence is told once");
}

/// Somebody who has no patience with programs that take longer than this.
#[derive(Debug)]
struct Hurry(io::PipeReader, Duration);

impl Attend for Hurry {
    fn wake(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn look(&self, ran: Duration) -> Patience {
        let left = self.1.saturating_sub(ran);
        if left.is_zero() { Patience::End } else { Patience::Wait(Some(left)) }
    }
}

#[test]
fn a_program_that_is_waited_for_can_be_ended() {
    let (wake, _writer) = io::pipe().unwrap();
    let hurry = Arc::new(Hurry(wake, Duration::from_millis(100)));
    for script in
        ["sleep 1000", "trap '' TERM INT; while :; do sleep 1; done", "setsid sleep 1000 & sleep 1000"]
    {
        let mut launch = sh(script);
        launch.attendant = Some(Arc::clone(&hurry) as _);
        let ended = run(launch);
        assert!(matches!(ended, Err(LaunchError::Ended { .. })), "{script}: {ended:?}");
    }
    let mut quick = sh("echo quick");
    quick.attendant = Some(hurry);
    assert_eq!(run(quick).unwrap().stdout, b"quick\n");
}
