//! `wiggum vault`: looks after the plans of a vault.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use serde_json::json;
use wiggum_engine::checkout::Checkout;
use wiggum_engine::words::counted;
use wiggum_vault::{
    Approved, Keeper, Problem, Ran, Row, Rules, Setup, Signal, Told, Vault, VaultError, survey,
};
use wiggum_workspace::process;

use crate::args::{VaultArgs, VaultCommand};
use crate::commands::{Surroundings, notify, print_json, run, surroundings_of};
use crate::config::{self, Flags};
use crate::failure::{FAILURE, Failure};
use crate::servers::tools;
use crate::team;
use crate::term::{self, Style};

/// Exit code where a person is needed.
const PERSON_NEEDED: u8 = 6;

pub(crate) fn vault(command: &VaultCommand) -> Result<ExitCode, Failure> {
    match command {
        VaultCommand::Init(args) => init(args),
        VaultCommand::Watch(args) => watch(args),
        VaultCommand::Run(args) => run_once(args),
        VaultCommand::Status(args) => status(args),
    }
}

fn init(args: &VaultArgs) -> Result<ExitCode, Failure> {
    std::fs::create_dir_all(&args.dir)
        .map_err(|error| Failure::usage(format!("cannot make {}: {error}", args.dir.display())))?;
    let created = Vault::open(&args.dir)?.init()?;
    if args.output.json {
        return print_json(&json!({ "created": created }));
    }
    let mut text: String = created.iter().map(|path| format!("created {path}\n")).collect();
    if created.is_empty() {
        text.push_str("all there already\n");
    }
    let dir = args.dir.display();
    text.push_str(&format!("next: `wiggum vault watch {dir}`, then move a plan to Approved/Plans\n"));
    Ok(term::print(&text))
}

fn watch(args: &VaultArgs) -> Result<ExitCode, Failure> {
    let keeper = keeper(args)?;
    let _telling = telling(args)?;
    forward_signals(keeper.sender())?;
    keeper.watch()?;
    Ok(ExitCode::SUCCESS)
}

fn run_once(args: &VaultArgs) -> Result<ExitCode, Failure> {
    let keeper = keeper(args)?;
    let _telling = telling(args)?;
    forward_signals(keeper.sender())?;
    let Ran { rows, problems } = keeper.run()?;
    if !problems.is_empty() {
        return Err(not_carried_out(problems));
    }
    let waits = rows.iter().any(|row| row.needs_action.is_some());
    Ok(if waits { ExitCode::from(PERSON_NEEDED) } else { ExitCode::SUCCESS })
}

/// What is wrong with each was told when it was found; here they are named together.
fn not_carried_out(problems: Vec<Problem>) -> Failure {
    let names: Vec<String> = problems.iter().map(|problem| format!("`{}`", problem.file)).collect();
    let message = format!("not carried out: {}", names.join(", "));
    let failed = problems.into_iter().filter_map(|problem| problem.error).map(Failure::from);
    let failure = match failed.map(|failure| failure.code).find(|code| *code == FAILURE) {
        Some(_) => Failure::other(message),
        None => Failure::usage(message),
    };
    failure.hint("Needs_Action/plan_problem_*.md says of each what to do")
}

fn status(args: &VaultArgs) -> Result<ExitCode, Failure> {
    let vault = Vault::open(&args.dir)?;
    let rows = survey(&vault, &checkout(&vault)?, &rules(&vault)?)?;
    if args.output.json {
        return print_json(&rows);
    }
    if rows.is_empty() {
        return Ok(term::print("no approved plans: move one to Approved/Plans\n"));
    }
    Ok(term::print(&rows.iter().map(line).collect::<String>()))
}

fn line(row: &Row) -> String {
    let needs =
        row.needs_action.as_deref().map_or_else(String::new, |note| format!("  Needs_Action/{note}.md"));
    format!(
        "{:<24} {:<10} {}/{} steps, {}/{} iterations{needs}\n",
        row.plan_id, row.status, row.done, row.total, row.iterations_used, row.max_iterations
    )
}

fn keeper(args: &VaultArgs) -> Result<Keeper, Failure> {
    // Without it, orphans of agents go to init: they are then found by their marker only.
    drop(process::adopt_orphans());
    let vault = Vault::open(&args.dir)?;
    let rules = rules(&vault)?;
    let here = surroundings_of(vault.root().to_owned());
    let setup: Setup = Arc::new(move |plan| settings(&here, plan).map_err(in_words));
    let json = args.output.json;
    let checkout = checkout(&vault)?;
    Ok(Keeper::open(vault, &checkout, rules, setup, move |told| tell(told, json))?)
}

