//! What a screen says: pure, from text that tmux has drawn already.

use crate::session::turn;
use wiggum_core::event::Trouble;

/// Where programs show what they are doing; above it is what was said.
const BOTTOM: usize = 12;

/// Without what a spinner, a clock or a counter changes: the letters alone.
pub(crate) fn letters(screen: &str) -> String {
    screen.chars().filter(|c| c.is_alphabetic()).collect()
}

/// Do these two looks at a screen that moves show an agent at work? Then its bottom tells how to
/// interrupt it, or a line moves that says "Thinking…" or the like, or one has a word of the user's.
pub(crate) fn looks_busy(earlier: &str, screen: &str, words: &[String]) -> bool {
    let known: Vec<&str> = earlier.lines().collect();
    bottom(screen).any(|line| {
        let moves = (line.contains('…') || line.contains("...")) && !known.contains(&line);
        moves || tells_how_to_interrupt(line) || words.iter().any(|word| line.contains(word.as_str()))
    })
}

fn tells_how_to_interrupt(line: &str) -> bool {
    let lower = line.to_lowercase();
    let any = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    any(&["interrupt", "to cancel", "to stop"]) && any(&["esc ", "ctrl+c", "ctrl-c", "^c"])
}

/// Does the program wait for a choice? Enter would make one, and that is a person's business.
pub(crate) fn asks_for_choice(screen: &str) -> bool {
    let lines: Vec<&str> = bottom(screen).map(unframed).collect();
    let option = |line: &str| numbered(line) || matches!(first_word(line), "Yes" | "No");
    let chosen =
        |line: &&str| line.strip_prefix(['❯', '›', '>', '▶']).is_some_and(|rest| option(rest.trim()));
    lines.iter().any(chosen) && lines.iter().any(|line| option(line))
}

fn first_word(line: &str) -> &str {
    line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
}

fn numbered(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && rest.starts_with(['.', ')'])
}

fn bottom(screen: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = screen.lines().filter(|line| !line.trim().is_empty()).collect();
    let skip = lines.len().saturating_sub(BOTTOM);
    lines.into_iter().skip(skip)
}

