//! The project that is worked off while the plug is pulled: a repository, a backlog of fifteen
//! tasks, and a scripted agent that does everything that could go wrong half-way.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;
use wiggum_core::event::{Answer, Envelope, QuestionKind, Request};
use wiggum_core::ids::LoopId;
use wiggum_core::state::Loop;
use wiggum_engine::checkout::{Checkout, StateRoot};
use wiggum_engine::read_state;
use wiggum_engine::state_dir::StateDir;
use wiggum_store::Store;

/// A story, and what the agent does in each of its attempts.
struct Story {
    id: &'static str,
    more: &'static str,
    attempts: &'static [&'static str],
}

/// Every attempt writes a line more into `logs/<task>.log`: one that ran twice in the same tree, or
/// whose work was lost, shows in the tree that is committed.
const STORIES: [Story; 15] = [
    Story {
        id: "base",
        more: r#""criteria": [{ "text": "it is there", "check": "test -f shared.txt" }]"#,
        attempts: &[r#"{ edit = { path = "shared.txt", find = "top", replace = "TOP" } }, { claim = "" }"#],
    },
    Story {
        id: "early",
        more: r#""depends_on": ["base"], "criteria": [{ "text": "right", "check": "grep right early.txt" }]"#,
        attempts: &[
            r#"{ write = { path = "early.txt", content = "wrong\n" } }, { claim = "" }"#,
            r#"{ edit = { path = "early.txt", find = "wrong", replace = "right" } }, { claim = "" }"#,
        ],
    },
    Story {
        id: "flaky",
        more: r#""criteria": [{ "text": "two", "check": "test $(wc -l < logs/flaky.log) = 2" }]"#,
        attempts: &[r#"{ fail = "error: the disk is on fire" }"#, r#"{ claim = "" }"#],
    },
    Story {
        id: "ask",
        more: r#""criteria": [{ "text": "two", "check": "test $(wc -l < logs/ask.log) = 2" }]"#,
        attempts: &[
            r#"{ edit = { path = "shared.txt", find = "bottom", replace = "BOTTOM" } },
               { escalate = { type = "deviation", summary = "Which?", options = ["This", "That"] } }"#,
            r#"{ claim = "" }"#,
        ],
    },
    Story {
        id: "commits",
        more: r#""criteria": [{ "text": "both", "check": "test -f one.txt && test -f two.txt" }]"#,
        attempts: &[r#"{ run = "echo 1 > one.txt; git add one.txt; git commit -qm mine" },
               { run = "git checkout -qB side; echo 2 > two.txt; git add -A; git commit -qm more" },
               { run = "echo 3 > three.txt" }, { claim = "" }"#],
    },
    Story {
        id: "broken",
        more: r#""criteria": [{ "text": "never", "check": "echo no; false" }]"#,
        attempts: &[r#"{ claim = "" }"#],
    },
    Story { id: "waits", more: r#""depends_on": ["broken"]"#, attempts: &[r#"{ claim = "" }"#] },
    Story {
        id: "hooked",
        more: r#""criteria": [{ "text": "there", "check": "test -f hooked.txt" }]"#,
        attempts: &[
            r#"{ write = { path = "hooked.txt", content = "forbidden\n" } }, { claim = "" }"#,
            r#"{ write = { path = "hooked.txt", content = "allowed\n" } }, { claim = "" }"#,
        ],
    },
    Story {
        id: "formatted",
        more: r#""criteria": [{ "text": "seen", "check": "cat ugly.txt" }]"#,
        attempts: &[r#"{ write = { path = "ugly.txt", content = "ugly\n" } }, { claim = "" }"#],
    },
    Story {
        id: "litter",
        more: r#""criteria": [
            { "text": "makes", "check": "test ! -e litter.out && echo litter | tee litter.out" },
            { "text": "uses", "check": "grep litter litter.out && echo more >> shared.txt" },
            { "text": "own", "check": "git add -A && test -f logs/litter.log" }]"#,
        attempts: &[r#"{ run = "setsid sleep 600 > /dev/null 2>&1 &" }, { claim = "" }"#],
    },
    Story {
        id: "tick",
        more: r#""criteria": [{ "text": "fine", "check": "true" }]"#,
        attempts: &[r#"{ run = "sed -i 's/\"passes\": false/\"passes\": true/' prd.json" },
               { run = "echo 'touch ../pwned' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit" },
               { run = "rm PROMPT.md; echo '# mine' >> wiggum.toml" }, { say = "Ticked." }"#],
    },
    Story {
        id: "rewind",
        more: r#""criteria": [{ "text": "all there", "check": "test -f one.txt && test -f rewound.txt" }]"#,
        attempts: &[r#"{ run = "git reset -q --hard HEAD~3; echo again >> rewound.txt" }, { claim = "" }"#],
    },
    Story {
        id: "over",
        more: r#""criteria": [{ "text": "two", "check": "test $(wc -l < logs/over.log) = 2" }]"#,
        attempts: &[
            r#"{ say = "Next steps:\n- the rest\n<memory>mind the gap</memory>" },
               { context = { used = 80, window = 100 } }, { run = "true" }, { hang = true }"#,
            r#"{ claim = "" }"#,
        ],
    },
    Story { id: "idle", more: r#""notes": "unverified""#, attempts: &[r#"{ claim = "" }"#] },
    Story {
        id: "last",
        more: r#""depends_on": ["ask", "tick"], "criteria": [{ "text": "all", "check": "cat logs/*.log" }]"#,
        attempts: &[r#"{ write = { path = "ugly.txt", content = "ugly\nugly\n" } }, { claim = "" }"#],
    },
];

/// An agent that falls silent is given up, and the next attempt goes on with its work.
const SILENT: [Story; 1] = [Story {
    id: "silent",
    more: r#""criteria": [{ "text": "two", "check": "test $(wc -l < logs/silent.log) = 2" }]"#,
    attempts: &[r#"{ hang = true }"#, r#"{ claim = "" }"#],
}];

/// Longer than any step of a scripted agent takes, beside other tests too.
const SILENCE: &str = "[agent]\nsilence = \"4s\"\n[health]\nstuck_after = 0\n";

/// Refuses one content and changes another.
const PRE_COMMIT: &str = "#!/bin/sh
if grep -q forbidden hooked.txt 2>/dev/null; then echo 'hooked.txt is forbidden'; echo hint > hint.txt; exit 1; fi
if grep -q ugly ugly.txt 2>/dev/null; then sed -i s/ugly/pretty/ ugly.txt; git add ugly.txt; fi
test -e ../block || exit 0
n=$(cat ../block)
if test $n = 0; then echo > ../ready; cat ../never; fi
echo $((n - 1)) > ../block
";

pub(crate) struct Project {
    base: TempDir,
    pub(crate) root: PathBuf,
    flags: &'static [&'static str],
}

/// How one `wiggum run` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    Killed,
    Exited(i32),
}

impl Project {
    pub(crate) fn new() -> Self {
        Self::with(&STORIES, "", &[])
    }

    /// With an agent that falls silent.
    pub(crate) fn silent() -> Self {
        Self::with(&SILENT, SILENCE, &[])
    }

    /// With the first stories only, changes the user has not committed, and a check that is also run in
    /// a clean checkout when all is done.
    pub(crate) fn dirty() -> Self {
        let project = Self::with(&STORIES[..3], "", &["--allow-dirty", "--verify", "test -f README.md"]);
        fs::write(project.root.join("mine.txt"), "committed, then staged\n").unwrap();
        project.git(&["add", "mine.txt"]);
        fs::write(project.root.join("mine.txt"), "committed, then staged, then changed\n").unwrap();
        fs::write(project.root.join("README.md"), "changed only\n").unwrap();
        fs::remove_file(project.root.join("gone.txt")).unwrap();
        fs::create_dir(project.root.join("new")).unwrap();
        fs::write(project.root.join("new/untracked.txt"), "untracked\n").unwrap();
        project
    }

    fn with(stories: &[Story], more_rules: &str, flags: &'static [&'static str]) -> Self {
        // In memory where possible: what is on the disk after a power cut is not the question here.
        let shm = Path::new("/dev/shm");
        let base = if shm.is_dir() { TempDir::new_in(shm) } else { TempDir::new() }.unwrap();
        let root = base.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        let project = Self { base, root, flags };
        project.fill(stories, more_rules);
        project
    }

    fn fill(&self, stories: &[Story], more_rules: &str) {
        let write = |name: &str, text: &str| fs::write(self.root.join(name), text).unwrap();
        write("prd.json", &backlog(stories));
        write("shared.txt", &format!("top\n{}bottom\n", "between\n".repeat(20)));
        write("README.md", "A project\n");
        write("mine.txt", "committed\n");
        write("gone.txt", "committed\n");
        write(".gitignore", ".wiggum/\n");
        let budget = "[budget]\nproject_cost = 1000\nmax_cost = 8\nalert_at = 0.5\nstrategy = \"greedy\"\n";
        // Checks before work have a story of their own.
        let rules = "[checks]\nbaseline = \"off\"\n[retry]\nbackoff = \"0s\"\nmax_retries = 1\n[limits]\nno_progress = 0\n[breaker]\nno_progress = 0\n";
        write("wiggum.toml", &format!("{rules}{budget}{more_rules}"));
        fs::write(self.outside("scenario.toml"), scenario(stories, &self.outside("ran"))).unwrap();
        fs::write(self.outside("ran"), "").unwrap();
        self.git(&["init", "-q", "-b", "main"]);
        self.git(&["config", "user.name", "Tester"]);
        self.git(&["config", "user.email", "tester@example.org"]);
        write("PROMPT.md", "Work on the task.\n");
        self.git(&["add", "-A"]);
        self.git(&["rm", "-q", "--cached", "wiggum.toml"]);
        self.git(&["commit", "-qm", "A project"]);
        let hook = self.root.join(".git/hooks/pre-commit");
        fs::write(&hook, PRE_COMMIT).unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// From now on the commit after the next few waits in its hook until it is killed.
    pub(crate) fn block_commit(&self, let_pass: usize) {
        fs::write(self.outside("block"), let_pass.to_string()).unwrap();
        for name in ["ready", "never"] {
            let made = Command::new("mkfifo").arg(self.outside(name)).status().unwrap();
            assert!(made.success());
        }
    }

    /// Waits until a commit waits in its hook; nothing blocks from then on.
    pub(crate) fn await_blocked_commit(&self) {
        let mut line = String::new();
        fs::File::open(self.outside("ready")).unwrap().read_to_string(&mut line).unwrap();
        fs::remove_file(self.outside("block")).unwrap();
    }

    /// A path beside the repository.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.root.parent().unwrap().join(name)
    }

    /// What is kept for somebody to look at when a test failed.
    pub(crate) fn keep(self) -> PathBuf {
        self.base.keep()
    }

    pub(crate) fn wiggum(&self) -> Command {
        let mut command = Command::new(program());
        command
            .args(["run", "--headless", "--json", "--scenario"])
            .arg(self.outside("scenario.toml"))
            .args(self.flags);
        command.stdin(Stdio::null()).stderr(Stdio::piped()).stdout(Stdio::null());
        self.isolate(&mut command);
        command
    }

    /// Runs until it ends or comes to the given crash point; also says which points it passed.
    pub(crate) fn run(&self, crash_at: Option<usize>) -> (Ran, Vec<String>) {
        let log = self.outside("points");
        let mut command = self.wiggum();
        command.env("WIGGUM_CRASH_LOG", &log);
        if let Some(at) = crash_at {
            command.env("WIGGUM_CRASH_AT", at.to_string());
        }
        let ran = self.outcome(&command.output().unwrap());
        let points = fs::read_to_string(&log).unwrap_or_default();
        drop(fs::remove_file(log));
        (ran, points.lines().map(str::to_owned).collect())
    }

    pub(crate) fn wait(&self, child: Child) -> Ran {
        self.outcome(&child.wait_with_output().unwrap())
    }

    fn outcome(&self, output: &Output) -> Ran {
        match output.status.code() {
            None => Ran::Killed,
            Some(code @ (0 | 6)) => Ran::Exited(code),
            Some(code) => {
                let complaint = String::from_utf8_lossy(&output.stderr);
                panic!("wiggum run ended with {code} in {}:\n{complaint}", self.root.display());
            }
        }
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(args);
        self.isolate(&mut command);
        let output = command.output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?} in {}: {complaint}", self.root.display());
        String::from_utf8(output.stdout).unwrap()
    }

    fn isolate(&self, command: &mut Command) {
        command
            .current_dir(&self.root)
            .env("HOME", self.root.parent().unwrap())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("LC_ALL", "C")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME");
    }

    fn state_dir(&self) -> Option<StateDir> {
        let root = StateRoot::new(self.root.parent().unwrap().join(".local/state/wiggum"));
        Checkout::new(&self.root, &root).find().unwrap()
    }

    /// The store, and the loop in it; `None` if it was killed before there was one.
    pub(crate) fn store(&self) -> Option<(Store, LoopId)> {
        let store = Store::open_existing(&self.state_dir()?.database()).unwrap()?;
        let loops = store.loops().unwrap();
        assert!(loops.len() <= 1, "one backlog, one name: one loop");
        let id = loops.first()?.id;
        Some((store, id))
    }

    pub(crate) fn journal(&self) -> Vec<Envelope> {
        self.store().map_or_else(Vec::new, |(store, id)| store.read(id, 0).unwrap())
    }

    pub(crate) fn state(&self) -> Loop {
        self.store().map_or_else(Loop::default, |(store, id)| read_state(&store, id).unwrap())
    }

    /// Once a run has ended for want of a person: answers what is asked, as a person would. False if
    /// nothing is.
    pub(crate) fn answer_questions(&self) -> bool {
        let (mut store, id) = self.store().unwrap();
        let state = read_state(&store, id).unwrap();
        if !store.pending(id).unwrap().is_empty() {
            return true;
        }
        for (question, asked) in &state.questions {
            let answer = match asked.question.kind {
                QuestionKind::Failed => Answer::Option { number: 2 },
                QuestionKind::Blocked | QuestionKind::Baseline => Answer::Skip,
                QuestionKind::Stuck
                | QuestionKind::Deviation
                | QuestionKind::Repeated
                | QuestionKind::Flagged
                | QuestionKind::Uncertain
                | QuestionKind::Unresponsive => Answer::Option { number: 1 },
            };
            let request = Request::Answer { question: *question, answer };
            store.post(id, &request, "test", jiff::Timestamp::now()).unwrap();
        }
        !state.questions.is_empty()
    }

    /// Drops everything that only repeats the journal.
    pub(crate) fn forget_projections(&self) {
        let Some((mut store, id)) = self.store() else { return };
        store.forget_projections().unwrap();
        let status = self.root.join(".wiggum/loops").join(id.to_string()).join("status.json");
        drop(fs::remove_file(status));
    }

    /// How often the agent was started for each task, in the order of their first start.
    pub(crate) fn agent_starts(&self) -> Vec<(String, usize)> {
        let mut starts: Vec<(String, usize)> = Vec::new();
        for line in fs::read_to_string(self.outside("ran")).unwrap().lines() {
            match starts.iter_mut().find(|(task, _)| task == line) {
                Some((_, count)) => *count += 1,
                None => starts.push((line.to_owned(), 1)),
            }
        }
        starts
    }
}

/// The program just built, or another one: a mutant, or a build that a long sweep should not lose.
fn program() -> PathBuf {
    std::env::var_os("WIGGUM_UNDER_TEST").map_or_else(|| env!("CARGO_BIN_EXE_wiggum").into(), PathBuf::from)
}

fn backlog(stories: &[Story]) -> String {
    let stories: Vec<String> = stories
        .iter()
        .map(|Story { id, more, .. }| {
            format!("    {{ \"id\": \"{id}\", \"title\": \"The {id} task\", \"passes\": false, {more} }}")
        })
        .collect();
    format!("{{\n  \"branchName\": \"main\",\n  \"userStories\": [\n{}\n  ]\n}}\n", stories.join(",\n"))
}

fn scenario(stories: &[Story], ran: &Path) -> String {
    let mut text = String::new();
    for story in stories {
        for (index, steps) in story.attempts.iter().enumerate() {
            let number = if index + 1 == story.attempts.len() {
                String::new()
            } else {
                format!("number = {}\n", index + 1)
            };
            text.push_str(&format!(
                "[[attempt]]\ntask = \"{}\"\n{number}steps = [\n{{ run = \"echo {{task}} >> '{}'\" }},\n\
                 {{ run = \"mkdir -p logs; echo {{task}} {{attempt}} >> logs/{{task}}.log\" }},\n\
                 {{ usage = {{ input_tokens = {}, output_tokens = 7, cost_usd = 0.3 }} }},\n{steps}]\n",
                story.id,
                ran.display(),
                100 + index,
            ));
        }
    }
    text
}
