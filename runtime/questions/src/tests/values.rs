//! Known and unknown values of dimensions, and the dimension that a value belongs to.

use super::*;

#[test]
fn known_values_are_conditions() {
    let english = Language::named("en").unwrap();
    let known = |member: &str, value: &str| KnownValue { member: member.into(), value: value.into(), rows: None };
    let values = vec![
        known("flights.origin", "JFK"),
        known("flights.origin", "EWR"),
        known("flights.carrier", "UA"),
        known("airlines.carrier", "UA"),
    ];
    let values = KnownValues { values, searched: Vec::new() };
    let filters_of = |question: &str| {
        let reading = read(question, &vocabulary(english), &values, english, date(2013, 7, 15)).unwrap();
        assert_eq!(reading.clarifications, [], "{question}");
        filters(&reading.draft)
            .into_iter()
            .map(|(member, operator, _)| format!("{member} {operator}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(filters_of("flights from jfk or ewr"), ["flights.origin inList"]);
    assert_eq!(filters_of("flights by origin except JFK"), ["flights.origin notEquals"]);
    assert_eq!(filters_of("flights where origin is \"JFK\", \"EWR\" or \"LGA\""), ["flights.origin inList"]);
    assert_eq!(filters_of("flights of UA"), ["flights.carrier equals"]);
    assert_eq!(filters_of("flights where origin is jfk"), ["flights.origin equals"]);
    let reading = read("flights of XY", &vocabulary(english), &values, english, date(2013, 7, 15)).unwrap();
    assert_eq!(reading.unknown, ["XY"]);
}

/// Interprets a question, given the results of looking up its unknown words among the values of four dimensions.
fn read_with_values(question: &str) -> Interpretation {
    let english = Language::named("en").unwrap();
    let known = |(member, value): (&str, &str)| KnownValue { member: member.into(), value: value.into(), rows: None };
    let values = [
        ("flights.origin", "JFK"),
        ("flights.origin", "LGA"),
        ("flights.dest", "LGA"),
        ("flights.dest", "LAX"),
        ("flights.carrier", "UA"),
        ("airlines.name", "United Air Lines Inc."),
        ("airlines.name", "Delta Air Lines Inc."),
        ("airlines.name", "Delta Cargo"),
    ];
    let words = ["summer", "UA", "XX", "Paris", "JFK", "ORD", "United", "Delta", "fly"];
    let members = ["flights.origin", "flights.dest", "flights.carrier", "airlines.name"];
    let searched = words
        .iter()
        .flat_map(|word| members.map(|member| SearchedWord { member: member.into(), word: (*word).into() }));
    let values = KnownValues { values: values.map(known).to_vec(), searched: searched.collect() };
    read(question, &vocabulary(english), &values, english, date(2013, 7, 15)).unwrap()
}

#[test]
fn unknown_words_are_not_values_of_searched_dimensions() {
    for (question, part, grouped) in [
        ("cancellation rate by airline in summer", "summer", Some("airlines.name")),
        ("flights by carrier in Paris", "Paris", Some("flights.carrier")),
        ("flights by carrier XX", "XX", None),
        ("flights where carrier is XX", "XX", None),
        ("flights where carrier is UA or XX", "XX", None),
        ("flights where carrier is \"XX\"", "XX", None),
        ("flights by carrier except XX", "XX", Some("flights.carrier")),
    ] {
        let reading = read_with_values(question);
        assert_eq!(unclear(&reading), [part], "{question}");
        assert!(!reading.clarifications[0].choices.is_empty(), "{question}");
        assert_eq!(reading.draft.filters, [], "{question}");
        if let Some(grouped) = grouped {
            assert_eq!(groups(&reading.draft), [grouped], "{question}");
        }
    }
    for (question, filter, grouped) in [
        ("flights by airline in JFK", ("flights.origin", "equals"), &["airlines.name"][..]),
        ("flights by carrier for UA", ("flights.carrier", "equals"), &["flights.carrier"]),
        ("flights of carrier UA", ("flights.carrier", "equals"), &[]),
        ("flights where carrier is not UA", ("flights.carrier", "notEquals"), &[]),
        ("flights where carrier starts with X", ("flights.carrier", "startsWith"), &[]),
    ] {
        let reading = read_with_values(question);
        assert_eq!(unclear(&reading), Vec::<&str>::new(), "{question}");
        assert_eq!(
            filters(&reading.draft).iter().map(|(member, operator, _)| (*member, *operator)).collect::<Vec<_>>(),
            [filter],
            "{question}"
        );
        assert_eq!(groups(&reading.draft), grouped, "{question}");
    }
}

#[test]
fn unknown_values_are_accepted_only_after_announcing_words() {
    for question in ["flights where origin is XX", "flights by carrier except XX", "flights of origin XX"] {
        let reading = read_in("en", question);
        assert_eq!(unclear(&reading), Vec::<&str>::new(), "{question}");
        assert_eq!(reading.draft.filters.len(), 1, "{question}");
        assert!(reading.confidence < 1.0, "{question}");
    }
    for question in ["flights by carrier in summer", "flights by origin for summer", "flights by origin summer"] {
        assert_eq!(unclear(&read_in("en", question)), ["summer"], "{question}");
    }
}

#[test]
fn parts_of_several_values_cause_a_clarification() {
    let reading = read_with_values("flights of United");
    assert_eq!(filters(&reading.draft), [("airlines.name", "equals", vec![text("United Air Lines Inc.")])]);
    assert!(reading.confidence < 1.0);
    for question in ["flights of Delta", "flights not operated by Delta"] {
        let clarifications = read_with_values(question).clarifications;
        assert!(clarifications[0].message.contains("`Delta Air Lines Inc.`, `Delta Cargo`"), "{clarifications:?}");
    }
    let reading = read_with_values("flights not operated by United");
    assert_eq!(filters(&reading.draft), [("airlines.name", "notEquals", vec![text("United Air Lines Inc.")])]);
    assert!(reading.pieces.iter().any(|piece| piece.text == "operated" && piece.meaning == "ignored"));
}

#[test]
fn prepositions_decide_between_dimensions() {
    for (question, filter) in
        [("flights from LGA", "flights.origin"), ("flights to LGA", "flights.dest"), ("flights to LAX", "flights.dest")]
    {
        let reading = read_with_values(question);
        assert_eq!(unclear(&reading), Vec::<&str>::new(), "{question}");
        assert_eq!(&*reading.draft.filters[0].member, filter, "{question}");
    }
    for (question, part) in [("flights of LGA", "LGA"), ("flights to JFK", "JFK"), ("flights from LAX", "LAX")] {
        assert_eq!(unclear(&read_with_values(question)), [part], "{question}");
    }
}
