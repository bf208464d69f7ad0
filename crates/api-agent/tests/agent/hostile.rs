//! A model that wants out.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use wiggum_api_agent::Provider;
use wiggum_testkit::Turn;

use crate::desk::{BOTH, Desk};

/// What each tool is told when its path is this one.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("read", json!({"path": path})),
        ("list", json!({"path": path})),
        ("search", json!({"pattern": "secret", "path": path})),
        ("edit", json!({"path": path, "old": "secret", "new": "stolen"})),
        ("write", json!({"path": path, "content": "planted"})),
    ]
}

#[test]
fn no_tool_leads_out_of_the_workspace() {
    let desk = Desk::new(Provider::OpenAi);
    let secret = desk.outside("secret");
    fs::write(&secret, "secret\n").unwrap();
    symlink("../secret", desk.root.join("link")).unwrap();
    symlink("..", desk.root.join("up")).unwrap();
    symlink("../planted", desk.root.join("dangling")).unwrap();
    let absolute = secret.to_str().unwrap();
    let paths =
        ["../secret", absolute, "link", "up/secret", "dangling", "a/../../secret", "..", "/", "\u{0}"];
    let mut turn = Turn::default();
    for (tool, arguments) in paths.iter().flat_map(|path| calls(path)) {
        turn = turn.and_calls(tool, arguments);
    }
    let (told, _stub) = desk.work([turn, Turn::says("I give up.")]);
    assert_eq!(told.results().len(), 5 * paths.len());
    for result in told.results() {
        assert!(result.starts_with("error: ") && !result.contains("stolen"), "{result}");
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret\n");
    assert!(!desk.outside("planted").exists());
    assert_eq!(told.message(), "I give up.");
}

#[test]
fn git_and_the_loop_cannot_be_written_to_by_any_name() {
    let desk = Desk::new(Provider::Anthropic);
    desk.write(".git/hooks/pre-commit", "old");
    desk.write(".wiggum/wiggum.db", "old");
    symlink(".git/hooks", desk.root.join("hooks")).unwrap();
    let absolute = desk.root.join(".git/hooks/pre-commit");
    let paths = [
        ".git/hooks/pre-commit",
        "hooks/pre-commit",
        absolute.to_str().unwrap(),
        ".wiggum/wiggum.db",
        ".git/hooks/post-commit",
    ];
    let mut turn = Turn::default();
    for path in paths {
        turn = turn.and_calls("write", json!({"path": path, "content": "new"}));
        turn = turn.and_calls("edit", json!({"path": path, "old": "old", "new": "new"}));
    }
    let (told, _stub) = desk.work([turn, Turn::says("ok")]);
    for result in told.results() {
        assert!(result.starts_with("error: ") && result.contains("must not be changed"), "{result}");
    }
    assert_eq!(desk.read(".git/hooks/pre-commit"), "old");
    assert_eq!(desk.read(".wiggum/wiggum.db"), "old");
    assert!(!desk.root.join(".git/hooks/post-commit").exists());
}

#[test]
fn nonsense_is_answered_and_work_goes_on() {
    for provider in BOTH {
        let desk = Desk::new(provider);
        desk.write("a", "1\n");
        let (told, stub) = desk.work([
            Turn::calls("shell", json!({"cmd": "ls"}))
                .and_calls("read", json!({"file": "a"}))
                .and_calls("read", json!("a"))
                .and_calls("edit", json!({"path": "a", "old": "2", "new": "3"})),
            Turn::calls("edit", json!({"path": "a", "old": "1", "new": "2"})),
            Turn::says("done"),
        ]);
        assert_eq!(told.message(), "done");
        assert_eq!(desk.read("a"), "2\n");
        let errors = told.results().iter().filter(|result| result.starts_with("error: ")).count();
        assert_eq!(errors, 4, "{:#?}", told.results());
        // The model hears of it.
        let heard = &stub.asked()[1].request.tool_results;
        assert!(heard[0].contains("there is no tool `shell`"), "{heard:#?}");
        let sign = &stub.requests()[1].body["messages"];
        assert!(sign.to_string().contains(if provider == Provider::Anthropic {
            "is_error\":true"
        } else {
            "error: "
        }));
    }
}

#[test]
fn a_command_does_not_see_the_key() {
    let mut desk = Desk::new(Provider::OpenAi);
    // Set for every test by cargo.
    let value = std::env::var("CARGO_PKG_NAME").unwrap();
    desk.settings.key = wiggum_api_agent::Key::Found { variable: "CARGO_PKG_NAME".to_owned(), value };
    let (told, _stub) =
        desk.work([Turn::calls("run", json!({"command": "echo \"[$CARGO_PKG_NAME]\""})), Turn::says("done")]);
    assert_eq!(told.results(), ["[]\n[exit code 0]"]);
}
