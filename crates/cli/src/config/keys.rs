//! The table of all keys: the one place where a key, its shape, its other names and its meaning
//! are written down. Reading, `config show`, the generated `wiggum.toml`, the documentation and
//! the JSON Schema all come from it. Defaults are not in it: they are those of `Config::default`,
//! which takes them from [`wiggum_core::policy`].

use serde::Serialize;
use serde::de::DeserializeOwned;
use wiggum_agents::PromptVia;
use wiggum_api_agent::Provider;

use super::Config;
use super::value::{Amount, Shape, Value, Zero};
use crate::sandbox::Choice;

/// One thing that can be configured.
#[derive(Debug)]
pub(crate) struct Key {
    /// The section and the name in it, as in `limits.iterations`; without a section for the few
    /// at the top.
    pub(crate) path: &'static str,
    pub(crate) shape: Shape,
    pub(crate) settable: Settable,
    /// The flag of `wiggum run` that sets it.
    pub(crate) flag: Option<&'static str>,
    /// Environment variables besides [`Key::variable`], the weakest first.
    pub(crate) other_variables: &'static [&'static str],
    pub(crate) help: &'static str,
    /// What the generated file shows where there is no default to show, as it is written in TOML.
    pub(crate) example: Option<&'static str>,
    pub(super) get: fn(&Config) -> Value,
    pub(super) set: fn(&mut Config, Value),
}

/// Where a key may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settable {
    Everywhere,
    /// A matter of one run: by flag and environment, not by file.
    PerRun,
    /// In the user's own file and by environment, not in the workspace, where agents write.
    ByUser,
}

/// What a section is about; the order is that of the generated file. The first has no name.
pub(crate) const SECTIONS: &[(&str, &str)] = &[
    ("", "What is worked on."),
    ("agent", "Who does the work."),
    ("limits", "When a run ends although there is work left."),
    ("budget", "What may be spent, and what happens when it is."),
    ("claims", "What counts as a claim that a task is done, and what supports one."),
    ("health", "What happens to an agent that makes no progress."),
    ("breaker", "When a loop that gets nowhere stops by itself, and how it tries again."),
    ("retry", "What happens after a failed attempt."),
    ("checks", "How a claim is checked before a task counts as done."),
    ("workspace", "What a work tree needs beside what git has."),
    ("protect", "What an agent should leave alone."),
    ("people", "How questions to a person are handled."),
    ("handoff", "When work is handed over to a fresh context, and what happens then."),
    ("plans", "How plans are carried out, in a vault and by `wiggum run Plan.md`."),
];

const PERIOD: Shape = Shape::Choice(&["none", "day", "week", "month"]);

const ON_TOUCH: Shape = Shape::Choice(&["warn", "refuse", "ask"]);

