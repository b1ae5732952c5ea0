//! The times at which monitors and data tests run.
//!
//! In: a cron expression of five fields and the name of a zone. Out: the next time. The library `croner` handles
//! changes to and from daylight saving time: if a time does not exist on a day, the run is at the first time after it;
//! if a time exists twice, there is one run. Not here: the runs.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The largest number of characters of a cron expression.
const MAX_CHARS: usize = 200;

/// A cron expression in a zone.
#[derive(Debug, Clone)]
pub struct CronSchedule {
    cron: Cron,
    zone: TimeZone,
}

/// The reason why a schedule is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("`{text}` is not a cron expression of five fields, such as `0 6 * * *`: {problem}")]
    Expression { text: String, problem: String },
    #[error("`{text}` never occurs: no month that it names has such a day; an expression that occurs is `0 6 28 2 *`")]
    Never { text: String },
    #[error("unknown time zone `{name}`")]
    Zone { name: String },
}

impl ScheduleError {
    /// Returns the name of the field with the invalid value.
    pub fn field(&self) -> &'static str {
        match self {
            ScheduleError::Expression { .. } | ScheduleError::Never { .. } => "schedule",
            ScheduleError::Zone { .. } => "timezone",
        }
    }
}

/// The five fields of an expression with their values.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31 or `L`"),
    ("month", "1 to 12 or `JAN` to `DEC`"),
    ("day of the week", "0 to 7 or `SUN` to `SAT`"),
];

impl CronSchedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// The expression or the zone is invalid.
    pub fn parse(text: &str, zone: &str) -> Result<CronSchedule, ScheduleError> {
        let cron = expression(text)?;
        let zone = TimeZone::get(zone).map_err(|_| ScheduleError::Zone { name: zone.chars().take(100).collect() })?;
        Ok(CronSchedule { cron, zone })
    }

    /// Reads a schedule in a known zone.
    ///
    /// # Errors
    /// The expression is invalid.
    pub fn in_zone(text: &str, zone: TimeZone) -> Result<CronSchedule, ScheduleError> {
        Ok(CronSchedule { cron: expression(text)?, zone })
    }

    /// Returns the first scheduled time after `now`; `None` if the schedule has no later time.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let next = self.cron.find_next_occurrence(&now.to_zoned(self.zone.clone()), false).ok()?;
        Some(next.timestamp())
    }
}

