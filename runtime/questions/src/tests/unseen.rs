//! Questions that were written before the grammar was tried on them, about flights and about a fitness chain.

use super::flights::{MEMBERS, VALUES};
use super::models::Model;
use super::*;

const GYM: &str = "\
cube      bookings | bookings; Bookings | reservations | count=bookings.count joined=bookings,members,studios,trainers
cube      members | members; Members | customers | count=members.count label=members.name joined=members
cube      studios | studios; Studios | | count=studios.count label=studios.name joined=studios
cube      trainers | trainers; Trainers | | count=trainers.count label=trainers.name joined=trainers
measure   bookings.count | count; Bookings; bookings count; bookings Bookings | number of bookings | aggregation=count
measure   bookings.cancelled | cancelled; Cancelled bookings; bookings cancelled | cancellations | aggregation=count
measure   bookings.revenue | revenue; Class revenue; bookings revenue | | aggregation=sum unit=euros
measure   bookings.average_rating | average_rating; Average rating | satisfaction | aggregation=average unit=stars combines=bookings.rating
measure   bookings.ratings | ratings; Ratings | reviews | aggregation=count
text      bookings.class_type | class_type; Class; bookings Class | class type
text      bookings.voucher | voucher; Voucher; bookings voucher | voucher code
time      bookings.class_date | class_date; Class date; bookings class_date
time      bookings.booked_on | booked_on; Booking date; bookings booked_on | booked
number    bookings.duration | duration; Duration of class; bookings duration | length | unit=minutes
number    bookings.rating | rating; Rating; bookings rating | | unit=stars
measure   members.count | count; Members; members count; members Members | number of members | aggregation=count
text      members.name | name; Member; members name
text      members.plan | plan; Plan; members plan | membership
text      members.heard_from | heard_from; Source; members Source | referral source
time      members.joined_on | joined_on; Joining date; members joined_on | joined; signed up
time      members.left_on | left_on; Leaving date; members left_on | left; quit
measure   studios.count | count; Studios; studios count | | aggregation=count
text      studios.name | name; Studio; studios name
time      studios.opened_on | opened_on; Opening date; studios opened_on | opened
measure   trainers.count | count; Trainers; trainers count | | aggregation=count
text      trainers.name | name; Trainer; trainers name | coach
";

const GYM_VALUES: [(&str, &str, u64); 5] = [
    ("members.plan", "Basic", 20),
    ("members.plan", "Plus", 30),
    ("members.heard_from", "google", 40),
    ("bookings.voucher", "WELCOME10", 12),
    ("studios.name", "Riverside", 700),
];

const GYM_QUESTIONS: &[(&str, &str)] = &[
    // Verbs for events of other rows, and words that describe rows, are not dropped.
    ("how many members booked in June", "? members"),
    ("how many members visited in May", "? visited"),
    ("what did members from google spend in Q3", "? spend"),
    ("how many members cancelled their membership this year", "? cancelled"),
    ("how many classes were full", "? full"),
    ("how many classes", "? how many"),
    ("revenue up in June vs May", "bookings.revenue in 2025-06 vs 2025-05"),
    ("was revenue up in June", "? up"),
    ("which trainer has the best rating", "? rating"),
    ("members who made bookings in June", "? members"),
    ("how many members booked classes", "? members"),
    // Events of the things themselves.
    ("how many members signed up in March 2024", "members.count in 2024-03 of members.joined_on"),
    ("members who signed up in 2024 by plan", "members.count by members.plan in 2024 of members.joined_on"),
    ("how many members quit in 2024", "members.count in 2024 of members.left_on"),
    ("studios opened in 2023", "studios.count in 2023 of studios.opened_on"),
    // Names that stand for rows.
    (
        "average rating by trainer for classes longer than 45 minutes",
        "bookings.average_rating by trainers.name where bookings.duration gt 45",
    ),
    ("classes rated 2 stars or less by trainer", "? classes"),
    ("bookings rated 5 stars", "bookings.count where bookings.rating equals 5"),
    // Words that are values.
    ("how many members are on the Plus plan", "members.count where members.plan equals Plus"),
    ("how many times was WELCOME10 used", "bookings.count where bookings.voucher equals WELCOME10"),
    // Rankings.
    ("busiest studio", "bookings.count by studios.name order bookings.count desc limit 1"),
    (
        "which referral source brings the most revenue",
        "bookings.revenue by members.heard_from order bookings.revenue desc limit 1",
    ),
    ("bookings at all studios but Riverside", "bookings.count where studios.name notEquals Riverside"),
    ("trainers in alphabetical order", " by trainers.name order trainers.name asc"),
];

