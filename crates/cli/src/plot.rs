//! Small pictures in a terminal: areas and bars, in blocks or in plain characters.

/// What a picture may be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Canvas {
    pub(crate) width: usize,
    blocks: bool,
}

/// Wider than this a picture says no more.
const WIDEST: usize = 72;
const NARROWEST: usize = 8;

impl Canvas {
    /// What this terminal can show.
    pub(crate) fn here() -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let told = || set("COLUMNS").and_then(|text| text.parse().ok());
        let seen = || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_col.into());
        let columns = told().or_else(seen).filter(|columns| *columns > 0).unwrap_or(80);
        // The first of these that is set decides, as in every other program.
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        let blocks = locale.is_none_or(|locale| {
            let locale = locale.to_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        Self::new(columns, blocks)
    }

    pub(crate) fn new(columns: usize, blocks: bool) -> Self {
        Self { width: columns.saturating_sub(12).clamp(NARROWEST, WIDEST), blocks }
    }

    /// The area below a curve, so many lines high, the highest value at the top.
    pub(crate) fn area(self, values: &[f64], height: usize) -> Vec<String> {
        const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let top = values.iter().copied().fold(0.0, f64::max);
        let filled = |value: &f64| if top > 0.0 { value / top * (height * 8) as f64 } else { 0.0 };
        let cell = |value: &f64, line: usize| {
            let eighths = (filled(value).round() as usize).saturating_sub((height - 1 - line) * 8).min(8);
            match (self.blocks, eighths) {
                (true, eighths) => EIGHTHS[eighths],
                (false, 0..4) => ' ',
                (false, _) => '#',
            }
        };
        let line = |line: usize| values.iter().map(|value| cell(value, line)).collect::<String>();
        (0..height).map(|number| line(number).trim_end().to_owned()).collect()
    }

    /// A bar of consecutive parts, each up to its value, the last as long as the bar is wide.
    pub(crate) fn bar(self, ends: &[f64]) -> String {
        let marks = if self.blocks { ['█', '▓', '▒', '░'] } else { ['#', '=', '-', '.'] };
        let longest = ends.last().copied().filter(|last| *last > 0.0);
        let Some(longest) = longest else { return String::new() };
        let mut bar = String::new();
        for (end, mark) in ends.iter().zip(marks.into_iter().cycle()) {
            let columns = (end / longest * self.width as f64).round() as usize;
            let missing = columns.saturating_sub(bar.chars().count());
            bar.extend(std::iter::repeat_n(mark, missing));
        }
        bar
    }

    /// What stands at each column for a value that changes at these moments, from the first to the
    /// last of them.
    pub(crate) fn over_time(self, changes: &[(i64, f64)]) -> Vec<f64> {
        let (Some((first, _)), Some((last, _))) = (changes.first(), changes.last()) else {
            return Vec::new();
        };
        let span = (last - first).max(1) as f64;
        let mut changes_left = changes.iter().peekable();
        let mut value = 0.0;
        (1..=self.width)
            .map(|column| {
                let until = *first as f64 + span * column as f64 / self.width as f64;
                while let Some((_, next)) = changes_left.next_if(|(at, _)| *at as f64 <= until) {
                    value = *next;
                }
                value
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_in_blocks_and_in_plain_characters() {
        let values = [0.0, 1.0, 2.0, 4.0];
        assert_eq!(Canvas::new(80, true).area(&values, 2), ["   █", " ▄██"]);
        assert_eq!(Canvas::new(80, false).area(&values, 2), ["   #", " ###"]);
        assert_eq!(Canvas::new(80, true).area(&[0.0, 0.0], 1), [""]);
    }

    #[test]
    fn bars_are_as_wide_as_the_terminal_lets_them_be() {
        assert_eq!(Canvas::new(20, false).bar(&[1.0, 2.0, 4.0]), "##==----");
        assert_eq!(Canvas::new(1, true).bar(&[2.0, 4.0]), "████▓▓▓▓");
        assert_eq!(Canvas::new(200, true).bar(&[1.0]).chars().count(), WIDEST);
        assert_eq!(Canvas::new(80, true).bar(&[0.0]), "");
    }

    #[test]
    fn a_value_stands_until_the_next_one() {
        let canvas = Canvas::new(20, true);
        assert_eq!(
            canvas.over_time(&[(0, 1.0), (50, 2.0), (100, 3.0)]),
            [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 3.0]
        );
        assert_eq!(canvas.over_time(&[(7, 1.0)]), [1.0; 8]);
        assert!(canvas.over_time(&[]).is_empty());
    }
}
