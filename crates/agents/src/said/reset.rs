//! When a limit ends, in the many ways agents put it.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

/// A time of day that passed this little ago is meant, rather than tomorrow's.
const JUST_PASSED: SignedDuration = SignedDuration::from_mins(10);

/// Words after which the time stands.
const LEADS: [&str; 6] = ["reset", "try again", "retry", "available again", "until", "limit reached|"];

/// Words between such a word and the time.
const FILLERS: [&str; 14] =
    ["s", "ting", "at", "in", "on", "after", "about", "access", "your", "quota", "will", "again", "·", "and"];

/// Reads when a limit ends from text in small letters.
pub(crate) fn reset_time(text: &str, now: &Zoned) -> Option<Timestamp> {
    LEADS
        .iter()
        .flat_map(|lead| text.match_indices(lead))
        .find_map(|(at, lead)| read(&text[at + lead.len()..], now))
}

fn read(rest: &str, now: &Zoned) -> Option<Timestamp> {
    let mut said = Said::default();
    let words = rest.split(|letter: char| letter.is_whitespace() || letter == ',' || letter == '(');
    let words = words.map(|word| word.trim_matches(['.', ')', ':', ';', '"', '\'', '`', '!']));
    for word in words.filter(|word| !word.is_empty()).take(16) {
        if let Some(at) = moment(word) {
            return Some(at);
        }
        if !said.take(word) && (said.is_something() || !FILLERS.contains(&word)) {
            break;
        }
    }
    said.resolve(now)
}

/// A whole moment in one word: seconds or milliseconds since 1970, or as ISO 8601 has it.
fn moment(word: &str) -> Option<Timestamp> {
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = word.parse().ok()?;
        return match word.len() {
            10 => Timestamp::from_second(number).ok(),
            13 => Timestamp::from_millisecond(number).ok(),
            _ => None,
        };
    }
    word.to_uppercase().parse().ok()
}

/// The parts of a time, as far as they were said.
#[derive(Debug, Default)]
struct Said {
    span: Option<SignedDuration>,
    /// A number that may become a span ("3 days"), a time ("7 am") or a day ("12 Nov").
    number: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    year: Option<i16>,
    weekday: Option<Weekday>,
    tomorrow: bool,
    time: Option<Time>,
    zone: Option<TimeZone>,
}

impl Said {
    /// Takes the next word in; false if it is not part of a time.
    fn take(&mut self, word: &str) -> bool {
        if let Some(span) = span(word) {
            self.span = Some(self.span.unwrap_or_default().saturating_add(span));
        } else if let Some((count, unit)) = self.number.zip(unit(word)) {
            self.number = None;
            let span = unit.saturating_mul(i32::from(count));
            self.span = Some(self.span.unwrap_or_default().saturating_add(span));
        } else if let Some(time) = self.half_day(word).or_else(|| time(word)) {
            self.time = Some(time);
        } else if let Some(month) = month(word) {
            self.month = Some(month);
            self.day = self.day.or(self.number.take().and_then(|number| i8::try_from(number).ok()));
        } else if let Some(weekday) = weekday(word) {
            self.weekday = Some(weekday);
        } else if word == "tomorrow" {
            self.tomorrow = true;
        } else if let Some(number) = ordinal(word) {
            self.take_number(number);
        } else if let Some(zone) = zone(word) {
            self.zone = Some(zone);
        } else {
            return self.is_something() && matches!(word, "at" | "and" | "on");
        }
        true
    }

    fn take_number(&mut self, number: i16) {
        match i8::try_from(number) {
            Ok(day) if self.month.is_some() && self.day.is_none() => self.day = Some(day),
            Err(_) if self.month.is_some() && number > 1999 => self.year = Some(number),
            _ => self.number = Some(number),
        }
    }

    /// "am" or "pm", after the time it belongs to.
    fn half_day(&mut self, word: &str) -> Option<Time> {
        let afternoon = match word {
            "am" | "a.m" => false,
            "pm" | "p.m" => true,
            _ => return None,
        };
        match self.number.take() {
            Some(hour) => clock(i8::try_from(hour).ok()?, 0, Some(afternoon)),
            None => self.time.and_then(|time| clock(time.hour(), time.minute(), Some(afternoon))),
        }
    }

    fn is_something(&self) -> bool {
        self.span.is_some()
            || self.number.is_some()
            || self.time.is_some()
            || self.month.is_some()
            || self.weekday.is_some()
            || self.tomorrow
    }

