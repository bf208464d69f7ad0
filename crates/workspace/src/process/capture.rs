//! Keeping the beginning and the end of an output of any length.

use std::collections::VecDeque;

/// The head shows what was run, the tail how it ended; failures are nearly always in the tail.
const HEAD: usize = 32 * 1024;
const TAIL: usize = 96 * 1024;

#[derive(Clone, Debug, Default)]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Capture {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(TAIL)..];
        let overflow = (self.tail.len() + rest.len()).saturating_sub(TAIL);
        self.tail.drain(..overflow);
        self.tail.extend(rest);
    }

    /// Bytes that were pushed, kept or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that were not kept.
    pub fn cut(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    pub fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        let tail = [front, back].concat();
        if self.cut() == 0 {
            return String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned();
        }
        let (head, tail) = (without_broken_end(&self.head), without_broken_start(&tail));
        let cut = self.total - (head.len() + tail.len()) as u64;
        format!("{}\n… {cut} bytes cut …\n{}", String::from_utf8_lossy(head), String::from_utf8_lossy(tail))
    }
}

/// Drops a character that the cut went through.
fn without_broken_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

fn without_broken_start(bytes: &[u8]) -> &[u8] {
    let broken = bytes.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
    &bytes[broken..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_kept_whole() {
        let mut capture = Capture::new();
        capture.push("grün\n".as_bytes());
        capture.push(b"end");
        assert_eq!((capture.text().as_str(), capture.total(), capture.cut()), ("grün\nend", 9, 0));
    }

    #[test]
    fn exactly_as_much_as_fits_is_not_cut() {
        let mut capture = Capture::new();
        capture.push(&vec![b'x'; HEAD + TAIL]);
        assert_eq!(capture.text().len(), HEAD + TAIL);
        assert_eq!(capture.cut(), 0);
    }

    #[test]
    fn head_and_tail_of_a_flood_are_kept() {
        for chunk in [1, 7, 4096, HEAD, HEAD + TAIL + 1, 1 << 20] {
            let all: Vec<u8> = (0..100_000).flat_map(|line| format!("line {line}\n").into_bytes()).collect();
            let mut capture = Capture::new();
            all.chunks(chunk).for_each(|bytes| capture.push(bytes));
            let text = capture.text();
            let (head, rest) = text.split_once("\n… ").unwrap();
            let (cut, tail) = rest.split_once(" bytes cut …\n").unwrap();
            assert!(all.starts_with(head.as_bytes()) && all.ends_with(tail.as_bytes()));
            assert_eq!((head.len(), tail.len()), (HEAD, TAIL));
            assert_eq!(cut.parse::<usize>().unwrap(), all.len() - HEAD - TAIL);
        }
    }

    #[test]
    fn a_cut_never_goes_through_a_character() {
        let mut capture = Capture::new();
        capture.push("€".repeat(100_000).as_bytes());
        assert!(!capture.text().contains('\u{fffd}'));
        assert!(capture.text().len() < HEAD + TAIL + 40);
    }
}
