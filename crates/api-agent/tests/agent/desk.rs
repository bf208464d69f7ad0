//! A workspace, a model, and what came of putting the two together.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use wiggum_agents::api::Line;
use wiggum_api_agent::{Ceiling, Key, Prices, Provider, Settings, Timeouts};
use wiggum_core::event::{ContextFill, Trouble, Usage};
use wiggum_testkit::{Scenario, StubModel};

/// Both protocols, for what must be the same in both.
pub(crate) const BOTH: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];

pub(crate) struct Desk {
    base: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) settings: Settings,
}

/// What the agent printed.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) lines: Vec<Line>,
    pub(crate) success: bool,
}

impl Desk {
    pub(crate) fn new(provider: Provider) -> Self {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap().join("root");
        fs::create_dir(&root).unwrap();
        let long = Duration::from_secs(30);
        let settings = Settings {
            provider,
            base_url: None,
            model: "stub-model".to_owned(),
            key: Key::Found { variable: "STUB_KEY".to_owned(), value: "sk-stub".to_owned() },
            context_window: None,
            max_turns: 50,
            prices: None,
            ceiling: Ceiling::default(),
            session: None,
            timeouts: Timeouts { connect: long, first_byte: long, silence: long },
        };
        Self { base, root, settings }
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Beside the workspace.
    pub(crate) fn outside(&self, path: &str) -> PathBuf {
        self.base.path().canonicalize().unwrap().join(path)
    }

    pub(crate) fn price(mut self, written: &[(&str, &str)]) -> Self {
        self.settings.prices = Some(Prices::read(written.iter().copied()).unwrap());
        self
    }

    /// Works with a model that follows this scenario.
    pub(crate) fn work(&self, scenario: impl Into<Scenario>) -> (Told, StubModel) {
        let stub = StubModel::start(scenario).unwrap();
        (self.work_at(&format!("{}/v1", stub.base_url())), stub)
    }

    pub(crate) fn work_at(&self, base_url: &str) -> Told {
        let settings = Settings { base_url: Some(base_url.to_owned()), ..self.settings.clone() };
        let mut printed = Vec::new();
        let success = wiggum_api_agent::run(&settings, &self.root, "Do the task.", &mut printed).unwrap();
        let text = String::from_utf8(printed).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Told { lines, success }
    }
}

impl Told {
    #[track_caller]
    pub(crate) fn message(&self) -> &str {
        match self.lines.last() {
            Some(Line::Finished { message }) if self.success => message,
            _ => panic!("not finished: {:#?}", self.lines),
        }
    }

    #[track_caller]
    pub(crate) fn failure(&self) -> (Trouble, &str) {
        match self.lines.last() {
            Some(Line::Failed { trouble, message }) if !self.success => (trouble.clone(), message),
            _ => panic!("not failed: {:#?}", self.lines),
        }
    }

    /// What tools gave back, with a sign for errors.
    pub(crate) fn results(&self) -> Vec<String> {
        let results = self.lines.iter().filter_map(|line| match line {
            Line::Result { text, is_error: true } => Some(format!("error: {text}")),
            Line::Result { text, is_error: false } => Some(text.clone()),
            _ => None,
        });
        results.collect()
    }

    /// What the model said while it worked.
    pub(crate) fn text(&self) -> String {
        let texts = self.lines.iter().filter_map(|line| match line {
            Line::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(crate) fn usage(&self) -> Option<(Usage, Option<ContextFill>)> {
        self.lines.iter().rev().find_map(|line| match line {
            Line::Usage { usage, context } => Some((*usage, *context)),
            _ => None,
        })
    }

    pub(crate) fn notices(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line, Line::Notice { .. })).count()
    }
}

/// A server that answers one request with these bytes, whatever they are, and then closes.
pub(crate) struct Rude {
    pub(crate) base_url: String,
    thread: Option<JoinHandle<()>>,
}

impl Rude {
    pub(crate) fn answering(body: Vec<u8>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            receive(&mut stream);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            // Whoever has read enough may go away.
            drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)));
        });
        Self { base_url, thread: Some(thread) }
    }
}

impl Drop for Rude {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Reads a request to its end.
fn receive(stream: &mut TcpStream) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return;
            }
        }
        let count = stream.read(&mut buffer).unwrap();
        if count == 0 {
            return;
        }
        request.extend_from_slice(&buffer[..count]);
    }
}
