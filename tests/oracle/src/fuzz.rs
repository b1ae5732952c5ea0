//! The fuzz loop: generates worlds from seeds and many queries for each, and compares every answer.
//!
//! In: the number of queries, and the first seed. Out: counts, and the differences, each reduced to a [`Case`].

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use terrane_compiler::rollup::Flaw;

use crate::case::{Case, read, settings};
use crate::compare::difference;
use crate::generate::{
    Features, Generator, crossing_segments, enforce, late_cube, mask_policies, policies, query, query_of_rollup,
    rollups, world, zone_of_query,
};
use crate::invariants;
use crate::invariants::cached::DataReport;
use crate::oracle::{Construct, Outcome, Paths, answer};
use crate::product::{Answered, Asker, Product};
use crate::shrink::shrink;
use crate::surfaces::{self, Compared};
use crate::world::{Cell, FileOrder, World, source_tree};

/// The number of queries on each world.
pub const QUERIES_PER_WORLD: usize = 30;

/// The largest age of pre-aggregated rows, in seconds.
const MAX_AGE: u64 = 3_600;

/// DuckDB 1.5.6 fails internally if three conditions hold at once: it inlines a named query of several facts, it finds
/// that a branch has no rows (two ranges that do not meet), and the statement has a LIMIT. A case in `cases/` shows the
/// failure. `AS MATERIALIZED` would prevent it, but a dialect's profile cannot express this clause.
const ENGINE_FAILURE: &str = "INTERNAL Error: Attempted to dereference unique_ptr that is NULL";

/// The largest integer in the data. It is so small that the sum over all rows of a join fits into 64 bits.
const LARGEST_SUMMAND: u64 = 1 << 54;

#[derive(Debug, Clone)]
pub struct Run {
    /// The number of queries to run.
    pub cases: usize,
    pub seed: u64,
    pub features: Features,
    /// The number of differences after which the run stops.
    pub max_differences: usize,
    /// The flaw that is planted in the product.
    pub flaw: Option<Flaw>,
    /// The way in which the cache is informed of changed data.
    pub report: DataReport,
    /// The URL of a Spark Connect server that has the tables. Its statements take long, so only the answers of REST are
    /// compared, and differences are not reduced.
    pub spark: Option<String>,
}

/// The counts of a run. Refusals are counted by code, so that a run in which everything is refused is noticed.
#[derive(Debug, Default)]
pub struct Report {
    pub worlds: usize,
    pub queries: usize,
    pub answered: usize,
    /// The number of answers with at least one row.
    pub with_rows: usize,
    pub refused: BTreeMap<String, usize>,
    /// The number of queries that are not compared, by reason: the semantics leave them open, or a part is missing.
    pub left_out: BTreeMap<&'static str, usize>,
    /// The number of compared queries, by the features that they use.
    pub used: BTreeMap<&'static str, usize>,
    pub invariants: BTreeMap<&'static str, usize>,
    pub differences: Vec<Case>,
}

impl Features {
    /// Returns whether queries with a construct are compared.
    fn allows(&self, construct: Construct) -> bool {
        match construct {
            Construct::ToMany => self.to_many,
            Construct::Steps => self.steps,
            _ => true,
        }
    }
}

/// Runs the fuzz loop. `progress` is called after each world.
///
/// # Errors
/// An engine does not start, or a world does not load, which is a fault of the generator.
pub fn run(run: &Run, progress: impl FnMut(&Report)) -> Result<Report> {
    let product = match &run.spark {
        Some(url) => Product::on_spark(settings(), url)?,
        None => Product::start(settings())?,
    };
    run_on(product, run, progress)
}

/// Runs the fuzz loop on a product.
///
/// # Errors
/// A world does not load, which is a fault of the generator.
pub fn run_on(mut product: Product, run: &Run, mut progress: impl FnMut(&Report)) -> Result<Report> {
    let mut report = Report::default();
    product.flaw = run.flaw;
    while report.queries < run.cases && report.differences.len() < run.max_differences {
        let seed = run.seed.wrapping_add(report.worlds as u64);
        one_world(run, &product, seed, &mut report).with_context(|| format!("world of seed {seed}"))?;
        report.worlds += 1;
        progress(&report);
    }
    Ok(report)
}

