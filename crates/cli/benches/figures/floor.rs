//! The floor: what an iteration costs at the least, done by hand. The same programs with the same
//! options, two durable commits to SQLite, one durable rewrite of the backlog, and no decisions.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};

use rusqlite::Connection;

use crate::Outcome;
use crate::place::{BACKLOG, PROMISE, Place, run};

pub(crate) struct Floor {
    place: Place,
    journal: Connection,
    text: String,
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
        Ok(Self { place, journal, text })
    }

    pub(crate) fn iteration(&mut self) -> Outcome<()> {
        self.record("started")?;
        self.agent()?;
        let exclude = format!(":(top,exclude,literal){BACKLOG}");
        run(self.git().args(["add", "-A", "--", ".", &exclude]))?;
        run(&mut self.place.command("/bin/true"))?;
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
        let output = self.place.command("/bin/echo").arg(PROMISE).output()?;
        if output.stdout.starts_with(PROMISE.as_bytes()) { Ok(()) } else { Err("no promise".into()) }
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
