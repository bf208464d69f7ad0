//! Which programs of ours are running, and the tokens by which their descendants are known.
//!
//! A token is a number no other launch has. On Linux it travels in a resource limit that has no
//! effect on ordinary processes; see `linux.rs`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

/// What becomes of processes that a program leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Survivors {
    End,
    Leave,
}

/// | 6 bits: ours at all | 32 bits: hash of the marker | 1 bit: may survive | 23 bits: launch |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token(u64);

impl Token {
    const TAG: u64 = 0b10_1011;
    const LAUNCH_BITS: u32 = 23;

    pub(super) fn new(marker: Option<&(String, String)>, survivors: Survivors) -> Self {
        // Starting from the pid keeps a Wiggum inside a Wiggum from counting alike.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let count = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(std::process::id() << 10);
        let launch = u64::from(count) & ((1 << Self::LAUNCH_BITS) - 1);
        let may_survive = u64::from(survivors == Survivors::Leave);
        let marker = marker.map_or(0, |(name, value)| marker_hash(name, value));
        Self(Self::TAG << 56 | u64::from(marker) << 24 | may_survive << Self::LAUNCH_BITS | launch)
    }

    pub(super) fn from_number(number: u64) -> Option<Self> {
        (number >> 56 == Self::TAG).then_some(Self(number))
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }

    pub(super) fn may_survive(self) -> bool {
        self.0 >> Self::LAUNCH_BITS & 1 == 1
    }

    pub(super) fn has_marker(self, name: &str, value: &str) -> bool {
        self.0 >> 24 & u64::from(u32::MAX) == u64::from(marker_hash(name, value))
    }
}

/// Never 0, which stands for "no marker".
fn marker_hash(name: &str, value: &str) -> u32 {
    let digest = Sha256::digest(format!("{name}={value}"));
    u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]).max(1)
}

#[derive(Debug)]
pub(super) struct Live {
    /// `None` once the program itself was reaped and only its survivors are looked after.
    pub(super) main: Option<i32>,
    pub(super) token: Token,
}

/// Held while a program is started, reaped or looked for, so that a child that is not yet listed
/// is never taken for an orphan.
pub(super) fn lock() -> MutexGuard<'static, Vec<Live>> {
    static LIVE: Mutex<Vec<Live>> = Mutex::new(Vec::new());
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn remove(token: Token) {
    lock().retain(|live| live.token != token);
}
