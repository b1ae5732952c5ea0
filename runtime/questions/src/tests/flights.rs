//! Questions about flights, with the draft that each one means. The cubes of airports have two roles.

use super::models::Model;
use super::*;

mod model;

pub(super) use self::model::{MEMBERS, VALUES};

const QUESTIONS: &[(&str, &str)] = &[
    ("Number of flights that left more than 2 hours late", "flights.count where flights.departure_delay gt 120"),
    ("Which planes are the oldest?", "planes.oldest by planes.tailnum order planes.oldest asc"),
    (
        "Which airline is the fastest?",
        "flights.average_speed by airlines.name order flights.average_speed desc limit 1",
    ),
    (
        "Punctuality per quarter for flights of Delta",
        "flights.punctuality by quarter where airlines.name equals Delta Air Lines Inc.",
    ),
    // Maxima and minima.
    ("What was the longest departure delay?", "flights.worst_departure_delay"),
    (
        "Which airline had the longest departure delay?",
        "flights.worst_departure_delay by airlines.name order flights.worst_departure_delay desc limit 1",
    ),
    (
        "Which airline has the longest average departure delay?",
        "flights.average_departure_delay by airlines.name order flights.average_departure_delay desc limit 1",
    ),
    (
        "What was the highest wind speed at JFK in March?",
        "weather.strongest_wind where weather.origin equals JFK in 2013-03",
    ),
    ("highest wind speed by month", "weather.strongest_wind by month"),
    ("lowest temperature in January", "weather.coldest in 2013-01"),
    ("which airline has the worst arrival delays", "? worst arrival delays"),
    ("longest flights by airline", "? flights"),
    (
        "Which route is the longest?",
        "flights.average_distance by flights.route order flights.average_distance desc limit 1",
    ),
    ("what was the highest average departure delay", "? highest"),
    (
        "which month had the coldest weather",
        "weather.average_temperature by month order weather.average_temperature asc limit 1",
    ),
    ("worst 3 airlines by on-time rate", "on_time_rate by airlines.name order on_time_rate asc limit 3"),
    // Hours, days and months as groups.
    ("average departure delay by hour", "flights.average_departure_delay by flights.departure_hour"),
    ("flights per hour of the day", "flights.count by flights.departure_hour"),
    ("What was the busiest day of the year?", "flights.count by day order flights.count desc limit 1"),
    ("months with more than 30000 flights", "flights.count by month where flights.count gt 30000"),
    ("the month with the most cancellations", "flights.cancelled by month order flights.cancelled desc limit 1"),
    ("Which days had more than 200 cancelled flights?", "flights.cancelled by day where flights.cancelled gt 200"),
    // Values.
    ("flights to Portland", "? Portland"),
    ("How many flights went to Florida?", "? Florida"),
    ("flights to Chicago O'Hare", "flights.count where dest_airport.name equals Chicago Ohare Intl"),
    ("flights to O'Hare by month", "flights.count by month where dest_airport.name equals Chicago Ohare Intl"),
    ("flights from Newwark", "flights.count where origin_airport.name equals Newark Liberty Intl"),
    ("average arrival delay of Detla", "flights.average_arrival_delay where airlines.name equals Delta Air Lines Inc."),
    (
        "flights from Newark airport by month",
        "flights.count by month where origin_airport.name equals Newark Liberty Intl",
    ),
    ("average departure delay at JFK airport", "flights.average_departure_delay where flights.origin equals JFK"),
    ("flights between JFK and LAX", "flights.count where flights.origin equals JFK where flights.dest equals LAX"),
    ("flights of Boston Air", "? Boston"),
    (
        "punctuality by origin without JetBlue",
        "flights.punctuality by flights.origin where airlines.name notEquals JetBlue Airways",
    ),
    ("on-time rate in summer", "? summer"),
    ("running total of flights by month", "? running total of"),
    ("total distance flown to date", "? to date"),
    ("95th percentile of departure delay by carrier", "? 95th"),
    ("flights with departure delay below -5 minutes", "flights.count where flights.departure_delay lt -5"),
    ("flights with departure delay over \u{2212}5", "flights.count where flights.departure_delay gt -5"),
    ("flights with departure delay between -10 and -5", "flights.count where flights.departure_delay between -10,-5"),
    ("flights on Mondays", "? Mondays"),
    // Comparisons of periods.
    (
        "cancellation rate in the first half of 2013 compared to the second half",
        "cancellation_rate in 2013-01-01..2013-06-30 vs 2013-07-01..2013-12-31",
    ),
    ("Compare flights in June with July", "flights.count in 2013-06 vs 2013-07"),
    ("flights in May 2013 compared to the previous month", "flights.count in 2013-05 vs -1 month"),
    ("flights in Q2 2013 vs the previous quarter", "flights.count in 2013-Q2 vs -1 quarter"),
    ("flights in 2013 vs previous year", "flights.count in 2013 vs -1 year"),
    ("flights in the last 30 days compared to the previous 30 days", "flights.count in last 30 days vs -30 days"),
    ("flights last month compared to the previous month", "flights.count in last month vs -1 month"),
    ("flights in the previous month", "flights.count in last month"),
    ("flights in 2013-W09", "flights.count in 2013-W09"),
    ("flights in 2013-W09 vs the previous week", "flights.count in 2013-W09 vs -1 week"),
    ("flights in 2013-02-08T15", "flights.count in 2013-02-08T15..2013-02-08T15"),
    ("flights at 2013-02-08T15:30", "flights.count in 2013-02-08T15:30..2013-02-08T15:30"),
    // Counts.
    ("How many different planes flew from JFK?", "flights.planes_used where flights.origin equals JFK"),
    ("number of distinct tail numbers by airline", "flights.planes_used by airlines.name"),
    ("how many destinations does Delta serve", "flights.destinations where airlines.name equals Delta Air Lines Inc."),
    // Conditions.
    ("How many flights were more than an hour late at departure?", "flights.count where flights.departure_delay gt 60"),
    ("flights that arrived more than 2 hours late", "flights.count where flights.arrival_delay gt 120"),
    ("flights delayed by more than an hour", "? by more than an hour"),
    ("carriers with more than 10000 flights", "flights.count by flights.carrier where flights.count gt 10000"),
    (
        "average arrival delay by airline with more than 10000 flights",
        "flights.average_arrival_delay by airlines.name where flights.count gt 10000",
    ),
    ("planes built before 2000 by manufacturer", "planes.count by planes.manufacturer where planes.year_built lt 2000"),
    ("average departure delay when it rained", "flights.average_departure_delay where weather.conditions equals rain"),
    // Shares.
    ("what share of flights was cancelled at JFK", "cancellation_rate where flights.origin equals JFK"),
    (
        "What percentage of flights from Newark was cancelled?",
        "cancellation_rate where origin_airport.name equals Newark Liberty Intl",
    ),
    (
        "share of JetBlue flights that were cancelled in May",
        "cancellation_rate where airlines.name equals JetBlue Airways in 2013-05",
    ),
    ("percentage of flights on time by airline", "on_time_rate by airlines.name"),
    ("share of flights by airline", "flights.count by airlines.name totals"),
    ("share of long haul flights by carrier", "? share of"),
    ("carrier with the highest share of long haul flights", "? share of"),
    ("what share of flights are flown by JetBlue", "flights.count by airlines.name totals"),
    ("highest and lowest temperature in 2013", "weather.warmest + weather.coldest in 2013"),
    ("largest and smallest average departure delay by month", "? largest average departure delay"),
    ("cancelled flights as a share of all flights by airline", "cancellation_rate by airlines.name"),
    ("cancelled flights as a share of departed flights by airline", "? share of departed flights"),
    ("delayed flights as a share of all flights by airline", "? share of all flights"),
    ("flights by airline as a share of all flights", "flights.count by airlines.name totals"),
    ("What percentage of JetBlue flights arrived on time", "on_time_rate where airlines.name equals JetBlue Airways"),
    ("what percentage of flights departed on time", "? "),
    // Verbs with particles.
    ("flights took off", "? took off"),
    ("How many flights took off in May?", "? took off"),
    ("flights that came in by airline", "? came in"),
    ("How many flights came in last week?", "? came in"),
    ("flights that came in May", "flights.count in 2013-05"),
    ("How many flights went out of JFK?", "flights.count where flights.origin equals JFK"),
    ("how did departures go up in May", "? go up"),
    ("Did flights go up in May?", "? go up"),
    ("Did flights go up by month?", "flights.count by month"),
    // Halves and quarters `of the year`, and words without a meaning.
    ("flights by airline in the first half of the year", "flights.count by airlines.name in 2013-01-01..2013-06-30"),
    ("flights in the second quarter of the year", "flights.count in 2013-Q2"),
    ("flights in the first half of the fiscal year", "? fiscal"),
    ("how many flights still go to LAX", "flights.count where flights.dest equals LAX"),
    ("flights by airline, alphabetical by airline", "flights.count by airlines.name order airlines.name asc"),
    ("total rain by month", "? total"),
    // Rankings, comparisons and exclusions behind other words.
    (
        "flights by airline, top 3 by cancellation rate",
        "flights.count + cancellation_rate by airlines.name order cancellation_rate desc limit 3",
    ),
    (
        "cancellation rate by month top 3 by flights",
        "cancellation_rate + flights.count by month order flights.count desc limit 3",
    ),
    ("flights by month top 3 by airline", "flights.count by airlines.name month order flights.count desc limit 3"),
    ("JFK flights versus LGA flights", "flights.count by flights.origin where flights.origin inList JFK,LGA"),
    ("flights in May versus JetBlue", "? JetBlue"),
    ("flights from neither JFK nor LGA", "flights.count where flights.origin notInList JFK,LGA"),
    ("flights where origin is neither JFK nor LGA", "flights.count where flights.origin notInList JFK,LGA"),
    ("flights nor JFK", "? nor"),
    ("flights by origin, everything but JFK", "flights.count by flights.origin where flights.origin notEquals JFK"),
    ("average temperature at the New York airports", "? New York airports"),
    ("flights by New York airport", "flights.count by flights.origin"),
    ("average temperature by airline", "? airline"),
    (
        "flights of Boeing planes versus Airbus planes",
        "flights.count by planes.manufacturer where planes.manufacturer inList BOEING,AIRBUS,AIRBUS INDUSTRIE",
    ),
    ("flights delayed up to 30 minutes", "? up to 30 minutes"),
    ("Flights in June versus May", "flights.count in 2013-06 vs 2013-05"),
    ("everything but flights", "? flights"),
    // Units of answers.
    ("how many miles did JetBlue fly", "flights.distance_flown where airlines.name equals JetBlue Airways"),
    ("average distance in miles by airline", "flights.average_distance by airlines.name"),
    ("how many minutes were lost by Delta", "flights.minutes_lost where airlines.name equals Delta Air Lines Inc."),
    ("how much did it rain in April", "weather.total_precipitation in 2013-04"),
    ("how much rain fell at JFK", "weather.total_precipitation where weather.origin equals JFK"),
    // Verbs that add nothing, and questions without a measure.
    ("How did Delta do in March?", "? How did"),
    ("How was punctuality in March?", "flights.punctuality in 2013-03"),
    ("Tell me the cancellation rate for United", "cancellation_rate where airlines.name equals United Air Lines Inc."),
    ("How late was United on average?", "? How late"),
    (
        "How old are the planes of Delta on average?",
        "flights.average_plane_age where airlines.name equals Delta Air Lines Inc.",
    ),
    ("how fast do planes of each manufacturer fly", "flights.average_speed by planes.manufacturer"),
    ("Which airlines don't fly from LGA?", "? don't"),
    (
        "What were the five most common destinations from JFK?",
        "flights.count by flights.dest where flights.origin equals JFK order flights.count desc limit 5",
    ),
    ("How many flights did each airline operate in December?", "flights.count by airlines.name in 2013-12"),
    (
        "Compare JFK and LGA by cancellation rate",
        "cancellation_rate by flights.origin where flights.origin inList JFK,LGA",
    ),
    (
        "How did the average arrival delay change from January to June?",
        "flights.average_arrival_delay in 2013-06 vs 2013-01",
    ),
    ("How did the average arrival delay change?", "? change"),
    ("How did the cancellation rate change by month?", "cancellation_rate by month"),
    ("delays by airline", "? delays"),
    (
        "How far do Delta flights go on average?",
        "flights.average_distance where airlines.name equals Delta Air Lines Inc.",
    ),
    ("How many flights used Airbus planes?", "flights.count where planes.manufacturer inList AIRBUS,AIRBUS INDUSTRIE"),
    (
        "The three airlines with the oldest planes",
        "flights.average_plane_age by airlines.name order flights.average_plane_age desc limit 3",
    ),
    (
        "Which month was the warmest on average?",
        "weather.average_temperature by month order weather.average_temperature desc limit 1",
    ),
    (
        "Average departure delay of flights over 1000 miles",
        "flights.average_departure_delay where flights.distance gt 1000",
    ),
    ("Total flights by quarter in 2013", "flights.count by quarter in 2013"),
    (
        "the airline with the lowest punctuality in May",
        "flights.punctuality by airlines.name in 2013-05 order flights.punctuality asc limit 1",
    ),
    ("Which airlines had more than 5000 late flights?", "flights.late by airlines.name where flights.late gt 5000"),
    (
        "Give me the number of flights per carrier, most first",
        "flights.count by flights.carrier order flights.count desc",
    ),
    (
        "flights from JFK to Los Angeles in the first week of March",
        "flights.count where flights.origin equals JFK where dest_airport.name equals Los Angeles Intl in 2013-03-01..2013-03-07",
    ),
    (
        "Which route had the most flights in Q3?",
        "flights.count by flights.route in 2013-Q3 order flights.count desc limit 1",
    ),
    (
        "How many planes made by Airbus are there?",
        "planes.count where planes.manufacturer inList AIRBUS,AIRBUS INDUSTRIE",
    ),
    (
        "on-time rate of Delta and United by quarter",
        "on_time_rate by quarter where airlines.name inList Delta Air Lines Inc.,United Air Lines Inc.",
    ),
    ("Was the cancellation rate higher in February or in March?", "? higher"),
    ("number of flights by weekday", "? weekday"),
    (
        "What was the least punctual airline in December?",
        "flights.punctuality by airlines.name in 2013-12 order flights.punctuality asc limit 1",
    ),
    ("on average, which airline has the most flights", "? flights"),
    ("how many flights were diverted", "flights.diverted"),
    ("flights that left on time by airline", "flights.on_time by airlines.name"),
    ("flights and diverted by month", "flights.count + flights.diverted by month"),
    (
        "Which day was the busiest for flights from JFK?",
        "flights.count by day where flights.origin equals JFK order flights.count desc limit 1",
    ),
    ("worst on-time rate by airline", "on_time_rate by airlines.name order on_time_rate asc"),
    // Lists with repeated words.
    (
        "average departure delay in rain and in fair weather",
        "flights.average_departure_delay by weather.conditions where weather.conditions inList rain,fair",
    ),
    (
        "are flights delayed in rain or in fog",
        "flights.count by weather.conditions where weather.conditions inList rain,fog where delayed",
    ),
    ("flights in rain or in fog", "flights.count where weather.conditions inList rain,fog"),
    ("flights from JFK and from LGA", "flights.count by flights.origin where flights.origin inList JFK,LGA"),
    ("flights in rain by carrier in fog", "? "),
    ("flights from JFK or to LAX", "flights.count where flights.origin equals JFK or flights.dest equals LAX"),
    (
        "delayed flights from JFK and to LAX",
        "flights.count where flights.origin equals JFK where flights.dest equals LAX where delayed",
    ),
    ("flights in July and in August", "flights.count in 2013-07-01..2013-08-31"),
    // Orders of all rows.
    (
        "average arrival delay per carrier, worst first",
        "flights.average_arrival_delay by flights.carrier order flights.average_arrival_delay desc",
    ),
    (
        "average departure delay by airline, longest first",
        "flights.average_departure_delay by airlines.name order flights.average_departure_delay desc",
    ),
    ("busiest hour of the day", "flights.count by flights.departure_hour order flights.count desc limit 1"),
    // A rate with a number in its name.
    (
        "What percentage of flights left more than 15 minutes late from LGA in July?",
        "flights.delay_over_15_rate where flights.origin equals LGA in 2013-07",
    ),
    ("What percentage of flights left more than 30 minutes late?", "? more than 30 minutes"),
    ("What percentage of flights left less than 15 minutes late?", "? less than 15 minutes"),
    // Units of measures and of descriptions.
    ("cancellation rate when the wind speed is above 30 mph", "cancellation_rate where weather.wind_speed gt 30"),
    (
        "how many hours was it 32 degrees or colder at JFK",
        "weather.count where weather.temperature lte 32 where weather.origin equals JFK",
    ),
    ("average time in the air in minutes", "flights.average_air_time"),
    ("average time in the air in hours", "? hours"),
    // Dimensions that another value has already.
    (
        "southwest flights to Chicago Midway",
        "flights.count where airlines.name equals Southwest Airlines Co. where dest_airport.name equals Chicago Midway Intl",
    ),
    (
        "how many different planes did United use",
        "flights.planes_used where airlines.name equals United Air Lines Inc.",
    ),
    ("temperature by month", "weather.average_temperature by month"),
    ("departure delay by carrier", "? departure delay"),
    ("flights without a route", "flights.count where flights.route notSet "),
    ("flights without a departure delay", "? departure delay"),
    ("flights of 2000 miles or more", "flights.count where flights.distance gte 2000"),
    ("carriers with 1000 flights or fewer", "flights.count by flights.carrier where flights.count lte 1000"),
    ("flights by month in 2013 year-over-year", "flights.count by month in 2013 vs -1 year"),
    (
        "flights of more than 500 miles or less than 100 miles",
        "flights.count where flights.distance gt 500 or flights.distance lt 100",
    ),
    (
        "flights of more than 100 miles and less than 500 miles",
        "flights.count where flights.distance gt 100 where flights.distance lt 500",
    ),
    ("carriers with 5000 or more flights", "flights.count by flights.carrier where flights.count gte 5000"),
    ("flights in June or later", "flights.count in 2013-06-01.."),
];

#[test]
fn flights_questions_are_interpreted_correctly() {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2013, 12, 31) };
    let mistakes = model.mistakes(QUESTIONS);
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}
