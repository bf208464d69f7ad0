//! Events as they happen, over server-sent events. Every client goes at its own pace: one that is behind
//! reads the journal from where it stopped, so that nothing is lost and nothing comes twice.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio::time::timeout;
use wiggum_core::ids::Seq;

use crate::api::events::{EventRow, PAGE};
use crate::books::Books;
use crate::feed::Batch;
use crate::refusal::Refusal;

/// What says that both ends are still there; proxies and browsers give up on silence.
const BEAT: Duration = Duration::from_secs(15);
/// A client that takes nothing for so long has gone without a word.
const GONE: Duration = Duration::from_secs(60);
/// Parts that are made before a client has taken the first.
const AHEAD: usize = 4;

/// The body of a stream.
pub(crate) struct Stream {
    parts: mpsc::Receiver<Bytes>,
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.parts.poll_recv(context).map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// What a client is told first.
#[derive(Serialize)]
struct Hello {
    last_seq: Seq,
    /// Whoever was told otherwise a moment ago asks again.
    engine_alive: bool,
}

/// One message of the stream.
pub(crate) fn message(name: &str, id: Option<Seq>, data: &impl Serialize) -> Bytes {
    // JSON has no line breaks, so it is one line of data.
    let data = serde_json::to_string(data).unwrap_or_default();
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    Bytes::from(format!("{id}event: {name}\ndata: {data}\n\n"))
}

/// Begins after this event, or with what happens from now on.
pub(crate) async fn open(books: Arc<Books>, which: String, after: Option<Seq>) -> Result<Stream, Refusal> {
    let begun = aside(&books, move |books| {
        books.of(&which, |loops, record| {
            let feed = books.feed(loops, record)?;
            let (heard, engine_alive) = feed.listen(loops);
            // What is written in between is seen by both; what came twice is told once.
            let last = loops.store.last_seq(record.id)?;
            Ok((record.id.to_string(), heard, Hello { last_seq: last, engine_alive }))
        })
    });
    let (id, heard, hello) = begun.await?;
    let last = hello.last_seq;
    let (sender, parts) = mpsc::channel(AHEAD);
    let next = after.unwrap_or(last).min(last) + 1;
    let teller = Teller { books, id, next, sender };
    tokio::spawn(teller.tell(heard, hello));
    Ok(Stream { parts })
}

struct Teller {
    books: Arc<Books>,
    id: String,
    /// The event that comes next.
    next: Seq,
    sender: mpsc::Sender<Bytes>,
}

/// The client is gone, or the store is.
struct End;

impl Teller {
    async fn tell(mut self, mut heard: broadcast::Receiver<Arc<Batch>>, hello: Hello) {
        // Whoever loses the connection comes again soon.
        let mut first = b"retry: 1000\n".to_vec();
        first.extend_from_slice(&message("hello", None, &hello));
        let mut going = self.send(first.into()).await;
        if going.is_ok() {
            going = self.read_until(hello.last_seq).await;
        }
        while going.is_ok() {
            going = match timeout(BEAT, heard.recv()).await {
                Ok(Ok(batch)) => self.pass_on(&batch).await,
                Ok(Err(RecvError::Lagged(_))) => Ok(()),
                Ok(Err(RecvError::Closed)) => Err(End),
                Err(_) => self.send(Bytes::from_static(b": still here\n\n")).await,
            };
        }
    }

    async fn pass_on(&mut self, batch: &Batch) -> Result<(), End> {
        match &batch.events {
            Some(events) if batch.first == self.next => {
                if !events.is_empty() {
                    self.send(events.clone()).await?;
                    self.next = batch.last + 1;
                }
            }
            Some(_) | None => self.read_until(batch.last).await?,
        }
        self.send(batch.change.clone()).await
    }

    /// Reads the journal up to this event.
    async fn read_until(&mut self, last: Seq) -> Result<(), End> {
        while self.next <= last {
            let (id, after) = (self.id.clone(), self.next - 1);
            let read = aside(&self.books, move |books| {
                books.of(&id, |loops, record| {
                    let (mut bytes, mut read) = (Vec::new(), after);
                    loops.store.for_some(record.id, after, PAGE, |envelope| {
                        let row = EventRow::of(&envelope);
                        read = row.seq;
                        bytes.extend_from_slice(&message("event", Some(row.seq), &row));
                    })?;
                    Ok((bytes, read))
                })
            });
            let (bytes, read) = read.await.map_err(|_| End)?;
            if read == self.next - 1 {
                return Ok(());
            }
            self.next = read + 1;
            self.send(bytes.into()).await?;
        }
        Ok(())
    }

    async fn send(&self, bytes: Bytes) -> Result<(), End> {
        match timeout(GONE, self.sender.send(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End),
        }
    }
}

/// Carries out what may wait for a disk or for an engine.
pub(crate) async fn aside<T: Send + 'static>(
    books: &Arc<Books>,
    work: impl FnOnce(&Books) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let books = Arc::clone(books);
    let done = tokio::task::spawn_blocking(move || work(&books)).await;
    done.unwrap_or_else(|error| {
        let status = http::StatusCode::INTERNAL_SERVER_ERROR;
        Err(Refusal::new(status, format!("the request was cut off: {error}")))
    })
}
