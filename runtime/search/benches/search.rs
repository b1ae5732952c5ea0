//! Measures the cost of an index over 30,000 entries, and of searches in it: means, p99 over random texts, and memory.
//!
//! Budgets:
//!
//! | what | budget |
//! |---|---|
//! | building the index | 300 ms |
//! | memory of the index | 60 MB |
//! | a search | 5 ms p99 |
//! | a suggestion, also within a cube and for one letter | 2 ms p99 |
//! | searches and suggestions on one core | 2,000 a second |

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use terrane_search::{Field, Index, IndexBuilder, Question};

const ENTRIES: usize = 30_000;
/// The number of members of a cube.
const MEMBERS: usize = 30;
const TEXTS: usize = 4_000;
const PARTS: [&str; 24] = [
    "arrival",
    "average",
    "balance",
    "cancelled",
    "carrier",
    "count",
    "customer",
    "delay",
    "departure",
    "distance",
    "flight",
    "gross",
    "invoice",
    "margin",
    "minutes",
    "month",
    "orders",
    "origin",
    "region",
    "revenue",
    "share",
    "shipment",
    "total",
    "weather",
];

/// Returns a name of three words and a number for an entry.
fn name(entry: usize) -> String {
    let part = |step: usize| PARTS[(entry / step) % PARTS.len()];
    format!("{}_{}_{}_{}", part(1), part(24), part(576), entry % 40)
}

fn index(names: &[String]) -> Index {
    let mut builder = IndexBuilder::default();
    for (entry, name) in names.iter().enumerate() {
        let cube = format!("cube_{}", entry / MEMBERS);
        let description = format!("The {} of the last month, in the unit of account.", name.replace('_', " "));
        builder.add([
            (Field::Name, name.as_str()),
            (Field::Title, name.as_str()),
            (Field::Group, cube.as_str()),
            (Field::Description, description.as_str()),
        ]);
    }
    builder.build()
}

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Returns random texts of one to three words, some of them with a typing mistake or cut off.
fn texts(least: usize) -> Vec<String> {
    let mut state = 20_261_128_u64;
    let mut next = move |below: usize| {
        // xorshift
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut word = move || {
        let mut word: Vec<char> = PARTS[next(PARTS.len())].chars().collect();
        match next(4) {
            0 => word.swap(1, 2),
            1 => word.truncate(least + next(word.len() - least)),
            _ => {}
        }
        (word.into_iter().collect::<String>(), next(3))
    };
    (0..TEXTS)
        .map(|_| {
            let (first, more) = word();
            (0..more).fold(first, |text, _| format!("{text} {}", word().0))
        })
        .collect()
}

/// Prints p50, p99 and the maximum of the durations of `run`, and the number of runs per second.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
#[allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn percentiles(name: &str, questions: &[Question], budget: Duration, run: impl Fn(&Question) -> usize) {
    let mut durations: Vec<Duration> = questions
        .iter()
        .map(|question| {
            let started = Instant::now();
            black_box(run(question));
            started.elapsed()
        })
        .collect();
    let total: Duration = durations.iter().sum();
    durations.sort_unstable();
    let at = |share: usize| durations[(durations.len() - 1) * share / 100];
    let per_second = durations.len() as f64 / total.as_secs_f64();
    println!(
        "{name}: p50 {:?}, p99 {:?} (budget {budget:?}), most {:?}, {per_second:.0} a second (budget 2000)",
        at(50),
        at(99),
        at(100)
    );
}

/// Prints the memory of an index, also after suggestions for all letters.
#[allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn memory(names: &[String]) {
    let _profiler = dhat::Profiler::builder().testing().build();
    let before = dhat::HeapStats::get().curr_bytes;
    let index = index(names);
    let memory = || dhat::HeapStats::get().curr_bytes.saturating_sub(before) as f64 / 1e6;
    let built = memory();
    ('a'..='z').filter_map(letter).for_each(|question| drop(black_box(index.find(&question))));
    println!("memory: {built:.1} MB after building, {:.1} MB after suggestions (budget 60 MB)", memory());
}

fn measure(names: &[String]) {
    memory(names);
    let index = index(names);
    let searched: Vec<Question> = texts(3).iter().filter_map(|text| Question::new(text).ok()).collect();
    let typed: Vec<Question> = texts(1).iter().filter_map(|text| Question::unfinished(text).ok()).collect();
    let letters: Vec<Question> = ('a'..='z').cycle().take(TEXTS).filter_map(letter).collect();
    let (search, suggestion) = (Duration::from_millis(5), Duration::from_millis(2));
    percentiles("search", &searched, search, |question| index.find(question).take(20).count());
    percentiles("suggest", &typed, suggestion, |question| index.find(question).take(10).count());
    percentiles("suggest one letter", &letters, suggestion, |question| index.find(question).take(10).count());
    let of_cube = |entry: u32| entry as usize / MEMBERS == 7;
    percentiles("suggest in a cube", &typed, suggestion, |question| {
        index.find_among(question, of_cube).take(10).count()
    });
    percentiles("suggest one letter in a cube", &letters, suggestion, |question| {
        index.find_among(question, of_cube).take(10).count()
    });
}

fn letter(letter: char) -> Option<Question> {
    Question::unfinished(letter.encode_utf8(&mut [0; 4])).ok()
}

fn benches(criterion: &mut Criterion) {
    let names: Vec<String> = (0..ENTRIES).map(name).collect();
    measure(&names);
    criterion.bench_function("search/index 30000", |bencher| bencher.iter(|| index(&names)));
    let index = index(&names);
    for text in ["revenue", "average departure delay", "avrage deprture dealy", "the of by"] {
        let question = Question::new(text).expect("words");
        criterion.bench_function(&format!("search/find {text}"), |bencher| {
            bencher.iter(|| index.find(&question).take(20).count());
        });
    }
    for text in ["d", "dep", "average dep"] {
        let question = Question::unfinished(text).expect("words");
        criterion.bench_function(&format!("search/suggest {text}"), |bencher| {
            bencher.iter(|| index.find(&question).take(10).count());
        });
    }
}

criterion_group!(search, benches);
criterion_main!(search);