/// What was said after the prompt: of all that stands there now, the part that did not stand there
/// before, without the prompt itself as the program shows it.
pub(crate) fn said_since(before: &str, now: &str, prompt: &str) -> String {
    let same = before.lines().zip(now.lines()).take_while(|(old, new)| old == new).count();
    let mut stale: Vec<&str> =
        before.lines().skip(same).filter(|line| promises(line)).map(unframed).collect();
    let new: Vec<&str> = now.lines().skip(same).collect();
    let new = new.join("\n");
    let own = &new[end_of_echo(&new, prompt)..];
    let lines = own.lines().map(unframed).filter(|line| {
        // Programs that draw the whole screen anew show an old promise in a new place.
        let old = promises(line).then(|| stale.iter().position(|stale| stale == line)).flatten();
        old.is_none_or(|index| {
            stale.remove(index);
            false
        })
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn promises(line: &str) -> bool {
    line.to_ascii_lowercase().contains("promise>")
}

/// A line without the frame and the bullets that programs draw around what is said.
fn unframed(line: &str) -> &str {
    let frame = |c: char| c.is_whitespace() || matches!(c, '\u{2500}'..='\u{25ff}' | '⏺' | '✦' | '•');
    line.trim_matches(frame)
}

/// Where the prompt ends in what is shown of it, in bytes; 0 if it is not shown. Programs break its
/// lines, indent and frame them, so only letters and digits are compared.
fn end_of_echo(text: &str, prompt: &str) -> usize {
    /// Enough to be no accident; programs that show long prompts in part show the end.
    const TAIL: usize = 120;
    let wanted = squeezed(prompt);
    let shown: Vec<(usize, char)> = text.char_indices().filter(|(_, c)| c.is_alphanumeric()).collect();
    let tail = &wanted[wanted.len().saturating_sub(TAIL)..];
    let matches = |at: usize, wanted: &[char]| {
        shown[at..].iter().map(|(_, shown)| shown).zip(wanted).all(|(shown, wanted)| shown == wanted)
    };
    let places = |wanted: &[char]| 0..(shown.len() + 1).saturating_sub(wanted.len());
    let whole = places(&wanted).rev().find(|&at| matches(at, &wanted)).map(|at| at + wanted.len());
    let end = whole.or_else(|| places(tail).find(|&at| matches(at, tail)).map(|at| at + tail.len()));
    let Some(last) = end.filter(|_| !tail.is_empty()).and_then(|end| shown.get(end - 1)) else { return 0 };
    // The rest of that line is the prompt's last mark and its frame.
    text[last.0..].find('\n').map_or(text.len(), |rest| last.0 + rest)
}

fn squeezed(text: &str) -> Vec<char> {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// How far above the bottom a complaint may stand: below it are dialogs and where to type.
const BELOW_A_COMPLAINT: usize = 10;

/// What keeps the agent from working, if that is the last it said. Who promises something works.
pub(crate) fn trouble(said: &str) -> Option<Trouble> {
    if said.lines().any(promises) {
        return None;
    }
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    let told = |line: &str| line.chars().any(char::is_alphabetic) && !line.starts_with(['>', '❯', '›']);
    let last = (0..lines.len()).rev().filter(|&at| told(lines[at])).take(BELOW_A_COMPLAINT);
    last.into_iter().find_map(|at| trouble_at(&lines[at..]))
}

/// The trouble that the first of these lines tells of. Programs break long lines, so when it ends may
/// stand on the next ones.
fn trouble_at(lines: &[&str]) -> Option<Trouble> {
    let found = turn::trouble(lines.first()?)?;
    let rest = lines.iter().take_while(|line| !line.is_empty()).take(3);
    let whole = turn::trouble(&rest.copied().collect::<Vec<_>>().join(" "));
    match (found, whole) {
        (
            Trouble::UsageLimit { resets_at: None },
            Some(Trouble::UsageLimit { resets_at: Some(resets_at) }),
        ) => Some(Trouble::UsageLimit { resets_at: Some(resets_at) }),
        (found, _) => Some(found),
    }
}

/// Is the choice that the program offers one about its usage limit, and can it be left without
/// choosing? Then it need not keep a person from sleeping.
pub(crate) fn offers_to_wait(screen: &str) -> bool {
    let lines: Vec<String> = bottom(screen).map(str::to_lowercase).collect();
    let any = |words: &str| lines.iter().any(|line| line.contains(words));
    asks_for_choice(screen) && any("limit to reset") && any("esc to cancel")
}

/// A text as it may be typed: what could end the paste or press keys is left out.
pub(crate) fn typeable(text: &str) -> String {
    crate::term::harmless(text).replace('\t', "    ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "Make it.\n\nOnly then end your message with this line:\n\n<promise>DONE</promise>";

    #[test]
    fn only_what_is_new_and_the_agents_own_is_read() {
        let check = |before: &str, now: &str, expected: &str| {
            assert_eq!(said_since(before, now, PROMPT), expected, "{now}");
        };
        check("hello\n> ", "hello\nI am here", "I am here");
        check("", PROMPT, "");
        check("", &format!("> {PROMPT}\nI did.\n<promise>DONE</promise>"), "I did.\n<promise>DONE</promise>");
        // Broken into lines and framed by the program.
        let framed = "│ > Make it. Only then end your │\n│ message with this line: <promise>DO │\n│ NE</promise> │\n● No.";
        check("", framed, "No.");
        check(
            "╭──╮\n│  │",
            "● done\n\n  <promise>DONE</promise>\n╭──╮\n│ > │",
            "done\n\n<promise>DONE</promise>\n\n>",
        );
    }

    #[test]
    fn an_old_promise_that_is_drawn_again_is_not_a_new_one() {
        let before = "title\nanswer 1\n<promise>DONE</promise>\n> ";
        let moved = "title\n<promise>DONE</promise>\nanswer 2\n> ";
        assert_eq!(said_since(before, moved, ""), "answer 2\n>");
        let both =
            said_since(before, "title\n<promise>DONE</promise>\nanswer 2\n<promise>DONE</promise>\n> ", "");
        assert!(both.ends_with("answer 2\n<promise>DONE</promise>\n>"), "{both}");
    }

    #[test]
    fn a_running_agent_tells_how_to_interrupt_it() {
        for screen in [
            "✻ Thinking… (12s · esc to interrupt)",
            "Working (3s • Esc to interrupt)",
            "⠋ x (esc to cancel, 3s)",
        ] {
            assert!(looks_busy(screen, screen, &[]), "{screen}");
        }
        for screen in ["12:00:01", "> ", "the escape was interrupted", "to be continued…"] {
            assert!(!looks_busy(screen, screen, &[]), "{screen}");
        }
        let thinking = |seconds: u32| format!("✻ Discombobulating… ({seconds}s · ↑ 40 tokens)\n> ");
        assert!(looks_busy(&thinking(1), &thinking(2), &[]));
        assert!(looks_busy("", "state: thinking", &["thinking".to_owned()]));
        let scrolled = format!("esc to interrupt\n{}", "line\n".repeat(BOTTOM));
        assert!(!looks_busy(&scrolled, &scrolled, &[]));
        assert_eq!(letters("⠋ 12:03 go"), letters("⠙ 12:04 go"));
        assert_ne!(letters("go"), letters("gone"));
    }

    #[test]
    fn a_choice_is_left_to_people() {
        assert!(asks_for_choice("Do you trust this folder?\n\n ❯ 1. Yes, proceed\n   2. No, exit\n"));
        assert!(asks_for_choice("│ Do you want to proceed? │\n│ ❯ 1. Yes │\n│   2. No │"));
        assert!(asks_for_choice("› Yes\n  No"));
        assert!(!asks_for_choice("I did:\n1. this\n2. that\n> "));
        assert!(!asks_for_choice("> 1. not a list"));
        assert!(!asks_for_choice("● Yes, it works.\nNote that 2 is left.\n❯ Nothing"));
    }

    const LIMITED: &str = "⎿ You've hit your limit · resets Nov 12, 2036, 7:04am (UTC)\n\n✻ Cooked for 0s\n\n\
        ❯ /rate-limit-options\n────\n  What do you want to do?\n\n  ❯ 1. Stop and wait for limit to reset\n    \
        2. Upgrade your plan\n    3. Use something else\n\n  Enter to confirm · Esc to cancel\n";

    #[test]
    fn a_limit_is_read_above_the_dialog_that_follows_it() {
        let reset: jiff::Timestamp = "2036-11-12T07:04:00Z".parse().unwrap();
        assert_eq!(trouble(LIMITED), Some(Trouble::UsageLimit { resets_at: Some(reset) }));
        assert!(asks_for_choice(LIMITED) && offers_to_wait(LIMITED));
        assert!(!offers_to_wait("Wait for the limit to reset?\n ❯ 1. Yes\n   2. No\n"), "it cannot be left");
        assert!(!offers_to_wait("Run rm -rf /?\n ❯ 1. Yes\n   2. No\n Esc to cancel"));
    }

    #[test]
    fn a_limit_that_is_broken_into_lines_is_read_whole() {
        let broken = "■ You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://x.y/\n\
                      usage to purchase more credits or try again at 2036-11-12T07:04:00Z.\n\n› Ask Codex";
        let reset: jiff::Timestamp = "2036-11-12T07:04:00Z".parse().unwrap();
        assert_eq!(trouble(broken), Some(Trouble::UsageLimit { resets_at: Some(reset) }));
        let alone = "Claude AI usage limit reached\n\nIt was reset at 2036-11-12T07:04:00Z";
        assert_eq!(trouble(alone), Some(Trouble::UsageLimit { resets_at: None }));
    }

    #[test]
    fn what_is_typed_presses_no_keys() {
        assert_eq!(typeable("a\x1b[201~\rb\x03\tc\x1b"), "a\nb    c");
    }
}
