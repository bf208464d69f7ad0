//! The user's secrets: an agent is not given those of others, and what it prints of those it knows is in nothing
//! that is kept or shown, however it is written.
//!
//! The control of an attack is what the agent really printed: each of them is read back to the secret.

use std::fs;
use std::path::Path;

use super::support::Sandbox;

/// With quotes, a backslash, markup and a letter of several bytes, as generated passwords have them.
const PASSWORD: &str = "hun\"t<e>r&2\\'é/%x";
const TOKEN: &str = "tok-5f7a9c1e3b2d4f60";

/// How an agent may tell them, as a program in Python that has both.
const WAYS: [(&str, &str); 14] = [
    ("as it is", "p"),
    ("JSON", "json.dumps(p)"),
    ("JSON in JSON", "json.dumps(json.dumps({'key': p}))"),
    ("letters by number", "''.join('\\\\u%04x' % ord(c) for c in p)"),
    ("HTML", "html.escape(p)"),
    ("HTML by number", "''.join('&#%d;' % ord(c) for c in t)"),
    ("an address", "urllib.parse.quote(p, safe='')"),
    ("every letter of an address", "''.join('%%%02X' % b for b in t.encode())"),
    ("colours", "'\\x1b[31m'.join(t)"),
    ("base64", "base64.b64encode(('x' + t).encode()).decode()"),
    ("base64 for addresses", "base64.urlsafe_b64encode(('user:' + p).encode()).decode()"),
    ("base64 in lines", "base64.encodebytes((t * 3).encode()).decode()"),
    ("hexadecimal", "t.encode().hex()"),
    ("HEXADECIMAL", "p.encode().hex(':').upper()"),
];

/// A text from which all ways but the encodings are taken back, and which is then searched for what is left.
fn holds_secret(text: &str) -> Option<String> {
    let script = r"
import sys, re, html, json, base64, urllib.parse, os
p, t = os.environ['P'], os.environ['T']
text = sys.stdin.read()
seen = [text]
for _ in range(4):
    text = re.sub(r'\x1b\[[0-9;]*[A-Za-z]', '', text)
    text = re.sub(r'\\u([0-9a-fA-F]{4})', lambda m: chr(int(m[1], 16)), text)
    text = urllib.parse.unquote(html.unescape(text))
    text = re.sub(r'\\(.)', r'\1', text)
    seen.append(text)
flat = [re.sub(r'[\s:]', '', s) for s in seen] + seen
for s in list(flat):
    for run in re.findall(r'[A-Za-z0-9+/_-]{12,}', s):
        run = run.replace('-', '+').replace('_', '/')
        for cut in range(4):
            part = run[cut:]
            try: flat.append(base64.b64decode(part + '=' * (-len(part) % 4)).decode('utf8', 'replace'))
            except Exception: pass
    for run in re.findall(r'[0-9a-fA-F]{16,}', s):
        try: flat.append(bytes.fromhex(run[:len(run) // 2 * 2]).decode('utf8', 'replace'))
        except Exception: pass
for secret in (p, t):
    # Most of it is as good as all of it.
    for part in (secret, secret[1:-1], secret.replace('\\', '')):
        if any(part in s for s in flat): print(part)
";
    let sandbox = Sandbox::plain();
    let file = sandbox.base().join("text");
    fs::write(&file, text).unwrap();
    let mut command = sandbox.command("python3");
    command.args(["-c", script]).env("P", PASSWORD).env("T", TOKEN).stdin(fs::File::open(file).unwrap());
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let found = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    (!found.is_empty()).then_some(found)
}

fn sandbox() -> Sandbox {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.env("MY_DB_PASSWORD", PASSWORD);
    sandbox.env("DEPLOY_TOKEN", TOKEN);
    sandbox
}

/// Everything that is kept of a run or shown of it.
fn all_that_is_told(sandbox: &Sandbox, run: &str) -> Vec<(&'static str, String)> {
    let mut told = vec![("the terminal", run.to_owned())];
    let journal: Vec<String> =
        sandbox.journal().iter().map(|envelope| serde_json::to_string(envelope).unwrap()).collect();
    told.push(("the journal", journal.join("\n")));
    for (name, args) in [
        ("show", &["show", "1"][..]),
        ("show --json", &["show", "1", "--json"]),
        ("events", &["events", "--json"]),
        ("report --json", &["report", "--json"]),
        ("status", &["status", "--json"]),
    ] {
        let run = sandbox.wiggum(args);
        told.push((name, format!("{}\n{}", run.stdout, run.stderr)));
    }
    let page = sandbox.base().join("page.html");
    sandbox.wiggum(&["report", "--html", page.to_str().unwrap()]).exits(0);
    told.push(("report --html", fs::read_to_string(page).unwrap()));
    told.push(("files of the state", files_below(sandbox.state_dir().path())));
    told.push(("files of the workspace", files_below(&sandbox.root.join(".wiggum"))));
    told
}

/// All files below a directory, transcripts unpacked.
fn files_below(directory: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&files_below(&path));
        } else if path.to_string_lossy().ends_with(".zst") {
            for line in wiggum_store::transcript::read(&path).unwrap() {
                text.push_str(&format!("{line:?}\n"));
            }
        } else {
            text.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()));
        }
    }
    text
}

