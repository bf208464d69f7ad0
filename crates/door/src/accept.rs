//! Taking connections: so many at a time, and none that takes for ever to say what it wants.
//!
//! Nobody waits for those who say nothing: when all places are taken, whoever is new takes that of the one who has
//! been silent the longest. Those who were let in keep theirs.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// What clients may take of us.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at a time. Who comes when all places are taken by clients that were let in waits outside.
    pub connections: usize,
    /// A client that takes longer to say what it wants is none.
    pub headers: Duration,
}

/// How long a client may take to send the rest of a request: what people and agents write is sent at once.
pub const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// The place of a connection; in the extensions of each of its requests.
#[derive(Clone, Debug, Default)]
pub struct Seat {
    kept: Arc<AtomicBool>,
}

impl Seat {
    /// It said who it is, and all of what it wants: nobody else gets its place.
    pub fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }
}

/// Answers whoever comes, until the process ends. The answer keeps the [`Seat`] of those who may stay.
pub async fn serve<A, F, B>(listener: TcpListener, bounds: Bounds, answer: A) -> io::Result<()>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut room = Room { places: bounds.connections, guests: Vec::new(), served: JoinSet::new() };
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        room.make_place().await;
        let seat = Seat::default();
        let served = room.served.spawn(converse(stream, bounds, answer.clone(), seat.clone()));
        room.guests.push((seat, served));
    }
}

/// Everybody who is there, the oldest first.
struct Room {
    places: usize,
    guests: Vec<(Seat, AbortHandle)>,
    served: JoinSet<()>,
}

impl Room {
    async fn make_place(&mut self) {
        loop {
            while self.served.try_join_next().is_some() {}
            self.guests.retain(|(_, served)| !served.is_finished());
            if self.guests.len() < self.places {
                return;
            }
            match self.guests.iter().position(|(seat, _)| !seat.is_kept()) {
                Some(silent) => self.guests.remove(silent).1.abort(),
                None => drop(self.served.join_next().await),
            }
        }
    }
}

async fn converse<A, F, B>(stream: TcpStream, bounds: Bounds, answer: A, seat: Seat)
where
    A: Fn(Request<Incoming>) -> F + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(seat.clone());
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    // What is told as it happens must not wait for more of it.
    drop(stream.set_nodelay(true));
    let mut connection = hyper::server::conn::http1::Builder::new();
    connection.timer(TokioTimer::new()).header_read_timeout(bounds.headers);
    drop(connection.serve_connection(TokioIo::new(stream), service).await);
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::mpsc::channel;

    use super::*;

    const BOUNDS: Bounds = Bounds { connections: 4, headers: Duration::from_secs(600) };

    /// Where a server is that lets in whoever asks for `/in`.
    fn server() -> SocketAddr {
        let (told, address) = channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
                told.send(listener.local_addr().unwrap()).unwrap();
                serve(listener, BOUNDS, |request: Request<Incoming>| async move {
                    if request.uri().path() == "/in" {
                        request.extensions().get::<Seat>().unwrap().keep();
                    }
                    Response::new("answered".to_owned())
                })
                .await
            })
        });
        address.recv().unwrap()
    }

    fn connect(address: SocketAddr, said: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
        stream
    }

    fn heard(stream: &mut TcpStream) -> String {
        let mut bytes = [0; 1024];
        let length = stream.read(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn nobody_waits_for_those_who_are_silent() {
        let address = server();
        let mut kept = connect(address, "GET /in HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(heard(&mut kept).contains("answered"));
        let beginnings = ["", "GET", "GET /in HTTP/1.1\r\nHost: x\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"];
        let mut silent: Vec<TcpStream> =
            beginnings.iter().cycle().take(40).map(|said| connect(address, said)).collect();
        let mut new = connect(address, "GET /in HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(heard(&mut new).contains("answered"));
        assert_eq!(silent[0].read(&mut [0; 1]).unwrap_or(0), 0, "the oldest lost its place");
        kept.write_all(b"GET /in HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert!(heard(&mut kept).contains("answered"), "who was let in stays");
    }
}
