//! Cases for time zones: instants as local times, and buckets of local hours and days around clock changes. For an
//! engine without time zones, the host adds offsets, and the cases test this addition.

use super::writer::{Expr, Writer, fill, x};
use super::{Expected, Suite};
use crate::Granularity::{self, Day, Hour, Minute, Month, Second, Week};
use crate::LogicalType;
use crate::dialect::Op;

/// An instant, a zone, the zone's offset at the instant in seconds, and the local time of the zone.
const LOCAL: [(&str, &str, i64, &str); 10] = [
    ("2024-01-15 12:00:00", "America/New_York", -18_000, "2024-01-15 07:00:00"),
    ("2024-07-15 12:00:00", "America/New_York", -14_400, "2024-07-15 08:00:00"),
    ("2024-07-15 12:00:00.25", "Europe/Berlin", 7_200, "2024-07-15 14:00:00.25"),
    ("2024-03-31 00:59:59", "Europe/Berlin", 3_600, "2024-03-31 01:59:59"),
    ("2024-03-31 01:00:00", "Europe/Berlin", 7_200, "2024-03-31 03:00:00"),
    ("2024-10-27 00:30:00", "Europe/Berlin", 7_200, "2024-10-27 02:30:00"),
    ("2024-10-27 01:30:00", "Europe/Berlin", 3_600, "2024-10-27 02:30:00"),
    ("2024-01-01 00:00:00", "Asia/Kathmandu", 20_700, "2024-01-01 05:45:00"),
    ("2024-12-31 23:30:00", "Asia/Tokyo", 32_400, "2025-01-01 08:30:00"),
    ("2024-06-01 12:34:56", "UTC", 0, "2024-06-01 12:34:56"),
];

/// An instant, a zone, its offset, and the start of the instant's local bucket as an instant. In Berlin, the hour from
/// 02:00 to 03:00 occurs twice on one day in autumn. Kathmandu's hours begin at a quarter past. Lord Howe's clock moves
/// by half an hour.
const INSTANTS: [(Granularity, &str, &str, i64, &str); 10] = [
    (Hour, "2024-10-27 00:30:00", "Europe/Berlin", 7_200, "2024-10-27 00:00:00"),
    (Hour, "2024-10-27 01:30:00", "Europe/Berlin", 3_600, "2024-10-27 01:00:00"),
    (Hour, "2024-03-31 01:30:00", "Europe/Berlin", 7_200, "2024-03-31 01:00:00"),
    (Hour, "2024-01-01 10:20:00", "Asia/Kathmandu", 20_700, "2024-01-01 10:15:00"),
    (Hour, "2024-01-01 10:10:00", "Asia/Kathmandu", 20_700, "2024-01-01 09:15:00"),
    (Hour, "2024-11-03 06:59:59.999", "America/New_York", -18_000, "2024-11-03 06:00:00"),
    (Hour, "2024-06-01 00:45:00", "Australia/Lord_Howe", 37_800, "2024-06-01 00:30:00"),
    (Minute, "2024-10-27 01:30:59", "Europe/Berlin", 3_600, "2024-10-27 01:30:00"),
    (Minute, "2024-01-01 10:10:30", "Asia/Kathmandu", 20_700, "2024-01-01 10:10:00"),
    (Second, "2024-10-27 01:30:59.75", "Europe/Berlin", 3_600, "2024-10-27 01:30:59"),
];

/// An instant, a zone, its offset, and the start of its local bucket as a local time. Some of the days have 23 or 25
/// hours.
const DAYS: [(Granularity, &str, &str, i64, &str); 9] = [
    (Day, "2024-03-30 23:00:00", "Europe/Berlin", 3_600, "2024-03-31"),
    (Day, "2024-03-31 21:59:59", "Europe/Berlin", 7_200, "2024-03-31"),
    (Day, "2024-03-31 22:00:00", "Europe/Berlin", 7_200, "2024-04-01"),
    (Day, "2024-10-26 22:00:00", "Europe/Berlin", 7_200, "2024-10-27"),
    (Day, "2024-10-27 22:59:59", "Europe/Berlin", 3_600, "2024-10-27"),
    (Day, "2024-10-27 23:00:00", "Europe/Berlin", 3_600, "2024-10-28"),
    (Week, "2024-12-29 15:00:00", "Asia/Tokyo", 32_400, "2024-12-30"),
    (Month, "2024-02-01 04:59:59", "America/New_York", -18_000, "2024-01-01"),
    (Month, "2024-02-01 05:00:00", "America/New_York", -18_000, "2024-02-01"),
];

pub(super) fn cases(suite: &mut Suite<'_>) {
    let w = suite.writer;
    for (stored, ty) in [("instant", LogicalType::TimestampTz), ("stored in UTC", LogicalType::Timestamp)] {
        let column = |time| match ty {
            LogicalType::TimestampTz => w.timestamp_tz(time),
            _ => w.timestamp(time),
        };
        suite.group = "time zones";
        for (instant, zone, offset, clock) in LOCAL {
            let name = format!("{instant} in {zone}, {stored}");
            suite.of_columns(name, &[column(instant)], local(w, ty, zone, offset), Expected::Time(clock));
        }
        suite.group = "local hours";
        for (granularity, instant, zone, offset, start) in INSTANTS {
            let templates = w.time(granularity).zip(local(w, ty, zone, offset));
            let start_of = templates.map(|(templates, local)| match &templates.trunc_instant {
                Some(template) => fill(template, &[x(), local]),
                None => fill(&templates.trunc, &[x()]),
            });
            let name = format!("{granularity:?} of {instant} in {zone}, {stored}");
            suite.of_columns(name, &[column(instant)], start_of, Expected::Time(start));
        }
        suite.group = "local days";
        for (granularity, instant, zone, offset, start) in DAYS {
            let templates = w.time(granularity).zip(local(w, ty, zone, offset));
            let start_of = templates.map(|(templates, local)| fill(&templates.trunc, &[local]));
            let name = format!("{granularity:?} of {instant} in {zone}, {stored}");
            suite.of_columns(name, &[column(instant)], start_of, Expected::Time(start));
        }
    }
}

/// Returns the local time of `x`.
fn local(w: Writer<'_>, ty: LogicalType, zone: &str, offset: i64) -> Option<Expr> {
    let by_name = w.op_for(Op::ToTimeZone, Some(ty), &[x(), w.text_literal(zone)]);
    by_name.or_else(|| Some(fill(&w.time(Second)?.add, &[x(), w.integer(offset)])))
}
