//! Taking connections: so many at a time, and none that takes for ever to say what it wants.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// What clients may take of us.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at a time; who comes when all places are taken waits outside.
    pub connections: usize,
    /// A client that takes longer to say what it wants is none.
    pub headers: Duration,
}

/// Answers whoever comes, until the process ends.
pub async fn serve<A, F, B>(listener: TcpListener, bounds: Bounds, answer: A) -> io::Result<()>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let room = Arc::new(Semaphore::new(bounds.connections));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return Ok(()) };
        let Ok((stream, _)) = listener.accept().await else { continue };
        let answer = answer.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answered = answer(request);
                async move { Ok::<_, Infallible>(answered.await) }
            });
            // What is told as it happens must not wait for more of it.
            drop(stream.set_nodelay(true));
            let mut connection = hyper::server::conn::http1::Builder::new();
            connection.timer(TokioTimer::new()).header_read_timeout(bounds.headers);
            drop(connection.serve_connection(TokioIo::new(stream), service).await);
            drop(place);
        });
    }
}
