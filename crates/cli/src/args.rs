//! The command line: what can be said, with help that teaches.

mod checkpoint;
mod dispatch;
mod mcp;
mod notify;
mod page;
mod serve;
mod simulate;
mod tui;
mod vault;

use std::path::PathBuf;

pub(crate) use checkpoint::{CheckpointCommand, RestoreArgs, WhichCheckpoint};
pub(crate) use dispatch::{DispatchAdopt, DispatchCommand, DispatchSend, DispatchStart};
pub(crate) use mcp::{McpCall, McpCommand, McpTools};
pub(crate) use notify::{NotifyCommand, NotifyStatus, NotifyWhich};
pub(crate) use page::PageArgs;
pub(crate) use serve::{ServeArgs, Whom};
pub(crate) use simulate::SimulateArgs;
pub(crate) use tui::TuiArgs;
pub(crate) use vault::{VaultArgs, VaultCommand};

use clap::builder::TypedValueParser as _;
use clap::{Args, Parser, Subcommand, ValueEnum};
use wiggum_engine::desk::cost::By;

/// Runs coding agents over a backlog: one fresh context per task, its work checked by the engine
/// itself, and a person asked only when one is needed.
#[derive(Debug, Parser)]
#[command(
    name = "wiggum",
    version,
    max_term_width = 100,
    after_help = "Start with `wiggum demo`, then `wiggum init` in your repository and \
                  `wiggum run --agent-command '<your agent>'`."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Work off the backlog until it is done, a limit is hit or a person is needed
    ///
    /// Goes on with the unfinished run of this loop, else begins its next run. Exit codes: 0 all
    /// complete, 1 our failure, 2 usage or configuration, 3 iteration limit, 4 budget, 5 duration,
    /// 6 a person is needed, 7 a guard ended it, 8 stopped by request, 130 interrupted (resumable).
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Show a recorded run again, without agent, model or repository
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(ReplayArgs),
    /// See the whole thing at work in a temporary repository, without a key or a network
    Demo(DemoArgs),
    /// Write a commented wiggum.toml and PROMPT.md for this repository
    Init(InitArgs),
    /// What the loops of this repository are doing
    Status(OutputArgs),
    /// How the agents of this repository's loops are: signs of progress, nudges, circuit breakers
    #[command(after_help = "What counts as progress, and what follows without any, is in docs/guards.md.")]
    Health(OutputArgs),
    /// Watch all loops of this machine: their health, what they wait for, engines that died
    ///
    /// Shows the loops that this machine knows, those of this repository and those of the stores
    /// given, and beside them loops in agents' own sessions and in tmux panes. Agents that make no
    /// progress are nudged, people are called, and with --restart a run
    /// whose engine died goes on, with growing pauses and not for ever.
    #[command(after_help = MONITOR_EXAMPLES)]
    Monitor(MonitorArgs),
    /// What happened: the journal of a loop
    Events(EventsArgs),
    /// Everything about one task: attempts, evidence, diff
    Show(ShowArgs),
    /// Let the iteration under way finish, then start no other
    Pause(LoopArgs),
    /// Go on after a pause
    Resume(LoopArgs),
    /// End the run; its agent is stopped and its state kept
    Stop(LoopArgs),
    /// Leave a task out
    Skip(TaskArgs),
    /// Try a task again, with its attempts counted anew
    Retry(TaskArgs),
    /// Say something to the agent at work; what cannot reach it is guidance for its next attempt
    #[command(after_help = "Example:\n  wiggum nudge \"the tests are slow: run only those of this crate\"")]
    Nudge(NudgeArgs),
    /// Let the agent at work wrap up, and another go on from there with a fresh context
    Handoff(LoopArgs),
    /// The hashed summaries of a loop: make one, look at them, prove them, go back to one
    #[command(subcommand)]
    Checkpoint(CheckpointCommand),
    /// The questions that wait for a person
    Inbox(InboxArgs),
    /// Answer a question of the inbox
    #[command(after_help = "Examples:\n  wiggum answer q1 2\n  wiggum answer q1 \"use the v2 API\"\n  \
                            wiggum answer q1 skip")]
    Answer(AnswerArgs),
    /// The tasks and what they wait on, as a picture
    Graph(GraphArgs),
    /// Who could do the work: installed agents, their versions, logins and abilities
    Agents(OutputArgs),
    /// Tokens and cost by task, attempt, agent and model, and how well they were used
    Tokens(LoopArgs),
    /// The account of a loop: why it stopped, what it did and cost, what to look at
    ///
    /// Made from the journal, so it can be asked for while the loop runs and for any earlier one. At
    /// the end of a run the same is in `.wiggum/loops/ID/report.md`, `.html` and `.json`.
    Report(ReportArgs),
    /// What a loop cost, how that came about, and what the rest will cost
    #[command(after_help = COST_EXAMPLES)]
    Cost(CostArgs),
    /// Look for what is broken or missing, and say what to do about it
    ///
    /// Exit code 1 if there is a problem that is not repaired.
    Doctor(DoctorArgs),
    /// Run many loops in virtual time: how long would it take, and does the engine keep its word?
    ///
    /// The real engine with scripted agents, late people and faults, each world made from its seed.
    /// Exit code 1 if anything happened that must not.
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(SimulateArgs),
    /// Configuration, and where each value came from
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Read and edit the backlog file, safely beside a running loop
    #[command(subcommand)]
    Task(TaskCommand),
    /// Connect an agent's own sessions: `/ralph-loop` and the hooks behind it
    ///
    /// Claude Code gets a plugin, Codex hooks and skills; nothing is written into the repository
    /// unless --project is given.
    Install(InstallArgs),
    /// Take out of an agent what `wiggum install` put in
    Uninstall(InstallArgs),
    /// Loops inside an agent's own session: start, cancel, look
    #[command(subcommand)]
    Session(SessionCommand),
    /// Agents in tmux panes: start them, give them tasks, look, stop
    #[command(subcommand)]
    Dispatch(DispatchCommand),
    /// A page in your browser: watch loops, answer what they ask, go back in time
    ///
    /// Only this machine can reach it, and only with the token in the link it prints.
    #[command(after_help = page::EXAMPLES)]
    Serve(Box<PageArgs>),
    /// Watch and steer loops in the terminal: tasks, output, evidence, cost, inbox
    ///
    /// A window on loops that run elsewhere: leaving it (q), closing the terminal or losing the
    /// connection ends and slows nothing. `?` shows the keys.
    #[command(after_help = tui::EXAMPLES)]
    Tui(TuiArgs),
    /// Be told what happens: desktop, bell, webhooks, chats, a command of your own
    #[command(subcommand, after_help = notify::EXAMPLES)]
    Notify(NotifyCommand),
    /// MCP: servers and their tools, and the loops of this repository served to clients
    #[command(subcommand, after_help = "More in docs/mcp.md and docs/mcp-server.md.")]
    Mcp(McpCommand),
    /// Plans in an Obsidian vault: approved by moving a file, answered by ticking a box
    #[command(subcommand, after_help = vault::EXAMPLES)]
    Vault(VaultCommand),
    /// Answer a hook of an agent: its question on standard input, the answer on standard output
    ///
    /// `wiggum install` connects these. A session is let go whenever anything is wrong on our side.
    Hook {
        /// stop, stop-failure, user-prompt-submit, session-end or nudge
        event: std::ffi::OsString,
    },
    /// Print a completion script for your shell
    Completions { shell: clap_complete::Shell },
    /// Print the manual page
    Man,
    /// Play a scenario as an agent would (what `[agent] scenario` starts)
    #[command(hide = true)]
    ScriptedAgent { scenario: PathBuf },
    /// Work on the task of standard input with a model's API (what the agent `api` starts)
    #[command(hide = true, name = wiggum_agents::api::COMMAND)]
    ApiAgent(ApiAgentArgs),
    /// Print reference documents that are generated from the program itself
    #[command(hide = true)]
    Reference { what: Reference },
}

