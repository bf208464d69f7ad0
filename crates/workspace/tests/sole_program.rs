//! Behaviour that shows only while a single program runs, so these tests take turns.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};

use wiggum_core::event::Exit;
use wiggum_workspace::process::{CommandLine, Ended, Launch, Sink, Stream, launch};

static TURN: Mutex<()> = Mutex::new(());

struct Collect(Sender<(Ended, String)>, String);

impl Sink for Collect {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.1.push_str(std::str::from_utf8(bytes).unwrap());
    }

    fn ended(&mut self, ended: Ended) {
        self.0.send((ended, std::mem::take(&mut self.1))).unwrap();
    }
}

fn to_its_end(launched: Launch) -> (Ended, String) {
    let (sender, receiver) = mpsc::channel();
    let _running = launch(launched, Collect(sender, String::new())).unwrap();
    receiver.recv().unwrap()
}

fn sh(script: &str) -> Launch {
    Launch::new(CommandLine::new("sh", ["-c", script]), "/")
}

/// Nothing but being our orphan tells whose this process is.
#[test]
fn an_orphan_without_any_trait_belongs_to_the_only_program() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let script = "env -i setsid sh -c '
        prlimit --rttime=unlimited --pid $$
        (sh -c \"exec setsid sleep 100\" & echo $!)'";
    let (ended, output) = to_its_end(sh(script));
    let pid: u32 = output.trim().parse().unwrap();
    assert_eq!(ended.ended_processes, 1);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

/// Runs this very test program with variables a git hook would set; see the next test.
#[test]
fn children_do_not_inherit_where_git_was_working() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let inner = ["--exact", "inner_of_git_variables", "--ignored", "--nocapture"];
    let mut launched = Launch::new(CommandLine::new(std::env::current_exe().unwrap(), inner), "/");
    launched.env = ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_AUTHOR_NAME"]
        .map(|name| (name.into(), "/nowhere".into()))
        .to_vec();
    let (ended, output) = to_its_end(launched);
    assert_eq!(ended.exit, Exit::Code { code: 0 }, "{output}");
    assert!(output.contains("1 passed"), "{output}");
}

#[test]
#[ignore = "run by the test above, with a prepared environment"]
fn inner_of_git_variables() {
    assert!(std::env::var_os("GIT_DIR").is_some());
    let (_, output) = to_its_end(sh("env | grep ^GIT_ | grep =/nowhere | cut -d= -f1"));
    assert_eq!(output, "GIT_AUTHOR_NAME\n");
}
