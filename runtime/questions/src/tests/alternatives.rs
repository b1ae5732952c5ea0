//! Questions with `or` between conditions, and with values that are written like words of the language.

use super::flights::{MEMBERS as FLIGHTS, VALUES as FLIGHT_VALUES};
use super::models::Model;
use super::*;

const MEMBERS: &str = "\
cube      tickets | tickets; Tickets | cases | count=tickets.count joined=tickets,clients,products
cube      clients | clients; Clients | | count=clients.count joined=clients label=clients.name
cube      products | products; Products | | count=products.count joined=products label=products.name
measure   tickets.count | count; Tickets; tickets count; tickets Tickets | | aggregation=count
measure   tickets.escalated | escalated; Escalated tickets | escalations | aggregation=count filtered=tickets.status
measure   tickets.average_hours | average_hours; Average time to close | | aggregation=average unit=hours combines=tickets.hours
measure   tickets.cost | cost; Cost | | aggregation=sum unit=euros combines=tickets.amount
measure   tickets.breach_rate | breach_rate; Breach rate | | share
measure   tickets.clients_served | clients_served; Callers | | aggregation=distinct counts=clients
measure   tickets.steps_taken | steps_taken; Steps taken | | aggregation=sum
text      tickets.status | status; Status
text      tickets.channel | channel; Channel
text      tickets.queue | queue; Queue; tickets Queue | team
text      tickets.grade | grade; Grade
text      tickets.error_code | error_code; Error code
number    tickets.hours | hours; Hours to close | | unit=hours
number    tickets.amount | amount; Amount | | unit=euros
number    tickets.hourly_rate | hourly_rate; Hourly rate | | unit=euros
number    tickets.replies | replies; Replies
boolean   tickets.is_urgent | is_urgent; Urgent
boolean   tickets.is_reopened | is_reopened; Reopened
segment   tickets.night | night; Night tickets
time      tickets.opened_at | opened_at; Opened at
time      tickets.closed_at | closed_at; Close date
time      tickets.escalated_at | escalated_at; Escalation date
measure   clients.count | count; Clients; clients count | | aggregation=count
text      clients.name | name; Client
text      clients.country | country; Country
measure   products.count | count; Products | | aggregation=count
text      products.name | name; Product
text      products.maker | maker; Maker
";

const VALUES: [(&str, &str, u64); 19] = [
    ("tickets.status", "closed", 500),
    ("tickets.status", "waiting", 300),
    ("tickets.channel", "phone", 400),
    ("tickets.channel", "mail", 400),
    ("tickets.queue", "IT", 200),
    ("tickets.queue", "HR", 100),
    ("tickets.queue", "BY", 20),
    ("tickets.grade", "A", 300),
    ("tickets.grade", "B", 200),
    ("tickets.grade", "I", 10),
    ("clients.country", "IT", 50),
    ("clients.country", "IN", 60),
    ("clients.country", "ES", 60),
    ("clients.country", "OR", 5),
    ("clients.country", "ME", 5),
    ("clients.country", "NO", 5),
    ("products.maker", "AS", 70),
    ("products.maker", "Acme", 900),
    ("products.name", "DAY", 30),
];

