//! A loop to look at: five tasks, four iterations, one question, an agent at work.

use std::path::PathBuf;

use jiff::Timestamp;
use uuid::Uuid;
use wiggum_core::activity::Activity;
use wiggum_core::event::{
    BlobRef, Claim, ClaimSource, EVENT_VERSION, EndReason, Envelope, Event, Evidence, Exit, Question,
    QuestionKind, Usage, Verdict,
};
use wiggum_core::ids::{LoopId, QuestionId};
use wiggum_core::policy::{Millis, Policy};
use wiggum_core::task::{Criterion, Task};
use wiggum_engine::desk::attempts::{Attempt, Diff, EvidenceShown, TextRef};
use wiggum_engine::desk::health::LoopHealth;
use wiggum_engine::desk::inbox::Letter;
use wiggum_engine::desk::transcripts::{Entry, EntryKind};
use wiggum_engine::status::{BreakerStatus, HealthStatus, QuestionStatus};
use wiggum_store::{Identity, LoopRecord};
use wiggum_tui::Mirror;

/// Everything an agent may try with a terminal.
const EVIL: &str = "\x1b[31mred text\x1b[0m and a title\x1b]0;owned\x07 \u{202e}desrever\u{202c} zero\u{200b}width \
                    \x1b]52;c;ZXZpbA==\x07\x1b[2J\u{9b}5n z\u{300}\u{301}\u{302}\u{303}\u{304}algo \u{feff}日本語 \r\n\tend";

pub(crate) fn scene(colour: bool) -> Mirror {
    let mut mirror = Mirror::new(PathBuf::from("/home/ralph/dates"), record("main"), at(400), colour);
    let (events, started) = story();
    mirror.events(events);
    mirror.vitals(health("main", true), vec![letter()]);
    mirror.output(4, 1, said());
    let (attempt, diff) = attempt();
    mirror.attempt(attempt, Some(diff), started);
    let idle = LoopHealth {
        questions: Vec::new(),
        state: "completed".to_owned(),
        activity: Activity::Completed,
        ..health("nightly", false)
    };
    mirror.loops(vec![
        (PathBuf::from("/home/ralph/dates"), record("main"), health("main", true)),
        (
            PathBuf::from("/home/ralph/other"),
            LoopRecord { id: LoopId(Uuid::from_u128(8)), ..record("nightly") },
            idle,
        ),
    ]);
    mirror
}

/// The same with words of somebody who means harm, wherever words of others are shown.
pub(crate) fn hostile() -> Mirror {
    let mut mirror = Mirror::new(PathBuf::from("/home/ralph/dates"), record(EVIL), at(400), true);
    let tasks: Vec<Task> = (0..5)
        .map(|number| {
            let mut task = Task::new(format!("{number}\x1b[8m\u{202e}").as_str(), EVIL);
            task.description = EVIL.to_owned();
            task.criteria = vec![Criterion { text: EVIL.to_owned(), check: None }];
            task
        })
        .collect();
    let id = tasks[0].id.to_string();
    let mut story = Story::default();
    story.begin(tasks);
    story.iterate(&id, 1, 10, Verdict::Refuted { reasons: vec![EVIL.to_owned()] });
    let started = story.start(&id, 2, 200);
    mirror.events(story.events);
    let mut letter = letter();
    for text in [&mut letter.loop_name, &mut letter.question.summary, &mut letter.question.context] {
        EVIL.clone_into(text);
    }
    letter.question.options = vec![EVIL.to_owned(), "x".repeat(100_000)];
    mirror.vitals(LoopHealth { waiting: Some(EVIL.to_owned()), ..health(EVIL, true) }, vec![letter]);
    let entry = |kind, text: String| Entry { ms: 1, kind, name: EVIL.to_owned(), text };
    mirror.output(
        2,
        2,
        vec![
            entry(EntryKind::Output, EVIL.to_owned()),
            entry(EntryKind::ToolCall, EVIL.to_owned()),
            entry(EntryKind::ToolError, format!("{EVIL}{}", "long ".repeat(100_000))),
            entry(EntryKind::Notice, EVIL.to_owned()),
        ],
    );
    let (mut attempt, mut diff) = attempt();
    EVIL.clone_into(&mut attempt.task);
    attempt.reasons = vec![EVIL.to_owned()];
    attempt.changed = vec![EVIL.to_owned()];
    diff.text = format!("+{EVIL}\n-{EVIL}\n");
    mirror.attempt(attempt, Some(diff), started);
    mirror.loops(vec![(PathBuf::from(EVIL), record(EVIL), health(EVIL, true))]);
    mirror
}

