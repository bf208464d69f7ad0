//! The model server: takes requests, chooses turns, keeps what it saw.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::choose::Running;
use crate::http::{Connection, Message};
use crate::play::{self, Ending};
use crate::reply::{Answer, Reply};
use crate::request::{Dialect, Request};
use crate::scenario::Scenario;

/// The scenario whose URL has no name in it.
const DEFAULT: &str = "";

/// A model that says what it was told to, for as long as it lives.
///
/// Whatever it does not know it answers with `{}`, so that no agent waits for a start-up probe.
pub struct StubModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on loopback")]
    Listen(#[source] io::Error),
    #[error("`{pattern}` is no regular expression")]
    Pattern { pattern: String, source: Box<regex_automata::meta::BuildError> },
}

/// A request as the stub saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in small letters; keys and tokens are left out.
    pub headers: BTreeMap<String, String>,
    pub body: Value,
    /// What was asked of the model, unless it was something else.
    pub asked: Option<Asked>,
}

#[derive(Clone, Debug)]
pub struct Asked {
    pub dialect: Dialect,
    pub request: Request,
    pub choice: Choice,
}

/// What a request was answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The turn with this index.
    Turn(usize),
    /// The answer to requests without tools.
    Side,
    Fallback,
}

impl StubModel {
    pub fn start(scenario: impl Into<Scenario>) -> Result<Self, StartError> {
        let running = Running::new(scenario.into())?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(StartError::Listen)?;
        let address = listener.local_addr().map_err(StartError::Listen)?;
        let shared = Arc::new(Shared::default());
        shared.lock().scenarios.insert(DEFAULT.to_owned(), running);
        let accepting = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || accept(&listener, &shared))
        };
        Ok(Self { address, shared, accepting: Some(accepting) })
    }

    /// Without a `/` at its end.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a scenario beside the first; returns its own base URL.
    pub fn add(&self, name: &str, scenario: impl Into<Scenario>) -> Result<String, StartError> {
        let running = Running::new(scenario.into())?;
        self.shared.lock().scenarios.insert(name.to_owned(), running);
        Ok(format!("{}/s/{name}", self.base_url()))
    }

    /// Goes on with another scenario.
    pub fn replace(&self, scenario: impl Into<Scenario>) -> Result<(), StartError> {
        self.add(DEFAULT, scenario).map(drop)
    }

    /// All requests so far, in the order they came.
    pub fn requests(&self) -> Vec<Seen> {
        self.shared.lock().seen.clone()
    }

    /// What was asked of the model so far, in that order.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.lock().seen.iter().filter_map(|seen| seen.asked.clone()).collect()
    }

    /// Waits until the requests are as wanted; false if they are not in time.
    pub fn wait_until(&self, patience: Duration, wanted: impl Fn(&[Seen]) -> bool) -> bool {
        let waiting = |state: &mut State| !wanted(&state.seen);
        let result = self.shared.changed.wait_timeout_while(self.shared.lock(), patience, waiting);
        let (_state, timeout) = result.unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }

    /// Waits until the model was asked so many times; false if it was not in time.
    pub fn wait_asked(&self, times: usize, patience: Duration) -> bool {
        self.wait_until(patience, |seen| seen.iter().filter(|seen| seen.asked.is_some()).count() >= times)
    }
}

impl Drop for StubModel {
    fn drop(&mut self) {
        self.shared.end();
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
    }
}

