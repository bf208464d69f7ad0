//! Work that needs no agent, through the whole engine: files, notices, and calls that are made once.

#![expect(clippy::unwrap_used, reason = "a test may fail here")]

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wiggum_agents::AgentEvent;
use wiggum_core::checker;
use wiggum_core::decide::Waiting;
use wiggum_core::event::{Answer, EndReason, Envelope, Event, Exit, Request};
use wiggum_core::policy::Millis;
use wiggum_core::state::Loop;
use wiggum_core::tasks::TaskState;
use wiggum_engine::checkout::{Checkout, StateRoot};
use wiggum_engine::tools::{CallOutcome, Cancel, NotReady, Ready, ToolCall, Tools};
use wiggum_engine::{Engine, Observer, Outcome, Settings};
use wiggum_workspace::process::{self, CommandLine, Launch};

/// Tools that answer as they were told to, and remember what they were asked.
#[derive(Default)]
struct Scripted {
    answers: Mutex<VecDeque<CallOutcome>>,
    calls: Mutex<Vec<ToolCall>>,
    repeatable: bool,
    /// A file that somebody writes while a tool is called.
    meanwhile: Mutex<Option<(PathBuf, String)>>,
}

impl Scripted {
    fn answering(answers: impl IntoIterator<Item = CallOutcome>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() })
    }

    fn calls(&self) -> Vec<Value> {
        self.calls.lock().unwrap().iter().map(|call| call.params.clone()).collect()
    }
}

struct Mine(Arc<Scripted>);

struct Call(Arc<Scripted>, ToolCall);

impl Tools for Mine {
    fn prepare(&self, call: &ToolCall, _marker: &(String, String)) -> Result<Box<dyn Ready>, NotReady> {
        match call.tool.as_str() {
            "unknown" => Err(NotReady::Permanent { message: "there is no tool `unknown`".to_owned() }),
            "down" => Err(NotReady::Temporary { message: "the server does not answer".to_owned() }),
            _ => self.ready(call),
        }
    }
}

impl Mine {
    fn ready(&self, call: &ToolCall) -> Result<Box<dyn Ready>, NotReady> {
        Ok(Box::new(Call(Arc::clone(&self.0), call.clone())))
    }
}

impl Ready for Call {
    fn is_repeatable(&self) -> bool {
        self.0.repeatable
    }

    fn call(self: Box<Self>, _cancel: &Cancel) -> CallOutcome {
        self.0.calls.lock().unwrap().push(self.1);
        if let Some((path, text)) = self.0.meanwhile.lock().unwrap().take() {
            fs::write(path, text).unwrap();
        }
        let answer = self.0.answers.lock().unwrap().pop_front();
        answer.unwrap_or(CallOutcome::Done { result: r#"{"id": 7}"#.to_owned() })
    }
}

#[derive(Default)]
struct Journal(Vec<Envelope>);

impl Observer for Journal {
    fn event(&mut self, envelope: &Envelope, _: &Loop) {
        self.0.push(envelope.clone());
    }
    fn agent(&mut self, _: &AgentEvent) {}
    fn check_output(&mut self, _: &str) {}
    fn waiting(&mut self, _: &Waiting, _: &Loop) {}
}

struct Ended {
    outcome: Outcome,
    state: Loop,
    events: Vec<Event>,
}

impl Ended {
    fn reason(&self) -> EndReason {
        match &self.outcome {
            Outcome::Ended { reason, .. } => *reason,
            Outcome::Interrupted { signal } => panic!("interrupted by {signal}"),
        }
    }

    fn state_of(&self, task: &str) -> &TaskState {
        &self.state.task(&task.into()).unwrap().state
    }
}

fn call(id: &str, after: &[&str], params: Value) -> Value {
    let work = json!({"kind": "mcp_call", "server": "mail", "tool": "send", "params": params});
    json!({"id": id, "description": id, "status": "pending", "depends_on": after, "work": work})
}

fn write_tasks(dir: &Path, tasks: &[Value]) {
    fs::write(dir.join("tasks.json"), serde_json::to_string_pretty(tasks).unwrap()).unwrap();
}

const PLAN: &str = "---\nplan_id: p1\nobjective: \"try\"\ntotal_steps: 2\ncompleted_steps: 0\nstatus: approved\n\
    iterations_used: 0\nmax_iterations: 10\n---\n\n## Steps\n\n\
    - [ ] **Step 1:** Mail (action_type: mcp_email)\n  - Dependencies: none\n  - MCP Server: mail\n  \
    - Tool: send\n  - Params: {to: \"x\"}\n\n\
    - [ ] **Step 2:** Note it (action_type: create_file)\n  - Dependencies: step_1\n  \
    - File: vault/Notes/sent.md\n  - Content: sent as {{ steps.1.result.id }}\n";

#[test]
fn a_plan_says_how_far_it_is() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("Plan.md"), PLAN).unwrap();
    let tools = Scripted::answering([CallOutcome::Uncertain { message: "no answer".to_owned() }]);
    let plan = || fs::read_to_string(dir.path().join("Plan.md")).unwrap();
    let run = |requests: &[Request]| run_over(dir.path(), "Plan.md", &tools, requests);

