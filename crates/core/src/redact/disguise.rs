//! Whether a text begins with a value, also where it is written with the escapes of JSON, HTML, addresses and
//! shells, in several layers of them, coloured by a terminal's codes, or broken into lines.
//!
//! Every reading is bounded by the length of the value, so that looking at each place of a stream stays linear.

/// How a value may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// Byte for byte.
    Exact,
    /// With escapes.
    Plain,
    /// Base64, perhaps in lines.
    Base64,
    /// Hexadecimal in capitals or not, perhaps in lines or with separators.
    Hex,
}

/// What looking at the beginning of a text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// The value takes up so many bytes.
    Is(usize),
    Not,
    /// As far as the text goes it may be the value.
    Unfinished,
}

/// The longest way to write one byte that is read: eight backslashes before a `u` and its digits, twice.
const LONGEST_BYTE: usize = 26;
/// What codes of a terminal may add to a value in all.
const CODES: usize = 512;
/// Layers of escapes double the backslashes.
const MOST_BACKSLASHES: usize = 64;
/// The longest code of a terminal that is looked over: an address in it is cut here.
const LONGEST_CODE: usize = 256;
/// `&#x0001F600;`, and `amp;` of some layers before it.
const LONGEST_ENTITY: usize = 32;

const ESCAPE: u8 = 0x1b;

pub(super) fn read(text: &[u8], value: &[u8], form: Form) -> Reading {
    if text.starts_with(value) {
        return Reading::Is(value.len());
    }
    match form {
        Form::Exact if value.starts_with(text) => Reading::Unfinished,
        Form::Exact => Reading::Not,
        Form::Plain => steps(text, value, escaped),
        Form::Base64 => steps(text, value, in_lines),
        Form::Hex => steps(text, value, in_hex),
    }
}

/// The pairs of bytes by one of which the value begins, however it is written. `None` stands for any byte.
pub(super) fn beginnings(value: &[u8], form: Form) -> Vec<(u8, Option<u8>)> {
    let first = value[0];
    let Some(second) = value.get(1).copied() else { return vec![(first, None)] };
    let then = |seconds: &[u8]| seconds.iter().map(|second| (first, Some(*second))).collect::<Vec<_>>();
    match form {
        Form::Exact => then(&[second]),
        Form::Base64 => then(&[second, b'\n', b'\r', b'\\']),
        Form::Hex => {
            let firsts = [first, first.to_ascii_uppercase()];
            let seconds = [second, second.to_ascii_uppercase(), b'\n', b'\r', b'\\'];
            firsts.iter().flat_map(|first| seconds.map(|second| (*first, Some(second)))).collect()
        }
        Form::Plain => {
            let mut all = then(&[second, b'\\', b'&', b'%', ESCAPE, b'+', b'\r']);
            if first == b'\\' {
                return vec![(b'\\', None), (b'&', Some(b'#')), (b'%', None)];
            }
            all.extend(b"ux\\".map(|second| (b'\\', Some(second))));
            all.extend(control_letter(first).map(|letter| (b'\\', Some(letter))));
            if !first.is_ascii_alphanumeric() {
                all.push((b'\\', Some(first)));
            }
            all.extend(b"#aqlg".map(|second| (b'&', Some(second))));
            let digit = super::encode::hex(&[first])[0];
            all.extend([digit, digit.to_ascii_uppercase(), b'2'].map(|second| (b'%', Some(second))));
            all
        }
    }
}

/// One step of reading: so much of the text says so much of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Took { text: usize, value: usize },
    Not,
    Unfinished,
}

fn steps(text: &[u8], value: &[u8], step: fn(&[u8], &[u8]) -> Step) -> Reading {
    let most = value.len().saturating_mul(LONGEST_BYTE) + CODES;
    let (mut at, mut read) = (0, 0);
    while read < value.len() {
        if at > most {
            return Reading::Not;
        }
        match step(&text[at..], &value[read..]) {
            // Nothing of it is read yet: what stands before a value is no part of it.
            Step::Took { value: 0, .. } if read == 0 => return Reading::Not,
            Step::Took { text, value } => {
                at += text;
                read += value;
            }
            Step::Not => return Reading::Not,
            Step::Unfinished => return Reading::Unfinished,
        }
    }
    Reading::Is(at)
}

