//! Questions about a library: rows that groups lack, verbs with particles, shares of other measures, and short names.

use super::models::Model;
use super::*;

const MEMBERS: &str = "\
cube      loans | loans; Loans | | count=loans.count joined=loans,books,readers
cube      books | books; Books | | count=books.count joined=books label=books.title
cube      readers | readers; Readers | | count=readers.count joined=readers label=readers.name
cube      fines | fines; Fines | | count=fines.count joined=fines,loans,books,readers
measure   loans.count | count; Loans; loans count; loans Loans | | aggregation=count
measure   loans.overdue | overdue; Overdue loans; loans overdue; loans Overdue loans | | aggregation=count if=loans.is_overdue
measure   loans.renewed | renewed; Renewed loans; loans renewed; loans Renewed loans | | aggregation=count
measure   loans.returned | returned; Returned; loans returned; loans Returned | | aggregation=count
measure   loans.days_out | days_out; Days on loan; loans days_out | | aggregation=sum unit=days
measure   loans.hours_read | hours_read; Time read; loans hours_read | | aggregation=sum unit=hours
measure   loans.average_days | average_days; Average days on loan | | aggregation=average unit=days
measure   loans.overdue_rate | overdue_rate; Overdue rate; loans overdue_rate | | share ratio=loans.overdue/loans.count described=Overdue_loans_by_loans
measure   loans.on_time_rate | on_time_rate; On time rate | | share described=Loans_that_were_returned_on_time_by_loans
metric    renewals_of_overdue | renewals_of_overdue; Renewals of overdue loans | | share cube=loans ratio=loans.renewed/loans.overdue
boolean   loans.is_overdue | is_overdue; Overdue; loans is_overdue; loans Overdue
boolean   loans.is_renewed | is_renewed; Renewed; loans is_renewed; loans Renewed
segment   loans.long | long; Long loans
text      loans.desk | desk; Desk; loans desk
text      loans.status | status; Status; loans status
time      loans.loaned_on | loaned_on; Loan date
measure   books.count | count; Books; books count; books Books | | aggregation=count
text      books.title | title; Book; books title; books Book
text      books.genre | genre; Genre; books genre; books Genre
text      books.isbn | isbn; ISBN; books isbn
measure   readers.count | count; Readers; readers count; readers Readers | | aggregation=count
measure   readers.children | children; Children; readers children | | aggregation=count
text      readers.name | name; Reader; readers name
text      readers.city | city; City; readers city
measure   fines.count | count; Fines; fines count; fines Fines | | aggregation=count
measure   fines.amount | amount; Amount of fines; fines amount | | aggregation=sum
measure   fines.unpaid | unpaid; Unpaid fines; fines unpaid | | aggregation=count
";

const VALUES: [(&str, &str, u64); 8] = [
    ("books.genre", "Poetry", 120),
    ("books.genre", "Crime", 480),
    ("readers.city", "Paris", 90),
    ("readers.city", "Lyon", 60),
    ("loans.desk", "Main desk", 300),
    ("loans.desk", "Children desk", 40),
    ("loans.status", "checked out", 70),
    ("loans.status", "dropped off", 20),
];

const QUESTIONS: &[(&str, &str)] = &[
    // Groups that lack rows.
    ("genres with no loans", "? with no loans"),
    ("genres without loans", "? without loans"),
    ("which genres have no loans", "? have no loans"),
    ("Which genres had no loans in March?", "? had no loans"),
    ("genres with no overdue loans", "loans.overdue by books.genre where loans.overdue equals 0"),
    ("which genres have no overdue loans", "loans.overdue by books.genre where loans.overdue equals 0"),
    ("which readers had no unpaid fines", "fines.unpaid by readers.name where fines.unpaid equals 0"),
    ("genres by city with no overdue loans", "loans.overdue by books.genre readers.city where loans.overdue equals 0"),
    ("readers with no loans in Paris", "? with no loans"),
    ("readers in Paris with no loans", "? with no loans"),
    ("loans by genre with no fines", "? with no fines"),
    ("loans by genre without overdue loans", "loans.count by books.genre where loans.is_overdue equals false"),
    ("loans that are not overdue by genre", "loans.count by books.genre where loans.is_overdue equals false"),
    ("loans by genre except Crime", "loans.count by books.genre where books.genre notEquals Crime"),
    ("loans by genre without Crime", "loans.count by books.genre where books.genre notEquals Crime"),
    ("books without an isbn", "books.count where books.isbn notSet "),
    ("loans without loans from Paris", "loans.count where readers.city notEquals Paris"),
    // Verbs with particles.
    ("loans handed out by genre", "? handed out"),
    ("loans checked out by genre", "loans.count by books.genre where loans.status equals checked out"),
    ("how many loans were dropped off in May", "loans.count where loans.status equals dropped off in 2024-05"),
    ("how many loans were sent back", "? sent back"),
    ("loans that were taken out by genre", "? taken out"),
    ("loans placed in May", "loans.count in 2024-05"),
    ("How many readers live in Paris?", "readers.count where readers.city equals Paris"),
    ("which city do readers live in", "readers.count by readers.city"),
    // Shares of other measures.
    ("overdue loans as a share of all loans by genre", "loans.overdue_rate by books.genre"),
    ("overdue loans as a percentage of loans", "loans.overdue_rate"),
    ("renewed loans as a share of overdue loans by desk", "renewals_of_overdue by loans.desk"),
    ("renewed loans as a share of all loans by desk", "? share of all loans"),
    ("loans by genre as a share of the total", "loans.count by books.genre totals"),
    ("loans as a share of all loans by genre", "loans.count by books.genre totals"),
    ("share of loans by genre", "loans.count by books.genre totals"),
    ("share of overdue loans by genre", "loans.overdue_rate by books.genre"),
    // Two excluded conditions.
    (
        "loans neither overdue nor renewed by genre",
        "loans.count by books.genre where loans.is_overdue equals false where loans.is_renewed equals false",
    ),
    // Sums by their unit.
    ("which reader has the most hours", "loans.hours_read by readers.name order loans.hours_read desc limit 1"),
    ("which reader has the most days", "? days"),
    ("which reader has the most hours overdue", "? hours"),
    ("which reader has the most loans", "loans.count by readers.name order loans.count desc limit 1"),
    // Typing mistakes in plurals and short names.
    ("genrs by loans", "? loans"),
    ("loans by genrs", "loans.count by books.genre"),
    ("fnies by city", "fines.count by readers.city"),
    ("laons by genre", "loans.count by books.genre"),
    ("loans by cite", "? cite"),
    ("lines by city", "? lines"),
    ("loans by dsek", "loans.count by loans.desk"),
];

