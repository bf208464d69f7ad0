//! Where somebody is in a list: the row that is chosen, and the first one that is seen.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scroll {
    pub(crate) at: usize,
    pub(crate) top: usize,
    /// Rows that were seen at last.
    pub(crate) height: usize,
}

impl Scroll {
    pub(crate) fn step(&mut self, by: isize, count: usize) {
        self.at = self.at.saturating_add_signed(by).min(count.saturating_sub(1));
    }

    pub(crate) fn page(&self) -> isize {
        isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1)
    }

    /// The first row of a window in which the chosen one is.
    pub(crate) fn first(&self, count: usize, height: usize) -> usize {
        let at = self.at.min(count.saturating_sub(1));
        let lowest = (at + 1).saturating_sub(height);
        self.top.clamp(lowest, at).min(count.saturating_sub(height))
    }

    /// For texts, which have no chosen row: the first line that is seen. How far one can go is known only where
    /// lines are drawn, since long ones take several rows.
    pub(crate) fn step_text(&mut self, by: isize, count: usize) {
        self.top = self.top.saturating_add_signed(by).min(count.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_row_is_always_seen() {
        let mut scroll = Scroll::default();
        for by in [5_isize, 30, -3, 100, -200, 7] {
            scroll.step(by, 50);
            let first = scroll.first(50, 10);
            assert!((first..first + 10).contains(&scroll.at) && first + 10 <= 50, "{scroll:?} {first}");
            scroll.top = first;
        }
        assert_eq!(scroll.first(0, 10), 0);
        assert_eq!(scroll.first(3, 10), 0, "a short list begins at its beginning");
    }
}
