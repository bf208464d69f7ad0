//! Tools of a simulated world: they do what they are called for, or not, and say so, or not.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;

use serde_json::{Value, json};
use wiggum_core::event::{Envelope, Event};
use wiggum_core::state::Loop;
use wiggum_engine::tools::{CallOutcome, Cancel, NotReady, Ready, ToolCall, Tools};
use wiggum_workspace::crash;

use crate::rng::Rng;
use crate::theatre::{Stage, Theatre};

/// What every call that happened leaves behind.
const CALLED: &str = "whole, by a call";

/// Work for a task that needs no agent, if this one is to have it.
pub(crate) fn work(task: &str, rng: &mut Rng) -> Option<Value> {
    match rng.below(12) {
        0 => Some(json!({"kind": "file", "path": format!("work/{task}"), "content": "whole\n"})),
        1 => Some(json!({"kind": "notice", "message": "somebody should look"})),
        2 | 3 => {
            let tool = if rng.percent(25) { "look" } else { "send" };
            let params = json!({ "task": task });
            Some(json!({"kind": "mcp_call", "server": "world", "tool": tool, "params": params}))
        }
        _ => None,
    }
}

pub(crate) struct Toolbox(pub(crate) Theatre);

struct Call {
    theatre: Theatre,
    task: String,
    repeatable: bool,
}

impl Tools for Toolbox {
    fn prepare(&self, call: &ToolCall, _marker: &(String, String)) -> Result<Box<dyn Ready>, NotReady> {
        let chance = self.0.stage().rng.below(100);
        if chance < 4 {
            return Err(NotReady::Temporary { message: "the server does not answer".to_owned() });
        }
        if chance == 4 {
            return Err(NotReady::Permanent { message: "there is no such tool".to_owned() });
        }
        let task = call.params["task"].as_str().unwrap_or_default().to_owned();
        Ok(Box::new(Call { theatre: self.0.clone(), task, repeatable: call.tool == "look" }))
    }
}

impl Ready for Call {
    fn is_repeatable(&self) -> bool {
        self.repeatable
    }

    fn call(self: Box<Self>, _cancel: &Cancel) -> CallOutcome {
        let chance = self.theatre.stage().rng.below(10);
        let message = "the world is not as it was".to_owned();
        if chance == 0 {
            return CallOutcome::Refused { message };
        }
        crash::point("call on its way");
        if chance > 1 {
            self.theatre.stage().happens(&self.task);
        }
        match chance {
            1 | 2 => CallOutcome::Uncertain { message },
            _ => CallOutcome::Done { result: "{\"ok\": true}".to_owned() },
        }
    }
}

impl Stage {
    fn happens(&mut self, task: &str) {
        let path = self.workspace.join("work").join(task);
        let written = fs::create_dir_all(self.workspace.join("work"))
            .and_then(|()| OpenOptions::new().create(true).append(true).open(&path))
            .and_then(|mut file| writeln!(file, "{CALLED}"));
        if let Err(error) = written {
            self.violations.push(format!("the simulation cannot write {}: {error}", path.display()));
        }
    }

    fn times_called(&self, task: &str) -> usize {
        let text = fs::read_to_string(self.workspace.join("work").join(task)).unwrap_or_default();
        text.lines().filter(|line| *line == CALLED).count()
    }
}

/// Nothing happens that was not recorded before.
pub(crate) fn unrecorded(journal: &[Envelope], stage: &Stage) -> Vec<String> {
    let mut state = Loop::default();
    let mut recorded: BTreeMap<String, usize> = BTreeMap::new();
    for envelope in journal {
        state.apply(envelope);
        if let (Event::CallStarted { .. }, Some(open)) = (&envelope.event, state.open.here()) {
            *recorded.entry(open.task.to_string()).or_default() += 1;
        }
    }
    let tasks = state.tasks.iter().map(|entry| entry.spec.id.to_string());
    tasks
        .filter(|task| stage.times_called(task) > recorded.get(task).copied().unwrap_or_default())
        .map(|task| format!("{task} was called more often than the journal knows"))
        .collect()
}
