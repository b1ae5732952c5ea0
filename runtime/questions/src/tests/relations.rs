//! Questions about flights whose words depend on words further away: averages of ranked numbers, groups that are sorted
//! by, verbs with a direction, two periods, and shares within groups.

use super::flights::{MEMBERS, VALUES};
use super::models::{Model, member};
use super::*;

const QUESTIONS: &[(&str, &str)] = &[
    // Averages of numbers whose maximum has a name.
    (
        "Which three airlines have the worst departure delay on average?",
        "flights.average_departure_delay by airlines.name order flights.average_departure_delay desc limit 3",
    ),
    ("worst departure delay by airline", "flights.worst_departure_delay by airlines.name"),
    (
        "average temperature and wind speed by month",
        "weather.average_temperature + weather.average_wind_speed by month",
    ),
    // The group that is sorted by.
    (
        "cancellation rate by hour of day, sorted by hour",
        "cancellation_rate by flights.departure_hour order flights.departure_hour asc",
    ),
    // Verbs that have a direction, or that add nothing.
    ("How many flights leave each airport?", "flights.count by flights.origin"),
    ("How many flights reach each airport?", "flights.count by flights.dest"),
    ("How many airports lie above 3000 feet?", "airports.count where airports.altitude gt 3000"),
    ("flights at 7 o'clock in the evening", "flights.count where flights.departure_hour equals 19"),
    ("flights at 7 o'clock", "flights.count where flights.departure_hour equals 7"),
    // Comparisons of two periods.
    (
        "Was the average arrival delay in May 2013 worse than in April?",
        "flights.average_arrival_delay in 2013-05 vs 2013-04",
    ),
    ("Was the cancellation rate in May higher than in April?", "cancellation_rate in 2013-05 vs 2013-04"),
    ("flights in 2013 over Christmas", "? over"),
    ("What share of flights is from JFK by airline?", "? share of"),
    ("airlines worse than Delta by cancellation rate", "? worse than"),
    // Values of cubes that only a third cube joins.
    (
        "Which airlines flew to Miami in May?",
        "flights.count by airlines.name where dest_airport.name equals Miami Intl in 2013-05",
    ),
    // Shares within groups.
    ("What share of each airline's flights is operated with Airbus planes?", "airbus_share by airlines.name"),
    ("What share of each airline's flights is operated with Boeing planes?", "? share of"),
    ("What share of each airline's flights was cancelled?", "cancellation_rate by airlines.name"),
    (
        "What share of departures was over 15 minutes late in fog?",
        "flights.delay_over_15_rate where weather.conditions equals fog",
    ),
    ("share of flights by airline in fog", "flights.count by airlines.name where weather.conditions equals fog totals"),
];

#[test]
fn words_further_away_decide_on_the_meaning() {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2013, 12, 31) };
    let mistakes = model.mistakes(QUESTIONS);
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}

/// The rows of a cube are counted, even if the measure that counts them has another name.
#[test]
fn comparisons_count_the_rows_of_a_cube() {
    const SALES: &str = "\
cube      orders | orders; Orders | | count=orders.count joined=orders
measure   orders.count | count; Count | | aggregation=count
measure   orders.revenue | revenue; Revenue | | aggregation=sum
text      orders.region | region; Region";
    let model = Model { members: SALES, values: &[], newest: date(2013, 12, 31) };
    let mistakes = model.mistakes(&[
        ("regions with more than 1 order", "orders.count by orders.region where orders.count gt 1"),
        ("revenue by region with at least 10 orders", "orders.revenue by orders.region where orders.count gte 10"),
        ("orders over 10", "? over"),
    ]);
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}

/// Words of a question without a measure are looked up in the cube that joins the named one.
#[test]
fn unknown_words_are_looked_up_in_the_cube_that_joins_the_named_one() {
    let english = Language::named("en").unwrap();
    let vocabulary = Vocabulary::new(MEMBERS.lines().map(member).collect(), english);
    let cube = |question: &str| {
        let known = KnownValues::default();
        read(question, &vocabulary, &known, english, date(2013, 12, 31)).unwrap().cube
    };
    assert_eq!(cube("Which airlines flew to Miami?").as_deref(), Some("flights"));
    assert_eq!(cube("How many airlines flew to Miami?").as_deref(), Some("airlines"));
}
