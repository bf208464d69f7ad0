//! What lies in the folder of approved plans and is not carried out, or not yet: copies, halves, folders,
//! plans that cannot be started; and what the vault says of it.
#![expect(clippy::unwrap_used, reason = "the helpers of these tests are not themselves tests")]

mod support;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use support::{Scene, plan};
use wiggum_core::policy::Millis;
use wiggum_engine::checkout::{Checkout, StateRoot};
use wiggum_vault::{Keeper, Rules, Setup, Told, Vault, VaultError, survey};

/// A plan of so many notices that says neither its id nor how many there are.
fn anonymous(steps: usize) -> String {
    (1..=steps)
        .map(|n| format!("- [ ] **Step {n}:** Tell Ann (action_type: notify_human)\n  - Message: {n}\n"))
        .collect()
}

fn named(id: &str, steps: usize) -> String {
    format!("---\nplan_id: {id}\n---\n{}", anonymous(steps))
}

#[test]
fn a_plan_that_cannot_be_started_ends_with_a_note() {
    let scene = Scene::new();
    *scene.trouble.lock().unwrap() = Some("no agent is configured\nhint: set one in [agent]".to_owned());
    scene.approve("p.md", &plan("p"));
    let ran = scene.run_all();
    let told: Vec<(&str, &str)> =
        ran.problems.iter().map(|problem| (problem.file.as_str(), problem.message.as_str())).collect();
    assert_eq!(told, [("p.md", "no agent is configured\nhint: set one in [agent]")]);
    assert_eq!(
        (ran.rows[0].status.as_str(), ran.rows[0].needs_action.as_deref()),
        ("broken", Some("plan_problem_p"))
    );
    let note = scene.read("Needs_Action/plan_problem_p.md");
    assert!(
        note.contains("action_required: true") && note.contains("set one in \\[agent]")
            || note.contains("set one in [agent]"),
        "{note}"
    );
    assert!(scene.read("Dashboard.md").contains("needs_action: 1"), "{}", scene.read("Dashboard.md"));
    let vault = Vault::open(&scene.path("")).unwrap();
    assert_eq!(survey(&vault, &scene.checkout(), &scene.rules).unwrap()[0].status, "broken");
    // The others are carried out all the same, and so is this one once it can be.
    *scene.trouble.lock().unwrap() = None;
    assert!(scene.run_all().problems.is_empty());
    assert!(scene.exists("Done/p.md"));
    assert!(scene.read("Needs_Action/plan_problem_p.md").contains("action_required: false"));
}

#[test]
fn a_plan_that_could_not_be_started_is_tried_again_with_another_configuration() {
    let scene = Arc::new(Scene::new());
    *scene.trouble.lock().unwrap() = Some("no agent is configured".to_owned());
    let watching = scene.watch();
    scene.approve("p.md", &plan("p"));
    watching.problem("p.md");
    *scene.trouble.lock().unwrap() = None;
    scene.write("wiggum.toml", "[agent]\ncommand = \"true\"\n");
    watching.completed("p");
    watching.stop();
}

