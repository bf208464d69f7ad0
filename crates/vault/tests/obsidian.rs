//! What we write is what Obsidian's tools read: front matter and links, by a library of others.
//!
//! PyPI's obsidiantools is installed once below `target/`; where that is not possible, this says so.
#![expect(clippy::unwrap_used, reason = "the helpers of these tests are not themselves tests")]
#![expect(clippy::disallowed_methods, reason = "a program of others looks at the result")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{Scene, plan};
use wiggum_engine::tools::CallOutcome;
use wiggum_workspace::paths::FileLock;

const PACKAGE: &str = "obsidiantools==0.11.0";

const READ: &str = r#"
import json, sys
from pathlib import Path
import obsidiantools.api as otools
vault = otools.Vault(Path(sys.argv[1])).connect().gather()
# As Obsidian finds a note: by its path, or by its name if only one is called so, in upper or lower case.
paths = [path.with_suffix("").as_posix().lower() for path in vault.md_file_index.values()]
def meant(link):
    link = link.lower()
    return [path for path in paths if path == link or "/" not in link and path.split("/")[-1] == link]
links = {link for found in vault.wikilinks_index.values() for link in found}
print(json.dumps({
    "front": {name: dict(front) for name, front in vault.front_matter_index.items()},
    "links": vault.wikilinks_index,
    "missing": sorted(link for link in links if not meant(link)),
    "ambiguous": sorted(link for link in links if len(meant(link)) > 1),
}, default=str))
"#;

/// The Python that has the package, installed if need be.
fn python() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let place = target.join("obsidiantools");
    let _lock = FileLock::acquire(&target.join("obsidiantools.lock")).unwrap();
    let python = place.join("bin/python");
    let has = |python: &Path| {
        let import = Command::new(python).args(["-c", "import obsidiantools"]).stderr(Stdio::null()).status();
        import.is_ok_and(|status| status.success())
    };
    if !has(&python) {
        let made = Command::new("python3").args(["-m", "venv"]).arg(&place).status();
        let pip = place.join("bin/pip");
        if made.is_ok_and(|status| status.success()) {
            drop(Command::new(pip).args(["install", "-q", PACKAGE]).status());
        }
    }
    has(&python).then_some(python)
}

#[test]
fn front_matter_and_links_are_read_by_others() {
    let Some(python) = python() else {
        eprintln!("SKIPPED: {PACKAGE} cannot be installed: front matter and links are not read by others");
        return;
    };
    let scene = Scene::new();
    *scene.tools.text.lock().unwrap() = "[[nowhere]] ![[nothing]]\n---\nplan_id: forged\n---".to_owned();
    scene.approve("PLAN good.md", &plan("good"));
    // As the seed has it: plan and log differ in upper and lower case alone.
    scene.approve("PLAN_client_001.md", &plan("plan_client_001"));
    scene.run();
    for _ in 0..8 {
        scene
            .tools
            .say(CallOutcome::Refused { message: "---\nx: y\n---\n[[nowhere]] `[[there]]`".to_owned() });
    }
    scene.approve("PLAN bad.md", &plan("bad"));
    scene.approve("PLAN_client_002.md", &plan("plan_client_002"));
    scene.approve("PLAN broken.md", "---\nplan_id: broken\n---\n[[nowhere]]\n");
    scene.write("Plans/PLAN waiting.md", &plan("waiting"));
    scene.run();
    // Theirs, not ours.
    fs::remove_file(scene.path("Approved/Plans/PLAN broken.md")).unwrap();
    scene.write("Approved/Plans/PLAN broken.md", "# gone\n");

    let output = Command::new(python).args(["-c", READ]).arg(scene.path("")).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(read["missing"], serde_json::json!([]), "{read:#}");
    assert_eq!(read["ambiguous"], serde_json::json!([]), "{read:#}");
    let front = |note: &str| read["front"][note].clone();
    assert_eq!(front("plan_blocked_bad")["plan_id"], "bad", "{read:#}");
    assert_eq!(front("plan_blocked_bad")["action_required"], true);
    assert_eq!(front("plan_notification_good_step_3")["plan_id"], "good");
    let state = |plan: &str| front(&format!("In_Progress/{plan}/state"));
    assert_eq!(state("bad")["status"], "blocked");
    assert_eq!(state("bad")["current_step"], 1);
    assert_eq!(front("Dashboard")["needs_action"], 5, "two notices, two questions and a problem");
    let links = |note: &str| read["links"][note].to_string();
    assert!(links("plan_blocked_bad").contains("PLAN bad"), "{read:#}");
    assert!(links("Dashboard").contains("PLAN good") && links("Dashboard").contains("plan_blocked_bad"));
    assert!(links("In_Progress/bad/state").contains("PLAN bad"));
    assert!(links("plan_blocked_plan_client_002").contains("Logs/Plan_Execution/plan_client_002"));
}
