//! Money as a user meets it: runs that end, wait or warn, loops that share a budget, and what they
//! cost.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{Sandbox, prd};
use wiggum_core::budget::Spans;
use wiggum_core::checker;
use wiggum_core::event::{Envelope, Event};
use wiggum_core::state::Loop;
use wiggum_store::{Registry, Store};

/// A scenario in which every call costs so much; `more` are further steps before that.
fn scenario(sandbox: &Sandbox, cost: f64, more: &str) -> String {
    let path = sandbox.base().join("scenario.toml");
    let text = format!(
        "[[attempt]]\nsteps = [\n{{ run = \"echo x >> $WIGGUM_TASK_ID.txt\" }},\n{more}\n\
         {{ usage = {{ input_tokens = 100, output_tokens = 20, cache_read_tokens = 300, cost_usd = {cost} }} }},\n\
         {{ claim = \"\" }},\n]\n"
    );
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn run(sandbox: &Sandbox, cost: f64, args: &[&str]) -> support::Run {
    let scenario = scenario(sandbox, cost, "");
    let mut all = vec!["run", "--headless", "--scenario", &scenario];
    all.extend(args);
    sandbox.wiggum(&all)
}

fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    serde_json::from_str(&sandbox.wiggum(args).exits(0).stdout).unwrap()
}

fn alerts(sandbox: &Sandbox) -> Vec<f64> {
    let alert = |event| match event {
        Event::BudgetAlert { threshold, .. } => Some(threshold),
        _ => None,
    };
    sandbox.events().into_iter().filter_map(alert).collect()
}

#[test]
fn a_run_ends_when_its_budget_is_used_up_and_goes_on_when_it_is_raised() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C", "D", "E"]);
    run(&sandbox, 0.4, &["--max-cost", "1"])
        .exits(4)
        .says("spent $1.20 of $1.00 (loop budget), $0.20 over (budget_exhausted)")
        .says("$0.80 of $1.00 are spent (budget: loop)")
        .says("hint: raise the budget (--max-cost");
    assert_eq!(sandbox.worked_on(), ["A", "B", "C"]);
    assert_eq!(alerts(&sandbox), [0.8]);
    let status = json(&sandbox, &["status", "--json"]);
    let status = status.get("loops").map_or(&status, |loops| loops);
    let first = status.get(0).unwrap_or(status);
    assert_eq!(first["termination_reason"], "budget_exhausted", "{status}");
    // What was spent stays spent, and is not told again.
    run(&sandbox, 0.4, &["--max-cost", "1"]).exits(4).never_says("are spent");
    assert_eq!((sandbox.worked_on().len(), alerts(&sandbox).len()), (3, 1));
    run(&sandbox, 0.4, &["--max-cost", "10"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "B", "C", "D", "E"]);
}