    assert_eq!(run(&[]).reason(), EndReason::PersonNeeded);
    let blocked = PLAN.replace("status: approved", "status: blocked").replace("used: 0", "used: 1");
    assert_eq!(plan(), blocked);

    assert_eq!(run(&answer(Answer::Retry)).reason(), EndReason::GoalAchieved);
    let done = PLAN
        .replace("status: approved", "status: completed")
        .replace("used: 0", "used: 2")
        .replace("completed_steps: 0", "completed_steps: 2")
        .replace("[ ]", "[x]");
    assert_eq!(plan(), done);
    assert_eq!(fs::read_to_string(dir.path().join("Notes/sent.md")).unwrap(), "sent as 7");
}

#[test]
fn half_of_a_plan_is_not_all_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("Plan.md");
    let half = &PLAN[..PLAN.find("- [ ] **Step 2").unwrap()];
    fs::write(&path, half).unwrap();
    let tools = Scripted::answering([]);
    let run = |requests: &[Request]| run_over(dir.path(), "Plan.md", &tools, requests);
    let ended = run(&[]);
    assert_eq!(ended.reason(), EndReason::PersonNeeded);
    let Outcome::Ended { detail, .. } = &ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(detail.contains("says 2 steps, but there are 1"), "{detail}");
    assert_eq!(tools.calls().len(), 0);

    // Saved in two goes while it is under way, it is not done with the first.
    fs::write(&path, PLAN).unwrap();
    *tools.meanwhile.lock().unwrap() = Some((path.clone(), half.to_owned()));
    assert_eq!(run(&[]).reason(), EndReason::PersonNeeded);
    let saved = fs::read_to_string(&path).unwrap();
    fs::write(&path, saved + &PLAN[half.len()..]).unwrap();
    assert_eq!(run(&[]).reason(), EndReason::GoalAchieved);
    assert_eq!(tools.calls().len(), 1);
    assert!(dir.path().join("Notes/sent.md").exists());
    assert_journal_is_sound(dir.path());
}

fn run(dir: &Path, tools: &Arc<Scripted>) -> Ended {
    run_with(dir, tools, &[])
}

/// Runs the loop, with requests that wait for it.
fn run_with(dir: &Path, tools: &Arc<Scripted>, requests: &[Request]) -> Ended {
    run_over(dir, "tasks.json", tools, requests)
}

