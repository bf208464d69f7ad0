//! Stretches of lines in which nothing is Markdown: comments and fences.

#[derive(Default)]
pub(crate) enum Region {
    #[default]
    None,
    Comment,
    Fence {
        /// What closes it.
        marker: char,
        length: usize,
        /// Indentation of the item it is in: a line that leaves the item ends the fence too.
        item: Option<usize>,
    },
}

/// Where a line stands.
pub(crate) enum Inside {
    Nothing,
    Comment,
    Fence,
}

impl Region {
    /// Takes the next line, which may close the region and is part of it then.
    pub(crate) fn take(&mut self, content: &str, indent: usize) -> Inside {
        match *self {
            Self::None => Inside::Nothing,
            Self::Comment => {
                if content.contains("-->") {
                    *self = Self::None;
                }
                Inside::Comment
            }
            Self::Fence { item: Some(item), .. } if !content.is_empty() && indent <= item => {
                *self = Self::None;
                Inside::Nothing
            }
            Self::Fence { marker, length, .. } => {
                if closes(content, marker, length) {
                    *self = Self::None;
                }
                Inside::Fence
            }
        }
    }
}

/// Does this line close a fence of that kind?
pub(crate) fn closes(content: &str, marker: char, length: usize) -> bool {
    let run = content.chars().take_while(|&c| c == marker).count();
    run >= length && content.trim_start_matches(marker).is_empty()
}