#[test]
fn a_copy_never_runs_in_place_of_its_original() {
    for copy in [
        "PLAN_x (Ann's conflicted copy 2026-11-16).md",
        "PLAN_x 2.md",
        "PLAN_x - Copy.md",
        "PLAN_x (1).md",
        "PLAN_x.sync-conflict-20261116-120000-ABCDEFG.md",
        "PLAN_x-DESKTOP-4711.md",
        "Copy of PLAN_x.md",
        "Kopie von PLAN_x.md",
    ] {
        let scene = Scene::new();
        scene.approve("PLAN_x.md", &plan("x"));
        scene.approve(copy, &plan("x").replace("a@b.c", "other@b.c"));
        let ran = scene.run_all();
        assert_eq!(scene.names("Done"), ["PLAN_x.md"], "{copy}");
        assert_eq!(scene.tools.calls.lock().unwrap()[0].params["to"], "a@b.c", "{copy}");
        assert_eq!(ran.problems.len(), 1, "{copy}: {:?}", ran.problems);
        let stem = copy.strip_suffix(".md").unwrap();
        let note = scene.read(&format!("Needs_Action/plan_problem_{stem}.md"));
        assert!(note.contains(copy) && note.contains("`PLAN_x.md`"), "{note}");
        let vault = Vault::open(&scene.path("")).unwrap();
        let row = &survey(&vault, &scene.checkout(), &scene.rules).unwrap()[0];
        assert_eq!(row.needs_action, Some(format!("plan_problem_{stem}")), "{copy}");
        let dashboard = scene.read("Dashboard.md");
        assert!(dashboard.contains("needs_action: 2\n"), "a notice and a problem, {copy}: {dashboard}");
        // Nor does it when its original is done.
        assert_eq!(scene.refused(), [copy]);
        assert_eq!((scene.tools.count(), scene.exists(&format!("Approved/Plans/{copy}"))), (1, true));
    }
}

#[test]
fn copies_of_copies_are_told_against_the_original() {
    for (first, second) in [
        ("PLAN_x (1).md", "PLAN_x (1) (Ann's conflicted copy 2026-11-16).md"),
        ("PLAN_x (1).md", "PLAN_x (1) 2.md"),
        ("PLAN_x 2.md", "PLAN_x 2.sync-conflict-20261116-120000-ABCDEFG.md"),
        ("PLAN_x (conflicted copy).md", "PLAN_x (conflicted copy)-DESKTOP.md"),
    ] {
        let scene = Scene::new();
        for name in ["PLAN_x.md", first, second] {
            scene.approve(name, &plan("x"));
        }
        let ran = scene.run_all();
        assert_eq!(scene.names("Done"), ["PLAN_x.md"], "{second}");
        let told: Vec<&String> = ran.problems.iter().map(|problem| &problem.message).collect();
        assert!(told.len() == 2 && told.iter().all(|told| told.contains("copy of `PLAN_x.md`")), "{told:?}");
    }
    // The honest twin: another plan that is called so has copies of its own.
    let scene = Scene::new();
    scene.approve("PLAN_x.md", &plan("x"));
    scene.approve("PLAN_x (1).md", &plan("other"));
    scene.approve("PLAN_x (1) (conflicted copy).md", &plan("other"));
    let ran = scene.run_all();
    assert_eq!(scene.names("Done"), ["PLAN_x (1).md", "PLAN_x.md"]);
    assert!(ran.problems[0].message.contains("copy of `PLAN_x (1).md`"), "{:?}", ran.problems);
}

#[test]
fn a_copy_without_an_id_of_its_own_is_one_too() {
    let scene = Scene::new();
    scene.approve("PLAN_y.md", &anonymous(1));
    scene.approve("PLAN_y 2.md", &anonymous(1));
    scene.approve("PLAN_z (conflicted copy).md", &anonymous(1));
    assert_eq!(scene.refused(), ["PLAN_y 2.md", "PLAN_z (conflicted copy).md"]);
    assert_eq!(scene.names("Done"), ["PLAN_y.md"]);
    // Its original is done and named.
    assert_eq!(scene.refused(), ["PLAN_y 2.md", "PLAN_z (conflicted copy).md"]);
    assert!(scene.read("Needs_Action/plan_problem_PLAN_y 2.md").contains("`Done/PLAN_y.md`"));

    // The honest twins: another plan, whatever it is called, and a number with nothing to be a copy of.
    scene.approve("PLAN_y 3.md", &named("y_in_march", 1));
    scene.approve("Week 2.md", &anonymous(1));
    assert_eq!(scene.refused().len(), 2);
    assert_eq!(scene.names("Done"), ["PLAN_y 3.md", "PLAN_y.md", "Week 2.md"]);
}

