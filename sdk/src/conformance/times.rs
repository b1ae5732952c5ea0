//! Cases for calendar arithmetic on local times: starts of buckets, steps, differences, parts, labels.

use super::writer::{Expr, Writer, x, y};
use super::{Expected, Suite};
use crate::Granularity::{self, Day, Hour, Minute, Month, Quarter, Second, Week, Year};
use crate::dialect::Op;

/// A time and the starts of its second, minute, hour, day, ISO week, month, quarter, year.
const STARTS: [(&str, [&str; 8]); 4] = [
    (
        "2024-08-15 13:45:56.789",
        [
            "2024-08-15 13:45:56",
            "2024-08-15 13:45:00",
            "2024-08-15 13:00:00",
            "2024-08-15",
            "2024-08-12",
            "2024-08-01",
            "2024-07-01",
            "2024-01-01",
        ],
    ),
    (
        "2024-02-29 23:59:59.999999",
        [
            "2024-02-29 23:59:59",
            "2024-02-29 23:59:00",
            "2024-02-29 23:00:00",
            "2024-02-29",
            "2024-02-26",
            "2024-02-01",
            "2024-01-01",
            "2024-01-01",
        ],
    ),
    (
        "1969-12-31 22:30:15",
        [
            "1969-12-31 22:30:15",
            "1969-12-31 22:30:00",
            "1969-12-31 22:00:00",
            "1969-12-31",
            "1969-12-29",
            "1969-12-01",
            "1969-10-01",
            "1969-01-01",
        ],
    ),
    (
        "2100-05-01 00:00:00",
        [
            "2100-05-01",
            "2100-05-01",
            "2100-05-01",
            "2100-05-01",
            "2100-04-26",
            "2100-05-01",
            "2100-04-01",
            "2100-01-01",
        ],
    ),
];

/// A day, the Monday of its ISO week, the week's number, and the week's label.
const WEEKS: [(&str, &str, i64, &str); 9] = [
    ("2024-12-30", "2024-12-30", 1, "2025-W01"),
    ("2024-12-29", "2024-12-23", 52, "2024-W52"),
    ("2021-01-03", "2020-12-28", 53, "2020-W53"),
    ("2021-01-04", "2021-01-04", 1, "2021-W01"),
    ("2027-01-01", "2026-12-28", 53, "2026-W53"),
    ("2023-01-01", "2022-12-26", 52, "2022-W52"),
    ("2018-12-31", "2018-12-31", 1, "2019-W01"),
    ("2024-02-29", "2024-02-26", 9, "2024-W09"),
    ("1970-01-01", "1969-12-29", 1, "1970-W01"),
];

/// The start of a bucket, a number of steps, and the start of the bucket after these steps.
const STEPS: [(Granularity, &str, i64, &str); 27] = [
    (Second, "2024-12-31 23:59:59", 1, "2025-01-01"),
    (Second, "2024-01-01 00:00:00", -1, "2023-12-31 23:59:59"),
    (Minute, "2024-02-28 23:59:00", 1, "2024-02-29"),
    (Minute, "2024-01-01 00:00:00", -90, "2023-12-31 22:30:00"),
    (Hour, "2024-02-29 23:00:00", 1, "2024-03-01"),
    (Hour, "2024-01-01 00:00:00", 10_000, "2025-02-20 16:00:00"),
    (Day, "2024-02-28", 1, "2024-02-29"),
    (Day, "2024-03-01", -1, "2024-02-29"),
    (Day, "2024-02-28 12:30:00", 2, "2024-03-01 12:30:00"),
    (Day, "2024-01-01", 1_000, "2026-09-27"),
    (Week, "2024-12-30", 1, "2025-01-06"),
    (Week, "2021-01-04", -1, "2020-12-28"),
    (Week, "2024-02-26", 3, "2024-03-18"),
    (Month, "2024-01-01", 1, "2024-02-01"),
    (Month, "2024-01-31", 1, "2024-02-29"),
    (Month, "2024-03-31", -1, "2024-02-29"),
    (Month, "2024-12-01", 1, "2025-01-01"),
    (Month, "2024-01-31", 13, "2025-02-28"),
    (Month, "2024-05-31 12:30:00", 1, "2024-06-30 12:30:00"),
    (Quarter, "2024-10-01", 1, "2025-01-01"),
    (Quarter, "2024-01-01", -1, "2023-10-01"),
    (Quarter, "2024-11-30", 1, "2025-02-28"),
    (Quarter, "2024-01-01", 6, "2025-07-01"),
    (Year, "2024-01-01", 1, "2025-01-01"),
    (Year, "2024-02-29", 1, "2025-02-28"),
    (Year, "2024-02-29", 4, "2028-02-29"),
    (Year, "2024-01-01", -30, "1994-01-01"),
];

