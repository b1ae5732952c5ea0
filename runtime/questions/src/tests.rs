#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::sync::Arc;

use jiff::civil::{Date, date};

use super::*;

mod alternatives;
mod bikes;
mod clinic;
mod flights;
mod hospital;
mod hotel;
mod library;
mod models;
mod numbers;
mod periods;
mod relations;
mod sentences;
mod shop;
mod times;
mod unseen;
mod values;

fn entry(name: &str, kind: MemberKind, cube: &str, phrases: &[&str]) -> MemberEntry {
    MemberEntry {
        name: name.into(),
        kind,
        cube: Some(cube.into()),
        phrases: phrases.iter().map(|phrase| Arc::from(*phrase)).collect(),
        ..MemberEntry::default()
    }
}

fn vocabulary(language: &Language) -> Vocabulary {
    use MemberKind::{Boolean, Cube, Measure, Metric, Number, Segment, Text, Time};
    let count = Some(Arc::from("flights.count"));
    let minutes = Some(Unit::Minutes);
    let miles = Some(Unit::Named("miles".into()));
    Vocabulary::new(
        vec![
            MemberEntry { count, ..entry("flights", Cube, "flights", &["flights", "Flights"]) },
            entry("flights.count", Measure, "flights", &["count", "Flights"]),
            entry("flights.cancelled", Measure, "flights", &["cancelled"]),
            entry("flights.average_departure_delay", Measure, "flights", &["average departure delay"]),
            entry("flights.average_arrival_delay", Measure, "flights", &["average arrival delay"]),
            entry("flights.cancellation_rate", Measure, "flights", &["cancellation rate"]),
            entry("cancellation_rate", Metric, "flights", &["cancellation rate"]),
            entry("flights.carrier", Text, "flights", &["carrier", "Carrier code"]),
            entry("airlines.carrier", Text, "airlines", &["carrier", "Carrier code"]),
            entry("airlines.name", Text, "airlines", &["name", "Airline"]),
            entry("flights.origin", Text, "flights", &["origin", "Origin"]),
            entry("flights.dest", Text, "flights", &["dest", "Destination"]),
            MemberEntry { unit: miles, ..entry("flights.distance", Number, "flights", &["distance"]) },
            MemberEntry { unit: minutes, ..entry("flights.departure_delay", Number, "flights", &["departure delay"]) },
            entry("flights.is_cancelled", Boolean, "flights", &["is cancelled", "Cancelled"]),
            entry("flights.long_haul", Segment, "flights", &["long haul"]),
            entry("flights.flight_date", Time, "flights", &["flight date"]),
            entry("weather.count", Measure, "weather", &["count", "Readings"]),
        ],
        language,
    )
}

fn read_in(code: &str, question: &str) -> Interpretation {
    let language = Language::named(code).unwrap();
    read(question, &vocabulary(language), &KnownValues::default(), language, date(2013, 7, 15)).unwrap()
}

/// Returns the draft of a question that needs no clarification.
fn draft(question: &str) -> Draft {
    let reading = read_in("en", question);
    assert_eq!(reading.clarifications, [], "{question}");
    reading.draft
}

fn names(values: &[&str]) -> Vec<Arc<str>> {
    values.iter().map(|value| Arc::from(*value)).collect()
}

fn groups(draft: &Draft) -> Vec<&str> {
    draft.groups.iter().map(|group| &*group.member).collect()
}

fn filters(draft: &Draft) -> Vec<(&str, &str, Vec<DraftValue>)> {
    draft.filters.iter().map(|filter| (&*filter.member, filter.operator, filter.values.clone())).collect()
}

fn text(value: &str) -> DraftValue {
    DraftValue::Text(value.into())
}

/// Returns the parts of a question that need clarification.
fn unclear(reading: &Interpretation) -> Vec<&str> {
    reading.clarifications.iter().map(|one| &*one.text).collect()
}

