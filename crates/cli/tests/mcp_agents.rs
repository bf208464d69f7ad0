//! Real coding agents that speak to their loop through our own MCP server. They talk to a scripted model on
//! loopback and to nobody else; where one is not installed (`cargo xtask agents`), that is said.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use serde_json::{Value, json};
use support::{Run, Sandbox};
use wiggum_core::event::{Event, QuestionKind, Report};
use wiggum_testkit::agents::{self, Agent};
use wiggum_testkit::{Scenario, StubModel, Turn};

/// A task `A` whose check is a file with something in it, for an agent that is handed our server.
struct Stage {
    sandbox: Sandbox,
    stub: StubModel,
    agent: Agent,
}

impl Stage {
    fn new(agent: Agent, scenario: impl Into<Scenario>) -> Option<Self> {
        agent.program_or_skip("our MCP server in its hands")?;
        let stub = StubModel::start(scenario).unwrap();
        let mut sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.env("PATH", agents::search_path().to_str().unwrap());
        // Codex wants its home outside of it.
        let temporary = sandbox.base().join("tmp");
        std::fs::create_dir(&temporary).unwrap();
        sandbox.env("TMPDIR", temporary.to_str().unwrap());
        let home = sandbox.base().join("home");
        for (name, value) in agent.environment(&home, &stub.base_url()).unwrap() {
            sandbox.env(&name, &value);
        }
        sandbox.write("wiggum.toml", "[agent]\nbackoff = \"10ms\"\nmcp = true\n");
        sandbox.commit_all("settings");
        Some(Self { sandbox, stub, agent })
    }

    fn run(&self, more: &[&str]) -> Run {
        let mut all = vec!["run", "--headless", "--agent", self.agent.name()];
        all.extend(["--verify", "test -s hello.txt", "--baseline", "off"]);
        all.extend(more);
        self.sandbox.launch(&self.sandbox.root, &all).finish()
    }

    fn reports(&self) -> Vec<Report> {
        let reported = self.sandbox.events().into_iter().filter_map(|event| match event {
            Event::AgentReported { report, .. } => Some(report),
            _ => None,
        });
        reported.collect()
    }