/// Two times and the number of bucket boundaries between them.
const DISTANCES: [(Granularity, &str, &str, i64); 18] = [
    (Second, "2024-01-01 00:00:00.9", "2024-01-01 00:00:01", 1),
    (Second, "2024-01-01 00:00:00", "2024-01-02 00:00:00", 86_400),
    (Minute, "2024-01-01 00:00:59", "2024-01-01 00:01:00", 1),
    (Hour, "2024-01-01 00:59:59", "2024-01-01 01:00:00", 1),
    (Hour, "2024-01-01 01:00:00", "2024-01-01 00:59:59", -1),
    (Hour, "2024-01-01 00:00:00", "2024-01-01 00:59:59", 0),
    (Day, "2024-02-28 23:59:59", "2024-03-01 00:00:00", 2),
    (Day, "2024-03-01 00:00:00", "2024-02-28 23:59:59", -2),
    (Week, "2024-12-29 12:00:00", "2024-12-30 00:00:00", 1),
    (Week, "2024-12-23 00:00:00", "2024-12-29 23:59:59", 0),
    (Week, "2024-12-30 00:00:00", "2024-12-15 00:00:00", -3),
    (Month, "2024-01-31 23:59:59", "2024-02-01 00:00:00", 1),
    (Month, "2024-01-01 00:00:00", "2024-01-31 23:59:59", 0),
    (Month, "2024-02-01 00:00:00", "2023-12-31 00:00:00", -2),
    (Quarter, "2024-03-31 23:59:59", "2024-04-01 00:00:00", 1),
    (Quarter, "2024-01-01 00:00:00", "2022-12-31 00:00:00", -5),
    (Year, "2023-12-31 23:59:59", "2024-01-01 00:00:00", 1),
    (Year, "2024-01-01 00:00:00", "1999-12-31 00:00:00", -25),
];

/// The parts of 2024-08-15 13:45:56.789.
const PARTS: [(Granularity, i64); 8] =
    [(Second, 56), (Minute, 45), (Hour, 13), (Day, 15), (Week, 33), (Month, 8), (Quarter, 3), (Year, 2024)];

/// A time in the next second, minute, hour, day, week, month, quarter, year after 2024-08-15 13:45:56.789.
const NEXT: [&str; 8] = [
    "2024-08-15 13:45:57.001",
    "2024-08-15 13:46:00.1",
    "2024-08-15 14:59:59",
    "2024-08-16 20:00:00",
    "2024-08-25 23:59:59.9",
    "2024-09-30 12:00:00",
    "2024-12-31 23:59:59",
    "2025-06-01 01:01:01",
];

const ALL: [Granularity; 8] = [Second, Minute, Hour, Day, Week, Month, Quarter, Year];

pub(super) fn cases(suite: &mut Suite<'_>) {
    let w = suite.writer;
    suite.group = "truncation";
    for (time, starts) in STARTS {
        for (granularity, start) in ALL.into_iter().zip(starts) {
            let trunc = trunc(w, granularity, x());
            suite.of_columns(format!("{granularity:?} of {time}"), &[w.timestamp(time)], trunc, Expected::Time(start));
        }
    }
    let dates = [(Day, "2024-08-15"), (Month, "2024-08-01"), (Quarter, "2024-07-01"), (Year, "2024-01-01")];
    for (granularity, start) in dates {
        let trunc = trunc(w, granularity, x());
        suite.of_columns(format!("{granularity:?} of a date"), &[w.date("2024-08-15")], trunc, Expected::Time(start));
    }
    suite.of_columns("of null", &[w.null(crate::LogicalType::Timestamp)], trunc(w, Month, x()), Expected::Null);
    let times =
        ["2024-01-01 00:00:00", "2024-02-10 12:00:00", "2024-01-31 23:59:59.999"].map(|time| [w.timestamp(time)]);
    if let Some(month) = trunc(w, Month, x()) {
        let rows: Vec<&[Expr]> = times.iter().map(|row| &row[..]).collect();
        let key = w.quoted_name("t.month");
        let sql = format!(
            "SELECT {} AS {key}, count(*) AS n FROM {} GROUP BY 1 {}",
            month.sql,
            w.table(&rows),
            w.order(&key, false)
        );
        let row = |time, n: i64| vec![Expected::Time(time), Expected::number(n)];
        suite.push("groups by month", sql, vec![row("2024-01-01", 2), row("2024-02-01", 1)]);
    }
    weeks(suite);
    steps(suite);
    spine(suite);
    distances(suite);
}