const RUN_EXAMPLES: &str = "\
Examples:
  wiggum run --agent claude
  wiggum run PRD.json --agent-command 'codex exec -' --verify 'cargo test' --max-iterations 20
  wiggum run --headless --json --max-duration 2h > journal.jsonl
  wiggum run --tui                       (q leaves, the loop goes on; `wiggum tui` comes back)

The agent gets its prompt on standard input and runs in the workspace with WIGGUM_LOOP_ID,
WIGGUM_TASK_ID, WIGGUM_ITERATION, WIGGUM_ATTEMPT, WIGGUM_PROMPT_FILE and WIGGUM_BIN set; what it
prints is its message. It claims the task with `<promise>DONE</promise>` on a line of its own.";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The backlog: PRD.json, tasks.json, Plan.md, fix_plan.md or other checkbox Markdown [default: found]
    pub(crate) backlog: Option<PathBuf>,
    /// The agent that does the work: claude, codex, gemini, copilot, opencode, aider, amp, api (built
    /// in, over a model's API), or one of wiggum.toml (`wiggum agents` tells what is there)
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Any other command as agent
    #[arg(long, value_name = "COMMAND", conflicts_with = "agent")]
    pub(crate) agent_command: Option<String>,
    /// The model that the agent should use
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Whose models the built-in agent asks: openai, anthropic, github-models, copilot, ollama
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Where it asks, if not at the provider's usual address
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Who takes over while the agent cannot work; repeat for more
    #[arg(long, value_name = "NAME")]
    pub(crate) fallback: Vec<String>,
    /// How long an agent at its usage limit is waited for [default: 12h]
    #[arg(long, value_name = "TIME")]
    pub(crate) max_wait: Option<String>,
    /// Keep the agent's own session from one iteration to the next
    #[arg(long = "continue")]
    pub(crate) continue_sessions: bool,
    /// Hand the agent wiggum's own MCP server, to claim, ask and report by calling tools
    #[arg(long)]
    pub(crate) agent_mcp: bool,
    /// Serve the live page of this loop while it runs, and print the link to it
    #[arg(long)]
    pub(crate) web: bool,
    /// Run it in a process of its own and look at it in the terminal interface; leaving that ends nothing
    #[arg(long, conflicts_with_all = ["json", "headless", "web"])]
    pub(crate) tui: bool,
    /// Somebody is there to ask, by another way than this terminal
    #[arg(long, hide = true)]
    pub(crate) attended: bool,
    /// What keeps the agent from writing elsewhere: auto, landlock, bwrap or none [default: auto]
    #[arg(long, value_name = "KIND")]
    pub(crate) sandbox: Option<String>,
    /// A command that must succeed before a task counts as done; may be given several times
    #[arg(long, value_name = "COMMAND")]
    pub(crate) verify: Vec<String>,
    /// End after this many iterations; 0 means no limit [default: 50]
    #[arg(long, value_name = "N")]
    pub(crate) max_iterations: Option<u32>,
    /// End after this long, such as 2h or 90m
    #[arg(long, value_name = "TIME")]
    pub(crate) max_duration: Option<String>,
    /// End when the loop has spent this many dollars, in all its runs
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true)]
    pub(crate) max_cost: Option<String>,
    /// Go on although that cannot hold an agent, because nobody knows what it costs
    #[arg(long)]
    pub(crate) allow_unpriced: bool,
    /// How what is left of a budget is used: greedy, critical-path or conservative
    /// [default: critical-path]
    #[arg(long, value_name = "NAME")]
    pub(crate) budget_strategy: Option<String>,
    /// Attempts after the first before a task is failed [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) max_retries: Option<u32>,
    /// Stop an agent that works on one iteration for longer than this
    #[arg(long, value_name = "TIME")]
    pub(crate) agent_timeout: Option<String>,
    /// The instructions of every iteration [default: PROMPT.md, or built in]
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt: Option<PathBuf>,
    /// Nobody is there to ask: park questions in the inbox and go on
    #[arg(long)]
    pub(crate) headless: bool,
    /// Print the journal as JSON lines, and nothing else, to standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Record the run in this file, for `wiggum replay`
    #[arg(long, value_name = "FILE", env = "WIGGUM_RECORD")]
    pub(crate) record: Option<PathBuf>,
    /// Which loop over this backlog, if there are several
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Set uncommitted changes aside and put them back at the end
    #[arg(long)]
    pub(crate) allow_dirty: bool,
    /// Complete a task whose checks pass even if the agent never claims it
    #[arg(long)]
    pub(crate) complete_without_claim: bool,
    /// What to do when the checks fail before any agent has worked [ask, go-on, stop, repair, off]
    #[arg(long, value_name = "WHAT")]
    pub(crate) baseline: Option<String>,
    /// Play this scenario instead of calling an agent
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  wiggum run --record ../run.rec
  wiggum replay ../run.rec
  wiggum replay ../run.rec --speed 10
  wiggum replay ../run.rec --json | jq .type";

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// What `wiggum run --record` wrote
    pub(crate) file: PathBuf,
    /// So many times as fast as it was [default: as it was, without long pauses, in a terminal; else
    /// all at once]
    #[arg(long, value_name = "N", value_parser = faster)]
    pub(crate) speed: Option<f64>,
    /// Show the next event when Enter is pressed
    #[arg(long, conflicts_with = "speed")]
    pub(crate) step: bool,
    /// Print the journal as JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}

