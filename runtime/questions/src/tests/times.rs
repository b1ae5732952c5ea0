//! Questions with the ends of ranges, lengths of time that are counted back, and changes between two periods.

use super::flights::{MEMBERS, VALUES};
use super::models::Model;
use super::*;

const QUESTIONS: &[(&str, &str)] = &[
    // The named day is a part of the range.
    ("flights on or after 8 February 2013", "flights.count in 2013-02-08.."),
    ("flights on or before 8 February 2013", "flights.count in ..2013-02-08"),
    ("flights after or on 8 February 2013", "flights.count in 2013-02-08.."),
    ("flights on or after June", "flights.count in 2013-06-01.."),
    ("flights no later than 8 February 2013", "flights.count in ..2013-02-08"),
    ("flights not after 8 February 2013", "flights.count in ..2013-02-08"),
    ("flights no earlier than 8 February 2013", "flights.count in 2013-02-08.."),
    ("flights not before June", "flights.count in 2013-06-01.."),
    ("flights up to 1 June", "flights.count in ..2013-06-01"),
    ("flights up to and including 1 June", "flights.count in ..2013-06-01"),
    ("flights up to June 2013", "flights.count in ..2013-06-30"),
    ("flights by 1 June", "flights.count in ..2013-06-01"),
    ("flights by carrier by 1 June", "flights.count by flights.carrier in ..2013-06-01"),
    ("flights by Christmas Day", "flights.count in ..2013-12-25"),
    ("flights by 2013-02-08", "flights.count in ..2013-02-08"),
    ("flights by the end of June", "flights.count in ..2013-06-30"),
    ("flights on 1 June or later", "flights.count in 2013-06-01.."),
    ("flights on 1 June or before", "flights.count in ..2013-06-01"),
    ("flights in June or after", "flights.count in 2013-06-01.."),
    ("flights from June onwards by carrier", "flights.count by flights.carrier in 2013-06-01.."),
    ("flights from June on", "flights.count in 2013-06-01.."),
    ("flights from June on by carrier", "flights.count by flights.carrier in 2013-06-01.."),
    ("flights on and after 1 June", "flights.count in 2013-06-01.."),
    ("flights as from June", "flights.count in 2013-06-01.."),
    ("flights to 1 June", "flights.count in ..2013-06-01"),
    ("flights by 5 pm", "flights.count where flights.departure_hour lt 17"),
    ("flights up to 5 pm", "flights.count where flights.departure_hour lt 17"),
    ("flights starting at 1 June", "flights.count in 2013-06-01.."),
    // These are as they were.
    ("flights after 8 February 2013", "flights.count in 2013-02-09.."),
    ("flights before 8 February 2013", "flights.count in ..2013-02-07"),
    ("flights from June", "flights.count in 2013-06"),
    ("flights from 1 June to 5 June", "flights.count in 2013-06-01..2013-06-05"),
    ("flights in June or July", "flights.count in 2013-06-01..2013-07-31"),
    ("flights across 2013", "flights.count in 2013"),
    ("flights by month", "flights.count by month"),
    ("flights by day in June", "flights.count by day in 2013-06"),
    ("carriers with up to 2000 flights", "flights.count by flights.carrier where flights.count lte 2000"),
    ("flights up to 2000 miles", "flights.count where flights.distance lte 2000"),
    ("flights after 6 pm by month", "flights.count by month where flights.departure_hour gte 18"),
    (
        "carriers with 1000 flights or fewer in June",
        "flights.count by flights.carrier where flights.count lte 1000 in 2013-06",
    ),
    (
        "flights with a departure delay of 10 minutes or less in June",
        "flights.count where flights.departure_delay lte 10 in 2013-06",
    ),
    (
        "flights with a departure delay of at most 10 minutes in June",
        "flights.count where flights.departure_delay lte 10 in 2013-06",
    ),
    ("flights after 1 June and before 5 June", "flights.count in 2013-06-02..2013-06-04"),
    ("flights not before 1 June and not after 5 June", "flights.count in 2013-06-01..2013-06-05"),
    ("flights after June or before August", "? "),
    ("flights before March and after June", "? "),
    ("planes built before 2000", "planes.count where planes.year_built lt 2000"),
    ("planes built in or after 2000", "planes.count where planes.year_built gte 2000"),
    ("planes built no later than 2000", "planes.count where planes.year_built lte 2000"),
    ("flights each in June", "? each in June"),
    // A period after `by`, and `or` between a time and other parts.
    ("flights by June", "? by June"),
    ("flights by 2013", "? by 2013"),
    ("flights to June", "? to June"),
    ("flights as of June", "? as of"),
    ("flights each June", "? each June"),
    ("flights before March or after June", "? "),
    ("flights from JFK or in June", "? or in June"),
    ("cancelled flights or after June", "? or after June"),
    ("flights over 2000 miles or over 2 hours", "? over 2 hours"),
    // Lengths of time that are no ranges.
    ("flights in the last 12 hours", "? in the last 12 hours"),
    ("flights in the last hour", "? in the last hour"),
    ("flights two weeks ago", "? two weeks ago"),
    ("flights 3 days ago by carrier", "? 3 days ago"),
    ("flights since a month ago", "? since a month ago"),
    ("flights since 2 months ago", "? since 2 months ago"),
    ("flights in the last 2 weeks", "flights.count in last 2 weeks"),
    // Changes.
    ("how much did the cancellation rate change from May to June", "cancellation_rate in 2013-06 vs 2013-05"),
    ("cancellation rate change from May to June", "cancellation_rate in 2013-06 vs 2013-05"),
    ("by how much did flights increase from 2012 to 2013", "flights.count in 2013 vs 2012"),
    ("how did flights change between 2012 and 2013", "flights.count in 2013 vs 2012"),
    (
        "how did the cancellation rate change from May to June by carrier",
        "cancellation_rate by flights.carrier in 2013-06 vs 2013-05",
    ),
    ("how did the cancellation rate change from 1 to 5 June", "cancellation_rate in 2013-06-05 vs 2013-06-01"),
    ("compare flights in May to June", "flights.count in 2013-05 vs 2013-06"),
    ("compare flights from May to June by carrier", "flights.count by flights.carrier in 2013-05 vs 2013-06"),
    ("compare May to June by carrier", "? "),
    ("how did flights change by month from May to August", "flights.count by month in 2013-05-01..2013-08-31"),
    ("how did the cancellation rate change by carrier", "? change"),
    ("number of flights by month, change", "? change"),
    ("change in flights by month", "? change"),
    ("flights by month month over month", "flights.count by month in 2013 vs -1 month"),
    ("which carrier's cancellation rate increased the most from May to June", "? increased"),
    ("cancellation rate from May to June", "cancellation_rate in 2013-05-01..2013-06-30"),
    // Hours of the day.
    ("departures by hour of the day", "flights.departed by flights.departure_hour"),
    (
        "Busiest hour of the day for departures",
        "flights.departed by flights.departure_hour order flights.departed desc limit 1",
    ),
    ("flights by hour of the day", "flights.count by flights.departure_hour"),
];

