//! `wiggum run --agent api`: the whole way from the command line to a model on loopback and back.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::{Run, Sandbox};
use wiggum_core::event::{AgentFacts, Event, Trouble, Usage};
use wiggum_testkit::{HttpError, Scenario, StubModel, Turn, When};

/// How long a test waits for what should come at once.
const PATIENCE: Duration = Duration::from_secs(60);

fn stub(scenario: impl Into<Scenario>) -> (StubModel, String) {
    let stub = StubModel::start(scenario).unwrap();
    let url = format!("{}/v1", stub.base_url());
    (stub, url)
}

fn run(sandbox: &Sandbox, url: &str, more: &[&str]) -> Run {
    let mut args = vec!["run", "--headless", "--agent", "api", "--model", "stub-model", "--base-url", url];
    args.extend(more);
    sandbox.wiggum(&args)
}

/// A turn for attempts whose prompt says this.
fn when(words: &str, turn: Turn) -> Turn {
    turn.when(When::First(words.to_owned()))
}

fn writes(path: &str, content: &str) -> Turn {
    Turn::calls("write", json!({"path": path, "content": content}))
}

fn claims() -> Turn {
    Turn::says("It is done.\n\n<promise>DONE</promise>")
}

fn facts(sandbox: &Sandbox) -> Vec<(AgentFacts, Option<Usage>)> {
    let ended = sandbox.events().into_iter().filter_map(|event| match event {
        Event::AgentEnded { facts, usage, .. } => Some((*facts, usage)),
        _ => None,
    });
    ended.collect()
}

#[test]
fn a_backlog_is_worked_off_with_a_refuted_claim_on_the_way() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let (stub, url) = stub([
        // The first attempt claims what it did not do.
        when("Do A", claims()),
        // The second one hears why it was not believed.
        when("no-a-yet", writes("a.txt", "a\n").and_calls("run", json!({"command": "test -f a.txt"}))),
        when("no-a-yet", claims()),
        when("Do B", writes("b.txt", "b\n")),
        when("Do B", claims()),
    ]);
    let verify = "test -f a.txt || { echo no-a-yet; exit 3; }";
    run(&sandbox, &url, &["--baseline", "off", "--verify", verify]).exits(0).says("claimed, but not done");

    assert_eq!(sandbox.worked_on(), ["A", "A", "B"]);
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A", "B: Do B"]);
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "b.txt"]);
    assert_eq!(sandbox.read("a.txt"), "a\n");
    assert_eq!(stub.asked().len(), 5);

    let facts = facts(&sandbox);
    let (second, usage) = &facts[1];
    assert_eq!((second.model.as_deref(), second.tool_calls), (Some("stub-model"), 2));
    let usage = usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_usd), (2400, 80, 0.0));
}

#[test]
fn every_provider_is_configured_by_file_variable_or_flag() {
    let check = |setup: &dyn Fn(&mut Sandbox, &str), args: &[&str], header: Option<(&str, &str)>| {
        let mut sandbox = Sandbox::with_tasks(&["A"]);
        let (stub, url) = stub([writes("a", "a"), claims()]);
        setup(&mut sandbox, &url);
        let mut all = vec!["run", "--headless"];
        all.extend(args);
        sandbox.wiggum(&all).exits(0);
        let request = &stub.requests()[0];
        assert_eq!(request.body["model"], "m");
        if let Some((name, value)) = header {
            assert_eq!(request.headers.get(name).map(String::as_str), Some(value), "{args:?}");
        }
        request.path.clone()
    };
    let agent_file = |text: &'static str| {
        move |sandbox: &mut Sandbox, url: &str| {
            sandbox.write("wiggum.toml", &text.replace("URL", url));
            sandbox.commit_all("settings");
        }
    };
    let claude = "[agents.mine]\nfamily = \"api\"\nprovider = \"anthropic\"\nbase_url = \"URL\"\nmodel = \"m\"\n\
                  key_env = \"MY_KEY\"\nprices = { input = \"1\", output = \"2\" }\nenv = { MY_KEY = \"k\" }\n";
    let path = check(&agent_file(claude), &["--agent", "mine"], Some(("anthropic-version", "2023-06-01")));
    assert_eq!(path, "/v1/messages");

    let local = "[agent]\nname = \"api\"\nprovider = \"llama\"\nbase_url = \"URL\"\nmodel = \"m\"\n";
    assert_eq!(check(&agent_file(local), &[], None), "/v1/chat/completions");

    let variables = |sandbox: &mut Sandbox, url: &str| {
        let set = [("AGENT", "api"), ("PROVIDER", "github-models"), ("BASE_URL", url), ("MODEL", "m")];
        set.iter().for_each(|(name, value)| sandbox.env(&format!("WIGGUM_{name}"), value));
        sandbox.env("GITHUB_TOKEN", "ghp_stub");
    };
    check(&variables, &[], Some(("x-github-api-version", "2022-11-28")));

    let copilot = |sandbox: &mut Sandbox, url: &str| {
        sandbox.env("WIGGUM_AGENT_BASE_URL", url);
        sandbox.env("GH_TOKEN", "gho_stub");
    };
    let args = ["--agent", "api", "--provider", "copilot", "--model", "m"];
    check(&copilot, &args, Some(("openai-intent", "conversation-edits")));
}

