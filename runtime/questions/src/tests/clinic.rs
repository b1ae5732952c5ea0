//! Questions about a group of clinics, with the draft that each one means. The grammar does not depend on the project.

use super::models::Model;
use super::*;

/// The members: the kind, the name, names and titles, synonyms, and other properties.
const MEMBERS: &str = "\
cube      visits                | visits; Visits | appointments | count=visits.count joined=visits,patients,doctors
cube      patients              | patients; Patients | | count=patients.count joined=patients label=patients.name
cube      doctors               | doctors; Doctors | | count=doctors.count joined=doctors label=doctors.name
cube      bills                 | bills; Bills | | count=bills.count joined=bills,visits,patients,doctors
measure   visits.count          | count; Visits | appointments | aggregation=count
measure   visits.completed      | completed; Completed visits | | aggregation=count
measure   visits.patients_seen  | patients_seen; Patients seen | | aggregation=distinct
measure   visits.no_show_rate   | no_show_rate; No-show rate | | share
measure   visits.success_rate   | success_rate; Success rate | | share
measure   visits.average_stars  | average_stars; Average rating | | aggregation=average unit=stars combines=visits.rating
measure   visits.strongest_dose | strongest_dose; Strongest dose | | aggregation=maximum unit=mg combines=visits.dose_size
text      visits.kind           | kind; Kind of visit
text      visits.channel        | channel; Booking channel
text      visits.status         | status; Status
text      visits.ward           | ward; Ward
number    visits.minutes        | minutes; Duration | | unit=minutes
number    visits.delay          | delay; Delay at start | | unit=minutes
number    visits.rating         | rating; Rating | | unit=stars
number    visits.dose_size      | dose_size; Size of dose | | unit=mg
time      visits.starts_at      | starts_at; Start
time      visits.booked_on      | booked_on; Booked on
measure   patients.count        | count; Patients | | aggregation=count
text      patients.name         | name; Patient
text      patients.email        | email; E-mail
text      patients.city         | city; Home city
number    patients.age          | age; Age | | unit=years
time      patients.registered_on | registered_on; Registered; patients Registered
measure   doctors.count         | count; Doctors | | aggregation=count
text      doctors.name          | name; Doctor
text      doctors.contract      | contract; Contract
text      doctors.clinic        | clinic; Clinic
measure   bills.count           | count; Bills | | aggregation=count
number    bills.amount          | amount; Bill amount | | unit=pounds
text      bills.payer           | payer; Payer
text      bills.state           | state; State of bill
measure   bills.total_amount    | total_amount; Total billed | billed amount | aggregation=sum unit=pounds combines=bills.amount
measure   bills.acceptance_rate | acceptance_rate; Acceptance rate | | share
measure   bills.arrears         | arrears; Arrears | | share described=Overdue
boolean   bills.is_accepted     | is_accepted; Accepted
boolean   bills.is_overdue      | is_overdue; Overdue
number    doctors.desks         | desks; Desks
measure   doctors.total_desks   | total_desks; Total desks | | aggregation=sum combines=doctors.desks
time      bills.issued_on       | issued_on; Issued on
";

const VALUES: [(&str, &str, u64); 10] = [
    ("visits.kind", "follow-up", 400),
    ("visits.channel", "online", 500),
    ("visits.channel", "phone", 300),
    ("visits.status", "completed", 700),
    ("doctors.contract", "part-time", 12),
    ("bills.payer", "insurer", 600),
    ("bills.payer", "patient", 300),
    ("bills.payer", "employer", 100),
    ("bills.state", "paid", 800),
    ("patients.city", "Hull", 90),
];