const GERMAN: &[(&str, &str)] = &[
    ("flights am oder nach dem 8. Februar 2013", "flights.count in 2013-02-08.."),
    ("flights am oder vor dem 8. Februar 2013", "flights.count in ..2013-02-08"),
    ("flights ab dem 8. Februar 2013", "flights.count in 2013-02-08.."),
    ("flights ab Juni", "flights.count in 2013-06-01.."),
    ("flights von Juni an", "flights.count in 2013-06-01.."),
    ("flights vom 1. Juni bis zum 5. Juni", "flights.count in 2013-06-01..2013-06-05"),
    ("flights von Mai bis Juni", "flights.count in 2013-05-01..2013-06-30"),
    ("flights ab JFK", "flights.count where flights.origin equals JFK"),
    ("flights bis zum 1. Juni", "flights.count in ..2013-06-01"),
    ("flights spätestens am 1. Juni", "flights.count in ..2013-06-01"),
    ("flights nicht vor dem 1. Juni", "flights.count in 2013-06-01.."),
    ("flights am 1. Juni oder später", "flights.count in 2013-06-01.."),
    ("flights nach dem 3. Mai 2013", "flights.count in 2013-05-04.."),
    ("flights nach carrier nach dem 3. Mai 2013", "flights.count by flights.carrier in 2013-05-04.."),
    ("flights vor dem 3. Mai 2013", "flights.count in ..2013-05-02"),
    ("flights nach Monat", "flights.count by month"),
    ("flights nach carrier im Mai", "flights.count by flights.carrier in 2013-05"),
    ("flights nach 18 Uhr", "? nach 18 Uhr"),
    ("flights vor zwei Wochen", "? vor zwei Wochen"),
    ("flights vor 2 Tagen", "? vor 2 Tagen"),
    ("flights in den letzten 12 Stunden", "? letzten 12 Stunden"),
    ("wie hat sich cancellation rate von Mai bis Juni verändert", "cancellation_rate in 2013-06 vs 2013-05"),
];

#[test]
fn ends_of_ranges_are_interpreted_correctly() {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2013, 12, 31) };
    let mistakes = [model.mistakes(QUESTIONS), model.mistakes_in("de", GERMAN)].concat();
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}

#[test]
fn hours_of_the_day_need_a_dimension() {
    let without: String =
        MEMBERS.lines().filter(|line| !line.contains("departure_hour")).map(|line| format!("{line}\n")).collect();
    let model = Model { members: &without, values: &VALUES, newest: date(2013, 12, 31) };
    let mistakes = model.mistakes(&[
        ("flights by hour of the day", "? by hour of the day"),
        ("flights per hour of day", "? per hour of day"),
        ("busiest hour of the day for departures", "? hour of the day"),
        ("which hour of the day has the most flights", "? hour of the day"),
        ("flights by hour", "flights.count by hour"),
    ]);
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}

/// Loans of a library with several numbers in days.
const LOANS: &str = "\
cube      loans | loans; Loans | | count=loans.count joined=loans
measure   loans.count | count; Loans | | aggregation=count
number    loans.days_overdue | days_overdue; loans days overdue; Days overdue | | unit=days
number    loans.days_out | days_out; loans days out; Days on loan | | unit=days
time      loans.lent_on | lent_on; Lent on
";

