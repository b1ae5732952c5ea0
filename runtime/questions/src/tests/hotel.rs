//! Questions about a chain of hotels that were written before the grammar was tried on them, with the draft or the request
//! for clarification that is accepted for each one.

use super::models::Model;
use super::*;

pub(super) const MEMBERS: &str = "\
cube    bookings | bookings; Bookings | reservations | count=bookings.count label=bookings.booking_id joined=bookings,guests,hotels,suites
cube    reviews | reviews; Reviews | ratings | count=reviews.count label=reviews.review_id joined=reviews,guests,hotels
cube    guests | guests; Guests | visitors | count=guests.count label=guests.name joined=guests
cube    hotels | hotels; Hotels | houses | count=hotels.count label=hotels.name joined=hotels
cube    suites | suites; Suites | | count=suites.count label=suites.suite_number joined=suites,hotels
text    bookings.booking_id | booking_id; Booking ID
time    bookings.booked_at | booked_at; Booking time
time    bookings.arrival | arrival; Arrival; bookings arrival | check-in
time    bookings.departure | departure; Departure; bookings departure | check-out
time    bookings.cancelled_at | cancelled_at; Cancellation time
text    bookings.channel | channel; Channel | source
text    bookings.status | status; Status | state
text    bookings.board | board; Board | meal plan
boolean bookings.is_cancelled | is_cancelled; Cancelled
boolean bookings.is_no_show | is_no_show; No show
boolean bookings.prepaid | prepaid; Prepaid
number  bookings.nights | nights; Nights | | unit=nights
number  bookings.lead_days | lead_days; Lead time | booking window | unit=days
number  bookings.adults | adults; Adults
measure bookings.count | count; Bookings | reservations | aggregation=count
measure bookings.cancellations | cancellations; Cancellations | cancelled bookings | aggregation=count if=bookings.is_cancelled
measure bookings.no_shows | no_shows; No-shows | | aggregation=count if=bookings.is_no_show
measure bookings.revenue | revenue; Revenue | turnover | aggregation=sum unit=EUR
measure bookings.suite_nights | suite_nights; Suite nights | nights sold | aggregation=sum combines=bookings.nights unit=nights
measure bookings.average_rate | average_rate; Average daily rate | ADR | aggregation=average unit=EUR
measure bookings.average_nights | average_nights; Average length of stay | | aggregation=average combines=bookings.nights unit=nights
measure bookings.average_lead | average_lead; Average lead time | | aggregation=average combines=bookings.lead_days unit=days
measure bookings.guests_hosted | guests_hosted; Guests hosted | | aggregation=distinct counts=guests
text    reviews.review_id | review_id; Review ID
time    reviews.written_on | written_on; Review date
number  reviews.stars | stars; Stars | score | unit=stars
text    reviews.topic | topic; Topic
boolean reviews.answered | answered; Answered
measure reviews.count | count; Reviews | | aggregation=count
measure reviews.average_stars | average_stars; Average rating | average stars; average score | aggregation=average combines=reviews.stars unit=stars
measure reviews.objections | objections; Objections | | aggregation=count filtered=reviews.stars
text    guests.guest_id | guest_id; Guest ID
text    guests.name | name; Guest
text    guests.country | country; Country of guest | nationality
text    guests.tier | tier; Loyalty tier | loyalty level
number  guests.age | age; Age | | unit=years
boolean guests.newsletter | newsletter; Newsletter
time    guests.joined_on | joined_on; Join date
measure guests.count | count; Guests | | aggregation=count
measure guests.average_age | average_age; Average age | | aggregation=average combines=guests.age unit=years
text    hotels.hotel_id | hotel_id; Hotel ID
text    hotels.name | name; Hotel
text    hotels.city | city; City
text    hotels.brand | brand; Brand
number  hotels.stars | stars; Category | class
time    hotels.opened_on | opened_on; Opening date
measure hotels.count | count; Hotels | | aggregation=count
measure hotels.total_beds | total_beds; Beds | capacity | aggregation=sum
text    suites.suite_number | suite_number; Suite number
text    suites.kind | kind; Kind of suite | suite type
text    suites.view | view; View
number  suites.floor | floor; Floor
number  suites.area | area; Area | size | unit=m²
measure suites.count | count; Suites | | aggregation=count
measure suites.average_area | average_area; Average area | average size | aggregation=average combines=suites.area unit=m²
metric  cancellation_rate | cancellation_rate; Cancellation rate | | share cube=bookings ratio=bookings.cancellations/bookings.count
metric  no_show_rate | no_show_rate; No-show rate | | share cube=bookings ratio=bookings.no_shows/bookings.count
metric  revenue_per_night | revenue_per_night; Revenue per night | | cube=bookings ratio=bookings.revenue/bookings.suite_nights
";

