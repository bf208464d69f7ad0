//! An engine that is killed leaves nothing running: its watchdog ends what it had started, at once and
//! not at the next start.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]
#![expect(clippy::print_stderr, reason = "what is not tested is said")]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use support::{Sandbox, Started};
use wiggum_core::event::Event;
use wiggum_workspace::{process, sandbox};

/// What is promised.
const AT_MOST: Duration = Duration::from_secs(2);

/// Holds a pipe open together with all that it starts: a child, one in a session of its own, and one
/// in a session of its own without any environment. Then it says so and hangs.
const FAMILY: &str = r#"
    exec 9> "$SANDBOX/alive"
    sleep 1000 &
    setsid sleep 1000 &
    setsid env -i sh -c '(trap "" TERM INT HUP; sleep 1000; sleep 1000) & sleep 1000' &
    hang"#;

fn kinds() -> Vec<&'static str> {
    let found = [("landlock", sandbox::landlock()), ("bwrap", sandbox::bwrap())];
    let works = |(name, kind): (&'static str, Result<_, sandbox::SandboxError>)| match kind {
        Ok(_) => Some(name),
        Err(error) => {
            eprintln!("SKIPPED: the sandbox {name} is NOT TESTED here: {error}");
            None
        }
    };
    ["none"].into_iter().chain(found.into_iter().filter_map(works)).collect()
}

fn project() -> Sandbox {
    let sandbox = Sandbox::with_tasks(&["T1"]);
    for pipe in ["ready", "alive"] {
        sandbox.make_pipe(pipe);
    }
    sandbox
}

/// Says when nobody holds the pipe open any more.
fn all_gone(sandbox: &Sandbox) -> Receiver<()> {
    let path = sandbox.base().join("alive");
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut pipe = fs::File::open(path).unwrap();
        pipe.read_to_end(&mut Vec::new()).unwrap();
        // A test that failed does not listen.
        sender.send(()).unwrap_or_default();
    });
    receiver
}

fn killed(sandbox: &Sandbox, started: Started<'_>, gone: &Receiver<()>, what: &str) {
    let id = sandbox.loop_id().to_string();
    started.kill();
    assert!(gone.recv_timeout(AT_MOST).is_ok(), "{what}: still alive: {:#?}", sandbox.processes());
    // The watchdog ends last, and lets go of its lock.
    let lock = sandbox.state_dir().loop_dir(sandbox.loop_id()).join("watchdog.lock");
    assert!(process::await_watchdog(&lock, AT_MOST).unwrap(), "{what}: the watchdog is still there");
    assert_eq!(process::marked("WIGGUM_LOOP_ID", &id), Vec::<u32>::new(), "{what}");
}

/// A process of the user: the same programs in the same directory, and not from the loop.
struct Own {
    child: Child,
    /// No other test ends it.
    marker: String,
}

impl Own {
    fn start(sandbox: &Sandbox) -> Self {
        let mut command = sandbox.command("sleep");
        let marker = sandbox.base().display().to_string();
        command.arg("1000").current_dir(&sandbox.root).env("WIGGUM_LOOP_ID", &marker);
        Self { child: command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap(), marker }
    }

