//! Clients that a test holds in its own hands: every byte they send is the test's.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use super::PATIENCE;
use crate::support::Sandbox;

/// A client over standard input and output.
pub(crate) struct Pipe {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    last: u64,
}

impl Pipe {
    pub(crate) fn start(sandbox: &Sandbox, more: &[&str]) -> Self {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_wiggum"));
        command.current_dir(&sandbox.root).args(["mcp", "serve"]).args(more);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        let mut client = Self { child, input, lines, last: 0 };
        let info = json!({"name": "test", "version": "1"});
        client.asks(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}),
        );
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        client
    }

    pub(crate) fn write(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).unwrap();
        self.input.write_all(b"\n").unwrap();
    }

    /// What a method answers, be it an error.
    fn answer(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            // Whatever is on standard output is the protocol's.
            let message: Value =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            if message["id"] == id {
                return message;
            }
        }
    }

    #[track_caller]
    pub(crate) fn asks(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    #[track_caller]
    pub(crate) fn fails(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer["error"].is_object(), "{answer}");
        answer["error"].clone()
    }

    /// What a tool gives back, as data.
    #[track_caller]
    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.asks("tools/call", json!({"name": name, "arguments": arguments}));
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].clone()
    }

    /// Why a tool did nothing.
    #[track_caller]
    pub(crate) fn refused(&mut self, name: &str, arguments: Value) -> String {
        let (done, said) = self.tried(name, arguments);
        assert!(!done, "{said}");
        said
    }

    /// Whether a tool did what it was asked to, and what it said.
    pub(crate) fn tried(&mut self, name: &str, arguments: Value) -> (bool, String) {
        let result = self.asks("tools/call", json!({"name": name, "arguments": arguments}));
        (result["isError"] == false, result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
    }

    #[track_caller]
    pub(crate) fn resource(&mut self, uri: &str) -> String {
        let result = self.asks("resources/read", json!({"uri": uri}));
        result["contents"][0]["text"].as_str().unwrap().to_owned()
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A server over HTTP.
pub(crate) struct Http {
    child: Child,
    address: SocketAddr,
    token: String,
}

impl Http {
    pub(crate) fn start(sandbox: &Sandbox, more: &[&str]) -> Self {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_wiggum"));
        command.current_dir(&sandbox.root).args(["mcp", "serve", "--http", "0"]).args(more);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while !text.ends_with("\n}\n") {
            assert_ne!(said.read_line(&mut text).unwrap(), 0, "{text}");
        }
        // What it prints is what a client's configuration needs.
        let config: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
        let server = &config["mcpServers"]["wiggum"];
        let url = server["url"].as_str().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap();
        let token =
            server["headers"]["Authorization"].as_str().unwrap().trim_start_matches("Bearer ").to_owned();
        Self { child, address, token }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    pub(crate) fn request(&self, line: &str, host: &str, headers: &str, body: &str) -> String {
        format!(
            "{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Content-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        )
    }

    /// The whole answer to a body.
    pub(crate) fn post(&self, headers: &str, body: &str) -> String {
        // The newest protocol wants to see at once what a body is about.
        let about: Value = serde_json::from_str(body).unwrap_or_default();
        let mut all = headers.to_owned();
        for (name, value) in [("Mcp-Method", &about["method"]), ("Mcp-Name", &about["params"]["name"])] {
            all.extend(value.as_str().map(|value| format!("{name}: {value}\r\n")));
        }
        self.raw(&self.request("POST /mcp", &self.host(), &all, body))
    }

    /// The whole answer to these bytes.
    pub(crate) fn raw(&self, text: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // Who is refused before all was said may find nobody to talk to.
        drop(stream.write_all(text.as_bytes()));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}

/// A request of the newest protocol, which needs no session.
pub(crate) fn list_tools() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}}).to_string()
}

pub(crate) fn call(tool: &str, arguments: &Value) -> String {
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta()});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

/// Adds a token to everything that passes through, for clients that know none.
pub(crate) struct Proxy {
    address: SocketAddr,
}

impl Proxy {
    pub(crate) fn start(to: SocketAddr, header: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let header = header.clone();
                thread::spawn(move || drop(relay(stream, to, &header)));
            }
        });
        Self { address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

/// One request on each connection: the answer ends with it.
fn relay(stream: TcpStream, to: SocketAddr, header: &str) -> std::io::Result<()> {
    let mut from = BufReader::new(stream.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line == "\r\n" {
            break;
        }
        if !lower.starts_with("connection:") {
            head.push_str(&line);
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    let mut server = TcpStream::connect(to)?;
    write!(server, "{head}Connection: close\r\n{header}\r\n")?;
    server.write_all(&body)?;
    let mut client = stream;
    std::io::copy(&mut server, &mut client)?;
    client.shutdown(std::net::Shutdown::Both)
}