/// A byte of base64, or the end of a line.
fn in_lines(text: &[u8], value: &[u8]) -> Step {
    match text {
        [] => Step::Unfinished,
        [byte, ..] if *byte == value[0] => Step::Took { text: 1, value: 1 },
        [b'\n' | b'\r', ..] => Step::Took { text: 1, value: 0 },
        [b'\\', ..] => line_end(text),
        [_, ..] => Step::Not,
    }
}

fn in_hex(text: &[u8], value: &[u8]) -> Step {
    match text {
        [] => Step::Unfinished,
        [byte, ..] if byte.eq_ignore_ascii_case(&value[0]) => Step::Took { text: 1, value: 1 },
        [b'\n' | b'\r' | b' ' | b':', ..] => Step::Took { text: 1, value: 0 },
        [b'\\', ..] => line_end(text),
        [_, ..] => Step::Not,
    }
}

/// An escaped end of a line.
fn line_end(text: &[u8]) -> Step {
    let run = backslashes(text);
    match text.get(run) {
        None if run <= MOST_BACKSLASHES => Step::Unfinished,
        Some(b'n' | b'r') => Step::Took { text: run + 1, value: 0 },
        None | Some(_) => Step::Not,
    }
}

fn escaped(text: &[u8], value: &[u8]) -> Step {
    let literally = |byte: u8| {
        if byte == value[0] { Step::Took { text: 1, value: 1 } } else { Step::Not }
    };
    match text {
        [] => Step::Unfinished,
        [b'\\', ..] => after_backslashes(text, value),
        [b'&', ..] => or(entity(text, value), || literally(b'&')),
        [b'%', ..] => or(percent(text, value), || literally(b'%')),
        [ESCAPE, ..] => or(literally(ESCAPE), || code(text, 1)),
        [b'+', ..] if value[0] == b' ' => Step::Took { text: 1, value: 1 },
        [b'\r'] if value[0] == b'\n' => Step::Unfinished,
        [b'\r', b'\n', ..] if value[0] == b'\n' => Step::Took { text: 2, value: 1 },
        [byte, ..] => literally(*byte),
    }
}

fn or(step: Step, other: impl FnOnce() -> Step) -> Step {
    if step == Step::Not { other() } else { step }
}

fn backslashes(text: &[u8]) -> usize {
    text.iter().take(MOST_BACKSLASHES + 1).take_while(|byte| **byte == b'\\').count()
}

/// An escape with any number of backslashes before it: each layer of JSON doubles them.
fn after_backslashes(text: &[u8], value: &[u8]) -> Step {
    let run = backslashes(text);
    if run > MOST_BACKSLASHES {
        return Step::Not;
    }
    let Some(letter) = text.get(run).copied() else { return Step::Unfinished };
    let step = match letter {
        b'u' => unicode(text, run, value),
        b'x' => code_point(text, run + 1, 2, value),
        b'e' => code(text, run + 1),
        b'0' if text[run..].starts_with(b"033") => code(text, run + 3),
        b'0' if b"033".starts_with(&text[run..]) => Step::Unfinished,
        _ if control_letter(value[0]) == Some(letter) => Step::Took { text: run + 1, value: 1 },
        _ if letter == value[0] && !letter.is_ascii_alphanumeric() => Step::Took { text: run + 1, value: 1 },
        _ => Step::Not,
    };
    let own = value.iter().take_while(|byte| **byte == b'\\').count();
    or(step, || if own > 0 && run >= own { Step::Took { text: run, value: own } } else { Step::Not })
}

/// The letter that stands for a control character after a backslash.
fn control_letter(byte: u8) -> Option<u8> {
    match byte {
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\t' => Some(b't'),
        0x08 => Some(b'b'),
        0x0c => Some(b'f'),
        _ => None,
    }
}

/// `\u0041`, or a pair of them for one character beyond the first 65 536.
fn unicode(text: &[u8], run: usize, value: &[u8]) -> Step {
    let high = match number(text, run + 1, 4) {
        Ok(code) => code,
        Err(step) => return step,
    };
    if !(0xd800..0xdc00).contains(&high) {
        return code_point(text, run + 1, 4, value);
    }
    let second = run + 5;
    let next = backslashes(&text[second..]);
    match text.get(second + next) {
        None => return Step::Unfinished,
        Some(b'u') if next > 0 => {}
        Some(_) => return Step::Not,
    }
    match number(text, second + next + 1, 4) {
        Ok(low) if (0xdc00..0xe000).contains(&low) => {
            let whole = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            says(char::from_u32(whole), second + next + 5, value)
        }
        Ok(_) => Step::Not,
        Err(step) => step,
    }
}

