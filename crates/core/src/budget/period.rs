//! Budgets that begin anew: every day, week or month of the user's calendar.

use jiff::civil::Weekday;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};

use super::Budget;

/// How long a budget lasts before it begins anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// It lasts for ever.
    #[default]
    None,
    Day,
    /// From Monday on.
    Week,
    Month,
}

/// One such time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub begins: Timestamp,
    /// The first moment after it.
    pub ends: Timestamp,
}

/// The time under way of each budget that loops share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    pub project: Option<Span>,
    pub organisation: Option<Span>,
}

impl Period {
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// Which one a moment lies in, by the calendar of its time zone. Nothing if the budget lasts for ever,
    /// or at the end of all time.
    pub fn span(self, now: &Zoned) -> Option<Span> {
        let today = now.date();
        let (first, next) = match self {
            Self::None => return None,
            Self::Day => (today, today.tomorrow()),
            Self::Week => {
                let days = i64::from(today.weekday().since(Weekday::Monday));
                let monday = today.checked_sub(jiff::Span::new().days(days)).ok()?;
                (monday, monday.checked_add(jiff::Span::new().days(7)))
            }
            Self::Month => (today.first_of_month(), today.last_of_month().tomorrow()),
        };
        // The first moment of a day, also where clocks are changed at midnight.
        let begin = |date: jiff::civil::Date| {
            date.to_zoned(now.time_zone().clone())
                .and_then(|day| day.start_of_day())
                .map(|day| day.timestamp())
        };
        Some(Span { begins: begin(first).ok()?, ends: begin(next.ok()?).ok()? })
    }
}

impl Budget {
    /// The times under way of the budgets that loops share.
    pub fn spans(&self, now: &Zoned) -> Spans {
        Spans { project: self.project.period.span(now), organisation: self.organisation.period.span(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(period: Period, now: &str, expected: Option<(&str, &str)>) {
        let span = period.span(&now.parse().unwrap());
        let moments = |(begins, ends): (&str, &str)| Span {
            begins: begins.parse::<Zoned>().unwrap().timestamp(),
            ends: ends.parse::<Zoned>().unwrap().timestamp(),
        };
        assert_eq!(span, expected.map(moments), "{period:?} {now}");
    }

    #[test]
    fn a_period_begins_and_ends_with_days_of_the_calendar() {
        let now = "2026-11-18T23:30:00+01:00[Europe/Berlin]";
        let midnight = |day: &str| format!("2026-{day}T00:00:00+01:00[Europe/Berlin]");
        check(Period::None, now, None);
        check(Period::Day, now, Some((&midnight("11-18"), &midnight("11-19"))));
        check(Period::Week, now, Some((&midnight("11-16"), &midnight("11-23"))));
        check(Period::Month, now, Some((&midnight("11-01"), &midnight("12-01"))));
        // At the very beginning.
        check(Period::Week, &midnight("11-16"), Some((&midnight("11-16"), &midnight("11-23"))));
        check(
            Period::Month,
            &midnight("12-01"),
            Some((&midnight("12-01"), "2027-01-01T00:00:00+01:00[Europe/Berlin]")),
        );
    }

    #[test]
    fn clocks_may_be_changed_meanwhile() {
        // One of these days has 25 hours, another has no midnight.
        let (begins, ends) =
            ("2026-10-25T00:00:00+02:00[Europe/Berlin]", "2026-10-26T00:00:00+01:00[Europe/Berlin]");
        check(Period::Day, "2026-10-25T12:00:00+01:00[Europe/Berlin]", Some((begins, ends)));
        let begins = "2026-04-24T01:00:00+03:00[Africa/Cairo]";
        let ends = "2026-04-25T00:00:00+03:00[Africa/Cairo]";
        check(Period::Day, "2026-04-24T12:00:00+03:00[Africa/Cairo]", Some((begins, ends)));
    }
}