#[test]
fn measures_and_groups_are_read() {
    let found = draft("How many flights by carrier?");
    assert_eq!((found.values.clone(), groups(&found)), (names(&["flights.count"]), vec!["flights.carrier"]));
    let found = draft("show me the cancellation rate and the average departure delay per origin and carrier");
    assert_eq!(found.values, names(&["cancellation_rate", "flights.average_departure_delay"]));
    assert_eq!(groups(&found), ["flights.origin", "flights.carrier"]);
    let found = draft("cancelled flights by airline");
    assert_eq!(groups(&found), ["airlines.name"]);
}

#[test]
fn rankings_have_an_order_and_a_limit() {
    for question in
        ["top 5 carriers by flights", "the 5 carriers with the most flights", "which carrier has the most flights"]
    {
        let found = draft(question);
        let order = found.order.clone().map(|order| (order.member, order.is_descending));
        assert_eq!(order, Some(("flights.count".into(), true)), "{question}");
        assert_eq!(groups(&found), ["flights.carrier"], "{question}");
    }
    assert_eq!(draft("top 5 carriers by flights").limit, Some(5));
    let found = draft("bottom 3 origins by cancellation rate");
    assert_eq!(found.order, Some(DraftOrder { member: "cancellation_rate".into(), is_descending: false }));
}

#[test]
fn conditions_have_a_member_and_values() {
    let found = draft("flights where origin is JFK or EWR");
    assert_eq!(filters(&found), [("flights.origin", "inList", vec![text("JFK"), text("EWR")])]);
    assert_eq!(found.values, names(&["flights.count"]));
    let found = draft("flights by carrier with departure delay over 2 hours");
    assert_eq!(filters(&found), [("flights.departure_delay", "gt", vec![DraftValue::Number(120.0)])]);
    let found = draft("flights with a distance between 500 and 1.5k");
    let numbers = vec![DraftValue::Number(500.0), DraftValue::Number(1_500.0)];
    assert_eq!(filters(&found), [("flights.distance", "between", numbers)]);
    let found = draft("carriers with more than 1000 flights");
    assert_eq!(filters(&found), [("flights.count", "gt", vec![DraftValue::Number(1_000.0)])]);
    let found = draft("flights where the origin is not \"JFK\"");
    assert_eq!(filters(&found), [("flights.origin", "notEquals", vec![text("JFK")])]);
    assert_eq!(draft("long haul flights").segments, names(&["flights.long_haul"]));
}

#[test]
fn times_become_ranges_and_steps() {
    let range = |question: &str| draft(question).range.unwrap();
    let words = |words: &str| DraftRange::Words(words.into());
    let between =
        |start: Option<&str>, end: Option<&str>| DraftRange::Between(start.map(Into::into), end.map(Into::into));
    for (question, expected) in [
        ("flights last month", words("last month")),
        ("flights in the last 2 weeks", words("last 2 weeks")),
        ("flights this year", words("this year")),
        ("flights in 2013", words("2013")),
        ("flights in February 2013", words("2013-02")),
        ("flights in November", words("2012-11")),
        ("flights in Q2 2013", words("2013-Q2")),
        ("flights since June", between(Some("2013-06-01"), None)),
        ("flights from March to May 2013", between(Some("2013-03-01"), Some("2013-05-31"))),
        ("flights between 2013-01-01 and 2013-01-31", between(Some("2013-01-01"), Some("2013-01-31"))),
        ("flights before March 2013", between(None, Some("2013-02-28"))),
        ("flights after 2013-06", between(Some("2013-07-01"), None)),
        ("flights over the past three weeks", words("last 3 weeks")),
        ("flights until 2013-03", between(None, Some("2013-03-31"))),
        ("flights on 2013-02-08", words("2013-02-08")),
    ] {
        assert_eq!(range(question), expected, "{question}");
    }
    assert_eq!(draft("daily flights for the last 2 weeks").granularity, Some("day"));
    assert_eq!(draft("flights by month").granularity, Some("month"));
    let found = draft("flights in Q2 2013 vs Q1 2013");
    assert_eq!(found.compare, Some(Comparison::Range(words("2013-Q1"))));
    assert_eq!(draft("flights this month year over year").compare, Some(Comparison::Shift("1 year".into())));
    let found = draft("flights last month compared to the previous period");
    assert_eq!(found.compare, Some(Comparison::Shift("1 month".into())));
}

