//! A place with MCP servers in its configuration, driven through the real program.
#![allow(dead_code, reason = "each test file uses its part of this")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

pub(crate) struct Place {
    base: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

/// What a command wrote, and how it ended.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {} {}", self.out, self.err))
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Ends with the test.
pub(crate) struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Place {
    pub(crate) fn new(config: &str) -> Self {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir(base.path().join("home")).unwrap();
        let place = Self { base, root };
        place.write("wiggum.toml", config);
        place
    }

    /// With one server, `it`, that misbehaves in this way.
    pub(crate) fn hostile(how: &str, more: &str) -> Self {
        let place = Self::new("");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/hostile.py");
        let log = place.root.join("log");
        place.write(
            "wiggum.toml",
            &format!(
                "[mcp.servers.it]\ncommand = \"python3\"\nargs = [{script:?}, {how:?}, {log:?}]\n{more}\n"
            ),
        );
        place
    }

    /// The same over HTTP, with a token for it; the server ends with what is returned.
    pub(crate) fn hostile_http(how: &str) -> (Self, Server) {
        let place = Self::new("");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/hostile_http.py");
        let mut server = Command::new("python3");
        server.arg(script).arg(how).arg(place.root.join("log"));
        // It has much to say about connections that others break off.
        server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Server(server.spawn().unwrap());
        let mut port = String::new();
        BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let port = port.trim();
        place.write(
            "wiggum.toml",
            &format!(
                "[mcp.servers.it]\nurl = \"http://127.0.0.1:{port}/mcp\"\nbearer_env = \"TOKEN\"\n\
                 start_timeout = \"10s\"\ncall_timeout = \"2s\"\n"
            ),
        );
        (place, server)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.root.join(name), text).unwrap();
    }

    /// What the hostile server noted.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.root.join("log")).unwrap_or_default()
    }

    pub(crate) fn wiggum(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wiggum"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.base.path().join("home")).env("SANDBOX", self.base.path());
        command.env("TOKEN", "hunter22hunter22");
        command.args(args).current_dir(&self.root).stdin(Stdio::null());
        command
    }

    pub(crate) fn said(&self, args: &[&str]) -> Said {
        self.wiggum(args).output().unwrap().into()
    }

    /// Calls `send` of the hostile server.
    pub(crate) fn send(&self) -> Said {
        self.said(&["mcp", "call", "it", "send", "text=hello", "--json"])
    }
}
