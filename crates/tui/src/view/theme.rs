//! Colours and attributes: the sixteen of every terminal, and none that assumes a background. Whatever a colour
//! says is also said by a sign or a word.

use ratatui_core::style::{Color, Modifier, Style};

use crate::model::Mark;
use crate::model::page::Tone;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    pub(crate) colour: bool,
}

impl Theme {
    pub(crate) fn plain(self) -> Style {
        Style::new()
    }

    pub(crate) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What is chosen.
    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(crate) fn good(self) -> Style {
        self.fg(Color::Green)
    }

    pub(crate) fn bad(self) -> Style {
        self.fg(Color::Red)
    }

    pub(crate) fn warning(self) -> Style {
        self.fg(Color::Yellow)
    }

    pub(crate) fn lively(self) -> Style {
        self.fg(Color::Cyan)
    }

    /// What must not be overlooked.
    pub(crate) fn loud(self) -> Style {
        self.warning().add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    pub(crate) fn found(self) -> Style {
        Style::new().add_modifier(Modifier::UNDERLINED | Modifier::BOLD)
    }

    pub(crate) fn mark(self, mark: Mark) -> (&'static str, Style) {
        match mark {
            Mark::Ready => ("○", self.plain()),
            Mark::Waiting => ("·", self.dim()),
            Mark::Running => ("▶", self.lively().add_modifier(Modifier::BOLD)),
            Mark::Interrupted => ("‖", self.warning()),
            Mark::Asked => ("?", self.warning().add_modifier(Modifier::BOLD)),
            Mark::Done => ("✓", self.good()),
            Mark::Unverified => ("~", self.warning()),
            Mark::ByHand => ("✓", self.dim()),
            Mark::Failed => ("✗", self.bad()),
            Mark::Skipped => ("-", self.dim()),
        }
    }

    pub(crate) fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Heading => self.bold(),
            Tone::Plain => self.plain(),
            Tone::Dim => self.dim(),
            Tone::Good | Tone::Added => self.good(),
            Tone::Bad | Tone::Removed => self.bad(),
            Tone::Warning => self.warning(),
            Tone::Hunk => self.lively(),
            Tone::File => self.bold(),
        }
    }

    /// How an iteration ended.
    pub(crate) fn outcome(self, outcome: &str) -> (&'static str, Style) {
        match outcome {
            "completed" | "accepted" => ("✓", self.good()),
            "under way" => ("▶", self.lively()),
            "interrupted" | "handed over" => ("‖", self.dim()),
            "asked a question" | "held for a person" => ("?", self.warning()),
            "agent unavailable" => ("…", self.warning()),
            _ => ("✗", self.bad()),
        }
    }

    fn fg(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }
}
