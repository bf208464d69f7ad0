//! What reaches the interface, what it has done outside, and what a drawing tells it.

use ratatui_core::layout::Rect;
use ratatui_crossterm::crossterm::event::Event;
use wiggum_core::event::Envelope;
use wiggum_core::ids::LoopId;
use wiggum_engine::checkout::Checkout;
use wiggum_engine::desk::chronicle::Span;
use wiggum_engine::desk::health::LoopHealth;
use wiggum_engine::desk::inbox::Letter;
use wiggum_engine::desk::transcripts::Entry;
use wiggum_store::LoopRecord;

use super::{Act, View};
use crate::model::Book;
use crate::model::output::At;
use crate::model::page::Loaded;

/// A loop somewhere on this machine.
#[derive(Clone, Debug)]
pub(crate) struct LoopRow {
    pub(crate) checkout: Checkout,
    pub(crate) record: LoopRecord,
    pub(crate) health: LoopHealth,
}

/// Something that happened: at the keyboard, in the loop, or as an effect of what was asked.
pub(crate) enum Message {
    Input(Event),
    /// A second went by.
    Tick,
    /// Somebody wants us to end.
    Leave,
    Of(LoopId, News),
    Loops(Vec<LoopRow>),
    /// What came of something that was to be done.
    Said {
        text: String,
        failed: bool,
    },
}

/// What is new about the loop that is looked at.
pub(crate) enum News {
    /// So much of its journal is read.
    Reading {
        read: u64,
        of: u64,
    },
    Opened(Box<Book>),
    Events(Vec<Envelope>),
    Vitals {
        health: Box<LoopHealth>,
        letters: Vec<Letter>,
    },
    /// Its newest agent printed something, as the first of its output or after what came before.
    Output {
        iteration: u32,
        attempt: u32,
        fresh: bool,
        entries: Vec<Entry>,
    },
    /// All that an earlier agent printed.
    Earlier {
        iteration: u32,
        attempt: u32,
        entries: Vec<Entry>,
    },
    Attempt(Box<Loaded>),
    Lost(String),
}

/// Something to be done outside.
pub(crate) enum Effect {
    Do(Act),
    Attach(Box<LoopRow>),
    LoadAttempt(Span),
    LoadOutput(Span),
    ListLoops,
    TakeMouse(bool),
    Redraw,
    Leave,
}

/// A line at the bottom, until the next key.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) failed: bool,
}

/// What can be clicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    Tab(View),
    Row(View, usize),
    Output(At),
    Pane(View),
    Question,
    Choice(usize),
    Field(usize),
}

/// What the last drawing found out, for keys and the mouse to know where things are.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) hits: Vec<(Rect, Hit)>,
    pub(crate) lists: Vec<(View, usize, usize)>,
    /// With their heights and first lines.
    pub(crate) texts: Vec<(Text, usize, usize)>,
    pub(crate) output: Option<(At, usize, usize)>,
}

/// A text that is scrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    Evidence,
    Diff,
    Help,
}
