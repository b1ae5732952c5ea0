//! Questions of another author about flights, and questions of the same kinds about hotels and bicycle shops: verbs of
//! departure, `each` behind values, exceptions by numbers, and words that repeat what another part names.

use super::models::Model;
use super::{bikes, flights, hotel, *};

/// Further members of the flights, with the descriptions of the example.
pub(super) const FURTHER: &str = "\
measure   flights.departed_late | departed_late; Departed late; flights departed_late | | aggregation=count described=Flights_that_left_more_than_15_minutes_late
measure   flights.total_arrival_delay | total_arrival_delay; Total arrival delay | | aggregation=sum unit=minutes combines=flights.arrival_delay
measure   flights.average_time_made_up | average_time_made_up; Average time made up | | aggregation=average unit=minutes
measure   flights.total_air_time | total_air_time; Time in the air | | aggregation=sum unit=minutes
measure   flights.routes | routes; Routes; flights routes | | aggregation=distinct combines=flights.route
segment   flights.departed_flights | departed_flights; flights departed_flights
";

pub(super) const VALUES: [(&str, &str, u64); 9] = [
    ("airlines.name", "American Airlines Inc.", 32_729),
    ("dest_airport.name", "San Francisco Intl", 13_331),
    ("dest_airport.name", "Orlando", 14_082),
    ("dest_airport.name", "Fort Lauderdale Hollywood Intl", 12_055),
    ("dest_airport.name", "Panama City-NW Florida Bea.", 0),
    ("planes.manufacturer", "AMERICAN AIRCRAFT INC", 42),
    ("planes.manufacturer", "AVIAT AIRCRAFT INC", 18),
    ("planes.manufacturer", "MCDONNELL DOUGLAS AIRCRAFT CO", 8_932),
    ("dest_airport.name", "Honolulu Intl", 707),
];

const FLIGHTS: &[(&str, &str)] = &[
    // Verbs of departure, and the measure of their rows.
    ("How many flights left JFK in March?", "flights.departed where flights.origin equals JFK in 2013-03"),
    (
        "flights that left JFK more than 2 hours late",
        "flights.departed where flights.origin equals JFK where flights.departure_delay gt 120",
    ),
    (
        "On which day did the most flights get canceled?",
        "flights.cancelled by day order flights.cancelled desc limit 1",
    ),
    // `each` behind a list of values.
    (
        "How many flights to Chicago O'Hare did American and United each operate?",
        "flights.count by airlines.name where dest_airport.name equals Chicago Ohare Intl where airlines.name inList American Airlines Inc.,United Air Lines Inc.",
    ),
    (
        "how many fligths did southwest have in july and august",
        "flights.count where airlines.name equals Southwest Airlines Co. in 2013-07-01..2013-08-31",
    ),
    (
        "how many flights did Delta and United each have in May",
        "flights.count by airlines.name where airlines.name inList Delta Air Lines Inc.,United Air Lines Inc. in 2013-05",
    ),
    // Shares of rows with a number.
    (
        "Share of flights with a departure delay over 15 minutes, by weather conditions, only JFK",
        "flights.delay_over_15_rate by weather.conditions where flights.origin equals JFK",
    ),
    ("Share of flights with a departure delay over 30 minutes, by weather conditions", "? Share of"),
    ("What percentage of flights arrived on time in December?", "on_time_rate in 2013-12"),
    // Exceptions.
    (
        "Which airlines flew more than 20,000 flights but had an on-time rate below 75%?",
        "flights.count + on_time_rate by airlines.name where flights.count gt 20000 where on_time_rate lt 0.75",
    ),
    ("late flights but cancelled", "? but"),
    (
        "Which airlines have a cancellation rate above 2% but more than 1000 flights",
        "cancellation_rate + flights.count by airlines.name where cancellation_rate gt 0.02 where flights.count gt 1000",
    ),
    (
        "Which routes have the highest cancellation rate? Top 20 please, ignoring routes with fewer than 100 flights.",
        "cancellation_rate by flights.route where flights.count gte 100 order cancellation_rate desc limit 20",
    ),
    (
        "How many flights were neither cancelled nor delayed by more than 15 minutes at departure?",
        "flights.count where flights.is_cancelled equals false where flights.departure_delay lte 15",
    ),
    // Rankings by the average of a number.
    (
        "Which month was worst for arrival delays?",
        "flights.average_arrival_delay by month order flights.average_arrival_delay desc limit 1",
    ),
    (
        "Are planes getting older on some airlines? I'd like the average plane age per airline.",
        "flights.average_plane_age by airlines.name",
    ),
    ("Are more flights late in rain? Show the late flights by carrier.", "? more"),
    // Words that repeat or describe others.
    (
        "What was the longest arrival delay of the year, by carrier?",
        "flights.worst_arrival_delay by flights.carrier in 2013",
    ),
    ("How many minutes were lost to delays each quarter?", "flights.minutes_lost by quarter"),
    (
        "Flights to Florida airports like Miami, Orlando and Fort Lauderdale by month",
        "flights.count by month where dest_airport.name inList Miami Intl,Orlando,Fort Lauderdale Hollywood Intl",
    ),
    ("flights like JFK", "? like"),
    ("flights in the year 2013 by carrier", "flights.count by flights.carrier in 2013"),
    ("cancelled flights by month of the year", "? year"),
    ("Which month of the year has the most flights?", "flights.count by month order flights.count desc limit 1"),
    ("flights but the cancelled ones", "? but"),
    ("How many flights reached Miami in May?", "flights.arrived where dest_airport.name equals Miami Intl in 2013-05"),
    ("How many flights left each airport?", "flights.count by flights.origin"),
    ("average distance of flights that left JFK", "flights.average_distance where flights.origin equals JFK"),
    ("flights not over 2000 miles", "flights.count where flights.distance lte 2000"),
    ("flights and how late they arrive by carrier", "flights.count + flights.average_arrival_delay by flights.carrier"),
    (
        "Delta flights from JFK to San Francisco: how long are they in the air on average?",
        "flights.average_air_time where airlines.name equals Delta Air Lines Inc. where flights.origin equals JFK where dest_airport.name equals San Francisco Intl",
    ),
    ("Which weekday has the most flights?", "? weekday"),
    ("Which aircraft models flew the most miles?", "? aircraft"),
    ("How did the number of flights develop week by week during the summer?", "? summer"),
];