pub(crate) const KEYS: &[Key] = &[
    Key {
        path: "backlog",
        flag: Some("BACKLOG"),
        help: "The file with the tasks. Found automatically if missing.",
        example: Some("\"PRD.json\""),
        get: |config| optional_path(config.backlog.as_ref()),
        set: |config, value| config.backlog = value.optional_text().map(Into::into),
        ..Key::of(Shape::Path)
    },
    Key {
        path: "name",
        flag: Some("--name"),
        help: "Tells several loops over the same backlog apart.",
        get: |config| Value::Text(config.name.clone()),
        set: |config, value| config.name = value.text(),
        ..Key::of(Shape::Name)
    },
    Key {
        path: "prompt",
        flag: Some("--prompt"),
        help: "Your instructions to the agent, put before every task. PROMPT.md is taken if it is there, \
               else built-in ones.",
        example: Some("\"PROMPT.md\""),
        get: |config| optional_path(config.prompt.as_ref()),
        set: |config, value| config.prompt = value.optional_text().map(Into::into),
        ..Key::of(Shape::Path)
    },
    Key {
        path: "state_root",
        settable: Settable::ByUser,
        help: "Where journals, transcripts and other private state are kept, one directory for each checkout. \
               Never inside of a workspace: agents can write there.",
        example: Some("\"/var/lib/wiggum\""),
        get: |config| optional_path(config.state_root.as_ref()),
        set: |config, value| config.state_root = value.optional_text().map(Into::into),
        ..Key::of(Shape::Path)
    },
    Key {
        path: "headless",
        settable: Settable::PerRun,
        flag: Some("--headless"),
        help: "Nobody is there to ask: tasks with a question are parked and the run goes on with others.",
        get: |config| Value::Switch(config.headless),
        set: |config, value| config.headless = value.switch(),
        ..Key::of(Shape::Switch)
    },
    Key {
        path: "allow_dirty",
        settable: Settable::PerRun,
        flag: Some("--allow-dirty"),
        help: "Start although there are uncommitted changes: they are set aside and put back at the end.",
        get: |config| Value::Switch(config.allow_dirty),
        set: |config, value| config.allow_dirty = value.switch(),
        ..Key::of(Shape::Switch)
    },
    Key {
        path: "agent.name",
        flag: Some("--agent"),
        other_variables: &["WIGGUM_AGENT"],
        help: "The agent to use: claude, codex, gemini, copilot, opencode, aider, amp, api (built in, over a \
               model's API), or one with a section [agents.NAME].",
        example: Some("\"claude\""),
        get: |config| optional_text(config.agent.name.as_ref()),
        set: |config, value| config.agent.name = value.optional_text(),
        ..Key::of(Shape::Name)
    },
    Key {
        path: "agent.command",
        flag: Some("--agent-command"),
        help: "Any command that works on one task in the current directory: it is given the prompt, and what it \
               prints is its message.",
        example: Some("\"claude -p --dangerously-skip-permissions\""),
        get: |config| optional_text(config.agent.command.as_ref()),
        set: |config, value| config.agent.command = value.optional_text(),
        ..Key::of(Shape::Command)
    },
    Key {
        path: "agent.model",
        flag: Some("--model"),
        other_variables: &["WIGGUM_MODEL"],
        help: "The model that the agent should use, by the agent's own name for it.",
        example: Some("\"sonnet\""),
        get: |config| optional_text(config.agent.model.as_ref()),
        set: |config, value| config.agent.model = value.optional_text(),
        ..Key::of(Shape::Command)
    },
    Key {
        path: "agent.provider",
        flag: Some("--provider"),
        other_variables: &["WIGGUM_PROVIDER"],
        help: "Whose models the built-in agent (`api`) asks.",
        example: Some("\"ollama\""),
        get: |config| optional_text(config.agent.api.provider.as_ref()),
        set: |config, value| config.agent.api.provider = value.optional_text(),
        ..Key::of(Shape::Choice(Provider::NAMES))
    },
    Key {
        path: "agent.base_url",
        flag: Some("--base-url"),
        other_variables: &["WIGGUM_BASE_URL"],
        help: "Where the built-in agent asks, if not at the provider's usual address; without a provider, anybody \
               who answers as OpenAI does.",
        example: Some("\"http://127.0.0.1:8080/v1\""),
        get: |config| optional_text(config.agent.api.base_url.as_ref()),
        set: |config, value| config.agent.api.base_url = value.optional_text(),
        ..Key::of(Shape::Command)
    },
    Key {
        path: "agent.key_env",
        help: "The name of the variable with the key for the built-in agent, if not the provider's usual one.",
        example: Some("\"MY_PROVIDER_KEY\""),
        get: |config| optional_text(config.agent.api.key_env.as_ref()),
        set: |config, value| config.agent.api.key_env = value.optional_text(),
        ..Key::of(Shape::Command)
    },
    Key {
        path: "agent.context_window",
        help: "How many tokens fit into the context of the built-in agent's model. 0 is as usual with the provider.",
        example: Some("32768"),
        get: |config| config.agent.api.context_window.map_or(Value::None, Value::Count),
        set: |config, value| config.agent.api.context_window = value.optional_count(),
        ..Key::of(Shape::Count(Zero::NoLimit))
    },
    Key {
        path: "agent.max_turns",
        help: "How many answers of its model the built-in agent may take for one attempt. 0 is 200.",
        example: Some("50"),
        get: |config| config.agent.api.max_turns.map_or(Value::None, Value::Count),
        set: |config, value| config.agent.api.max_turns = value.optional_count(),
        ..Key::of(Shape::Count(Zero::NoLimit))
    },
    Key {
        path: "agent.prices",
        help: "What the built-in agent's model costs, in dollars per million tokens: input, output, cache_read and \
               cache_write. Without them [prices] counts, else the built-in table.",
        example: Some("{ input = \"3\", output = \"15\" }"),
        get: |config| Value::Variables(config.agent.api.prices.clone()),
        set: |config, value| config.agent.api.prices = value.variables(),
        ..Key::of(Shape::Pairs)
    },
    Key {
        path: "agent.args",
        help: "Further arguments for the agent's program.",
        example: Some("[\"--max-turns\", \"50\"]"),
        get: |config| Value::List(config.agent.args.clone()),
        set: |config, value| config.agent.args = value.list(),
        ..Key::of(Shape::Words)
    },
    Key {
        path: "agent.fallback",
        flag: Some("--fallback"),
        other_variables: &["WIGGUM_FALLBACK"],
        help: "Agents that take over, in this order, while the first one cannot work: its usage limit is reached, \
               its provider fails, it is missing or not logged in.",
        example: Some("[\"codex\"]"),
        get: |config| Value::List(config.agent.fallback.clone()),
        set: |config, value| config.agent.fallback = value.list(),
        ..Key::of(Shape::Words)
    },
    Key {
        path: "agent.roles",
        help: "Who works on tasks of a role, by the name of the agent.",
        example: Some("{ tester = \"codex\" }"),
        get: |config| Value::Variables(config.policy.agents.roles.clone()),
        set: |config, value| config.policy.agents.roles = value.variables(),
        ..Key::of(Shape::Pairs)
    },
    Key {
        path: "agent.max_wait",
        flag: Some("--max-wait"),
        other_variables: &["WIGGUM_MAX_WAIT"],
        help: "How long agents that cannot work are waited for before the run ends. 0 is not at all.",
        get: |config| Value::Duration(config.policy.agents.max_wait),
        set: |config, value| config.policy.agents.max_wait = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "agent.backoff",
        help: "How long the loop waits after a fault of the agent's provider; doubles with each.",
        get: |config| Value::Duration(config.policy.agents.backoff),
        set: |config, value| config.policy.agents.backoff = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "agent.backoff_max",
        help: "The longest such wait.",
        get: |config| Value::Duration(config.policy.agents.backoff_max),
        set: |config, value| config.policy.agents.backoff_max = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "agent.limit_wait",
        help: "How long the loop waits after a usage limit that does not say when it ends; doubles each time, up to an \
               hour, and no longer than `max_wait` in all.",
        get: |config| Value::Duration(config.policy.agents.limit_wait),
        set: |config, value| config.policy.agents.limit_wait = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "agent.silence",
        help: "How long an agent that tells what it does may say nothing new before it is ended at once, \
               without the nudges and questions of [health]. 0 is no such limit.",
        example: Some("\"30m\""),
        get: |config| config.policy.agents.silence.map_or(Value::None, Value::Duration),
        set: |config, value| config.policy.agents.silence = value.optional_duration(),
        ..Key::of(Shape::Duration(Zero::NoLimit))
    },
    Key {
        path: "agent.continue",
        flag: Some("--continue"),
        help: "Go on with the agent's own session from one iteration to the next, instead of a fresh one each.",
        get: |config| Value::Switch(config.policy.agents.continue_sessions),
        set: |config, value| config.policy.agents.continue_sessions = value.switch(),
        ..Key::of(Shape::Switch)
    },
    Key {
        path: "agent.mcp",
        flag: Some("--agent-mcp"),
        help: "Hand the agent wiggum's own MCP server, so that it claims, asks and reports by calling tools; what it \
               says in its text counts as well. Claude Code, Codex and Copilot know how; others do without.",
        get: |config| Value::Switch(config.agent.mcp),
        set: |config, value| config.agent.mcp = value.switch(),
        ..Key::of(Shape::Switch)
    },
    Key {
        path: "agent.pass_env",
        help: "Variables of your environment that agents get although they look like secrets of something else. \
               A `*` at the end stands for any rest.",
        example: Some("[\"NPM_TOKEN\"]"),
        get: |config| Value::List(config.agent.pass_env.clone()),
        set: |config, value| config.agent.pass_env = value.list(),
        ..Key::of(Shape::Words)
    },
    Key {
        path: "agent.sandbox",
        flag: Some("--sandbox"),
        other_variables: &["WIGGUM_SANDBOX"],
        help: "What keeps agents from writing outside of the workspace, their own directories, caches and temporary \
               files: the program bwrap, which also hides credentials and sockets of others, the kernel's landlock, \
               none, or auto for the first of these that works.",
        get: |config| Value::Text(config.agent.sandbox.word().to_owned()),
        set: |config, value| config.agent.sandbox = Choice::from_word(&value.text()),
        ..Key::of(Shape::Choice(Choice::WORDS))
    },
    Key {
        path: "agent.writable",
        help: "Further files and directories that agents may write to in the sandbox. `~/` is your home directory.",
        example: Some("[\"~/.gnupg\", \"../shared\"]"),
        get: |config| Value::List(config.agent.writable.clone()),
        set: |config, value| config.agent.writable = value.list(),
        ..Key::of(Shape::Words)
    },
    Key {
        path: "agent.readable",
        help: "Credentials of other programs that agents see in the sandbox bwrap, which hides them otherwise. `~/` is \
               your home directory.",
        example: Some("[\"~/.config/gh\"]"),
        get: |config| Value::List(config.agent.readable.clone()),
        set: |config, value| config.agent.readable = value.list(),
        ..Key::of(Shape::Words)
    },
    Key {
        path: "agent.sockets",
        help: "Sockets of daemons (docker, D-Bus, tmux, ssh-agent) that agents see in the sandbox bwrap, which hides \
               them otherwise.",
        example: Some("[\"/run/docker.sock\"]"),
        get: |config| Value::List(config.agent.sockets.clone()),
        set: |config, value| config.agent.sockets = value.list(),
        ..Key::of(Shape::Words)
    },
    Key {
        path: "agent.prompt_via",
        help: "How the command gets the prompt: on its standard input, as its last argument, or as a file whose \
               path is its last argument.",
        get: |config| Value::Text(prompt_via_word(config.agent.prompt_via).to_owned()),
        set: |config, value| config.agent.prompt_via = prompt_via(&value.text()),
        ..Key::of(Shape::Choice(&["stdin", "argument", "file"]))
    },
    Key {
        path: "agent.timeout",
        flag: Some("--agent-timeout"),
        help: "How long the agent may work on one attempt. 0 is no limit.",
        example: Some("\"30m\""),
        get: |config| config.policy.limits.agent_timeout.map_or(Value::None, Value::Duration),
        set: |config, value| config.policy.limits.agent_timeout = value.optional_duration(),
        ..Key::of(Shape::Duration(Zero::NoLimit))
    },
    Key {
        path: "agent.env",
        help: "Environment variables for the agent, on top of your own.",
        example: Some("{ KEY = \"value\" }"),
        get: |config| Value::Variables(config.agent.env.clone()),
        set: |config, value| config.agent.env = value.variables(),
        ..Key::of(Shape::Variables)
    },
    Key {
        path: "agent.scenario",
        flag: Some("--scenario"),
        other_variables: &["WIGGUM_SCENARIO"],
        help: "A file of steps that the built-in scripted agent plays instead of a command, for demos and tests.",
        example: Some("\"demo.toml\""),
        get: |config| optional_path(config.agent.scenario.as_ref()),
        set: |config, value| config.agent.scenario = value.optional_text().map(Into::into),
        ..Key::of(Shape::Path)
    },
    Key {
        path: "limits.iterations",
        flag: Some("--max-iterations"),
        other_variables: &["MAX_ITERATIONS", "RALPH_MAX_ITERATIONS", "WIGGUM_MAX_ITERATIONS"],
        help: "Iterations in one run. 0 is no limit. In a session 10 where nothing is set.",
        get: |config| config.policy.limits.iterations.map_or(Value::None, Value::Count),
        set: |config, value| config.policy.limits.iterations = value.optional_count(),
        ..Key::of(Shape::Count(Zero::NoLimit))
    },
    Key {
        path: "limits.duration",
        flag: Some("--max-duration"),
        other_variables: &["WIGGUM_MAX_DURATION"],
        help: "How long one run may take. 0 is no limit.",
        example: Some("\"2h\""),
        get: |config| config.policy.limits.duration.map_or(Value::None, Value::Duration),
        set: |config, value| config.policy.limits.duration = value.optional_duration(),
        ..Key::of(Shape::Duration(Zero::NoLimit))
    },
    Key {
        path: "limits.consecutive_errors",
        help: "Errors in a row, over all tasks, that end the run. 0 is never.",
        get: |config| Value::Count(config.policy.limits.consecutive_errors),
        set: |config, value| config.policy.limits.consecutive_errors = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "limits.no_progress",
        help: "Iterations in a row that neither complete a task nor change a file, and so end the run. 0 is never.",
        get: |config| Value::Count(config.policy.limits.no_progress),
        set: |config, value| config.policy.limits.no_progress = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "limits.stuck_threshold",
        other_variables: &["STUCK_THRESHOLD"],
        help: "The same error this many times in a row on one task becomes a question to a person. 0 is never.",
        get: |config| Value::Count(config.policy.limits.stuck_threshold),
        set: |config, value| config.policy.limits.stuck_threshold = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "limits.max_tasks",
        help: "How many tasks the backlog may hold before tasks added by a running loop are refused.",
        get: |config| Value::Count(config.policy.limits.max_tasks),
        set: |config, value| config.policy.limits.max_tasks = value.count(),
        ..Key::of(Shape::Count(Zero::Refused))
    },
    Key {
        path: "limits.calls_per_hour",
        other_variables: &["MAX_CALLS_PER_HOUR", "WIGGUM_CALLS_PER_HOUR"],
        help: "How many times agents may be started within an hour; after that the loop waits. 0 is no limit.",
        example: Some("100"),
        get: |config| config.policy.limits.calls_per_hour.map_or(Value::None, Value::Count),
        set: |config, value| config.policy.limits.calls_per_hour = value.optional_count(),
        ..Key::of(Shape::Count(Zero::NoLimit))
    },
    Key {
        path: "budget.max_cost",
        flag: Some("--max-cost"),
        other_variables: &["MAX_COST", "WIGGUM_MAX_COST"],
        help: "Dollars that this loop may spend, in all its runs. 0 is no limit.",
        example: Some("50"),
        get: |config| optional_amount(config.policy.budget.own.max_cost),
        set: |config, value| config.policy.budget.own.max_cost = value.optional_amount(),
        ..Key::of(Shape::Amount(Zero::NoLimit))
    },
    Key {
        path: "budget.max_tokens",
        help: "Tokens of every kind that this loop may use, in all its runs. 0 is no limit.",
        example: Some("20000000"),
        get: |config| tokens(config.policy.budget.own.max_tokens),
        set: |config, value| config.policy.budget.own.max_tokens = value.optional_count().map(u64::from),
        ..Key::of(Shape::Count(Zero::NoLimit))
    },
    Key {
        path: "budget.task_cost",
        help: "Dollars that one task may cost before it is failed and asked about. 0 is no limit.",
        example: Some("5"),
        get: |config| optional_amount(config.policy.budget.task.max_cost),
        set: |config, value| config.policy.budget.task.max_cost = value.optional_amount(),
        ..Key::of(Shape::Amount(Zero::NoLimit))
    },
    Key {
        path: "budget.task_tokens",
        help: "Tokens that one task may use before it is failed and asked about. 0 is no limit.",
        example: Some("2000000"),
        get: |config| tokens(config.policy.budget.task.max_tokens),
        set: |config, value| config.policy.budget.task.max_tokens = value.optional_count().map(u64::from),
        ..Key::of(Shape::Count(Zero::NoLimit))
    },
    Key {
        path: "budget.project_cost",
        help: "Dollars that all loops of this repository, in all its work trees, may spend together. 0 is no limit.",
        example: Some("100"),
        get: |config| optional_amount(config.policy.budget.project.max_cost),
        set: |config, value| config.policy.budget.project.max_cost = value.optional_amount(),
        ..Key::of(Shape::Amount(Zero::NoLimit))
    },
    Key {
        path: "budget.project_tokens",
        help: "Tokens that all loops of this repository may use together. 0 is no limit.",
        example: Some("50000000"),
        get: |config| tokens(config.policy.budget.project.max_tokens),
        set: |config, value| config.policy.budget.project.max_tokens = value.optional_count().map(u64::from),
        ..Key::of(Shape::Count(Zero::NoLimit))
    },
    Key {
        path: "budget.project_period",
        help: "When the project's budget begins anew: every day, week (on Monday) or month of your calendar, or never.",
        get: |config| word(&config.policy.budget.project.period),
        set: |config, value| config.policy.budget.project.period = meaning(value),
        ..Key::of(PERIOD)
    },
    Key {
        path: "budget.organisation_cost",
        help: "Dollars that all your loops on this machine may spend together. 0 is no limit.",
        example: Some("500"),
        get: |config| optional_amount(config.policy.budget.organisation.max_cost),
        set: |config, value| config.policy.budget.organisation.max_cost = value.optional_amount(),
        ..Key::of(Shape::Amount(Zero::NoLimit))
    },
    Key {
        path: "budget.organisation_tokens",
        help: "Tokens that all your loops on this machine may use together. 0 is no limit.",
        example: Some("200000000"),
        get: |config| tokens(config.policy.budget.organisation.max_tokens),
        set: |config, value| {
            config.policy.budget.organisation.max_tokens = value.optional_count().map(u64::from)
        },
        ..Key::of(Shape::Count(Zero::NoLimit))
    },
    Key {
        path: "budget.organisation_period",
        help: "When the organisation's budget begins anew: every day, week (on Monday) or month of your calendar, or \
               never.",
        get: |config| word(&config.policy.budget.organisation.period),
        set: |config, value| config.policy.budget.organisation.period = meaning(value),
        ..Key::of(PERIOD)
    },
    Key {
        path: "budget.allow_unpriced",
        flag: Some("--allow-unpriced"),
        help: "Go on although a limit in dollars cannot hold an agent, because nobody knows what it costs.",
        get: |config| Value::Switch(config.allow_unpriced),
        set: |config, value| config.allow_unpriced = value.switch(),
        ..Key::of(Shape::Switch)
    },
    Key {
        path: "budget.action",
        help: "What happens when a budget is used up: nothing, a wait before each call that doubles, the end of \
               the run, or an alert only.",
        get: |config| word(&config.policy.budget.action),
        set: |config, value| config.policy.budget.action = meaning(value),
        ..Key::of(Shape::Choice(&["allow", "throttle", "deny", "alert-only"]))
    },
    Key {
        path: "budget.alert_at",
        help: "The parts of a budget at which it is said, once each, that so much of it is gone.",
        get: |config| parts(&config.policy.budget.alert_at),
        set: |config, value| config.policy.budget.alert_at = value.parts(),
        ..Key::of(Shape::Parts)
    },
    Key {
        path: "budget.strategy",
        flag: Some("--budget-strategy"),
        help: "How what is left is used: in the usual order for as long as there is anything (greedy), what most \
               other tasks wait on first when money gets short (critical-path), or only for calls that would be \
               paid for even if they got as dear as the dearest so far (conservative).",
        get: |config| word(&config.policy.budget.strategy),
        set: |config, value| config.policy.budget.strategy = meaning(value),
        ..Key::of(Shape::Choice(&["greedy", "critical-path", "conservative"]))
    },
    Key {
        path: "budget.throttle",
        help: "With action = \"throttle\": the wait before the first call beyond the limit; doubles with each.",
        get: |config| Value::Duration(config.policy.budget.throttle),
        set: |config, value| config.policy.budget.throttle = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "budget.throttle_max",
        help: "The longest such wait.",
        get: |config| Value::Duration(config.policy.budget.throttle_max),
        set: |config, value| config.policy.budget.throttle_max = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "budget.multi_agent_factor",
        help: "How many times as dear as others a task with the label \"multi-agent\" is in forecasts, until the \
               loop has completed one.",
        get: |config| amount(config.policy.budget.multi_agent_factor),
        set: |config, value| config.policy.budget.multi_agent_factor = value.amount(),
        ..Key::of(Shape::Amount(Zero::Refused))
    },
    Key {
        path: "claims.promises",
        help: "Words in `<promise>…</promise>` by which an agent says that its task is done. TASK_COMPLETE also counts \
               alone on a line.",
        get: |config| Value::List(config.policy.claims.promises.clone()),
        set: |config, value| config.policy.claims.promises = value.list(),
        ..Key::of(Shape::Words)
    },
    Key {
        path: "claims.phrases",
        help: "Phrases that support a claim. Alone they complete nothing.",
        get: |config| Value::List(config.policy.claims.phrases.clone()),
        set: |config, value| config.policy.claims.phrases = value.list(),
        ..Key::of(Shape::Words)
    },
    Key {
        path: "claims.boxes",
        help: "That all other boxes of the backlog are ticked supports a claim.",
        get: |config| Value::Switch(config.policy.claims.boxes),
        set: |config, value| config.policy.claims.boxes = value.switch(),
        ..Key::of(Shape::Switch)
    },
    Key {
        path: "claims.done_claims",
        help: "Iterations in a row that say done, by a claim or a phrase, which support a claim. 0 is never.",
        get: |config| Value::Count(config.policy.claims.done_claims),
        set: |config, value| config.policy.claims.done_claims = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "claims.test_only",
        help: "Iterations in a row that change only tests, which support a claim. 0 is never.",
        get: |config| Value::Count(config.policy.claims.test_only),
        set: |config, value| config.policy.claims.test_only = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "claims.without_commit",
        help: "Iterations in a row without a new commit, which support a claim. 0 is never.",
        get: |config| Value::Count(config.policy.claims.without_commit),
        set: |config, value| config.policy.claims.without_commit = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "health.stuck_after",
        help: "Without any progress (tool calls, reports, changed files, commits, a tool that uses the processor) for \
               this long an agent is stuck and is nudged. What it prints is no progress. 0 is never.",
        get: |config| config.policy.health.stuck_after.map_or(Value::None, Value::Duration),
        set: |config, value| config.policy.health.stuck_after = value.optional_duration(),
        ..Key::of(Shape::Duration(Zero::NoLimit))
    },
    Key {
        path: "health.nudge_wait",
        help: "How long an answer to a nudge is waited for.",
        get: |config| Value::Duration(config.policy.health.nudge_wait),
        set: |config, value| config.policy.health.nudge_wait = value.duration(),
        ..Key::of(Shape::Duration(Zero::Refused))
    },
    Key {
        path: "health.nudges",
        help: "Nudges before a person is asked. 0 is none.",
        get: |config| Value::Count(config.policy.health.nudges),
        set: |config, value| config.policy.health.nudges = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "health.escalate_wait",
        help: "How long a person has to decide about a stuck agent before `on_escalation` does.",
        get: |config| Value::Duration(config.policy.health.escalate_wait),
        set: |config, value| config.policy.health.escalate_wait = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "health.on_escalation",
        help: "When nobody decides: terminate the agent (an error of its attempt), wait, or hand off to the next \
               attempt. Its work is kept in any case.",
        get: |config| word(&config.policy.health.on_escalation),
        set: |config, value| config.policy.health.on_escalation = meaning(value),
        ..Key::of(Shape::Choice(&["terminate", "wait", "handoff"]))
    },
    Key {
        path: "health.max_terminations",
        help: "Agents in a row that were ended for want of progress, and so end the run. 0 is never.",
        get: |config| Value::Count(config.policy.health.max_terminations),
        set: |config, value| config.policy.health.max_terminations = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "breaker.no_progress",
        help: "Iterations in a row, over runs, that neither complete a task nor change a file, and so open the breaker. \
               0 is never.",
        get: |config| Value::Count(config.policy.breaker.no_progress),
        set: |config, value| config.policy.breaker.no_progress = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "breaker.same_error",
        help: "The same error (but for paths, numbers and times) in a row, over tasks and runs, that opens the breaker. \
               0 is never.",
        get: |config| Value::Count(config.policy.breaker.same_error),
        set: |config, value| config.policy.breaker.same_error = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "breaker.permission_denied",
        help: "Attempts in a row at which the agent was not permitted to act, that open the breaker. 0 is never.",
        get: |config| Value::Count(config.policy.breaker.permission_denied),
        set: |config, value| config.policy.breaker.permission_denied = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "breaker.cooldown",
        help: "How long the next run waits after the breaker opened, before it tries one iteration.",
        get: |config| Value::Duration(config.policy.breaker.cooldown),
        set: |config, value| config.policy.breaker.cooldown = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "retry.max_retries",
        flag: Some("--max-retries"),
        other_variables: &["WIGGUM_MAX_RETRIES"],
        help: "Attempts after the first before a task is failed; a task may say its own number.",
        get: |config| Value::Count(config.policy.retry.max_retries),
        set: |config, value| config.policy.retry.max_retries = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "retry.backoff",
        help: "Wait after an error before the same task is tried again; doubles each time.",
        get: |config| Value::Duration(config.policy.retry.backoff),
        set: |config, value| config.policy.retry.backoff = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "retry.backoff_max",
        help: "The longest such wait.",
        get: |config| Value::Duration(config.policy.retry.backoff_max),
        set: |config, value| config.policy.retry.backoff_max = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "retry.from",
        help: "What the next attempt at a task starts from: the work of the last one, or a clean tree.",
        get: |config| word(&config.policy.retry.from),
        set: |config, value| config.policy.retry.from = meaning(value),
        ..Key::of(Shape::Choice(&["work", "clean"]))
    },
    Key {
        path: "retry.clean_after",
        help: "With from = \"work\": start clean after this many failed attempts. 0 is never.",
        example: Some("2"),
        get: |config| config.policy.retry.clean_after.map_or(Value::None, Value::Count),
        set: |config, value| config.policy.retry.clean_after = value.optional_count(),
        ..Key::of(Shape::Count(Zero::NoLimit))
    },
    Key {
        path: "checks.verify",
        flag: Some("--verify"),
        other_variables: &["WIGGUM_VERIFY"],
        help: "The command, or list of commands, that must exit 0 for every task. Without any, completed tasks \
               are marked unverified.",
        example: Some("[\"cargo test\"]"),
        get: |config| Value::List(config.policy.checks.verify.clone()),
        set: |config, value| config.policy.checks.verify = value.list(),
        ..Key::of(Shape::Commands)
    },
    Key {
        path: "checks.timeout",
        help: "How long one check may run. 0 is no limit.",
        get: |config| config.policy.checks.timeout.map_or(Value::None, Value::Duration),
        set: |config, value| config.policy.checks.timeout = value.optional_duration(),
        ..Key::of(Shape::Duration(Zero::NoLimit))
    },
    Key {
        path: "checks.complete_without_claim",
        flag: Some("--complete-without-claim"),
        other_variables: &["WIGGUM_COMPLETE_WITHOUT_CLAIM"],
        help: "Complete a task whose checks are all green even though the agent did not say it is done.",
        get: |config| Value::Switch(config.policy.checks.complete_without_claim),
        set: |config, value| config.policy.checks.complete_without_claim = value.switch(),
        ..Key::of(Shape::Switch)
    },
    Key {
        path: "checks.baseline",
        flag: Some("--baseline"),
        other_variables: &["WIGGUM_BASELINE"],
        help: "When these commands fail before any agent has worked: ask a person (without one, stop), go-on, stop, \
               repair (the first task is to make them pass), or off to not run them then. A tree on which they passed \
               is not checked again.",
        get: |config| word(&config.policy.checks.baseline),
        set: |config, value| config.policy.checks.baseline = meaning(value),
        ..Key::of(Shape::Choice(&["ask", "go-on", "stop", "repair", "off"]))
    },
    Key {
        path: "checks.clean",
        help: "When the work is checked in a checkout that has nothing but what git has: `end` takes the last commit \
               when a run ends (and an attempt that changes what git ignores, before it is committed), `task` each \
               task before it is committed.",
        get: |config| word(&config.policy.checks.clean),
        set: |config, value| config.policy.checks.clean = meaning(value),
        ..Key::of(Shape::Choice(&["end", "task", "never"]))
    },
    Key {
        path: "checks.sandbox",
        help: "What checks are kept in: the sandbox of agents (`agent`), since they run what an agent has written, or \
               none.",
        get: |config| Value::Text(confined_word(config.checks.unconfined).to_owned()),
        set: |config, value| config.checks.unconfined = value.text() == confined_word(true),
        ..Key::of(Shape::Choice(&["agent", "none"]))
    },
    Key {
        path: "checks.unconfined",
        help: "Those of the checks, as they are written elsewhere, that run without a sandbox.",
        example: Some("[\"docker compose run tests\"]"),
        get: |config| Value::List(config.checks.except.clone()),
        set: |config, value| config.checks.except = value.list(),
        ..Key::of(Shape::Commands)
    },
    Key {
        path: "checks.pass_env",
        help: "Variables of your environment that checks get although they look like secrets, beside those of \
               `pass_env` under [agent]. A `*` at the end stands for any rest.",
        example: Some("[\"TEST_DATABASE_URL\"]"),
        get: |config| Value::List(config.checks.pass_env.clone()),
        set: |config, value| config.checks.pass_env = value.list(),
        ..Key::of(Shape::Words)
    },
    Key {
        path: "workspace.setup",
        help: "The command that installs what the checks need into a fresh checkout.",
        example: Some("\"npm ci\""),
        get: |config| optional_text(config.policy.workspace.setup.as_ref()),
        set: |config, value| config.policy.workspace.setup = value.optional_text(),
        ..Key::of(Shape::Command)
    },
    Key {
        path: "workspace.copy",
        help: "Files that git ignores and that are copied into a fresh checkout.",
        example: Some("[\".env\"]"),
        get: |config| Value::List(config.policy.workspace.copy.clone()),
        set: |config, value| config.policy.workspace.copy = value.list(),
        ..Key::of(Shape::Words)
    },
    Key {
        path: "protect.paths",
        help: "Patterns, relative to the workspace, of files that an agent should not change.",
        get: |config| Value::List(config.policy.protect.paths.clone()),
        set: |config, value| config.policy.protect.paths = value.list(),
        ..Key::of(Shape::Globs)
    },
    Key {
        path: "protect.on_touch",
        help: "When such a file was changed: accept with a warning, refuse the attempt, or ask a person.",
        get: |config| word(&config.policy.protect.on_touch),
        set: |config, value| config.policy.protect.on_touch = meaning(value),
        ..Key::of(ON_TOUCH)
    },
    Key {
        path: "protect.on_check_touch",
        help: "When what defines a check was changed (its script or recipe, the settings of its runner, tests that \
               were there) and with the former definition it fails. A refused attempt that says why is asked about.",
        get: |config| word(&config.policy.protect.on_check_touch),
        set: |config, value| config.policy.protect.on_check_touch = meaning(value),
        ..Key::of(ON_TOUCH)
    },
    Key {
        path: "protect.on_weakened_tests",
        help: "When tests were deleted or skipped, or assertions removed. A refused attempt that says why is asked about.",
        get: |config| word(&config.policy.protect.on_weakened_tests),
        set: |config, value| config.policy.protect.on_weakened_tests = meaning(value),
        ..Key::of(ON_TOUCH)
    },
    Key {
        path: "people.wait",
        help: "How long a question holds up the loop while other tasks could run.",
        get: |config| Value::Duration(config.policy.people.wait),
        set: |config, value| config.policy.people.wait = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "handoff.context_threshold",
        help: "An agent whose context is fuller than this part of it is asked to wrap up, or ended if it cannot be \
               spoken to. 0 is never.",
        get: |config| optional_amount(config.policy.handoff.context_threshold),
        set: |config, value| config.policy.handoff.context_threshold = value.optional_amount(),
        ..Key::of(Shape::Fraction(Zero::NoLimit))
    },
    Key {
        path: "handoff.error_threshold",
        help: "Errors in a row after which work is handed over to a fresh context. 0 is never.",
        get: |config| Value::Count(config.policy.handoff.error_threshold),
        set: |config, value| config.policy.handoff.error_threshold = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "handoff.budget_threshold",
        help: "An agent whose own use brings a budget over this part of it is asked to wrap up, as above. 0 is never.",
        get: |config| optional_amount(config.policy.handoff.budget_threshold),
        set: |config, value| config.policy.handoff.budget_threshold = value.optional_amount(),
        ..Key::of(Shape::Fraction(Zero::NoLimit))
    },
    Key {
        path: "handoff.on_phase",
        help: "Hand over when a phase of the backlog is complete.",
        get: |config| Value::Switch(config.policy.handoff.on_phase),
        set: |config, value| config.policy.handoff.on_phase = value.switch(),
        ..Key::of(Shape::Switch)
    },
    Key {
        path: "handoff.on_timeout",
        help: "Hand over when an agent was stopped at its time limit.",
        get: |config| Value::Switch(config.policy.handoff.on_timeout),
        set: |config, value| config.policy.handoff.on_timeout = value.switch(),
        ..Key::of(Shape::Switch)
    },
    Key {
        path: "handoff.grace",
        help: "How long an agent that was asked to wrap up may take before it is ended.",
        get: |config| Value::Duration(config.policy.handoff.grace),
        set: |config, value| config.policy.handoff.grace = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "plans.max_iterations",
        other_variables: &["MAX_PLAN_ITERATIONS"],
        help: "Iterations that a plan may use in all, where its front matter does not say it. Set by a variable, it bounds all plans: the smaller number holds.",
        get: |config| Value::Count(config.plans.max_iterations),
        set: |config, value| config.plans.max_iterations = value.count(),
        ..Key::of(Shape::Count(Zero::Refused))
    },
    Key {
        path: "plans.retries",
        other_variables: &["PLAN_RETRY_ATTEMPTS"],
        help: "Attempts at a step of a plan after the first.",
        get: |config| Value::Count(config.plans.retries),
        set: |config, value| config.plans.retries = value.count(),
        ..Key::of(Shape::Count(Zero::Number))
    },
    Key {
        path: "plans.backoff",
        help: "Wait before the first of them; doubles each time.",
        get: |config| Value::Duration(config.plans.backoff),
        set: |config, value| config.plans.backoff = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "plans.jobs",
        help: "How many plans of a vault are carried out at the same time.",
        get: |config| Value::Count(config.plans.jobs),
        set: |config, value| config.plans.jobs = value.count(),
        ..Key::of(Shape::Count(Zero::Refused))
    },
    Key {
        path: "plans.settle",
        help: "How long the file of a plan must have been left alone before the plan counts as written and is carried out.",
        get: |config| Value::Duration(config.plans.settle),
        set: |config, value| config.plans.settle = value.duration(),
        ..Key::of(Shape::Duration(Zero::Number))
    },
    Key {
        path: "plans.git",
        help: "Commit what the plans of a vault do, if the vault is in a git repository.",
        get: |config| Value::Switch(config.plans.git),
        set: |config, value| config.plans.git = value.switch(),
        ..Key::of(Shape::Switch)
    },
];

