//! A repository to measure in: on the disk of the build directory, since a memory file system would
//! make every sync free, and with nothing of the user's configuration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use wiggum_engine::checkout::{Checkout, StateRoot};

use crate::Outcome;

pub(crate) const BACKLOG: &str = "PRD.json";
pub(crate) const PROMISE: &str = "<promise>DONE</promise>";

/// The very program users run.
pub(crate) const WIGGUM: &str = env!("CARGO_BIN_EXE_wiggum");

pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Outcome<Self> {
        let directory =
            tempfile::Builder::new().prefix("figures-").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        fs::create_dir(directory.path().join("home"))?;
        fs::create_dir(directory.path().join("repository"))?;
        Ok(Self { directory })
    }

    /// A git repository with some files and a tracked backlog of so many tasks.
    pub(crate) fn with_backlog(tasks: usize) -> Outcome<Self> {
        let place = Self::new()?;
        fs::write(place.root().join(BACKLOG), backlog(tasks))?;
        for number in 0..50 {
            fs::write(place.root().join(format!("file-{number}.txt")), format!("content {number}\n"))?;
        }
        place.git(&["init", "--quiet", "--initial-branch=main"])?;
        place.git(&["config", "user.name", "Ralph"])?;
        place.git(&["config", "user.email", "ralph@example.com"])?;
        place.git(&["add", "-A"])?;
        place.git(&["commit", "--quiet", "-m", "Begin"])?;
        Ok(place)
    }

    /// Where programs run.
    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("repository")
    }

    /// The repository with its private state, as the program finds it.
    pub(crate) fn checkout(&self) -> Checkout {
        let root = StateRoot::new(self.directory.path().join("home/.local/state/wiggum"));
        Checkout::new(self.root(), &root)
    }

    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(self.root()).env_clear().env("HOME", self.directory.path().join("home"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> Outcome<()> {
        run(self.command("git").args(arguments))
    }

    /// `wiggum run` with an agent that does nothing but claim, and a check that always succeeds.
    pub(crate) fn wiggum_run(&self, iterations: usize, sandbox: &str) -> Command {
        let mut command = self.command(WIGGUM);
        command.args(run_arguments(iterations, sandbox));
        command
    }

    /// How many tasks the backlog counts as done.
    pub(crate) fn done(&self) -> Outcome<usize> {
        Ok(fs::read_to_string(self.root().join(BACKLOG))?.matches("\"passes\": true").count())
    }
}

/// A program that ends with whoever measures it.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// User and system time of a process, in hundredths of a second.
pub(crate) fn ticks(process: &Ended) -> Outcome<f64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.0.id()))?;
    let after = stat.rsplit_once(')').ok_or("unknown format of stat")?.1;
    let fields: Vec<&str> = after.split_whitespace().collect();
    Ok(fields[11].parse::<f64>()? + fields[12].parse::<f64>()?)
}

pub(crate) fn run_arguments(iterations: usize, sandbox: &str) -> Vec<String> {
    let agent = format!("/bin/echo '{PROMISE}'");
    arguments_with(&agent, "/bin/true", iterations, sandbox)
}

pub(crate) fn arguments_with(agent: &str, check: &str, iterations: usize, sandbox: &str) -> Vec<String> {
    let iterations = iterations.to_string();
    let programs = ["run", BACKLOG, "--agent-command", agent, "--verify", check];
    let how = ["--headless", "--json", "--sandbox", sandbox, "--max-iterations", &iterations];
    programs.into_iter().chain(how).map(str::to_owned).collect()
}

pub(crate) fn run(command: &mut Command) -> Outcome<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

fn backlog(tasks: usize) -> String {
    let story = |number: usize| {
        format!(
            "    {{\n      \"id\": \"US-{number}\",\n      \"title\": \"Story number {number}\",\n      \
             \"description\": \"As a user I want number {number} so that everything is better\",\n      \
             \"criteria\": [\"It works\", \"It is tested\"],\n      \"passes\": false\n    }}"
        )
    };
    let stories: Vec<String> = (1..=tasks).map(story).collect();
    format!("{{\n  \"project\": \"figures\",\n  \"userStories\": [\n{}\n  ]\n}}\n", stories.join(",\n"))
}