#[test]
fn durations_are_named_or_unclear() {
    let model = Model { members: LOANS, values: &[], newest: date(2024, 5, 20) };
    let mut mistakes = model.mistakes(&[
        ("loans that took more than 3 days", "? took more than 3 days"),
        ("loans that took 3 days or more", "? took 3 days or more"),
        ("loans that were overdue for more than 3 days", "loans.count where loans.days_overdue gt 3"),
        ("loans that were more than 3 days overdue", "loans.count where loans.days_overdue gt 3"),
    ]);
    let delays: String =
        LOANS.lines().filter(|line| !line.contains("days_out")).map(|line| format!("{line}\n")).collect();
    let model = Model { members: &delays, ..model };
    mistakes.extend(model.mistakes(&[("loans that took more than 3 days", "? took more than 3 days")]));
    let periods: String =
        LOANS.lines().filter(|line| !line.contains("overdue")).map(|line| format!("{line}\n")).collect();
    let model = Model { members: &periods, ..model };
    mistakes.extend(model.mistakes(&[("loans that took more than 3 days", "loans.count where loans.days_out gt 3")]));
    let named = LOANS.replace("Days overdue", "Loan duration");
    let model = Model { members: &named, ..model };
    mistakes
        .extend(model.mistakes(&[("loans that took more than 3 days", "loans.count where loans.days_overdue gt 3")]));
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}

#[test]
fn year_of_one_month_applies_to_the_other() {
    let between = |start: &str, end: &str| DraftRange::Between(Some(start.into()), Some(end.into()));
    for (question, expected) in [
        ("flights between March and May 2013", between("2013-03-01", "2013-05-31")),
        ("flights from March 2012 to May", between("2012-03-01", "2012-05-31")),
        ("flights from March to May", between("2013-03-01", "2013-05-31")),
        ("flights from November to February 2013", between("2012-11-01", "2013-02-28")),
        ("flights from November 2011 to February", between("2011-11-01", "2012-02-29")),
        ("flights from Q1 to Q3 2012", between("2012-01-01", "2012-09-30")),
        ("flights from July 1 to July 10 2012", between("2012-07-01", "2012-07-10")),
        ("flights from 2012 to 2013", between("2012-01-01", "2013-12-31")),
    ] {
        assert_eq!(draft(question).range, Some(expected), "{question}");
    }
    for (question, text) in [
        ("flights from May 2013 to March 2013 by carrier", "from May 2013 to March 2013"),
        ("flights between 2013 and 2012", "between 2013 and 2012"),
    ] {
        assert_eq!(unclear(&read_in("en", question)), [text], "{question}");
    }
    let words = |words: &str| DraftRange::Words(words.into());
    for question in ["flights in Q2 vs Q1 2012", "flights in Q2 2012 vs Q1", "compare flights in Q2 2012 and Q1 2012"] {
        let found = draft(question);
        let read = (found.range, found.compare);
        assert_eq!(read, (Some(words("2012-Q2")), Some(Comparison::Range(words("2012-Q1")))), "{question}");
    }
    for (question, date) in [
        ("flights on July 4", "2013-07-04"),
        ("flights on July 20", "2012-07-20"),
        ("flights on 4 July 2012", "2012-07-04"),
        ("flights on July 4th, 2012", "2012-07-04"),
    ] {
        assert_eq!(draft(question).range, Some(words(date)), "{question}");
    }
}

#[test]
fn parts_of_a_year_refer_to_the_newest_data() {
    let words = |words: &str| DraftRange::Words(words.into());
    let between = |start: &str, end: &str| DraftRange::Between(Some(start.into()), Some(end.into()));
    for (question, expected) in [
        ("flights in Q2", words("2013-Q2")),
        ("flights in the fourth quarter of 2011", words("2011-Q4")),
        ("flights in the first half of 2013", between("2013-01-01", "2013-06-30")),
        ("flights in H2 2012", between("2012-07-01", "2012-12-31")),
        ("flights in the last quarter of 2012", between("2012-10-01", "2012-12-31")),
        ("flights in the first three months of 2013", between("2013-01-01", "2013-03-31")),
        ("flights between 10 and 20 June", between("2013-06-10", "2013-06-20")),
        ("flights from June 10 to 20", between("2013-06-10", "2013-06-20")),
        ("flights on 8 and 9 February", between("2013-02-08", "2013-02-09")),
        ("flights on February 8-9 2012", between("2012-02-08", "2012-02-09")),
        ("flights on the 4th of July", words("2013-07-04")),
        ("flights in June and July 2012", between("2012-06-01", "2012-07-31")),
        ("flights on Christmas Day", words("2012-12-25")),
        ("flights on Thanksgiving 2012", words("2012-11-22")),
        ("flights in the month of May", words("2013-05")),
        ("flights in decmber", words("2012-12")),
    ] {
        assert_eq!(draft(question).range, Some(expected), "{question}");
        assert_eq!(read_in("en", question).is_dated, !question.contains("201"), "{question}");
    }
}
