//! Where the words of one box stand, for whoever wants to change some of them and no others.

use std::ops::Range;

pub(crate) struct Words {
    /// The first line behind the box (of a step, behind its number too), without the line end.
    pub(crate) head: Range<usize>,
    /// Columns that what is nested is indented by.
    pub(crate) under: usize,
    /// The lines of its description, and what each says.
    pub(crate) description: Vec<(Range<usize>, String)>,
    /// What lines of their own say about dependencies, without the label.
    pub(crate) depends_on: Vec<Range<usize>>,
}

impl Words {
    /// From a place to the end of its line.
    pub(crate) fn behind(text: &str, start: usize) -> Range<usize> {
        let line = text[start..].split('\n').next().unwrap_or_default();
        start..start + line.trim_end_matches('\r').len()
    }
}
