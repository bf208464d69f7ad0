//! Mails of a plan, through a real MCP server to a real mail server: one for each step, wherever the plug is pulled.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::Sandbox;
use wiggum_core::checker;
use wiggum_store::Store;
use wiggum_testkit::mcp;

/// A mail server with a mailbox that can be looked into.
struct Mailbox {
    process: Child,
    smtp: u16,
    web: u16,
    sender: PathBuf,
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Mailbox {
    fn open_or_skip() -> Option<Self> {
        let (server, sender) = mcp::mail_or_skip("one mail for each step, wherever the plug is pulled")?;
        let (smtp, web) = (free_port(), free_port());
        #[expect(clippy::disallowed_methods, reason = "tests start servers themselves")]
        let process = Command::new(server)
            .args([
                "--ip",
                "127.0.0.1",
                "--web-ip",
                "127.0.0.1",
                "--incoming-user",
                "u",
                "--incoming-pass",
                "p",
            ])
            .args(["-s", &smtp.to_string(), "-w", &web.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mailbox = Self { process, smtp, web, sender };
        let begun = Instant::now();
        while mailbox.look().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the mail server does not answer");
            std::thread::yield_now();
        }
        Some(mailbox)
    }

    fn look(&self) -> Option<Vec<Value>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.web)).ok()?;
        let request = format!("GET /email HTTP/1.0\r\nHost: 127.0.0.1:{}\r\n\r\n", self.web);
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// How many mails with this subject have come.
    fn count(&self, subject: &str) -> usize {
        self.look().unwrap().iter().filter(|mail| mail["subject"] == subject).count()
    }

    /// A vault with an approved plan of two mails and a file between them.
    fn vault(&self, name: &str) -> Sandbox {
        let sandbox = Sandbox::plain();
        sandbox.wiggum(&["vault", "init", "v"]).exits(0);
        let Self { smtp, sender, .. } = self;
        let config = format!(
            "[mcp.servers.email-mcp]\ncommand = {sender:?}\nargs = [\"stdio\"]\nstart_timeout = \"60s\"\n\
             [mcp.servers.email-mcp.env]\nMCP_EMAIL_SERVER_EMAIL_ADDRESS = \"ralph@example.org\"\n\
             MCP_EMAIL_SERVER_USER_NAME = \"u\"\nMCP_EMAIL_SERVER_PASSWORD = \"p\"\n\
             MCP_EMAIL_SERVER_IMAP_HOST = \"127.0.0.1\"\nMCP_EMAIL_SERVER_SMTP_HOST = \"127.0.0.1\"\n\
             MCP_EMAIL_SERVER_SMTP_PORT = \"{smtp}\"\nMCP_EMAIL_SERVER_SMTP_SSL = \"false\"\n\
             MCP_EMAIL_SERVER_SAVE_TO_SENT = \"false\"\nMCP_EMAIL_SERVER_ALLOWED_RECIPIENTS = \"*@acme.com\"\n\
             MCP_EMAIL_SERVER_CREDENTIAL_STORAGE = \"plaintext\"\n"
        );
        sandbox.write("v/wiggum.toml", &config);
        sandbox.write("v/Approved/Plans/welcome.md", &plan(name));
        sandbox
    }
}

/// Only the undisturbed one has a result to tell of: what a person saw to has none.
fn plan(name: &str) -> String {
    let content = if name == "whole" { "{{ steps.1.result }}" } else { "sent" };
    let mail = |subject: &str| {
        format!(
            "  - MCP Server: email-mcp\n  - Tool: send_email\n  - Params: {{account_name: default, \
             recipients: [\"client@acme.com\"], subject: \"{name} {subject}\", body: \"Hello\"}}\n"
        )
    };
    format!(
        "---\nplan_id: welcome\nobjective: \"Welcome\"\ntotal_steps: 3\ncompleted_steps: 0\nstatus: approved\n\
         iterations_used: 0\nmax_iterations: 20\n---\n\n\
         - [ ] **Step 1:** Write to the client (action_type: mcp_email)\n  - Dependencies: none\n{}\n\
         - [ ] **Step 2:** Note it (action_type: create_file)\n  - Dependencies: step_1\n  \
         - File: vault/Notes/sent.md\n  - Content: {content}\n\n\
         - [ ] **Step 3:** Remind the client (action_type: mcp_email)\n  - Dependencies: step_2\n{}",
        mail("first"),
        mail("second")
    )
}