fn faster(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if speed.is_finite() && speed > 0.0 { Ok(speed) } else { Err("it has to be above 0".to_owned()) }
}

/// As [`crate::api::arguments`] writes them.
#[derive(Debug, Args)]
pub(crate) struct ApiAgentArgs {
    #[arg(long)]
    pub(crate) model: Option<String>,
    #[arg(long)]
    pub(crate) provider: Option<String>,
    #[arg(long)]
    pub(crate) base_url: Option<String>,
    #[arg(long)]
    pub(crate) key_env: Option<String>,
    #[arg(long)]
    pub(crate) context_window: Option<u32>,
    #[arg(long)]
    pub(crate) max_turns: Option<u32>,
    /// As in input=3
    #[arg(long)]
    pub(crate) price: Vec<String>,
    /// Dollars that this start may spend
    #[arg(long)]
    pub(crate) max_cost: Option<f64>,
    /// Tokens of every kind that it may use
    #[arg(long)]
    pub(crate) max_tokens: Option<u64>,
    /// A new session with this id
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// The session to go on with
    #[arg(long, conflicts_with = "session")]
    pub(crate) resume: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Work in this directory and keep it (it must not exist yet)
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Replace existing files, saving them as .wiggum/*.bak
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args, Clone, Default)]
pub(crate) struct OutputArgs {
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Repair what is safe, and say what was done
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print the exact rules of the sandbox instead: what agents and checks may write to, and what they do not see
    #[arg(long, conflicts_with = "fix")]
    pub(crate) sandbox: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which loop is meant, where there are several.
#[derive(Debug, Args, Clone, Default)]
pub(crate) struct LoopArgs {
    /// The loop's name, its backlog or the beginning of its id [default: the one of this folder, else the one that runs, else the last]
    #[arg(long = "loop", value_name = "LOOP")]
    pub(crate) which: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const MONITOR_EXAMPLES: &str = "\
Examples:
  wiggum monitor
  wiggum monitor --once --json
  wiggum monitor --once --restart        (from cron, say)
  wiggum monitor ../other ../third/.wiggum";

#[derive(Debug, Args)]
pub(crate) struct MonitorArgs {
    /// Further repositories, or their `.wiggum` directories
    #[arg(value_name = "STORE")]
    pub(crate) stores: Vec<PathBuf>,
    /// Look once, do what has to be done, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Let unfinished runs go on whose engine died
    #[arg(long)]
    pub(crate) restart: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const COST_EXAMPLES: &str = "\
Examples:
  wiggum cost
  wiggum cost --by model --forecast
  wiggum cost --by day --csv > cost.csv
  wiggum cost --by loop --json";

#[derive(Debug, Args)]
pub(crate) struct CostArgs {
    #[command(flatten)]
    pub(crate) of: LoopArgs,
    /// What to add up by; `loop` shows all loops of this repository
    #[arg(long, value_parser = cost_by(), default_value = By::Task.name())]
    pub(crate) by: By,
    /// Also say what finishing will cost, from what the loop's own tasks have cost
    #[arg(long)]
    pub(crate) forecast: bool,
    /// Print comma-separated values, one line for each row
    #[arg(long, conflicts_with_all = ["json", "forecast"])]
    pub(crate) csv: bool,
}

/// The words for it are those of every other surface.
fn cost_by() -> impl clap::builder::TypedValueParser<Value = By> {
    let of_that_name = |name: String| By::ALL.into_iter().find(|by| by.name() == name).unwrap_or_default();
    clap::builder::PossibleValuesParser::new(By::ALL.map(By::name)).map(of_that_name)
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) of: LoopArgs,
    /// Write the page of `wiggum serve` with this loop in it, as one file to look at or to send
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
    /// Write it as Markdown, instead of printing that
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) markdown: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) of: LoopArgs,
    /// Go on printing as events come, until the run ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only events after this one
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    pub(crate) task: String,
    #[command(flatten)]
    pub(crate) of: LoopArgs,
    /// Show checks' output and messages whole
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    pub(crate) task: String,
    #[command(flatten)]
    pub(crate) of: LoopArgs,
}

#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    #[command(flatten)]
    pub(crate) of: LoopArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NudgeArgs {
    /// What to say
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) of: LoopArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The question's id, such as q1
    pub(crate) question: String,
    /// An option's number, your own words, or skip, retry, done, abort
    ///
    /// Until a run has taken it up, you can correct your answer by giving another one.
    #[arg(required = true)]
    pub(crate) answer: Vec<String>,
    #[command(flatten)]
    pub(crate) of: LoopArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    #[arg(long, value_enum, default_value_t = GraphFormat::Mermaid)]
    pub(crate) format: GraphFormat,
    /// The backlog [default: found]
    pub(crate) backlog: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    Mermaid,
    Dot,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Every value in force, with its source
    Show(OutputArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// The tasks of the backlog
    List(TaskLook),
    /// Add a task at the end
    Add(TaskAdd),
    /// Change a task's status
    SetStatus {
        id: String,
        #[arg(value_enum)]
        status: StatusWord,
        #[command(flatten)]
        file: TaskFile,
    },
    /// Move a task to another place in the file
    #[command(group = clap::ArgGroup::new("place").required(true))]
    Move {
        id: String,
        /// To the beginning
        #[arg(long, group = "place")]
        first: bool,
        /// To the end
        #[arg(long, group = "place")]
        last: bool,
        /// In front of another task
        #[arg(long, value_name = "ID", group = "place")]
        before: Option<String>,
        /// Behind another task
        #[arg(long, value_name = "ID", group = "place")]
        after: Option<String>,
        #[command(flatten)]
        file: TaskFile,
    },
    /// Change what a task says: title, description, priority, dependencies
    #[command(after_help = EDIT_HELP, group = clap::ArgGroup::new("field").required(true).multiple(true))]
    Edit(TaskEdit),
    /// Remove a task that no other depends on
    Delete {
        id: String,
        #[command(flatten)]
        file: TaskFile,
    },
    /// Check the backlog: syntax, ids, dependencies, cycles
    Validate(TaskLook),
    /// How the backlog is understood: its format, what is a task, what is done, in what order
    Explain(TaskLook),
}

#[derive(Debug, Args, Clone, Default)]
pub(crate) struct TaskFile {
    /// The backlog [default: found]
    #[arg(long, value_name = "FILE")]
    pub(crate) backlog: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TaskLook {
    /// The backlog, as --backlog
    #[arg(value_name = "FILE", conflicts_with = "backlog")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) of: TaskFile,
}

#[derive(Debug, Args)]
pub(crate) struct TaskAdd {
    /// The new task's id [default: the next free number]
    #[arg(long)]
    pub(crate) id: Option<String>,
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: String,
    /// A short name
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// An acceptance criterion; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) criterion: Vec<String>,
    /// A task that has to be done first; may be given several times
    #[arg(long, value_name = "ID")]
    pub(crate) depends_on: Vec<String>,
    #[arg(long)]
    pub(crate) priority: Option<i64>,
    #[command(flatten)]
    pub(crate) file: TaskFile,
}

const EDIT_HELP: &str = "\
Only the values named are written; every other byte of the file stays as it is. A running loop takes the
change up by itself; a task that is being worked on is left alone.

  wiggum task edit US-003 --title \"Log in by mail\"
  wiggum task edit US-003 --depends-on US-001 --depends-on US-002
  wiggum task edit US-003 --no-dependencies --priority 1";

#[derive(Debug, Args)]
pub(crate) struct TaskEdit {
    pub(crate) id: String,
    /// Its name, in one line
    #[arg(long, value_name = "TEXT", group = "field")]
    pub(crate) title: Option<String>,
    /// What the agent is told about it; may be empty
    #[arg(long, value_name = "TEXT", group = "field")]
    pub(crate) description: Option<String>,
    /// Where the format has one (prd.json, tasks.json)
    #[arg(long, value_name = "NUMBER", group = "field", allow_negative_numbers = true)]
    pub(crate) priority: Option<i64>,
    /// A task that has to be done first, instead of those it depended on; may be given several times
    #[arg(long, value_name = "ID", group = "field")]
    pub(crate) depends_on: Vec<String>,
    /// It depends on no task any more
    #[arg(long, group = "field", conflicts_with = "depends_on")]
    pub(crate) no_dependencies: bool,
    #[command(flatten)]
    pub(crate) file: TaskFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusWord {
    #[value(alias = "pending")]
    Open,
    #[value(alias = "completed", alias = "passed")]
    Done,
    Failed,
    Skipped,
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    #[arg(value_enum, value_name = "AGENT")]
    pub(crate) host: HostWord,
    /// For you, in all your projects (the default)
    #[arg(long, conflicts_with = "project")]
    pub(crate) user: bool,
    /// For everybody who works in this repository: files to commit, without a path of your machine
    #[arg(long)]
    pub(crate) project: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostWord {
    Claude,
    Codex,
}

impl HostWord {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Begin a loop in a session, as `/ralph-loop` does
    Start(Box<SessionStart>),
    /// End the loop of a session, as `/cancel-ralph` does
    Cancel(SessionWhich),
    /// The loops in sessions of this repository
    Status(OutputArgs),
    /// All about one session: health, signals, tokens, cost and its checkpoint
    Show(SessionWhich),
    /// Note where a session stands, for its next prompt, as `/checkpoint` does
    Checkpoint(SessionCheckpoint),
}

#[derive(Debug, Args)]
pub(crate) struct SessionCheckpoint {
    /// Something of your own to keep in mind
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) which: SessionWhich,
}

/// Which session is meant.
#[derive(Debug, Args, Clone, Default)]
pub(crate) struct SessionWhich {
    /// The session's id [default: the session that calls this]
    #[arg(long = "session", value_name = "ID", env = "CLAUDE_CODE_SESSION_ID", hide_env_values = true)]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionStart {
    #[command(flatten)]
    pub(crate) which: SessionWhich,
    /// The task; the agent is given it again until it is done
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: String,
    #[command(flatten)]
    pub(crate) guards: TaskGuards,
}

/// When a task that an agent is given again and again is done, and when it is given up.
#[derive(Debug, Args)]
pub(crate) struct TaskGuards {
    /// Let the agent stop after this many iterations; 0 means no limit [default: `limits.iterations`
    /// where it is set, else 10]
    #[arg(long, value_name = "N")]
    pub(crate) max_iterations: Option<u32>,
    /// What the agent must say between <promise> and </promise> [default: one of `claims.promises`]
    #[arg(long, value_name = "TEXT")]
    pub(crate) completion_promise: Option<String>,
    /// A command that must succeed before the task counts as done; may be given several times
    /// [default: those of the configuration]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) verify: Vec<String>,
    /// A Markdown file in which every box must be ticked before the task counts as done
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<String>,
    /// Stop after this many iterations in which nothing in the repository changed; 0 means never
    /// [default: that of the configuration, else 3]
    #[arg(long, value_name = "N")]
    pub(crate) no_progress: Option<u32>,
    /// Stop when the same error came this often in a row; 0 means never [default: that of the
    /// configuration, else 5]
    #[arg(long, value_name = "N")]
    pub(crate) same_error: Option<u32>,
    /// Take an agent at its word that says twice in a row it is ready, if the checks pass
    #[arg(long)]
    pub(crate) complete_without_claim: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reference {
    Cli,
    Configuration,
    ConfigSchema,
    EventSchema,
    NotificationSchema,
}
