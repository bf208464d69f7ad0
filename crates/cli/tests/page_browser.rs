//! The page in a real Chromium: every view, a question answered while its loop runs, the slider, a phone,
//! hostile output, two tabs, a network that is lost, a token that is none; by keyboard alone, and judged by
//! axe in light and dark.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod serving;
mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;
use serving::{ASKING, Page};
use support::Sandbox;

/// What drives the browser, and what judges whether everybody can use the page.
const PACKAGES: [&str; 2] = ["playwright-core@1.65.0", "axe-core@4.14.0"];

#[test]
fn the_page_works_in_a_browser() {
    let Some([driver, judge]) = packages() else { return };
    let sandbox = Sandbox::with_tasks(&["A", "C", "B"]);
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let verify = ["--verify", "echo looking; grep -q fine $WIGGUM_TASK_ID.txt"];
    let mut started = Some(sandbox.start(ASKING, &verify));
    sandbox.wait_ready();
    // Served from another repository, so that all of it is about a loop elsewhere on the machine.
    let other = sandbox.base().join("elsewhere");
    fs::create_dir(&other).unwrap();
    sandbox.git_in(&other, &["init", "-q"]);
    let page = Page::open_in(&sandbox, &other, &[]);
    let shots = cache().join("shots");
    fs::create_dir_all(&shots).unwrap();
    let file = sandbox.base().join("sent.html");
    let told = json!({ "playwright": driver, "axe": judge, "url": page.url, "shots": shots, "file": file });

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/page.mjs");
    let mut node = sandbox.command("node");
    node.arg(script).arg(told.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut node = node.spawn().unwrap();
    let mut grant = node.stdin.take().unwrap();
    let mut said = String::new();
    for line in BufReader::new(node.stdout.take().unwrap()).lines().map_while(Result::ok) {
        match line.as_str() {
            "let it end" => {
                sandbox.go();
                started.take().unwrap().outcome_only().exits(0);
                writeln!(grant, "{}", json!({ "events": sandbox.journal().len() })).unwrap();
            }
            "write the file" => {
                let report = ["report", "--html", &file.display().to_string()].map(str::to_owned);
                sandbox.launch(&sandbox.root, &report.each_ref().map(String::as_str)).outcome_only().exits(0);
                writeln!(grant, "{{}}").unwrap();
            }
            line => said.push_str(&format!("{line}\n")),
        }
    }
    let status = node.wait().unwrap();
    assert!(status.success() && said.contains("all of it works"), "{said}");
}

/// Both modules, installed once below `target/`; none where there is no browser.
#[expect(clippy::print_stderr, reason = "what is skipped must be seen")]
fn packages() -> Option<[PathBuf; 2]> {
    let skip = |why: &str| {
        eprintln!("SKIPPED: the page is not tried in a browser: {why}");
        None
    };
    if !Path::new("/usr/bin/chromium").exists() {
        return skip("there is no /usr/bin/chromium");
    }
    let modules = ["playwright-core/index.mjs", "axe-core/axe.min.js"];
    let modules = modules.map(|module| cache().join("node_modules").join(module));
    fs::create_dir_all(cache()).unwrap();
    // Tests in other processes may want it at the same time.
    let lock = File::create(cache().join("lock")).unwrap();
    lock.lock().unwrap();
    if !modules.iter().all(|module| module.exists()) {
        #[expect(clippy::disallowed_methods, reason = "tests install what they need")]
        let mut npm = std::process::Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1", "--prefix"]);
        let installed = npm.arg(cache()).args(PACKAGES).stdout(Stdio::null()).status();
        if !installed.is_ok_and(|status| status.success()) {
            return skip(&format!("npm cannot install {}", PACKAGES.join(" and ")));
        }
    }
    Some(modules)
}

fn cache() -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    target.canonicalize().unwrap_or(target).join("browser")
}