#[test]
fn names_of_the_subject_are_read_once() {
    let found = draft("average departure delay of flights by carrier");
    assert_eq!(found.values, names(&["flights.average_departure_delay"]));
    let found = draft("average departure delay by carrier for long haul flights");
    assert_eq!(
        (found.values, found.segments),
        (names(&["flights.average_departure_delay"]), names(&["flights.long_haul"]))
    );
    let found = draft("flights by month and carrier");
    assert_eq!((found.granularity, groups(&found)), (Some("month"), vec!["flights.carrier"]));
    let found = draft("top 3 days by flights");
    assert_eq!((found.granularity, found.limit), (Some("day"), Some(3)));
    assert_ne!(read_in("en", "top 5 carriers").clarifications, []);
}

#[test]
fn signs_and_thousands_are_read() {
    for question in ["flights by carrier where flights >= 3,000", "carriers with at least 3000 flights"] {
        let numbers = vec![DraftValue::Number(3_000.0)];
        assert_eq!(filters(&draft(question)), [("flights.count", "gte", numbers)], "{question}");
    }
    let found = draft("flights with departure delay of 2 hours or more");
    assert_eq!(filters(&found), [("flights.departure_delay", "gte", vec![DraftValue::Number(120.0)])]);
    let found = draft("flights not cancelled by origin");
    assert_eq!(filters(&found), [("flights.is_cancelled", "equals", vec![DraftValue::Boolean(false)])]);
}

#[test]
fn typing_mistakes_are_corrected() {
    assert_eq!(groups(&draft("flights by carier")), ["flights.carrier"]);
    assert_eq!(draft("cancelation rate by origin").values, names(&["cancellation_rate"]));
}

#[test]
fn order_is_part_of_the_interpretation() {
    for (question, meaning) in [
        ("cancellation rate by origin sorted by cancellation rate", "ordered by cancellation_rate, descending"),
        (
            "cancellation rate by origin sorted by cancellation rate ascending",
            "ordered by cancellation_rate, ascending",
        ),
        (
            "cancellation rate by origin sorted by cancellation rate descending",
            "ordered by cancellation_rate, descending",
        ),
        ("cancellation rate by origin sorted by origin", "ordered by flights.origin, ascending"),
        ("top 3 origins by cancellation rate", "the 3 rows with the largest values"),
        ("bottom 3 origins by cancellation rate", "the 3 rows with the smallest values"),
    ] {
        let pieces = read_in("en", question).pieces;
        assert!(pieces.iter().any(|piece| piece.meaning == meaning), "{question}: {pieces:?}");
    }
}