fn one_world(run: &Run, product: &Product, seed: u64, report: &mut Report) -> Result<()> {
    let flaw = run.flaw.map(|flaw| format!("{flaw:?}"));
    let mut generator = Generator::new(seed, run.features);
    let mut world = world(&mut generator);
    limit_sums(&mut world);
    world.is_on_spark = run.spark.is_some();
    if run.features.foreign_keys && !world.is_on_spark {
        // Foreign keys have a separate generator, so that a seed makes the same queries with and without them.
        enforce(&mut Generator::new(seed.rotate_left(32), run.features), &mut world);
    }
    if run.features.policies && generator.random.chance(30) {
        world.policies = policies(&mut generator, &world);
    }
    if run.features.mask_policies && generator.random.chance(20) {
        world.mask_policies = mask_policies(&mut generator, &world);
    }
    let mut of_rollups = Generator::new(!seed, run.features);
    if run.features.rollups && !world.is_on_spark {
        world.rollups = rollups(&mut of_rollups, &world);
        world.late_cube = late_cube(&mut of_rollups, &world);
        crossing_segments(&mut of_rollups, &mut world);
    }
    let seen = world.seen();
    let paths = Paths::new(&seen);
    let served = product.serve(&world, &source_tree(&world, FileOrder::AsDescribed))?;
    let graphql = surfaces::executor(&served);
    let mut surfaces_random = Generator::new(seed.rotate_left(32), run.features).random;
    let mut checked = Vec::new();
    for _ in 0..QUERIES_PER_WORLD.min(run.cases - report.queries) {
        let mut body = query(&mut generator, &seen, &paths);
        if !world.rollups.is_empty() {
            if let Some(other) = query_of_rollup(&mut of_rollups, &world) {
                body = other;
            }
            // Pre-aggregations that are older than this must not serve the query.
            body["max_age"] = MAX_AGE.into();
            zone_of_query(&mut of_rollups, &world, &mut body);
        }
        report.queries += 1;
        let query = match read(&body) {
            Ok(query) => query,
            Err(code) => {
                *report.refused.entry(format!("{code} (REST)")).or_default() += 1;
                continue;
            }
        };
        let asker = if surfaces_random.chance(50) { Asker::Usual } else { Asker::Other };
        if !world.is_on_spark {
            match surfaces::compare(&graphql, &served, &body, asker, surfaces_random.chance(50)) {
                Compared::NotInGraphql => *report.left_out.entry("I7 GraphQL has no such query").or_default() += 1,
                Compared::Same => *report.invariants.entry("I7 REST and GraphQL answer alike").or_default() += 1,
                Compared::Different(about) => {
                    report.differences.push(Case {
                        about,
                        seed,
                        query: body,
                        world: world.clone(),
                        flaw: flaw.clone(),
                    });
                    return Ok(());
                }
            }
        }
        let verdict = answer(&seen, &paths, &query, &settings());
        if let Some(construct) = verdict.constructs.iter().find(|construct| !run.features.allows(**construct)) {
            *report.left_out.entry(construct.as_str()).or_default() += 1;
            continue;
        }
        if let Outcome::Open(why) = verdict.outcome {
            *report.left_out.entry(why).or_default() += 1;
            continue;
        }
        for construct in &verdict.constructs {
            *report.used.entry(construct.as_str()).or_default() += 1;
        }
        for (name, is_used) in [
            ("row filters of policies", !world.policies.is_empty()),
            ("masks and denials", !world.mask_policies.is_empty()),
            ("foreign keys", world.cubes.iter().flat_map(|cube| &cube.joins).any(|join| join.is_enforced)),
            ("totals", query.totals),
            ("rows ungrouped", query.ungrouped),
        ] {
            if is_used {
                *report.used.entry(name).or_default() += 1;
            }
        }
        for name in served.rollups_of(&query) {
            *report.used.entry(name).or_default() += 1;
        }
        let answered = served.run(&query);
        match &answered {
            Answered::Rows { rows, .. } => {
                report.answered += 1;
                report.with_rows += usize::from(!rows.is_empty());
            }
            Answered::Refused(codes) => {
                let code = codes.iter().map(|code| format!("{code:?}")).collect::<String>();
                *report.refused.entry(code).or_default() += 1;
            }
            Answered::Broken(_) => {}
        }
        if matches!(&answered, Answered::Broken(why) if why.contains(ENGINE_FAILURE)) {
            *report.left_out.entry("a failure inside DuckDB").or_default() += 1;
            continue;
        }
        match difference(&answered, &verdict.outcome) {
            // Only one difference of a world is examined, because further ones most likely have the same cause.
            Some(about) => {
                drop(served);
                note(product, report, Case { about, seed, query: body, world: world.clone(), flaw: flaw.clone() });
                return Ok(());
            }
            None => checked.push((body, query, answered)),
        }
    }
    if world.is_on_spark {
        return Ok(());
    }
    // Answers that the comparison with GraphQL has cached must not serve the invariants.
    served.invalidate();
    for (about, body) in invariants::within(&served, &world, &checked, &mut generator, &mut report.invariants) {
        report.differences.push(Case { about, seed, query: body, world: world.clone(), flaw: flaw.clone() });
    }
    // This check changes the data, so it comes last for each world.
    let data = (&mut report.invariants, run.report);
    for (about, body) in invariants::cached::cached((product, &served), &world, &checked, &mut generator, data)? {
        report.differences.push(Case { about, seed, query: body, world: world.clone(), flaw: flaw.clone() });
    }
    drop(served);
    for (about, body) in invariants::between(product, &world, seed, run.features, &checked, &mut report.invariants)? {
        report.differences.push(Case { about, seed, query: body, world: world.clone(), flaw: flaw.clone() });
    }
    Ok(())
}

/// Removes the largest integers from a world in which a table is empty.
///
/// DuckDB 1.5.6 and 2.0.1 add 64-bit integers without a check for overflow below a left join with an empty table,
/// because the optimizer assumes that the join has no rows.
fn limit_sums(world: &mut World) {
    if world.cubes.iter().all(|cube| !cube.rows.is_empty()) {
        return;
    }
    for cell in world.cubes.iter_mut().flat_map(|cube| &mut cube.rows).flatten() {
        match cell {
            Cell::Int(value) if value.unsigned_abs() > LARGEST_SUMMAND => *cell = Cell::Int(*value % 1_000),
            _ => {}
        }
    }
}

/// Reduces a difference and records it, unless the same one was found before.
fn note(product: &Product, report: &mut Report, case: Case) {
    let case = if case.world.is_on_spark { case } else { shrink(product, case) };
    if !report.differences.iter().any(|known| known.query == case.query && known.about == case.about) {
        report.differences.push(case);
    }
}
