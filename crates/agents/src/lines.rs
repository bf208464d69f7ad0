//! Cuts a stream into lines without ever holding more than one, and that one only up to a limit.

/// The longest line that is read. Tool results with pictures in them reach some megabytes; nothing
/// that counts does.
const LIMIT: usize = 8 * 1024 * 1024;
/// How much of a longer line is kept, to say what it was.
const HEAD: usize = 120;

/// A line of any bytes, without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Whole(&'a [u8]),
    /// The beginning of a line that was too long to be read.
    Overlong(&'a [u8]),
}

#[derive(Clone, Debug)]
pub(crate) struct Lines {
    held: Vec<u8>,
    overlong: bool,
    limit: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self { held: Vec::new(), overlong: false, limit: LIMIT }
    }
}

impl Lines {
    /// Hands out the lines that these bytes complete. A line that lies in them as a whole is not
    /// copied.
    pub(crate) fn push(&mut self, mut bytes: &[u8], read: &mut dyn FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (piece, rest) = bytes.split_at(end);
            if self.held.is_empty() && piece.len() <= self.limit {
                read(Line::Whole(piece));
            } else {
                self.hold(piece);
                self.release(read);
            }
            bytes = &rest[1..];
        }
        self.hold(bytes);
    }

    /// Hands out what came after the last line's end.
    pub(crate) fn finish(&mut self, read: &mut dyn FnMut(Line<'_>)) {
        if !self.held.is_empty() {
            self.release(read);
        }
    }

    fn hold(&mut self, piece: &[u8]) {
        if self.overlong {
            return;
        }
        if self.held.len() + piece.len() > self.limit {
            self.overlong = true;
            self.held.extend_from_slice(&piece[..piece.len().min(HEAD)]);
            self.held.truncate(HEAD);
            self.held.shrink_to_fit();
        } else {
            self.held.extend_from_slice(piece);
        }
    }

    fn release(&mut self, read: &mut dyn FnMut(Line<'_>)) {
        read(if self.overlong { Line::Overlong(&self.held) } else { Line::Whole(&self.held) });
        self.held.clear();
        self.overlong = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(limit: usize, portions: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines { limit, ..Lines::default() };
        let mut read = Vec::new();
        let mut keep = |line: Line<'_>| {
            read.push(match line {
                Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Line::Overlong(head) => format!("{}…", String::from_utf8_lossy(head)),
            });
        };
        for portion in portions {
            lines.push(portion, &mut keep);
        }
        lines.finish(&mut keep);
        read
    }

    #[test]
    fn lines_come_out_whole_however_they_arrive() {
        assert_eq!(cut(9, &[b"one\ntwo\n\nthr", b"ee\nfo", b"", b"ur"]), ["one", "two", "", "three", "four"]);
        assert_eq!(cut(9, &[b"one\n"]), ["one"]);
        assert_eq!(cut(9, &[]), [""; 0]);
    }

    #[test]
    fn a_line_beyond_the_limit_is_told_by_its_beginning_and_the_next_is_read() {
        assert_eq!(cut(3, &[b"long\nabc\n"]), ["long…", "abc"]);
        assert_eq!(cut(3, &[b"lo", b"ng", b"er\nabc", b"d"]), ["long…", "abcd…"]);
    }

    #[test]
    fn an_endless_line_takes_no_more_memory_than_the_longest_that_is_read() {
        let mut lines = Lines::default();
        let portion = vec![b'x'; 1024 * 1024];
        for _ in 0..1024 {
            lines.push(&portion, &mut |_| panic!("it has no end"));
            assert!(lines.held.capacity() <= 2 * LIMIT);
        }
        assert!(lines.held.capacity() <= 2 * HEAD);
        let mut heads = Vec::new();
        lines.push(b"\nnext\n", &mut |line| {
            heads.push(matches!(line, Line::Overlong(head) if head.len() == HEAD))
        });
        assert_eq!(heads, [true, false]);
    }
}