/// A scenario in which the agent at B would go on for 21 answers.
fn goes_on(sandbox: &Sandbox) -> String {
    let answer = "{ usage = { input_tokens = 100, cost_usd = 0.9 } },\n";
    let busy = "{ write = { path = \"half.txt\", content = \"half\" } }, { run = \"exec sleep 1000\" },\n";
    let text = format!(
        "[[attempt]]\ntask = \"B\"\nsteps = [\n{answer}{busy}{}\n{{ claim = \"\" }}]\n\
         [[attempt]]\nsteps = [{{ run = \"echo a > a.txt\" }},\n{answer}{{ claim = \"\" }}]\n",
        answer.repeat(20)
    );
    let path = sandbox.base().join("goes_on.toml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn an_agent_is_stopped_in_the_middle_of_its_work_when_the_budget_is_used_up() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let scenario = goes_on(&sandbox);
    let args = ["run", "--headless", "--verify", "true", "--scenario", &scenario, "--max-cost", "1"];
    sandbox
        .wiggum(&args)
        .exits(4)
        .says("the agent is stopped at the loop budget: $1.80 of $1.00 are spent")
        .says("spent $1.80 of $1.00 (loop budget), $0.80 over (budget_exhausted)");
    assert_eq!(sandbox.state().usage.cost_usd, 1.8, "what it had used is paid for");
    let state = sandbox.state();
    let entry = state.task(&"B".into()).unwrap();
    assert_eq!((entry.failures, entry.kept.is_some(), sandbox.state_of("B")), (0, true, "open"));
    sandbox.check();
}

#[test]
fn a_task_that_gets_too_dear_is_stopped_in_the_middle_and_fails() {
    let mut sandbox = Sandbox::with_tasks(&["B", "C"]);
    sandbox.env("WIGGUM_BUDGET_TASK_COST", "0.5");
    let scenario = goes_on(&sandbox);
    sandbox
        .wiggum(&["run", "--headless", "--verify", "true", "--scenario", &scenario])
        .exits(6)
        .says("B failed: it cost $0.90 of $0.50 (task budget), $0.40 over");
    assert_eq!((sandbox.state_of("B"), sandbox.state_of("C")), ("failed", "done"));
}

#[test]
fn nonsense_is_refused_before_anything_runs() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    for cost in ["-1", "NaN", "much"] {
        run(&sandbox, 0.1, &[&format!("--max-cost={cost}")]).complains(2, &["--max-cost", "hint: "]);
    }
    run(&sandbox, 0.1, &["--budget-strategy", "gready"]).complains(2, &["did you mean \"greedy\"?"]);
    sandbox.write("wiggum.toml", "[budget]\nalert_at = 70\n");
    run(&sandbox, 0.1, &[]).complains(2, &["wiggum.toml:2:12", "hint: write 0.7"]);
    assert!(!sandbox.exists(".wiggum"));
}

#[test]
fn a_throttled_run_waits_visibly_and_goes_on() {
    let mut sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    sandbox.env("WIGGUM_BUDGET_ACTION", "throttle");
    sandbox.env("WIGGUM_BUDGET_THROTTLE", "150ms");
    run(&sandbox, 0.5, &["--max-cost", "0.5"])
        .exits(0)
        .says("… waiting: throttled until ")
        .says("spent $0.50 of $0.50 (loop budget)");
    let journal = sandbox.journal();
    let at = |wanted: fn(&Event) -> bool| -> Vec<i64> {
        let found = journal.iter().filter(|envelope| wanted(&envelope.event));
        found.map(|envelope| envelope.at.as_millisecond()).collect()
    };
    let started = at(|event| matches!(event, Event::IterationStarted { .. }));
    let ended = at(|event| matches!(event, Event::AgentEnded { .. }));
    assert!(started[1] - ended[0] >= 150 && started[2] - ended[1] >= 300, "{started:?} {ended:?}");
    assert_eq!(alerts(&sandbox), [1.0]);
}

#[test]
fn an_alert_comes_once_also_after_a_restart() {
    let mut sandbox = Sandbox::with_tasks(&["A", "B", "C", "D"]);
    sandbox.env("WIGGUM_BUDGET_ACTION", "alert-only");
    sandbox.env("WIGGUM_BUDGET_ALERT_AT", "[0.5, 0.8]");
    run(&sandbox, 0.3, &["--max-cost", "1", "--max-iterations", "2"]).exits(3);
    assert_eq!(alerts(&sandbox), [0.5]);
    run(&sandbox, 0.3, &["--max-cost", "1"]).exits(0);
    assert_eq!(alerts(&sandbox), [0.5, 0.8, 1.0]);
}

#[test]
fn a_task_that_gets_too_dear_fails_and_the_others_go_on() {
    let mut sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.env("WIGGUM_BUDGET_TASK_COST", "1");
    let never = scenario(&sandbox, 0.6, "").replace("scenario.toml", "never.toml");
    let text = fs::read_to_string(sandbox.base().join("scenario.toml")).unwrap();
    let (begin, rest) = text.split_once("steps").unwrap();
    let without = rest.replace("{ claim = \"\" },\n", "");
    fs::write(&never, format!("{begin}task = \"A\"\nsteps{without}\n{begin}steps{rest}")).unwrap();
    sandbox
        .wiggum(&["run", "--headless", "--scenario", &never])
        .exits(6)
        .says("A failed: it cost $1.20 of $1.00 (task budget), $0.20 over");
    assert_eq!(sandbox.worked_on(), ["A", "A", "B"]);
    assert_eq!((sandbox.state_of("A"), sandbox.state_of("B")), ("failed", "done"));
}

