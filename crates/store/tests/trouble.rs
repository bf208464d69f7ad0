//! Full, read-only, locked, deleted, damaged and newer stores: what a person gets to see, and that
//! nothing recorded is lost.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests may fail like tests")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::*;
use wiggum_core::event::Request;
use wiggum_store::{Append, Blob, Options, Store, StoreError};

fn temporary() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(".wiggum/wiggum.db");
    (dir, path)
}

#[test]
fn only_the_owner_may_look() {
    let (_dir, path) = temporary();
    let mut store = Store::open(&path).unwrap();
    leased(&mut store);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for file in ["wiggum.db", "wiggum.db-wal", "wiggum.db-shm"] {
        assert_eq!(mode(&path.with_file_name(file)), 0o600, "{file}");
    }
}

#[test]
fn looking_creates_nothing() {
    let (dir, path) = temporary();
    assert!(Store::open_existing(&path).unwrap().is_none());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let mut store = Store::open(&path).unwrap();
    let (id, epoch) = leased(&mut store);
    append_one(&mut store, id, epoch, 0, "seen").unwrap();
    assert_eq!(messages(&Store::open_existing(&path).unwrap().unwrap(), id), ["seen"]);
}

#[test]
fn many_may_open_a_new_store_at_once() {
    let (_dir, path) = temporary();
    std::thread::scope(|scope| {
        let openers: Vec<_> = (0..16)
            .map(|n| {
                let path = &path;
                scope.spawn(move || {
                    let mut store = Store::open(path).unwrap();
                    store.create_loop(&identity("main"), loop_id(n), at(0)).unwrap()
                })
            })
            .collect();
        let records: Vec<_> = openers.into_iter().map(|opener| opener.join().unwrap()).collect();
        assert!(records.iter().all(|record| *record == records[0]));
    });
}

#[test]
fn a_failure_late_in_an_append_undoes_all_of_it() {
    for table in ["projections", "requests", "blobs"] {
        let (_dir, path) = temporary();
        let mut store = Store::open(&path).unwrap();
        let (id, epoch) = leased(&mut store);
        let request = store.post(id, &Request::Pause, "me", at(0)).unwrap();
        let text = "kept with its event";
        let hash = sha256(text);
        let verb = if table == "requests" { "UPDATE" } else { "INSERT" };
        raw(&path)
            .execute_batch(&format!(
                "CREATE TRIGGER t BEFORE {verb} ON {table} BEGIN SELECT RAISE(FAIL, 'planted'); END"
            ))
            .unwrap();
        let envelopes = [envelope(1, epoch, "never")];
        let batch = Append {
            loop_id: id,
            expected_seq: 0,
            epoch,
            envelopes: &envelopes,
            blobs: &[Blob { sha256: &hash, text }],
            handled: &[request],
            projection: Some("{}"),
        };
        let error = store.append(&batch).unwrap_err();
        assert!(matches!(error, StoreError::Failed { .. }), "{table}: {error}");
        let mut again = Store::open(&path).unwrap();
        assert_eq!(again.last_seq(id).unwrap(), 0, "{table}");
        assert_eq!(again.blob(&hash).unwrap(), None, "{table}");
        assert_eq!(again.pending(id).unwrap().len(), 1, "{table}");
        assert_eq!(again.projection(id).unwrap(), None, "{table}");
        raw(&path).execute_batch("DROP TRIGGER t").unwrap();
        again.append(&batch).unwrap();
        assert_eq!(store.last_seq(id).unwrap(), 1);
    }
}