/// Those who are told what happens to the plans.
fn telling(args: &VaultArgs) -> Result<Option<wiggum_notify::Courier>, Failure> {
    let here = surroundings_of(Vault::open(&args.dir)?.root().to_owned());
    let config = config::resolve(&here.sources(&Flags::default()))?;
    Ok(notify::beside(&here, &config))
}

/// The vault as a directory in which loops work.
fn checkout(vault: &Vault) -> Result<Checkout, Failure> {
    surroundings_of(vault.root().to_owned()).checkout()
}

fn rules(vault: &Vault) -> Result<Rules, Failure> {
    let here = surroundings_of(vault.root().to_owned());
    Ok(config::resolve(&here.sources(&Flags::default()))?.plans)
}

/// Read anew for each plan, so that nobody has to be told to look at a changed configuration.
fn settings(here: &Surroundings, plan: &Approved) -> Result<wiggum_engine::Settings, Failure> {
    let mut config = config::resolve(&here.sources(&Flags::default()))?;
    config.backlog = Some(plan.path.clone());
    let tools = tools(&here.workspace, &config, &here.env);
    let mut settings = run::settings(here, config, false)?;
    settings.registry = here.registry();
    settings.tools = Some(tools);
    Ok(settings)
}

/// A vault has no command line of its own for it.
const VAULT_AGENT: &str = "set `name` or `command` in [agent] of the vault's wiggum.toml, such as `name = \"claude\"`; \
                           `wiggum agents` tells what is there";

fn in_words(failure: Failure) -> String {
    let hint = match failure.message.as_str() {
        team::NO_AGENT => Some(VAULT_AGENT.to_owned()),
        _ => failure.hint,
    };
    let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
    format!("{}{hint}", failure.message)
}

fn tell(told: &Told, json: bool) {
    if json {
        if let Ok(line) = serde_json::to_string(told) {
            let _shown = term::print(&(line + "\n"));
        }
        return;
    }
    let style = Style::for_stdout();
    let text = match told {
        Told::Opened { .. } => opened(told),
        Told::Started { plan } => format!("{} {plan}\n", style.cyan("carrying out")),
        Told::Ended { plan, status, detail } => format!("{plan}: {status}: {detail}\n"),
        Told::Completed { plan, file } => format!("{} {plan}, now in {file}\n", style.green("completed")),
        Told::Problem { what, message } => format!("{} {what}: {message}\n", style.red("not carried out:")),
    };
    let _shown = term::print(&text);
}

fn opened(told: &Told) -> String {
    let Told::Opened { vault, watching, approved, waiting, needs_action } = told else {
        return String::new();
    };
    let found = format!(
        "{} approved, {waiting} waiting for approval, {} you",
        counted(*approved, "plan"),
        if *needs_action == 1 { "1 note needs".to_owned() } else { format!("{needs_action} notes need") },
    );
    match watching {
        true => format!(
            "watching {vault}: {found}\nmove a plan to Approved/Plans to have it carried out; Ctrl-C stops\n"
        ),
        false => format!("looked at {vault}: {found}\n"),
    }
}

fn forward_signals(sender: Sender<Signal>) -> Result<(), Failure> {
    run::on_signals(move |name| drop(sender.send(Signal::Stop(name))))
}

impl From<VaultError> for Failure {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Store(error) => error.into(),
            VaultError::Engine(error) => error.into(),
            VaultError::Backlog(error) => error.into(),
            VaultError::NoDirectory { .. } => {
                Self::usage(error.to_string()).hint("`wiggum vault init DIR` makes one")
            }
            VaultError::NotAVault { .. } => {
                Self::usage(error.to_string()).hint("`wiggum vault init DIR` makes the folders of a vault")
            }
            VaultError::Busy { .. } => {
                Self::usage(error.to_string()).hint("one `wiggum vault watch` or `run` at a time")
            }
            VaultError::Link { .. } => {
                Self::usage(error.to_string()).hint("the folders of a vault must be its own")
            }
            VaultError::Write { .. } | VaultError::Create { .. } | VaultError::Read { .. } => {
                Self::other(wiggum_engine::error::chain(&error)).hint("check that the vault is writable")
            }
        }
    }
}