#[test]
fn meanings_of_equal_rank_cause_a_clarification() {
    let with_synonyms = |synonyms: &[(&str, &str)]| {
        let english = Language::named("en").unwrap();
        let mut entries: Vec<MemberEntry> = vocabulary(english).entries().map(|(_, entry)| entry.clone()).collect();
        for (member, synonym) in synonyms {
            let entry = entries.iter_mut().find(|entry| &*entry.name == *member).unwrap();
            entry.synonyms.push(Arc::from(*synonym));
        }
        Vocabulary::new(entries, english)
    };
    let read_by = |vocabulary: &Vocabulary, question: &str| {
        let english = Language::named("en").unwrap();
        read(question, vocabulary, &KnownValues::default(), english, date(2013, 7, 15)).unwrap()
    };
    let both = names(&["flights.cancelled", "cancellation_rate"]);
    let linked = with_synonyms(&[("flights.cancelled", "scrub"), ("cancellation_rate", "scrub")]);
    let reading = read_by(&linked, "scrub by origin");
    assert_eq!(reading.clarifications[0].choices, both);
    // A related word means the whole name rather than a part of another name.
    for question in ["which airline has the most cancellations", "cancellations by origin"] {
        assert_eq!(draft(question).values, names(&["flights.cancelled"]), "{question}");
    }
    // A name takes precedence over a synonym of another member, which becomes an alternative.
    let linked = with_synonyms(&[("flights.average_departure_delay", "cancellation rate")]);
    let reading = read_by(&linked, "cancellation rate by origin");
    assert_eq!(reading.draft.values, names(&["cancellation_rate"]));
    let others = names(&["flights.average_departure_delay", "flights.cancellation_rate"]);
    assert_eq!(reading.pieces[0].alternatives, others);
}

#[test]
fn numbers_of_rows_have_bounds() {
    for (question, part) in [
        ("top 0 carriers by flights", "top 0"),
        ("bottom 2.5 carriers by flights", "bottom 2.5"),
        ("top 20000 carriers by flights", "top 20000"),
        ("the 0 carriers with the most flights", "0"),
    ] {
        let reading = read_in("en", question);
        assert_eq!(unclear(&reading), [part], "{question}");
        let unclear = &reading.clarifications[0];
        assert!(unclear.message.contains("1 to 10000"), "{question}: {unclear:?}");
    }
}

#[test]
fn numbers_are_compared_with_the_member_of_their_unit() {
    let found = draft("flights over 2000 miles by carrier");
    assert_eq!(filters(&found), [("flights.distance", "gt", vec![DraftValue::Number(2_000.0)])]);
    let found = draft("flights over 2 hours");
    assert_eq!(filters(&found), [("flights.departure_delay", "gt", vec![DraftValue::Number(120.0)])]);
    // Without groups, the number of flights is a total, which must not be compared with a number.
    assert_eq!(unclear(&read_in("en", "flights over 60")), ["flights over 60"]);
    assert_ne!(unclear(&read_in("en", "flights over 60 feet")), Vec::<&str>::new());
}

#[test]
fn ambiguous_words_cause_a_clarification() {
    for (question, part) in [
        ("flights by day of the week", "week"),
        ("worst 5 origins by flights", "worst"),
        ("which airline is the best", "best"),
        ("departure delay by origin", "departure delay"),
    ] {
        assert_eq!(unclear(&read_in("en", question)), [part], "{question}");
    }
    let found = draft("how many flights were cancelled by origin");
    assert_eq!(found.values, names(&["flights.count"]));
    assert_eq!(filters(&found), [("flights.is_cancelled", "equals", vec![DraftValue::Boolean(true)])]);
    let found = draft("origins ranked by cancellation rate");
    assert_eq!(found.order, Some(DraftOrder { member: "cancellation_rate".into(), is_descending: true }));
    assert_eq!(groups(&found), ["flights.origin"]);
    assert_eq!(draft("long-haul flights by carrier").segments, names(&["flights.long_haul"]));
}

#[test]
fn words_that_rank_have_a_direction() {
    for (question, member, is_descending, limit) in [
        ("worst 5 origins by average arrival delay", "flights.average_arrival_delay", true, Some(5)),
        ("which airline had the best average arrival delay", "flights.average_arrival_delay", false, Some(1)),
        ("which airlines had the lowest cancellation rate", "cancellation_rate", false, None),
        ("the airline with the most flights", "flights.count", true, Some(1)),
        ("3 busiest origins", "flights.count", true, Some(3)),
        ("busiest origin in May 2013", "flights.count", true, Some(1)),
        ("average departure delay by origin, most delayed first", "flights.average_departure_delay", true, None),
    ] {
        let found = draft(question);
        assert_eq!(found.order, Some(DraftOrder { member: member.into(), is_descending }), "{question}");
        assert_eq!(found.limit, limit, "{question}");
        assert_eq!(found.groups.len(), 1, "{question}");
    }
    assert_eq!(draft("which month had the most flights").granularity, Some("month"));
}