#[test]
fn a_lock_held_by_another_is_named_after_the_timeout() {
    let (_dir, path) = temporary();
    let options = Options { busy_timeout: Duration::from_millis(20), ..Options::default() };
    let mut store = Store::open_with(&path, options).unwrap();
    let (id, epoch) = leased(&mut store);
    let other = raw(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = append_one(&mut store, id, epoch, 0, "waits").unwrap_err();
    assert!(matches!(&error, StoreError::Locked { path: named, .. } if *named == path), "{error}");
    assert!(error.hint().is_some());
    assert_eq!(store.last_seq(id).unwrap(), 0, "reading goes on");
    other.execute_batch("ROLLBACK").unwrap();
    append_one(&mut store, id, epoch, 0, "went through").unwrap();
}

#[test]
fn a_damaged_header_is_named() {
    let (_dir, path) = temporary();
    drop(Store::open(&path).unwrap());
    let mut bytes = fs::read(&path).unwrap();
    bytes[..16].copy_from_slice(b"no database here");
    fs::write(&path, bytes).unwrap();
    for error in [Store::open(&path).unwrap_err(), Store::open_existing(&path).unwrap_err()] {
        assert!(matches!(&error, StoreError::Corrupt { path: named, .. } if *named == path), "{error}");
        assert!(error.to_string().contains(path.to_str().unwrap()));
        assert!(error.hint().is_some());
    }
}

#[test]
fn a_newer_format_is_refused() {
    let (_dir, path) = temporary();
    drop(Store::open(&path).unwrap());
    raw(&path).pragma_update(None, "user_version", 7).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 7, .. }), "{error}");
    assert!(error.hint().unwrap().contains("upgrade"));
}

#[test]
fn an_older_format_is_brought_up_to_date() {
    let (_dir, path) = temporary();
    let mut store = Store::open(&path).unwrap();
    let (id, epoch) = leased(&mut store);
    append_one(&mut store, id, epoch, 0, "kept").unwrap();
    drop(store);
    let old = raw(&path);
    old.execute_batch("DROP TABLE targets; DROP TABLE deliveries; DROP TABLE undelivered").unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    drop(old);
    let store = Store::open_existing(&path).unwrap().unwrap();
    assert_eq!(store.read(id, 0).unwrap().len(), 1);
    assert_eq!(store.delivery(id, "hook").unwrap(), None);
}

#[test]
fn an_event_of_a_newer_version_is_never_skipped() {
    for change in ["type = 'teleported', payload = '{\"type\":\"teleported\"}'", "v = 99"] {
        let (_dir, path) = temporary();
        let mut store = Store::open(&path).unwrap();
        let (id, epoch) = leased(&mut store);
        for seq in 0..3 {
            append_one(&mut store, id, epoch, seq, "known").unwrap();
        }
        raw(&path).execute(&format!("UPDATE events SET {change} WHERE seq = 2"), []).unwrap();
        let error = store.read(id, 0).unwrap_err();
        assert!(matches!(error, StoreError::Unreadable { seq: 2, .. }), "{error}");
        assert!(error.hint().unwrap().contains("upgrade"));
        assert_eq!(store.read(id, 2).unwrap().len(), 1);
        assert!(store.check().unwrap()[0].contains("event 2"));
    }
}

#[test]
fn the_doctor_finds_what_is_wrong() {
    let check = |damage: &str, expected: &str| {
        let (_dir, path) = temporary();
        let mut store = Store::open(&path).unwrap();
        let (id, epoch) = leased(&mut store);
        let envelopes = [envelope(1, epoch, "a"), envelope(2, epoch, "b"), envelope(3, epoch, "c")];
        let text = "text";
        let blobs = [Blob { sha256: &sha256(text), text }];
        let projection = Some("{}");
        store
            .append(&Append { loop_id: id, epoch, envelopes: &envelopes, blobs: &blobs, projection, ..EMPTY })
            .unwrap();
        raw(&path).execute_batch(damage).unwrap();
        let findings = store.check().unwrap();
        assert!(findings.len() == 1 && findings[0].contains(expected), "{damage}: {findings:?}");
    };
    check("DELETE FROM events WHERE seq = 2", "event 3 follows event 1");
    check("UPDATE events SET payload = '{}' WHERE seq = 1", "event 1 (noticed) cannot be read");
    check("UPDATE blobs SET data = CAST('tEXT' AS BLOB)", "differs from its hash");
    check("UPDATE projections SET seq = 9", "the status is of event 9, the journal ends at 3");
    check(
        "PRAGMA foreign_keys = OFF; UPDATE requests SET id = 1; DELETE FROM leases; DELETE FROM projections; DELETE FROM events; INSERT INTO projections VALUES (x'00', 0, '')",
        "belongs to no loop",
    );
}

