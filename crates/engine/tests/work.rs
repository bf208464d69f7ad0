//! Work that needs no agent, through the whole engine: files, notices, and calls that are made once.

#![expect(clippy::unwrap_used, reason = "a test may fail here")]

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wiggum_agents::AgentEvent;
use wiggum_core::checker;
use wiggum_core::decide::Waiting;
use wiggum_core::event::{Answer, EndReason, Envelope, Event, Exit, Request};
use wiggum_core::policy::Millis;
use wiggum_core::state::Loop;
use wiggum_core::tasks::TaskState;
use wiggum_engine::tools::{CallOutcome, Cancel, Ready, ToolCall, Tools};
use wiggum_engine::{Engine, Observer, Outcome, Settings};
use wiggum_workspace::process::{self, CommandLine, Launch};

/// Tools that answer as they were told to, and remember what they were asked.
#[derive(Default)]
struct Scripted {
    answers: Mutex<VecDeque<CallOutcome>>,
    calls: Mutex<Vec<ToolCall>>,
    repeatable: bool,
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
    fn prepare(&self, call: &ToolCall, _marker: &(String, String)) -> Result<Box<dyn Ready>, String> {
        if call.tool == "unknown" {
            return Err("there is no tool `unknown`".to_owned());
        }
        Ok(Box::new(Call(Arc::clone(&self.0), call.clone())))
    }
}

impl Ready for Call {
    fn is_repeatable(&self) -> bool {
        self.0.repeatable
    }

    fn call(self: Box<Self>, _cancel: &Cancel) -> CallOutcome {
        self.0.calls.lock().unwrap().push(self.1);
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
        .replace("used: 0", "used: 3")
        .replace("completed_steps: 0", "completed_steps: 2")
        .replace("[ ]", "[x]");
    assert_eq!(plan(), done);
    assert_eq!(fs::read_to_string(dir.path().join("Notes/sent.md")).unwrap(), "sent as 7");
}

fn run(dir: &Path, tools: &Arc<Scripted>) -> Ended {
    run_with(dir, tools, &[])
}

/// Runs the loop, with requests that wait for it.
fn run_with(dir: &Path, tools: &Arc<Scripted>, requests: &[Request]) -> Ended {
    run_over(dir, "tasks.json", tools, requests)
}

fn run_over(dir: &Path, backlog: &str, tools: &Arc<Scripted>, requests: &[Request]) -> Ended {
    let mut settings = Settings::new(dir, backlog, Vec::new());
    settings.policy.retry.backoff = Millis(1);
    settings.policy.retry.max_retries = 3;
    settings.tools = Some(Arc::new(Mine(Arc::clone(tools))));
    for request in requests {
        let mut store = wiggum_store::Store::open(&dir.join(".wiggum/wiggum.db")).unwrap();
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

fn answer(answer: Answer) -> [Request; 1] {
    [Request::Answer { question: wiggum_core::ids::QuestionId(1), answer }]
}

fn assert_journal_is_sound(dir: &Path) {
    let store = wiggum_store::Store::open(&dir.join(".wiggum/wiggum.db")).unwrap();
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
        assert_eq!(*ended.state_of(task), TaskState::Done { verified: true }, "{task}");
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
    let mut unknown = call("mail", &[], json!({}));
    unknown["work"]["tool"] = json!("unknown");
    write_tasks(dir.path(), &[unknown, call("later", &["mail"], json!({}))]);
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
