//! `wiggum tui` and plain `wiggum run` in a real terminal: a tmux of its own, looked at and typed into as a person would. Where tmux
//! is not installed, that is said and nothing is tested.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::time::{Duration, Instant};

use support::{Sandbox, WORKER, signal};
use wiggum_core::event::{Answer, EndReason, Event};

/// How long something may take to appear on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal with a shell in it.
struct Terminal<'a> {
    sandbox: &'a Sandbox,
}

impl<'a> Terminal<'a> {
    #[expect(clippy::print_stderr, reason = "what is skipped must be seen")]
    fn open(sandbox: &'a Sandbox, width: u16, height: u16) -> Option<Self> {
        if sandbox.command("tmux").arg("-V").output().is_err() {
            eprintln!("SKIPPED: tmux is not installed (`cargo xtask test` does that): terminals");
            return None;
        }
        let terminal = Self { sandbox };
        let (width, height) = (width.to_string(), height.to_string());
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, "sh"]);
        Some(terminal)
    }

    fn tmux(&self, args: &[&str]) -> String {
        let socket = self.sandbox.base().join("tmux");
        let mut tmux = self.sandbox.command("tmux");
        let output = tmux.current_dir(&self.sandbox.root).arg("-S").arg(socket).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn run(&self, wiggum: &str) {
        self.press(&[&format!("'{}' {wiggum}", env!("CARGO_BIN_EXE_wiggum")), "Enter"]);
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until all of this stands on the screen.
    #[track_caller]
    fn shows(&self, words: &[&str]) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if words.iter().all(|words| screen.contains(words)) {
                return screen;
            }
            assert!(Instant::now() < until, "{words:?} should appear:\n{screen}");
            std::thread::yield_now();
        }
    }

    /// Presses keys, and waits until this stands on the screen.
    #[track_caller]
    fn until(&self, keys: &[&str], words: &str) {
        self.press(keys);
        self.shows(&[words]);
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
        // A loop outlives its terminal, and would outlive a test that fails.
        for process in self.sandbox.processes() {
            let pid = process.split(' ').next().and_then(|path| path.strip_prefix("/proc/")).unwrap_or("0");
            drop(self.sandbox.command("kill").args(["-KILL", pid]).output());
        }
    }
}

/// Asks in its first task, and waits in its second until the test lets it go on. It means harm to the terminal.
const AGENT: &str = r#"
keep_prompt
printf '\033]0;owned\007\033[2J\033[31mred words\033[0m\n'
case "$WIGGUM_TASK_ID-$WIGGUM_ATTEMPT" in
A-1) cat <<'END'
<escalate type="stuck">
<summary>Which colour?</summary>
<context>The task names none.</context>
<options>
1. Red
2. Blue
</options>
<question>Red or blue?</question>
</escalate>
END
;;
B-*) ready; wait_for_go; echo b > b.txt; claim ;;
*) echo x > "$WIGGUM_TASK_ID.txt"; claim ;;
esac"#;

#[test]
fn a_loop_is_started_watched_answered_left_and_found_again() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    let Some(terminal) = Terminal::open(&sandbox, 80, 24) else { return };
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let agent = sandbox.agent(AGENT);
    terminal.run(&format!("run --tui --verify true --agent-command '{agent}'"));

    // The question stands out, and is answered with two keys.
    terminal.shows(&[" main PRD.json", "? q1  i answers  A: Which colour?", "asks q1"]);
    terminal.until(&["3"], "red words");
    terminal.until(&["i"], "2. Blue");
    terminal.press(&["2", "Enter"]);
    sandbox.wait_ready();
    terminal.until(&["1"], "attempt 1 · ");
    let answered = sandbox.events().into_iter().find_map(|event| match event {
        Event::QuestionAnswered { answer, by, .. } => Some((answer, by)),
        _ => None,
    });
    assert_eq!(answered, Some((Answer::Option { number: 2 }, "command line (TUI)".to_owned())));
    assert!(sandbox.prompt("A", 2).contains("proceed with option 2: Blue"));

    // A task is added and edited in the file, while the agent works.
    terminal.until(&["a"], "New task");
    terminal.press(&["-l", "Do another thing"]);
    terminal.until(&["C-s"], "added to PRD.json");
    // The loop knows of it at once.
    terminal.shows(&["○ 1   Do another thing"]);
    terminal.press(&["G", "k"]);
    terminal.until(&["e"], "Edit C");
    terminal.press(&["-l", " well"]);
    terminal.until(&["C-s"], "C changed in PRD.json");
    let backlog = sandbox.read("PRD.json");
    assert!(backlog.contains("\"Do another thing\"") && backlog.contains("\"Do C well\""), "{backlog}");

    // Leaving ends nothing, and one comes back.
    terminal.until(&["q"], "loop main goes on: `wiggum tui main` comes back to it");
    assert_eq!(sandbox.state_of("B"), "running");
    terminal.run("tui");
    terminal.shows(&["✓ A", "▶ B", "attempt 1 · "]);

    // In a wider terminal there is more, in a tiny one it is said what is missing.
    terminal.tmux(&["resize-window", "-x", "160", "-y", "40"]);
    terminal.shows(&["▶ B", "Output · B attempt 1", "red words"]);
    terminal.tmux(&["resize-window", "-x", "30", "-y", "8"]);
    terminal.shows(&["needs 40×10"]);
    assert_ne!(terminal.tmux(&["display-message", "-p", "#{pane_title}"]).trim(), "owned");

    // Ended by a signal, it gives the terminal back as it was.
    terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
    let process =
        sandbox.processes().into_iter().find(|line| line.trim_end().ends_with("wiggum tui")).unwrap();
    let pid = process.split(' ').next().and_then(|path| path.strip_prefix("/proc/")).unwrap();
    signal(&sandbox, pid, "TERM");
    terminal.shows(&["loop main goes on"]);
    terminal.press(&["-l", "echo $((6 * 7)) is back"]);
    terminal.until(&["Enter"], "42 is back");
    terminal.press(&[&format!("TERM=dumb '{}' tui", env!("CARGO_BIN_EXE_wiggum")), "Enter"]);
    terminal.shows(&["cannot show the interface", "hint: `wiggum status`"]);
    terminal.run("tui");
    terminal.shows(&["▶ B"]);

    // The terminal is gone, the loop is not.
    terminal.tmux(&["kill-server"]);
    sandbox.go();
    sandbox.wait_for(|event| matches!(event, Event::RunEnded { reason: EndReason::GoalAchieved, .. }));
    let until = Instant::now() + PATIENCE;
    while !sandbox.processes().is_empty() {
        assert!(Instant::now() < until, "{:#?}", sandbox.processes());
        std::thread::yield_now();
    }
    sandbox.check();
    assert_eq!(sandbox.worked_on().len(), 5, "what was added was done as well");
    assert!(sandbox.exists("b.txt") && sandbox.subjects().contains(&"C: Do C well".to_owned()));
}