#[test]
fn an_hour_has_so_many_calls_and_the_loop_says_what_it_waits_for() {
    let mut sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.env("MAX_CALLS_PER_HOUR", "1");
    sandbox.make_pipe("ready");
    let ready = format!("{{ run = \"echo > '{}'\" }},", sandbox.base().join("ready").display());
    let scenario = scenario(&sandbox, 0.1, &ready);
    let started = sandbox.launch(&sandbox.root, &["run", "--headless", "--scenario", &scenario]);
    sandbox.wait_ready();
    sandbox.wait_for(|event| matches!(event, Event::TaskCompleted { .. }));
    let file = sandbox.shared_file("status.json");
    let waits = || fs::read_to_string(&file).is_ok_and(|text| text.contains("1 calls an hour are used"));
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !waits() {
        assert!(std::time::Instant::now() < until, "{:?}", fs::read_to_string(&file));
        std::thread::yield_now();
    }
    started.signal("INT");
    started.finish().exits(130);
    assert_eq!(sandbox.worked_on(), ["A"]);
}

#[test]
fn what_an_interrupted_agent_had_used_is_paid_for() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let path = sandbox.base().join("hang.toml");
    let ready = sandbox.base().join("ready");
    let text = format!(
        "[[attempt]]\nsteps = [{{ usage = {{ input_tokens = 7, cost_usd = 0.25 }} }},\n\
         {{ run = \"echo > '{}'; sleep 1000\" }}]\n",
        ready.display()
    );
    fs::write(&path, text).unwrap();
    let scenario = path.display().to_string();
    let started = sandbox.launch(&sandbox.root, &["run", "--headless", "--scenario", &scenario]);
    sandbox.wait_ready();
    started.signal("INT");
    started.finish().exits(130);
    assert_eq!(sandbox.state().usage.cost_usd, 0.25);
    assert_eq!(json(&sandbox, &["cost", "--json"])["total"]["cost_usd"], 0.25);
}

#[test]
fn what_an_agent_had_used_is_paid_for_although_wiggum_was_killed() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.env("WIGGUM_BUDGET_MAX_COST", "1");
    let path = sandbox.base().join("hang.toml");
    let steps = "{ usage = { input_tokens = 7, cost_usd = 0.25 } }, { run = \"exec sleep 1000\" }";
    let once = format!("[[attempt]]\nnumber = 1\nsteps = [{steps}]\n");
    fs::write(&path, &once).unwrap();
    let scenario = path.display().to_string();
    let started = sandbox.launch(&sandbox.root, &["run", "--headless", "--scenario", &scenario]);
    let is_there = || {
        let dir = sandbox.state_dir_of(&sandbox.root).filter(|dir| dir.database().exists());
        dir.is_some() && !sandbox.store().loops().unwrap().is_empty()
    };
    while !is_there() {
        std::thread::yield_now();
    }
    sandbox.wait_for(|event| matches!(event, Event::UsageSeen { .. }));
    started.kill();
    run(&sandbox, 0.5, &[]).exits(0);
    assert_eq!(sandbox.state().usage.cost_usd, 0.75);
    let report = json(&sandbox, &["cost", "--json"]);
    assert_eq!((&report["total"]["cost_usd"], &report["total"]["calls"]), (&0.75.into(), &2.into()));
    sandbox.check();
}