#[test]
fn a_damaged_page_is_found() {
    let (_dir, path) = temporary();
    let mut store = Store::open(&path).unwrap();
    let (id, epoch) = leased(&mut store);
    for seq in 0..100 {
        append_one(&mut store, id, epoch, seq, &"long ".repeat(100)).unwrap();
    }
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 4096..].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let found = Store::open(&path).unwrap().check();
    assert!(
        match &found {
            Ok(findings) => !findings.is_empty(),
            Err(error) => matches!(error, StoreError::Corrupt { .. }),
        },
        "{found:?}"
    );
}

#[test]
fn a_damaged_text_is_not_handed_out() {
    let (_dir, path) = temporary();
    let mut store = Store::open(&path).unwrap();
    let (id, epoch) = leased(&mut store);
    let blobs = [Blob { sha256: &sha256("text"), text: "text" }];
    store.append(&Append { loop_id: id, epoch, blobs: &blobs, ..EMPTY }).unwrap();
    raw(&path).execute("UPDATE blobs SET data = x'00'", []).unwrap();
    let error = store.blob(&sha256("text")).unwrap_err();
    assert!(matches!(error, StoreError::DamagedBlob { .. }), "{error}");
}

/// Deletes or replaces something under an open store with three events.
fn check_restored(damage: impl Fn(&Path), restored: bool) {
    let (_dir, path) = temporary();
    let mut store = Store::open(&path).unwrap();
    let (id, epoch) = leased(&mut store);
    append_one(&mut store, id, epoch, 0, "before").unwrap();
    assert!(!store.restore_if_gone().unwrap());
    damage(&path);
    append_one(&mut store, id, epoch, 1, "meanwhile").unwrap();
    assert_eq!(store.restore_if_gone().unwrap(), restored);
    assert!(!store.restore_if_gone().unwrap(), "once is enough");
    append_one(&mut store, id, epoch, 2, "after").unwrap();
    // What others see, and what is left after this process.
    assert_eq!(messages(&Store::open(&path).unwrap(), id), ["before", "meanwhile", "after"]);
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(messages(&store, id), ["before", "meanwhile", "after"]);
    assert_eq!(store.check().unwrap(), [""; 0]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
}

#[test]
fn deleted_files_are_put_back() {
    check_restored(|_| {}, false);
    check_restored(|path| fs::remove_dir_all(path.parent().unwrap()).unwrap(), true);
    check_restored(|path| fs::remove_file(path).unwrap(), true);
    check_restored(|path| fs::remove_file(path.with_file_name("wiggum.db-wal")).unwrap(), true);
    check_restored(|path| fs::remove_file(path.with_file_name("wiggum.db-shm")).unwrap(), true);
}

#[test]
fn replaced_files_are_put_back() {
    let replace = |path: &Path, bytes: &[u8]| {
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(path, bytes).unwrap();
    };
    check_restored(|path| replace(path, b""), true);
    check_restored(|path| replace(path, b"not a database, but long enough to look at"), true);
    check_restored(
        |path| {
            fs::remove_dir_all(path.parent().unwrap()).unwrap();
            leased(&mut Store::open(path).unwrap());
        },
        true,
    );
}

#[test]
fn the_log_of_another_store_is_not_taken_for_ours() {
    let (_dir, other) = temporary();
    let mut foreign = Store::open(&other).unwrap();
    foreign.create_loop(&identity("foreign"), loop_id(99), at(0)).unwrap();
    check_restored(
        |path| {
            fs::write(path.with_file_name("new"), b"not a database, but long enough to look at").unwrap();
            fs::rename(path.with_file_name("new"), path).unwrap();
            let log = path.with_file_name("wiggum.db-wal");
            fs::copy(other.with_file_name("wiggum.db-wal"), path.with_file_name("new")).unwrap();
            fs::rename(path.with_file_name("new"), log).unwrap();
        },
        true,
    );
}

#[test]
fn who_restores_second_takes_what_the_first_put_back() {
    let (_dir, path) = temporary();
    let (mut engine, mut viewer) = (Store::open(&path).unwrap(), Store::open(&path).unwrap());
    let (id, epoch) = leased(&mut engine);
    append_one(&mut engine, id, epoch, 0, "one").unwrap();
    assert_eq!(viewer.last_seq(id).unwrap(), 1);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    assert!(engine.restore_if_gone().unwrap());
    append_one(&mut engine, id, epoch, 1, "two").unwrap();
    assert!(!viewer.restore_if_gone().unwrap());
    assert_eq!(messages(&viewer, id), ["one", "two"]);
    viewer.post(id, &Request::Stop, "me", at(0)).unwrap();
    assert_eq!(engine.pending(id).unwrap().len(), 1);
}

/// A file system of its own, gone with the value.
struct Mount(tempfile::TempDir);

impl Mount {
    /// `None`, said loudly, where this user may not mount.
    fn new(options: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        if !run("mount", &["-t", "tmpfs", "-o", options, "tmpfs", dir.path().to_str().unwrap()]) {
            eprintln!("SKIPPED: cannot mount a tmpfs here, so this trouble was not tested");
            return None;
        }
        Some(Self(dir))
    }

    /// It is busy for the moment in which another test's new process still has our files.
    fn remount(&self, options: &str) {
        let (options, path) = (format!("remount,{options}"), self.0.path().to_str().unwrap());
        assert!((0..100).any(|_| run("mount", &["-o", &options, path])));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &["-l", self.0.path().to_str().unwrap()]);
    }
}