/// Each question with its draft, or with the unclear part after `?`.
const QUESTIONS: &[(&str, &str)] = &[
    // Conditions that `or` joins.
    ("tickets by phone or from Acme", "tickets.count where tickets.channel equals phone or products.maker equals Acme"),
    (
        "tickets where channel is phone or maker is Acme",
        "tickets.count where tickets.channel equals phone or products.maker equals Acme",
    ),
    ("tickets from Spain or urgent", "? Spain"),
    (
        "phone or urgent tickets by queue",
        "tickets.count by tickets.queue where tickets.channel equals phone or tickets.is_urgent equals true",
    ),
    (
        "tickets that were reopened or took more than 3 hours",
        "tickets.count where tickets.is_reopened equals true or tickets.hours gt 3",
    ),
    (
        "tickets with more than 5 replies or an amount over 100 euros in May",
        "tickets.count where tickets.replies gt 5 or tickets.amount gt 100 in 2025-05",
    ),
    ("tickets with replies under 2 or over 5", "tickets.count where tickets.replies lt 2 or tickets.replies gt 5"),
    (
        "urgent tickets by phone or from Acme",
        "tickets.count where tickets.is_urgent equals true where tickets.channel equals phone or products.maker equals Acme",
    ),
    (
        "tickets from Acme, by phone or by mail",
        "tickets.count where products.maker equals Acme where tickets.channel inList phone,mail",
    ),
    (
        "tickets where channel is phone or maker is Acme or urgent",
        "tickets.count where tickets.channel equals phone or products.maker equals Acme or tickets.is_urgent equals true",
    ),
    // Values of one dimension.
    ("tickets by phone or mail", "tickets.count where tickets.channel inList phone,mail"),
    ("tickets where channel is phone or channel is mail", "tickets.count where tickets.channel inList phone,mail"),
    // `or` may join different conditions.
    ("tickets from Acme with status waiting or by phone", "? status waiting or by phone"),
    ("tickets by phone or from Acme with status waiting", "? phone or from Acme"),
    ("tickets not from Acme or by phone", "? Acme or by phone"),
    // A query has no alternative to a condition on rows but another one.
    ("tickets by phone or escalated", "? phone or escalated"),
    ("tickets by phone or night tickets", "? phone or night tickets"),
    ("night tickets or urgent", "? night tickets or urgent"),
    ("escalations or tickets by phone", "? escalations or tickets"),
    ("tickets in May or by phone", "? in May or by phone"),
    ("queues with over 100 tickets or from Acme", "? over 100 tickets or from Acme"),
    (
        "queues with more than 100 tickets or more than 20 escalations",
        "tickets.count + tickets.escalated by tickets.queue where tickets.count gt 100 or tickets.escalated gt 20",
    ),
    // Numbers of some rows beside others.
    ("total tickets and escalated tickets by month", "tickets.count + tickets.escalated by month"),
    ("tickets and night tickets by channel", "? night tickets"),
    ("cost and phone tickets", "? phone"),
    ("cost and urgent tickets by month", "? urgent"),
    ("cost, phone", "tickets.cost where tickets.channel equals phone"),
    ("cost and breach rate for phone tickets", "tickets.cost + tickets.breach_rate where tickets.channel equals phone"),
];

const CODES: &[(&str, &str)] = &[
    ("tickets of maker AS", "tickets.count where products.maker equals AS"),
    ("tickets of maker AS by month", "tickets.count by month where products.maker equals AS"),
    ("tickets of maker as by month", "tickets.count by month where products.maker equals AS"),
    ("tickets where maker is as", "tickets.count where products.maker equals AS"),
    ("AS tickets in May", "tickets.count where products.maker equals AS in 2025-05"),
    ("tickets with grade A", "tickets.count where tickets.grade equals A"),
    ("tickets with grade A or B", "tickets.count where tickets.grade inList A,B"),
    ("tickets with grade B and A", "tickets.count where tickets.grade inList B,A"),
    ("A tickets by channel", "tickets.count by tickets.channel where tickets.grade equals A"),
    ("tickets with grade I", "tickets.count where tickets.grade equals I"),
    ("how many tickets do I have", "tickets.count"),
    ("A breakdown of tickets by channel", "tickets.count by tickets.channel"),
    ("tickets in queue IT", "tickets.count where tickets.queue equals IT"),
    ("tickets in queue it by month", "tickets.count by month where tickets.queue equals IT"),
    ("clients from IT", "clients.count where clients.country equals IT"),
    ("clients from IN or ES", "clients.count where clients.country inList IN,ES"),
    ("clients from OR", "clients.count where clients.country equals OR"),
    ("clients from IT OR ES", "clients.count where clients.country inList IT,ES"),
    ("clients from ME and NO", "clients.count where clients.country inList ME,NO"),
    ("tickets in queue BY", "tickets.count where tickets.queue equals BY"),
    ("cost per client IN ME", "tickets.cost by clients.name where clients.country equals ME"),
    ("tickets of product DAY", "tickets.count where products.name equals DAY"),
    ("tickets BY channel", "tickets.count by tickets.channel"),
    ("TICKETS OF MAKER AS BY MONTH", "tickets.count by month where products.maker equals AS"),
    ("TELL ME IF IT CHANGED", "? CHANGED"),
    // A value that cannot be looked up.
    ("tickets with error code IS", "tickets.count where tickets.error_code equals IS"),
    ("tickets by error code as a list", "tickets.count by tickets.error_code"),
];