#[test]
fn sums_by_anything_are_the_total() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    run(&sandbox, 0.125, &[]).exits(0);
    for by in ["task", "agent", "model", "day", "loop"] {
        let report = json(&sandbox, &["cost", "--by", by, "--json"]);
        let rows = report["rows"].as_array().unwrap();
        for field in ["calls", "input_tokens", "output_tokens", "cache_read_tokens", "cost_usd"] {
            let sum: f64 = rows.iter().map(|row| row[field].as_f64().unwrap()).sum();
            assert_eq!(Some(sum), report["total"][field].as_f64(), "{by}: {field}");
        }
        assert_eq!(report["total"]["cost_usd"], 0.375);
        let csv = sandbox.wiggum(&["cost", "--by", by, "--csv"]).exits(0).stdout;
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!((lines[0][0], lines[0][6], lines.len()), (by, "cost_usd", rows.len() + 1));
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{csv}");
        let sum: f64 = lines[1..].iter().map(|line| line[6].parse::<f64>().unwrap()).sum();
        assert_eq!(sum, 0.375, "{csv}");
    }
    let tokens = json(&sandbox, &["tokens", "--json"]);
    assert_eq!(tokens["efficiency"]["cache_hit_rate"], 0.75);
    sandbox.wiggum(&["tokens"]).exits(0).says("75 % of what was read came from caches");
    sandbox.wiggum(&["cost", "--csv", "--json"]).exits(2);
}

#[test]
fn the_rest_is_foreseen_and_drawn() {
    let mut sandbox = Sandbox::with_tasks(&["A", "B", "C", "D"]);
    sandbox.wiggum(&["cost", "--forecast"]).exits(0).says("no loops here yet");
    run(&sandbox, 0.5, &["--max-iterations", "2"]).exits(3);
    let report = json(&sandbox, &["cost", "--json"]);
    assert_eq!(report["forecast"]["remaining_usd"]["expected"], 1.0);
    assert_eq!(report["forecast"]["total_usd"]["expected"], 2.0);
    assert_eq!(
        (&report["forecast"]["tasks_left"], &report["first_forecast"]["tasks_done"]),
        (&2.into(), &1.into())
    );
    assert_eq!(report["burn_down"].as_array().unwrap().len(), 3);
    sandbox.env("COLUMNS", "40");
    let shown = sandbox.wiggum(&["cost", "--forecast"]).exits(0).says("$1.00 to come").says("█");
    assert!(shown.stdout.contains("tasks left") && !shown.stdout.contains('\x1b'), "{}", shown.stdout);
    sandbox.env("LC_ALL", "C");
    let plain = sandbox.wiggum(&["cost", "--forecast"]).exits(0).says("###");
    assert!(plain.stdout.is_ascii(), "{}", plain.stdout);
    assert!(plain.stdout.lines().filter(|line| line.contains("##")).all(|line| line.len() <= 40));
}

#[test]
fn the_final_account_holds_what_was_foreseen_against_the_truth() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C", "D"]);
    run(&sandbox, 0.5, &["--max-iterations", "1"]).exits(3);
    run(&sandbox, 0.25, &[]).exits(0);
    let report = json(&sandbox, &["report", "--json"]);
    let foreseen = &report["cost"]["foreseen"];
    assert_eq!((&foreseen["tasks_done"], &foreseen["expected_usd"]), (&1.into(), &2.0.into()));
    assert_eq!(foreseen["actual_usd"], 1.25);
    assert!((foreseen["error"].as_f64().unwrap() - 0.6).abs() < 1e-9, "{foreseen}");
    let spent: f64 =
        report["tasks"].as_array().unwrap().iter().map(|task| task["cost"].as_f64().unwrap()).sum();
    assert_eq!(Some(spent), foreseen["actual_usd"].as_f64());
    let words = "Foreseen after one task: $2.00";
    let text = sandbox.wiggum(&["report"]).exits(0).says(words).says("in all; it was $1.25: 60 % too much");
    assert!(text.stdout.contains("within the interval"), "{}", text.stdout);
}

/// An agent that speaks as Claude Code does, with tokens but without a cost.
fn claude_without_cost(sandbox: &Sandbox) {
    let init = r#"{"type":"system","subtype":"init","model":"model-x","session_id":"s","tools":[]}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"session_id":"s","result":"<promise>DONE</promise>","usage":{"input_tokens":1000000,"output_tokens":100000,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}}"#;
    claude(sandbox, &format!("echo x >> \"$WIGGUM_TASK_ID.txt\"\nprintf '%s\\n' '{init}' '{result}'\n"));
}