    fn resolve(self, now: &Zoned) -> Option<Timestamp> {
        if let Some(span) = self.span {
            return now.timestamp().checked_add(span).ok();
        }
        let now = now.with_time_zone(self.zone.clone().unwrap_or_else(|| now.time_zone().clone()));
        let time = match self.time {
            Some(time) => time,
            None if self.month.is_some() || self.weekday.is_some() => Time::midnight(),
            None => return None,
        };
        let at = |date: Date| now.time_zone().to_zoned(date.to_datetime(time)).ok();
        let date = self.date(&now)?;
        let named = at(date)?;
        let passed = named.timestamp().checked_add(JUST_PASSED).ok()? < now.timestamp();
        let again = match (self.month, self.weekday) {
            _ if !passed => None,
            (Some(_), _) => None,
            (None, Some(weekday)) => Some(date.nth_weekday(1, weekday).ok()?),
            (None, None) => Some(date.tomorrow().ok()?),
        };
        Some(again.map_or(Some(named), at)?.timestamp())
    }

    fn date(&self, now: &Zoned) -> Option<Date> {
        let today = now.date();
        if let Some((month, day)) = self.month.zip(self.day) {
            let date = Date::new(self.year.unwrap_or(today.year()), month, day).ok()?;
            // Without a year the next such day is meant, and yesterday's is one that just passed.
            let past = self.year.is_none() && date < today.yesterday().ok()?;
            return if past { Date::new(today.year() + 1, month, day).ok() } else { Some(date) };
        }
        if let Some(weekday) = self.weekday {
            return if today.weekday() == weekday { Some(today) } else { today.nth_weekday(1, weekday).ok() };
        }
        if self.tomorrow { today.tomorrow().ok() } else { Some(today) }
    }
}

/// "7:35am", "7am", "19:35", "19:35:00".
fn time(word: &str) -> Option<Time> {
    let (digits, afternoon) = match (word.strip_suffix("am"), word.strip_suffix("pm")) {
        (Some(digits), _) => (digits, Some(false)),
        (_, Some(digits)) => (digits, Some(true)),
        (None, None) => (word, None),
    };
    let mut parts = digits.split(':');
    let hour = parts.next()?.parse().ok()?;
    match parts.next() {
        Some(minute) => clock(hour, minute.parse().ok()?, afternoon),
        None if afternoon.is_some() => clock(hour, 0, afternoon),
        None => None,
    }
}

fn clock(hour: i8, minute: i8, afternoon: Option<bool>) -> Option<Time> {
    let hour = match afternoon {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(false) => hour % 12,
        Some(true) => hour % 12 + 12,
        None => hour,
    };
    Time::new(hour, minute, 0, 0).ok()
}

/// "20s", "1.5s", "18h27m14s".
fn span(word: &str) -> Option<SignedDuration> {
    let mut rest = word;
    let mut sum = SignedDuration::ZERO;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let after = &rest[end..];
        let length = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let part = unit(&after[..length])?;
        sum = sum.saturating_add(SignedDuration::try_from_secs_f64(part.as_secs_f64() * number).ok()?);
        rest = &after[length..];
    }
    (!word.is_empty()).then_some(sum)
}

fn unit(word: &str) -> Option<SignedDuration> {
    Some(match word {
        "ms" => SignedDuration::from_millis(1),
        "s" | "sec" | "secs" | "second" | "seconds" => SignedDuration::from_secs(1),
        "m" | "min" | "mins" | "minute" | "minutes" => SignedDuration::from_mins(1),
        "h" | "hr" | "hrs" | "hour" | "hours" => SignedDuration::from_hours(1),
        "d" | "day" | "days" => SignedDuration::from_hours(24),
        _ => return None,
    })
}

/// "12", "12th".
fn ordinal(word: &str) -> Option<i16> {
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    matches!(&word[digits.len()..], "" | "st" | "nd" | "rd" | "th").then(|| digits.parse().ok())?
}

fn month(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let found = MONTHS.iter().position(|month| word.len() >= 3 && month.starts_with(word))?;
    i8::try_from(found + 1).ok()
}

fn weekday(word: &str) -> Option<Weekday> {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let found = DAYS.iter().position(|day| word.len() >= 3 && day.starts_with(word))?;
    Weekday::from_monday_one_offset(i8::try_from(found + 1).ok()?).ok()
}

