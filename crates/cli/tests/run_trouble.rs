//! The world around a run: a full disk, a read-only directory, a clock that was set back.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use jiff::{Span, Timestamp};
use support::{Sandbox, WORKER};
use wiggum_core::event::{Envelope, Event};
use wiggum_store::{Append, Holder, Identity, Store};

/// A small file system of its own, for as long as it lives.
struct SmallDisk<'a> {
    sandbox: &'a Sandbox,
}

impl<'a> SmallDisk<'a> {
    /// `None` where mounting is not permitted.
    fn mount(sandbox: &'a Sandbox, size: &str) -> Option<Self> {
        let mut mount = sandbox.command("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&sandbox.root);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(Self { sandbox })
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        drop(self.sandbox.command("umount").arg("-l").arg(&self.sandbox.root).output());
    }
}

#[test]
fn a_full_disk_is_one_clear_message_and_nothing_is_lost() {
    let sandbox = Sandbox::plain();
    let Some(_disk) = SmallDisk::mount(&sandbox, "6m") else {
        eprintln!("SKIPPED: mounting a tmpfs is not permitted here, so a full disk was not tested");
        return;
    };
    sandbox.git(&["init", "-q", "-b", "main"]);
    sandbox.write("README", "a project\n");
    sandbox.write("PRD.json", &support::prd(&["A", "B", "C"]));
    sandbox.commit_all("first");
    // Full before anything begins.
    let filler = sandbox.root.join(".git/filler");
    drop(sandbox.command("cp").arg("/dev/zero").arg(&filler).output());
    sandbox.run(WORKER, &["--verify", "true"]).complains(1, &["hint:", "disk"]);
    fs::remove_file(filler).unwrap();
    // The second task fills the disk with something git does not see.
    sandbox.write(".git/info/exclude", "filler\n.wiggum/\n");
    let agent = format!(
        r#"if [ $WIGGUM_TASK_ID = B ] && [ ! -e "$SANDBOX/freed" ]; then cat /dev/zero > filler 2> /dev/null; fi
        {WORKER}"#
    );
    let run = sandbox.run(&agent, &["--verify", "true"]).complains(1, &["hint:", "disk"]);
    assert_eq!(run.stderr.matches("error:").count(), 1, "{}", run.stderr);
    assert_eq!(sandbox.state_of("A"), "done");

    fs::write(sandbox.base().join("freed"), "").unwrap();
    fs::remove_file(sandbox.root.join("filler")).unwrap();
    sandbox.run(&agent, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.subjects(), ["first", "A: Do A", "B: Do B", "C: Do C"]);
    sandbox.assert_clean();
}

#[test]
fn a_directory_that_cannot_be_written_is_one_clear_message() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let read_only = fs::Permissions::from_mode(0o555);
    fs::set_permissions(&sandbox.root, read_only).unwrap();
    let may_write_anyway = fs::write(sandbox.root.join("probe"), "").is_ok();
    if may_write_anyway {
        // Root writes wherever it likes, but not into a read-only mount.
        fs::remove_file(sandbox.root.join("probe")).unwrap();
        let mount = |options: &[&str]| {
            let root = sandbox.root.to_str().unwrap();
            let mut command = sandbox.command("mount");
            command.args(options).args([root, root]).output().is_ok_and(|output| output.status.success())
        };
        if !mount(&["--bind"]) {
            eprintln!("SKIPPED: neither permissions nor mounts can make a directory read-only here");
            return;
        }
        let remounted = mount(&["-o", "remount,ro,bind"]);
        let run = sandbox.run(WORKER, &["--verify", "true"]);
        drop(sandbox.command("umount").arg("-l").arg(&sandbox.root).output());
        assert!(remounted);
        run.complains(1, &["hint:", "writable", "repo/.wiggum"]);
    } else {
        sandbox.run(WORKER, &["--verify", "true"]).complains(1, &["hint:", "writable"]);
    }
    fs::set_permissions(&sandbox.root, fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
}

#[test]
fn a_clock_that_was_set_back_changes_nothing() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "1"]).exits(3);
    // The same journal, as if it had been written a year from now.
    let journal = sandbox.journal();
    let (record, path) = (sandbox.store().loops().unwrap().remove(0), sandbox.state_dir().database());
    let later = |at: Timestamp| at.checked_add(Span::new().hours(24 * 365)).unwrap();
    let shifted: Vec<Envelope> = journal
        .into_iter()
        .map(|envelope| Envelope { at: later(envelope.at), epoch: 1, ..envelope })
        .collect();
    for suffix in ["", "-wal", "-shm"] {
        drop(fs::remove_file(format!("{}{suffix}", path.display())));
    }
    let mut store = Store::open(&path).unwrap();
    let identity = Identity { ..record.identity };
    store.create_loop(&identity, record.id, later(record.created_at)).unwrap();
    let holder = Holder { pid: 1, started: String::new(), boot: String::new(), host: String::new() };
    let epoch = store.acquire(record.id, &holder, &|_| false, shifted[0].at).unwrap();
    assert_eq!(epoch, 1);
    let append = Append {
        loop_id: record.id,
        expected_seq: 0,
        epoch,
        envelopes: &shifted,
        blobs: &[],
        handled: &[],
        projection: None,
    };
    store.append(&append).unwrap();
    store.release(record.id, epoch).unwrap();
    drop(store);

    sandbox.run(WORKER, &["--verify", "true", "--max-duration", "1h"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "B"]);
    let times: Vec<Timestamp> = sandbox.journal().iter().map(|envelope| envelope.at).collect();
    assert!(times.is_sorted());
    assert!(sandbox.state().run.active_ms < 3_600_000);
}

