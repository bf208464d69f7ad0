//! A server that is a program of ours: messages are lines of its standard input and output.
//!
//! Ours rather than `rmcp`'s own, because that drops what it cannot read without a word, and a call then fails by
//! silence only. Here it is known what was heard instead.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ConstString, ErrorData, RequestId, ServerJsonRpcMessage,
    ToolListChangedNotificationMethod,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};
use wiggum_core::event::Exit;
use wiggum_core::stream::Stream;

use crate::heard::{Heard, brief};
use crate::launch::{Launcher, Program, Running, Sink};

/// Portions of output that wait to be read; then the program waits.
const WAITING: usize = 16;
/// How long a server gets to end by itself when its input is closed, as the protocol asks.
const POLITE: Duration = Duration::from_millis(300);
/// What of a strange line is shown.
const SHOWN: usize = 120;

/// Starts the program of a server. What it says arrives at the transport and in `heard`.
pub(crate) fn start(
    launcher: &dyn Launcher,
    program: impl FnOnce(io::PipeReader) -> Program,
    longest: usize,
    heard: &Arc<Heard>,
) -> io::Result<(Stdio, Process)> {
    let (reader, writer) = io::pipe()?;
    let (chunks, received) = mpsc::channel(WAITING);
    let (ended, has_ended) = watch::channel(false);
    let sink = Listener { chunks: Some(chunks), heard: Arc::clone(heard), ended };
    let running = launcher.launch(program(reader), Box::new(sink))?;
    let process = Process { running, ended: has_ended };
    let stdio = Stdio {
        chunks: received,
        lines: Lines { longest, ..Lines::default() },
        batch: VecDeque::new(),
        writer: Arc::new(tokio::sync::Mutex::new(Some(pipe::Sender::from_owned_fd(writer.into())?))),
        asked: Arc::default(),
        heard: Arc::clone(heard),
    };
    Ok((stdio, process))
}

/// The program of a server; it is ended when this is dropped.
pub(crate) struct Process {
    running: Box<dyn Running>,
    ended: watch::Receiver<bool>,
}

impl Process {
    pub(crate) fn has_ended(&self) -> watch::Receiver<bool> {
        self.ended.clone()
    }

    /// Gives it a moment to end by itself, its input being closed.
    pub(crate) async fn end(self) {
        let mut ended = self.ended.clone();
        let _in_time = tokio::time::timeout(POLITE, ended.wait_for(|ended| *ended)).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.running.stop();
    }
}

struct Listener {
    chunks: Option<mpsc::Sender<Vec<u8>>>,
    heard: Arc<Heard>,
    ended: watch::Sender<bool>,
}

impl Sink for Listener {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stderr => self.heard.stderr(bytes),
            Stream::Stdout => {
                // Nobody listens any more: it is being ended.
                if let Some(chunks) = &self.chunks
                    && chunks.blocking_send(bytes.to_vec()).is_err()
                {
                    self.chunks = None;
                }
            }
        }
    }

    fn ended(&mut self, exit: Exit) {
        // Before the end of the output is seen, which makes people ask for the reason.
        self.heard.ended(exit);
        self.chunks = None;
        self.ended.send_replace(true);
    }
}

pub(crate) struct Stdio {
    chunks: mpsc::Receiver<Vec<u8>>,
    lines: Lines,
    /// Messages that came in one line (a batch, as the oldest protocol has them).
    batch: VecDeque<Value>,
    writer: Arc<tokio::sync::Mutex<Option<pipe::Sender>>>,
    /// What was asked and not answered yet.
    asked: Arc<Mutex<Vec<RequestId>>>,
    heard: Arc<Heard>,
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let ClientJsonRpcMessage::Request(request) = &message {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                // It was greeted in the newest way before and took its time; whatever it says to that comes too late.
                asked.clear();
            }
            asked.push(request.id.clone());
        }
        let writer = Arc::clone(&self.writer);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut writer = writer.lock().await;
            let pipe = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            pipe.write_all(&line).await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        // Dropped and called again at any wait, so everything that was received stays in `self`.
        loop {
            while let Some(value) = self.batch.pop_front() {
                if let Some(message) = self.message(value) {
                    return Some(message);
                }
            }
            match self.lines.next() {
                Some(line) => self.take(&line),
                None if self.lines.too_long() => {
                    let longest = self.lines.longest;
                    self.heard.fault(format!("sent a message of more than {longest} bytes"));
                    return None;
                }
                None => self.lines.push(&self.chunks.recv().await?),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        drop(self.writer.lock().await.take());
        Ok(())
    }
}