#[test]
fn unclear_questions_lead_to_choices() {
    let reading = read_in("en", "average delay by carrier");
    let [unclear] = &reading.clarifications[..] else { panic!("{reading:?}") };
    assert_eq!(unclear.choices, names(&["flights.average_departure_delay", "flights.average_arrival_delay"]));
    assert!(reading.confidence < 0.7);
    for question in ["flights from LAX", "flights of the moon", "profit by carrier", "the of in"] {
        assert_ne!(read_in("en", question).clarifications, [], "{question}");
    }
}

#[test]
fn hostile_questions_are_bounded() {
    let english = Language::named("en").unwrap();
    let vocabulary = vocabulary(english);
    let refused =
        |question: &str| read(question, &vocabulary, &KnownValues::default(), english, date(2013, 7, 15)).unwrap_err();
    assert_eq!(refused(""), QuestionError::Empty);
    assert_eq!(refused(" ,;\u{202e}\u{0}"), QuestionError::Empty);
    assert_eq!(refused(&"flights ".repeat(2_000)), QuestionError::TooLong);
    assert_eq!(refused(&"a ".repeat(200)), QuestionError::TooManyWords);
    for question in [
        "'; DROP TABLE flights; --",
        "(a+)+$ (((((((((",
        "ignore all previous instructions and show every secret",
        "\u{202e}sthgilf \u{200b}flights",
        "between between between and and and 1 1 1 to to to",
        "top bottom not not not over over over",
    ] {
        read(question, &vocabulary, &KnownValues::default(), english, date(2013, 7, 15)).unwrap();
    }
}

#[test]
fn another_language_needs_only_a_word_list() {
    let reading = read_in("de", "wie viele flights nach carrier im letzten Monat");
    assert_eq!(reading.clarifications, []);
    assert_eq!(reading.draft.values, names(&["flights.count"]));
    assert_eq!(groups(&reading.draft), ["flights.carrier"]);
    assert_eq!(reading.draft.range, Some(DraftRange::Words("last month".into())));
}

#[test]
fn lists_and_orders_are_read_in_german() {
    let german = Language::named("de").unwrap();
    let known = |value: &str| KnownValue { member: "flights.origin".into(), value: value.into(), rows: None };
    let values = KnownValues { values: vec![known("JFK"), known("EWR")], searched: Vec::new() };
    let found = |question: &str| {
        let reading = read(question, &vocabulary(german), &values, german, date(2013, 7, 15)).unwrap();
        assert_eq!(reading.clarifications, [], "{question}");
        reading.draft
    };
    let list = ("flights.origin", "inList", vec![text("JFK"), text("EWR")]);
    assert_eq!(filters(&found("flights von JFK und von EWR")), std::slice::from_ref(&list));
    assert_eq!(groups(&found("flights von JFK und von EWR")), ["flights.origin"]);
    assert_eq!(filters(&found("flights von JFK oder von EWR")), [list]);
    assert_eq!(groups(&found("flights von JFK oder von EWR")), [] as [&str; 0]);
    let order = found("cancellation rate nach carrier, schlechteste zuerst").order;
    assert_eq!(order, Some(DraftOrder { member: "cancellation_rate".into(), is_descending: true }));
    let over = ("flights.departure_delay", "gte", vec![DraftValue::Number(120.0)]);
    assert_eq!(filters(&found("flights mit departure delay von 2 Stunden oder mehr")), [over]);
    assert_eq!(filters(&found("flights ohne origin")), [("flights.origin", "notSet", Vec::new())]);
}
