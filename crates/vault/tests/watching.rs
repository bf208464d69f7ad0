//! A vault that is watched: plans come, move, break and are answered while the keeper is there.
#![expect(clippy::unwrap_used, reason = "the helpers of these tests are not themselves tests")]

mod support;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use support::{Scene, plan};
use wiggum_engine::tools::CallOutcome;
use wiggum_vault::Told;

fn scene() -> Arc<Scene> {
    Arc::new(Scene::new())
}

fn started(id: &str) -> impl Fn(&Told) -> bool {
    let id = id.to_owned();
    move |told| matches!(told, Told::Started { plan } if *plan == id)
}

#[test]
fn plans_are_noticed_whether_they_were_there_or_come() {
    let scene = scene();
    scene.approve("before.md", &plan("before"));
    let watching = scene.watch();
    watching.completed("before");
    scene.approve("moved.md", &plan("moved"));
    watching.completed("moved");
    scene.write("Approved/Plans/written.md", &plan("written"));
    watching.completed("written");
    // As editors do it: a temporary file, then a rename.
    scene.write("Approved/Plans/renamed.md~", &plan("renamed"));
    fs::rename(scene.path("Approved/Plans/renamed.md~"), scene.path("Approved/Plans/renamed.md")).unwrap();
    watching.completed("renamed");
    // As sync programs do it: a hidden file grows, then gets its name.
    scene.write("Approved/Plans/.synced.md.tmp", &plan("synced"));
    fs::rename(scene.path("Approved/Plans/.synced.md.tmp"), scene.path("Approved/Plans/synced.md")).unwrap();
    watching.completed("synced");
    watching.stop();
    assert_eq!(scene.names("Done"), ["before.md", "moved.md", "renamed.md", "synced.md", "written.md"]);
    assert_eq!(scene.tools.count(), 5);
    scene.assert_sound();
}

#[test]
fn a_half_written_plan_waits_for_its_other_half() {
    let scene = scene();
    let watching = scene.watch();
    let text = plan("p");
    let half = text.find("- [ ] **Step 3").unwrap();
    scene.write("Approved/Plans/p.md", &text[..half]);
    watching.problem("p.md");
    assert!(scene.read("Needs_Action/plan_problem_p.md").contains("says 3 steps, but there are 2"));
    assert_eq!(scene.tools.count(), 0);
    scene.write("Approved/Plans/p.md", &text);
    watching.completed("p");
    watching.stop();
    assert!(scene.read("Needs_Action/plan_problem_p.md").contains("action_required: false"));
}

#[test]
fn an_answer_goes_on_within_a_second() {
    let scene = scene();
    let watching = scene.watch();
    let mut best = Duration::MAX;
    for id in ["a", "b", "c"] {
        for _ in 0..4 {
            scene.tools.say(CallOutcome::Refused { message: "no".to_owned() });
        }
        scene.approve(&format!("{id}.md"), &plan(id));
        watching.ended(id, "blocked");
        scene.tick(&format!("plan_blocked_{id}"), "q1-retry");
        best = best.min(watching.completed(id));
    }
    println!("an answer is carried out after {best:?}");
    assert!(best < Duration::from_secs(1), "{best:?}");
    watching.stop();
    assert_eq!(scene.tools.count(), 15);
}

#[test]
fn a_request_from_elsewhere_wakes_a_resting_plan() {
    use wiggum_core::event::{Answer, Request};
    use wiggum_core::ids::QuestionId;
    use wiggum_engine::wake;
    let scene = scene();
    scene.tools.say(CallOutcome::Uncertain { message: "lost".to_owned() });
    let watching = scene.watch();
    scene.approve(
        "p.md",
        &plan("p").replace("{{ steps.1.result.id }}", "x").replace("{{ steps.1.result.text }}", "y"),
    );
    watching.ended("p", "blocked");
    let mut store = wiggum_store::Store::open(&scene.state_dir().database()).unwrap();
    let id = store.loops().unwrap()[0].id;
    let request = Request::Answer { question: QuestionId(1), answer: Answer::Done };
    store.post(id, &request, "terminal", jiff::Timestamp::UNIX_EPOCH).unwrap();
    wake::wake(&scene.state_dir(), id).unwrap();
    watching.completed("p");
    watching.stop();
    assert!(scene.read("Needs_Action/plan_blocked_p.md").contains("done by hand (terminal"));
}

