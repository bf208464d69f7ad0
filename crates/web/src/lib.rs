//! The live page of the loops of this machine, and the HTTP API under it.
//!
//! A surface like the others: it asks at the [`wiggum_engine::desk`] and leaves requests there. It reads the
//! journal and nothing of the engine, so that no browser, however slow or stuck, is in a loop's way.
//! [`serve`] answers clients, [`openapi()`] describes the API from the very types that are sent, and
//! [`file()`] makes the page with all its data one file to send to somebody.
//!
//! Absent on purpose: accounts, encryption and anything that starts programs.

mod answer;
mod api;
mod assets;
mod books;
mod feed;
mod file;
mod openapi;
mod refusal;
mod routes;
mod session;
mod stream;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use wiggum_door::Bounds;
use wiggum_engine::checkout::Checkout;

pub use file::file;
pub use openapi::openapi;
pub use refusal::Refusal;
pub use wiggum_door::Access;

use answer::Door;
use books::Books;

/// Two hundred open pages have a stream each, and ask on a few connections beside it.
const BOUNDS: Bounds = Bounds { connections: 1024, headers: Duration::from_secs(20) };

/// What is served.
#[derive(Clone, Debug)]
pub struct Site {
    pub checkout: Checkout,
    /// Where the loops of this machine are entered; without it only those of the workspace are served.
    pub registry: Option<PathBuf>,
    /// In whose name something is done.
    pub by: String,
}

/// Serves until the process is ended. `ready` is told where, once clients may come.
pub fn serve(site: Site, access: Access, ready: impl FnOnce(SocketAddr)) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(access.address).await?;
        let address = listener.local_addr()?;
        let door = Arc::new(Door::new(Books::new(site), access, address)?);
        ready(address);
        wiggum_door::serve(listener, BOUNDS, move |request| {
            let door = Arc::clone(&door);
            async move { door.answer(request).await }
        })
        .await
    })
}
