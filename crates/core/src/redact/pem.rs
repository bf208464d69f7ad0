//! Private keys in a stream, known by the line above them. What follows is left out for as long as it looks like
//! the inside of a key: in several lines, in a string of JSON, indented, or with numbers before its lines.

const BEGINS: &[u8] = b"-----BEGIN ";
const TITLE: &[u8] = b"PRIVATE KEY";
const CLOSES: &[u8] = b"-----";
/// `-----BEGIN ENCRYPTED PRIVATE KEY-----` and its like are shorter.
const LONGEST_HEAD: usize = 64;

/// What a text begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// The line above a private key, so long.
    Is(usize),
    Not,
    Unfinished,
}

pub(super) fn head(text: &[u8]) -> Head {
    let window = &text[..text.len().min(LONGEST_HEAD)];
    let may_go_on =
        |so_far: bool| if so_far && text.len() < LONGEST_HEAD { Head::Unfinished } else { Head::Not };
    let Some(title) = window.strip_prefix(BEGINS) else { return may_go_on(BEGINS.starts_with(window)) };
    let is_title = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    let length = title.iter().take_while(|byte| is_title(byte)).count();
    let (title, after) = title.split_at(length);
    if !after.starts_with(CLOSES) {
        return may_go_on(CLOSES.starts_with(after));
    }
    let is_private = title.windows(TITLE.len()).any(|words| words == TITLE);
    if is_private { Head::Is(BEGINS.len() + length + CLOSES.len()) } else { Head::Not }
}

/// What is known of the inside of a key while it streams.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inside {
    last: Last,
    /// Was there anything of a key, and not only what is around one?
    has_body: bool,
}

/// What stood last in the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    /// Digits only: perhaps the number of a line.
    Number,
    /// A part of the key.
    Body,
    /// What sets lines apart, or codes of a terminal.
    Sign,
    /// Within `Version: GnuPG v2 (Linux)`.
    Header,
    /// The letter after it belongs to it.
    Backslash,
    /// A space right after a part of the key: what comes next must not be a word.
    Space,
    /// Another one ends the key.
    Dash,
}

/// How a portion of a text goes on from within a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// All of it is inside.
    All,
    /// The key ends after so many bytes. A dash among those belongs to the line below the key.
    To { length: usize, dash: bool },
}

impl Inside {
    pub(super) fn is_empty(&self) -> bool {
        !self.has_body
    }

    pub(super) fn pass(&mut self, text: &[u8]) -> Passed {
        for (length, byte) in text.iter().enumerate() {
            let last = self.last;
            // A bracket may belong to a code of a terminal, and at the beginning to what stands here instead.
            let is_shown = *byte == b'[' && self.is_empty() && last != Last::Sign;
            match next(last, *byte).filter(|_| !is_shown) {
                Some(next) => {
                    self.has_body |= matches!(next, Last::Body | Last::Number | Last::Header);
                    self.last = next;
                }
                None => return Passed::To { length, dash: last == Last::Dash && *byte == b'-' },
            }
        }
        Passed::All
    }
}

/// What stands last after this byte, if that is still inside.
fn next(last: Last, byte: u8) -> Option<Last> {
    Some(match (last, byte) {
        (Last::Backslash, b'n' | b'r' | b't') | (_, b'\n' | b'\r' | b'\t') => Last::Nothing,
        (_, b'\\') => Last::Backslash,
        (Last::Header, b'"' | b'\'' | b'`' | b'<') => return None,
        (Last::Header, _) => Last::Header,
        (Last::Dash, b'-') => return None,
        (_, b'-') => Last::Dash,
        (Last::Number, b':' | b' ') => Last::Nothing,
        (_, b':') => Last::Header,
        (Last::Body, b' ') => Last::Space,
        (_, b' ') => last,
        (Last::Nothing | Last::Number, b'0'..=b'9') => Last::Number,
        (Last::Space, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9') => return None,
        (_, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'=') => Last::Body,
        // The last three bytes are `→`, by which some tools set the number of a line apart.
        (_, b',' | b'|' | b'>' | b'#' | b'*' | b'&' | b';' | b'[' | 0x1b | 0xe2 | 0x86 | 0x92) => Last::Sign,
        (_, _) => return None,
    })
}
