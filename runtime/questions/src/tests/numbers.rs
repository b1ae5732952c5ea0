//! Questions with numbers and dates in the forms of a language, and with units of numbers.

use super::flights::{MEMBERS, VALUES};
use super::models::{Model, member};
use super::*;

/// Parcels with units of mass, money and length.
const PARCELS: &str = "\
cube      parcels | parcels; Parcels | | count=parcels.count joined=parcels
measure   parcels.count | count; Parcels | | aggregation=count
number    parcels.weight | weight; Weight | | unit=kg
number    parcels.contents | contents; Contents | | unit=grams
number    parcels.price | price; Price | Preis | unit=€
number    parcels.fee | fee; Fee | | unit=USD
number    parcels.height | height; Height | | unit=feet
number    parcels.length | length; Length | | unit=meters
number    parcels.rank | rank_of_sender; Sender rank
number    parcels.quantity | quantity; Quantity
text      parcels.city | city; City
time      parcels.sent_on | sent_on; Sent on
";

const ENGLISH: &[(&str, &str)] = &[
    ("parcels with a height over 5,000 ft", "parcels.count where parcels.height gt 5000"),
    ("parcels over 5,000 ft", "parcels.count where parcels.height gt 5000"),
    ("parcels over 5000ft", "parcels.count where parcels.height gt 5000"),
    ("parcels over 1.5 kg", "parcels.count where parcels.weight gt 1.5"),
    ("parcels over 1.5kg", "parcels.count where parcels.weight gt 1.5"),
    ("parcels with a weight of 1.5 kilograms or more", "parcels.count where parcels.weight gte 1.5"),
    ("parcels over 500 grams", "parcels.count where parcels.contents gt 500"),
    ("parcels over 500g", "parcels.count where parcels.contents gt 500"),
    ("parcels over 10 €", "parcels.count where parcels.price gt 10"),
    ("parcels over 10€", "parcels.count where parcels.price gt 10"),
    ("parcels over €10", "parcels.count where parcels.price gt 10"),
    ("parcels over € 10", "parcels.count where parcels.price gt 10"),
    ("parcels over 10 euros", "parcels.count where parcels.price gt 10"),
    ("parcels over $10", "parcels.count where parcels.fee gt 10"),
    ("parcels with a fee between $10 and $20", "parcels.count where parcels.fee between 10,20"),
    ("parcels over $1.5 million", "parcels.count where parcels.fee gt 1500000"),
    ("parcels with a quantity over 10k", "parcels.count where parcels.quantity gt 10000"),
    ("parcels over €10k", "parcels.count where parcels.price gt 10000"),
    ("parcels with a price over 10", "parcels.count where parcels.price gt 10"),
    ("parcels with a quantity over 1.5", "parcels.count where parcels.quantity gt 1.5"),
    ("parcels with a quantity over 10.000", "? 10.000"),
    ("parcels with a length over 5 m", "parcels.count where parcels.length gt 5"),
    ("parcels with a length over 5m", "? 5m"),
    ("parcels over £10", "? £"),
    // A unit that no member has, or that the member does not have.
    ("parcels with a quantity over £10", "? "),
    ("parcels with a quantity over $10", "? "),
    ("parcels with a price over $10", "? "),
    ("parcels with a weight over 500 grams", "? "),
];

const GERMAN: &[(&str, &str)] = &[
    ("carrier mit mehr als 10.000 flights", "flights.count by flights.carrier where flights.count gt 10000"),
    ("carrier mit mehr als 1.000.000 flights", "flights.count by flights.carrier where flights.count gt 1000000"),
    ("flights mit departure delay über 1.500 Minuten", "flights.count where flights.departure_delay gt 1500"),
    ("flights mit departure delay über 1,5 Stunden", "flights.count where flights.departure_delay gt 90"),
    ("flights mit departure delay über 1,5h", "flights.count where flights.departure_delay gt 90"),
    ("flights mit departure delay über 1.5 Stunden", "flights.count where flights.departure_delay gt 90"),
    ("flights mit departure delay über 1.234,5", "flights.count where flights.departure_delay gt 1234.5"),
    ("flights mit departure delay unter -1,5", "flights.count where flights.departure_delay lt -1.5"),
    (
        "flights mit departure delay zwischen 1,5 und 2,5 Stunden",
        "flights.count where flights.departure_delay between 90,150",
    ),
    ("carrier mit mehr als 1,5 tausend flights", "flights.count by flights.carrier where flights.count gt 1500"),
    ("carrier mit mehr als 2,5k flights", "flights.count by flights.carrier where flights.count gt 2500"),
    (
        "carrier mit cancellation rate über 2,5 %",
        "cancellation_rate by flights.carrier where cancellation_rate gt 0.025",
    ),
    (
        "carrier mit cancellation rate über 2,5%",
        "cancellation_rate by flights.carrier where cancellation_rate gt 0.025",
    ),
    ("flights am 03.05.2013", "flights.count in 2013-05-03"),
    ("flights am 3.5.2013?", "flights.count in 2013-05-03"),
    ("flights am 3.5.13", "flights.count in 2013-05-03"),
    ("flights am 3.5.", "flights.count in 2013-05-03"),
    ("flights vom 03.05.2013 bis 10.05.2013", "flights.count in 2013-05-03..2013-05-10"),
    ("flights vom 3.5. bis zum 10.5.", "flights.count in 2013-05-03..2013-05-10"),
    ("flights nach dem 03.05.2013 nach carrier", "flights.count by flights.carrier in 2013-05-04.."),
    ("flights seit dem 03.05.2013", "flights.count in 2013-05-03.."),
    ("flights am 2013-05-03", "flights.count in 2013-05-03"),
    ("flights am 8. Mai 2013", "flights.count in 2013-05-08"),
    ("flights am 31.02.2013", "? 31"),
    ("flights im 2. Quartal 2013", "flights.count in 2013-Q2"),
    ("carrier mit bis zu 2.000 flights", "flights.count by flights.carrier where flights.count lte 2000"),
    ("flights mit departure delay über 5.", "flights.count where flights.departure_delay gt 5"),
    ("top 5 carrier nach flights", "flights.count by flights.carrier order flights.count desc limit 5"),
];

const GERMAN_PARCELS: &[(&str, &str)] = &[
    ("parcels über 1,5 kg", "parcels.count where parcels.weight gt 1.5"),
    ("parcels über 1.500 Gramm", "parcels.count where parcels.contents gt 1500"),
    ("parcels über 9,99 €", "parcels.count where parcels.price gt 9.99"),
    ("parcels über 10 Euro", "parcels.count where parcels.price gt 10"),
    ("parcels über $1.500", "parcels.count where parcels.fee gt 1500"),
];

#[test]
fn numbers_are_interpreted_correctly() {
    let flights = Model { members: MEMBERS, values: &VALUES, newest: date(2013, 12, 31) };
    let parcels = Model { members: PARCELS, values: &[], newest: date(2024, 5, 20) };
    let mut mistakes = parcels.mistakes(&ENGLISH[..24]);
    mistakes.extend(flights.mistakes_in("de", GERMAN));
    mistakes.extend(parcels.mistakes_in("de", GERMAN_PARCELS));
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}

#[test]
fn units_without_a_member_are_unclear() {
    let english = Language::named("en").unwrap();
    let vocabulary = Vocabulary::new(PARCELS.lines().map(member).collect(), english);
    for (question, _) in &ENGLISH[24..] {
        let reading = read(question, &vocabulary, &KnownValues::default(), english, date(2024, 5, 20)).unwrap();
        assert_ne!(reading.clarifications, [], "{question}");
    }
}