impl Stdio {
    fn take(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match serde_json::from_slice(line) {
            Ok(Value::Array(messages)) => self.batch.extend(messages),
            Ok(message) => self.batch.push_back(message),
            Err(_) => {
                let shown = brief(&String::from_utf8_lossy(line), SHOWN);
                self.heard.odd(format!("it printed `{shown}` where only messages belong"));
            }
        }
    }

    fn message(&mut self, value: Value) -> Option<ServerJsonRpcMessage> {
        let is_answer = value.get("method").is_none();
        let id = value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
        let asked = if is_answer { id.as_ref().and_then(|id| self.answered(id)) } else { None };
        if let Some(id) = id.filter(|_| is_answer && asked.is_none()) {
            self.heard.odd(format!("it answered a request that was not made, or not any more ({id})"));
            return None;
        }
        if value.get("method").is_some_and(|method| method == ToolListChangedNotificationMethod::VALUE) {
            // Now, and not when somebody gets round to it: an answer that comes after it must not be older.
            self.heard.change();
        }
        let shown = brief(&value.to_string(), SHOWN);
        match (serde_json::from_value(value), asked) {
            (Ok(message), _) => Some(message),
            // The answer came, so there is no more to wait for, but nobody knows what it says.
            (Err(_), Some(id)) => {
                self.heard.unreadable(id.clone());
                let problem =
                    ErrorData::internal_error(format!("an answer that cannot be read: {shown}"), None);
                Some(ServerJsonRpcMessage::error(problem, Some(id)))
            }
            (Err(_), None) => {
                self.heard.odd(format!("it sent `{shown}`, which is no message"));
                None
            }
        }
    }

    /// The request that has this number, which some servers send back as text.
    fn answered(&self, id: &RequestId) -> Option<RequestId> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let at = asked.iter().position(|asked| asked == id || asked.to_string() == id.to_string())?;
        Some(asked.swap_remove(at))
    }
}

/// Cuts a stream into lines, of which none becomes longer than it may.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// Where a line may end: what is before was looked at.
    seen: usize,
    longest: usize,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        match self.bytes[self.seen..].iter().position(|byte| *byte == b'\n') {
            Some(end) if self.seen + end <= self.longest => {
                let rest = self.bytes.split_off(self.seen + end + 1);
                self.seen = 0;
                Some(std::mem::replace(&mut self.bytes, rest))
            }
            Some(_) => None,
            None => {
                self.seen = self.bytes.len();
                None
            }
        }
    }

    fn too_long(&self) -> bool {
        self.bytes.len() > self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_arrive_and_none_is_too_long() {
        let mut lines = Lines { longest: 5, ..Lines::default() };
        let mut next = |bytes: &[u8]| {
            lines.push(bytes);
            let mut all = Vec::new();
            while let Some(line) = lines.next() {
                all.push(String::from_utf8(line).unwrap());
            }
            (all, lines.too_long())
        };
        assert_eq!(next(b"ab"), (vec![], false));
        assert_eq!(next(b"c\nd\n\ne"), (vec!["abc\n".to_owned(), "d\n".to_owned(), "\n".to_owned()], false));
        assert_eq!(next(b"fghi\n"), (vec!["efghi\n".to_owned()], false));
        assert_eq!(next(b"123456"), (vec![], true));
        assert_eq!(next(b"\n"), (vec![], true));
    }
}