impl Key {
    /// What most keys have in common; a key says the rest.
    const fn of(shape: Shape) -> Self {
        Self {
            path: "",
            shape,
            settable: Settable::Everywhere,
            flag: None,
            other_variables: &[],
            help: "",
            example: None,
            get: |_| Value::None,
            set: |_, _| {},
        }
    }

    /// `limits` of `limits.iterations`; empty at the top.
    pub(crate) fn section(&self) -> &'static str {
        self.path.split_once('.').map_or("", |(section, _)| section)
    }

    /// `iterations` of `limits.iterations`.
    pub(crate) fn name(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, name)| name)
    }

    /// Its own environment variable, as in `WIGGUM_LIMITS_ITERATIONS`.
    pub(crate) fn variable(&self) -> String {
        format!("WIGGUM_{}", self.path.to_uppercase().replace('.', "_"))
    }

    /// All its environment variables, the weakest first.
    pub(crate) fn variables(&self) -> impl Iterator<Item = String> {
        self.other_variables.iter().map(|name| (*name).to_owned()).chain([self.variable()])
    }

    pub(crate) fn default(&self) -> Value {
        (self.get)(&Config::default())
    }
}

pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The keys of a section, in the order of the table.
pub(crate) fn of_section(section: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.section() == section)
}

fn optional_text(text: Option<&String>) -> Value {
    text.cloned().map_or(Value::None, Value::Text)
}