    /// What the model was told that its tools said, all together.
    fn tools_said(&self) -> String {
        self.stub
            .asked()
            .iter()
            .flat_map(|asked| asked.request.tool_results.clone())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// A call of one of our tools, as the agent names it.
fn ours(agent: Agent, tool: &str, input: Value) -> Turn {
    let name = match agent {
        Agent::Claude => format!("mcp__wiggum__{tool}"),
        // Its models find them by a search of their own; what is called is in a namespace.
        Agent::Codex => format!("mcp__wiggum/{tool}"),
        Agent::Copilot | Agent::Gemini => format!("wiggum-{tool}"),
    };
    Turn::calls(&name, input)
}

fn shell(agent: Agent, command: &str) -> Turn {
    let described = json!({"command": command, "description": "a step"});
    match agent {
        Agent::Claude => Turn::calls("Bash", described),
        Agent::Codex => Turn::calls("exec_command", json!({"cmd": command})),
        Agent::Copilot => Turn::calls("bash", described),
        Agent::Gemini => Turn::calls("run_shell_command", described),
    }
}

fn claims_by_a_call(agent: Agent, more: &[&str]) {
    let turns = [
        ours(agent, "report_progress", json!({"message": "writing the file"})),
        shell(agent, "printf 'hello\\n' > hello.txt"),
        ours(agent, "claim_done", json!({"summary": "hello.txt is written"})),
        Turn::says("That was it."),
    ];
    let Some(stage) = Stage::new(agent, turns) else { return };
    let run = stage.run(more);
    let said = stage.tools_said();
    assert_eq!(
        stage.reports(),
        [
            Report::Progress { text: "writing the file".to_owned() },
            Report::Done { text: "hello.txt is written".to_owned() },
        ],
        "{said}\n{:#?}",
        stage.stub.asked().first().map(|asked| asked.request.tools.clone())
    );
    run.exits(0);
    assert_eq!(stage.sandbox.state_of("A"), "done");
    assert!(said.contains("the agent claims done"), "{said}");
    // It was told, and it was not told in vain.
    assert!(stage.stub.asked()[0].request.user.iter().any(|text| text.contains("claim_done")));
}

fn asks_by_a_call(agent: Agent) {
    let question = json!({
        "type": "deviation", "summary": "Two ways to greet", "context": "The task does not say which",
        "options": ["hello", "good morning"], "question": "Which one?"
    });
    let turns = [ours(agent, "raise_escalation", question), Turn::says("I wait for the answer.")];
    let Some(stage) = Stage::new(agent, turns) else { return };
    stage.run(&[]).exits(6);
    let asked = stage.sandbox.events().into_iter().find_map(|event| match event {
        Event::QuestionRaised { question, .. } => Some(question),
        _ => None,
    });
    let asked = asked.unwrap_or_else(|| panic!("{}", stage.tools_said()));
    assert_eq!((asked.kind, asked.options.len()), (QuestionKind::Deviation, 2));
    assert_eq!(asked.summary, "Two ways to greet");
    assert_eq!(stage.sandbox.state_of("A"), "parked");
}

#[test]
fn claude_claims_by_calling_a_tool() {
    claims_by_a_call(Agent::Claude, &[]);
}

#[test]
fn claude_asks_by_calling_a_tool() {
    asks_by_a_call(Agent::Claude);
}

#[test]
fn claude_claims_from_inside_of_bubblewrap() {
    claims_by_a_call(Agent::Claude, &["--sandbox", "bwrap"]);
}

#[test]
fn claude_claims_without_a_sandbox() {
    claims_by_a_call(Agent::Claude, &["--sandbox", "none"]);
}

#[test]
fn codex_claims_by_calling_a_tool() {
    claims_by_a_call(Agent::Codex, &[]);
}

#[test]
fn codex_claims_without_our_sandbox() {
    claims_by_a_call(Agent::Codex, &["--sandbox", "none"]);
}

#[test]
fn codex_asks_by_calling_a_tool() {
    asks_by_a_call(Agent::Codex);
}

#[test]
fn copilot_claims_by_calling_a_tool() {
    claims_by_a_call(Agent::Copilot, &[]);
}

/// A claim through the server is a claim and no more: the checks decide.
#[test]
fn a_claim_that_is_not_true_is_refuted() {
    let agent = Agent::Claude;
    let turns = [
        ours(agent, "claim_done", json!({"summary": "all done"})),
        Turn::says("That was it."),
        shell(agent, "printf 'hello\\n' > hello.txt"),
        ours(agent, "claim_done", json!({"summary": "now it is"})),
        Turn::says("That was it."),
    ];
    let Some(stage) = Stage::new(agent, turns) else { return };
    stage.run(&[]).exits(0);
    assert_eq!(stage.sandbox.trailer("HEAD", "Wiggum-Attempt"), "2");
}

/// Statuses, answers and starts are not offered to an agent, by whatever name it calls them.
#[test]
fn an_agent_is_not_offered_what_people_decide() {
    let agent = Agent::Claude;
    let turns = [Turn::says("Nothing to do.")];
    let Some(stage) = Stage::new(agent, Scenario::from(turns).fallback(Turn::says("Nothing."))) else {
        return;
    };
    stage.run(&["--max-iterations", "1"]);
    let asked = stage.stub.asked();
    let offered = &asked.iter().find(|asked| !asked.request.tools.is_empty()).unwrap().request.tools;
    let ours: Vec<&str> = offered.iter().filter_map(|name| name.strip_prefix("mcp__wiggum__")).collect();
    assert!(ours.contains(&"claim_done"), "{offered:?}");
    for forbidden in ["answer", "update_task", "start_loop", "list_inbox"] {
        assert!(!ours.contains(&forbidden), "{ours:?}");
    }
}

/// What lies where reports lie is believed only as far as an agent may speak, and for its own attempt.
#[test]
fn what_an_agent_puts_there_by_hand_is_not_believed() {
    let agent = Agent::Claude;
    let put = |name: &str, attempt: u32, request: Value| {
        let report = json!({"iteration": 1, "attempt": attempt, "request": request});
        // Beside it: between file systems `mv` writes a file bit by bit.
        format!("printf '%s' '{report}' > $d/half && mv $d/half $d/{name}.json; ")
    };
    let claim =
        json!({"type": "report", "iteration": 1, "attempt": 1, "report": {"report": "done", "text": "x"}});
    let command = [
        "d=$(echo \"$HOME\"/.local/state/wiggum/*/loops/*/agent/reports); ".to_owned(),
        put("1", 1, json!({"type": "stop"})),
        put("2", 1, json!({"type": "set_status", "task": "A", "status": "done"})),
        put("3", 9, claim),
        "ln -s /etc/passwd $d/4.json; echo garbage > $d/5.json; ".to_owned(),
        // Its server tells when all of that was looked at.
        "true".to_owned(),
    ];
    let turns = [
        shell(agent, &command.concat()),
        ours(agent, "report_progress", json!({"message": "still here"})),
        Turn::says("I have nothing to say."),
    ];
    let Some(stage) = Stage::new(agent, Scenario::from(turns).fallback(Turn::says("Nothing."))) else {
        return;
    };
    stage.run(&["--max-iterations", "1"]).exits(3);
    let events = stage.sandbox.events();
    let refused: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::RequestRefused { request: None, why, .. } => Some(why.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(refused.len(), 5, "{refused:#?}");
    assert!(
        refused.iter().filter(|message| message.contains("only people may do")).count() == 2,
        "{refused:#?}"
    );
    assert!(refused.iter().any(|message| message.contains("attempt 9 came too late")), "{refused:#?}");
    assert_eq!(stage.reports(), [Report::Progress { text: "still here".to_owned() }]);
    assert!(
        !events.iter().any(|event| matches!(event, Event::StopRequested { .. } | Event::StatusSet { .. }))
    );
    assert!(stage.sandbox.exists(".wiggum") && std::path::Path::new("/etc/passwd").exists());
    assert_eq!(stage.sandbox.state_of("A"), "open");
}