#[test]
fn what_is_missing_is_said_before_anything_runs() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    let complaint = |sandbox: &Sandbox, args: &[&str], words: &[&str]| {
        let mut all = vec!["run", "--headless", "--agent", "api"];
        all.extend(args);
        sandbox.wiggum(&all).complains(2, words);
    };
    complaint(&sandbox, &["--model", "m"], &["needs to know whom to ask", "hint: ", "ollama"]);
    complaint(&sandbox, &["--provider", "openai"], &["needs a model", "hint: "]);
    complaint(&sandbox, &["--provider", "openai", "--model", "m"], &["OPENAI_API_KEY is not set", "key_env"]);
    complaint(&sandbox, &["--provider", "opnai", "--model", "m"], &["did you mean \"openai\""]);
    complaint(&sandbox, &["--base-url", "localhost:1", "--model", "m"], &["is not the address", "hint: "]);
    // Nobody takes over who could.
    let fallback = "[agents.other]\nfamily = \"api\"\nprovider = \"anthropic\"\nmodel = \"m\"\n";
    sandbox.write("wiggum.toml", fallback);
    let both = ["--provider", "openai", "--model", "m", "--fallback", "other"];
    complaint(&sandbox, &both, &["OPENAI_API_KEY is not set"]);
    sandbox.env("WIGGUM_AGENT_PRICES", "{ inptu = \"3\" }");
    complaint(&sandbox, &["--provider", "ollama", "--model", "m"], &["no name `inptu`", "hint: "]);
    assert!(!sandbox.has_store());
}

#[test]
fn its_key_reaches_it_and_nobody_else() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.env("OPENAI_API_KEY", "sk-very-secret-key");
    sandbox.env("OTHER_API_KEY", "another-secret-key");
    let (_stub, url) = stub([Turn::calls("run", json!({"command": "env > seen.txt"})), claims()]);
    run(&sandbox, &url, &["--provider", "openai"]).exits(0);
    let seen = sandbox.read("seen.txt");
    assert!(seen.contains("WIGGUM_TASK_ID=A") && !seen.contains("secret"), "{seen}");
}

#[test]
fn a_fault_of_the_provider_costs_nothing_and_the_next_agent_takes_over() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let (stub, url) = stub([
        Turn::fails(HttpError::new(429, "slow down").header("retry-after", "86400")),
        Turn::says("never"),
    ]);
    let other = sandbox.agent_named("other", support::WORKER);
    let section = format!("[agents.other]\ncommand = \"{other}\"\n");
    sandbox.write("wiggum.toml", &section);
    sandbox.commit_all("settings");
    run(&sandbox, &url, &["--fallback", "other"]).exits(0);
    assert_eq!(stub.asked().len(), 1);
    assert_eq!(sandbox.worked_on().len(), 2);
    let (facts, _) = &facts(&sandbox)[0];
    assert!(matches!(facts.trouble, Some(Trouble::UsageLimit { resets_at: Some(_) })), "{facts:?}");
    assert_eq!(sandbox.read("A.txt"), "A\n");
}

#[test]
fn what_its_commands_start_ends_with_it() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let line = format!("(setsid sleep 1000 &) ; echo $$ > {}/ready; sleep 1000", sandbox.base().display());
    let (stub, url) = stub([Turn::calls("run", json!({"command": line})).forever()]);
    let args =
        ["run", "--headless", "--agent", "api", "--model", "m", "--base-url", &url, "--max-iterations", "1"];
    let started = sandbox.launch(&sandbox.root, &args);
    assert!(stub.wait_asked(1, PATIENCE));
    sandbox.wait_ready();
    started.signal("INT");
    // Looks for what is left, too.
    started.finish().exits(130);
}