const EVENTS: &[(&str, &str)] = &[
    ("tickets closed in March 2025", "tickets.count in 2025-03 of tickets.closed_at"),
    ("how many tickets were closed last week", "tickets.count in last week of tickets.closed_at"),
    ("tickets opened last week", "tickets.count in last week of tickets.opened_at"),
    ("tickets closed per week", "tickets.count by week of tickets.closed_at"),
    ("cost of tickets closed in May by channel", "tickets.cost by tickets.channel in 2025-05 of tickets.closed_at"),
    ("closed tickets in May", "tickets.count where tickets.status equals closed in 2025-05"),
    ("tickets closed by phone", "tickets.count where tickets.status equals closed where tickets.channel equals phone"),
    ("tickets escalated in May", "tickets.escalated in 2025-05 of tickets.escalated_at"),
    ("tickets delivered in May", "? delivered"),
    // Names that the subject divides.
    ("how many steps did Acme take", "tickets.steps_taken where products.maker equals Acme"),
    // Values that are present, and numbers of different values.
    ("tickets with an error code by channel", "tickets.count by tickets.channel where tickets.error_code set "),
    ("tickets without an error code", "tickets.count where tickets.error_code notSet "),
    (
        "tickets urgent or with an error code",
        "tickets.count where tickets.is_urgent equals true or tickets.error_code set ",
    ),
    ("how many makers do clients have", "? how many"),
    ("how many makers do clients from Spain have", "? Spain"),
    ("40 euro tickets", "? 40 euro"),
    // The things of the rows that meet the conditions.
    ("how many clients bought from Acme", "tickets.clients_served where products.maker equals Acme"),
    ("clients from Acme", "clients.count where products.maker equals Acme"),
    // Units of time behind numbers.
    ("tickets over 35 euros an hour", "tickets.count where tickets.hourly_rate gt 35"),
    ("tickets with an hourly rate above 35 euros an hour", "tickets.count where tickets.hourly_rate gt 35"),
    ("tickets over 35 euros a month", "? over 35 euros"),
    ("tickets with an amount over 35 euros a day", "? 35 euros a day"),
];

const FLIGHTS_QUESTIONS: &[(&str, &str)] = &[
    (
        "flights where origin is JFK or dest is LAX",
        "flights.count where flights.origin equals JFK or flights.dest equals LAX",
    ),
    (
        "flights from JFK or cancelled",
        "flights.count where flights.origin equals JFK or flights.is_cancelled equals true",
    ),
    ("flights from JFK or ORD", "? JFK or ORD"),
    (
        "how many minutes late on average do flights to Miami arrive",
        "flights.average_arrival_delay where dest_airport.name equals Miami Intl",
    ),
    ("minutes late on average", "? minutes late"),
];

const GERMAN: &[(&str, &str)] = &[
    (
        "tickets wo channel phone ist oder maker Acme ist",
        "tickets.count where tickets.channel equals phone or products.maker equals Acme",
    ),
    ("tickets mit channel phone oder mail", "tickets.count where tickets.channel inList phone,mail"),
    ("tickets und night tickets nach channel", "? night tickets"),
    ("tickets mit grade A nach channel", "tickets.count by tickets.channel where tickets.grade equals A"),
    ("tickets der queue IT", "tickets.count where tickets.queue equals IT"),
    ("clients aus ES oder IN", "clients.count where clients.country inList ES,IN"),
    ("tickets von maker AS im Mai", "tickets.count where products.maker equals AS in 2025-05"),
    ("tickets geliefert im Mai", "? geliefert"),
];

#[test]
fn conditions_are_joined_by_or() {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2025, 7, 15) };
    let flights = Model { members: FLIGHTS, values: &FLIGHT_VALUES, newest: date(2013, 12, 31) };
    let mut mistakes = model.mistakes(QUESTIONS);
    mistakes.extend(flights.mistakes(FLIGHTS_QUESTIONS));
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), mistakes.join("\n"));
}

#[test]
fn values_like_words_are_values() {
    let mistakes = Model { members: MEMBERS, values: &VALUES, newest: date(2025, 7, 15) }.mistakes(CODES);
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), mistakes.join("\n"));
}

#[test]
fn verbs_choose_times_and_measures() {
    let mistakes = Model { members: MEMBERS, values: &VALUES, newest: date(2025, 7, 15) }.mistakes(EVENTS);
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), mistakes.join("\n"));
}

#[test]
fn german_questions_follow_the_same_rules() {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2025, 7, 15) };
    let mistakes = model.mistakes_in("de", GERMAN);
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), mistakes.join("\n"));
}
