//! The page in a real Chromium: every view, a question answered while its loop runs, the slider, a phone,
//! hostile output, two tabs, a network that is lost, a token that is none; by keyboard alone, and judged by
//! axe in light and dark.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod serving;
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use serving::{ASKING, Page};
use support::Sandbox;
use wiggum_testkit::browser::Browser;

#[test]
fn the_page_works_in_a_browser() {
    let Some(browser) = Browser::find_or_skip("the page is not tried in a browser") else { return };
    let sandbox = Sandbox::with_tasks(&["A", "C", "B"]);
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let verify = ["--verify", "seq 3000; echo looking; grep -q fine $WIGGUM_TASK_ID.txt"];
    let mut started = Some(sandbox.start(ASKING, &verify));
    sandbox.wait_ready();
    // Served from another repository, so that all of it is about a loop elsewhere on the machine.
    let other = sandbox.base().join("elsewhere");
    fs::create_dir(&other).unwrap();
    sandbox.git_in(&other, &["init", "-q"]);
    let page = Page::open_in(&sandbox, &other, &[]);
    let file = sandbox.base().join("sent.html");
    let told = json!({ "playwright": browser.playwright, "axe": browser.axe, "url": page.url, "shots": browser.shots, "file": file });

    browse(&sandbox, "page.mjs", &told, |wish| match wish {
        "let it end" => {
            sandbox.go();
            started.take().unwrap().outcome_only().exits(0);
            Some(json!({ "events": sandbox.journal().len() }))
        }
        "write the file" => {
            let report = ["report", "--html", &file.display().to_string()].map(str::to_owned);
            sandbox.launch(&sandbox.root, &report.each_ref().map(String::as_str)).outcome_only().exits(0);
            Some(json!({}))
        }
        _ => None,
    });
}

#[test]
fn an_open_page_says_within_seconds_that_the_engine_died() {
    let Some(browser) = Browser::find_or_skip("the page of a killed engine is not tried in a browser") else {
        return;
    };
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let begin = || {
        let started = sandbox.start("cat > /dev/null; hang", &[]);
        sandbox.wait_ready();
        Some(started)
    };
    let mut started = begin();
    let page = Page::open(&sandbox, &[]);
    let told = json!({ "playwright": browser.playwright, "url": page.url, "shots": browser.shots });
    browse(&sandbox, "died.mjs", &told, |wish| match wish {
        "kill it" => {
            started.take().unwrap().kill();
            Some(json!({}))
        }
        "start it again" => {
            started = begin();
            Some(json!({}))
        }
        _ => None,
    });
}

/// Runs a script in the browser to its end, and grants its wishes.
fn browse(sandbox: &Sandbox, script: &str, told: &Value, mut grant: impl FnMut(&str) -> Option<Value>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser").join(script);
    let mut node = sandbox.command("node");
    node.arg(script).arg(told.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut node = node.spawn().unwrap();
    let mut answers = node.stdin.take().unwrap();
    let mut said = String::new();
    for line in BufReader::new(node.stdout.take().unwrap()).lines().map_while(Result::ok) {
        match grant(&line) {
            Some(answer) => writeln!(answers, "{answer}").unwrap(),
            None => said.push_str(&format!("{line}\n")),
        }
    }
    let status = node.wait().unwrap();
    assert!(status.success() && said.contains("all of it works"), "{said}");
}
