//! Every view as text, at three sizes, with hostile words in it: compared with what is kept beside this file.
//! `WIGGUM_BLESS=1` keeps what is drawn now.
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod scene;

use std::fs;
use std::path::Path;

use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier};
use scene::{hostile, scene};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (300, 80)];

/// What is pressed to get there, and how the picture is called.
const VIEWS: [(&str, &str); 12] = [
    ("1", "tasks"),
    ("2", "graph"),
    ("3", "output"),
    ("3 o", "output-open"),
    ("4", "attempt"),
    ("4 d", "attempt-diff"),
    ("5", "timeline"),
    ("5 v", "events"),
    ("6", "figures"),
    ("7", "inbox"),
    ("8", "loops"),
    ("i", "answer"),
];

#[test]
fn every_view_looks_as_it_did() {
    let mut wrong = Vec::new();
    for (keys, name) in VIEWS {
        for (width, height) in SIZES {
            let mut mirror = scene(true);
            mirror.draw(width, height);
            mirror.press(keys);
            mirror.draw(width, height);
            wrong.extend(compare(&format!("{name}-{width}x{height}"), &text(&mirror.draw(width, height))));
        }
    }
    for (keys, name) in
        [("?", "help"), ("S", "stop"), ("u", "nudge"), ("a", "add"), ("e", "edit"), ("/", "search")]
    {
        let mut mirror = scene(true);
        mirror.draw(80, 24);
        // The task at work cannot be edited, the one below it can.
        mirror.press(if name == "edit" { "j j j" } else { "1" });
        mirror.press(keys);
        wrong.extend(compare(&format!("{name}-80x24"), &text(&mirror.draw(80, 24))));
    }
    let mut small = scene(true);
    wrong.extend(compare("tasks-60x14", &text(&small.draw(60, 14))));
    wrong.extend(compare("too-small", &text(&small.draw(30, 6))));
    assert!(wrong.is_empty(), "these differ: {wrong:?}; WIGGUM_BLESS=1 keeps them as they are now");
}

#[test]
fn hostile_words_stay_words() {
    for (keys, _) in VIEWS {
        for (width, height) in SIZES {
            let mut mirror = hostile();
            mirror.press(keys);
            let buffer = mirror.draw(width, height);
            for cell in buffer.content() {
                let bad = |c: char| {
                    c.is_control()
                        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
                };
                assert!(!cell.symbol().contains(bad), "{keys}: {:?}", cell.symbol());
                assert!(cell.symbol().chars().count() <= 3, "{keys}: {:?}", cell.symbol());
            }
        }
    }
    let mut mirror = hostile();
    mirror.press("3 o");
    let shown = text(&mirror.draw(120, 40));
    assert!(shown.contains("red text and a title"), "the words themselves are there:\n{shown}");
}

#[test]
fn without_colour_nothing_is_coloured_and_nothing_is_lost() {
    for (keys, name) in VIEWS {
        let (mut with, mut without) = (scene(true), scene(false));
        with.press(keys);
        without.press(keys);
        let (with, without) = (with.draw(120, 40), without.draw(120, 40));
        assert_eq!(text(&with), text(&without), "{name}");
        let coloured = |buffer: &Buffer| {
            buffer.content().iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
        };
        assert!(!coloured(&without), "{name}");
        assert!(coloured(&with), "{name}");
    }
}

#[test]
fn colours_are_those_of_every_terminal_and_no_background_is_assumed() {
    let usual = [Color::Reset, Color::Red, Color::Green, Color::Yellow, Color::Cyan];
    for (keys, name) in VIEWS {
        let mut mirror = scene(true);
        mirror.press(keys);
        for cell in mirror.draw(120, 40).content() {
            assert!(usual.contains(&cell.fg) && cell.bg == Color::Reset, "{name}: {cell:?}");
        }
    }
}

#[test]
fn a_question_stands_out_wherever_one_looks() {
    for (keys, name) in VIEWS.iter().filter(|(_, name)| *name != "answer") {
        let mut mirror = scene(false);
        mirror.press(keys);
        let buffer = mirror.draw(80, 24);
        let line: String = (0..80).map(|x| buffer[(x, 2)].symbol()).collect();
        assert!(line.contains("? q1  i answers  parser: Which date format?"), "{name}: {line}");
        assert!(buffer[(3, 2)].modifier.contains(Modifier::REVERSED | Modifier::BOLD), "{name}");
    }
}

#[test]
fn ten_thousand_tasks_are_drawn_as_quickly_as_ten() {
    let mut mirror = scene::crowd(10_000);
    for keys in ["1", "G", "g", "2", "G", "6", "/"] {
        mirror.press(keys);
        mirror.draw(300, 80);
    }
    mirror.type_text("task 9999");
    mirror.press("Enter 1");
    let shown = text(&mirror.draw(120, 40));
    assert!(shown.contains("T9999") && shown.contains("1 all with `task 9999`"), "{shown}");
}

#[test]
fn skipped_is_not_done_and_blocked_is_not_running() {
    let shown = text(&scene::blocked().draw(120, 40));
    let first = shown.lines().next().unwrap();
    assert!(first.contains("waits for a person") && !first.contains("running"), "{first}");
    assert!(first.contains(" 0/2"), "{first}");
}