    /// Still there; it is ended only now.
    fn survived(mut self) {
        assert_eq!(self.child.try_wait().unwrap(), None, "a process of the user was ended");
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn an_agent_and_all_it_started_end_with_a_killed_engine() {
    for kind in kinds() {
        let sandbox = project();
        let gone = all_gone(&sandbox);
        let started = sandbox.start(FAMILY, &["--sandbox", kind]);
        sandbox.wait_ready();
        let own = Own::start(&sandbox);
        killed(&sandbox, started, &gone, kind);
        own.survived();
        sandbox.run("echo done > work; claim", &["--sandbox", kind]).exits(0);
        assert_eq!(sandbox.state_of("T1"), "done", "{kind}");
    }
}

#[test]
fn a_check_ends_with_a_killed_engine() {
    let sandbox = project();
    let check = sandbox.agent_named("check", FAMILY);
    let gone = all_gone(&sandbox);
    let started = sandbox.start("echo done > work; claim", &["--verify", &check, "--baseline", "go-on"]);
    // First on the untouched tree.
    sandbox.wait_ready();
    killed(&sandbox, started, &gone, "baseline");

    let sandbox = project();
    let check = sandbox.agent_named("check", &format!("test -e work || exit 0\n{FAMILY}"));
    let gone = all_gone(&sandbox);
    let started = sandbox.start("echo done > work; claim", &["--verify", &check]);
    sandbox.wait_ready();
    killed(&sandbox, started, &gone, "check");
    sandbox.run("echo done > work; claim", &["--verify", "true"]).exits(0);
}

/// The honest twin: a watchdog that was dismissed ends nothing, and none ends what has another marker.
#[test]
fn a_dismissed_watchdog_ends_nothing() {
    let sandbox = Sandbox::plain();
    let watchdog = |farewell: &[u8], value: &str| {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_wiggum"));
        command.args([process::WATCHDOG, "WIGGUM_LOOP_ID", value]).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(farewell).unwrap();
        assert!(child.wait().unwrap().success());
    };
    let mut own = Own::start(&sandbox);
    let marker = own.marker.clone();
    watchdog(b".", &marker);
    watchdog(b"", &format!("{marker} and more"));
    assert_eq!(own.child.try_wait().unwrap(), None);
    watchdog(b"", &marker);
    assert!(!own.child.wait().unwrap().success());
}

/// The watchdog of an engine before us looks for the marker that our own git carries: nothing is started before it is
/// done.
#[test]
fn the_next_engine_starts_nothing_while_the_watchdog_of_the_last_is_at_work() {
    let mut sandbox = project();
    let started = sandbox.start("hang", &[]);
    sandbox.wait_ready();
    started.signal("INT");
    assert_eq!(started.finish().code(), Some(130));
    // A git that takes its time, so that nobody who looks for it can miss it.
    let path = std::env::var("PATH").unwrap();
    let slow =
        format!("#!/bin/sh\nPATH='{path}'\ncase \"$*\" in *regexp*) sleep 0.5;; esac\nexec git \"$@\"\n");
    sandbox.write_program("../slow/git", &slow);
    sandbox.env("PATH", &format!("{}:{path}", sandbox.base().join("slow").display()));
    let id = sandbox.loop_id();
    let lock = fs::File::open(sandbox.state_dir().loop_dir(id).join("watchdog.lock")).unwrap();
    lock.lock().unwrap();
    let started = sandbox.start("claim", &["--sandbox", "landlock"]);
    let until = Instant::now() + AT_MOST;
    while Instant::now() < until {
        assert_eq!(process::end_marked("WIGGUM_LOOP_ID", &id.to_string()), 0, "it started something");
    }
    lock.unlock().unwrap();
    started.finish().exits(0);
}

/// `killall -9 wiggum` does not meet the watchdog.
#[test]
fn the_watchdog_has_a_name_and_a_session_of_its_own() {
    let sandbox = project();
    let started = sandbox.start("hang", &[]);
    sandbox.wait_ready();
    let watchdogs = sandbox.watchdogs();
    let [watchdog] = watchdogs.as_slice() else { panic!("not one watchdog: {watchdogs:?}") };
    // It takes its name once it runs, which may be after the agent does.
    let until = Instant::now() + Duration::from_secs(60);
    let stat = loop {
        let stat = fs::read_to_string(format!("/proc/{watchdog}/stat")).unwrap();
        if stat.contains("(loop-watchdog)") {
            break stat;
        }
        assert!(Instant::now() < until, "{stat}");
        std::thread::yield_now();
    };
    let fields: Vec<&str> = stat.split_whitespace().collect();
    // Not our child, which every look for survivors would meet.
    assert_ne!(fields[3], started.pid());
    started.signal("INT");
    assert_eq!(started.finish().code(), Some(130));
    let told = sandbox
        .events()
        .into_iter()
        .any(|event| matches!(event, Event::Noticed { message, .. } if message.contains("watchdog")));
    assert!(!told);
}