#[test]
fn the_agents_are_listed_with_their_keys() {
    let mut sandbox = Sandbox::new();
    sandbox.env("OPENAI_API_KEY", "sk-stub-stub");
    sandbox.write(
        "wiggum.toml",
        "[agent]\nname = \"gpt\"\n[agents.gpt]\nfamily = \"api\"\nprovider = \"openai\"\nmodel = \"gpt-5\"\n\
         prices = { input = \"1\", output = \"2\" }\n\
         [agents.claude-api]\nfamily = \"api\"\nprovider = \"anthropic\"\n\
         [agents.local]\nfamily = \"api\"\nprovider = \"ollama\"\n",
    );
    let listed: Vec<Value> =
        serde_json::from_str(&sandbox.wiggum(&["agents", "--json"]).exits(0).stdout).unwrap();
    let row = |name: &str| listed.iter().find(|row| row["name"] == name).unwrap();
    let login = |name: &str| (row(name)["logged_in"].clone(), row(name)["login"].clone());
    assert_eq!(login("gpt"), (json!(true), json!("OPENAI_API_KEY is set")));
    assert_eq!(login("claude-api"), (json!(false), json!("set ANTHROPIC_API_KEY")));
    assert_eq!(login("local"), (json!(true), json!("needs no key")));
    assert_eq!(login("api").0, json!(false));
    assert_eq!(row("gpt")["choice"], 1);
    assert_eq!(row("gpt")["can"], json!(["live", "usage", "cost", "budget", "resume"]));
    assert_eq!(row("api")["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_session_goes_on_from_task_to_task_if_it_should() {
    for (flag, heard) in [(None, 1), (Some("--continue"), 2)] {
        let sandbox = Sandbox::with_tasks(&["A", "B"]);
        let (stub, url) = stub([writes("a", "a"), claims(), writes("b", "b"), claims()]);
        let args: Vec<&str> = flag.into_iter().chain(["--verify", "true"]).collect();
        run(&sandbox, &url, &args).exits(0);
        assert_eq!(stub.asked()[3].request.user.len(), heard, "{flag:?}");
        let sessions: Vec<_> = facts(&sandbox).into_iter().map(|(facts, _)| facts.session.unwrap()).collect();
        assert_eq!(sessions[0] == sessions[1], flag.is_some());
    }
}

#[test]
fn cost_is_told_only_if_it_is_known() {
    let cost = |prices: &str| {
        let mut sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.env("WIGGUM_AGENT_PRICES", prices);
        let (_stub, url) = stub([claims()]);
        run(&sandbox, &url, &[]).exits(0);
        let told = sandbox.wiggum(&["tokens"]).exits(0).stdout;
        told.lines().nth(2).unwrap().split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(cost(""), "unpriced");
    assert_eq!(cost("{ input = \"100\", output = \"1000\" }"), "$0.16");
}

#[test]
fn it_is_told_what_is_left_and_ends_in_order_before_a_call_that_would_go_beyond() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let usage = wiggum_testkit::Usage { input: 500_000, ..Default::default() };
    let (stub, url) = stub([
        when("Do A", writes("a.txt", "a\n").uses(usage)),
        when("Do A", claims().uses(usage)),
        when("Do B", writes("b.txt", "b\n").uses(usage)).forever(),
    ]);
    let config = "[budget]\nmax_cost = 1.1\n[handoff]\nbudget_threshold = 0\n[prices.\"stub-model\"]\ninput = 1\noutput = 1\n";
    sandbox.write("wiggum.toml", config);
    sandbox.commit_all("settings");
    run(&sandbox, &url, &["--verify", "true"])
        .exits(4)
        .says("handed over: 136 % of the budget is spent")
        .says("spent $1.50 of $1.10 (loop budget), $0.40 over");
    // $0.5 each: two for A; the first for B begins with $0.1 left, and no other follows it.
    assert_eq!(stub.asked().len(), 3);
    let state = sandbox.state();
    let entry = state.task(&"B".into()).unwrap();
    assert_eq!((entry.failures, entry.kept.is_some()), (0, true));
    let last = facts(&sandbox).pop().unwrap();
    assert_eq!(last.0.trouble, Some(Trouble::Budget));
}