#[derive(Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    scenarios: BTreeMap<String, Running>,
    seen: Vec<Seen>,
    connections: BTreeMap<SocketAddr, TcpStream>,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass, unless the stub ends.
    pub(crate) fn rest(&self, seconds: f64) -> io::Result<()> {
        if seconds <= 0.0 {
            return Ok(());
        }
        let duration = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let result = self.changed.wait_timeout_while(self.lock(), duration, |state| !state.ended);
        let (state, _) = result.unwrap_or_else(PoisonError::into_inner);
        if state.ended { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        for connection in state.connections.values() {
            drop(connection.shutdown(std::net::Shutdown::Both));
        }
        self.changed.notify_all();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.lock().ended {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // An agent that goes away in the middle is nothing to complain about.
            drop(serve(stream, &shared));
        });
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let peer = stream.peer_addr()?;
    shared.lock().connections.insert(peer, stream.try_clone()?);
    let mut connection = Connection::new(stream)?;
    let ending = answer_all(&mut connection, shared);
    // A reset goes out when the last handle is closed, which must not be this one.
    shared.lock().connections.remove(&peer);
    match ending? {
        Ending::Next | Ending::Close => connection.close(),
        Ending::Reset => connection.reset(),
    }
}

fn answer_all(connection: &mut Connection, shared: &Shared) -> io::Result<Ending> {
    while let Some(message) = connection.receive()? {
        match answer(connection, shared, message)? {
            Ending::Next => {}
            ending => return Ok(ending),
        }
    }
    Ok(Ending::Close)
}

fn answer(connection: &mut Connection, shared: &Shared, message: Message) -> io::Result<Ending> {
    let target = message.target.clone();
    let path = target.split('?').next().unwrap_or_default();
    let (scenario, path) = named(path);
    let body: Value = serde_json::from_slice(&message.body).unwrap_or_default();
    let dialect = Dialect::of(path).filter(|_| message.method == "POST");
    let Some(dialect) = dialect else {
        let whole = probe(&message, path);
        shared.lock().seen.push(seen(message, body, None));
        shared.changed.notify_all();
        return play::whole(connection, 200, &BTreeMap::new(), &whole);
    };
    let request = Request::read(dialect, path, &message.headers, &body);
    let (number, chosen) = {
        let mut state = shared.lock();
        let Some(running) = state.scenarios.get_mut(scenario) else {
            let whole = json!({"error": {"message": format!("stub: no scenario `{scenario}`")}});
            return play::whole(connection, 404, &BTreeMap::new(), &whole);
        };
        let chosen = running.choose(&request);
        let asked = Asked { dialect, request: request.clone(), choice: chosen.choice };
        state.seen.push(seen(message, body, Some(asked)));
        (state.seen.len(), chosen)
    };
    shared.changed.notify_all();
    let turn = chosen.turn.filled(&request, number);
    let usage = turn.usage.unwrap_or(chosen.usage);
    let reply = Reply::new(dialect, &Answer { turn: &turn, usage, model: &request.model, number });
    play::Player { connection, shared, dialect, turn: &turn, number }.play(&reply, request.streamed)
}

/// The scenario a path names, and the path without it.
fn named(path: &str) -> (&str, &str) {
    let inner = path.strip_prefix("/s/").and_then(|rest| rest.find('/').map(|at| rest.split_at(at)));
    inner.unwrap_or((DEFAULT, path))
}

/// What agents ask beside the model itself.
fn probe(message: &Message, path: &str) -> Value {
    let tokens = || (message.body.len() / 4).max(1);
    if path.ends_with("/messages/count_tokens") {
        json!({"input_tokens": tokens()})
    } else if path.ends_with(":countTokens") {
        json!({"totalTokens": tokens()})
    } else if path.ends_with("/models") && message.method == "GET" {
        let model = |id: &str| {
            json!({
                "id": id, "name": id, "display_name": id, "type": "model", "object": "model",
                "owned_by": "stub", "created": 0, "created_at": "2025-01-01T00:00:00Z"})
        };
        let models = ["claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro", "stub-model"].map(model);
        json!({"object": "list", "data": models, "models": [], "has_more": false})
    } else {
        json!({})
    }
}

fn seen(message: Message, body: Value, asked: Option<Asked>) -> Seen {
    let mut headers = message.headers;
    for secret in ["authorization", "x-api-key", "x-goog-api-key", "cookie"] {
        headers.remove(secret);
    }
    Seen { method: message.method, path: message.target, headers, body, asked }
}