#[test]
fn a_copy_of_what_cannot_be_read_waits() {
    let scene = Scene::new();
    scene.approve("PLAN_x.md", &plan("x").replace("step_1\n", "step_9\n"));
    scene.approve("PLAN_x 2.md", &plan("x"));
    assert_eq!(scene.refused(), ["PLAN_x 2.md", "PLAN_x.md"]);
    assert_eq!(scene.tools.count(), 0);
}

#[test]
fn an_original_that_comes_later_takes_its_place_before_the_copy_runs() {
    let mut scene = Scene::new();
    scene.rules.settle = Millis(300);
    let scene = Arc::new(scene);
    let watching = scene.watch();
    scene.write("Approved/Plans/PLAN_x 2.md", &plan("x").replace("a@b.c", "other@b.c"));
    scene.write("Approved/Plans/PLAN_x.md", &plan("x"));
    watching.completed("x");
    watching.stop();
    assert_eq!(scene.names("Done"), ["PLAN_x.md"]);
    assert_eq!(scene.tools.calls.lock().unwrap()[0].params["to"], "a@b.c");
}

#[test]
fn a_copy_waits_until_it_is_known_what_its_original_is() {
    let mut scene = Scene::new();
    scene.rules.settle = Millis(300);
    scene.approve("PLAN_x.md", &plan("x"));
    scene.approve("PLAN_x 2.md", &plan("x").replace("a@b.c", "other@b.c"));
    scene.approve("PLAN_y.md", &named("y", 1));
    scene.approve("PLAN_y 2.md", &named("z", 1));
    for copy in ["PLAN_x 2.md", "PLAN_y 2.md"] {
        scene.age(&format!("Approved/Plans/{copy}"));
    }
    assert_eq!(scene.refused(), ["PLAN_x 2.md"]);
    assert_eq!(scene.names("Done"), ["PLAN_x.md", "PLAN_y 2.md", "PLAN_y.md"]);
    assert_eq!(scene.tools.calls.lock().unwrap()[0].params["to"], "a@b.c");
}

#[test]
fn ids_that_differ_in_case_alone_are_the_same_to_obsidian() {
    let scene = Scene::new();
    scene.approve("a.md", &named("Same", 1));
    scene.approve("b.md", &named("same", 1));
    assert_eq!(scene.refused(), ["b.md"]);
    // Carried out, the first keeps its id.
    assert_eq!(scene.refused(), ["b.md"]);
    assert_eq!(scene.names("Done"), ["a.md"]);
    assert_eq!(scene.names("Logs/Plan_Execution"), ["Same.md"]);
    // The honest twin has an id of its own.
    scene.approve("b.md", &named("another", 1));
    assert!(scene.refused().is_empty());
}

#[test]
fn an_id_in_another_case_waits_for_good_while_the_first_is_blocked() {
    let scene = blocked_at_a_file("det");
    scene.approve("upper.md", &named("DET", 1));
    scene.age("Approved/Plans/upper.md");
    for _ in 0..2 {
        assert_eq!(scene.refused(), ["upper.md"]);
    }
    assert_eq!(scene.names("Logs/Plan_Execution"), ["det.md"]);
}

/// A plan that is blocked at its first step, since there is such a file already.
fn blocked_at_a_file(id: &str) -> Scene {
    let mut scene = Scene::new();
    // Its file was written just now, by us: what has lain there for longer is looked at first.
    scene.rules.settle = Millis(300);
    scene.write("old.md", "old");
    scene.approve("Det.md", &file_plan(id, "old.md"));
    assert_eq!(scene.run()[0].status, "blocked");
    scene
}

fn file_plan(id: &str, path: &str) -> String {
    format!(
        "---\nplan_id: {id}\n---\n- [ ] **Step 1:** w (action_type: create_file)\n  - File: {path}\n  - Content: x\n"
    )
}

fn retry(scene: &Scene) {
    std::fs::remove_file(scene.path("old.md")).unwrap();
    let note = scene.read("Needs_Action/plan_blocked_det.md");
    scene.write("Needs_Action/plan_blocked_det.md", &note.replacen("- [ ] **Retry", "- [x] **Retry", 1));
}