/// One task is skipped, and nothing goes on until a person answers.
pub(crate) fn blocked() -> Mirror {
    let mut mirror = Mirror::new(PathBuf::from("/home/ralph/dates"), record("main"), at(400), true);
    let mut story = Story::default();
    story.begin(vec![Task::new("A", "one"), Task::new("B", "two")]);
    story.tell(6, Event::TaskSkipped { task: "A".into(), by: "somebody".to_owned() });
    mirror.events(story.events);
    let waits = LoopHealth { activity: Activity::Blocked, health: None, ..health("main", true) };
    mirror.vitals(waits, vec![letter()]);
    mirror
}

/// An engine was killed while it worked on the first of two tasks.
pub(crate) fn killed() -> Mirror {
    let mut mirror = Mirror::new(PathBuf::from("/home/ralph/dates"), record("main"), at(400), true);
    let mut story = Story::default();
    let mut second = Task::new("B", "two");
    second.depends_on = vec!["A".into()];
    story.begin(vec![Task::new("A", "one"), second]);
    story.start("A", 1, 10);
    mirror.events(story.events);
    let died =
        LoopHealth { activity: Activity::Died, interrupted: true, died: true, ..health("main", false) };
    mirror.vitals(died, Vec::new());
    mirror
}

/// All that was to be done is done, but for a task that was skipped.
pub(crate) fn done_but_for_one() -> Mirror {
    let mut mirror = Mirror::new(PathBuf::from("/home/ralph/dates"), record("main"), at(400), true);
    let mut story = Story::default();
    story.begin(vec![Task::new("A", "one"), Task::new("B", "two")]);
    story.tell(6, Event::TaskSkipped { task: "A".into(), by: "somebody".to_owned() });
    let detail = "1 done, 1 skipped".to_owned();
    story.tell(7, Event::RunEnded { run: 1, reason: EndReason::GoalAchieved, detail });
    mirror.events(story.events);
    mirror.vitals(LoopHealth { activity: Activity::Completed, ..health("main", false) }, Vec::new());
    mirror
}

/// A loop with many tasks, each waiting on one before it.
pub(crate) fn crowd(tasks: usize) -> Mirror {
    let mut mirror = Mirror::new(PathBuf::from("/home/ralph/crowd"), record("crowd"), at(400), true);
    let task = |number: usize| {
        let mut task =
            Task::new(format!("T{number}").as_str(), format!("A thing to do, task {number} of many"));
        task.depends_on =
            (number > 0).then(|| format!("T{}", number / 2).as_str().into()).into_iter().collect();
        task
    };
    let mut story = Story::default();
    story.begin((0..tasks).map(task).collect());
    story.start("T0", 1, 5);
    mirror.events(story.events);
    mirror.vitals(health("crowd", true), Vec::new());
    mirror
}

fn story() -> (Vec<Envelope>, u64) {
    let task = |id: &str, title: &str, after: &[&str]| {
        let mut task = Task::new(id, title);
        task.depends_on = after.iter().map(|id| (*id).into()).collect();
        task.description = format!("{title}, with tests that show it.");
        task.criteria = vec![Criterion { text: "cargo test passes".to_owned(), check: None }];
        task
    };
    let mut story = Story::default();
    story.begin(vec![
        task("setup", "Set up the crate and its checks", &[]),
        task("parser", "Parse dates in all the formats people use", &["setup"]),
        task("zones", "Know time zones and their changes", &["setup"]),
        task("format", "Write dates as 2026年11月15日 and otherwise", &["setup"]),
        task(
            "cli",
            "A command that converts between formats and zones, with a help text that teaches",
            &["parser", "zones"],
        ),
    ]);
    story.iterate(
        "setup",
        1,
        10,
        Verdict::Refuted { reasons: vec!["verify failed: 2 tests failed".to_owned()] },
    );
    story.iterate("setup", 2, 70, Verdict::Accepted { verified: true });
    story.iterate("parser", 1, 180, Verdict::Asked);
    story.ask("parser", 260);
    let started = story.start("zones", 1, 300);
    (story.events, started)
}

#[derive(Default)]
struct Story {
    events: Vec<Envelope>,
    iteration: u32,
}

impl Story {
    fn tell(&mut self, second: i64, event: Event) -> u64 {
        let seq = self.events.len() as u64 + 1;
        self.events.push(Envelope {
            v: EVENT_VERSION,
            seq,
            id: Uuid::nil(),
            at: at(second),
            epoch: 1,
            event,
        });
        seq
    }