/// The agent `mine`, which speaks as Claude Code does.
fn claude(sandbox: &Sandbox, script: &str) {
    let program = sandbox.base().join("agents/claude");
    fs::write(&program, format!("#!/bin/sh\ncat > /dev/null\n{script}")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let agent =
        format!("[agents.mine]\nfamily = \"claude\"\nprogram = {:?}\n", program.display().to_string());
    sandbox.write("wiggum.toml", &agent);
    sandbox.commit_all("configuration");
}

/// It does not end by itself at its ceiling, as the real one does.
#[test]
fn claude_is_stopped_when_its_own_limit_does_not_hold() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    claude(
        &sandbox,
        r#"echo '{"type":"system","subtype":"init","model":"claude-sonnet-4-5","session_id":"s","tools":[]}'
        i=0; while [ $i -lt 45 ]; do i=$((i+1))
        echo '{"type":"assistant","session_id":"s","message":{"id":"m'$i'","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"t'$i'","name":"Bash","input":{"command":"true"}}],"usage":{"input_tokens":100000,"output_tokens":8000}}}'
        echo '{"type":"user","session_id":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t'$i'","content":"ok"}]}}'
        sleep 0.3; done
        echo '{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"<promise>DONE</promise>","total_cost_usd":18.9}'
        "#,
    );
    sandbox.wiggum(&["run", "--headless", "--agent", "mine", "--max-cost", "1"]).exits(4);
    let spent = json(&sandbox, &["cost", "--json"])["total"]["cost_usd"].as_f64().unwrap();
    assert!((1.0..2.2).contains(&spent), "one call to cross the limit, one to see that it goes on: {spent}");
}

#[test]
fn a_cost_below_zero_gives_nothing_back() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let result = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"<promise>DONE</promise>","total_cost_usd":-50,"usage":{"input_tokens":1000000,"output_tokens":0}}"#;
    let init =
        r#"{"type":"system","subtype":"init","model":"claude-sonnet-4-5","session_id":"s","tools":[]}"#;
    let script = format!(
        "printf '%s ' \"$@\" >> \"$SANDBOX/args\"\necho x >> \"$WIGGUM_TASK_ID.txt\"\nprintf '%s\\n' '{init}' '{result}'\n"
    );
    claude(&sandbox, &script);
    sandbox
        .wiggum(&["run", "--headless", "--agent", "mine", "--max-cost", "10", "--sandbox", "none"])
        .exits(0);
    sandbox.wiggum(&["cost"]).exits(0).says("$6.00");
    let args = sandbox.note("args");
    assert!(args.contains("--max-budget-usd 10") && args.contains("--max-budget-usd 7"), "{args}");
}

#[test]
fn a_limit_in_dollars_is_refused_for_an_agent_that_is_known_to_have_no_price() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let worker = "cat > /dev/null; echo x > a.txt; echo '<promise>DONE</promise>'";
    let run = |args: &[&str]| {
        let mut all = vec!["run", "--headless", "--agent-command", worker];
        all.extend(args);
        sandbox.wiggum(&all)
    };
    run(&["--max-cost", "5"]).complains(
        2,
        &[
            "`budget.max_cost` cannot hold the agent `agent`: it does not tell what it uses",
            "--allow-unpriced",
        ],
    );
    assert!(!sandbox.exists(".wiggum/wiggum.db"), "nothing has begun");
    let api = |model: &str, more: &[&str]| {
        let mut all = vec!["run", "--headless", "--agent", "api", "--provider", "ollama", "--model", model];
        all.extend(more);
        sandbox.wiggum(&all)
    };
    let unknown = "nobody knows what its model `qwen3-coder` costs";
    api("qwen3-coder", &["--max-cost", "5"]).complains(2, &[unknown, "[prices.\"qwen3-coder\"]"]);
    sandbox.write("wiggum.toml", "[budget]\ntask_cost = 1\n");
    sandbox.commit_all("settings");
    api("qwen3-coder", &[]).complains(2, &["`budget.task_cost` cannot hold"]);
    // Its honest twins: known not to matter, or limited otherwise.
    let run = run(&["--allow-unpriced"]).exits(0);
    let note = "note: nobody knows what agent costs: no budget in dollars holds it";
    assert!(run.stderr.contains(note), "{}", run.stderr);
}

