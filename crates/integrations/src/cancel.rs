//! The wish that a call should end, said from another thread.

use tokio::sync::watch;

/// Clones are the same wish.
#[derive(Clone, Debug)]
pub struct Cancel(watch::Sender<bool>);

impl Cancel {
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// For good: a call that begins afterwards ends at once.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) async fn cancelled(&self) {
        // The sender is ourselves, so it cannot be gone.
        let mut wish = self.0.subscribe();
        let _seen = wish.wait_for(|cancelled| *cancelled).await;
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}
