//! Plans of a vault: what a step costs beside the writes it is made of, and how soon a plan is noticed.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::place::{Ended, Place, WIGGUM, ticks};
use crate::table::Table;
use crate::{Outcome, median};

const STEPS: usize = 1000;
const ROUNDS: usize = 3;
/// Notes in the vault whose watcher is measured.
const FILES: usize = 10_000;
const PLANS: usize = 20;
/// Plans are measured as if they had been written long before.
const SETTLE: &str = "WIGGUM_PLANS_SETTLE";
/// How long the watcher is left alone.
const IDLE: Duration = Duration::from_secs(10);

/// A plan of file steps, against the same writes by hand: for each step its file, the plan, the state and
/// the log, each of them synced, and one commit to the journal.
pub(crate) fn steps(table: &mut Table) -> Outcome<()> {
    let (mut floors, mut ours, mut ratios) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let place = Place::new()?;
        let start = Instant::now();
        by_hand(&place.root())?;
        let floor = start.elapsed().as_secs_f64() * 1e3 / STEPS as f64;
        let place = Place::new()?;
        fs::create_dir_all(place.root().join("Approved/Plans"))?;
        fs::write(place.root().join("Approved/Plans/many.md"), plan("many", STEPS))?;
        let start = Instant::now();
        let mut command = place.command(WIGGUM);
        command.env(SETTLE, "0s").args(["vault", "run", "."]).stdout(Stdio::null());
        let status = command.status()?;
        let own = start.elapsed().as_secs_f64() * 1e3 / STEPS as f64;
        let made = fs::read_dir(place.root().join("out"))?.count();
        if !status.success() || made != STEPS || !place.root().join("Done/many.md").exists() {
            return Err(format!("wiggum vault run: {status}, {made} files").into());
        }
        floors.push(floor);
        ours.push(own);
        ratios.push(own / floor);
    }
    table.limited("a step of a plan of 1 000 files, against its writes by hand", median(ratios), "×", 2.0);
    table.told("… by hand", median(floors), "ms");
    table.told("… `wiggum vault run`", median(ours), "ms");
    Ok(())
}

/// From the move of a plan to the first that the vault shows of it.
pub(crate) fn watch(table: &mut Table) -> Outcome<()> {
    let place = Place::new()?;
    let root = place.root();
    for number in 0..FILES {
        let folder = root.join(format!("Notes/{}", number / 500));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("{number}.md")), "A note.\n")?;
    }
    for folder in ["Plans", "Approved/Plans"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for number in 0..PLANS {
        let name = format!("plan-{number}");
        fs::write(root.join(format!("Plans/{name}.md")), plan(&name, 1))?;
    }
    let mut command = place.command(WIGGUM);
    command.env(SETTLE, "0s").args(["vault", "watch", "."]).stdout(Stdio::null());
    let mut watcher = Ended(command.spawn()?);
    wait_for(&root.join("Dashboard.md"))?;
    let mut noticed = Vec::new();
    for number in 0..PLANS {
        let name = format!("plan-{number}");
        fs::rename(root.join(format!("Plans/{name}.md")), root.join(format!("Approved/Plans/{name}.md")))?;
        noticed.push(wait_for(&root.join(format!("Logs/Plan_Execution/{name}.md")))?);
        wait_for(&root.join(format!("Done/{name}.md")))?;
    }
    table.limited("a plan is noticed among 10 000 files, median", median(noticed.clone()), "ms", 200.0);
    table.limited("… at the latest", noticed.into_iter().fold(0.0, f64::max), "ms", 200.0);
    let before = ticks(&watcher)?;
    std::thread::sleep(IDLE);
    let used = ticks(&watcher)? - before;
    table.limited("… ticks of a processor it used in 10 idle seconds", used, "", 1.0);
    watcher.0.kill()?;
    Ok(())
}

/// Milliseconds until a file is there.
fn wait_for(path: &Path) -> Outcome<f64> {
    let start = Instant::now();
    while !path.exists() {
        if start.elapsed() > Duration::from_secs(60) {
            return Err(format!("{} does not come", path.display()).into());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn plan(name: &str, steps: usize) -> String {
    let mut text = format!(
        "---\nplan_id: {name}\nobjective: \"Many files\"\ntotal_steps: {steps}\ncompleted_steps: 0\n\
         status: approved\niterations_used: 0\nmax_iterations: {steps}\n---\n\n## Steps\n\n"
    );
    for number in 1..=steps {
        text.push_str(&format!(
            "- [ ] **Step {number}:** Write file {number} (action_type: create_file)\n  - Dependencies: none\n  \
             - File: out/{name}-{number}.md\n  - Content: file {number}\n"
        ));
    }
    text
}

fn by_hand(root: &Path) -> Outcome<()> {
    let journal = Connection::open(root.join("bare.db"))?;
    journal.pragma_update(None, "journal_mode", "WAL")?;
    journal.pragma_update(None, "synchronous", "FULL")?;
    journal.execute_batch("CREATE TABLE events (seq INTEGER PRIMARY KEY, payload TEXT)")?;
    fs::create_dir(root.join("out"))?;
    let mut plan = plan("many", STEPS);
    let mut log = OpenOptions::new().create(true).append(true).open(root.join("log.md"))?;
    for number in 1..=STEPS {
        journal.prepare_cached("INSERT INTO events (payload) VALUES (?1)")?.execute(["x".repeat(500)])?;
        replace(&root.join(format!("out/{number}.md")), &format!("file {number}"))?;
        let open = format!("- [ ] **Step {number}:**");
        plan = plan.replacen(&open, &open.replace("[ ]", "[x]"), 1);
        replace(&root.join("plan.md"), &plan)?;
        replace(&root.join("state.md"), &format!("---\ncurrent_step: {number}\nstatus: executing\n---\n"))?;
        writeln!(log, "- step {number}: succeeded: created out/{number}.md")?;
        log.sync_data()?;
    }
    Ok(())
}

/// All of the new content or all of the old, and on the disk.
fn replace(path: &Path, text: &str) -> Outcome<()> {
    let beside: PathBuf = path.with_extension("tmp");
    let mut file = File::create(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(path.parent().ok_or("no directory")?)?.sync_all()?;
    Ok(())
}
