//! How each family is started, and where it leaves its traces.

use std::path::Path;

use wiggum_agents::{
    AgentSpec, Assignment, CommandText, Driver, Family, Login, McpServer, Session, Unpriced,
};
use wiggum_core::budget::Ceiling;
use wiggum_core::price::Prices;

fn spec(family: Family) -> AgentSpec {
    AgentSpec::new(family)
}

/// The start as one line.
fn line(spec: AgentSpec, session: Session<'_>) -> String {
    let assignment = Assignment {
        prompt: "do it",
        prompt_file: Path::new("/state/prompt.md"),
        wiggum: Path::new("/opt/my wiggum"),
        session,
        model: None,
        mcp: None,
        ceiling: Ceiling::default(),
        prices: None,
    };
    let invocation = Family::driver(spec).invocation(&assignment);
    let CommandText::Program { program, mut arguments } = invocation.command else {
        panic!("agents are programs")
    };
    let prompt =
        if arguments.iter().any(|word| word == "/state/prompt.md") { None } else { Some(b"do it".to_vec()) };
    assert_eq!(invocation.stdin, prompt);
    arguments.insert(0, program);
    // What every start has, and the last test is about.
    arguments.join(" ").replace(CLAUDE_NUDGES, "").replace(CODEX_NUDGES, "")
}

const CLAUDE_NUDGES: &str = concat!(
    r#" --settings {"hooks":{"PostToolUse":[{"hooks":[{"command":"'/opt/my wiggum' hook nudge","#,
    r#""timeout":10,"type":"command"}]}]}}"#
);
const CODEX_NUDGES: &str = concat!(
    r#" --dangerously-bypass-hook-trust -c hooks.PostToolUse=[{hooks=[{type="command","#,
    r#"command="'/opt/my wiggum' hook nudge",timeout=10}]}]"#
);

#[track_caller]
fn check(family: Family, session: Session<'_>, expected: &str) {
    assert_eq!(line(spec(family), session), expected);
}

const ID: &str = "5f1c7a52-3a3c-4d0e-9a53-0d6f1f1f2a99";

#[test]
fn a_fresh_start_is_unattended_and_tells_what_it_does() {
    check(
        Family::Claude,
        Session::Fresh,
        "claude -p --output-format stream-json --verbose --dangerously-skip-permissions",
    );
    check(
        Family::Codex,
        Session::Fresh,
        "codex exec --json --skip-git-repo-check --sandbox workspace-write -",
    );
    check(Family::Gemini, Session::Fresh, "gemini --output-format stream-json --yolo");
    check(Family::Copilot, Session::Fresh, "copilot --output-format json --no-ask-user --allow-all-tools");
    check(
        Family::Opencode,
        Session::Fresh,
        "opencode run --format json --print-logs --log-level ERROR --auto",
    );
    check(
        Family::Aider,
        Session::Fresh,
        "aider --yes-always --no-stream --no-pretty --no-check-update --no-show-release-notes --no-detect-urls \
         --no-auto-commits --no-dirty-commits --message-file /state/prompt.md",
    );
    check(Family::Amp, Session::Fresh, "amp --execute --stream-json --dangerously-allow-all");
}

#[test]
fn sessions_are_named_and_continued_where_the_agent_can() {
    let start = "claude -p --output-format stream-json --verbose --dangerously-skip-permissions";
    check(Family::Claude, Session::Named(ID), &format!("{start} --session-id {ID}"));
    check(Family::Claude, Session::Continued(ID), &format!("{start} --resume {ID}"));
    let start = "codex exec --json --skip-git-repo-check --sandbox workspace-write";
    check(Family::Codex, Session::Named(ID), &format!("{start} -"));
    check(Family::Codex, Session::Continued(ID), &format!("{start} resume {ID} -"));
    let start = "gemini --output-format stream-json --yolo";
    check(Family::Gemini, Session::Named(ID), &format!("{start} --session-id {ID}"));
    check(Family::Gemini, Session::Continued(ID), &format!("{start} --resume {ID}"));
    let start = "copilot --output-format json --no-ask-user --allow-all-tools";
    check(Family::Copilot, Session::Named(ID), &format!("{start} --session-id {ID}"));
    check(Family::Copilot, Session::Continued(ID), &format!("{start} --resume={ID}"));
    let start = "opencode run --format json --print-logs --log-level ERROR --auto";
    check(Family::Opencode, Session::Named(ID), start);
    check(Family::Opencode, Session::Continued("ses_1"), &format!("{start} --session ses_1"));
    let start = "--execute --stream-json --dangerously-allow-all";
    check(Family::Amp, Session::Continued("T-1"), &format!("amp threads continue T-1 {start}"));
}

