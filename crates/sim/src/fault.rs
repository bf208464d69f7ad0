//! What may go wrong in a simulated world.

use crate::act::Act;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The engine is gone, between any two things it does, and is started again.
    Crash,
    /// Agents and checks that do not end by themselves.
    Hang,
    /// Agents that claim what they have not done.
    Lie,
    /// Agents whose allowance is used up, or whose provider is.
    Limit,
    /// The journal takes seconds.
    SlowDisk,
    /// The journal cannot be written until somebody makes room.
    FullDisk,
    /// What people say does not wake the engine.
    LostAnswer,
    /// Somebody sets the clock, back or forth.
    ClockJump,
}

impl Fault {
    pub const ALL: [Self; 8] = [
        Self::Crash,
        Self::Hang,
        Self::Lie,
        Self::Limit,
        Self::SlowDisk,
        Self::FullDisk,
        Self::LostAnswer,
        Self::ClockJump,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Hang => "hang",
            Self::Lie => "lie",
            Self::Limit => "limit",
            Self::SlowDisk => "slow-disk",
            Self::FullDisk => "full-disk",
            Self::LostAnswer => "lost-answer",
            Self::ClockJump => "clock-jump",
        }
    }

    /// `all`, `none`, or some of them as in `crash,full-disk`.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        match text {
            "all" => return Ok(Self::ALL.to_vec()),
            "none" => return Ok(Vec::new()),
            _ => {}
        }
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        names
            .map(|name| {
                Self::ALL.into_iter().find(|fault| fault.name() == name).ok_or_else(|| {
                    let known = Self::ALL.map(Self::name).join(", ");
                    format!("no fault is called `{name}`; there is all, none, {known}")
                })
            })
            .collect()
    }

    /// What agents do only where this fault may happen.
    pub(crate) fn acts(self) -> &'static [Act] {
        match self {
            Self::Hang => &[Act::Hang, Act::Chatter],
            Self::Lie => &[Act::Lie, Act::Meddle],
            Self::Limit => &[Act::Limit, Act::Overload],
            Self::Crash | Self::SlowDisk | Self::FullDisk | Self::LostAnswer | Self::ClockJump => &[],
        }
    }
}
