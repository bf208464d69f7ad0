//! A vault in a temporary directory, with tools that do as they are told.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wiggum_core::checker;
use wiggum_core::policy::Millis;
use wiggum_engine::Settings;
use wiggum_engine::checkout::{Checkout, StateRoot};
use wiggum_engine::state_dir::StateDir;
use wiggum_engine::tools::{CallOutcome, Cancel, NotReady, Ready, ToolCall, Tools};
use wiggum_store::Store;
use wiggum_vault::{Keeper, Ran, Row, Rules, Setup, Signal, Told, Vault};

pub(crate) const FRONT: &str = "total_steps: 3\ncompleted_steps: 0\nstatus: awaiting_approval\napproval_required: true\niterations_used: 0\nmax_iterations: 10\n";

/// A plan of a mail, a file and a notice.
pub(crate) fn plan(id: &str) -> String {
    format!(
        "---\nplan_id: {id}\nobjective: \"Onboard {id}\"\n{FRONT}---\n\n# Plan\n\n\
         - [ ] **Step 1:** Send a mail (action_type: mcp_email)\n  - Dependencies: none\n  - MCP Server: email\n  - Tool: send\n  - Params: {{to: \"a@b.c\", password: \"hunter2hunter2\"}}\n\n\
         - [ ] **Step 2:** Write a note (action_type: create_file)\n  - Dependencies: step_1\n  - File: vault/Notes/{id}.md\n  - Content: number {{{{ steps.1.result.id }}}}\n\n\
         - [ ] **Step 3:** Tell Ann (action_type: notify_human)\n  - Dependencies: step_2\n  - Message: Look at {{{{ steps.1.result.text }}}}\n"
    )
}

/// Tools that answer as they were told to, and remember what they were asked.
#[derive(Default)]
pub(crate) struct Scripted {
    pub(crate) answers: Mutex<VecDeque<CallOutcome>>,
    pub(crate) calls: Mutex<Vec<ToolCall>>,
    pub(crate) text: Mutex<String>,
}

impl Scripted {
    pub(crate) fn say(&self, outcome: CallOutcome) {
        self.answers.lock().unwrap().push_back(outcome);
    }

    pub(crate) fn count(&self) -> usize {
        self.calls.lock().unwrap().len()
    }
}

struct Mine(Arc<Scripted>);
struct Call(Arc<Scripted>, ToolCall);

impl Tools for Mine {
    fn prepare(&self, call: &ToolCall, _: &(String, String)) -> Result<Box<dyn Ready>, NotReady> {
        if call.server == "nobody" {
            return Err(NotReady::Permanent { message: "there is no MCP server `nobody`".to_owned() });
        }
        Ok(Box::new(Call(Arc::clone(&self.0), call.clone())))
    }
}

impl Ready for Call {
    fn is_repeatable(&self) -> bool {
        false
    }

    fn call(self: Box<Self>, _: &Cancel) -> CallOutcome {
        self.0.calls.lock().unwrap().push(self.1);
        let answer = self.0.answers.lock().unwrap().pop_front();
        let text = self.0.text.lock().unwrap().clone();
        answer.unwrap_or_else(|| CallOutcome::Done {
            result: serde_json::json!({"id": 7, "text": text}).to_string(),
        })
    }
}