fn expression(text: &str) -> Result<Cron, ScheduleError> {
    let shown = || text.chars().take(MAX_CHARS).collect::<String>();
    let invalid = |problem: String| ScheduleError::Expression { text: shown(), problem };
    if text.chars().count() > MAX_CHARS {
        return Err(invalid(format!("it has more than {MAX_CHARS} characters")));
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(text).map_err(|error| invalid(invalid_field(&parser, text).unwrap_or_else(|| error.to_string())))
}

/// Describes the first field that is invalid by itself.
fn invalid_field(parser: &CronParser, text: &str) -> Option<String> {
    let found: Vec<&str> = text.split_whitespace().collect();
    if found.len() != FIELDS.len() {
        let plural = if found.len() == 1 { "" } else { "s" };
        return Some(format!("it has {} field{plural}", found.len()));
    }
    let is_invalid = |at: &usize| {
        let mut only = ["*"; FIELDS.len()];
        only[*at] = found[*at];
        parser.parse(&only.join(" ")).is_err()
    };
    let at = (0..FIELDS.len()).find(is_invalid)?;
    let (name, values) = FIELDS[at];
    Some(format!("the {name} `{}` is invalid; expected {values}, or `*`", found[at]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    fn next(text: &str, zone: &str, now: &str) -> String {
        CronSchedule::parse(text, zone).unwrap().next(now.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn times_are_those_of_the_zone() {
        for (text, zone, now, expected) in [
            ("0 6 * * *", "UTC", "2024-01-01T05:59:59Z", "2024-01-01T06:00:00Z"),
            ("0 6 * * *", "UTC", "2024-01-01T06:00:00Z", "2024-01-02T06:00:00Z"),
            ("0 6 * * *", "America/New_York", "2024-01-01T06:00:00Z", "2024-01-01T11:00:00Z"),
            ("0 6 * * *", "America/New_York", "2024-07-01T06:00:00Z", "2024-07-01T10:00:00Z"),
            ("*/15 * * * *", "Asia/Kolkata", "2024-01-01T00:01:00Z", "2024-01-01T00:15:00Z"),
            ("0 0 * * MON", "Europe/Berlin", "2024-01-03T00:00:00Z", "2024-01-07T23:00:00Z"),
            ("0 0 29 2 *", "UTC", "2024-03-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ] {
            assert_eq!(next(text, zone, now), expected, "{text} {zone} {now}");
        }
    }

    /// A daily schedule runs once on each date of 20 zones, even on days that have 23 or 25 hours.
    #[test]
    fn daily_schedules_run_once_a_day_in_every_zone() {
        const ZONES: [&str; 20] = [
            "UTC",
            "Europe/Berlin",
            "Europe/London",
            "Europe/Dublin",
            "Europe/Moscow",
            "America/New_York",
            "America/Chicago",
            "America/Denver",
            "America/Los_Angeles",
            "America/Sao_Paulo",
            "America/St_Johns",
            "America/Havana",
            "Africa/Cairo",
            "Africa/Casablanca",
            "Asia/Kolkata",
            "Asia/Kathmandu",
            "Asia/Beirut",
            "Australia/Lord_Howe",
            "Australia/Sydney",
            "Pacific/Auckland",
        ];
        for zone in ZONES {
            for text in ["30 2 * * *", "0 0 * * *", "15 1 * * *", "0 12 * * *"] {
                let schedule = CronSchedule::parse(text, zone).unwrap();
                let mut now: Timestamp = "2024-01-01T12:00:00Z".parse().unwrap();
                let zone = TimeZone::get(zone).unwrap();
                let mut before = None;
                for _ in 0..366 {
                    let next = schedule.next(now).unwrap();
                    assert!(next > now);
                    let date = next.to_zoned(zone.clone()).date();
                    if let Some(before) = before {
                        assert_eq!(date, jiff::civil::Date::tomorrow(before).unwrap(), "{text} {zone:?}");
                    }
                    (before, now) = (Some(date), next);
                }
            }
        }
    }

    #[test]
    fn invalid_schedules_are_reported() {
        let error = |text: &str, zone: &str| CronSchedule::parse(text, zone).unwrap_err();
        for text in ["", "daily", "* * * *", "0 0 0 * * *", "61 * * * *", "0 25 * * *", "0 0 32 * *", &"*".repeat(300)]
        {
            assert!(matches!(error(text, "UTC"), ScheduleError::Expression { .. }), "{text}");
        }
        let problem = |text: &str| match error(text, "UTC") {
            ScheduleError::Expression { problem, .. } => problem,
            other => panic!("{other}"),
        };
        for (text, expected) in [
            ("61 * * * *", "the minute `61` is invalid; expected 0 to 59, or `*`"),
            ("0 25 * * *", "the hour `25` is invalid; expected 0 to 23, or `*`"),
            ("0 0 32 * *", "the day of the month `32` is invalid; expected 1 to 31 or `L`, or `*`"),
            ("0 0 * 13 *", "the month `13` is invalid; expected 1 to 12 or `JAN` to `DEC`, or `*`"),
            ("0 0 * * 8", "the day of the week `8` is invalid; expected 0 to 7 or `SUN` to `SAT`, or `*`"),
            ("daily", "it has 1 field"),
            ("0 0 0 * * *", "it has 6 fields"),
        ] {
            assert_eq!(problem(text), expected, "{text}");
        }
        assert_eq!(error("61 * * * *", "UTC").field(), "schedule");
        assert_eq!(error("0 0 * * *", "Mars/Olympus").field(), "timezone");
        assert_eq!(error("0 0 * * *", "Mars/Olympus"), ScheduleError::Zone { name: "Mars/Olympus".to_owned() });
        assert_eq!(CronSchedule::parse("0 0 31 2 *", "UTC").unwrap().next(Timestamp::UNIX_EPOCH), None);
    }
}
