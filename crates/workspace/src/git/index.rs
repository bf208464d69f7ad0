//! Git's index, read from its file: which files there are, what they hold, and how they looked on the
//! disk when git last saw them. Only what almost every index is made of; anything else is not for us.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use wiggum_core::text::hex;

use crate::beneath::{Links, bytes_of, open_plain};

/// An index that takes longer to read than git takes to start is for git.
const MAX_BYTES: u64 = 2 << 20;

const HEADER: usize = 12;
/// What comes before a path: ten numbers, the blob's name, the flags.
const FIXED: usize = 62;
const CHECKSUM: usize = 20;

pub(super) const LINK: u32 = 0o120_000;
pub(super) const FILE_KIND: u32 = 0o170_000;
const COMMIT: u32 = 0o160_000;
const EXTENDED: u8 = 0x40;
const REGULAR: u32 = 0o100_000;
const EXECUTABLE: u32 = 0o100;

#[derive(Debug)]
pub(super) struct Index {
    bytes: Vec<u8>,
    /// Where each entry begins and where its path lies, sorted by path.
    entries: Vec<(usize, Range<usize>)>,
    /// When the file was written, in seconds and nanoseconds.
    written: (i64, i64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tracked<'a> {
    fixed: &'a [u8],
    pub(super) path: &'a str,
}

impl Index {
    /// Nothing for an index with anything unusual in it.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let mut file = open_plain(path, Links::Follow).ok()?;
        let metadata = file.metadata().ok()?;
        if metadata.len() > MAX_BYTES {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).ok()? + 1);
        file.read_to_end(&mut bytes).ok()?;
        let entries = parse(&bytes)?;
        Some(Self { bytes, entries, written: (metadata.mtime(), metadata.mtime_nsec()) })
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Tracked<'_>> {
        (0..self.entries.len()).filter_map(|at| self.at(at))
    }

    pub(super) fn get(&self, path: &str) -> Option<Tracked<'_>> {
        let path_at = |(_, range): &(usize, Range<usize>)| &self.bytes[range.clone()];
        let at = self.entries.binary_search_by(|entry| path_at(entry).cmp(path.as_bytes())).ok()?;
        self.at(at)
    }

    /// Is the file as it was when git last looked, beyond doubt?
    pub(super) fn holds(&self, tracked: &Tracked<'_>, now: &Metadata) -> bool {
        let modified = (now.mtime(), now.mtime_nsec());
        // One that was written in the same moment as the index may have changed unseen since.
        modified < self.written && tracked.looks_like(now)
    }

    fn at(&self, at: usize) -> Option<Tracked<'_>> {
        let (start, path) = self.entries.get(at)?;
        let path = std::str::from_utf8(&self.bytes[path.clone()]).ok()?;
        Some(Tracked { fixed: &self.bytes[*start..*start + FIXED], path })
    }
}

impl Tracked<'_> {
    pub(super) fn mode(&self) -> u32 {
        self.number(6)
    }

    pub(super) fn blob(&self) -> String {
        hex(self.name())
    }

    pub(super) fn same_content(&self, other: &Tracked<'_>) -> bool {
        self.mode() == other.mode() && self.name() == other.name()
    }

    fn name(&self) -> &[u8] {
        &self.fixed[40..60]
    }

    /// The index keeps the lower half of numbers that do not fit.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as git does")]
    fn looks_like(&self, now: &Metadata) -> bool {
        let kept: [u32; 10] = std::array::from_fn(|at| self.number(at));
        let [changed, changed_nanos, modified, modified_nanos, _, inode, mode, user, group, size] = kept;
        let seen = [
            now.ctime() as u32,
            now.ctime_nsec() as u32,
            now.mtime() as u32,
            now.mtime_nsec() as u32,
            now.ino() as u32,
            now.uid(),
            now.gid(),
            now.size() as u32,
            mode_of(now),
        ];
        seen == [changed, changed_nanos, modified, modified_nanos, inode, user, group, size, mode]
    }

    fn number(&self, at: usize) -> u32 {
        number(self.fixed, at * 4).unwrap_or_default()
    }
}