fn run_over(dir: &Path, backlog: &str, tools: &Arc<Scripted>, requests: &[Request]) -> Ended {
    let mut settings = Settings::new(checkout(dir), backlog, Vec::new());
    settings.policy.retry.backoff = Millis(1);
    settings.policy.retry.max_retries = 3;
    settings.tools = Some(Arc::new(Mine(Arc::clone(tools))));
    for request in requests {
        let mut store = store(dir);
        let id = store.loops().unwrap()[0].id;
        store.post(id, request, "test", jiff::Timestamp::UNIX_EPOCH).unwrap();
    }
    let mut journal = Journal::default();
    let mut engine = Engine::open(settings, &mut journal).unwrap();
    let outcome = engine.run().unwrap();
    let state = engine.state().clone();
    drop(engine);
    Ended { outcome, state, events: journal.0.into_iter().map(|envelope| envelope.event).collect() }
}

/// Where the loops of a directory are; their state lies elsewhere.
fn checkout(dir: &Path) -> Checkout {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("state");
    Checkout::new(dir, &StateRoot::new(root))
}

fn store(dir: &Path) -> wiggum_store::Store {
    let found = checkout(dir).find().unwrap().expect("a store");
    wiggum_store::Store::open(&found.database()).unwrap()
}

fn answer(answer: Answer) -> [Request; 1] {
    [Request::Answer { question: wiggum_core::ids::QuestionId(1), answer }]
}

fn assert_journal_is_sound(dir: &Path) {
    let store = store(dir);
    for record in store.loops().unwrap() {
        assert_eq!(checker::check(&store.read(record.id, 0).unwrap()), vec![]);
    }
}