    fn begin(&mut self, tasks: Vec<Task>) {
        let text = |text: &str| text.to_owned();
        let mut policy = Policy::default();
        policy.limits.iterations = Some(50);
        policy.budget.own.max_cost = Some(5.0);
        self.tell(
            0,
            Event::LoopCreated {
                loop_id: id(),
                name: text("main"),
                repository: text("/home/ralph/dates"),
                backlog: text("PRD.json"),
            },
        );
        self.tell(
            1,
            Event::RunStarted {
                run: 1,
                policy: Box::new(policy),
                agent: text("claude"),
                version: text("0.1.0"),
                git: true,
                sandbox: String::new(),
                tree: String::new(),
            },
        );
        self.tell(
            2,
            Event::BacklogRead {
                revision: text("r"),
                added: tasks,
                changed: Vec::new(),
                removed: Vec::new(),
                order: None,
            },
        );
    }

    fn start(&mut self, task: &str, attempt: u32, second: i64) -> u64 {
        self.iteration += 1;
        let iteration = self.iteration;
        self.tell(
            second,
            Event::IterationStarted {
                iteration,
                task: task.into(),
                attempt,
                base: Some("0123456789abcdef".to_owned()),
                branch: None,
                carried: None,
                command: "claude -p".to_owned(),
                agent: "claude".to_owned(),
                session: None,
                workspace: "/home/ralph/dates".to_owned(),
                prompt: BlobRef::default(),
                accepted: false,
            },
        )
    }

    fn iterate(&mut self, task: &str, attempt: u32, second: i64, verdict: Verdict) {
        self.start(task, attempt, second);
        let iteration = self.iteration;
        let claimed = !matches!(verdict, Verdict::Asked);
        let claim = claimed
            .then(|| Claim { text: "<promise>DONE</promise>".to_owned(), source: ClaimSource::Promise });
        let usage = Usage {
            input_tokens: 21_400,
            output_tokens: 1830,
            cache_read_tokens: 90_000,
            cache_write_tokens: 0,
            cost_usd: 0.42,
        };
        self.tell(
            second + 40,
            Event::AgentEnded {
                iteration,
                attempt,
                exit: Exit::Code { code: 0 },
                message: BlobRef { excerpt: "All done.".to_owned(), ..BlobRef::default() },
                duration: Millis(40_000),
                usage: Some(usage),
                claim,
                questions: Vec::new(),
                error: None,
                facts: Box::default(),
                phrase: None,
                flags: Vec::new(),
                notes: Box::default(),
                ended_processes: 0,
            },
        );
        let passed = matches!(verdict, Verdict::Accepted { .. });
        if claimed {
            self.tell(
                second + 50,
                Event::EvidenceGathered {
                    iteration,
                    attempt,
                    evidence: Evidence {
                        name: "verify".to_owned(),
                        command: "cargo test".to_owned(),
                        exit: Exit::Code { code: i32::from(!passed) },
                        output: BlobRef { excerpt: "2 tests failed".to_owned(), ..BlobRef::default() },
                        duration: Millis(9800),
                        former: false,
                        clean: false,
                        tests: None,
                        withheld: Vec::new(),
                    },
                },
            );
        }
        self.tell(second + 50, Event::Judged { iteration, attempt, verdict, signals: Vec::new() });
        if passed {
            let commit = Some("89abcdef01234567".to_owned());
            self.tell(
                second + 52,
                Event::TaskCompleted { iteration, task: task.into(), attempt, commit, verified: true },
            );
        }
    }

    fn ask(&mut self, task: &str, second: i64) {
        self.tell(
            second,
            Event::QuestionRaised {
                id: QuestionId(1),
                task: Some(task.into()),
                question: Question {
                    kind: QuestionKind::Stuck,
                    summary: "Which date format?".to_owned(),
                    context: "The task names none.".to_owned(),
                    options: vec!["ISO 8601".to_owned(), "What the locale says".to_owned()],
                    question: "Which one is the default?".to_owned(),
                },
            },
        );
    }
}

fn said() -> Vec<Entry> {
    let entry =
        |ms, kind, name: &str, text: &str| Entry { ms, kind, name: name.to_owned(), text: text.to_owned() };
    vec![
        entry(10, EntryKind::Output, "", "I look at what is there first.\n"),
        entry(20, EntryKind::ToolCall, "Bash", "cargo test --quiet 2>&1 | tail -20"),
        entry(900, EntryKind::ToolResult, "", "running 12 tests\n............\ntest result: ok. 12 passed\n"),
        entry(
            950,
            EntryKind::Output,
            "",
            "The tests pass. Zones have rules that change, so they belong into data and not into code: a table of transitions for each zone, searched by halves.\n",
        ),
        entry(
            990,
            EntryKind::ToolCall,
            "Edit",
            "src/zones.rs\n-fn offset() -> i32\n+fn offset(at: Instant) -> i32",
        ),
        entry(1010, EntryKind::ToolError, "", "String to replace not found in file.\n"),
        entry(1020, EntryKind::Notice, "", "tries again: overloaded"),
        entry(1050, EntryKind::Output, "", "Writing it anew"),
    ]
}