#[test]
fn the_model_in_the_settings_of_codex_has_a_price() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let program = sandbox.base().join("agents/codex");
    let lines = [
        r#"{"type":"thread.started","thread_id":"t"}"#,
        r#"{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"<promise>DONE</promise>"}}"#,
        r#"{"type":"turn.completed","usage":{"input_tokens":1000000,"cached_input_tokens":0,"output_tokens":0}}"#,
    ];
    let says = lines.map(|line| format!("echo '{line}'\n")).concat();
    fs::write(&program, format!("#!/bin/sh\ncat > /dev/null\n{says}")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.write("wiggum.toml", &format!("[agents.codex]\nprogram = \"{}\"\n", program.display()));
    sandbox.commit_all("settings");
    let run = || sandbox.wiggum(&["run", "--headless", "--agent", "codex", "--max-cost", "5"]);
    run().complains(2, &["it tells neither its cost nor its model"]);
    let settings = |text: &str| {
        let dir = sandbox.base().join("home/.codex");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("config.toml"), text).unwrap();
    };
    settings("model = \"unheard-of\"\n");
    run().complains(2, &["nobody knows what its model `unheard-of` costs"]);
    settings("model = \"gpt-5.6-terra\"\n");
    run().exits(0).says("codex tells what was used only at its end, if at all: a budget may be overspent");
    sandbox.wiggum(&["cost"]).exits(0).says("$2.00");
}

#[test]
fn tokens_without_a_price_are_unpriced_and_never_free() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    claude_without_cost(&sandbox);
    sandbox
        .wiggum(&["run", "--headless", "--agent", "mine", "--max-cost", "1"])
        .exits(0)
        .says("the agent does not tell what it costs, so no budget in dollars counts it: set [prices.\"model-x\"]")
        .never_says("may be overspent")
        .never_says("$0.00");
    for command in [&["cost"][..], &["tokens"], &["status"], &["cost", "--forecast"]] {
        sandbox.wiggum(command).exits(0).says("unpriced").never_says("$0");
    }
    let report = json(&sandbox, &["cost", "--json"]);
    assert_eq!(
        (&report["total"]["cost_usd"], &report["total"]["unpriced_tokens"]),
        (&Value::Null, &2_200_000.into())
    );
    assert_eq!(report["forecast"]["remaining_usd"], Value::Null);
}

#[test]
fn the_users_prices_count_where_the_agent_tells_no_cost() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    claude_without_cost(&sandbox);
    let mut config = sandbox.read("wiggum.toml");
    config.push_str("[prices.\"model-x\"]\ninput = 3\noutput = 15\n");
    sandbox.write("wiggum.toml", &config);
    sandbox.commit_all("prices");
    sandbox
        .wiggum(&["run", "--headless", "--agent", "mine", "--max-cost", "8"])
        .exits(4)
        .says("spent $9.00 of $8.00 (loop budget)");
    let said = "by kind of token: input $6.00, output $3.00, cache read $0.00, cache write $0.00";
    sandbox.wiggum(&["cost", "--by", "model"]).exits(0).says("model-x").says("$9.00").says(said);
    let report = json(&sandbox, &["cost", "--json"]);
    let kinds = &report["total"]["cost_by_kind"];
    assert_eq!((&kinds["input_usd"], &kinds["output_usd"]), (&6.0.into(), &3.0.into()), "{report}");
    assert_eq!((&kinds["cache_read_usd"], &report["total"]["unsplit_usd"]), (&0.0.into(), &0.0.into()));
    let csv = sandbox.wiggum(&["cost", "--csv"]).exits(0).stdout;
    assert!(
        csv.lines().next().unwrap().ends_with("input_usd,output_usd,cache_read_usd,cache_write_usd"),
        "{csv}"
    );
    assert!(csv.lines().nth(1).unwrap().ends_with(",3,1.5,0,0"), "{csv}");
    sandbox.wiggum(&["config", "show"]).exits(0).says("prices.\"model-x\".input");
}