#[test]
fn a_file_with_the_id_of_a_plan_that_was_begun_never_runs_in_its_place() {
    let scene = blocked_at_a_file("det");
    scene.approve("other.md", &file_plan("det", "new.md"));
    // It was written long before the plan was last touched, and so is looked at first.
    scene.age("Approved/Plans/other.md");
    for _ in 0..2 {
        assert_eq!(scene.refused(), ["other.md"]);
    }
    retry(&scene);
    assert_eq!(scene.refused(), ["other.md"]);
    assert_eq!((scene.names("Done"), scene.exists("new.md")), (vec!["Det.md".to_owned()], false));
    assert_eq!(scene.read("old.md").trim(), "x");
    // Nor does it once the plan was carried out.
    assert_eq!(scene.refused(), ["other.md"]);
    assert!(!scene.exists("new.md"));
}

#[test]
fn a_file_with_other_steps_does_not_go_on_for_a_plan_that_was_moved_away() {
    let scene = blocked_at_a_file("det");
    scene.approve("other.md", &file_plan("det", "new.md"));
    std::fs::rename(scene.path("Approved/Plans/Det.md"), scene.path("Plans/Det.md")).unwrap();
    retry(&scene);
    let problems = scene.run_all().problems;
    assert!(problems[0].message.contains("begun from `Det.md`"), "{problems:?}");
    assert!(!scene.exists("new.md"));
    // The honest twin: the same plan under another name, and the file itself with other steps.
    std::fs::rename(scene.path("Plans/Det.md"), scene.path("Approved/Plans/Renamed.md")).unwrap();
    assert_eq!(scene.refused(), ["other.md"]);
    assert_eq!(scene.names("Done"), ["Renamed.md"]);
    assert!(scene.exists("old.md") && !scene.exists("new.md"));

    let scene = blocked_at_a_file("det");
    retry(&scene);
    scene.approve("Det.md", &file_plan("det", "mended.md"));
    assert!(scene.refused().is_empty());
    assert!(scene.exists("mended.md"));
}

#[test]
fn a_copy_that_was_begun_stays_the_plan_when_its_original_comes() {
    let scene = Scene::new();
    scene.write("old.md", "old");
    scene.approve("Copy of Det.md", &file_plan("det", "old.md"));
    assert_eq!(scene.run()[0].status, "blocked");
    scene.approve("Det.md", &file_plan("det", "new.md"));
    assert_eq!(scene.refused(), ["Det.md"]);
    retry(&scene);
    assert_eq!(scene.refused(), ["Det.md"]);
    assert_eq!((scene.names("Done"), scene.exists("new.md")), (vec!["Copy of Det.md".to_owned()], false));
}

#[test]
fn half_a_plan_is_not_run() {
    let mut scene = Scene::new();
    scene.rules.settle = Rules::default().settle;
    let scene = Arc::new(scene);
    let watching = scene.watch();
    let text = named("p", 3);
    let half = text.find("- [ ] **Step 2").unwrap();
    scene.write("Approved/Plans/p.md", &text[..half]);
    // Others come, are carried out and done with meanwhile.
    let began = Instant::now();
    for n in 0.. {
        if began.elapsed() > Duration::from_millis(200) {
            break;
        }
        let name = format!("q{n}.md");
        scene.write(&format!("Plans/{name}"), &named(&format!("q{n}"), 3));
        scene.age(&format!("Plans/{name}"));
        fs::rename(scene.path(&format!("Plans/{name}")), scene.path(&format!("Approved/Plans/{name}")))
            .unwrap();
        watching.completed(&format!("q{n}"));
    }
    scene.write("Approved/Plans/p.md", &text);
    watching.completed("p");
    watching.stop();
    assert_eq!(scene.read("Done/p.md").matches("- [x]").count(), 3);
}

#[test]
fn a_plan_that_was_written_long_ago_is_run_at_once() {
    let mut scene = Scene::new();
    scene.rules.settle = Millis::from_secs(600);
    scene.approve("p.md", &named("p", 1));
    scene.age("Approved/Plans/p.md");
    assert_eq!(scene.refused(), [""; 0]);
    assert!(scene.exists("Done/p.md"));
}

