//! A text as it is read by people: without the codes of terminals, and with letters for their escapes in JSON and
//! HTML; with the way back to where each letter stands.

use std::ops::Range;

/// How long the number of a letter or the parameters of a code may be.
const LONGEST: usize = 32;

pub(super) struct View {
    pub(super) text: String,
    /// Where each byte of it comes from; all bytes of a letter come from the same place.
    from: Vec<Range<usize>>,
}

impl View {
    /// None where the text is read as it stands, as nearly all are.
    pub(super) fn of(text: &str) -> Option<Self> {
        let is_disguised = text.contains('\u{1b}') || text.contains("\\u") || text.contains("&#");
        is_disguised.then(|| Self::read(text))
    }

    fn read(text: &str) -> Self {
        let mut view = Self { text: String::with_capacity(text.len()), from: Vec::with_capacity(text.len()) };
        let mut at = 0;
        while let Some(letter) = text[at..].chars().next() {
            let (said, length) = escaped(&text[at..]).unwrap_or((Some(letter), letter.len_utf8()));
            if let Some(said) = said {
                view.text.push(said);
                view.from.extend(std::iter::repeat_n(at..at + length, said.len_utf8()));
            }
            at += length;
        }
        view
    }

    /// Where in the original text a part of the view stands.
    pub(super) fn original(&self, span: &Range<usize>) -> Range<usize> {
        let at = |place: usize| self.from.get(place).cloned();
        let start = at(span.start).map_or(0, |first| first.start);
        start..at(span.end.saturating_sub(1)).map_or(start, |last| last.end)
    }
}

/// What an escape at the beginning of the text says, if anything, and how long it is.
fn escaped(text: &str) -> Option<(Option<char>, usize)> {
    if let Some(code) = text.strip_prefix("\u{1b}[") {
        let parameters = code.bytes().take(LONGEST).take_while(|byte| (0x20..0x40).contains(byte)).count();
        let has_end = code.as_bytes().get(parameters).is_some_and(|end| (0x40..0x7f).contains(end));
        return has_end.then_some((None, 2 + parameters + 1));
    }
    if let Some(code) = text.strip_prefix("\\u") {
        let letter = u32::from_str_radix(code.get(..4)?, 16).ok().and_then(char::from_u32)?;
        return (!letter.is_control() && !"\"\\".contains(letter)).then_some((Some(letter), 6));
    }
    let code = text.strip_prefix("&#")?;
    let length = code.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let number = &code[..length];
    let number = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    Some((Some(char::from_u32(number.ok()?)?), 2 + length + 1))
}
