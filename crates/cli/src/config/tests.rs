//! Configuration as users meet it: files, variables and flags in; values, sources or complaints out.

use std::fs;

use super::generate::{Preset, commented_toml, config_schema, configuration_markdown};
use super::keys::{KEYS, SECTIONS, Settable};
use super::value::Shape;
use super::*;

/// A hermetic place to resolve in.
pub(super) struct Case {
    directory: tempfile::TempDir,
    env: BTreeMap<String, String>,
    flags: Flags,
}

impl Case {
    pub(super) fn new(workspace_file: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(WORKSPACE_FILE), workspace_file).unwrap();
        Self { directory, env: BTreeMap::new(), flags: Flags::default() }
    }

    fn user(self, text: &str) -> Self {
        fs::write(self.directory.path().join("config.toml"), text).unwrap();
        self
    }

    fn env(mut self, variables: &[(&str, &str)]) -> Self {
        self.env.extend(variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
        self
    }

    fn flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }

    fn resolve(&self) -> Result<Config, ConfigProblems> {
        let user_file = Some(self.directory.path().join("config.toml"));
        resolve(&Sources { workspace: self.directory.path(), user_file, env: &self.env, flags: &self.flags })
    }

    pub(super) fn config(&self) -> Config {
        self.resolve().unwrap_or_else(|problems| panic!("{problems}"))
    }

    /// All that is set, as `key = value <- source`, without the directory.
    fn set(&self) -> String {
        let rows = self.config().explain().into_iter().filter(|row| row.source != ConfigSource::Default);
        let lines: Vec<_> =
            rows.map(|row| format!("{} = {} <- {}", row.key, row.value, row.source)).collect();
        self.normalised(&lines.join("\n"))
    }

    pub(super) fn problems(&self) -> String {
        self.normalised(&self.resolve().expect_err("should be refused").to_string())
    }

    fn normalised(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.directory.path().display()), "")
    }
}

fn check_problems(workspace_file: &str, expected: &str) {
    assert_eq!(Case::new(workspace_file).problems(), expected, "\n--- in\n{workspace_file}");
}

#[test]
fn nothing_configured_is_the_default() {
    let case = Case::new("");
    assert_eq!(case.config(), Config::default());
    assert_eq!(case.config().policy, Policy::default());
    fs::remove_file(case.directory.path().join(WORKSPACE_FILE)).unwrap();
    assert_eq!(case.config(), Config::default());
}

#[test]
fn later_layers_win_and_are_remembered() {
    let file = "[limits]\niterations = 2\n";
    let user = "[limits]\n# mine\niterations = 1\nno_progress = 9\n";
    let case = Case::new("").user(user);
    assert_eq!(case.set(), "limits.iterations = 1 <- config.toml:3\nlimits.no_progress = 9 <- config.toml:4");
    let case = Case::new(file).user(user);
    assert_eq!(case.set(), "limits.iterations = 2 <- wiggum.toml:2\nlimits.no_progress = 9 <- config.toml:4");
    let case = case.env(&[("MAX_ITERATIONS", "3")]);
    assert_eq!(
        case.set(),
        "limits.iterations = 3 <- MAX_ITERATIONS\nlimits.no_progress = 9 <- config.toml:4"
    );
    let case = case.env(&[("WIGGUM_MAX_ITERATIONS", "4")]);
    assert_eq!(case.config().policy.limits.iterations, Some(4));
    let case = case.env(&[("WIGGUM_LIMITS_ITERATIONS", "5")]);
    assert_eq!(case.config().policy.limits.iterations, Some(5));
    let case = case.flags(Flags { max_iterations: Some(6), ..Flags::default() });
    assert_eq!(
        case.set(),
        "limits.iterations = 6 <- --max-iterations\nlimits.no_progress = 9 <- config.toml:4"
    );
}

#[test]
fn the_order_of_sources_is_the_precedence() {
    let path = PathBuf::from("z");
    let sources = [
        ConfigSource::Default,
        ConfigSource::UserFile { path: path.clone(), line: 9 },
        ConfigSource::WorkspaceFile { path, line: 1 },
        ConfigSource::Environment { variable: "B".to_owned() },
        ConfigSource::Flag { flag: "--a" },
    ];
    assert!(sources.is_sorted());
}