#[test]
fn a_plan_has_the_steps_it_says() {
    let scene = Scene::new();
    let says = |count: usize| named("p", 2).replace("p\n---", &format!("p\ntotal_steps: {count}\n---"));
    for (count, said) in [(1, "says 1 steps, but there are 2"), (3, "says 3 steps, but there are 2")] {
        scene.approve("p.md", &says(count));
        assert_eq!(scene.refused(), ["p.md"]);
        let note = scene.read("Needs_Action/plan_problem_p.md");
        assert!(note.contains(said), "{note}");
        let vault = Vault::open(&scene.path("")).unwrap();
        assert_eq!(survey(&vault, &scene.checkout(), &scene.rules).unwrap()[0].status, "broken");
    }
    scene.approve("p.md", &says(2));
    assert_eq!(scene.refused(), [""; 0]);
    assert!(scene.exists("Done/p.md"));
}

#[test]
fn steps_that_are_added_to_a_plan_under_way_are_carried_out() {
    let scene = Scene::new();
    let text = named("p", 3).replace("p\n---", "p\ntotal_steps: 3\nmax_iterations: 1\n---");
    scene.approve("p.md", &text);
    assert_eq!(scene.run()[0].status, "escalated");
    let more = scene.read("Approved/Plans/p.md") + "- [ ] **Step 4:** Tell Bob (action_type: notify_human)\n";
    scene.write("Approved/Plans/p.md", &more.replace("max_iterations: 1\n", "max_iterations: 9\n"));
    assert_eq!(scene.refused(), [""; 0]);
    assert_eq!(scene.read("Done/p.md").matches("- [x]").count(), 4);
}

#[test]
fn plans_in_folders_of_the_folder_are_approved_too() {
    let scene = Scene::new();
    fs::create_dir_all(scene.path("Approved/Plans/Clients/Acme")).unwrap();
    fs::create_dir_all(scene.path("Approved/Plans/.trash")).unwrap();
    scene.write("Approved/Plans/Clients/Acme/PLAN_a.md", &plan("a"));
    scene.write("Approved/Plans/Clients/broken.md", "---\nplan_id: b\n---\n");
    scene.write("Approved/Plans/.trash/old.md", &plan("old"));
    std::os::unix::fs::symlink(scene.path("Plans"), scene.path("Approved/Plans/Linked")).unwrap();
    scene.write("Plans/unseen.md", &plan("unseen"));
    let vault = Vault::open(&scene.path("")).unwrap();
    let files: Vec<String> =
        survey(&vault, &scene.checkout(), &scene.rules).unwrap().into_iter().map(|row| row.file).collect();
    assert_eq!(files, ["Clients/Acme/PLAN_a", "Clients/broken"]);
    assert_eq!(scene.refused(), ["Clients/broken.md", "Linked"]);
    assert_eq!(scene.names("Done"), ["PLAN_a.md"]);
    let note = scene.read("Needs_Action/plan_problem_Clients - broken.md");
    assert!(note.contains("[[Approved/Plans/Clients/broken]]"), "{note}");
    assert!(scene.read("Needs_Action/plan_problem_Linked.md").contains("symbolic link"));
    // Gone, they are no trouble any more.
    fs::remove_file(scene.path("Approved/Plans/Linked")).unwrap();
    fs::remove_file(scene.path("Approved/Plans/Clients/broken.md")).unwrap();
    assert_eq!(scene.refused(), [""; 0]);
}

