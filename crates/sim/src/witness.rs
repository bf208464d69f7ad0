//! Somebody who reads the journal beside the engine, as any other program could.

use std::path::PathBuf;

use wiggum_core::event::Envelope;
use wiggum_core::ids::{LoopId, Seq};
use wiggum_core::state::Loop;
use wiggum_store::{Holder, Options, Store};

#[derive(Default)]
pub(crate) struct Witness {
    store: Option<Store>,
    loop_id: Option<LoopId>,
    seen: Seq,
    state: Loop,
}

impl Witness {
    /// The loop exists: from now on it can be watched.
    pub(crate) fn begin(&mut self, database: PathBuf, loop_id: LoopId) -> Result<(), String> {
        if self.store.is_none() {
            let options = Options { durable: false, ..Options::default() };
            let store = Store::open_with(&database, options).map_err(|error| error.to_string())?;
            (self.store, self.loop_id) = (Some(store), Some(loop_id));
        }
        Ok(())
    }

    pub(crate) fn store(&mut self) -> Option<&mut Store> {
        self.store.as_mut()
    }

    pub(crate) fn holder(&self) -> Option<Holder> {
        self.store.as_ref()?.holder(self.loop_id?).ok().flatten()
    }

    pub(crate) fn journal(&self) -> Result<Vec<Envelope>, String> {
        match (&self.store, self.loop_id) {
            (Some(store), Some(id)) => store.read(id, 0).map_err(|error| error.to_string()),
            _ => Ok(Vec::new()),
        }
    }

    /// Task, iteration and attempt that an agent works on, as far as that is durable.
    pub(crate) fn iteration_under_way(&mut self) -> Result<Option<(String, String, String)>, String> {
        let (Some(store), Some(id)) = (&self.store, self.loop_id) else { return Ok(None) };
        let state = &mut self.state;
        store
            .for_each(id, self.seen, |envelope| state.apply(&envelope))
            .map_err(|error| format!("the journal cannot be read: {error}"))?;
        self.seen = self.state.seq;
        let open = self.state.open.here();
        let open = open.filter(|open| open.stage == wiggum_core::state::Stage::Agent);
        Ok(open.map(|open| (open.task.to_string(), open.iteration.to_string(), open.attempt.to_string())))
    }
}