/// The journal of the only loop of a work tree.
fn journal_of(sandbox: &Sandbox, tree: &Path) -> Vec<Envelope> {
    let store = Store::open_existing(&sandbox.state_dir_of(tree).unwrap().database()).unwrap().unwrap();
    let loops = store.loops().unwrap();
    store.read(loops[0].id, 0).unwrap()
}

fn registry(sandbox: &Sandbox) -> Registry {
    let path = sandbox.base().join("home/.local/share/wiggum/registry.db");
    Registry::open_existing(&path).unwrap().unwrap()
}

#[test]
fn loops_of_one_project_spend_no_more_than_it_has_but_for_calls_under_way() {
    const COST: f64 = 0.1;
    let sandbox = Sandbox::new();
    let ids: Vec<String> = (0..12).map(|number| format!("T{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    sandbox.write("PRD.json", &prd(&ids));
    sandbox.write("wiggum.toml", "[budget]\nproject_cost = 1\n");
    sandbox.commit_all("backlog");
    let trees: Vec<PathBuf> = (0..4).map(|number| sandbox.base().join(format!("tree{number}"))).collect();
    for tree in &trees {
        sandbox.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    }
    let calls = sandbox.base().join("calls");
    let scenario = scenario(&sandbox, COST, &format!("{{ run = \"echo x >> '{}'\" }},", calls.display()));
    let start = |tree: &Path| sandbox.launch(tree, &["run", "--headless", "--scenario", &scenario]);
    let mut runs: Vec<_> = trees.iter().map(|tree| start(tree)).collect();
    // One of them is killed with a call under way, or just about, and comes back later.
    let killed = runs.remove(0);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !fs::read_to_string(&calls).is_ok_and(|text| text.lines().count() >= 3) {
        assert!(std::time::Instant::now() < until, "no call began");
        std::thread::yield_now();
    }
    killed.kill();
    let back = start(&trees[0]);
    for run in runs.into_iter().chain([back]) {
        run.outcome_only().exits(4).says("$1.00 (project budget)").says("(budget_exhausted)");
    }
    let mut told = 0.0;
    for tree in &trees {
        let journal = journal_of(&sandbox, tree);
        let violations = checker::check(&journal);
        assert!(violations.is_empty(), "{violations:?}");
        told += Loop::fold(&journal).usage.cost_usd;
    }
    let shared = registry(&sandbox)
        .shared(&sandbox.root.join(".git").display().to_string(), &Spans::default())
        .unwrap();
    let spent = shared.project.spent.cost_usd;
    assert_eq!((shared.project.in_flight, shared.organisation), (0, shared.project));
    assert!((1.0 - 1e-9..=1.0 + 3.0 * COST + 1e-9).contains(&spent), "{spent}");
    // The call that was killed may be known to the registry alone, or to nobody.
    assert!(told <= spent + 1e-9 && spent <= told + COST + 1e-9, "{told} {spent}");
    let really = fs::read_to_string(&calls).unwrap().lines().count() as f64 * COST;
    assert!(really <= spent + COST + 1e-9, "{really} {spent}");
    sandbox.check();
}

#[test]
fn a_call_is_settled_as_soon_as_it_is_over() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.env("WIGGUM_BUDGET_PROJECT_COST", "5");
    // Another run of the check would wait for the pipes again.
    sandbox.env("WIGGUM_CHECKS_CLEAN", "never");
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let scenario = scenario(&sandbox, 0.3, "");
    let check = r#"sh -c 'echo > "$SANDBOX/ready"; cat "$SANDBOX/go"'"#;
    let args = ["run", "--headless", "--scenario", &scenario, "--baseline", "off", "--verify", check];
    let started = sandbox.launch(&sandbox.root, &args);
    sandbox.wait_ready();
    // Its checks run for as long as they like; what the agent cost is known to others already.
    let shared = registry(&sandbox)
        .shared(&sandbox.root.join(".git").display().to_string(), &Spans::default())
        .unwrap();
    assert_eq!((shared.project.spent.cost_usd, shared.project.in_flight), (0.3, 0));
    sandbox.go();
    started.finish().exits(0);
}

#[test]
fn loops_of_all_repositories_share_what_the_organisation_has() {
    let mut sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    let data = sandbox.base().join("data");
    sandbox.env("WIGGUM_DATA_DIR", data.to_str().unwrap());
    run(&sandbox, 0.4, &["--max-iterations", "2"]).exits(3);
    // What a loop without a shared budget spent counts for those with one.
    let other = sandbox.base().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("PRD.json"), prd(&["X", "Y", "Z"])).unwrap();
    let scenario = scenario(&sandbox, 0.3, "");
    sandbox.env("WIGGUM_BUDGET_ORGANISATION_COST", "1");
    let args = ["run", "--headless", "--scenario", &scenario];
    let run = sandbox.launch(&other, &args).outcome_only().exits(4);
    assert!(run.stdout.contains("spent $1.10 of $1.00 (organisation budget)"), "{}", run.stdout);
    // What `--max-cost` raises is another budget.
    assert!(run.stdout.contains("raise the budget of the organisation (organisation_cost"), "{}", run.stdout);
    let registry = Registry::open_existing(&data.join(Registry::FILE)).unwrap().unwrap();
    let entries = registry.entries().unwrap();
    let seen: Vec<_> =
        entries.iter().map(|entry| (entry.identity.repository.clone(), entry.spent.cost_usd)).collect();
    let (other, root) = (other.display().to_string(), sandbox.root.display().to_string());
    assert_eq!(seen.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), [other, root]);
    assert!(entries.iter().all(|entry| entry.holder.is_none() && entry.state_dir.is_dir()));
    assert_eq!(seen[1].1, 0.8);
}