#[test]
fn plans_in_folders_are_noticed_as_they_come() {
    let scene = Arc::new(Scene::new());
    let watching = scene.watch();
    // A folder with a plan in it is moved there.
    fs::create_dir_all(scene.path("Plans/Acme")).unwrap();
    scene.write("Plans/Acme/a.md", &plan("a"));
    fs::rename(scene.path("Plans/Acme"), scene.path("Approved/Plans/Acme")).unwrap();
    watching.completed("a");
    // And another plan into it.
    scene.write("Plans/b.md", &plan("b"));
    fs::rename(scene.path("Plans/b.md"), scene.path("Approved/Plans/Acme/b.md")).unwrap();
    watching.completed("b");
    // A folder that is made there, and then a plan in it.
    fs::create_dir_all(scene.path("Approved/Plans/New/Deep")).unwrap();
    scene.write("Approved/Plans/New/Deep/c.md", &plan("c"));
    watching.completed("c");
    watching.stop();
    assert_eq!(scene.names("Done"), ["a.md", "b.md", "c.md"]);
}

#[test]
fn what_cannot_be_read_keeps_nothing_else_from_being_carried_out() {
    let scene = Scene::new();
    scene.approve("a.md", "---\nplan_id: a\n---\n");
    scene.approve("b.md", &plan("b"));
    scene.approve("c.md", "# just a note\n");
    assert_eq!(scene.refused(), ["a.md", "c.md"]);
    assert_eq!(scene.names("Done"), ["b.md"]);
}

#[test]
fn the_dashboard_counts_what_there_is() {
    let scene = Scene::new();
    for n in 0..120 {
        scene.write(&format!("Done/old {n:03}.md"), &named(&format!("old{n}"), 1));
        scene.age(&format!("Done/old {n:03}.md"));
    }
    fs::create_dir_all(scene.path("Plans/Later")).unwrap();
    scene.write("Plans/Later/w.md", &named("w", 1));
    scene.write("Plans/thoughts.md", "# nothing to approve\n");
    scene.approve("p.md", &named("p", 26));
    scene.approve("q.md", "# broken\n");
    scene.run();
    let dashboard = scene.read("Dashboard.md");
    let front = "plans_waiting: 1\nplans_active: 1\nplans_completed: 120\n";
    assert!(dashboard.contains(front), "{dashboard}");
    // Ten notices before the limit, the note about it, and the one about what is no plan.
    assert!(dashboard.contains("needs_action: 12\n"), "{dashboard}");
    scene.tick("plan_escalated_p", "run1-limit");
    let text = scene.read("Needs_Action/plan_escalated_p.md").replace("    >\n", "    > 30\n");
    scene.write("Needs_Action/plan_escalated_p.md", &text);
    scene.run();
    let dashboard = scene.read("Dashboard.md");
    assert!(dashboard.contains("plans_completed: 121\nneeds_action: 27\n"), "{dashboard}");
    assert!(dashboard.contains("## Completed\n\n- [[Done/p]]\n"), "the newest first: {dashboard}");
    assert!(dashboard.contains("- and 71 more\n"), "{dashboard}");
    // Somebody has seen to one of them.
    let seen = "Needs_Action/plan_notification_p_step_1.md";
    scene.write(seen, &scene.read(seen).replace("action_required: true", "action_required: false"));
    scene.run();
    assert!(scene.read("Dashboard.md").contains("needs_action: 26\n"));
}

#[test]
fn what_is_to_be_left_is_left_and_noted() {
    let scene = Scene::new();
    scene.approve("p.md", &named("p", 3).replace("p\n---", "p\nmax_iterations: 1\n---"));
    assert_eq!(scene.run()[0].needs_action.as_deref(), Some("plan_escalated_p"));
    scene.tick("plan_escalated_p", "run1-leave");
    let rows = scene.run();
    assert_eq!((rows[0].status.as_str(), rows[0].needs_action.as_deref()), ("escalated", None));
    let note = scene.read("Needs_Action/plan_escalated_p.md");
    assert!(
        note.contains("**Noted:** it is left as it is.") && note.contains("action_required: false"),
        "{note}"
    );
    let vault = Vault::open(&scene.path("")).unwrap();
    assert_eq!(survey(&vault, &scene.checkout(), &scene.rules).unwrap()[0].needs_action, None);
    assert_eq!(scene.run()[0].needs_action, None, "and stays so");
    assert_eq!(scene.read("Needs_Action/plan_escalated_p.md"), note);
    // After all.
    scene.write("Needs_Action/plan_escalated_p.md", &note.replace("[x] **Leave", "[ ] **Leave"));
    scene.tick("plan_escalated_p", "run1-more");
    assert_eq!(scene.run(), []);
}