#[expect(clippy::disallowed_methods, reason = "the store cannot know the crate that starts processes")]
fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

#[test]
fn a_full_disk_costs_nothing_recorded() {
    let Some(mount) = Mount::new("size=400k") else { return };
    let path = mount.0.path().join(".wiggum/wiggum.db");
    let mut store = Store::open(&path).unwrap();
    let (id, epoch) = leased(&mut store);
    let long = "x".repeat(3000);
    let mut written = 0;
    let error = loop {
        match append_one(&mut store, id, epoch, written, &long) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(written > 0);
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    assert!(error.hint().is_some());
    assert_eq!(messages(&store, id).len() as u64, written);
    mount.remount("size=4m");
    append_one(&mut store, id, epoch, written, &long).unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(messages(&store, id).len() as u64, written + 1);
    assert_eq!(store.check().unwrap(), [""; 0]);
}

#[test]
fn a_disk_full_at_any_moment_is_named() {
    let mut failures = 0;
    for size in (4..=160).step_by(4) {
        let Some(mount) = Mount::new(&format!("size={size}k")) else { return };
        let path = mount.0.path().join("wiggum.db");
        let outcome = Store::open(&path).and_then(|mut store| {
            store.create_loop(&identity("main"), loop_id(1), at(0))?;
            store.acquire(loop_id(1), &holder(1), &|_| false, at(0))
        });
        if let Err(error) = outcome {
            assert!(matches!(error, StoreError::DiskFull { .. }), "{size} KiB: {error:?}");
            failures += 1;
        }
        // With room again, what was begun can be gone on with.
        mount.remount("size=4m");
        leased(&mut Store::open(&path).unwrap());
    }
    assert!(failures > 3);
}

#[test]
fn a_read_only_directory_is_named() {
    let Some(mount) = Mount::new("size=4m") else { return };
    let old = mount.0.path().join("old/wiggum.db");
    drop(Store::open(&old).unwrap());
    mount.remount("ro");
    let new = mount.0.path().join("new/wiggum.db");
    let errors = [
        Store::open(&old).unwrap_err(),
        Store::open_existing(&old).unwrap_err(),
        Store::open(&new).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
        assert!(error.to_string().contains(mount.0.path().to_str().unwrap()), "{error}");
        assert!(error.hint().is_some());
    }
}