#[test]
fn nobody_is_shown_at_work_without_an_engine() {
    let mut mirror = scene::killed();
    let shown = text(&mirror.draw(120, 40));
    assert!(shown.contains("1 interrupted") && shown.contains("‖ A   one"), "{shown}");
    assert!(!shown.contains("running") && !shown.contains('▶'), "{shown}");
    mirror.press("j");
    let shown = text(&mirror.draw(120, 40));
    assert!(shown.contains("waits on A (interrupted)"), "{shown}");
}

#[test]
fn a_skipped_task_is_not_complete() {
    let shown = text(&scene::done_but_for_one().draw(120, 40));
    assert!(shown.contains("✓ Nothing left to do: 1 done, 1 skipped"), "{shown}");
    assert!(!shown.contains("All tasks complete"), "{shown}");
}

fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut text = String::new();
    for y in 0..area.height {
        let mut row = String::new();
        let mut x = 0;
        while x < area.width {
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            // The cell behind a wide character is part of it.
            x += if unicode_width::UnicodeWidthStr::width(symbol) > 1 { 2 } else { 1 };
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// The name of the picture, if it is not as it was.
fn compare(name: &str, drawn: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(format!("{name}.txt"));
    if std::env::var_os("WIGGUM_BLESS").is_some() {
        fs::write(&path, drawn).unwrap();
        return None;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    (kept != drawn).then(|| format!("{name}:\n{drawn}"))
}

#[test]
fn a_question_is_answered_by_number_by_choice_in_own_words_and_with_care_by_abort() {
    let answers = |keys: &[&str]| {
        let mut mirror = scene(true);
        mirror.press("i");
        let done: Vec<String> = keys.iter().flat_map(|keys| mirror.press(keys)).collect();
        (done, text(&mirror.draw(80, 24)))
    };
    let gives = |keys: &[&str], answer: &str| {
        let (done, _) = answers(keys);
        let expected = format!("question: \"q1\", text: \"{answer}\" }}");
        assert!(done.len() == 1 && done[0].ends_with(&expected), "{keys:?}: {done:?}");
    };
    gives(&["Enter"], "1");
    gives(&["2 Enter"], "2");
    gives(&["Down Enter"], "2");
    gives(&["Down Down Enter"], "skip");
    gives(&["Down o w n Space w o r d s Enter"], "own words");
    gives(&["Down Down Down Down Enter", "y"], "abort");
    assert!(answers(&["Esc"]).0.is_empty());
    let (done, shown) = answers(&["a b o r t Enter"]);
    assert!(done.is_empty() && shown.contains("Answer q1 with abort? The run ends."), "{shown}");
    let (done, shown) = answers(&["a b o r t Enter", "n"]);
    assert!(done.is_empty() && !shown.contains("abort?"), "{shown}");

    // Whoever was about to answer is told that another was quicker.
    let mut mirror = scene(true);
    mirror.press("i");
    scene::answered(&mut mirror);
    let shown = text(&mirror.draw(80, 24));
    assert!(shown.contains("q1 was answered elsewhere") && !shown.contains("own words"), "{shown}");
}

#[test]
fn what_hurts_is_asked_first_and_the_rest_is_done_at_once() {
    for (keys, question) in
        [("S", "End the run?"), ("w", "Have the agent wrap up"), ("s", "Leave setup out?")]
    {
        let mut mirror = scene(true);
        assert!(mirror.press(keys).is_empty(), "{keys}");
        assert!(text(&mirror.draw(80, 24)).contains(question), "{keys}");
        assert!(mirror.press("n").is_empty());
        assert_eq!(mirror.press(&format!("{keys} y")).len(), 1, "{keys}");
    }
    assert_eq!(scene(true).press("p"), ["Pause"]);
    assert_eq!(scene(true).press("r"), ["Retry(\"setup\")"]);
    assert_eq!(scene(true).press("q"), ["leave"]);
    assert_eq!(scene(true).press("^C"), ["leave"]);
    assert_eq!(scene(true).press("u h i Enter"), ["Nudge(\"hi\")"]);
}

#[test]
fn tasks_are_written_by_a_form_that_says_what_is_missing() {
    let mut mirror = scene(true);
    mirror.press("a ^S");
    assert!(text(&mirror.draw(80, 24)).contains("say in one line what is to be done"));
    mirror.type_text("A title\x1b[31m");
    mirror.press("Tab Tab x");
    assert!(mirror.press("^S").is_empty());
    assert!(text(&mirror.draw(80, 24)).contains("a priority is a whole number"));
    mirror.press("Backspace 7 Tab");
    mirror.type_text("setup, zones");
    let done = mirror.press("^S").concat();
    for part in ["title: \"A title\"", "priority: Some(7)", "depends_on: [\"setup\", \"zones\"]"] {
        assert!(done.starts_with("Add(") && done.contains(part), "{part} is missing: {done}");
    }

    mirror.press("1 j j j e");
    assert!(mirror.press("^S").is_empty(), "nothing was changed");
    mirror.press("e !");
    let done = mirror.press("^S").concat();
    assert!(done.contains("title: Some(\"Write dates as 2026年11月15日 and otherwise!\"), description: None, priority: None, depends_on: None"), "{done}");
    mirror.press("g j j e");
    assert!(text(&mirror.draw(80, 24)).contains("an agent is at work on zones: nudge it instead"));
}

#[test]
fn the_mouse_chooses_opens_and_scrolls() {
    let mut mirror = scene(true);
    mirror.draw(80, 24);
    mirror.click(10, 6);
    assert!(text(&mirror.draw(80, 24)).contains("zones ───"), "the row that is clicked is chosen");
    assert_eq!(mirror.click(10, 6), ["load attempt 1 of zones"], "and opened by another click");
    mirror.draw(80, 24);
    mirror.click(30, 1);
    assert!(text(&mirror.draw(80, 24)).contains("Checks"), "its tab is there");
    mirror.click(2, 2);
    assert!(text(&mirror.draw(80, 24)).contains("main asks q1"), "the question is clicked");

    let mut crowd = scene::crowd(100);
    crowd.draw(160, 24);
    crowd.wheel_down(3, 6);
    assert!(text(&crowd.draw(160, 24)).contains("│ T3 ─"), "{}", text(&crowd.draw(160, 24)));
}

#[test]
fn what_is_searched_is_found() {
    let mut mirror = scene(true);
    mirror.press("/");
    mirror.type_text("ZONES");
    mirror.press("Enter");
    let shown = text(&mirror.draw(80, 24));
    assert!(shown.contains("2 all with `zones`") && !shown.contains("✓ setup"), "{shown}");
    mirror.press("Esc");
    assert!(text(&mirror.draw(80, 24)).contains("✓ setup"));
    mirror.press("3 /");
    mirror.type_text("not in the output");
    mirror.press("Enter");
    assert!(text(&mirror.draw(80, 24)).contains("`not in the output` is not here"));
}

#[test]
fn attempts_are_found_by_task_in_time_and_one_after_the_other() {
    let mut mirror = scene(true);
    assert_eq!(mirror.press("Enter"), ["load attempt 2 of setup"], "the newest of the task");
    assert_eq!(mirror.press("Left"), ["load attempt 1 of setup"]);
    assert_eq!(mirror.press("l l"), ["load attempt 2 of setup", "load attempt 1 of parser"]);
    assert_eq!(mirror.press("5 j Enter"), ["load attempt 1 of parser"], "the newest comes first");
    assert_eq!(mirror.press("3 ["), ["load output 2 of setup"]);
    assert!(mirror.press("] ] ]").len() == 1, "the newest is there already");
}

#[test]
fn another_loop_is_attached_to_and_news_of_the_first_are_old() {
    let mut mirror = scene(true);
    mirror.press("8 j");
    assert_eq!(mirror.press("Enter"), ["attach to 00000000-0000-0000-0000-000000000008"]);
    scene::answered(&mut mirror);
    mirror.output(4, 1, Vec::new());
    scene::opened(&mut mirror);
    let shown = text(&mirror.draw(80, 24));
    assert!(shown.contains("Reading the journal …") && !shown.contains("zones"), "{shown}");
}

#[test]
fn no_size_and_no_key_breaks_it() {
    let keys = [
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "j",
        "k",
        "G",
        "g",
        "PageDown",
        "Enter",
        "Esc",
        "Tab",
        "i",
        "a",
        "e",
        "s",
        "u",
        "w",
        "S",
        "/",
        "n",
        "N",
        "o",
        "Space",
        "f",
        "[",
        "]",
        "d",
        "v",
        "b",
        "t",
        "m",
        "?",
        "y",
        "x",
        "Backspace",
        "Left",
        "Right",
        "Up",
        "Down",
        "End",
        "^J",
        "^S",
        "^W",
        "^U",
    ];
    let mut random = 42_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for mut mirror in [scene(true), hostile(), scene::crowd(30)] {
        for _ in 0..400 {
            mirror.press(keys[next(keys.len())]);
            match next(4) {
                0 => drop(mirror.click(next(150) as u16, next(50) as u16)),
                1 => mirror.wheel_down(next(150) as u16, next(50) as u16),
                _ => drop(mirror.type_text(["日本", "a\nb", "q1", ""][next(4)])),
            }
            mirror.draw(1 + next(240) as u16, 1 + next(60) as u16);
        }
    }
}

#[test]
fn long_lines_of_a_diff_and_long_questions_are_not_lost() {
    let mut mirror = scene(true);
    scene::long(&mut mirror);
    mirror.press("4 d");
    mirror.draw(80, 24);
    mirror.press("G");
    let shown = text(&mirror.draw(80, 24));
    assert!(shown.contains("the very end") && !shown.contains("more ↓"), "{shown}");
    mirror.press("7");
    assert!(text(&mirror.draw(80, 24)).contains("lines more: `wiggum inbox` has them all"));
    mirror.press("Enter");
    let shown = text(&mirror.draw(80, 24));
    assert!(shown.contains("lines more") && shown.contains("2. What the locale says"), "{shown}");
}
