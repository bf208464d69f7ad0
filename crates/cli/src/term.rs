//! Standard output and error: the one place that prints, and what the terminal can show.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// Writes to standard output. A reader that went away is not our failure.
pub(crate) fn print(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Is anybody there to read what is printed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

/// Writes to standard output at once, for commands that go on for as long as somebody reads.
pub(crate) fn print_to_reader(text: &str) -> Reader {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Reader::There,
        Err(_) => Reader::Gone,
    }
}

/// Writes to standard error, where everything goes that is not the answer itself.
pub(crate) fn note(text: &str) {
    drop(std::io::stderr().lock().write_all(text.as_bytes()));
}

/// Colours, or nothing where nobody would see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    pub(crate) fn for_stderr() -> Self {
        Self::when(std::io::stderr().is_terminal())
    }

    pub(crate) fn for_stdout() -> Self {
        Self::when(std::io::stdout().is_terminal())
    }

    fn when(terminal: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let forced = set("CLICOLOR_FORCE") || set("FORCE_COLOR");
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { colour: !set("NO_COLOR") && (forced || (terminal && !dumb)) }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Text of others made harmless: an agent must not drive the terminal.
pub(crate) fn harmless(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => skip_escape(&mut chars),
            '\n' | '\t' => clean.push(c),
            // A bare carriage return overwrites what was shown; progress bars become lines.
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => clean.push('\n'),
            c if c.is_control() || is_bidi(c) => {}
            c => clean.push(c),
        }
    }
    clean
}

fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        // CSI: up to its final byte.
        Some('[') => while chars.next().is_some_and(|c| !('\x40'..='\x7e').contains(&c)) {},
        // OSC and the other strings: up to BEL or ESC \.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = chars.next() {
                if c == '\x07' || (c == '\x1b' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        Some(_) | None => {}
    }
}

/// Rows below each other, the first column to the left and the others to the right.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let cell = |(number, text): (usize, &String)| match number {
        0 => format!("  {text:<width$}", width = widths[0]),
        number => format!("  {text:>width$}", width = widths[number]),
    };
    rows.iter().map(|row| row.iter().enumerate().map(cell).collect::<String>() + "\n").collect()
}

/// A number with its digits in groups.
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Characters that reorder what is shown.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_print_cannot_drive_the_terminal() {
        let check = |text: &str, expected: &str| assert_eq!(harmless(text), expected, "{text:?}");
        check("plain\n\ttext é ✅", "plain\n\ttext é ✅");
        check("\x1b[31mred\x1b[0m", "red");
        check("\x1b]0;title\x07after", "after");
        check("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link");
        check("10%\r20%\r\ndone", "10%\n20%\ndone");
        check("abc\u{202e}cba\u{0007}", "abccba");
        check("\x1b", "");
        check("\x1b[", "");
    }

    #[test]
    fn numbers_are_grouped() {
        for (count, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(thousands(count), text);
        }
    }
}