pub(super) const VALUES: [(&str, &str, u64); 26] = [
    ("bookings.channel", "website", 900),
    ("bookings.channel", "travel agency", 500),
    ("bookings.channel", "phone", 120),
    ("bookings.status", "checked in", 60),
    ("bookings.status", "confirmed", 1400),
    ("bookings.board", "half board", 300),
    ("bookings.board", "breakfast only", 700),
    ("reviews.topic", "noise", 80),
    ("reviews.topic", "cleanliness", 90),
    ("guests.name", "Anna Keller", 9),
    ("guests.country", "Portugal", 210),
    ("guests.country", "Germany", 400),
    ("guests.country", "South Korea", 50),
    ("guests.tier", "Gold", 110),
    ("guests.tier", "Silver", 220),
    ("hotels.name", "Grand Tejo", 300),
    ("hotels.name", "Alfama House", 120),
    ("hotels.name", "Sea Garden", 260),
    ("hotels.city", "Lisbon", 420),
    ("hotels.city", "Porto", 210),
    ("hotels.brand", "Comfort Plus", 380),
    ("suites.kind", "family suite", 60),
    ("suites.kind", "studio", 140),
    ("suites.view", "sea", 90),
    ("suites.view", "courtyard", 70),
    ("suites.suite_number", "A12", 1),
];

const QUESTIONS: &[(&str, &str)] = &[
    ("How many guests stayed in Lisbon in August?", "? stayed"),
    (
        "reservations made through the website last year",
        "bookings.count where bookings.channel equals website in last year",
    ),
    (
        "Which channel brings the longest stays on average?",
        "bookings.average_nights by bookings.channel order bookings.average_nights desc limit 1",
    ),
    ("average rating by hotel, worst first", "reviews.average_stars by hotels.name order reviews.average_stars asc"),
    ("Who booked the most nights in 2025?", "? nights"),
    ("bookings cancelled in May", "bookings.cancellations in 2026-05 of bookings.cancelled_at"),
    ("What share of bookings gets cancelled in Porto?", "cancellation_rate where hotels.city equals Porto"),
    (
        "cancelled or no-show bookings by channel",
        "bookings.count by bookings.channel where bookings.is_cancelled equals true or bookings.is_no_show equals true",
    ),
    (
        "cancellations and no-shows per month this year",
        "bookings.cancellations + bookings.no_shows by month in this year",
    ),
    (
        "reviews with fewer than 3 stars about noise",
        "reviews.count where reviews.stars lt 3 where reviews.topic equals noise",
    ),
    (
        "How many 5 star reviews did Grand Tejo get in March?",
        "reviews.count where reviews.stars equals 5 where hotels.name equals Grand Tejo in 2026-03",
    ),
    ("gold members by country", "? members"),
    ("How many suites have a sea view?", "suites.count where suites.view equals sea"),
    ("suites larger than 40 m² per hotel", "suites.count by hotels.name where suites.area gt 40"),
    (
        "Compare revenue in Lisbon and Porto by month",
        "bookings.revenue by hotels.city month where hotels.city inList Lisbon,Porto",
    ),
    ("revenue Q2 vs Q1 by hotel", "bookings.revenue by hotels.name in 2026-Q2 vs 2026-Q1"),
    (
        "revenue per night at Sea Garden since June",
        "revenue_per_night where hotels.name equals Sea Garden in 2026-06-01..",
    ),
    (
        "guests older than 60 from Germany or Portugal",
        "guests.count where guests.age gt 60 where guests.country inList Germany,Portugal",
    ),
    (
        "top 3 cities by turnover excluding Lisbon",
        "bookings.revenue by hotels.city where hotels.city notEquals Lisbon order bookings.revenue desc limit 3",
    ),
    ("bookings with breakfast only arriving next week", "? next"),
    ("how far ahead do guests from South Korea book", "? ahead"),
    (
        "average lead time for phone bookings by brand",
        "bookings.average_lead by hotels.brand where bookings.channel equals phone",
    ),
    ("unanswered reviews per hotel", "reviews.count by hotels.name where reviews.answered equals false"),
    ("hotels opened after 2019", "hotels.count in 2020-01-01.. of hotels.opened_on"),
    ("What is the share of revenue by brand?", "bookings.revenue by hotels.brand totals"),
    ("stays longer than a week in 2025", "? longer than"),
    ("how many bookings are for 2 adults", "bookings.count where bookings.adults equals 2"),
    ("bookings not prepaid by tier", "bookings.count by guests.tier where bookings.prepaid equals false"),
    (
        "day of the highest revenue in December",
        "bookings.revenue by day in 2025-12 order bookings.revenue desc limit 1",
    ),
    ("reveue and bookigns by chanel", "bookings.revenue + bookings.count by bookings.channel"),
    ("which guests have more than 5 bookings", "bookings.count by guests.name where bookings.count gt 5"),
    ("number of hotels per city with at least 2 hotels", "hotels.count by hotels.city where hotels.count gte 2"),
    ("nights sold daily for the last 2 weeks", "bookings.suite_nights by day in last 2 weeks"),
    ("objections year over year per hotel", "reviews.objections by hotels.name in 2025 vs -1 year"),
    ("who checked in from Portugal in July", "? who"),
    ("does the hotel have a pool", "? pool"),
    ("how many beds do the Comfort Plus houses have", "hotels.total_beds where hotels.brand equals Comfort Plus"),
    ("ADR on weekends", "? weekends"),
    (
        "revenue by \"family suite\" and studio",
        "bookings.revenue by suites.kind where suites.kind inList family suite,studio",
    ),
    ("guests who joined in 2024 and subscribed to the newsletter", "? subscribed"),
];

#[test]
fn hotel_questions_are_interpreted_correctly() {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2026, 9, 20) };
    let mistakes = model.mistakes(QUESTIONS);
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}