#[test]
fn what_is_configured_counts() {
    let mut claude = spec(Family::Claude);
    claude.program = Some("/opt/claude".to_owned());
    claude.model = Some("opus".to_owned());
    claude.args = vec!["--permission-mode=acceptEdits".to_owned(), "--max-turns".to_owned(), "9".to_owned()];
    assert_eq!(
        line(claude.clone(), Session::Fresh),
        "/opt/claude -p --output-format stream-json --verbose --model opus --permission-mode=acceptEdits \
         --max-turns 9"
    );
    claude.name = "careful".to_owned();
    assert_eq!(Family::driver(claude).describe(), "careful: claude (opus)");
    assert_eq!(Family::driver(spec(Family::Codex)).describe(), "codex");
}

#[test]
fn codex_needs_no_sandbox_within_ours_and_is_left_the_one_it_is_given() {
    let sandboxed = AgentSpec { sandboxed: true, ..spec(Family::Codex) };
    assert_eq!(
        line(sandboxed, Session::Fresh),
        "codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -"
    );
    let args = vec!["--sandbox".to_owned(), "read-only".to_owned()];
    let own = AgentSpec { args, sandboxed: true, ..spec(Family::Codex) };
    assert_eq!(line(own, Session::Fresh), "codex exec --json --skip-git-repo-check --sandbox read-only -");
}

#[test]
fn the_built_in_agent_is_this_very_program() {
    check(Family::Api, Session::Fresh, "/opt/my wiggum api-agent");
    check(Family::Api, Session::Named(ID), &format!("/opt/my wiggum api-agent --session {ID}"));
    check(Family::Api, Session::Continued(ID), &format!("/opt/my wiggum api-agent --resume {ID}"));
    let args = vec!["--provider=ollama".to_owned()];
    let api = AgentSpec { model: Some("m".to_owned()), args, ..spec(Family::Api) };
    assert_eq!(line(api, Session::Fresh), "/opt/my wiggum api-agent --model m --provider=ollama");
}

#[test]
fn configured_variables_replace_the_drivers() {
    let mut claude = spec(Family::Claude);
    claude.env = vec![("CLAUDE_CODE_MAX_RETRIES".to_owned(), "9".to_owned())];
    claude.env.push(("CLAUDE_CONFIG_DIR".to_owned(), "/elsewhere".to_owned()));
    let driver = Family::driver(claude);
    let assignment = Assignment {
        prompt: "",
        prompt_file: Path::new(""),
        wiggum: Path::new(""),
        session: Session::Fresh,
        model: None,
        mcp: None,
        ceiling: Ceiling::default(),
        prices: None,
    };
    let env = driver.invocation(&assignment).env;
    let retries: Vec<&str> = env
        .iter()
        .filter(|(name, _)| name == "CLAUDE_CODE_MAX_RETRIES")
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(retries, ["9"]);
    assert!(driver.own_paths().iter().any(|path| path == Path::new("/elsewhere")));
}

#[test]
fn families_are_found_by_their_names() {
    for family in Family::ALL {
        assert_eq!(Family::from_name(family.name()), Some(family));
        let driver = Family::driver(spec(family));
        if family.is_built_in() {
            // Which key is meant for it is up to its provider.
            assert!(driver.secrets().is_empty(), "{family:?}");
            continue;
        }
        assert!(!driver.own_paths().is_empty() && !driver.secrets().is_empty(), "{family:?}");
    }
    assert_eq!(Family::from_name("nonesuch"), None);
}