#[test]
fn every_section_of_a_file() {
    let case = Case::new(
        r#"
backlog = "PRD.json"
name = "nightly"
prompt = "PROMPT.md"
[agent]
command = "claude -p"
prompt_via = "argument"
timeout = "30m"
env = { KEY = "value" }
[limits]
iterations = 0
duration = "2h"
consecutive_errors = 0
stuck_threshold = 4
max_tasks = 7
[retry]
max_retries = 0
backoff = 0
backoff_max = 90
from = "clean"
clean_after = 2
[checks]
verify = "cargo test"
timeout = 0
complete_without_claim = true
[protect]
paths = ["a/**", "*.{b,c}"]
on_touch = "ask"
[people]
wait = "1h30m"
"#,
    );
    assert_eq!(
        case.set(),
        "\
backlog = \"PRD.json\" <- wiggum.toml:2
name = \"nightly\" <- wiggum.toml:3
prompt = \"PROMPT.md\" <- wiggum.toml:4
agent.command = \"claude -p\" <- wiggum.toml:6
agent.prompt_via = \"argument\" <- wiggum.toml:7
agent.timeout = \"30m\" <- wiggum.toml:8
agent.env = { KEY = \"…\" } <- wiggum.toml:9
limits.iterations = none <- wiggum.toml:11
limits.duration = \"2h\" <- wiggum.toml:12
limits.consecutive_errors = 0 <- wiggum.toml:13
limits.stuck_threshold = 4 <- wiggum.toml:14
limits.max_tasks = 7 <- wiggum.toml:15
retry.max_retries = 0 <- wiggum.toml:17
retry.backoff = \"0s\" <- wiggum.toml:18
retry.backoff_max = \"1m30s\" <- wiggum.toml:19
retry.from = \"clean\" <- wiggum.toml:20
retry.clean_after = 2 <- wiggum.toml:21
checks.verify = [\"cargo test\"] <- wiggum.toml:23
checks.timeout = none <- wiggum.toml:24
checks.complete_without_claim = true <- wiggum.toml:25
protect.paths = [\"a/**\", \"*.{b,c}\"] <- wiggum.toml:27
protect.on_touch = \"ask\" <- wiggum.toml:28
people.wait = \"1h30m\" <- wiggum.toml:30"
    );
    let config = case.config();
    assert_eq!(config.agent.env["KEY"], "value");
    assert_eq!(config.agent.prompt_via, PromptVia::Argument);
    assert_eq!(config.policy.limits.agent_timeout, Some(Millis::from_secs(1800)));
    assert_eq!(config.policy.limits.iterations, None);
    assert_eq!(config.policy.checks.timeout, None);
    assert_eq!(config.policy.retry.from, wiggum_core::policy::RetryFrom::Clean);
    assert_eq!(config.policy.protect.on_touch, wiggum_core::policy::OnTouch::Ask);
}

#[test]
fn all_problems_at_once() {
    let case = Case::new(
        r#"nmae = "x"
[agent]
command = " "
prompt_via = "stdni"
env = { A = 1, WIGGUM_BIN = "x" }
[limits]
iterations = -1
duration = "soon"
no_progress = "three"
max_tasks = 0
max_iterations = 3
[retry]
from = "scratch"
backoff = 1.5
[checks]
verify = ["ok", "", 3]
complete_without_claim = "yes"
[protect]
paths = ["a[", "/etc/**"]
[colours]
sky = 5
"#,
    )
    .user("[people]\nwait = true\n")
    .env(&[("STUCK_THRESHOLD", "many"), ("WIGGUM_HEADLESS", "perhaps"), ("WIGGUM_LIMITS_ITERATION", "3")])
    .flags(Flags {
        agent_command: Some(String::new()),
        name: Some("a/b".to_owned()),
        ..Flags::default()
    });
    assert_eq!(
        case.problems(),
        r#"config.toml:2:8: `people.wait`: expected a duration such as "90s", "30m" or "1h30m", found true
wiggum.toml:1:1: unknown key `nmae`
  hint: did you mean `name`?
wiggum.toml:3:11: `agent.command`: expected a command, found an empty text
wiggum.toml:4:14: `agent.prompt_via`: expected "stdin", "argument" or "file", found "stdni"
  hint: did you mean "stdin"?
wiggum.toml:5:13: `agent.env`: expected a text for `A`, found 1
wiggum.toml:5:16: `agent.env`: `WIGGUM_BIN` is set by wiggum itself
wiggum.toml:7:14: `limits.iterations`: expected a whole number, 0 or more, found -1
wiggum.toml:8:12: `limits.duration`: expected a duration such as "90s", "30m" or "1h30m", found the text "soon"
wiggum.toml:9:15: `limits.no_progress`: expected a whole number, 0 or more, found the text "three"
wiggum.toml:10:13: `limits.max_tasks`: expected a whole number, 1 or more, found 0
wiggum.toml:11:1: unknown key `limits.max_iterations`
  hint: did you mean `iterations`?
wiggum.toml:13:8: `retry.from`: expected "work" or "clean", found "scratch"
wiggum.toml:14:11: `retry.backoff`: expected a duration such as "90s", "30m" or "1h30m", found 1.5
wiggum.toml:16:17: `checks.verify`: expected a command, found an empty text
wiggum.toml:16:21: `checks.verify`: expected a command, found 3
wiggum.toml:17:26: `checks.complete_without_claim`: expected true or false, found the text "yes"
wiggum.toml:19:10: `protect.paths`: "a[" is not a path pattern: unclosed character class; missing ']'
wiggum.toml:19:16: `protect.paths`: the pattern "/etc/**" is not relative to the workspace
  hint: write "etc/**"
wiggum.toml:20:2: unknown section `[colours]`
  hint: the sections are agent, limits, budget, claims, health, breaker, retry, checks, workspace, protect, people, handoff, plans
WIGGUM_HEADLESS: expected true or false, found the text "perhaps"
STUCK_THRESHOLD: expected a whole number, 0 or more, found the text "many"
WIGGUM_LIMITS_ITERATION: unknown variable
  hint: did you mean WIGGUM_LIMITS_ITERATIONS?
--name: "a/b" cannot be a name
  hint: use up to 64 letters, digits, `-`, `_` and `.`, not beginning with `.`
--agent-command: expected a command, found an empty text"#
    );
}

#[test]
fn one_wrong_element_is_enough() {
    check_problems(
        "[checks]\nverify = [\"fine\", 3]\n",
        "wiggum.toml:2:19: `checks.verify`: expected a command, found 3",
    );
    check_problems(
        "[agent]\nenv = { A = \"fine\", B = true }\n",
        "wiggum.toml:2:25: `agent.env`: expected a text for `B`, found true",
    );
}

#[test]
fn hints_for_unknown_keys() {
    check_problems(
        "[limit]\n",
        "wiggum.toml:1:2: unknown section `[limit]`\n  hint: did you mean `[limits]`?",
    );
    check_problems(
        "[limits]\nmax_retries = 3\n",
        "wiggum.toml:2:1: unknown key `limits.max_retries`\n  hint: did you mean `max_retries` in `[retry]`?",
    );
    check_problems(
        "verify = \"x\"\n",
        "wiggum.toml:1:1: unknown key `verify`\n  hint: did you mean `verify` in `[checks]`?",
    );
    check_problems(
        "max-iterations = 3\n",
        "wiggum.toml:1:1: unknown key `max-iterations`\n  hint: did you mean `iterations` in `[limits]`?",
    );
    check_problems(
        "[checks]\nbacklog = \"x\"\n",
        "wiggum.toml:2:1: unknown key `checks.backlog`\n  hint: did you mean `backlog` at the top of the file?",
    );
    check_problems(
        "[people]\ncolour = 1\n",
        "wiggum.toml:2:1: unknown key `people.colour`\n  hint: the keys of `[people]` are wait",
    );
    check_problems(
        "zzz = 1\n",
        "wiggum.toml:1:1: unknown key `zzz`\n  hint: the keys outside of sections are backlog, name, prompt",
    );
    check_problems(
        "agent = \"claude\"\n",
        "wiggum.toml:1:1: `agent` is a section\n  hint: write [agent] and name = … below it",
    );
    check_problems(
        "headless = true\n",
        "wiggum.toml:1:1: `headless` is decided for each run, not in a file\n  hint: use --headless or WIGGUM_HEADLESS",
    );
    check_problems(
        "[[loops]]\nname = \"a\"\nbacklog = \"b\"\n",
        "wiggum.toml:1:3: `[[loops]]` is not available yet\n  hint: one file describes one loop: its keys are set at the top and in the sections",
    );
    let problems = Case::new("[sandbox]\n").problems();
    assert!(problems.starts_with("wiggum.toml:1:2: unknown section `[sandbox]`\n  hint: "), "{problems}");
}

#[test]
fn broken_toml_is_reported_with_the_rest() {
    check_problems(
        "nmae = 1\n[limits]\niterations = \nduration = \"x\"\n[retry\nbackoff = \"y\"\n",
        "wiggum.toml:1:1: unknown key `nmae`\n  hint: did you mean `name`?\n\
         wiggum.toml:3:14: string values must be quoted, expected literal string\n\
         wiggum.toml:4:12: `limits.duration`: expected a duration such as \"90s\", \"30m\" or \"1h30m\", found the text \"x\"\n\
         wiggum.toml:5:7: unclosed table, expected `]`",
    );
    check_problems(
        "[limits]\niterations = many\n",
        "wiggum.toml:2:14: string values must be quoted, expected literal string",
    );
    check_problems("name = \"a\"\nname = \"b\"\n", "wiggum.toml:2:1: duplicate key");
}

/// Whatever is cut off or torn out of a file, the answer is a configuration or complaints.
#[test]
fn no_broken_file_brings_it_down() {
    let text: String = files_keys().map(|key| format!("{} = {}\n", key.path, shown(key))).collect();
    let read =
        |text: &str| file::layer(Path::new("f"), text, |path, line| ConfigSource::UserFile { path, line });
    assert!(read(&text).settings.len() > 20, "the whole file is fine");
    for (at, character) in text.char_indices() {
        drop(read(&text[..at]));
        drop(read(&format!("{}{}", &text[..at], &text[at + character.len_utf8()..])));
        drop(read(&format!("{}\"]\u{0}é{}", &text[..at], &text[at..])));
    }
}

#[test]
fn odd_files() {
    let case = Case::new("\u{feff}name = \"bom\"\r\n[limits]\r\niterations = 3\r\n");
    assert_eq!(case.set(), "name = \"bom\" <- wiggum.toml:1\nlimits.iterations = 3 <- wiggum.toml:3");
    fs::write(case.directory.path().join(WORKSPACE_FILE), b"name = \"\xff\"").unwrap();
    assert_eq!(case.problems(), "wiggum.toml:1:9: this is not UTF-8 text from here on");
    fs::remove_file(case.directory.path().join(WORKSPACE_FILE)).unwrap();
    fs::create_dir(case.directory.path().join(WORKSPACE_FILE)).unwrap();
    assert!(case.problems().starts_with("wiggum.toml: cannot be read: "), "{}", case.problems());
}

#[test]
fn numbers_in_all_spellings_of_toml() {
    let check = |number: &str, expected: u32| {
        let config = Case::new(&format!("[retry]\nmax_retries = {number}\n")).config();
        assert_eq!(config.policy.retry.max_retries, expected, "{number}");
    };
    check("1_000", 1000);
    check("+3", 3);
    check("0x1F", 31);
    check("4294967295", u32::MAX);
    check_problems(
        "[retry]\nmax_retries = 4294967296\n",
        "wiggum.toml:2:15: `retry.max_retries`: expected a whole number, 0 or more, found 4294967296",
    );
}

#[test]
fn variables() {
    let check = |name: &str, text: &str, expected: &str| {
        let case = Case::new("").env(&[(name, text)]);
        assert_eq!(case.set(), expected, "{name}={text}");
    };
    check("WIGGUM_VERIFY", "cargo test", "checks.verify = [\"cargo test\"] <- WIGGUM_VERIFY");
    check("WIGGUM_VERIFY", "[\"a\", \"b\"]", "checks.verify = [\"a\", \"b\"] <- WIGGUM_VERIFY");
    check("WIGGUM_VERIFY", "[ -f done ]", "checks.verify = [\"[ -f done ]\"] <- WIGGUM_VERIFY");
    check("WIGGUM_VERIFY", "true", "checks.verify = [\"true\"] <- WIGGUM_VERIFY");
    check("WIGGUM_AGENT_COMMAND", "true", "agent.command = \"true\" <- WIGGUM_AGENT_COMMAND");
    check("WIGGUM_AGENT", "claude", "agent.name = \"claude\" <- WIGGUM_AGENT");
    check("WIGGUM_MAX_DURATION", "90", "limits.duration = \"1m30s\" <- WIGGUM_MAX_DURATION");
    check("WIGGUM_MAX_DURATION", "2h", "limits.duration = \"2h\" <- WIGGUM_MAX_DURATION");
    check("WIGGUM_PROMPT", "p.md", "prompt = \"p.md\" <- WIGGUM_PROMPT");
    check("WIGGUM_BACKLOG", "b.md", "backlog = \"b.md\" <- WIGGUM_BACKLOG");
    check("WIGGUM_NAME", "7", "name = \"7\" <- WIGGUM_NAME");
    check("WIGGUM_HEADLESS", "1", "headless = true <- WIGGUM_HEADLESS");
    check("WIGGUM_ALLOW_DIRTY", "Off", "allow_dirty = false <- WIGGUM_ALLOW_DIRTY");
    check("STUCK_THRESHOLD", " 5 ", "limits.stuck_threshold = 5 <- STUCK_THRESHOLD");
    check("WIGGUM_AGENT_ENV", "{ A = \"b\" }", "agent.env = { A = \"…\" } <- WIGGUM_AGENT_ENV");
    check("MAX_ITERATIONS", "", "");
    check("WIGGUM_NAME", "  ", "");
    for own in value::OWN_VARIABLES {
        check(own, "anything", "");
    }
    check("WIGGUM_SOMEBODY_ELSES", "x", "");
    check("WIGGUM_HOME", "x", "");
    check("MAX_ITERATION", "x", "");
}

#[test]
fn mistyped_variables() {
    let check = |name: &str, expected: &str| {
        let case = Case::new("").env(&[(name, "1")]);
        assert_eq!(case.problems(), format!("{name}: unknown variable\n  hint: {expected}"));
    };
    check("WIGGUM_MAX_ITERATION", "did you mean WIGGUM_MAX_ITERATIONS?");
    check("WIGGUM_RETRY_COLOUR", "see `wiggum config show` for the keys there are");
}

#[test]
fn all_flags() {
    let flags = Flags {
        backlog: Some("b.json".into()),
        name: Some("n".to_owned()),
        prompt: Some("p.md".into()),
        headless: Some(true),
        allow_dirty: Some(true),
        agent: None,
        agent_command: Some("c".to_owned()),
        agent_timeout: Some(Millis::from_secs(60)),
        model: Some("m".to_owned()),
        provider: Some("ollama".to_owned()),
        base_url: Some("http://u".to_owned()),
        fallback: vec!["f".to_owned()],
        max_wait: Some(Millis::from_secs(3600)),
        continue_sessions: Some(true),
        agent_mcp: Some(true),
        sandbox: Some("none".to_owned()),
        scenario: None,
        max_iterations: Some(0),
        max_duration: Some(Millis::from_secs(7200)),
        max_cost: value::Amount::parse("2.5"),
        allow_unpriced: Some(true),
        budget_strategy: Some("greedy".to_owned()),
        max_retries: Some(0),
        verify: vec!["v".to_owned(), "w".to_owned()],
        complete_without_claim: Some(true),
        baseline: None,
    };
    let case = Case::new("").flags(flags);
    assert_eq!(
        case.set(),
        "\
backlog = \"b.json\" <- BACKLOG
name = \"n\" <- --name
prompt = \"p.md\" <- --prompt
headless = true <- --headless
allow_dirty = true <- --allow-dirty
agent.command = \"c\" <- --agent-command
agent.model = \"m\" <- --model
agent.provider = \"ollama\" <- --provider
agent.base_url = \"http://u\" <- --base-url
agent.fallback = [\"f\"] <- --fallback
agent.max_wait = \"1h\" <- --max-wait
agent.continue = true <- --continue
agent.mcp = true <- --agent-mcp
agent.sandbox = \"none\" <- --sandbox
agent.timeout = \"1m\" <- --agent-timeout
limits.iterations = none <- --max-iterations
limits.duration = \"2h\" <- --max-duration
budget.max_cost = 2.5 <- --max-cost
budget.allow_unpriced = true <- --allow-unpriced
budget.strategy = \"greedy\" <- --budget-strategy
retry.max_retries = 0 <- --max-retries
checks.verify = [\"v\", \"w\"] <- --verify
checks.complete_without_claim = true <- --complete-without-claim"
    );
}

#[test]
fn command_and_scenario() {
    let both = "[agent]\ncommand = \"c\"\nscenario = \"s.toml\"\n";
    check_problems(
        both,
        "wiggum.toml:3:1: `agent.command` and `agent.scenario` are both set\n  hint: each says who works: keep one",
    );
    let case = Case::new("[agent]\nscenario = \"s.toml\"\n").user("[agent]\ncommand = \"c\"\n");
    assert_eq!(case.set(), "agent.scenario = \"s.toml\" <- wiggum.toml:2");
    assert_eq!(case.config().agent.command, None);
    let case = case.flags(Flags { agent_command: Some("d".to_owned()), ..Flags::default() });
    assert_eq!(case.set(), "agent.command = \"d\" <- --agent-command");
    assert_eq!(case.config().agent.scenario, None);
    let case = case.flags(Flags { agent: Some("claude".to_owned()), ..Flags::default() });
    assert_eq!(case.set(), "agent.name = \"claude\" <- --agent");
    assert_eq!(case.config().agent.command, None);
}

#[test]
fn agents_with_sections_of_their_own() {
    let case = Case::new(
        "[agents.fast]\nfamily = \"claude\"\nmodel = \"haiku\"\nargs = [\"--verbose\"]\nenv = { KEY = \"secret\" }\n\
         timeout = \"10m\"\n[agents.mine]\ncommand = \"my-agent\"\nprompt_via = \"file\"\n",
    )
    .user("[agents.fast]\nmodel = \"opus\"\nprogram = \"claude-beta\"\n");
    assert_eq!(
        case.set(),
        "agents.fast.family = \"claude\" <- wiggum.toml:2
agents.fast.program = \"claude-beta\" <- config.toml:3
agents.fast.model = \"haiku\" <- wiggum.toml:3
agents.fast.args = [\"--verbose\"] <- wiggum.toml:4
agents.fast.env = { KEY = \"…\" } <- wiggum.toml:5
agents.fast.timeout = \"10m\" <- wiggum.toml:6
agents.mine.command = \"my-agent\" <- wiggum.toml:8
agents.mine.prompt_via = \"file\" <- wiggum.toml:9"
    );
    check_problems(
        "[agents.a]\nfamily = \"cladue\"\nmodle = \"x\"\n[agents]\nb = 1\n",
        "wiggum.toml:2:10: `agents.a.family`: expected \"claude\", \"codex\", \"gemini\", \"copilot\", \"opencode\", \"aider\", \"amp\" or \"api\", found \"cladue\"\n  hint: did you mean \"claude\"?\nwiggum.toml:3:1: unknown key `agents.a.modle`\n  hint: did you mean `model`?\nwiggum.toml:5:1: `agents.b` is a section\n  hint: write [agents.b]",
    );
}

#[test]
fn a_wait_longer_than_the_longest() {
    check_problems(
        "[retry]\nbackoff = \"10m\"\n",
        "wiggum.toml:2:1: `retry.backoff` (10m) is longer than `retry.backoff_max` (5m)\n  hint: set both",
    );
    check_problems(
        "retry = { backoff = \"10m\", backoff_max = \"1s\" }",
        "wiggum.toml:1:28: `retry.backoff` (10m) is longer than `retry.backoff_max` (1s)\n  hint: set both",
    );
    check_problems(
        "[retry]\nbackoff = \"10m\"\nbackoff_max = \"x\"\n",
        "wiggum.toml:3:15: `retry.backoff_max`: expected a duration such as \"90s\", \"30m\" or \"1h30m\", found the text \"x\"",
    );
    let case = Case::new("[retry]\nbackoff = \"10m\"\nbackoff_max = \"10m\"\n");
    assert_eq!(case.config().policy.retry.backoff, Millis::from_secs(600));
}

#[test]
fn paths_of_files_are_relative_to_the_workspace() {
    let file = "backlog = \"sub/PRD.json\"\nprompt = \"~/p.md\"\n[agent]\nscenario = \"/abs/s.toml\"\n";
    let case = Case::new(file).env(&[("HOME", "/home/ralph")]);
    let config = case.config();
    assert_eq!(config.agent.scenario, Some("/abs/s.toml".into()));
    assert_eq!(config.backlog, Some(case.directory.path().join("sub/PRD.json")));
    assert_eq!(config.prompt, Some("/home/ralph/p.md".into()));
    let case = case.env(&[("WIGGUM_BACKLOG", "env.json")]);
    assert_eq!(case.config().backlog, Some("env.json".into()));
    let case = case.flags(Flags { backlog: Some("flag.json".into()), ..Flags::default() });
    assert_eq!(case.config().backlog, Some("flag.json".into()));
    let odd = PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff.json"));
    let case = case.flags(Flags { backlog: Some(odd.clone()), ..Flags::default() });
    assert_eq!(case.config().backlog, Some(odd), "a path need not be text");
    let case = Case::new("").user("[agent]\nscenario = \"s.toml\"\n");
    assert_eq!(case.config().agent.scenario, Some(case.directory.path().join("s.toml")));
}

#[test]
fn where_the_users_file_is() {
    let check = |variables: &[(&str, &str)], expected: Option<&str>| {
        let env = variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        assert_eq!(user_file(&env), expected.map(PathBuf::from));
    };
    check(&[("HOME", "/h")], Some("/h/.config/wiggum/config.toml"));
    check(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")], Some("/x/wiggum/config.toml"));
    check(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "x")], Some("/h/.config/wiggum/config.toml"));
    check(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "")], Some("/h/.config/wiggum/config.toml"));
    check(&[], None);
}

#[test]
fn shown_for_people_and_programs() {
    let case = Case::new("[agent]\nenv = { TOKEN = \"geheim\" }\n").env(&[("WIGGUM_VERIFY", "make")]);
    let rows = case.config().explain();
    let table = explained_table(&rows);
    assert!(table.contains("\nname                           \"main\""), "{table}");
    assert!(table.contains("  WIGGUM_VERIFY\n"), "{table}");
    let json = serde_json::to_value(&rows).unwrap();
    assert!(!table.contains("geheim") && !json.to_string().contains("geheim"));
    let row = json.as_array().unwrap().iter().find(|row| row["key"] == "agent.env").unwrap();
    assert_eq!(row["source"]["from"], "workspace_file");
    assert_eq!(row["source"]["line"], 2);
    let row = json.as_array().unwrap().iter().find(|row| row["key"] == "limits.duration").unwrap();
    assert_eq!((&row["value"], &row["source"]["from"]), (&serde_json::Value::Null, &"default".into()));
}

/// The example of a key or its default: something that can be set, as it is written in TOML.
fn shown(key: &Key) -> String {
    key.example.map_or_else(|| key.default().to_string(), str::to_owned)
}

fn files_keys() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| key.settable == Settable::Everywhere)
}

#[test]
fn the_table_is_sound() {
    let mut names = std::collections::BTreeSet::new();
    for key in KEYS {
        assert!(names.insert(key.path), "{} is there twice", key.path);
        assert!(SECTIONS.iter().any(|(section, _)| *section == key.section()), "{}", key.path);
        assert!(key.help.ends_with('.'), "{}", key.path);
        assert!(
            key.example.is_some() || !key.default().is_empty() || key.settable == Settable::PerRun,
            "{}",
            key.path
        );
        for variable in key.variables() {
            assert!(names.insert(variable.clone().leak()), "{variable} is there twice");
            assert!(!value::OWN_VARIABLES.contains(&variable.as_str()), "{variable}");
        }
        // Setting the default changes nothing: `get` and `set` mean the same field.
        let mut config = Config::default();
        (key.set)(&mut config, key.default());
        assert_eq!(config, Config::default(), "{}", key.path);
    }
}

#[test]
fn every_key_can_be_set_in_a_file_and_by_variable() {
    for key in files_keys() {
        let config = Case::new(&format!("{} = {}\n", key.path, shown(key))).config();
        assert!(matches!(config.source(key.path), ConfigSource::WorkspaceFile { .. }), "{}", key.path);
    }
    for key in KEYS {
        for variable in key.variables() {
            let text = shown(key);
            let text = if key.default() == Value::None && key.example.is_none() {
                "x"
            } else {
                text.trim_matches('"')
            };
            let config = Case::new("").env(&[(&variable, text)]).config();
            assert_eq!(config.source(key.path), &ConfigSource::Environment { variable });
        }
    }
}

/// Each field of the policy is somebody's key, but for what is not configuration.
#[test]
fn every_rule_of_the_policy_has_a_key() {
    let mut config = Config::default();
    for key in KEYS {
        let other = match key.shape {
            Shape::Name | Shape::Path | Shape::Command => Value::Text("other".to_owned()),
            Shape::Commands | Shape::Globs | Shape::Words => Value::List(vec!["other".to_owned()]),
            Shape::Count(_) => Value::Count(4711),
            Shape::Duration(_) => Value::Duration(Millis(4711)),
            Shape::Amount(_) => Value::Amount(value::Amount::from_f64(4.5).unwrap()),
            Shape::Fraction(_) => Value::Amount(value::Amount::from_f64(0.4711).unwrap()),
            Shape::Parts => Value::Amounts(vec![value::Amount::from_f64(0.5).unwrap()]),
            Shape::Switch => Value::Switch(key.default() != Value::Switch(true)),
            Shape::Choice(words) => {
                let unlike = words.iter().find(|word| Value::Text((**word).to_owned()) != key.default());
                Value::Text((*unlike.unwrap()).to_owned())
            }
            Shape::Variables | Shape::Pairs => {
                Value::Variables(BTreeMap::from([("A".to_owned(), "b".to_owned())]))
            }
        };
        (key.set)(&mut config, other.clone());
        assert_eq!((key.get)(&config), other, "{}", key.path);
    }
    let (before, after) = (flat(&Policy::default()), flat(&config.policy));
    let same: Vec<_> =
        before.iter().filter(|(path, value)| after.get(*path) == Some(value)).map(|(path, _)| path).collect();
    // Those of agents follow from their names and sections.
    assert_eq!(
        same,
        [
            "agents.order",
            "agents.timeouts",
            "limits.same_evidence",
            "people.present",
            "retry.unclaimed_counts",
            "selection"
        ]
    );
}

fn flat(policy: &Policy) -> BTreeMap<String, serde_json::Value> {
    let serde_json::Value::Object(sections) = serde_json::to_value(policy).unwrap() else { panic!() };
    let mut rules = BTreeMap::new();
    for (section, fields) in sections {
        match fields {
            serde_json::Value::Object(fields) => {
                rules.extend(fields.into_iter().map(|(name, value)| (format!("{section}.{name}"), value)));
            }
            value => drop(rules.insert(section, value)),
        }
    }
    rules
}

#[test]
fn every_word_of_a_choice_is_understood() {
    for key in KEYS {
        let Shape::Choice(words) = key.shape else { continue };
        for word in words {
            let mut config = Config::default();
            (key.set)(&mut config, Value::Text((*word).to_owned()));
            assert_eq!((key.get)(&config), Value::Text((*word).to_owned()));
        }
    }
}

#[test]
fn the_generated_file_is_the_default_and_each_of_its_lines_works() {
    let text = commented_toml(&[]);
    assert_eq!(Case::new(&text).config(), Config::default());
    for key in files_keys() {
        let commented = format!("\n#{} = ", key.name());
        let section = format!("\n[{}]\n", key.section());
        let start = if key.section().is_empty() { 0 } else { text.find(&section).expect("its section") };
        let at = start + text[start..].find(&commented).unwrap_or_else(|| panic!("{} is missing", key.path));
        let set = format!("{}\n{}", &text[..at], &text[at + 2..]);
        let config = Case::new(&set).config();
        assert!(matches!(config.source(key.path), ConfigSource::WorkspaceFile { .. }), "{}", key.path);
        // Whoever reads it can tell what is in force from what is not.
        let says = text[..at].lines().last().unwrap_or_default();
        let is_example = key.default().is_empty() && key.example.is_some();
        assert_eq!(says.ends_with(" by default; for example:"), is_example, "{}: {says}", key.path);
        if !key.default().is_empty() {
            let shown = config.explain().into_iter().find(|row| row.key == key.path).unwrap();
            assert_eq!(shown.value, key.default(), "{}", key.path);
        }
    }
    let longest = text.lines().map(|line| line.chars().count()).filter(|width| *width < 150).max();
    assert!(longest <= Some(110), "{longest:?}");
}

#[test]
fn the_generated_file_sets_what_was_found() {
    let odd = "sh -c 'echo \"a\\b\"'";
    let preset = |key, value| Preset { key, value, because: "found x".to_owned() };
    let text = commented_toml(&[
        preset("backlog", Value::Text("PRD.json".to_owned())),
        preset("checks.verify", Value::List(vec![odd.to_owned()])),
    ]);
    assert!(text.contains("\n# (found x)\nbacklog = \"PRD.json\"\n"), "{text}");
    let config = Case::new(&text).config();
    assert_eq!(config.policy.checks.verify, [odd]);
}

#[test]
fn the_schema_knows_every_key_and_its_default() {
    let schema = config_schema();
    for key in files_keys() {
        let section = match key.section() {
            "" => &schema,
            section => &schema["properties"][section],
        };
        assert_eq!(section["additionalProperties"], false, "{}", key.path);
        let property = &section["properties"][key.name()];
        assert_eq!(property["description"], key.help, "{}", key.path);
        assert_eq!(property["default"], serde_json::Value::from(key.default()), "{}", key.path);
    }
    assert_eq!(schema["properties"]["headless"], serde_json::Value::Null);
    assert_eq!(
        schema["properties"]["retry"]["properties"]["from"]["enum"],
        serde_json::json!(["work", "clean"])
    );
}

#[test]
fn the_documentation_knows_every_key() {
    let text = configuration_markdown();
    for key in KEYS {
        assert!(text.contains(key.help), "{}", key.path);
        assert!(key.variables().all(|variable| text.contains(&format!("`{variable}`"))), "{}", key.path);
    }
    assert!(text.contains("| `iterations` | number | `50` |"), "{text}");
}

#[test]
fn money_that_makes_no_sense_is_refused_with_its_line() {
    check_problems(
        "[budget]\nmax_cost = -1\ntask_cost = nan\nproject_cost = inf\nalert_at = 70\nmulti_agent_factor = 0\n\
         action = \"stop\"\nstrategy = \"gready\"\nmax_tokens = 1.5\norganisation_cost = 0.0000001\n",
        "\
wiggum.toml:2:12: `budget.max_cost`: expected an amount such as 5 or 2.50, 0 or more, found -1
wiggum.toml:3:13: `budget.task_cost`: expected an amount such as 5 or 2.50, 0 or more, found nan
wiggum.toml:4:16: `budget.project_cost`: expected an amount such as 5 or 2.50, 0 or more, found inf
wiggum.toml:5:12: `budget.alert_at`: expected a part above 0 and up to 1, found 70
  hint: write 0.7
wiggum.toml:6:22: `budget.multi_agent_factor`: expected an amount such as 5 or 2.50, more than 0, found 0
wiggum.toml:7:10: `budget.action`: expected \"allow\", \"throttle\", \"deny\" or \"alert-only\", found \"stop\"
wiggum.toml:8:12: `budget.strategy`: expected \"greedy\", \"critical-path\" or \"conservative\", found \"gready\"
  hint: did you mean \"greedy\"?
wiggum.toml:9:14: `budget.max_tokens`: expected a whole number, 0 or more, found 1.5
wiggum.toml:10:21: `budget.organisation_cost`: expected an amount such as 5 or 2.50, 0 or more, found 0.0000001",
    );
    check_problems(
        "[budget]\nalert_at = [0.5, 80, 0]\n",
        "wiggum.toml:2:18: `budget.alert_at`: expected a part above 0 and up to 1, found 80\n  hint: write 0.8\n\
         wiggum.toml:2:22: `budget.alert_at`: expected a part above 0 and up to 1, found 0",
    );
}

#[test]
fn budgets_by_file_and_by_the_names_of_older_programs() {
    let case = Case::new("[budget]\nmax_cost = 50\nalert_at = [0.5, 0.9]\n")
        .env(&[("MAX_COST", "2.50"), ("MAX_CALLS_PER_HOUR", "100")]);
    assert_eq!(
        case.set(),
        "limits.calls_per_hour = 100 <- MAX_CALLS_PER_HOUR\nbudget.max_cost = 2.5 <- MAX_COST\n\
         budget.alert_at = [0.5, 0.9] <- wiggum.toml:3"
    );
    let budget = case.config().policy.budget;
    assert_eq!((budget.own.max_cost, budget.alert_at), (Some(2.5), vec![0.5, 0.9]));
    assert_eq!(Case::new("[budget]\nmax_cost = 0\n").config().policy.budget.own.max_cost, None);
}

#[test]
fn prices_of_models() {
    let case = Case::new("[prices.\"some/model-1.5\"]\ninput = 3\noutput = 15.0\ncache_read = 0.3\n");
    assert_eq!(
        case.set(),
        "prices.\"some/model-1.5\".cache_read = 0.3 <- wiggum.toml:4\n\
         prices.\"some/model-1.5\".input = 3 <- wiggum.toml:2\n\
         prices.\"some/model-1.5\".output = 15 <- wiggum.toml:3"
    );
    let prices = case.config().policy.prices["some/model-1.5"];
    assert_eq!((prices.input, prices.output, prices.cache_read, prices.cache_write), (3.0, 15.0, 0.3, 3.0));
    check_problems(
        "[prices.m]\ninput = 3\n",
        "wiggum.toml:2:1: `prices.\"m\"`: the price of output is missing\n  \
         hint: a model needs at least the prices of input and output",
    );
    check_problems(
        "[prices.m]\ninput = -3\noutput = 1\ninputs = 3\n",
        "wiggum.toml:2:9: `prices.\"m\".input`: expected an amount such as 5 or 2.50, 0 or more, found -3\n\
         wiggum.toml:4:1: unknown key `prices.\"m\".inputs`\n  \
         hint: the prices of a model are input, output, cache_read, cache_write",
    );
}

#[test]
fn a_limit_of_plans_that_is_said_for_this_run_bounds_them_all() {
    let limits = |case: Case| {
        let rules = case.config().plans;
        (rules.limit(None), rules.limit(Some(10)), rules.limit(Some(2)))
    };
    let file = "[plans]\nmax_iterations = 3\n";
    assert_eq!(limits(Case::new("")), (10, 10, 2));
    assert_eq!(limits(Case::new(file)), (3, 10, 2), "a file speaks for plans that name no limit");
    assert_eq!(limits(Case::new("").env(&[("MAX_PLAN_ITERATIONS", "3")])), (3, 3, 2));
    assert_eq!(limits(Case::new(file).env(&[("WIGGUM_PLANS_MAX_ITERATIONS", "5")])), (5, 5, 2));
}

#[test]
fn the_data_directory() {
    let of = |variables: &[(&str, &str)]| {
        let env = variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        data_dir(&env).map(|path| path.display().to_string())
    };
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[("HOME", "/h")]).as_deref(), Some("/h/.local/share/wiggum"));
    assert_eq!(of(&[("HOME", "/h"), ("XDG_DATA_HOME", "/x")]).as_deref(), Some("/x/wiggum"));
    assert_eq!(of(&[("HOME", "/h"), ("WIGGUM_DATA_DIR", "/d")]).as_deref(), Some("/d"));
    assert_eq!(of(&[("WIGGUM_DATA_DIR", "d")]).as_deref(), Some("d"));
    assert_eq!(of(&[("HOME", "/h"), ("XDG_DATA_HOME", "x")]).as_deref(), Some("/h/.local/share/wiggum"));
}
