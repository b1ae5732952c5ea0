//! Measures the cost of an index over 30,000 entries, and of searches in it.
//!
//! Budgets: 300 ms to build the index, 5 ms for a search, 2 ms for a suggestion.

use criterion::{Criterion, criterion_group, criterion_main};
use terrane_search::{Field, Index, IndexBuilder, Question};

const ENTRIES: usize = 30_000;
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
        let cube = format!("cube_{}", entry / 30);
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

fn benches(criterion: &mut Criterion) {
    let names: Vec<String> = (0..ENTRIES).map(name).collect();
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