pub(crate) struct Scene {
    dir: tempfile::TempDir,
    pub(crate) tools: Arc<Scripted>,
    pub(crate) rules: Rules,
    /// Why no plan can be started, if none can.
    pub(crate) trouble: Arc<Mutex<Option<String>>>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let vault = dir.path().join("vault");
        fs::create_dir(&vault).unwrap();
        Vault::open(&vault).unwrap().init().unwrap();
        fs::remove_file(vault.join("Plans/hello_vault.md")).unwrap();
        let rules = Rules { backoff: Millis(1), settle: Millis(1), ..Rules::default() };
        Self { dir, tools: Arc::default(), rules, trouble: Arc::default() }
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("vault").join(relative)
    }

    /// The vault, with its state beside it.
    pub(crate) fn checkout(&self) -> Checkout {
        Checkout::new(self.path(""), &StateRoot::new(self.dir.path().join("state")))
    }

    pub(crate) fn state_dir(&self) -> StateDir {
        self.checkout().find().unwrap().expect("a store")
    }

    pub(crate) fn write(&self, relative: &str, text: &str) {
        fs::write(self.path(relative), text).unwrap();
    }

    pub(crate) fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"))
    }

    pub(crate) fn exists(&self, relative: &str) -> bool {
        self.path(relative).exists()
    }

    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Approves a plan as people do: by moving its file.
    pub(crate) fn approve(&self, name: &str, text: &str) {
        self.write(&format!("Plans/{name}"), text);
        fs::rename(self.path(&format!("Plans/{name}")), self.path(&format!("Approved/Plans/{name}")))
            .unwrap();
    }

    pub(crate) fn tick(&self, note: &str, key: &str) {
        let path = format!("Needs_Action/{note}.md");
        let text = self.read(&path);
        let line = text.lines().find(|line| line.ends_with(&format!(" ^{key}")));
        let line = line.unwrap_or_else(|| panic!("no {key} in {text}"));
        self.write(&path, &text.replace(line, &line.replace("- [ ]", "- [x]")));
    }

    pub(crate) fn keeper(&self, tell: impl FnMut(&Told) + 'static) -> Keeper {
        let (checkout, tools) = (self.checkout(), Arc::clone(&self.tools));
        let trouble = Arc::clone(&self.trouble);
        let setup: Setup = Arc::new(move |plan| {
            if let Some(trouble) = trouble.lock().unwrap().clone() {
                return Err(trouble);
            }
            let mut settings = Settings::new(checkout.clone(), &plan.name, Vec::new());
            settings.tools = Some(Arc::new(Mine(Arc::clone(&tools))));
            Ok(settings)
        });
        let vault = Vault::open(&self.path("")).unwrap();
        Keeper::open(vault, &self.checkout(), self.rules, setup, tell).unwrap()
    }

    /// Carries out what is there, once. Returns the plans that rest.
    pub(crate) fn run(&self) -> Vec<Row> {
        self.run_all().rows
    }

    /// The same, with what was not carried out.
    pub(crate) fn run_all(&self) -> Ran {
        let ran = self.keeper(|_| {}).run().unwrap();
        self.assert_sound();
        ran
    }

    /// The files that were not carried out.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.run_all().problems.into_iter().map(|problem| problem.file).collect()
    }

    /// As if a file had been written an hour ago.
    pub(crate) fn age(&self, relative: &str) {
        let file = fs::File::options().write(true).open(self.path(relative)).unwrap();
        let written = file.metadata().unwrap().modified().unwrap();
        file.set_modified(written - Duration::from_secs(3600)).unwrap();
    }

    /// A keeper on a thread of its own, and what it tells.
    pub(crate) fn watch(self: &Arc<Self>) -> Watching {
        let (tell, told) = channel();
        let (ready, sender) = channel();
        let scene = Arc::clone(self);
        let thread = std::thread::spawn(move || {
            let keeper = scene.keeper(move |said: &Told| drop(tell.send(said.clone())));
            ready.send(keeper.sender()).unwrap();
            keeper.watch().unwrap();
        });
        Watching { sender: sender.recv().unwrap(), told, thread: Some(thread) }
    }

    pub(crate) fn assert_sound(&self) {
        let store = Store::open(&self.state_dir().database()).unwrap();
        for record in store.loops().unwrap() {
            assert_eq!(checker::check(&store.read(record.id, 0).unwrap()), vec![]);
        }
    }
}

pub(crate) struct Watching {
    pub(crate) sender: Sender<Signal>,
    told: Receiver<Told>,
    thread: Option<JoinHandle<()>>,
}

impl Watching {
    /// Waits until something was told that is wanted; says how long it took.
    pub(crate) fn until(&self, wanted: impl Fn(&Told) -> bool) -> Duration {
        let start = Instant::now();
        loop {
            match self.told.recv_timeout(Duration::from_secs(30)) {
                Ok(told) if wanted(&told) => return start.elapsed(),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) fn completed(&self, id: &str) -> Duration {
        self.until(|told| matches!(told, Told::Completed { plan, .. } if plan == id))
    }

    pub(crate) fn ended(&self, id: &str, wanted: &str) -> Duration {
        self.until(|told| matches!(told, Told::Ended { plan, status, .. } if plan == id && status == wanted))
    }

    pub(crate) fn problem(&self, name: &str) -> Duration {
        self.until(|told| matches!(told, Told::Problem { what, .. } if what == name))
    }

    pub(crate) fn stop(mut self) {
        self.sender.send(Signal::Stop("stopped")).unwrap();
        self.thread.take().unwrap().join().unwrap();
    }
}
