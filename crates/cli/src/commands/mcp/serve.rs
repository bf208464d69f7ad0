//! `wiggum mcp serve`: for whom, and over which transport.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;
use serde_json::json;
use wiggum_door::Access;
use wiggum_engine::checkout::Checkout;
use wiggum_engine::desk::backlog::OpenBacklog;
use wiggum_engine::desk::launch::Launched;
use wiggum_engine::reports;
use wiggum_mcp::http;
use wiggum_mcp::{Assignment, Audience, Office, Program, Refusal, RunOptions, serve_stdio};

use crate::args::{ServeArgs, Whom};
use crate::commands::requests::who;
use crate::commands::{backlog, loops, surroundings};
use crate::config::{self, Flags};
use crate::failure::Failure;
use crate::listen::{Wanted, listen_at};
use crate::started;
use crate::term;

pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let checkout = loops::checkout()?;
    let audience = audience(args.whom)?;
    let by = format!("{} (MCP)", who());
    let program = Box::new(Here { checkout: checkout.clone() });
    let office = Office { checkout, which: args.which.clone(), audience, by, program };
    let served = match &args.http {
        None => serve_stdio(office),
        Some(_) if matches!(office.audience, Audience::Agent(_)) => {
            return Err(Failure::usage("an agent's server has one client, over standard input and output")
                .hint("leave --http out"));
        }
        Some(address) => {
            let access = access(args, address)?;
            let told = access.clone();
            http::serve(office, access, |address| {
                let _printed = term::print(&snippet(&told, address));
            })
        }
    };
    served.map_err(|error| Failure::other(format!("the MCP server ended: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// Whom it serves. The environment of a loop outweighs what is asked for: an agent must not become a person
/// by a flag.
fn audience(asked: Option<Whom>) -> Result<Audience, Failure> {
    // A server that a step of a plan calls carries the id of the loop alone, to be found again by it.
    let inside = ["WIGGUM_LOOP_ID", "WIGGUM_TASK_ID"].iter().all(|name| std::env::var_os(name).is_some());
    match (asked, inside) {
        (Some(Whom::Client), true) => Err(Failure::usage("inside of a loop this server is for its agent")
            .hint("start it outside, or without --for client")),
        (Some(Whom::Client) | None, false) => Ok(Audience::Client),
        (Some(Whom::Agent), _) | (None, true) => Ok(Audience::Agent(assignment()?)),
    }
}

fn assignment() -> Result<Assignment, Failure> {
    let variable = |name: &str| {
        std::env::var(name).map_err(|_| {
            Failure::usage(format!("{name} is not set: an agent's server is started by a loop"))
                .hint("`[agent] mcp = true` in wiggum.toml hands it to the loop's agent")
        })
    };
    let number = |name: &str| {
        let text = variable(name)?;
        text.parse().map_err(|_| Failure::usage(format!("{name} is no number: {text}")))
    };
    Ok(Assignment {
        loop_id: variable("WIGGUM_LOOP_ID")?,
        task: variable("WIGGUM_TASK_ID")?,
        iteration: number("WIGGUM_ITERATION")?,
        attempt: number("WIGGUM_ATTEMPT")?,
        reports: variable(reports::VARIABLE)?.into(),
    })
}

fn access(args: &ServeArgs, address: &str) -> Result<Access, Failure> {
    Wanted {
        address: listen_at(address)?,
        anywhere: args.listen_anywhere,
        token_file: args.token_file.as_deref(),
        read_only_token_file: args.read_only_token_file.as_deref(),
        hosts: &args.hosts,
    }
    .access()
}

/// What clients need, ready to be put into their configuration.
fn snippet(access: &Access, address: SocketAddr) -> String {
    let url = format!("http://{address}{}", http::PATH);
    let config = |token: &str| {
        let headers = json!({ "Authorization": format!("Bearer {token}") });
        let server = json!({ "type": "http", "url": url, "headers": headers });
        serde_json::to_string_pretty(&json!({ "mcpServers": { "wiggum": server } })).unwrap_or_default()
    };
    let mut text = format!("serving at {url}; for a client's configuration:\n{}\n", config(&access.token));
    if let Some(token) = &access.read_only_token {
        text.push_str(&format!("for a client that may only look:\n{}\n", config(token)));
    }
    text
}

/// This program, in the repository it was started in.
struct Here {
    checkout: Checkout,
}

impl Program for Here {
    fn backlog(&self, named: Option<&str>) -> Result<OpenBacklog, Refusal> {
        let named = named.map(|named| self.inside(named)).transpose()?;
        backlog::locate(named.as_deref()).map_err(refusal)
    }

    fn run(&self, options: &RunOptions) -> Result<Launched, Refusal> {
        let found = self.backlog(options.backlog.as_deref())?;
        let name = match &options.name {
            Some(name) => name.clone(),
            None => self.usual_name().map_err(refusal)?,
        };
        let at = Timestamp::now();
        let arguments = arguments(options, found.file.path(), &name);
        let cannot = |error: std::io::Error| Refusal::new(format!("cannot start the loop: {error}"));
        let dir = self.checkout.open(None).map_err(|error| refusal(error.into()))?;
        let (pid, log) = started::apart(&dir, self.checkout.path(), &name, &arguments).map_err(cannot)?;
        Ok(Launched { pid, backlog: found.name, name, log, at })
    }
}

impl Here {
    /// A file of the repository, and no way out of it.
    fn inside(&self, named: &str) -> Result<PathBuf, Refusal> {
        let outside = || {
            Refusal::new(format!("there is no backlog `{named}` in this repository"))
                .hint("name a file by its path inside the repository")
        };
        let path = self.checkout.path().join(named).canonicalize().map_err(|_| outside())?;
        let root = self.checkout.path().canonicalize().map_err(|_| outside())?;
        if path.starts_with(root) && path.is_file() { Ok(path) } else { Err(outside()) }
    }

    fn usual_name(&self) -> Result<String, Failure> {
        let flags = Flags::default();
        Ok(config::resolve(&surroundings()?.sources(&flags))?.name)
    }
}

/// As one call of `wiggum run`; whatever a client says stays one value of one option.
fn arguments(options: &RunOptions, backlog: &Path, name: &str) -> Vec<String> {
    let RunOptions { agent, model, max_iterations, max_cost, .. } = options;
    let mut arguments = vec!["run".to_owned(), "--headless".to_owned(), format!("--name={name}")];
    arguments.extend(agent.as_ref().map(|agent| format!("--agent={agent}")));
    arguments.extend(model.as_ref().map(|model| format!("--model={model}")));
    arguments.extend(max_iterations.map(|limit| format!("--max-iterations={limit}")));
    arguments.extend(max_cost.map(|limit| format!("--max-cost={limit}")));
    arguments.extend(["--".to_owned(), backlog.display().to_string()]);
    arguments
}

fn refusal(failure: Failure) -> Refusal {
    Refusal { message: failure.message, hint: failure.hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_says_is_one_value_each() {
        let options = RunOptions { agent: Some("--verify=evil".to_owned()), ..RunOptions::default() };
        let arguments = arguments(&options, Path::new("-x"), "--scenario");
        assert_eq!(
            arguments,
            ["run", "--headless", "--name=--scenario", "--agent=--verify=evil", "--", "-x"]
        );
    }
}