const BIKES: &[(&str, &str)] = &[
    (
        "Which shops had more than 100 sales but had a profit below 500 euros?",
        "sales.count + sales.profit by shops.name where sales.count gt 100 where sales.profit lt 500",
    ),
    (
        "revenue by shop, excluding shops with fewer than 20 sales",
        "sales.revenue by shops.name where sales.count gte 20",
    ),
    (
        "How many sales did Pedal Point and Harbour Cycles each make?",
        "sales.count by shops.name where shops.name inList Pedal Point,Harbour Cycles",
    ),
    ("revenue of the year by category", "sales.revenue by bikes.category in 2026"),
    ("share of sales over 500 euros by region", "? share of"),
    ("which bicycle models have the most sales", "sales.count by bikes.model order sales.count desc"),
    ("which bicycle category has the most sales", "sales.count by bikes.category order sales.count desc limit 1"),
    ("revenue by bike color and shop", "sales.revenue by bikes.color shops.name"),
    (
        "sales of categories like cargo bike and kids",
        "sales.count by bikes.category where bikes.category inList cargo bike,kids",
    ),
    ("revenue excluding sales over 500 euros", "sales.revenue where sales.price lte 500"),
    ("sales without kids bikes", "sales.count where bikes.category notEquals kids"),
];

const HOTEL: &[(&str, &str)] = &[
    ("how long do guests stay on average by hotel", "bookings.average_nights by hotels.name"),
    (
        "bookings that were cancelled but had more than 3 nights",
        "bookings.count where bookings.is_cancelled equals true where bookings.nights gt 3",
    ),
    ("cancelled bookings but prepaid", "? but"),
    ("share of reviews with fewer than 3 stars by hotel", "? share of"),
    ("guests who left in May", "? left"),
    (
        "In which month did the most bookings get cancelled?",
        "bookings.count by month where bookings.is_cancelled equals true order bookings.count desc limit 1",
    ),
    (
        "Which weekday has the most bookings?",
        "bookings.count by bookings.arrival_day order bookings.count desc limit 1",
    ),
    ("bookings by weekday", "bookings.count by bookings.arrival_day"),
    ("bookings on weekdays", "? weekdays"),
    ("Which hotel was worst for lead time?", "? worst"),
    (
        "bookings that are neither prepaid nor over 5 nights",
        "bookings.count where bookings.prepaid equals false where bookings.nights lte 5",
    ),
    (
        "Do guests stay longer in some hotels? Show me the average length of stay by hotel.",
        "bookings.average_nights by hotels.name",
    ),
    (
        "revenue by hotel, ignoring hotels with fewer than 50 bookings",
        "bookings.revenue by hotels.name where bookings.count gte 50",
    ),
];

fn check(model: &Model<'_>, questions: &[(&str, &str)]) {
    let mistakes = model.mistakes(questions);
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}

#[test]
fn flights_of_another_author_are_interpreted_correctly() {
    let members = format!("{}{FURTHER}", flights::MEMBERS);
    let values: Vec<(&str, &str, u64)> = flights::VALUES.into_iter().chain(VALUES).collect();
    check(&Model { members: &members, values: &values, newest: date(2013, 12, 31) }, FLIGHTS);
}

#[test]
fn sentences_about_bikes_are_interpreted_correctly() {
    check(&Model { members: bikes::MEMBERS, values: &bikes::VALUES, newest: date(2026, 9, 20) }, BIKES);
}

#[test]
fn sentences_about_hotels_are_interpreted_correctly() {
    let members = format!("{}text bookings.arrival_day | arrival_day; Day of the week of arrival\n", hotel::MEMBERS);
    check(&Model { members: &members, values: &hotel::VALUES, newest: date(2026, 9, 20) }, HOTEL);
}

#[test]
fn comparisons_with_a_time_before_the_data_are_unclear() {
    let language = Language::named("en").unwrap();
    let vocabulary = Vocabulary::new(flights::MEMBERS.lines().map(super::models::member).collect(), language);
    for (question, is_clear) in [
        ("How did flights in 2013 compare with 2012?", false),
        ("flights in 2013-Q1 vs 2012-Q4", false),
        ("flights in 2013 compared with the previous year", false),
        ("flights in June 2013 compared with the previous month", true),
        ("flights in May 2013 vs April 2013", true),
        ("flights in 2012", true),
    ] {
        let mut reading = read(question, &vocabulary, &KnownValues::default(), language, date(2013, 12, 31)).unwrap();
        assert_eq!(reading.clarifications, [], "{question}");
        reading.check_start_of_data(date(2013, 1, 1));
        assert_eq!(reading.clarifications.is_empty(), is_clear, "{question}");
        assert!(is_clear || reading.compares_dates(), "{question}");
    }
    let mut reading = read_in("en", "flights this month vs last month");
    assert!(!reading.compares_dates());
    reading.check_start_of_data(date(2013, 12, 1));
    assert_eq!(reading.clarifications, []);
}