#[test]
fn no_way_of_writing_a_secret_is_told() {
    let mut program = String::from("import json, html, urllib.parse, base64, os\n");
    program.push_str("p, t = os.environ['SEEN_P'], os.environ['SEEN_T']\n");
    for (name, way) in WAYS {
        program.push_str(&format!("print('{name}:', {way}, '.')\n"));
    }
    let sandbox = sandbox();
    fs::write(sandbox.base().join("ways.py"), &program).unwrap();
    fs::write(sandbox.base().join("p"), PASSWORD).unwrap();
    fs::write(sandbox.base().join("t"), TOKEN).unwrap();
    // It has no such variables, and found the values elsewhere.
    let tell = "SEEN_P=$(cat $SANDBOX/p) SEEN_T=$(cat $SANDBOX/t) python3 $SANDBOX/ways.py";
    for (_, way) in WAYS {
        let control = format!(
            "import json, html, urllib.parse, base64, os\np, t = os.environ['P'], os.environ['T']\nprint({way})"
        );
        let mut command = sandbox.command("python3");
        let out = command.args(["-c", &control]).env("P", PASSWORD).env("T", TOKEN).output().unwrap();
        let said = String::from_utf8(out.stdout).unwrap();
        assert!(holds_secret(&said).is_some(), "the control does not find it: {said}");
    }
    let agent = format!(
        "{tell}; {tell} >&2; touch \"$(cat $SANDBOX/t).txt\"; git checkout -q -b \"work-$(cat $SANDBOX/t)\"\n\
         echo fine > A.txt; claim"
    );
    let check = format!("{tell}; false");
    let run = sandbox.run(&agent, &["--max-iterations", "2", "--sandbox", "none", "--verify", &check]);
    for (place, text) in all_that_is_told(&sandbox, &format!("{}\n{}", run.stdout, run.stderr)) {
        assert_eq!(holds_secret(&text), None, "{place}");
    }
}

#[test]
fn a_key_in_several_lines_is_not_told() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let lines: Vec<String> =
        (0..6).map(|line| format!("MIIEowIBAAKCAQEA{line}{}", "x1Y2z3".repeat(8))).collect();
    let key =
        format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n", lines.join("\n"));
    fs::write(sandbox.base().join("key.pem"), key).unwrap();
    let tell = "cat $SANDBOX/key.pem; while read line; do echo \"$line\"; done < $SANDBOX/key.pem";
    let agent = format!("{tell}; {tell} >&2; echo fine > A.txt; claim");
    let check = format!("{tell}; cat -n $SANDBOX/key.pem; false");
    let run = sandbox.run(&agent, &["--max-iterations", "1", "--sandbox", "none", "--verify", &check]);
    for (place, text) in all_that_is_told(&sandbox, &format!("{}\n{}", run.stdout, run.stderr)) {
        assert!(!text.contains("MIIEowIBAAKCAQEA"), "{place}: {text}");
    }
}

#[test]
fn an_agent_is_not_given_what_is_not_its_own() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    let withheld = [
        ("DATABASE_URL", "postgres://localhost/app"),
        ("SMTP_PASS", "x1"),
        ("MYSQL_PWD", "x2"),
        ("NPM_AUTH", "x3"),
        ("CACHE", "redis://:pw@cache:6379"),
        ("BROKER", "amqps://ann:pw@mq/x"),
        ("PIP_INDEX_URL", "https://ann:pw@pypi.example/simple"),
    ];
    let passed = [
        ("COMPASS", "north"),
        ("GIT_AUTHOR_NAME", "Ann"),
        ("REQUIRE_AUTH", "true"),
        ("SSH_AUTH_SOCK", "/run/user/1000/ssh"),
        ("XAUTHORITY", "/run/user/1000/xauth"),
        ("OLD_PWD", "/src/app"),
        ("HOMEPAGE", "https://example.com/@ann"),
        ("HTTPS_PROXY", "http://ann:pw@proxy:8080"),
    ];
    for (name, value) in withheld.into_iter().chain(passed) {
        sandbox.env(name, value);
    }
    sandbox.run("env > \"$SANDBOX/env\"; echo fine > A.txt; claim", &["--sandbox", "none"]).exits(0);
    let seen = fs::read_to_string(sandbox.base().join("env")).unwrap();
    for (name, _) in withheld {
        assert!(!seen.lines().any(|line| line.starts_with(&format!("{name}="))), "{name}");
    }
    for (name, value) in passed {
        assert!(seen.lines().any(|line| line == format!("{name}={value}")), "{name}");
    }
}