const GERMAN: &[(&str, &str)] = &[
    ("Genres ohne Loans", "? ohne Loans"),
    ("Genres ohne overdue Loans", "loans.overdue by books.genre where loans.overdue equals 0"),
    ("Loans nach Genre ohne Crime", "loans.count by books.genre where books.genre notEquals Crime"),
    (
        "Loans weder overdue noch renewed",
        "loans.count where loans.is_overdue equals false where loans.is_renewed equals false",
    ),
    ("Loans noch nach Genre", "? noch"),
    ("Wie viele Loans kamen in Paris an?", "? kamen … an"),
    ("Wie viele Loans kamen aus Paris?", "loans.count where readers.city equals Paris"),
    ("overdue Loans als Anteil aller Loans nach Genre", "loans.overdue_rate by books.genre"),
    ("Lonas nach Genre", "loans.count by books.genre"),
    (
        "Loans nach Genre, top 3 nach overdue Loans",
        "loans.count + loans.overdue by books.genre order loans.overdue desc limit 3",
    ),
];

/// Returns the choices of the first clarification of a question.
fn choices(question: &str) -> Vec<Arc<str>> {
    let english = Language::named("en").unwrap();
    let vocabulary = Vocabulary::new(MEMBERS.lines().map(super::models::member).collect(), english);
    let reading = read(question, &vocabulary, &KnownValues::default(), english, date(2024, 5, 20)).unwrap();
    reading.clarifications.first().map(|one| one.choices.clone()).unwrap_or_default()
}

#[test]
fn choices_begin_with_the_nearest_name() {
    for (question, nearest) in
        [("loans by cite", "readers.city"), ("lines by city", "fines.count"), ("loans by isbm", "books.isbn")]
    {
        assert_eq!(choices(question).first().map(|name| &**name), Some(nearest), "{question}");
    }
}

#[test]
fn choices_are_different_and_not_selected() {
    for question in [
        "loans by genre xyzzy",
        "loans without a hurry by genre",
        "top 0 genres by loans",
        "loans by genre overdue days",
        "renewed loans as a share of all loans by desk",
        "running total of loans by genre",
        "share of loans",
    ] {
        let found = choices(question);
        let mut different = found.clone();
        different.sort();
        different.dedup();
        assert!(!found.is_empty() && different.len() == found.len(), "{question}: {found:?}");
        let selected = ["loans.count", "books.genre"].map(Arc::<str>::from);
        assert!(!selected.iter().any(|name| found.contains(name)), "{question}: {found:?}");
    }
}

#[test]
fn corrections_of_short_names_have_a_lower_confidence() {
    let english = Language::named("en").unwrap();
    let vocabulary = Vocabulary::new(MEMBERS.lines().map(super::models::member).collect(), english);
    let confidence = |question: &str| {
        read(question, &vocabulary, &KnownValues::default(), english, date(2024, 5, 20)).unwrap().confidence
    };
    let (whole, long) = (confidence("loans by genre"), confidence("loans by gente"));
    for question in ["loans by ciyt", "loans by genrs", "fnies by city"] {
        assert!(confidence(question) < long && long < whole, "{question}: {whole} {long}");
    }
}

#[test]
fn library_questions_are_interpreted_correctly() {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2024, 5, 20) };
    let mut mistakes = model.mistakes(QUESTIONS);
    mistakes.extend(model.mistakes_in("de", GERMAN));
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}