/// Answers what is asked as somebody would who looks into the mailbox.
fn answer_honestly(sandbox: &Sandbox, mailbox: &Mailbox, name: &str) {
    let path = "v/Needs_Action/plan_blocked_welcome.md";
    let note = sandbox.read(path);
    let plan = sandbox.read("v/Approved/Plans/welcome.md");
    let subject = if plan.contains("[x] **Step 1") { "second" } else { "first" };
    let sent = mailbox.count(&format!("{name} {subject}")) > 0;
    let choice = if sent { "- [ ] **It happened**" } else { "- [ ] **It did not happen**" };
    assert!(note.contains(choice), "{note}");
    sandbox.write(path, &note.replace(choice, &choice.replace("[ ]", "[x]")));
}

fn assert_done(sandbox: &Sandbox, mailbox: &Mailbox, name: &str) {
    for subject in ["first", "second"] {
        assert_eq!(mailbox.count(&format!("{name} {subject}")), 1, "{name} {subject}");
    }
    let done = sandbox.read("v/Done/welcome.md");
    assert!(done.contains("status: completed") && done.contains("completed_steps: 3"), "{done}");
    let log = sandbox.read("v/Logs/Plan_Execution/welcome.md");
    assert!(log.contains("send_email of email-mcp") && log.contains("acme.com"), "{log}");
    assert!(!log.contains("MCP_EMAIL_SERVER_PASSWORD"), "{log}");
    let store = Store::open(&sandbox.state_dir_of(&sandbox.root.join("v")).unwrap().database()).unwrap();
    let journal = store.read(store.loops().unwrap()[0].id, 0).unwrap();
    assert_eq!(checker::check(&journal), vec![], "{name}");
    assert_eq!(sandbox.processes(), Vec::<String>::new(), "{name}");
}

#[test]
fn one_mail_for_each_step_wherever_the_plug_is_pulled() {
    let Some(mailbox) = Mailbox::open_or_skip() else { return };
    let mut sandbox = mailbox.vault("whole");
    let points = sandbox.root.join("points");
    sandbox.env("WIGGUM_CRASH_LOG", points.to_str().unwrap());
    sandbox.wiggum(&["vault", "run", "v"]).exits(0);
    assert_done(&sandbox, &mailbox, "whole");
    let note = sandbox.read("v/Notes/sent.md");
    assert!(note.contains("client@acme.com"), "the result of the first step: {note}");

    let points = fs::read_to_string(&points).unwrap();
    let full = std::env::var_os("WIGGUM_SWEEP").is_some();
    let around_calls = points.lines().enumerate().filter(|(_, name)| full || name.starts_with("call"));
    let kills: Vec<usize> = around_calls.map(|(index, _)| index + 1).collect();
    assert!(kills.len() >= 8, "{points}");
    let mut asked = 0;
    for at in kills {
        let name = format!("killed at {at}");
        let mut sandbox = mailbox.vault(&name);
        sandbox.env("WIGGUM_CRASH_AT", &at.to_string());
        // What it leaves running is for the next start to end.
        sandbox.launch(&sandbox.root, &["vault", "run", "v"]).outcome_only();
        sandbox.env("WIGGUM_CRASH_AT", "1000000");
        // Whatever has happened by then, nothing is sent twice without being asked.
        if sandbox.wiggum(&["vault", "run", "v"]).code() == Some(6) {
            asked += 1;
            answer_honestly(&sandbox, &mailbox, &name);
            sandbox.wiggum(&["vault", "run", "v"]).exits(0);
        }
        sandbox.wiggum(&["vault", "run", "v"]).exits(0);
        assert_done(&sandbox, &mailbox, &name);
    }
    assert!(asked >= 2, "a call whose end nobody saw is asked about: {asked}");
}
