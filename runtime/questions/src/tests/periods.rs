//! Questions with quantities and periods: units of numbers, periods that are compared, and times with typing mistakes.

use super::flights::{MEMBERS, VALUES};
use super::models::{Model, member};
use super::*;

const QUESTIONS: &[(&str, &str)] = &[
    // Units of numbers.
    ("flights with a departure delay over 2h", "flights.count where flights.departure_delay gt 120"),
    (
        "flights with departure delay over 90 min by carrier",
        "flights.count by flights.carrier where flights.departure_delay gt 90",
    ),
    ("flights with departure delay over 90min", "flights.count where flights.departure_delay gt 90"),
    ("flights with a departure delay of more than 1h30", "flights.count where flights.departure_delay gt 90"),
    ("flights with a departure delay of more than 1h30m", "flights.count where flights.departure_delay gt 90"),
    ("flights with a departure delay over 1 h 30 min", "flights.count where flights.departure_delay gt 90"),
    ("flights with a departure delay over 1h 30m", "flights.count where flights.departure_delay gt 90"),
    ("flights with a departure delay over 1 hour and 30 minutes", "flights.count where flights.departure_delay gt 90"),
    (
        "flights with a departure delay between 1 and 2 hrs",
        "flights.count where flights.departure_delay between 60,120",
    ),
    (
        "flights with a departure delay between 1 hour and 90 minutes",
        "flights.count where flights.departure_delay between 60,90",
    ),
    ("flights that left more than 2h late", "flights.count where flights.departure_delay gt 120"),
    ("flights with a departure delay over 30m", "? 30m"),
    ("flights delayed over 2h", "? over 2 h"),
    ("carriers with more than 1.5 thousand flights", "flights.count by flights.carrier where flights.count gt 1500"),
    ("carriers with over 0.01 million flights", "flights.count by flights.carrier where flights.count gt 10000"),
    ("average time in the air in hours by carrier", "? hours"),
    ("flights in the last 7d", "flights.count in last 7 days"),
    // Averages of numbers of rows.
    ("average flights per day", "? flights"),
    ("average number of flights per day in June", "? flights"),
    ("flights per day in June", "flights.count by day in 2013-06"),
    // Periods that are compared with the ones before.
    ("flights year over year", "flights.count in 2012 vs -1 year"),
    ("flights by month year over year", "flights.count by month in 2012 vs -1 year"),
    ("cancellation rate by carrier month over month", "cancellation_rate by flights.carrier in 2013-06 vs -1 month"),
    ("monthly flights month over month", "flights.count by month in 2012 vs -1 month"),
    ("flights quarter over quarter", "flights.count in 2013-Q2 vs -1 quarter"),
    ("flights week over week", "flights.count in 2013-W28 vs -1 week"),
    ("flights vs last year", "flights.count in this year vs -1 year"),
    ("flights vs last month", "flights.count in this month vs last month"),
    ("flights compared to the previous period", "? "),
    ("how did the cancellation rate change", "? change"),
    // Two sides of a comparison.
    ("more flights in July 2012 than in June 2012", "flights.count in 2012-07 vs 2012-06"),
    ("were there more flights in June than in May", "flights.count in 2013-06 vs 2013-05"),
    ("fewer cancelled flights in 2013 than 2012", "flights.cancelled in 2013 vs 2012"),
    (
        "did more flights leave JFK in June than in May",
        "flights.count where flights.origin equals JFK in 2013-06 vs 2013-05",
    ),
    (
        "are there more flights from JFK than from LGA",
        "flights.count by flights.origin where flights.origin inList JFK,LGA",
    ),
    (
        "carriers with more than 1000 flights in June",
        "flights.count by flights.carrier where flights.count gt 1000 in 2013-06",
    ),
    // Typing mistakes in times.
    ("flights last mnth", "flights.count in last month"),
    ("flights lst week", "flights.count in last week"),
    ("flights lst wek", "flights.count in last week"),
    ("flights this yaer", "flights.count in this year"),
    ("flights in the last 3 mnths", "flights.count in last 3 months"),
    ("flights yesterdy", "flights.count in yesterday"),
    ("flights tody", "flights.count in today"),
    ("flights by mnth", "flights.count by month"),
    ("flights per wek in June", "flights.count by week in 2013-06"),
    ("flights last quater", "flights.count in last quarter"),
    ("flights in the lst dest", "? lst"),
    // A word in the names of several measures.
    ("delays by carrier", "? delays"),
];