/// As the first process of a container: its session and group began outside and have no number
/// here, and nobody else takes care of orphans.
#[test]
fn a_container_with_nothing_but_us_in_it() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let namespace = ["--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let permitted = sandbox.command("unshare").args(namespace).arg("true").output();
    if !permitted.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: namespaces are not permitted here, so a container was not tested");
        return;
    }
    let agent = sandbox.agent(&format!("sleep 1000 & setsid sleep 1000 & {WORKER}"));
    let mut contained = sandbox.command("timeout");
    contained.args(["-s", "KILL", "60", "unshare"]).args(namespace).arg(env!("CARGO_BIN_EXE_wiggum"));
    contained.args(["run", "--headless", "--verify", "true", "--agent-command", &agent]);
    let output = contained.current_dir(&sandbox.root).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let ended: u32 = sandbox
        .events()
        .iter()
        .map(|event| if let Event::AgentEnded { ended_processes, .. } = event { *ended_processes } else { 0 })
        .sum();
    assert_eq!(ended, 4, "two of each agent");
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A", "B: Do B"]);
    sandbox.check();
}

#[test]
fn what_our_parent_ignores_is_not_ignored_by_agents() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let agent = sandbox.agent(&format!("grep SigIgn /proc/self/status > \"$SANDBOX/ignored\"; {WORKER}"));
    let mut command = sandbox.command("sh");
    command.args(["-c", "trap '' HUP XFSZ; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_wiggum")]);
    command.args(["run", "--headless", "--verify", "true", "--agent-command", &agent]);
    let output = command.current_dir(&sandbox.root).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let ignored = sandbox.note("ignored");
    let ignored = u64::from_str_radix(ignored.trim_start_matches("SigIgn:").trim(), 16).unwrap();
    // Signals from 32 on are the C library's own.
    assert_eq!(ignored & 0x7fff_ffff, 0, "{ignored:x}");
}

/// Its settings name a variable for the key, which is not set: no login would help.
#[test]
fn a_key_that_the_settings_of_codex_name_is_asked_for_by_its_name() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let program = sandbox.base().join("agents/codex");
    let failed =
        r#"{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: Missing bearer"}}"#;
    std::fs::write(&program, format!("#!/bin/sh\ncat > /dev/null\necho '{failed}'\nexit 1\n")).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::create_dir_all(sandbox.base().join("home/.codex")).unwrap();
    let settings =
        "model_provider = \"mine\"\n[model_providers.mine]\nname = \"mine\"\nenv_key = \"MY_STUB_API_KEY\"\n";
    std::fs::write(sandbox.base().join("home/.codex/config.toml"), settings).unwrap();
    let agent =
        format!("[agent]\nname = \"codex\"\n[agents.codex]\nprogram = {:?}\n", program.display().to_string());
    sandbox.write("wiggum.toml", &agent);
    sandbox.commit_all("configuration");
    let wanted = "set MY_STUB_API_KEY, which its settings name for the key";
    sandbox.wiggum(&["run", "--headless"]).exits(6).says(wanted).never_says("codex login");
    let doctor = sandbox.wiggum(&["doctor"]);
    assert!(
        doctor.stdout.contains("codex is not logged in") && doctor.stdout.contains(wanted),
        "{}",
        doctor.stdout
    );
}
