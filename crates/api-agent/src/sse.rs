//! Server-sent events, read from any bytes in any portions, with a limit on all that is held.

use thiserror::Error;

/// The longest line that is read. A provider sends answers in pieces of some kilobytes; only a whole
/// file as one argument comes near this.
const LINE_LIMIT: usize = 4 * 1024 * 1024;
/// The longest answer. A hundred times of what any model can say.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum TooLong {
    #[error("the provider sent a line of more than {LINE_LIMIT} bytes")]
    Line,
    #[error("the provider's answer has more than {ANSWER_LIMIT} bytes")]
    Answer,
}

/// Hands out the data of events. Their names are left aside: whoever names an event repeats it in
/// the data.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    /// The lines of data of the event under way.
    data: Vec<u8>,
    has_data: bool,
    total: usize,
    after_return: bool,
}

impl Events {
    pub(crate) fn push(&mut self, bytes: &[u8], read: &mut dyn FnMut(&str)) -> Result<(), TooLong> {
        self.total = self.total.saturating_add(bytes.len());
        if self.total > ANSWER_LIMIT {
            return Err(TooLong::Answer);
        }
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, end) = match piece.split_last() {
                Some((end @ (b'\n' | b'\r'), text)) => (text, Some(*end)),
                _ => (piece, None),
            };
            // The second half of a line end that came in two bytes.
            let second_half = end == Some(b'\n') && text.is_empty() && self.after_return;
            self.after_return = end == Some(b'\r');
            if second_half {
                continue;
            }
            self.line.extend_from_slice(text);
            if self.line.len() + self.data.len() > LINE_LIMIT {
                return Err(TooLong::Line);
            }
            if end.is_some() {
                self.end_line(read);
            }
        }
        Ok(())
    }

    /// Nothing more will come. Unlike in a browser the last event counts without the empty line after
    /// it: whether the answer is complete is up to what it says.
    pub(crate) fn finish(&mut self, read: &mut dyn FnMut(&str)) {
        if !self.line.is_empty() {
            self.end_line(read);
        }
        self.end_event(read);
    }

    fn end_line(&mut self, read: &mut dyn FnMut(&str)) {
        if self.line.is_empty() {
            return self.end_event(read);
        }
        if let Some(data) = self.line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            self.has_data = true;
        }
        self.line.clear();
    }

    fn end_event(&mut self, read: &mut dyn FnMut(&str)) {
        if std::mem::take(&mut self.has_data) {
            read(&String::from_utf8_lossy(&self.data));
        }
        self.data.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(portions: &[&[u8]]) -> Vec<String> {
        let mut found = Vec::new();
        let mut events = Events::default();
        for portion in portions {
            events.push(portion, &mut |data| found.push(data.to_owned())).unwrap();
        }
        events.finish(&mut |data| found.push(data.to_owned()));
        found
    }

    #[test]
    fn events_are_the_same_in_any_portions() {
        let text =
            "event: a\ndata: {\"x\":\"\u{20ac}\"}\n\n: a comment\nid: 3\n\ndata:1\ndata: 2\n\r\ndata: end"
                .as_bytes();
        let expected = ["{\"x\":\"\u{20ac}\"}", "1\n2", "end"];
        for size in 1..text.len() {
            let portions: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(events(&portions), expected, "portions of {size}");
        }
    }

    #[test]
    fn every_kind_of_line_end_is_one() {
        for text in ["data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r", "data: a\n\ndata: b\n\n"] {
            assert_eq!(events(&[text.as_bytes()]), ["a", "b"], "{text:?}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(events(&bytes), ["a", "b"], "{text:?}");
        }
    }

    #[test]
    fn endless_lines_and_answers_are_refused_before_they_fill_the_memory() {
        let portion = vec![b'x'; 1024 * 1024];
        let mut line = Events::default();
        let refused = (0..100).find_map(|_| line.push(&portion, &mut |_| {}).err());
        assert_eq!(refused, Some(TooLong::Line));
        assert!(line.line.capacity() <= 3 * LINE_LIMIT);

        let mut data = Events::default();
        let line = ["data: ", &"x".repeat(10_000), "\n"].concat();
        let refused = (0..1000).find_map(|_| data.push(line.as_bytes(), &mut |_| {}).err());
        assert_eq!(refused, Some(TooLong::Line));

        let mut answer = Events::default();
        let event = b"data: x\n\n".repeat(100_000);
        let refused = (0..1000).find_map(|_| answer.push(&event, &mut |_| {}).err());
        assert_eq!(refused, Some(TooLong::Answer));
    }
}