#[test]
fn a_login_is_known_by_its_variable_or_file() {
    let home = tempfile::tempdir().unwrap();
    let none = |_: &str| None;
    let codex = || Family::Codex.login(&none, home.path());
    assert!(matches!(codex(), Login::NotLoggedIn(hint) if hint.contains("codex login")));
    let key = |name: &str| (name == "CODEX_API_KEY").then(|| "k".to_owned());
    assert_eq!(Family::Codex.login(&key, home.path()), Login::LoggedIn("CODEX_API_KEY is set".to_owned()));
    let empty = |name: &str| (name == "CODEX_API_KEY").then(String::new);
    assert!(matches!(Family::Codex.login(&empty, home.path()), Login::NotLoggedIn(_)));
    std::fs::create_dir(home.path().join(".codex")).unwrap();
    std::fs::write(home.path().join(".codex/auth.json"), "{}").unwrap();
    assert!(matches!(codex(), Login::LoggedIn(how) if how.ends_with(".codex/auth.json is there")));
    let moved = |name: &str| (name == "CODEX_HOME").then(|| "/nowhere".to_owned());
    assert!(matches!(Family::Codex.login(&moved, home.path()), Login::NotLoggedIn(_)));
    assert_eq!(Family::Copilot.login(&none, home.path()), Login::Unknown);
}

#[test]
fn the_key_that_codex_names_in_its_settings_is_its_login() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".codex")).unwrap();
    let settings = "model_provider = \"own\"\n[model_providers.own]\nenv_key = \"OWN_KEY\"\n";
    std::fs::write(home.path().join(".codex/config.toml"), settings).unwrap();
    let login = |variable: &str| {
        let env = |name: &str| (name == variable).then(|| "k".to_owned());
        Family::Codex.login(&env, home.path())
    };
    assert_eq!(login("OWN_KEY"), Login::LoggedIn("OWN_KEY is set".to_owned()));
    let missing = Login::NotLoggedIn("set OWN_KEY, which its settings name for the key".to_owned());
    assert_eq!(login("NOTHING"), missing);
    // That of another provider is of no use there.
    assert_eq!(login("CODEX_API_KEY"), missing);
}

#[test]
fn agents_with_hooks_can_be_spoken_to() {
    let start = |spec: AgentSpec| {
        let assignment = Assignment {
            prompt: "",
            prompt_file: Path::new(""),
            wiggum: Path::new("/opt/my wiggum"),
            session: Session::Fresh,
            model: None,
            mcp: None,
            ceiling: Ceiling::default(),
            prices: None,
        };
        let driver = Family::driver(spec);
        let CommandText::Program { arguments, .. } = driver.invocation(&assignment).command else { panic!() };
        (format!(" {}", arguments.join(" ")), driver.abilities().nudge)
    };
    let (line, heard) = start(spec(Family::Claude));
    assert!(line.contains(CLAUDE_NUDGES) && heard, "{line}");
    let (line, heard) = start(AgentSpec {
        args: vec!["--settings".to_owned(), "mine.json".to_owned()],
        ..spec(Family::Claude)
    });
    assert!(!line.contains("nudge") && !heard, "{line}");
    // Without our sandbox, trusting our hook would be trusting those of the repository.
    let (line, heard) = start(spec(Family::Codex));
    assert!(!line.contains("hook") && !heard, "{line}");
    let (line, heard) = start(AgentSpec { sandboxed: true, ..spec(Family::Codex) });
    assert!(line.contains(CODEX_NUDGES) && heard, "{line}");
}

#[test]
fn the_model_of_a_task_goes_before_that_of_the_agent() {
    let families = [
        Family::Claude,
        Family::Codex,
        Family::Gemini,
        Family::Copilot,
        Family::Opencode,
        Family::Aider,
        Family::Api,
    ];
    for family in families {
        let mut spec = AgentSpec::new(family);
        spec.model = Some("the-agents".to_owned());
        let assignment = Assignment {
            prompt: "",
            prompt_file: Path::new(""),
            wiggum: Path::new(""),
            session: Session::Fresh,
            model: Some("the-tasks"),
            mcp: None,
            ceiling: Ceiling::default(),
            prices: None,
        };
        let CommandText::Program { arguments, .. } = Family::driver(spec).invocation(&assignment).command
        else {
            panic!("a program was expected");
        };
        assert!(arguments.iter().any(|word| word.contains("the-tasks")), "{family:?}: {arguments:?}");
        assert!(arguments.iter().all(|word| !word.contains("the-agents")), "{family:?}: {arguments:?}");
    }
}

