//! Measures the loading of a project of 1,000 cubes with 30 members each, one in each file: its model, its dependency
//! graph and its lineage, as `app::catalog::load` computes them, without the warehouse.
//!
//! Budget on a quiet machine: a load under 200 ms, with or without changes since the last one; under 60 KB of
//! memory for each cube.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at its first fault")]
#![allow(clippy::print_stdout, reason = "figures are what a benchmark is for")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mimalloc::MiMalloc;
use terrane_compiler::model::{self, ColumnTypes, CubeId, DimensionId};
use terrane_compiler::project::{self, Definitions};
use terrane_compiler::sql::type_probe;
use terrane_compiler::types::LogicalType;
use terrane_golden_tests::duckdb_profile;
use terrane_golden_tests::large_project::{inputs, large_project};
use terrane_lineage::graph::DependencyGraph;
use terrane_lineage::{KnownColumns, Lineage};

const CUBES: usize = 1_000;
const ROUNDS: usize = 15;

/// The program's own allocator. Counts the allocated bytes while [`COUNTS`] is set; off by default, because
/// threads that count wait for each other.
struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static HELD: AtomicUsize = AtomicUsize::new(0);

fn count(more: usize, less: usize) {
    if COUNTS.load(Ordering::Relaxed) {
        HELD.fetch_add(more.wrapping_sub(less), Ordering::Relaxed);
    }
}

// SAFETY: every call is passed to MiMalloc with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as above.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as above.
        unsafe { MiMalloc.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as above.
        unsafe { MiMalloc.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the duration of the fastest round in milliseconds: other work on the machine only slows rounds down.
fn quickest(round: impl FnMut() -> Duration) -> f64 {
    std::iter::repeat_with(round).take(ROUNDS).min().unwrap_or_default().as_secs_f64() * 1e3
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let made = black_box(work());
    (started.elapsed(), made)
}

fn report(what: &str, figure: f64, unit: &str, budget: Option<f64>) {
    match budget {
        Some(budget) => println!("{what:<60} {figure:>9.2} {unit}   budget {budget} {unit}"),
        None => println!("{what:<60} {figure:>9.2} {unit}"),
    }
}

fn main() {
    let (tree, inputs) = (large_project(CUBES), inputs());
    let files = tree.files.len();
    println!("{CUBES} cubes of 30 members in {files} files");
    let read = quickest(|| timed(|| project::read(&tree, &inputs)).0);
    let (definitions, problems) = project::read(&tree, &inputs);
    let build = quickest(|| timed(|| model::build(&definitions)).0);
    let (built, more) = model::build(&definitions);
    let errors = problems.iter().chain(&more).find(|problem| problem.is_error());
    assert!(errors.is_none(), "{errors:?}");
    let cold = quickest(|| {
        let (time, _) = timed(|| {
            let (definitions, problems) = project::read(&tree, &inputs);
            let (model, more) = model::build(&definitions);
            (definitions, model, problems, more)
        });
        time
    });
    report("reading the files", read, "ms", None);
    report("building the model", build, "ms", None);
    report("cold load", cold, "ms", Some(200.0));
    let graph = quickest(|| timed(|| DependencyGraph::build(&definitions, &built, &[])).0);
    report("dependency graph", graph, "ms", None);
    let profile = duckdb_profile();
    let probes = quickest(|| {
        timed(|| built.cubes.iter().filter_map(|cube| type_probe(&built, cube.id, &profile).ok()).count()).0
    });
    report("type probes of all cubes", probes, "ms", None);
    let known = KnownColumns::declared(&definitions);
    let lineage = quickest(|| timed(|| Lineage::build(&definitions, &built, &known)).0);
    report("lineage", lineage, "ms", None);
    drop((definitions, built, problems, more));

    COUNTS.store(true, Ordering::Relaxed);
    let before = HELD.load(Ordering::Relaxed);
    let (definitions, _) = project::read(&tree, &inputs);
    let read = HELD.load(Ordering::Relaxed);
    let (built, _) = model::build(&definitions);
    let all = HELD.load(Ordering::Relaxed);
    let typed = built.with_types(&every_type(&definitions));
    let with_types = HELD.load(Ordering::Relaxed);
    let per_cube = |bytes: usize| bytes as f64 / 1024.0 / CUBES as f64;
    report("memory of definitions", per_cube(read - before), "KB a cube", None);
    report("memory of the model", per_cube(all - read), "KB a cube", None);
    report("memory of its types", per_cube(with_types - all), "KB a cube", None);
    report("memory of all", per_cube(with_types - before), "KB a cube", Some(60.0));
    drop(typed);
}

/// Returns a type for every member, as a warehouse would report.
fn every_type(definitions: &Definitions) -> ColumnTypes {
    let mut types = ColumnTypes::default();
    for (cube, definition) in (0u32..).map(CubeId).zip(&definitions.cubes) {
        for index in 0..definition.dimensions.len() as u32 {
            types.dimensions.insert(DimensionId { cube, index }, LogicalType::Text);
        }
    }
    types
}
