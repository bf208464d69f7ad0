//! When it is fine that a process ends: for failures, where a file is run rather than imported, where a user asked
//! for it, and in functions that are called for that.

use super::loading::compact;

/// Is a function that is given here run without anybody calling for it?
pub(super) fn runs_soon(statement: &str) -> bool {
    let statement = compact(statement);
    let starts = [
        "setTimeout(",
        "setImmediate(",
        "queueMicrotask(",
        "process.nextTick(",
        "Promise.",
        "process.on(\"exit\"",
        "process.once(\"exit\"",
        "process.on(\"beforeExit\"",
        "process.once(\"beforeExit\"",
    ];
    starts.iter().any(|start| statement.starts_with(start))
        || statement.starts_with('[') && statement.contains("].forEach(")
        || statement.starts_with("((") && statement.contains("=>")
}

/// `require.main === module` and what says the same.
pub(super) fn is_run_as_script(condition: &str) -> bool {
    let forms = [
        "require.main===module",
        "require.main==module",
        "module===require.main",
        "import.meta.main",
        "!module.parent",
        "!isMainThread",
    ];
    let is_same = condition.contains("import.meta") && condition.contains("argv") && !condition.contains('!');
    !condition.contains("!import.meta.main") && (is_same || forms.iter().any(|form| condition.contains(form)))
}

/// `process.argv[2] === "--version"`, `os.Getenv("MODE") == "child"`: what a runner of tests does not give.
pub(super) fn is_asked_by_user(condition: &str, module: &str) -> bool {
    let gives = ["argv", "env.", "env[", "Args", "Getenv("];
    let is_input = gives.iter().any(|name| condition.contains(&format!("{module}{name}")));
    let asks = ["==\"", "includes(\"", "has(\""].iter().any(|form| {
        condition.match_indices(form).any(|(at, _)| !condition[at + form.len()..].starts_with('"'))
    });
    let lower = condition.to_lowercase();
    let is_of_tests = ["test", "wiggum", "npm_"].iter().any(|word| lower.contains(word));
    let is_choice = condition.starts_with("switch");
    is_input && (asks || is_choice) && !is_of_tests && !condition.contains('!')
}

/// Does the process end with success?
pub(super) fn is_success(end: &str, arguments: &str) -> bool {
    let code = arguments.split([')', ',', ';']).next().unwrap_or_default();
    let has_no_code = ["abort(", "pid", "Exec("].iter().any(|text| end.ends_with(text));
    has_no_code || matches!(code, "" | "0" | "undefined" | "null" | "false" | "\"0\"" | "+false" | "0x0")
}

/// Is it possible that the process ends with success?
pub(super) fn may_succeed(end: &str, arguments: &str) -> bool {
    is_success(end, arguments) || !arguments.starts_with(|c: char| c.is_ascii_digit() || c == '-')
}

/// Is this a function of which nobody expects anything else?
pub(super) fn speaks_of_ending(name: &str) -> bool {
    const WORDS: [&str; 14] = [
        "exit",
        "quit",
        "stop",
        "end",
        "die",
        "kill",
        "abort",
        "shutdown",
        "terminate",
        "close",
        "halt",
        "bail",
        "leave",
        "finish",
    ];
    let name = name.to_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}
