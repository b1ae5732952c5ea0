//! The impact of a changed column in a project of 1,000 cubes and 30,000 members.
//!
//! Budget on a quiet core: impact over 30,000 members under 20 ms.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at its first fault")]
#![allow(clippy::print_stdout, reason = "figures are what a benchmark is for")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use terrane_compiler::{model, project};
use terrane_golden_tests::large_project::{every_member_over_one_column, inputs, large_project};
use terrane_lineage::{KnownColumns, Lineage, Sight};

fn benchmark(c: &mut Criterion) {
    let projects = [("as_written", large_project(1_000)), ("over_one_column", every_member_over_one_column(1_000))];
    for (name, tree) in projects {
        let (definitions, _) = project::read(&tree, &inputs());
        let (model, _) = model::build(&definitions);
        let known = KnownColumns::declared(&definitions);
        let lineage = Lineage::build(&definitions, &model, &known);
        // The start is the node of a sample that has the most downstream nodes.
        let some = (0..lineage.nodes.len() as u32).step_by(50).chain(lineage.find("table.raw.wide.column.amount"));
        let start = some.max_by_key(|at| lineage.downstream(*at, &everything()).len()).unwrap();
        let reached = lineage.downstream(start, &everything()).len();
        println!("{name}: {} of {} nodes reaches {reached}", lineage.nodes[start as usize].id, lineage.nodes.len());
        c.bench_function(&format!("impact/{name}"), |b| b.iter(|| lineage.downstream(black_box(start), &everything())));
        c.bench_function(&format!("build/{name}"), |b| {
            b.iter(|| Lineage::build(black_box(&definitions), &model, &known));
        });
    }
}

fn everything() -> Sight {
    Sight::of_everything()
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