const QUESTIONS: [(&str, &str); 48] = [
    // A word that is not a value never becomes a condition.
    ("patients without an e-mail address", "patients.count where patients.email notSet "),
    ("patients without an email", "patients.count where patients.email notSet "),
    ("patients without an email street", "? street"),
    ("patients with no known email", "patients.count where patients.email notSet "),
    ("patients that have no email by city", "patients.count by patients.city where patients.email notSet "),
    // Agents of verbs.
    ("bills paid by patients", "bills.count where bills.payer equals patient"),
    ("bills paid by insurers", "bills.count where bills.payer equals insurer"),
    ("visits handled by doctors", "? by doctors"),
    ("visits per doctor", "visits.count by doctors.name"),
    ("paid bills", "bills.count where bills.state equals paid"),
    ("scheduled bills", "? scheduled"),
    // The direction of `worst`.
    ("no-show rate by clinic, worst first", "visits.no_show_rate by doctors.clinic order visits.no_show_rate desc"),
    ("success rate by clinic, worst first", "visits.success_rate by doctors.clinic order visits.success_rate asc"),
    (
        "success rate by clinic from best to worst",
        "visits.success_rate by doctors.clinic order visits.success_rate desc",
    ),
    (
        "visits with a delay over 10 minutes by clinic, worst first",
        "visits.count by doctors.clinic where visits.delay gt 10 order visits.count desc",
    ),
    ("visits by clinic, worst first", "? worst first"),
    // Verbs that add nothing, and orders.
    ("how many doctors work part-time", "doctors.count where doctors.contract equals part-time"),
    (
        "success rate by clinic sorted from lowest to highest",
        "visits.success_rate by doctors.clinic order visits.success_rate asc",
    ),
    ("rank clinics by success rate", "visits.success_rate by doctors.clinic order visits.success_rate desc"),
    ("bills of employers vs insurers", "bills.count by bills.payer where bills.payer inList employer,insurer"),
    // Numbers with units, and ages.
    ("patients over 65", "patients.count where patients.age gt 65"),
    ("patients under 18 by city", "patients.count by patients.city where patients.age lt 18"),
    ("visits over 65", "? visits over 65"),
    ("bills above 200 pounds by payer", "bills.count by bills.payer where bills.amount gt 200"),
    ("5-star visits", "visits.count where visits.rating equals 5"),
    ("5-star ratings by clinic", "visits.count by doctors.clinic where visits.rating equals 5"),
    ("visits with a dose stronger than 30 mg", "visits.count where visits.dose_size gt 30"),
    (
        "how many follow-ups lasted longer than half an hour",
        "visits.count where visits.kind equals follow-up where visits.minutes gt 30",
    ),
    // Verbs behind the rows that they are about.
    ("new patients registered per quarter in 2023", "patients.count by quarter in 2023 of patients.registered_on"),
    ("patients registered by city", "patients.count by patients.city"),
    ("new patients by city", "? new"),
    ("visits booked in March 2025", "visits.count in 2025-03 of visits.booked_on"),
    ("visits booked online or by phone", "visits.count where visits.channel inList online,phone"),
    // Words that are left out.
    ("visits that were not completed", "visits.count where visits.status notEquals completed"),
    ("visits by clinic, excluding February", "visits.count by doctors.clinic without 2025-02-01..2025-02-28"),
    ("visits except in February and March", "visits.count without 2025-02-01..2025-03-31"),
    ("visits except in February and June", "? June"),
    ("visits June to August 2025", "visits.count in 2025-06-01..2025-08-31"),
    ("visits in summer, June to August", "visits.count in 2025-06-01..2025-08-31"),
    ("visits in summer", "? summer"),
    // Groups that are named once more, and counts of other cubes.
    (
        "average rating by clinic, only clinics with at least 20 visits",
        "visits.average_stars by doctors.clinic where visits.count gte 20",
    ),
    (
        "Which doctor saw the most patients in 2025?",
        "visits.patients_seen by doctors.name in 2025 order visits.patients_seen desc limit 1",
    ),
    ("doctors by city", "? doctors"),
    // Names that overlap, rates that are described, and numbers with a sum.
    ("total billed amount by payer", "bills.total_amount by bills.payer"),
    ("What share of bills is accepted?", "bills.acceptance_rate"),
    ("What share of bills is overdue?", "bills.arrears"),
    ("desks per clinic", "doctors.total_desks by doctors.clinic"),
    ("desks", "? desks"),
];

#[test]
fn clinic_questions_are_interpreted_correctly() {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2025, 12, 31) };
    let mistakes = model.mistakes(&QUESTIONS);
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}

#[test]
fn german_words_have_the_same_roles() {
    let german = Language::named("de").unwrap();
    assert_eq!(german.phrase(&[&german.stem("arbeiten")]), Some((1, crate::language::Meaning::Verb)));
    assert!(german.has(crate::language::WordList::AgeComparisons, "über"));
    assert!(german.has(crate::language::WordList::NameNouns, "adresse"));
}