fn attempt() -> (Attempt, Diff) {
    let attempt = Attempt {
        iteration: 4,
        attempt: 1,
        task: "zones".to_owned(),
        agent: "claude".to_owned(),
        command: "claude -p".to_owned(),
        started_at: Some(at(300)),
        ended_at: Some(at(352)),
        outcome: "claim refuted".to_owned(),
        reasons: vec!["verify failed: exit code 1".to_owned()],
        exit: Some("exit code 0".to_owned()),
        agent_ms: Some(40_000),
        model: Some("opus".to_owned()),
        claim: Some("<promise>DONE</promise>".to_owned()),
        message: Some(TextRef { sha256: String::new(), bytes: 10, end: "All done.\n".to_owned() }),
        evidence: vec![EvidenceShown {
            name: "verify".to_owned(),
            command: "cargo test".to_owned(),
            passed: false,
            exit: "exit code 1".to_owned(),
            duration_ms: 9800,
            output: TextRef { sha256: String::new(), bytes: 15, end: "2 tests failed\n".to_owned() },
        }],
        changed: vec!["src/zones.rs".to_owned()],
        changed_total: 1,
        kept: Some("fedcba9876543210".to_owned()),
        base: Some("0123456789abcdef".to_owned()),
        ..Attempt::default()
    };
    let text = "diff --git a/src/zones.rs b/src/zones.rs\n--- a/src/zones.rs\n+++ b/src/zones.rs\n@@ -1,3 +1,3 @@\n \
                use std::fmt;\n-fn offset() -> i32 { 0 }\n+fn offset(at: Instant) -> i32 { table(at) }\n";
    (attempt, Diff { of: "unfinished work fedcba987".to_owned(), text: text.to_owned() })
}

fn letter() -> Letter {
    Letter {
        loop_id: id().to_string(),
        loop_name: "main".to_owned(),
        backlog: "PRD.json".to_owned(),
        question: QuestionStatus {
            id: "q1".to_owned(),
            task: Some("parser".to_owned()),
            kind: "stuck".to_owned(),
            summary: "Which date format?".to_owned(),
            context: "The task names none.".to_owned(),
            question: "Which one is the default?".to_owned(),
            options: vec!["ISO 8601".to_owned(), "What the locale says".to_owned()],
            takes_words: true,
            raised_at: at(260),
        },
        answer_with: String::new(),
        answered: None,
    }
}

fn health(name: &str, alive: bool) -> LoopHealth {
    LoopHealth {
        loop_id: id().to_string(),
        name: name.to_owned(),
        repository: "/home/ralph/dates".to_owned(),
        backlog: "PRD.json".to_owned(),
        state: "running".to_owned(),
        activity: Activity::Running,
        done: 1,
        total: 5,
        task: Some("zones".to_owned()),
        engine: alive.then_some(4711),
        interrupted: false,
        died: false,
        health: alive.then(|| HealthStatus {
            health: "healthy".to_owned(),
            since: at(300),
            last_beat: at(397),
            nudges: 0,
            detail: String::new(),
        }),
        breaker: BreakerStatus { state: "closed".to_owned(), ..BreakerStatus::default() },
        waiting: None,
        questions: vec!["wiggum answer q1".to_owned()],
        termination_reason: None,
    }
}

fn record(name: &str) -> LoopRecord {
    let identity = Identity {
        repository: "/home/ralph/dates".to_owned(),
        backlog: "PRD.json".to_owned(),
        name: name.to_owned(),
    };
    LoopRecord { id: id(), identity, created_at: at(0) }
}

fn id() -> LoopId {
    LoopId(Uuid::from_u128(7))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_794_700_800 + second).unwrap()
}

/// Somebody else answers the question.
pub(crate) fn answered(mirror: &mut Mirror) {
    mirror.vitals(health("main", true), Vec::new());
}

/// The loop that was looked at first is read once more.
pub(crate) fn opened(mirror: &mut Mirror) {
    mirror.open(PathBuf::from("/home/ralph/dates"), record("main"));
}

/// Long texts: a diff with lines wider than any screen, and a question that tells a story.
pub(crate) fn long(mirror: &mut Mirror) {
    let (_, started) = story();
    let (attempt, mut diff) = attempt();
    diff.text =
        format!("{}+{} the very end\n", format!("+{}\n", "word ".repeat(60)).repeat(30), "x".repeat(500));
    mirror.attempt(attempt, Some(diff), started);
    let mut letter = letter();
    letter.question.context = "A line of the story.\n".repeat(100);
    mirror.vitals(health("main", true), vec![letter]);
}