fn optional_path(path: Option<&std::path::PathBuf>) -> Value {
    path.map_or(Value::None, |path| Value::Text(path.display().to_string()))
}

fn optional_amount(limit: Option<f64>) -> Value {
    limit.map_or(Value::None, amount)
}

fn tokens(limit: Option<u64>) -> Value {
    limit.map_or(Value::None, |limit| Value::Count(u32::try_from(limit).unwrap_or(u32::MAX)))
}

fn amount(number: f64) -> Value {
    Amount::from_f64(number).map_or(Value::None, Value::Amount)
}

fn parts(parts: &[f64]) -> Value {
    Value::Amounts(parts.iter().filter_map(|part| Amount::from_f64(*part)).collect())
}

/// The word for a choice is the one under which the core stores it.
fn word(choice: &impl Serialize) -> Value {
    match serde_json::to_value(choice) {
        Ok(serde_json::Value::String(word)) => Value::Text(word),
        other => unreachable!("a choice is stored as one word, not as {other:?}"),
    }
}

fn meaning<T: DeserializeOwned>(value: Value) -> T {
    let word = value.text();
    serde_json::from_value(word.into()).unwrap_or_else(|error| unreachable!("a word of the table: {error}"))
}

pub(super) fn prompt_via(word: &str) -> PromptVia {
    match word {
        "stdin" => PromptVia::Stdin,
        "argument" => PromptVia::Argument,
        "file" => PromptVia::File,
        other => unreachable!("not a word of the table: {other}"),
    }
}

fn confined_word(unconfined: bool) -> &'static str {
    if unconfined { "none" } else { "agent" }
}

pub(super) fn prompt_via_word(via: PromptVia) -> &'static str {
    match via {
        PromptVia::Stdin => "stdin",
        PromptVia::Argument => "argument",
        PromptVia::File => "file",
    }
}