const GERMAN: &[(&str, &str)] = &[
    ("flights mit departure delay über 2h", "flights.count where flights.departure_delay gt 120"),
    ("flights mit departure delay über 90 min", "flights.count where flights.departure_delay gt 90"),
    ("flights mit departure delay über 1h30", "flights.count where flights.departure_delay gt 90"),
    ("flights mit departure delay über 1 Std 30 Min", "flights.count where flights.departure_delay gt 90"),
    ("carrier mit mehr als 2 tausend flights", "flights.count by flights.carrier where flights.count gt 2000"),
    ("flights im Jahresvergleich", "flights.count in 2012 vs -1 year"),
    ("flights im Monatsvergleich", "flights.count in 2013-06 vs -1 month"),
    ("flights gegenüber dem Vorjahr", "flights.count in this year vs -1 year"),
    ("mehr flights im Juni als im Mai", "flights.count in 2013-06 vs 2013-05"),
    ("flights letzten Mont", "flights.count in last month"),
    ("flights gestrn", "flights.count in yesterday"),
    ("durchschnittliche flights pro Tag", "? flights"),
];

#[test]
fn quantities_and_periods_are_interpreted_correctly() {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2013, 7, 15) };
    let mistakes = [model.mistakes(QUESTIONS), model.mistakes_in("de", GERMAN)].concat();
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}

/// The choices of an unclear question.
fn choices(question: &str) -> Vec<String> {
    let english = Language::named("en").unwrap();
    let vocabulary = Vocabulary::new(MEMBERS.lines().map(member).collect(), english);
    let reading = read(question, &vocabulary, &KnownValues::default(), english, date(2013, 12, 31)).unwrap();
    let first = reading.clarifications.first().unwrap_or_else(|| panic!("{question}: {reading:?}"));
    first.choices.iter().map(ToString::to_string).collect()
}

#[test]
fn unclear_periods_and_measures_have_choices() {
    assert_eq!(choices("flights compared to the previous period"), ["2013-12", "2013-Q4", "2013"]);
    assert_eq!(choices("flights in May and in August"), ["2013-05", "2013-08"]);
    assert_eq!(choices("average flights per day"), ["flights.count"]);
    assert_eq!(choices("flights with a departure delay over 30m"), ["30 min", "30 million"]);
    assert_eq!(choices("how did the cancellation rate change"), ["monthly", "weekly", "daily"]);
    assert!(choices("delays by carrier").iter().any(|name| name == "flights.average_departure_delay"));
}

#[test]
fn complete_periods_end_with_the_newest_data() {
    use crate::times::newest_complete;
    for (newest, unit, expected) in [
        (date(2013, 12, 31), "year", "2013"),
        (date(2013, 12, 30), "year", "2012"),
        (date(2013, 6, 30), "quarter", "2013-Q2"),
        (date(2013, 6, 29), "quarter", "2013-Q1"),
        (date(2013, 2, 28), "month", "2013-02"),
        (date(2013, 1, 5), "month", "2012-12"),
        (date(2013, 1, 6), "week", "2013-W01"),
        (date(2013, 1, 5), "week", "2012-W52"),
        (date(2013, 1, 5), "day", "2013-01-05"),
    ] {
        assert_eq!(newest_complete(newest, unit).as_deref(), Some(expected), "{newest} {unit}");
    }
}
