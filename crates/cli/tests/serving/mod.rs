//! A page that is served, and a client of few words for it.
#![allow(dead_code, reason = "each test file uses its part of this")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::Sandbox;

/// A asks, C prints what no page should swallow, B keeps the loop going.
pub(crate) const ASKING: &str = r#"
    keep_prompt
    case $WIGGUM_TASK_ID-$WIGGUM_ATTEMPT in
        A-1) cat <<'END'
<escalate type="stuck">
<summary>Which colour?</summary>
<options>
1. Red
2. Blue
</options>
<question>Which one?</question>
</escalate>
END
            exit ;;
        B-*) echo "looking around"; ready; wait_for_go ;;
        C-*) printf '<img src=x onerror=alert(3)><script>alert(1)</script>\n'
            printf '\033[31mred\033[0m \033]0;owned\007 \033]8;;http://evil\033\\link\033]8;;\033\\ abc\342\200\256cba\n' ;;
    esac
    printf 'def %s(value):\n    return "fine"  # <b>\n' "$WIGGUM_TASK_ID" > "$WIGGUM_TASK_ID.py"
    echo fine > "$WIGGUM_TASK_ID.txt"
    claim"#;

/// `wiggum serve` at work; ends with the test.
pub(crate) struct Page {
    server: Child,
    pub(crate) url: String,
    pub(crate) address: String,
    pub(crate) token: String,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
}

/// A stream of events.
pub(crate) struct Heard {
    pub(crate) reader: BufReader<TcpStream>,
}

impl Page {
    pub(crate) fn open(sandbox: &Sandbox, args: &[&str]) -> Self {
        Self::open_in(sandbox, &sandbox.root, args)
    }

    pub(crate) fn open_in(sandbox: &Sandbox, directory: &Path, args: &[&str]) -> Self {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_wiggum"));
        command.args(["serve", "--json", "--no-open", "--port", "0"]).args(args);
        let mut server = command.current_dir(directory).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(server.stdout.take().unwrap());
        let mut text = String::new();
        while !text.trim_end().ends_with('}') {
            assert!(out.read_line(&mut text).unwrap() > 0, "it said {text:?} and ended");
        }
        let link: Value = serde_json::from_str(&text).unwrap();
        let field = |name: &str| link[name].as_str().unwrap().to_owned();
        Self { server, url: field("url"), address: field("address"), token: field("token") }
    }

    /// With the token, as JSON.
    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = self.bearer("GET", path, "");
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        serde_json::from_str(&answer.text).unwrap()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.bearer("POST", path, &body.to_string())
    }

    pub(crate) fn bearer(&self, method: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Authorization: Bearer {}", self.token);
        let kind = if body.is_empty() { "X-Body: none" } else { "Content-Type: application/json" };
        self.ask(method, path, &[&bearer, kind], body)
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        self.ask_as(&self.address, method, path, headers, body)
    }

    pub(crate) fn ask_as(
        &self,
        host: &str,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &str,
    ) -> Answer {
        let headers = [headers, &["Connection: close"]].concat();
        Answer::read(BufReader::new(self.send(host, method, path, &headers, body)))
    }

    /// Asks with the token, and reads nothing.
    pub(crate) fn connect(&self, method: &str, path: &str, headers: &[&str], body: &str) -> TcpStream {
        let bearer = format!("Authorization: Bearer {}", self.token);
        self.send(&self.address, method, path, &[&[bearer.as_str()], headers].concat(), body)
    }

    /// Asks for events with the token.
    pub(crate) fn listen(&self, path: &str, headers: &[&str]) -> Heard {
        let mut reader = BufReader::new(self.connect("GET", path, headers, ""));
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains(" 200 "), "{line}");
        Heard { reader }
    }

    fn send(&self, host: &str, method: &str, path: &str, headers: &[&str], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n");
        for header in headers {
            text.push_str(&format!("{header}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        // A server that refuses what is too long does not read all of it.
        drop(stream.write_all(format!("{text}\r\n{body}").as_bytes()));
        stream
    }

    pub(crate) fn server_pid(&self) -> u32 {
        self.server.id()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

impl Answer {
    fn read(mut reader: BufReader<TcpStream>) -> Self {
        let mut bytes = Vec::new();
        drop(reader.read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, text) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
        let pair =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { status, headers: lines.filter_map(pair).collect(), text: text.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }
}