/// Who can be handed a server is told of it in full, also of its environment; nobody else is told anything.
#[test]
fn a_server_of_tools_is_handed_over_where_that_is_possible() {
    let server = McpServer {
        program: "/opt/my wiggum".into(),
        arguments: vec!["mcp".to_owned(), "serve".to_owned()],
        env: vec![("WIGGUM_ATTEMPT".to_owned(), "2".to_owned())],
    };
    for family in Family::ALL {
        let words = |mcp: Option<&McpServer>| {
            let assignment = Assignment {
                prompt: "do it",
                prompt_file: Path::new("/state/prompt.md"),
                wiggum: Path::new("/opt/my wiggum"),
                session: Session::Fresh,
                model: None,
                mcp,
                ceiling: Ceiling::default(),
                prices: None,
            };
            match Family::driver(spec(family)).invocation(&assignment).command {
                CommandText::Program { arguments, .. } => arguments,
                CommandText::Line { .. } => panic!("agents are programs"),
            }
        };
        let (without, with) = (words(None), words(Some(&server)));
        let new: Vec<&String> = with.iter().filter(|word| !without.contains(word) && *word != "-c").collect();
        let json = r#"{"mcpServers":{"wiggum":{"args":["mcp","serve"],"command":"/opt/my wiggum","#;
        match family {
            Family::Claude => {
                assert!(new[0].contains(r#""permissions":{"allow":["mcp__wiggum"]}"#), "{new:?}");
                assert_eq!(new[1], "--mcp-config");
                assert_eq!(*new[2], format!(r#"{json}"env":{{"WIGGUM_ATTEMPT":"2"}}}}}}}}"#));
            }
            Family::Codex => assert_eq!(
                new,
                [
                    r#"mcp_servers.wiggum.command="/opt/my wiggum""#,
                    r#"mcp_servers.wiggum.args=["mcp","serve"]"#,
                    r#"mcp_servers.wiggum.env={WIGGUM_ATTEMPT="2"}"#,
                ]
            ),
            Family::Copilot => {
                assert_eq!(new[0], "--additional-mcp-config");
                assert!(new[1].starts_with(json) && new[1].contains(r#""tools":["*"]"#), "{new:?}");
            }
            Family::Gemini | Family::Opencode | Family::Aider | Family::Amp | Family::Api => {
                assert!(new.is_empty(), "{new:?}");
            }
        }
        assert_eq!(family.abilities().mcp, !new.is_empty());
    }
}

/// The arguments of a start with this ceiling.
fn bounded(spec: AgentSpec, ceiling: Ceiling, prices: Option<Prices>) -> String {
    let assignment = Assignment {
        prompt: "do it",
        prompt_file: Path::new("/state/prompt.md"),
        wiggum: Path::new("/opt/my wiggum"),
        session: Session::Fresh,
        model: None,
        mcp: None,
        ceiling,
        prices,
    };
    match Family::driver(spec).invocation(&assignment).command {
        CommandText::Program { arguments, .. } => arguments.join(" "),
        CommandText::Line { .. } => panic!("agents are programs"),
    }
}

#[test]
fn who_can_be_bounded_is_told_what_it_may_use() {
    let ceiling = Ceiling { cost_usd: Some(0.1), tokens: Some(5000) };
    let prices = Prices { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };
    for family in Family::ALL {
        let line = bounded(spec(family), ceiling, Some(prices));
        let abilities = Family::driver(spec(family)).abilities();
        match family {
            Family::Claude => assert!(line.ends_with(" --max-budget-usd 0.100000"), "{line}"),
            Family::Api => assert_eq!(
                line,
                "api-agent --max-cost=0.1 --max-tokens=5000 --price=input=3 --price=output=15 \
                 --price=cache_read=0.3 --price=cache_write=3.75"
            ),
            Family::Codex
            | Family::Gemini
            | Family::Copilot
            | Family::Opencode
            | Family::Aider
            | Family::Amp => {
                assert_eq!(line, bounded(spec(family), Ceiling::default(), None));
                assert!(!abilities.bounds_cost && !abilities.bounds_tokens, "{family:?}");
            }
        }
    }
    // Never nothing, which would be no limit at all, and never in a form that is no number to it.
    let tiny = Ceiling { cost_usd: Some(1e-12), tokens: None };
    assert!(bounded(spec(Family::Claude), tiny, None).ends_with(" --max-budget-usd 0.000001"));
}

#[test]
fn what_its_user_says_about_its_budget_and_prices_stays() {
    let ceiling = Ceiling { cost_usd: Some(0.1), tokens: None };
    let with = |family: Family, args: &[&str]| {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        AgentSpec { args, ..spec(family) }
    };
    for args in [&["--max-budget-usd", "9"][..], &["--max-budget-usd=9"]] {
        let own = with(Family::Claude, args);
        let line = bounded(own.clone(), ceiling, None);
        assert_eq!(line.matches("--max-budget-usd").count(), 1, "{line}");
        assert!(!Family::driver(own).abilities().bounds_cost);
    }
    assert!(Family::driver(spec(Family::Claude)).abilities().bounds_cost);
    let prices = Prices { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };
    let line = bounded(with(Family::Api, &["--price=input=1", "--price=output=2"]), ceiling, Some(prices));
    assert!(line.ends_with("--max-cost=0.1 --price=input=1 --price=output=2"), "{line}");
}

#[test]
fn who_will_have_no_price_is_known_beforehand() {
    let own =
        [("mine".to_owned(), Prices { input: 0.0, output: 0.0, cache_read: 0.0, cache_write: 0.0 })].into();
    let unpriced = |family: Family, model: Option<&str>, args: &[&str]| {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        let driver = Family::driver(AgentSpec { model: model.map(str::to_owned), args, ..spec(family) });
        driver.abilities().unpriced(driver.model(), &own)
    };
    let no_price = |model: &str| Some(Unpriced::NoPrice { model: model.to_owned() });
    for (family, model, args, expected) in [
        // They tell their cost, whatever the model.
        (Family::Claude, Some("unheard-of"), &[][..], None),
        (Family::Opencode, None, &[], None),
        (Family::Aider, Some("unheard-of"), &[], None),
        // It tells tokens only, and never which model they are of.
        (Family::Codex, None, &[], Some(Unpriced::NoModel)),
        (Family::Codex, Some("gpt-5.5"), &[], None),
        (Family::Codex, Some("unheard-of"), &[], no_price("unheard-of")),
        (Family::Codex, Some("mine"), &[], None),
        // It will tell its model, which may have a price.
        (Family::Gemini, None, &[], None),
        (Family::Gemini, Some("gemini-2.5-pro"), &[], None),
        (Family::Gemini, Some("unheard-of"), &[], no_price("unheard-of")),
        (Family::Copilot, Some("gpt-5.5"), &[], Some(Unpriced::NoFigures)),
        (Family::Api, Some("qwen3-coder"), &[], no_price("qwen3-coder")),
        (Family::Api, Some("qwen3-coder"), &["--price=input=0", "--price=output=0"], None),
    ] {
        assert_eq!(unpriced(family, model, args), expected, "{family:?} {model:?}");
    }
    // Its own settings name a model, which it is not told again.
    let settled = AgentSpec { settings_model: Some("gpt-5.5".to_owned()), ..spec(Family::Codex) };
    let driver = Family::driver(settled);
    assert_eq!(driver.abilities().unpriced(driver.model(), &own), None);
    let command = wiggum_agents::CommandAgent {
        line: "claude -p".to_owned(),
        prompt_via: wiggum_agents::PromptVia::Stdin,
    };
    assert_eq!(command.abilities().unpriced(None, &own), Some(Unpriced::NoFigures));
}