/// As git writes it.
fn mode_of(file: &Metadata) -> u32 {
    match file.mode() & FILE_KIND {
        REGULAR if file.mode() & EXECUTABLE != 0 => REGULAR | 0o755,
        REGULAR => REGULAR | 0o644,
        kind => kind,
    }
}

/// Is there an index at all? After a power cut there may be an empty file in its place, or one of zeros.
pub fn is_index(path: &Path) -> bool {
    let read = || -> std::io::Result<bool> {
        let mut file = open_plain(path, Links::Follow)?;
        let mut begins = [0; HEADER];
        let is_long_enough = file.metadata()?.len() >= (HEADER + CHECKSUM) as u64;
        file.read_exact(&mut begins)?;
        Ok(is_long_enough && begins.starts_with(b"DIRC"))
    };
    read().unwrap_or(false)
}

/// The paths that stand for commits of other repositories; nothing where git itself should be asked. No file is an
/// empty index.
pub(super) fn links(path: &Path) -> Option<BTreeSet<String>> {
    let bytes = match bytes_of(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(BTreeSet::new()),
        Err(_) => return None,
    };
    if bytes.get(..4)? != b"DIRC" || !matches!(number(&bytes, 4)?, 2 | 3) {
        return None;
    }
    let mut links = BTreeSet::new();
    let mut at = HEADER;
    for _ in 0..number(&bytes, 8)? {
        let fixed = bytes.get(at..at + FIXED)?;
        // Two more bytes of flags where the first ones say so.
        let path = at + FIXED + if fixed[60] & EXTENDED != 0 { 2 } else { 0 };
        let length = bytes.get(path..)?.iter().position(|byte| *byte == 0)?;
        if number(fixed, 24)? & FILE_KIND == COMMIT {
            links.insert(String::from_utf8_lossy(&bytes[path..path + length]).into_owned());
        }
        at += (path - at + length + 8) & !7;
    }
    // The larger part of a split index is elsewhere.
    only_optional(bytes.get(at..bytes.len().checked_sub(CHECKSUM)?)?)?;
    Some(links)
}

fn parse(bytes: &[u8]) -> Option<Vec<(usize, Range<usize>)>> {
    if bytes.get(..4)? != b"DIRC" || number(bytes, 4)? != 2 {
        return None;
    }
    let count = usize::try_from(number(bytes, 8)?).ok()?;
    let end = bytes.len().checked_sub(CHECKSUM)?;
    let mut entries = Vec::with_capacity(count.min(bytes.len() / FIXED));
    let mut at = HEADER;
    for _ in 0..count {
        let fixed = bytes.get(at..at + FIXED)?;
        let [high, _] = fixed[60..] else { return None };
        let kind = number(fixed, 24)? & FILE_KIND;
        // Unmerged, assumed unchanged, extended; a submodule.
        if high & 0xf0 != 0 || !matches!(kind, REGULAR | LINK) {
            return None;
        }
        let path = at + FIXED;
        let length = bytes.get(path..end)?.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&bytes[path..path + length]).ok()?;
        entries.push((at, path..path + length));
        at += (FIXED + length + 8) & !7;
    }
    only_optional(bytes.get(at..end)?)?;
    Some(entries)
}

/// Extensions that are not to be ignored begin with a small letter: parts of the index elsewhere.
fn only_optional(mut extensions: &[u8]) -> Option<()> {
    while let Some(first) = extensions.first() {
        let length = usize::try_from(number(extensions, 4)?).ok()?;
        if !first.is_ascii_uppercase() {
            return None;
        }
        extensions = extensions.get(8usize.checked_add(length)?..)?;
    }
    Some(())
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