#[test]
fn without_a_terminal_it_says_what_to_use_instead_and_a_loop_is_found_from_anywhere() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let tui = |args: &[&str]| sandbox.wiggum(&[&["tui"], args].concat());
    tui(&[]).complains(2, &["no loops here yet", "hint: `wiggum run` starts one"]);
    sandbox.run(WORKER, &["--verify", "true", "--name", "nightly"]).exits(0);
    tui(&[]).complains(2, &["the interface needs a terminal", "hint: `wiggum status`"]);
    tui(&["weekly"]).complains(2, &["no loop `weekly`"]);

    let elsewhere = sandbox.base().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let run = sandbox.wiggum_in(&elsewhere, &["tui", "nightly", "--json"]).exits(0);
    let seen: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (&seen["name"], &seen["state"], &seen["done"]),
        (&"nightly".into(), &"completed".into(), &1.into())
    );
}

/// Asks in both of its first tasks, and waits in the third until the test lets it go on.
const ASKS_TWICE: &str = r#"
keep_prompt
case "$WIGGUM_TASK_ID-$WIGGUM_ATTEMPT" in
[AB]-1) cat <<END
<escalate type="stuck">
<summary>Which colour for $WIGGUM_TASK_ID?</summary>
<options>
1. Red
2. Blue
</options>
<question>Red or blue?</question>
</escalate>
END
;;
C-*) ready; wait_for_go; echo "noise of C"; echo c > c.txt; claim ;;
*) echo x > "$WIGGUM_TASK_ID.txt"; claim ;;
esac"#;

/// What `run` finds open it shows at once, and again after other output; whatever is typed whenever is heard.
#[test]
fn a_terminal_with_open_questions_asks_them_and_takes_every_answer() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.write("wiggum.toml", "[people]\nwait = \"0s\"\n");
    sandbox.commit_all("nobody is waited for");
    sandbox.run(ASKS_TWICE, &["--verify", "true"]).exits(6);
    let Some(terminal) = Terminal::open(&sandbox, 120, 50) else { return };
    let agent = sandbox.agent(ASKS_TWICE);
    terminal.run(&format!("run --verify true --agent-command '{agent}'"));
    terminal.shows(&["2 open questions", "? q1 about A: Which colour for A?", "2. Blue", "q1  [1-2] option"]);
    // Answered from elsewhere, the other one is done, and the first is asked again below it.
    sandbox.launch(&sandbox.root, &["answer", "q2", "1"]).outcome_only().exits(0);
    let asked_below = |screen: &str| {
        let rest = screen.split_once("B done").map_or("", |(_, rest)| rest);
        rest.contains("? q1 about A: Which colour for A?") && rest.contains("q1  [1-2] option")
    };
    let until = Instant::now() + PATIENCE;
    while !asked_below(&terminal.screen()) {
        assert!(Instant::now() < until, "q1 should be asked again:\n{}", terminal.screen());
        std::thread::yield_now();
    }
    terminal.press(&["2", "Enter"]);
    terminal.shows(&["q1 answered by terminal: option 2", "A done", "All tasks complete"]);
    assert!(sandbox.prompt("A", 2).contains("Blue"));
}

/// A question that was left while other work goes on is answered at the terminal in the midst of it.
#[test]
fn a_parked_question_is_answered_while_another_task_is_worked_on() {
    let sandbox = Sandbox::with_tasks(&["A", "C"]);
    let Some(terminal) = Terminal::open(&sandbox, 120, 50) else { return };
    sandbox.write("wiggum.toml", "[people]\nwait = \"0s\"\n");
    sandbox.commit_all("nobody is waited for");
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let agent = sandbox.agent(ASKS_TWICE);
    terminal.run(&format!("run --verify true --agent-command '{agent}'"));
    sandbox.wait_ready();
    terminal.shows(&["? q1 about A", "Iteration 2"]);
    terminal.press(&["q1 2", "Enter"]);
    terminal.shows(&["q1 answered by terminal: option 2"]);
    sandbox.go();
    terminal.shows(&["noise of C", "C done", "A done", "All tasks complete"]);
    assert!(sandbox.prompt("A", 2).contains("Blue"));
}