const FLIGHTS_QUESTIONS: &[(&str, &str)] = &[
    // Numbers of joined cubes, and years.
    ("average speed of planes built in 2010", "flights.average_speed where planes.year_built equals 2010"),
    ("how many planes were built in 2010", "planes.count where planes.year_built equals 2010"),
    // Superlatives before numbers and units of time.
    (
        "least punctual hour of the day",
        "flights.punctuality by flights.departure_hour order flights.punctuality asc limit 1",
    ),
    ("coldest month", "weather.coldest by month order weather.coldest asc limit 1"),
    ("busiest airline", "flights.count by airlines.name order flights.count desc limit 1"),
    ("busiest airport", "? busiest"),
    ("top destination of each airline", "? of each"),
    (
        "oldest planes by airline",
        "flights.average_plane_age by planes.tailnum airlines.name order flights.average_plane_age desc",
    ),
    // Verbs around comparisons and with particles.
    ("flights arriving more than two hours late", "flights.count where flights.arrival_delay gt 120"),
    ("how many flights ended up cancelled", "flights.cancelled"),
    ("how many flights took off late", "? took off"),
    ("which airlines fly out to Miami", "flights.count by airlines.name where dest_airport.name equals Miami Intl"),
    ("which planes flew the most miles", "flights.distance_flown by planes.tailnum order flights.distance_flown desc"),
    // Exceptions.
    (
        "punctuality of all airlines but United",
        "flights.punctuality where airlines.name notEquals United Air Lines Inc.",
    ),
    ("late flights but cancelled", "? but"),
    ("which airlines fly only from JFK", "? only"),
    // Times.
    ("flights between Christmas and New Year", "flights.count in 2013-12-25..2014-01-01"),
    ("flights in the first two weeks of July", "flights.count in 2013-07-01..2013-07-14"),
    ("flights in the summer of 2013", "? summer"),
    ("fall 2013 flights", "? fall"),
    ("did cancellations fall in June", "? fall"),
    // Orders.
    ("flights by airline alphabetically", "flights.count by airlines.name order airlines.name asc"),
    (
        "flights longer than 2000 miles by carrier, sorted by count",
        "flights.count by flights.carrier where flights.distance gt 2000 order flights.count desc",
    ),
    ("trend of average departure delay over the year", "flights.average_departure_delay by month"),
];

fn check(model: &Model<'_>, questions: &[(&str, &str)]) {
    let mistakes = model.mistakes(questions);
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}

#[test]
fn unseen_gym_questions_are_interpreted_correctly() {
    check(&Model { members: GYM, values: &GYM_VALUES, newest: date(2025, 12, 30) }, GYM_QUESTIONS);
}

#[test]
fn unseen_flights_questions_are_interpreted_correctly() {
    check(&Model { members: MEMBERS, values: &VALUES, newest: date(2013, 12, 31) }, FLIGHTS_QUESTIONS);
}

#[test]
fn german_negations_and_exceptions_are_read() {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2013, 12, 31) };
    let mistakes = model.mistakes_in(
        "de",
        &[
            ("flights außer JetBlue", "flights.count where airlines.name notEquals JetBlue Airways"),
            ("flights bis auf JetBlue", "flights.count where airlines.name notEquals JetBlue Airways"),
            ("flights keine JetBlue", "flights.count where airlines.name notEquals JetBlue Airways"),
        ],
    );
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}

/// A time that depends on today may begin after the newest data.
#[test]
fn relative_times_after_the_newest_data_are_noted() {
    let today = date(2026, 11, 29);
    for (question, newest, note) in [
        ("flights yesterday", date(2013, 12, 31), Some("the time yesterday, but the newest data is of 2013-12-31")),
        ("flights last month", date(2013, 12, 31), Some("the time last month, but the newest data is of 2013-12-31")),
        (
            "flights in the last 7 days",
            date(2026, 11, 21),
            Some("the time last 7 days, but the newest data is of 2026-11-21"),
        ),
        ("flights in the last 7 days", date(2026, 11, 22), None),
        ("flights this quarter", date(2026, 10, 1), None),
        ("flights in May", date(2013, 12, 31), None),
    ] {
        let mut reading = read_in("en", question);
        reading.note_end_of_data(newest, today);
        let noted = reading.pieces.iter().find(|piece| piece.meaning.contains("newest data"));
        assert_eq!(noted.map(|piece| &*piece.meaning), note, "{question}");
    }
    assert!(read_in("en", "flights yesterday").is_relative());
    assert!(!read_in("en", "flights in May").is_relative());
}

/// A value among several with the same word is a choice, if it has rows.
#[test]
fn choices_of_a_part_of_values_are_the_values_with_rows() {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2013, 12, 31) };
    let language = Language::named("en").unwrap();
    let vocabulary = Vocabulary::new(model.members.lines().map(models::member).collect(), language);
    let values =
        VALUES.map(|(member, value, rows)| KnownValue { member: member.into(), value: value.into(), rows: Some(rows) });
    let values = KnownValues { values: values.to_vec(), searched: Vec::new() };
    let reading = read("flights to Florida", &vocabulary, &values, language, model.newest).unwrap();
    assert_eq!(reading.clarifications[0].choices, names(&["Southwest Florida Intl"]));
}

/// Short words are corrected only if letters are swapped.
#[test]
fn short_words_with_a_replaced_letter_are_not_corrected() {
    for (question, is_clear) in [("fligths by carrier", true), ("cancelld flights", true), ("bancelled flights", false)]
    {
        assert_eq!(read_in("en", question).clarifications.is_empty(), is_clear, "{question}");
    }
}