#[test]
fn a_plan_that_is_moved_away_stops_and_comes_back_where_it_was() {
    let mut scene = Scene::new();
    // Long enough to be moved away while it waits for its retry.
    scene.rules.backoff = wiggum_core::policy::Millis::from_secs(60);
    let scene = Arc::new(scene);
    scene.tools.say(CallOutcome::Done { result: "sent".to_owned() });
    scene.tools.say(CallOutcome::Refused { message: "busy".to_owned() });
    let watching = scene.watch();
    let mail = |n: usize| {
        let params = "  - MCP Server: email\n  - Tool: send\n  - Params: {}\n";
        format!("- [ ] **Step {n}:** Mail (action_type: mcp_email)\n{params}")
    };
    scene.approve("p.md", &format!("---\nplan_id: p\n---\n{}{}", mail(1), mail(2)));
    watching.until(started("p"));
    // The second mail fails; its retry is a minute away.
    while !scene.exists("Logs/Plan_Execution/p.md")
        || !scene.read("Logs/Plan_Execution/p.md").contains("step_2: failed")
    {
        std::thread::yield_now();
    }
    fs::rename(scene.path("Approved/Plans/p.md"), scene.path("Plans/p.md")).unwrap();
    while scene.exists("In_Progress/p") {
        std::thread::yield_now();
    }
    watching.stop();
    let watching = scene.watch();
    assert_eq!(scene.tools.count(), 2, "a plan that is not approved rests");
    // Back again, and at the right step.
    fs::rename(scene.path("Plans/p.md"), scene.path("Approved/Plans/p.md")).unwrap();
    watching.until(started("p"));
    watching.stop();
    assert_eq!(scene.tools.count(), 2);
    assert!(scene.read("Approved/Plans/p.md").contains("[x] **Step 1:**"));
    scene.assert_sound();
}

#[test]
fn folders_that_are_replaced_are_watched_again() {
    let scene = scene();
    let watching = scene.watch();
    fs::rename(scene.path("Approved"), scene.path("Old")).unwrap();
    fs::create_dir_all(scene.path("Approved/Plans")).unwrap();
    scene.approve("p.md", &plan("p"));
    watching.completed("p");
    scene.approve("q.md", &plan("q"));
    watching.completed("q");
    watching.stop();
}

#[test]
fn a_vault_has_one_keeper() {
    let scene = scene();
    let watching = scene.watch();
    let vault = wiggum_vault::Vault::open(&scene.path("")).unwrap();
    let setup: wiggum_vault::Setup = Arc::new(|_| Err("never".to_owned()));
    let second = wiggum_vault::Keeper::open(vault, &scene.checkout(), scene.rules, setup, |_| {});
    assert!(second.is_err_and(|error| error.to_string().contains("looked after already")));
    watching.stop();
}

#[test]
fn ten_thousand_files_slow_nothing_down() {
    let scene = scene();
    fs::create_dir_all(scene.path("Archive")).unwrap();
    for n in 0..8000 {
        scene.write(&format!("Archive/{n}.md"), "# note\n");
    }
    for n in 0..2000 {
        scene.write(&format!("Plans/w{n}.md"), "# waiting\n");
    }
    let watching = scene.watch();
    scene.approve("first.md", &plan("first"));
    watching.completed("first");
    let mut best = Duration::MAX;
    for n in 0..5 {
        let id = format!("p{n}");
        scene.approve(&format!("{id}.md"), &plan(&id));
        best = best.min(watching.until(started(&id)));
        watching.completed(&id);
    }
    println!("noticed after {best:?} with 10 000 files");
    assert!(best < Duration::from_millis(200), "{best:?}");
    watching.stop();
}
