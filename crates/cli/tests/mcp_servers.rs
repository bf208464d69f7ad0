//! `wiggum mcp` with real servers: the protocol's reference servers and its conformance suite.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]
#![expect(clippy::disallowed_methods, reason = "a person's shell starts the program as a process of its own")]

mod mcp;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use mcp::{Place, Said};
use rustix::process::{Pid, Signal, kill_process};
use wiggum_testkit::mcp::{Server, conformance_or_skip};

fn place(program: &Path, args: &[&str], more: &str) -> Place {
    // Programs that were just installed start slowly, above all when all tests run at once.
    let times = "start_timeout = \"2m\"\ncall_timeout = \"2m\"";
    Place::new(&format!("[mcp.servers.it]\ncommand = {program:?}\nargs = {args:?}\n{times}\n{more}"))
}

#[track_caller]
fn call(place: &Place, tool: &str, params: &[&str]) -> Said {
    let said = place.said(&[&["mcp", "call", "it", tool], params].concat());
    assert_eq!(said.code, Some(0), "{tool}: {}", said.err);
    said
}

#[track_caller]
fn refused(place: &Place, tool: &str, params: &[&str], code: i32, expected: &str) {
    let said = place.said(&[&["mcp", "call", "it", tool], params].concat());
    assert_eq!(said.code, Some(code), "{tool}: {}", said.err);
    assert!(said.err.contains(expected), "{tool}: {}", said.err);
}

#[test]
fn files() {
    let Some(program) = Server::Filesystem.program_or_skip("files over MCP") else { return };
    let place = place(&program, &["."], "");
    call(&place, "write_file", &["path=note.txt", "content=hello"]);
    assert_eq!(std::fs::read_to_string(place.root.join("note.txt")).unwrap(), "hello");
    assert_eq!(call(&place, "read_text_file", &["path=note.txt"]).out, "hello\n");
    refused(&place, "read_text_file", &["path=/etc/passwd"], 1, "Access denied");
    refused(&place, "write_file", &["path=a"], 2, "\"content\" is a required property");
    refused(&place, "write_file", &["path=a"], 2, "hint: `write_file` wants path: string, content: string");
    let rows = place.said(&["mcp", "tools", "it", "--json"]).json();
    let repeatable = |name: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        row["repeatable"].as_bool().unwrap()
    };
    assert!(repeatable("read_text_file") && repeatable("write_file") && !repeatable("edit_file"));
}

#[test]
fn memory() {
    let Some(program) = Server::Memory.program_or_skip("a memory over MCP") else { return };
    let place = place(&program, &[], "env = { MEMORY_FILE_PATH = \"${PLACE:-.}/memory.jsonl\" }");
    let run =
        |args: &[&str]| -> Said { place.wiggum(args).env("PLACE", &place.root).output().unwrap().into() };
    let entities =
        r#"{"entities": [{"name": "Ralph", "entityType": "person", "observations": ["likes paste"]}]}"#;
    let made = run(&["mcp", "call", "it", "create_entities", "--params", entities]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    // Another process of the same server knows it: the variable reached it.
    let found = run(&["mcp", "call", "it", "search_nodes", "query=paste", "--json"]);
    assert!(found.json()["text"].as_str().unwrap().contains("Ralph"), "{}", found.out);
    assert!(place.root.join("memory.jsonl").exists());
}

#[test]
fn time_and_git() {
    let Some(program) = Server::Time.program_or_skip("the time over MCP") else { return };
    let time = place(&program, &[], "");
    let noon = ["source_timezone=UTC", "time=12:00", "target_timezone=Asia/Tokyo"];
    assert!(call(&time, "convert_time", &noon).out.contains("T21:00:00+09:00"));
    refused(&time, "get_current_time", &["timezone=Moon/Base"], 1, "Moon/Base");

    let Some(program) = Server::Git.program_or_skip("git over MCP") else { return };
    let git = place(&program, &[], "");
    let init = Command::new("git").args(["init", "--quiet"]).current_dir(&git.root).status().unwrap();
    assert!(init.success());
    let status = call(&git, "git_status", &["repo_path=."]).out;
    assert!(status.contains("wiggum.toml"), "{status}");
}

#[test]
fn everything_over_stdio() {
    let Some(program) = Server::Everything.program_or_skip("a server with everything") else { return };
    everything(&place(&program, &[], ""));
}

#[test]
fn everything_over_http() {
    let Some(program) = Server::Everything.program_or_skip("a server over HTTP") else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Serving::start(&program, port);
    let place = Place::new(&format!("[mcp.servers.it]\nurl = \"http://127.0.0.1:{port}/mcp\"\n"));
    everything(&place);
    server.end();
    refused(&place, "echo", &["message=x"], 1, "cannot be reached");
}

fn everything(place: &Place) {
    assert_eq!(call(place, "echo", &["message=1"]).out, "Echo: 1\n");
    assert!(call(place, "get-sum", &["a=2", "b=3"]).out.contains('5'));
    refused(place, "get-sum", &["a=two", "b=3"], 2, "`a`: \"two\" is not of type \"number\"");
    // Tells of its progress meanwhile.
    let long = call(place, "trigger-long-running-operation", &["duration=1", "steps=3"]);
    assert!(long.out.contains("completed"), "{}", long.out);
    assert!(call(place, "get-tiny-image", &[]).out.contains("[image, image/png, "));
    let structured = call(place, "get-structured-content", &["location=Chicago", "--json"]).json();
    assert!(structured["structured"]["temperature"].is_number(), "{structured}");
    let list = place.said(&["mcp", "list", "--json"]).json();
    assert!(list[0]["tools"].as_u64().unwrap() > 8, "{list}");
}

#[test]
fn the_conformance_suite_finds_nothing_to_complain_about() {
    let Some((suite, node)) = conformance_or_skip("whether our client conforms") else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/conformance.sh");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([node].into_iter().chain(std::env::split_paths(&path))).unwrap();
    // The others are about authorization in a browser and about people's answers, which there are none of here.
    for scenario in ["initialize", "tools_call", "sse-retry"] {
        let place = Place::new("");
        let mut command = Command::new(&suite);
        // The suite hands the command to a shell, which would split a path with a space.
        let client = place.root.join("conformance.sh");
        std::fs::copy(&script, &client).unwrap();
        command.args(["client", "--scenario", scenario, "--command"]).arg(&client);
        command.env("PATH", &path).env("WIGGUM", env!("CARGO_BIN_EXE_wiggum")).env("HOME", &place.root);
        let said: Said = command.current_dir(&place.root).stdin(Stdio::null()).output().unwrap().into();
        assert_eq!(said.code, Some(0), "{scenario}: {}\n{}", said.out, said.err);
    }
}

/// A server of its own process that is ended however the test ends.
struct Serving(Child);

impl Serving {
    fn start(program: &Path, port: u16) -> Self {
        let mut command = Command::new(program);
        command.arg("streamableHttp").env("PORT", port.to_string());
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = said.skip_while(|line| !line.contains("listening on port"));
        assert!(said.next().is_some(), "it does not listen");
        // Whoever does not read on would stop it.
        std::thread::spawn(move || said.for_each(drop));
        Self(child)
    }

    fn end(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        // It may have ended already.
        let _gone = kill_process(Pid::from_child(&self.0), Signal::KILL);
        let _reaped = self.0.wait();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
    }
}