/// The limit came from outside, and is not there any more when the vault is run again.
#[test]
fn what_is_to_be_left_is_left_also_where_another_limit_holds() {
    let mut scene = Scene::new();
    scene.approve("p.md", &named("p", 3));
    scene.rules.most_iterations = Some(1);
    assert_eq!(scene.run()[0].needs_action.as_deref(), Some("plan_escalated_p"));
    scene.tick("plan_escalated_p", "run1-leave");
    scene.rules.most_iterations = None;
    for _ in 0..2 {
        assert_eq!(scene.run()[0].status, "escalated");
        let note = scene.read("Needs_Action/plan_escalated_p.md");
        assert!(note.contains("**Noted:** it is left as it is."), "{note}");
    }
}

#[test]
fn no_directory_becomes_a_vault_by_being_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("Plans")).unwrap();
    let vault = || Vault::open(dir.path()).unwrap();
    let state = tempfile::tempdir().unwrap();
    let checkout =
        Checkout::new(dir.path().canonicalize().unwrap(), &StateRoot::new(state.path().to_owned()));
    let setup: Setup = Arc::new(|_| Err("never".to_owned()));
    let opened = Keeper::open(vault(), &checkout, Rules::default(), setup, |_| {});
    assert!(matches!(opened.err(), Some(VaultError::NotAVault { .. })));
    assert!(matches!(survey(&vault(), &checkout, &Rules::default()), Err(VaultError::NotAVault { .. })));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was made");
}

#[test]
fn a_keeper_says_what_it_found() {
    let scene = Arc::new(Scene::new());
    scene.approve("p.md", &named("p", 1));
    scene.write("Plans/w.md", &named("w", 1));
    scene.write("Needs_Action/mine.md", "---\naction_required: true\n---\n");
    let watching = scene.watch();
    watching.until(|told| {
        matches!(told, Told::Opened { watching: true, approved: 1, waiting: 1, needs_action: 1, vault } if !vault.is_empty())
    });
    watching.completed("p");
    watching.stop();
}

#[test]
fn what_could_not_be_done_is_not_tried_for_half_a_minute() {
    let mut scene = Scene::new();
    scene.rules.backoff = Millis::from_secs(3600);
    scene.approve("p.md", &plan("p").replace("MCP Server: email", "MCP Server: nobody"));
    let rows = scene.run();
    assert_eq!((rows[0].status.as_str(), rows[0].iterations_used), ("blocked", 1));
    let note = scene.read("Needs_Action/plan_blocked_p.md");
    assert!(note.contains("there is no MCP server \\`nobody\\`"), "{note}");
}

#[test]
fn a_vault_of_two_thousand_plans_is_as_quick_as_any() {
    let scene = Arc::new(Scene::new());
    for n in 0..2000 {
        scene.write(&format!("Done/d{n}.md"), &named(&format!("d{n}"), 1));
    }
    for n in 0..500 {
        let note = format!("---\nplan_id: d{n}\naction_required: true\n---\n# For your attention\n");
        scene.write(&format!("Needs_Action/plan_notification_d{n}_step_1.md"), &note);
    }
    let watching = scene.watch();
    let mut best = Duration::MAX;
    for n in 0..5 {
        let id = format!("p{n}");
        scene.approve(&format!("{id}.md"), &plan(&id));
        best = best.min(watching.completed(&id));
    }
    println!("carried out within {best:?} in a vault of 2 000 plans");
    assert!(best < Duration::from_secs(1), "{best:?}");
    watching.stop();
    let dashboard = scene.read("Dashboard.md");
    assert!(dashboard.contains("plans_completed: 2005\nneeds_action: 505\n"), "{dashboard}");
}