#[test]
fn a_budget_with_a_period_counts_what_was_spent_in_it_and_says_when_it_resets() {
    let mut sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    let data = sandbox.base().join("data");
    sandbox.env("WIGGUM_DATA_DIR", data.to_str().unwrap());
    sandbox.env("WIGGUM_BUDGET_ORGANISATION_COST", "1");
    // Another loop spent more than that, long ago.
    let entry = wiggum_store::registry::Entry {
        id: wiggum_core::ids::LoopId(uuid::Uuid::from_u128(7)),
        identity: wiggum_store::Identity {
            repository: "/elsewhere".to_owned(),
            backlog: "PRD.json".to_owned(),
            name: "main".to_owned(),
        },
        project: "/elsewhere".to_owned(),
        state_dir: "/elsewhere/.wiggum".into(),
        holder: None,
        seen_at: jiff::Timestamp::UNIX_EPOCH,
        spent: wiggum_core::budget::Sum { cost_usd: 5.0, tokens: 5 },
    };
    let mut registry = Registry::open(&data.join(Registry::FILE)).unwrap();
    registry.enter(&entry, &[(jiff::Timestamp::UNIX_EPOCH, entry.spent)]).unwrap();
    run(&sandbox, 0.6, &[]).exits(4).says("spent $5.00 of $1.00 (organisation budget), $4.00 over");
    assert!(sandbox.worked_on().is_empty());
    sandbox.env("WIGGUM_BUDGET_ORGANISATION_PERIOD", "month");
    run(&sandbox, 0.6, &[])
        .exits(4)
        .says("spent $1.20 of $1.00 (organisation budget of this month, resets 2");
    assert_eq!(sandbox.worked_on(), ["A", "B"]);
    sandbox.wiggum(&["cost"]).exits(0).says("organisation budget: $1.20 of $1.00 a month, resets 2");
    sandbox.wiggum(&["status"]).exits(0).says("$1.20 of $1.00 a month, resets 2");
    let budget = &json(&sandbox, &["cost", "--json"])["budgets"][0];
    assert_eq!(budget["period"], "month");
    assert!(budget["resets_at"].as_str().unwrap().ends_with(":00Z"), "{budget}");
    sandbox.write("wiggum.toml", "[budget]\norganisation_period = \"fortnight\"\n");
    sandbox.env("WIGGUM_BUDGET_ORGANISATION_PERIOD", "");
    sandbox.wiggum(&["config", "show"]).complains(2, &["wiggum.toml:2", "month"]);
}
