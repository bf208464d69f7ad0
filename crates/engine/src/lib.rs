//! The engine: joins the pure core with the journal, the agents, the work tree and the backlog file.
//!
//! [`Engine`] is the dull loop; [`status`] is what other programs read; the [`desk`] is where surfaces ask
//! about loops and have something done to them, in the [`words`] they share. Printing and
//! asking people is the surfaces' business: they watch as [`Observer`]s.
//!
//! A whole loop, from a backlog to its report:
//!
//! ```
//! use std::fs;
//!
//! use wiggum_agents::AgentEvent;
//! use wiggum_agents::command::{CommandAgent, PromptVia};
//! use wiggum_core::decide::Waiting;
//! use wiggum_core::event::{EndReason, Envelope, Event};
//! use wiggum_core::policy::Baseline;
//! use wiggum_core::state::Loop;
//! use wiggum_engine::checkout::{Checkout, StateRoot};
//! use wiggum_engine::{Agent, Engine, Observer, Outcome, Settings};
//!
//! /// Counts completed tasks.
//! #[derive(Default)]
//! struct Watcher(usize);
//!
//! impl Observer for Watcher {
//!     fn event(&mut self, envelope: &Envelope, _: &Loop) {
//!         self.0 += usize::from(matches!(envelope.event, Event::TaskCompleted { .. }));
//!     }
//!     fn agent(&mut self, _: &AgentEvent) {}
//!     fn check_output(&mut self, _: &str) {}
//!     fn waiting(&mut self, _: &Waiting, _: &Loop) {}
//! }
//!
//! let (dir, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! fs::write(
//!     dir.path().join("PRD.json"),
//!     r#"{ "project": "x", "userStories": [ { "id": "A", "title": "Write it", "passes": false } ] }"#,
//! )?;
//! let line = "echo done > a.txt; echo '<promise>DONE</promise>'".to_owned();
//! let agent = Agent {
//!     name: "mine".to_owned(),
//!     driver: Box::new(CommandAgent { line, prompt_via: PromptVia::Stdin }),
//!     env: Vec::new(),
//!     pass_env: Vec::new(),
//! };
//! let checkout = Checkout::new(dir.path(), &StateRoot::new(state.path()));
//! let mut settings = Settings::new(checkout, "PRD.json", vec![agent]);
//! settings.policy.checks.verify = vec!["test -s a.txt".to_owned()];
//! // This check fails until the work is done; without this line the engine would ask before the first agent.
//! settings.policy.checks.baseline = Baseline::GoOn;
//!
//! let mut watcher = Watcher::default();
//! let outcome = Engine::open(settings, &mut watcher)?.run()?;
//! assert!(matches!(outcome, Outcome::Ended { reason: EndReason::GoalAchieved, .. }));
//! assert_eq!(watcher.0, 1);
//! assert!(fs::read_to_string(dir.path().join("PRD.json"))?.contains("\"passes\": true"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent;
mod attempts;
mod attendant;
pub mod backlog_file;
mod by_hand;
pub mod checkout;
pub mod checkpoints;
mod checks;
mod clean;
pub mod clock;
mod contents;
mod copies;
pub mod desk;
mod engine;
pub mod error;
pub mod former;
mod handoff;
mod health;
pub mod host;
mod iteration;
mod journal;
mod land;
mod money;
pub mod nudge;
mod packages;
mod plan;
mod private;
mod programs;
mod proposals;
mod recover;
pub mod report;
pub mod reports;
mod requests;
mod restore;
mod sandbox;
pub mod state_dir;
pub mod status;
mod surroundings;
pub mod tools;
mod tree;
pub mod wake;
mod watchdog;
mod watched;
mod withheld;
pub mod words;
mod work;

pub use agent::Agent;
pub use attendant::Tell;
pub use engine::{Engine, Input, Observer, Outcome, Remote, Settings, Tap, read_state};
pub use error::EngineError;
pub use host::{Host, Machine, Program};
pub use iteration::command_line;
pub use restore::{Changes, Restored};
pub use sandbox::{OfChecks, Sandbox, around_agent, around_check, make_caches};
pub use watched::{InForce, in_force};
pub use wiggum_agents::AgentEvent;
pub use withheld::withheld;
