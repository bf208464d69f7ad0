//! How a loop was started, so that `wiggum monitor` can start it again in the same way.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wiggum_core::ids::LoopId;
use wiggum_core::redact::is_secret_name;
use wiggum_engine::state_dir::StateDir;
use wiggum_store::Identity;
use wiggum_workspace::beneath;
use wiggum_workspace::paths::{remove_temporary, write_whole};
use wiggum_workspace::process::{self, CommandLine};

use crate::config::value::OWN_VARIABLES;

const FILE: &str = "started.json";
const LOG: &str = "restarted.log";

/// The call of `wiggum run`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Started {
    directory: PathBuf,
    arguments: Vec<String>,
    /// What was configured by the environment.
    variables: Vec<(String, String)>,
}

/// Notes this very call. A courtesy: a loop that cannot be started again by itself still runs.
pub(crate) fn note(dir: &StateDir, id: LoopId) {
    let arguments: Option<Vec<String>> =
        std::env::args_os().skip(1).map(|argument| argument.into_string().ok()).collect();
    let (Some(arguments), Ok(directory)) = (arguments, std::env::current_dir()) else { return };
    if arguments.first().is_none_or(|command| command != "run") {
        return;
    }
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with("WIGGUM_") && !is_secret_name(name))
        .filter(|(name, _)| !OWN_VARIABLES.contains(&name.as_str()))
        .collect();
    if let Ok(text) = serde_json::to_string(&Started { directory, arguments, variables }) {
        let file = dir.loop_dir(id).join(FILE);
        // What a killed start left half written is nobody's.
        let cleared = fs::create_dir_all(dir.loop_dir(id)).and_then(|()| remove_temporary(&file));
        drop(cleared.and_then(|()| write_whole(&file, text.as_bytes())));
    }
}

/// This very call, as it can be typed again.
pub(crate) fn this_call() -> String {
    let words = std::env::args().skip(1).map(|word| shell_word(&word));
    std::iter::once("wiggum".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it back.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./@+=:,%".contains(c);
    let plain = !text.is_empty() && text.chars().all(is_plain);
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Starts a loop again and leaves it alone; what it prints is in a file beside its journal.
pub(crate) fn again(dir: &StateDir, id: LoopId, identity: &Identity) -> io::Result<u32> {
    let place = dir.loop_dir(id);
    let started = beneath::text_of(&place.join(FILE)).ok().and_then(|text| serde_json::from_str(&text).ok());
    let started: Started = started.unwrap_or_else(|| usual(identity));
    let program = std::env::current_exe()?;
    let arguments = unattended(started.arguments).into_iter().map(OsString::from).collect::<Vec<_>>();
    let env: Vec<(OsString, OsString)> =
        started.variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    fs::create_dir_all(&place)?;
    let log = File::options().create(true).append(true).open(place.join(LOG))?;
    process::detach(&CommandLine::new(program, arguments), &started.directory, &env, log)
}

/// Starts a run in a process of its own, which outlives us; what it prints is in the file that is told.
pub(crate) fn apart(
    dir: &StateDir,
    directory: &Path,
    name: &str,
    arguments: &[impl Into<OsString> + Clone],
) -> io::Result<(u32, PathBuf)> {
    let log = dir.path().join(format!("started-{}.log", plain(name)));
    let file = File::options().create(true).append(true).open(&log)?;
    let command = CommandLine::new(std::env::current_exe()?, arguments.iter().cloned());
    Ok((process::detach(&command, directory, &[], file)?, log))
}

/// A name as part of a file's.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect()
}

/// Where nothing was noted, the repository's own configuration has to do.
fn usual(identity: &Identity) -> Started {
    let arguments = ["run", &identity.backlog, "--name", &identity.name].map(str::to_owned).to_vec();
    Started { directory: PathBuf::from(&identity.repository), arguments, variables: Vec::new() }
}

/// Nobody sits in front of it, and a recording that was begun is not begun again.
fn unattended(arguments: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--record" => drop(rest.next()),
            "--headless" | "--attended" => {}
            other if other.starts_with("--record=") => {}
            _ => kept.push(argument),
        }
    }
    // Options come before what may follow a `--`.
    kept.insert(kept.len().min(1), "--headless".to_owned());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn started_again_nobody_is_asked_and_nothing_recorded_twice() {
        let check = |given: &[&str], expected: &[&str]| {
            let given = given.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(unattended(given), expected);
        };
        check(&["run"], &["run", "--headless"]);
        check(
            &["run", "PRD.json", "--record", "x", "--name", "y"],
            &["run", "--headless", "PRD.json", "--name", "y"],
        );
        check(&["run", "--record=x", "--headless"], &["run", "--headless"]);
        check(&["run", "--attended", "PRD.json"], &["run", "--headless", "PRD.json"]);
    }
}