/// A character by its number in so many digits; that of a terminal's code begins one.
fn code_point(text: &[u8], at: usize, digits: usize, value: &[u8]) -> Step {
    match number(text, at, digits) {
        Ok(0x1b) if value[0] != ESCAPE => code(text, at + digits),
        Ok(code) => says(char::from_u32(code), at + digits, value),
        Err(step) => step,
    }
}

fn number(text: &[u8], at: usize, digits: usize) -> Result<u32, Step> {
    let rest = &text[at.min(text.len())..];
    let said = &rest[..digits.min(rest.len())];
    if !said.iter().all(u8::is_ascii_hexdigit) {
        return Err(Step::Not);
    }
    if said.len() < digits {
        return Err(Step::Unfinished);
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or_default();
    Ok(said.iter().fold(0, |number, byte| number << 4 | digit(byte)))
}

fn says(character: Option<char>, text: usize, value: &[u8]) -> Step {
    let Some(character) = character else { return Step::Not };
    let mut room = [0; 4];
    let said = character.encode_utf8(&mut room).as_bytes();
    if value.starts_with(said) { Step::Took { text, value: said.len() } } else { Step::Not }
}

/// `&quot;`, `&#39;`, `&#x27;`, and the same with its own `&` written as `&amp;`.
fn entity(text: &[u8], value: &[u8]) -> Step {
    let window = &text[..text.len().min(LONGEST_ENTITY)];
    let mut at = 1;
    while window[at..].starts_with(b"amp;") {
        at += 4;
        let rest = &window[at..];
        if value[0] == b'&' && value.len() > 1 && rest.len() < 4 && b"amp;".starts_with(rest) {
            return Step::Unfinished;
        }
        if value[0] == b'&' && !rest.starts_with(b"amp;") {
            return Step::Took { text: at, value: 1 };
        }
    }
    let Some(length) = window[at..].iter().position(|byte| *byte == b';') else {
        let may_go_on = window[at..].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#');
        return if may_go_on && window.len() < LONGEST_ENTITY { Step::Unfinished } else { Step::Not };
    };
    let name = std::str::from_utf8(&window[at..at + length]).unwrap_or_default();
    says(named(name), at + length + 1, value)
}

fn named(name: &str) -> Option<char> {
    match name {
        "quot" => Some('"'),
        "apos" => Some('\''),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "Tab" => Some('\t'),
        "NewLine" => Some('\n'),
        other => {
            let number = other.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

/// `%41`, and the same with its own `%` written as `%25`, in some layers.
fn percent(text: &[u8], value: &[u8]) -> Step {
    let mut at = 1;
    loop {
        match number(text, at, 2) {
            Ok(0x25) if at < 9 => {
                let rest = &text[at + 2..];
                let goes_on = rest.starts_with(b"25") && !value[1..].starts_with(b"25");
                if value[0] == b'%' && value.len() > 1 && rest.len() < 2 && b"25".starts_with(rest) {
                    return Step::Unfinished;
                }
                if value[0] == b'%' && !goes_on {
                    return Step::Took { text: at + 2, value: 1 };
                }
                at += 2;
            }
            Ok(byte) if byte == u32::from(value[0]) => return Step::Took { text: at + 2, value: 1 },
            Ok(_) => return Step::Not,
            Err(step) => return step,
        }
    }
}

/// The rest of a code of a terminal, whose escape character ends at `at`: it says nothing.
fn code(text: &[u8], at: usize) -> Step {
    let rest = &text[at.min(text.len())..];
    let length = match rest {
        [] => return Step::Unfinished,
        [b'[', parameters @ ..] => {
            let is_parameter = |byte: &u8| (0x20..0x40).contains(byte);
            2 + parameters.iter().take(LONGEST_CODE).take_while(|byte| is_parameter(byte)).count()
        }
        [b']', words @ ..] => {
            let ends = |byte: &u8| *byte == 0x07 || *byte == ESCAPE;
            2 + words.iter().take(LONGEST_CODE).take_while(|byte| !ends(byte)).count()
        }
        [_, ..] => 1,
    };
    if length > LONGEST_CODE {
        return Step::Not;
    }
    if length > rest.len() { Step::Unfinished } else { Step::Took { text: at + length, value: 0 } }
}