fn trunc(w: Writer<'_>, granularity: Granularity, time: Expr) -> Option<Expr> {
    w.time(granularity).map(|templates| super::writer::fill(&templates.trunc, &[time]))
}

fn weeks(suite: &mut Suite<'_>) {
    suite.group = "ISO weeks";
    let w = suite.writer;
    let Some(week) = w.time(Week) else { return };
    for (day, monday, number, label) in WEEKS {
        for (kind, column) in [("date", w.date(day)), ("time", w.timestamp(&format!("{day} 23:59:59")))] {
            let column = [column];
            suite.of_columns(format!("start of {day}, {kind}"), &column, trunc(w, Week, x()), Expected::Time(monday));
            let part = super::writer::fill(&week.part, &[x()]);
            suite.of_columns(format!("number of {day}, {kind}"), &column, Some(part), Expected::number(number));
            let text = week.label.as_ref().zip(trunc(w, Week, x()));
            let text = text.map(|(template, monday)| super::writer::fill(template, &[monday]));
            suite.of_columns(format!("label of {day}, {kind}"), &column, text, Expected::text(label));
        }
    }
}

fn steps(suite: &mut Suite<'_>) {
    suite.group = "steps";
    let w = suite.writer;
    for (granularity, from, count, to) in STEPS {
        let Some(templates) = w.time(granularity) else { continue };
        let name = format!("{from} {count:+} {granularity:?}");
        let later = super::writer::fill(&templates.add, &[x(), y()]);
        let full = if from.len() == 10 { format!("{from} 00:00:00") } else { from.to_owned() };
        suite.of_columns(
            name.as_str(),
            &[w.timestamp(&full), w.integer(count)],
            Some(later.clone()),
            Expected::Time(to),
        );
        if from.len() == 10 {
            suite.of_columns(
                format!("{name}, date"),
                &[w.date(from), w.integer(count)],
                Some(later),
                Expected::Time(to),
            );
        }
        // The number of steps is an expression, so it must be put in parentheses.
        let sum = w.op(Op::Sub, &[y(), Expr::closed("1")]);
        let later = sum.map(|sum| super::writer::fill(&templates.add, &[x(), sum]));
        let columns = [w.timestamp(&full), w.integer(count + 1)];
        suite.of_columns(format!("{name}, computed"), &columns, later, Expected::Time(to));
    }
}

/// Adds cases that compare a step computed by the host with the bucket of a row. Both must be the same value.
fn spine(suite: &mut Suite<'_>) {
    suite.group = "steps meet buckets";
    let w = suite.writer;
    for (granularity, from, later) in ALL.into_iter().zip(NEXT).map(|(g, later)| (g, "2024-08-15 13:45:56.789", later))
    {
        let Some((start, bucket)) = trunc(w, granularity, x()).zip(trunc(w, granularity, y())) else { continue };
        let next = w.time(granularity).map(|t| super::writer::fill(&t.add, &[start, Expr::closed("1")]));
        let test = next.and_then(|next| w.op(Op::Eq, &[next, bucket]));
        suite.condition(format!("{granularity:?}"), &[w.timestamp(from), w.timestamp(later)], test, Some(true));
    }
}

fn distances(suite: &mut Suite<'_>) {
    suite.group = "distances";
    let w = suite.writer;
    for (granularity, from, to, count) in DISTANCES {
        let diff = w.time(granularity).map(|templates| super::writer::fill(&templates.diff, &[x(), y()]));
        let columns = [w.timestamp(from), w.timestamp(to)];
        suite.of_columns(format!("{granularity:?}s from {from} to {to}"), &columns, diff, Expected::number(count));
    }
    suite.group = "parts";
    for (granularity, number) in PARTS {
        let part = w.time(granularity).map(|templates| super::writer::fill(&templates.part, &[x()]));
        let column = [w.timestamp("2024-08-15 13:45:56.789")];
        suite.of_columns(format!("{granularity:?}"), &column, part, Expected::number(number));
    }
}
