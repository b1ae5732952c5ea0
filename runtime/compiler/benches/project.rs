//! A project's files to a model, its dependency graph and its lineage: 1,000 cubes of 30 members, one a
//! file, as `app::catalog::load` reads them, without the warehouse.
//!
//! Budget on a quiet core: cold load under 200 ms, at the very most 500; one changed file under 10 ms;
//! under 60 KB of memory a cube.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at its first fault")]
#![allow(clippy::print_stdout, reason = "figures are what a benchmark is for")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mimalloc::MiMalloc;
use terrane_compiler::graph::DependencyGraph;
use terrane_compiler::lineage::{KnownColumns, Lineage};
use terrane_compiler::model::{self, ColumnTypes, CubeId, DimensionId, KeptCubes};
use terrane_compiler::project::{self, Definitions, KeptFiles};
use terrane_compiler::sql::type_probe;
use terrane_compiler::types::LogicalType;
use terrane_golden_tests::duckdb_profile;
use terrane_golden_tests::large_project::{inputs, large_cube, large_project};

const CUBES: usize = 1_000;
const ROUNDS: usize = 15;

/// The program's own allocator, which counts the bytes that are held once it is told to: threads that count
/// wait for each other.
struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static HELD: AtomicUsize = AtomicUsize::new(0);

fn count(more: usize, less: usize) {
    if COUNTS.load(Ordering::Relaxed) {
        HELD.fetch_add(more.wrapping_sub(less), Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the allocator as it came.
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

/// The quickest of so many rounds, in milliseconds: whatever else the machine does only makes them slower.
fn quickest(round: impl FnMut() -> Duration) -> f64 {
    std::iter::repeat_with(round).take(ROUNDS).min().unwrap_or_default().as_secs_f64() * 1e3
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let made = black_box(work());
    (started.elapsed(), made)
}

fn told(what: &str, figure: f64, unit: &str, budget: Option<f64>) {
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
    let errors = problems.iter().chain(&more).find(|told| told.is_error());
    assert!(errors.is_none(), "{errors:?}");
    let cold = quickest(|| {
        let (time, _) = timed(|| {
            let (definitions, problems) = project::read(&tree, &inputs);
            let (model, more) = model::build(&definitions);
            (definitions, model, problems, more)
        });
        time
    });
    told("reading the files", read, "ms", None);
    told("building the model", build, "ms", None);
    told("cold load", cold, "ms", Some(200.0));
    let graph = quickest(|| timed(|| DependencyGraph::build(&definitions, &built, &[])).0);
    told("dependency graph", graph, "ms", None);
    let profile = duckdb_profile();
    let probes = quickest(|| {
        timed(|| built.cubes.iter().filter_map(|cube| type_probe(&built, cube.id, &profile).ok()).count()).0
    });
    told("type probes of all cubes", probes, "ms", None);
    let known = KnownColumns::declared(&definitions);
    let lineage = quickest(|| timed(|| Lineage::build(&definitions, &built, &known)).0);
    told("lineage", lineage, "ms", None);
    drop((definitions, built, problems, more));

    COUNTS.store(true, Ordering::Relaxed);
    let before = HELD.load(Ordering::Relaxed);
    let (definitions, _, files) = project::read_again(&tree, &inputs, &KeptFiles::default());
    let read = HELD.load(Ordering::Relaxed);
    let (built, _, cubes) = model::build_again(&definitions, &KeptCubes::default());
    let all = HELD.load(Ordering::Relaxed);
    let typed = built.with_types(&every_type(&definitions));
    let with_types = HELD.load(Ordering::Relaxed);
    let per_cube = |bytes: usize| bytes as f64 / 1024.0 / CUBES as f64;
    told("memory of definitions", per_cube(read - before), "KB a cube", None);
    told("memory of the model", per_cube(all - read), "KB a cube", None);
    told("memory of its types", per_cube(with_types - all), "KB a cube", None);
    told("memory of all", per_cube(with_types - before), "KB a cube", Some(60.0));
    COUNTS.store(false, Ordering::Relaxed);
    drop(typed);

    let middle = format!("cubes/cube_{:04}.yml", CUBES / 2 + 1);
    let first = "cubes/cube_0000.yml".to_owned();
    let changes: [(&str, &str, Change); 7] = [
        ("nothing changed", &middle, &|text| text.to_owned()),
        ("one description changed", &middle, &|text| text.replace("One row an event", "A row an event")),
        ("one member more", &middle, &|text| {
            text.replace("    measures:\n", "    measures:\n      - {name: n, type: count}\n")
        }),
        ("one member more of what all join", &first, &|text| {
            text.replace("    measures:\n", "    measures:\n      - {name: n, type: count}\n")
        }),
        ("one model changed", "models/staged_50.sql", &|text| text.replace("'test'", "'trial'")),
        ("one policy changed", "policies/all.yml", &|text| text.replace("text_0 IN", "text_1 IN")),
        ("one cube more, before all others", "cubes/a.yml", &|_| large_cube(CUBES)),
    ];
    // `-- "one policy"` repeats that change alone, for a profile.
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let rounds = if only.is_some() { 100 } else { 1 };
    for (what, path, change) in changes.into_iter().filter(|(what, ..)| only.as_ref().is_none_or(|o| what.contains(o)))
    {
        let mut changed = tree.clone();
        let text = change(tree.files.get(path).map_or("", |text| text));
        changed.files.insert(path.into(), text.into());
        let mut work = String::new();
        let mut once = || {
            let (time, (files, cubes, ..)) = timed(|| {
                let (definitions, problems, files) = project::read_again(&changed, &inputs, &files);
                let (model, more, cubes) = model::build_again(&definitions, &cubes);
                (files, cubes, definitions, model, problems, more)
            });
            work = format!("{} files, {} models, {} cubes", files.work().done, cubes.models().done, cubes.cubes().done);
            time
        };
        let again = (0..rounds).map(|_| quickest(&mut once)).fold(f64::INFINITY, f64::min);
        told(&format!("{what}: {work}"), again, "ms", Some(10.0));
    }
}

/// What a change makes of a file's text.
type Change<'a> = &'a dyn Fn(&str) -> String;

/// A type for every member, as a warehouse would tell.
fn every_type(definitions: &Definitions) -> ColumnTypes {
    let mut types = ColumnTypes::default();
    for (cube, definition) in (0u32..).map(CubeId).zip(&definitions.cubes) {
        for index in 0..definition.dimensions.len() as u32 {
            types.dimensions.insert(DimensionId { cube, index }, LogicalType::Text);
        }
    }
    types
}
