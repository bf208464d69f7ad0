//! The floor: what an iteration costs at the least, done by hand. The same programs with the same
//! options, two durable commits to SQLite, one durable rewrite of the backlog, and no decisions.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};

use rusqlite::Connection;

use crate::Outcome;
use crate::place::{BACKLOG, PROMISE, Place, WIGGUM, arguments_with, run};

pub(crate) struct Floor {
    place: Place,
    journal: Connection,
    text: String,
    walls: Walls,
}

/// The words that come before a program which is confined; none where nothing is.
#[derive(Default)]
struct Walls {
    agent: Vec<String>,
    check: Vec<String>,
}

impl Floor {
    pub(crate) fn new(place: Place) -> Outcome<Self> {
        fs::create_dir(place.root().join(".state"))?;
        fs::write(place.root().join(".git/info/exclude"), ".state/\n")?;
        let journal = Connection::open(place.root().join(".state/journal.db"))?;
        journal.pragma_update(None, "journal_mode", "WAL")?;
        journal.pragma_update(None, "synchronous", "FULL")?;
        journal.execute_batch("CREATE TABLE events (seq INTEGER PRIMARY KEY, payload TEXT)")?;
        let text = fs::read_to_string(place.root().join(BACKLOG))?;
        Ok(Self { place, journal, text, walls: Walls::default() })
    }

    /// With the wrappers around agent and check that one iteration of the engine in this place has shown.
    pub(crate) fn confined(place: Place) -> Outcome<Self> {
        let show = |name: &str| format!("cat /proc/$PPID/cmdline > {name}");
        fs::write(place.root().join("agent.sh"), format!("{}; echo '{PROMISE}'\n", show("agent-words")))?;
        fs::write(place.root().join("check.sh"), show("check-words"))?;
        place.git(&["add", "-A"])?;
        place.git(&["commit", "--quiet", "-m", "Programs that show their walls"])?;
        let mut shown = place.command(WIGGUM);
        shown.args(arguments_with("sh agent.sh", "sh check.sh", 1, "bwrap")).stdout(Stdio::null());
        if shown.status()?.code() != Some(3) {
            return Err("the walls were not shown".into());
        }
        // What a check leaves in the tree is put aside.
        let left =
            place.command("git").args(["for-each-ref", "--format=%(refname)", "refs/wiggum"]).output()?;
        let left = String::from_utf8(left.stdout)?;
        let words = |name: &str| -> Outcome<Vec<u8>> {
            let in_tree = fs::read(place.root().join(name));
            let kept = |reference: &str| {
                let shown = place.command("git").args(["show", &format!("{reference}:{name}")]).output();
                shown.ok().filter(|shown| shown.status.success()).map(|shown| shown.stdout)
            };
            Ok(in_tree.ok().or_else(|| left.lines().find_map(kept)).ok_or("no walls were shown")?)
        };
        let walls = Walls {
            agent: before_program(&words("agent-words")?)?,
            check: before_program(&words("check-words")?)?,
        };
        Ok(Self { walls, ..Self::new(place)? })
    }

    pub(crate) fn iteration(&mut self) -> Outcome<()> {
        self.record("started")?;
        self.agent()?;
        let exclude = format!(":(top,exclude,literal){BACKLOG}");
        run(self.git().args(["add", "-A", "--", ".", &exclude]))?;
        run(&mut self.behind(&self.walls.check, "/bin/true"))?;
        self.record("judged")?;
        self.rewrite_backlog()?;
        self.commit()
    }

    fn record(&self, what: &str) -> Outcome<()> {
        let payload = format!("{what} {}", "x".repeat(500));
        self.journal.prepare_cached("INSERT INTO events (payload) VALUES (?1)")?.execute([payload])?;
        Ok(())
    }

    fn agent(&self) -> Outcome<()> {
        let output = self.behind(&self.walls.agent, "/bin/echo").arg(PROMISE).output()?;
        if output.stdout.starts_with(PROMISE.as_bytes()) { Ok(()) } else { Err("no promise".into()) }
    }

    fn behind(&self, walls: &[String], program: &str) -> Command {
        let Some((first, rest)) = walls.split_first() else { return self.place.command(program) };
        let mut command = self.place.command(first);
        command.args(rest).arg(program);
        command
    }

    fn rewrite_backlog(&mut self) -> Outcome<()> {
        self.text = self.text.replacen("\"passes\": false", "\"passes\": true", 1);
        let (root, temporary) = (self.place.root(), self.place.root().join(".state/backlog.tmp"));
        let mut file = File::create(&temporary)?;
        file.write_all(self.text.as_bytes())?;
        file.sync_all()?;
        fs::rename(temporary, root.join(BACKLOG))?;
        Ok(File::open(root)?.sync_all()?)
    }

    fn commit(&self) -> Outcome<()> {
        let backlog = format!(":(top,literal){BACKLOG}");
        let mut command = self.git();
        command.args(["commit", "--quiet", "--allow-empty", "--cleanup=whitespace", "-F", "-", "-i", "--"]);
        let mut child = command.arg(backlog).stdin(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(b"US-1: Story\n\nTask: US-1\nAttempt: 1\n")?;
        }
        if child.wait()?.success() { Ok(()) } else { Err("git commit failed".into()) }
    }

    /// Git as the engine calls it.
    fn git(&self) -> Command {
        let mut command = self.place.command("git");
        command.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"]);
        command.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
        command
    }
}

/// The helper's own words, from those of the `bwrap` that it became: `bwrap … -- wiggum HELPER landlock … -- program`.
fn before_program(cmdline: &[u8]) -> Outcome<Vec<String>> {
    const END: &str = "--";
    let words: Vec<&str> = std::str::from_utf8(cmdline)?.split_terminator('\0').collect();
    let end = words.iter().position(|word| *word == END).ok_or("no wrapper was seen")?;
    let (bwrap, inside) = (&words[..=end], &words[end + 1..]);
    let [own, helper, rest @ ..] = inside else { return Err("the wrapper is another one".into()) };
    let end = rest.iter().position(|word| *word == END).ok_or("nothing was started inside")?;
    let all = [&[*own, *helper, "bwrap"], bwrap, &rest[..=end]].concat();
    Ok(all.into_iter().map(str::to_owned).collect())
}