/// "utc", "gmt+2", "america/new_york".
fn zone(word: &str) -> Option<TimeZone> {
    if word.contains('/') {
        return TimeZone::get(word).ok();
    }
    let hours = word.strip_prefix("utc").or_else(|| word.strip_prefix("gmt"))?;
    match hours {
        "" => Some(TimeZone::UTC),
        hours => Some(TimeZone::fixed(Offset::from_hours(hours.parse().ok()?).ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let now: Zoned = "2026-11-15T12:00:00+01:00[+01:00]".parse().unwrap();
        let read = reset_time(&text.to_lowercase(), &now).map_or("none".to_owned(), |at| at.to_string());
        assert_eq!(read, expected, "{text}");
    }

    #[test]
    fn moments_are_read_as_they_are() {
        check("Claude AI usage limit reached|1794729540", "2026-11-15T07:59:00Z");
        check("resets 1794729540000", "2026-11-15T07:59:00Z");
        check("limited until 2026-11-16T08:00:00Z.", "2026-11-16T08:00:00Z");
        check("Quota resets at 2026-11-16T08:00:00+01:00", "2026-11-16T07:00:00Z");
    }

    #[test]
    fn a_time_of_day_is_the_next_one() {
        check("resets 7:35pm (UTC)", "2026-11-15T19:35:00Z");
        check("resets 7:35am (UTC)", "2026-11-16T07:35:00Z");
        check("try again at 7:43 PM.", "2026-11-15T18:43:00Z");
        check("try again at 7:43 AM.", "2026-11-16T06:43:00Z");
        check("resets 12am (UTC)", "2026-11-16T00:00:00Z");
        check("resets at 12pm", "2026-11-15T11:00:00Z");
        check("resets at 11:55 AM", "2026-11-15T10:55:00Z");
        check("resets at 11:45 AM", "2026-11-16T10:45:00Z");
        check("resets at 19:30", "2026-11-15T18:30:00Z");
        check("access resets at 11:00 PM GMT+2", "2026-11-15T21:00:00Z");
        check("resets tomorrow at 9am (UTC)", "2026-11-16T09:00:00Z");
        check("resets Wed 9am (UTC)", "2026-11-18T09:00:00Z");
        check("resets Sunday 3pm (UTC)", "2026-11-15T15:00:00Z");
        check("resets Sunday 9am (UTC)", "2026-11-22T09:00:00Z");
    }

    #[test]
    fn dates_are_read_with_and_without_a_year() {
        check("resets Nov 12, 2036, 7:04am (UTC)", "2036-11-12T07:04:00Z");
        check("resets Nov 18 at 9am (UTC)", "2026-11-18T09:00:00Z");
        check("resets Nov 14, 2026, 9am (UTC)", "2026-11-14T09:00:00Z");
        check("resets Jan 2, 9am (UTC)", "2027-01-02T09:00:00Z");
        check("try again at Nov 22nd, 2026 7:43 PM.", "2026-11-22T18:43:00Z");
        check("resets 18 November 9:30am (UTC)", "2026-11-18T09:30:00Z");
        check("resets on Dec 1", "2026-11-30T23:00:00Z");
    }

    #[test]
    fn spans_count_from_now() {
        check("Please try again in 20s.", "2026-11-15T11:00:20Z");
        check("try again in 1.5s", "2026-11-15T11:00:01.5Z");
        check("Try again in 4 days 20 hours 9 minutes.", "2026-11-20T07:09:00Z");
        check("quota will reset after 18h27m14s", "2026-11-16T05:27:14Z");
        check("retry after 3600 seconds", "2026-11-15T12:00:00Z");
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "try again later",
            "please retry",
            "resets soon",
            "reset your password",
            "retry 3",
            "try again at 25:00",
            "resets 13pm",
            "until Feb 31",
            "resets 99999999999999999999",
            "",
        ] {
            check(text, "none");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_words_make_it_fall_over(words in proptest::collection::vec(proptest::sample::select(WORDS.to_vec()), 0..9)) {
            let now: Zoned = "2026-11-15T12:00:00+01:00[+01:00]".parse().unwrap();
            reset_time(&format!("resets {}", words.join(" ")), &now);
        }
    }

    const WORDS: [&str; 26] = [
        "at",
        "in",
        "7",
        "32767",
        "9:59",
        "am",
        "pm",
        "12pm",
        "nov",
        "31",
        "31st",
        "2036",
        "9999",
        "mon",
        "tomorrow",
        "(utc)",
        "gmt+25",
        "gmt-12",
        "no/where",
        "days",
        "9e9",
        "99999999999999999999d",
        "9223372036854775807s",
        "9999-12-31t23:59:59z",
        "9999999999999",
        "é",
    ];
}
