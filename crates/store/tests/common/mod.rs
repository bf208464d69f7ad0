//! A loop to write to, and events to write.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::path::Path;

use jiff::Timestamp;
use uuid::Uuid;
use wiggum_core::event::{EVENT_VERSION, Envelope, Event};
use wiggum_core::ids::{Epoch, LoopId, Seq};
use wiggum_store::{Append, Holder, Identity, Store, StoreError};

pub(crate) const EMPTY: Append<'static> = Append {
    loop_id: LoopId(Uuid::nil()),
    expected_seq: 0,
    epoch: 0,
    envelopes: &[],
    blobs: &[],
    handled: &[],
    projection: None,
};

pub(crate) fn identity(name: &str) -> Identity {
    Identity { repository: "/repo".into(), backlog: "PRD.json".into(), name: name.into() }
}

pub(crate) fn holder(pid: u32) -> Holder {
    Holder { pid, started: "4711".into(), boot: "b00t".into(), host: "here".into() }
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::new(1_800_000_000 + second, 123_456_789).unwrap()
}

pub(crate) fn loop_id(n: u128) -> LoopId {
    LoopId(Uuid::from_u128(n))
}

pub(crate) fn envelope(seq: Seq, epoch: Epoch, message: &str) -> Envelope {
    let event = Event::Noticed { task: None, message: message.into() };
    let second = i64::try_from(seq).unwrap();
    Envelope {
        v: EVENT_VERSION,
        seq,
        id: Uuid::from_u128(u128::from(seq) << 64),
        at: at(second),
        epoch,
        event,
    }
}

/// A loop named `main` whose lease process 1 holds.
pub(crate) fn leased(store: &mut Store) -> (LoopId, Epoch) {
    let id = store.create_loop(&identity("main"), loop_id(1), at(0)).unwrap().id;
    let epoch = store.acquire(id, &holder(1), &|_| false, at(0)).unwrap();
    (id, epoch)
}

pub(crate) fn append_one(
    store: &mut Store,
    loop_id: LoopId,
    epoch: Epoch,
    expected_seq: Seq,
    message: &str,
) -> Result<(), StoreError> {
    let envelopes = [envelope(expected_seq + 1, epoch, message)];
    store.append(&Append { loop_id, expected_seq, epoch, envelopes: &envelopes, ..EMPTY })
}

pub(crate) fn messages(store: &Store, loop_id: LoopId) -> Vec<String> {
    let envelopes = store.read(loop_id, 0).unwrap();
    envelopes
        .into_iter()
        .map(|envelope| match envelope.event {
            Event::Noticed { message, .. } => message,
            other => panic!("not written by these tests: {other:?}"),
        })
        .collect()
}

pub(crate) fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

pub(crate) fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