#[test]
fn files_notices_and_calls_are_done_without_an_agent() {
    let dir = tempfile::tempdir().unwrap();
    let file = json!({"kind": "file", "path": "out/{{ steps.mail.result.id }}.md", "content": "id {{ steps.mail.result.id }}"});
    let notice = json!({"kind": "notice", "message": "look at {{ steps.mail.result.id }}"});
    write_tasks(
        dir.path(),
        &[
            call("mail", &[], json!({"to": "a@b.c", "password": "hunter2hunter2"})),
            json!({"id": "file", "description": "f", "status": "pending", "depends_on": ["mail"], "work": file}),
            json!({"id": "tell", "description": "t", "status": "pending", "depends_on": ["file"], "work": notice}),
            call(
                "again",
                &["tell"],
                json!({"subject": "Re: {{ steps.mail.result.id }}", "id": "{{ steps.mail.result.id }}"}),
            ),
        ],
    );
    let tools = Scripted::answering([]);
    let ended = run(dir.path(), &tools);
    assert_eq!(ended.reason(), EndReason::GoalAchieved);
    assert_eq!(fs::read_to_string(dir.path().join("out/7.md")).unwrap(), "id 7");
    assert_eq!(
        tools.calls(),
        [json!({"to": "a@b.c", "password": "hunter2hunter2"}), json!({"subject": "Re: 7", "id": 7})]
    );
    for task in ["mail", "file", "tell", "again"] {
        assert_eq!(*ended.state_of(task), TaskState::Done { verified: true, by_hand: false }, "{task}");
    }
    let told = ended
        .events
        .iter()
        .any(|event| matches!(event, Event::WorkEnded { result, .. } if result.excerpt == "look at 7"));
    assert!(told, "the notice is told");
    let shown = ended.events.iter().find_map(|event| match event {
        Event::CallStarted { params, .. } => Some(params.excerpt.clone()),
        _ => None,
    });
    assert_eq!(shown.unwrap(), r#"{"password":"[redacted]","to":"a@b.c"}"#);
    assert_journal_is_sound(dir.path());
}

#[test]
fn a_refused_call_is_tried_again_and_a_success_on_retry_counts() {
    let dir = tempfile::tempdir().unwrap();
    write_tasks(dir.path(), &[call("mail", &[], json!({}))]);
    let refused = || CallOutcome::Refused { message: "busy".to_owned() };
    let tools = Scripted::answering([refused(), refused()]);
    let ended = run(dir.path(), &tools);
    assert_eq!(ended.reason(), EndReason::GoalAchieved);
    assert_eq!(tools.calls().len(), 3);
    assert_eq!(run(dir.path(), &tools).reason(), EndReason::GoalAchieved);
    assert_eq!(tools.calls().len(), 3, "another run has nothing to do");
    assert_journal_is_sound(dir.path());
}

#[test]
fn a_call_that_keeps_failing_fails_its_task_and_asks() {
    let dir = tempfile::tempdir().unwrap();
    let mut down = call("mail", &[], json!({}));
    down["work"]["tool"] = json!("down");
    write_tasks(dir.path(), &[down, call("later", &["mail"], json!({}))]);
    let tools = Scripted::answering([]);
    let ended = run(dir.path(), &tools);
    assert_eq!(ended.reason(), EndReason::PersonNeeded);
    assert!(matches!(ended.state_of("mail"), TaskState::Failed { .. }));
    let attempts =
        ended.events.iter().filter(|event| matches!(event, Event::IterationStarted { .. })).count();
    assert_eq!(attempts, 4, "the first and three retries");
    assert_eq!(tools.calls(), Vec::<Value>::new());
    assert!(fs::read_to_string(dir.path().join("tasks.json")).unwrap().contains("failed"));
    assert_journal_is_sound(dir.path());
}

#[test]
fn what_cannot_work_is_not_tried_again() {
    let file = |path: &str, content: &str| json!({"kind": "file", "path": path, "content": content});
    let other = |tool: &str| json!({"kind": "mcp_call", "server": "mail", "tool": tool, "params": {}});
    for (work, says) in [
        (other("unknown"), "there is no tool `unknown`"),
        (file("mine.md", "yours"), "say `Overwrite: yes`"),
        (file("../out.md", "x"), "name a file inside"),
        (file("Approved/x.md", "x"), "is not for a plan to write"),
        (file("a.md", "{{ steps.none.result }}"), "has no result"),
        (json!({"kind": "notice", "message": "{{ steps.none.result }}"}), "has no result"),
        (
            json!({"kind": "mcp_call", "server": "m", "tool": "t", "params": {"a": "{{ steps.x.y }}"}}),
            "is not understood",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine.md"), "mine").unwrap();
        let task = json!({"id": "t", "description": "t", "status": "pending", "work": work});
        write_tasks(dir.path(), &[task]);
        let mut settings = Settings::new(checkout(dir.path()), "tasks.json", Vec::new());
        settings.policy.retry.max_retries = 3;
        settings.policy.retry.backoff = Millis::from_secs(3600);
        settings.tools = Some(Arc::new(Mine(Scripted::answering([]))));
        settings.closed = vec!["Approved".to_owned()];
        let mut journal = Journal::default();
        let mut engine = Engine::open(settings, &mut journal).unwrap();
        engine.run().unwrap();
        let state = engine.state().clone();
        drop(engine);
        let TaskState::Failed { reason } = &state.task(&"t".into()).unwrap().state else {
            panic!("{:?}", state.task(&"t".into()))
        };
        assert!(reason.contains(says), "{reason}");
        assert!(!reason.contains("attempts"), "{reason}");
        assert_eq!(state.iterations, 1, "{work}");
        assert_journal_is_sound(dir.path());
    }
}

#[test]
fn nobody_calls_again_what_may_have_happened() {
    let uncertain = || CallOutcome::Uncertain { message: "no answer came".to_owned() };
    let parked = |answers: Vec<CallOutcome>| {
        let dir = tempfile::tempdir().unwrap();
        write_tasks(dir.path(), &[call("mail", &[], json!({})), call("later", &["mail"], json!({}))]);
        let tools = Scripted::answering(answers);
        let ended = run(dir.path(), &tools);
        assert_eq!(ended.reason(), EndReason::PersonNeeded);
        assert!(matches!(ended.state_of("mail"), TaskState::Parked(_)));
        assert_eq!(tools.calls().len(), 1);
        (dir, tools)
    };

    let (dir, tools) = parked(vec![uncertain()]);
    let ended = run(dir.path(), &tools);
    assert_eq!(ended.reason(), EndReason::PersonNeeded, "it still waits");
    let ended = run_with(dir.path(), &tools, &answer(Answer::Words { text: "go on".to_owned() }));
    assert_eq!(ended.reason(), EndReason::PersonNeeded, "words are no leave to call again");
    let ended = run_with(dir.path(), &tools, &answer(Answer::Done));
    assert_eq!(ended.reason(), EndReason::GoalAchieved);
    assert_eq!(tools.calls().len(), 2, "only what came after it");
    assert_journal_is_sound(dir.path());

    let (dir, tools) = parked(vec![uncertain()]);
    let ended = run_with(dir.path(), &tools, &answer(Answer::Option { number: 2 }));
    assert_eq!(ended.reason(), EndReason::GoalAchieved);
    assert_eq!(tools.calls().len(), 3, "a person wanted it called again");
    assert_journal_is_sound(dir.path());

    let (dir, tools) = parked(vec![uncertain()]);
    let ended = run_with(dir.path(), &tools, &answer(Answer::Abort));
    assert_eq!(ended.reason(), EndReason::ExplicitStop);
    let ended = run(dir.path(), &tools);
    assert_eq!(ended.reason(), EndReason::PersonNeeded, "the question is still open");
    assert_eq!(tools.calls().len(), 1);
    assert_journal_is_sound(dir.path());
}

#[test]
fn own_words_never_repeat_a_call() {
    let words = || answer(Answer::Words { text: "do NOT send this mail".to_owned() });
    let refused = || CallOutcome::Refused { message: "busy".to_owned() };
    let told = |ended: &Ended, what: &str| {
        ended.events.iter().any(
            |event| matches!(event, Event::RequestRefused { why, .. } if why.contains("still open") && why.contains(what)),
        )
    };

    // It failed.
    let dir = tempfile::tempdir().unwrap();
    write_tasks(dir.path(), &[call("mail", &[], json!({}))]);
    let tools = Scripted::answering((0..4).map(|_| refused()));
    let failed = run(dir.path(), &tools);
    let asked = failed.state.questions.values().next().unwrap();
    assert!(!failed.state.takes_words(asked));
    assert!(asked.question.question.contains("retry, skip or done"), "{}", asked.question.question);
    let ended = run_with(dir.path(), &tools, &words());
    assert_eq!(ended.reason(), EndReason::PersonNeeded);
    assert_eq!(tools.calls().len(), 4, "nothing is sent");
    assert!(told(&ended, "retry, skip, done"), "{:?}", ended.events);
    assert_eq!(ended.state.questions.len(), 1, "the question is still open");
    // The honest twin: a person says that it is to be sent.
    assert_eq!(run_with(dir.path(), &tools, &answer(Answer::Retry)).reason(), EndReason::GoalAchieved);
    assert_eq!(tools.calls().len(), 5);
    assert_journal_is_sound(dir.path());

    // It was skipped, and another waits on it.
    let dir = tempfile::tempdir().unwrap();
    write_tasks(dir.path(), &[call("mail", &[], json!({})), call("later", &["mail"], json!({}))]);
    let tools = Scripted::answering((0..4).map(|_| refused()));
    run(dir.path(), &tools);
    let blocked = run_with(dir.path(), &tools, &answer(Answer::Skip));
    assert_eq!(blocked.state.questions.len(), 1);
    let second = |answer| [Request::Answer { question: wiggum_core::ids::QuestionId(2), answer }];
    let ended = run_with(dir.path(), &tools, &second(Answer::Words { text: "leave it".to_owned() }));
    assert_eq!(ended.reason(), EndReason::PersonNeeded);
    assert!(told(&ended, "mail"), "{:?}", ended.events);
    assert_eq!(tools.calls().len(), 4);
    run_with(dir.path(), &tools, &second(Answer::Retry));
    assert_eq!(tools.calls().len(), 6, "worked on after all");
    assert_journal_is_sound(dir.path());
}

#[test]
fn done_is_among_the_options_of_a_call_that_failed() {
    let dir = tempfile::tempdir().unwrap();
    write_tasks(dir.path(), &[call("mail", &[], json!({})), call("later", &["mail"], json!({}))]);
    let tools = Scripted::answering((0..4).map(|_| CallOutcome::Refused { message: "busy".to_owned() }));
    let failed = run(dir.path(), &tools);
    let options = &failed.state.questions.values().next().unwrap().question.options;
    let done = options.iter().position(|option| option.contains("done")).unwrap();
    let number = u32::try_from(done).unwrap() + 1;
    let ended = run_with(dir.path(), &tools, &answer(Answer::Option { number }));
    assert_eq!(ended.reason(), EndReason::GoalAchieved);
    assert_eq!(tools.calls().len(), 5, "only the one behind it");
    assert_eq!(*ended.state_of("mail"), TaskState::Done { verified: false, by_hand: true });
    assert_journal_is_sound(dir.path());
}

#[test]
fn secrets_reach_the_tool_and_not_the_journal() {
    // Made up, and joined here so that nobody takes it for a lost one.
    let token = format!("{}{}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let made = format!("{}{}", "xoxb-", "1234567890-abcdefghijkl");
    let dir = tempfile::tempdir().unwrap();
    let params =
        json!({"note": format!("use {token}"), "password": "hunter2", "deep": {"apiKey": ["k1", 2]}});
    let file = json!({"kind": "file", "path": "out.md", "content": format!("key {token}")});
    let notice = json!({"kind": "notice", "message": format!("it is {token}")});
    write_tasks(
        dir.path(),
        &[
            call("mail", &[], params.clone()),
            json!({"id": "file", "description": "f", "status": "pending", "depends_on": ["mail"], "work": file}),
            json!({"id": "tell", "description": "t", "status": "pending", "depends_on": ["file"], "work": notice}),
            call("again", &["tell"], json!({"use": "{{ steps.mail.result.made }}"})),
            call("fails", &["again"], json!({})),
        ],
    );
    let tools = Scripted::answering([
        CallOutcome::Done { result: json!({"made": made}).to_string() },
        CallOutcome::Done { result: "fine".to_owned() },
        CallOutcome::Impossible { message: format!("{token} is not allowed, nor is password=hunter2") },
    ]);
    let ended = run(dir.path(), &tools);
    assert_eq!(ended.reason(), EndReason::PersonNeeded);
    assert_eq!(tools.calls()[..2], [params, json!({"use": made})], "what is used is as it was written");
    assert_eq!(fs::read_to_string(dir.path().join("out.md")).unwrap(), format!("key {token}"));
    for event in &ended.events {
        let line = serde_json::to_string(event).unwrap();
        for secret in [token.as_str(), &made, "hunter2", "\"k1\""] {
            assert!(!line.contains(secret), "{secret} in {line}");
        }
    }
    // Started again, it still knows what to send.
    let ended = run_with(dir.path(), &tools, &[Request::Retry { task: "mail".into() }]);
    assert_eq!(tools.calls().last().unwrap()["password"], "hunter2", "{:?}", ended.outcome);
    assert_journal_is_sound(dir.path());
}

#[test]
fn a_tool_that_can_be_called_twice_is() {
    let dir = tempfile::tempdir().unwrap();
    write_tasks(dir.path(), &[call("read", &[], json!({}))]);
    let answers = Mutex::new([CallOutcome::Uncertain { message: "no answer came".to_owned() }].into());
    let tools = Arc::new(Scripted { answers, repeatable: true, ..Scripted::default() });
    let ended = run(dir.path(), &tools);
    assert_eq!(ended.reason(), EndReason::GoalAchieved);
    assert_eq!(tools.calls().len(), 2);
    assert_journal_is_sound(dir.path());
}

#[test]
fn an_empty_box_does_not_send_a_mail_again_but_a_person_can() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = [call("mail", &[], json!({"to": "a"}))];
    write_tasks(dir.path(), &tasks);
    let tools = Scripted::answering([]);
    run(dir.path(), &tools);
    assert_eq!(tools.calls().len(), 1);

    // As if an old copy of the file came back.
    write_tasks(dir.path(), &tasks);
    let ended = run(dir.path(), &tools);
    assert_eq!(ended.reason(), EndReason::GoalAchieved);
    assert_eq!(tools.calls().len(), 1, "not sent again");
    let told = ended.events.iter().any(
        |event| matches!(event, Event::Noticed { message, .. } if message.contains("wiggum retry mail")),
    );
    assert!(told, "and it says how to");

    // Another mail is another mail.
    write_tasks(dir.path(), &[call("mail", &[], json!({"to": "b"}))]);
    run(dir.path(), &tools);
    assert_eq!(tools.calls(), [json!({"to": "a"}), json!({"to": "b"})]);

    let retry = [Request::Retry { task: "mail".into() }];
    run_with(dir.path(), &tools, &retry);
    assert_eq!(tools.calls().len(), 3);
    assert_journal_is_sound(dir.path());
}

#[test]
fn a_file_is_neither_replaced_unasked_nor_put_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine.md"), "mine").unwrap();
    let file = |id: &str, path: &str, overwrite: bool| {
        let work = json!({"kind": "file", "path": path, "content": "theirs", "overwrite": overwrite});
        json!({"id": id, "description": id, "status": "pending", "max_retries": 0, "work": work})
    };
    let tasks =
        [file("keep", "mine.md", false), file("out", "../out.md", false), file("state", ".wiggum/x", false)];
    write_tasks(dir.path(), &tasks);
    let tools = Scripted::answering([]);
    let ended = run(dir.path(), &tools);
    assert_eq!(ended.reason(), EndReason::PersonNeeded);
    for task in ["keep", "out", "state"] {
        assert!(matches!(ended.state_of(task), TaskState::Failed { .. }), "{task}");
    }
    assert_eq!(fs::read_to_string(dir.path().join("mine.md")).unwrap(), "mine");
    write_tasks(dir.path(), &[file("replace", "mine.md", true)]);
    assert_eq!(run(dir.path(), &tools).reason(), EndReason::GoalAchieved);
    assert_eq!(fs::read_to_string(dir.path().join("mine.md")).unwrap(), "theirs");
    assert_journal_is_sound(dir.path());
}

#[test]
fn a_commit_says_who_did_the_work() {
    let dir = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        // As the engine starts it, or an engine of another test would take it for an orphan.
        let output = process::run(Launch::new(CommandLine::new("git", args), dir.path())).unwrap();
        assert_eq!(output.exit, Exit::Code { code: 0 }, "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["config", "user.name", "Ralph"]);
    git(&["config", "user.email", "ralph@example.com"]);
    fs::write(dir.path().join("Plan.md"), PLAN).unwrap();
    git(&["add", "-A"]);
    git(&["commit", "--quiet", "-m", "first"]);
    let ended = run_over(dir.path(), "Plan.md", &Scripted::answering([]), &[]);
    assert_eq!(ended.reason(), EndReason::GoalAchieved);
    let said = git(&["log", "--format=%s: %(trailers:key=Wiggum-Evidence,valueonly)"]);
    assert!(said.contains("step_1: Mail: the engine did it: call send of mail"), "{said}");
    assert!(said.contains("step_2: Note it: the engine did it: create Notes/sent.md"), "{said}");
    assert_eq!(git(&["status", "--porcelain"]), "");
}
