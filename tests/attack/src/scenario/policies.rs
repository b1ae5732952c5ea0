//! Policies beyond those of the oracle's worlds: conditions (`when`) on attributes of every type, policies on all cubes
//! (`"*"`), and masks that are SQL.
//!
//! In: a world and its policies as JSON. Out: other policies that hide at least as much from the caller, and the world
//! that they describe.

use serde_json::{Value as Json, json};
use terrane_oracle_tests::generate::{Generator, mask_policies, policies};
use terrane_oracle_tests::random::Random;
use terrane_oracle_tests::world::{Cell, Comparison, Cube, Expr, Mask, MaskPolicy, Policy, RowPolicy, World};

use super::people;
use crate::caller::{APPLICABLE, UNTYPED};

/// The number of attempts to generate a policy that hides rows or values from the caller.
const TRIES: usize = 20;
/// The largest value of the id that the row filter on all cubes may allow.
const MAX_STAR_ID: i64 = 4;

/// Policies beyond those of the oracle's world.
#[derive(Debug, Default)]
pub(super) struct Extras {
    /// A row filter on all cubes. In the world, it is the last `star_policies` policies, one for each cube.
    star_filter: Option<Json>,
    star_policies: usize,
    /// For each policy with masks and denied members, whether it applies to all cubes.
    is_star: Vec<bool>,
}

impl Extras {
    pub(super) fn has_star_filter(&self) -> bool {
        self.star_filter.is_some()
    }
}

/// Adds policies until one hides rows or values.
pub(super) fn add(generator: &mut Generator, world: &mut World, has_star: bool, is_plain: bool) -> Extras {
    for _ in 0..TRIES {
        if generator.random.chance(75) {
            let rows = policies(generator, world);
            world
                .policies
                .extend(rows.into_iter().filter(|policy| !matches!(policy.row_filter, RowPolicy::Hook { .. })));
        }
        if generator.random.chance(65) {
            let mask_policies = mask_policies(generator, world);
            world.mask_policies.extend(mask_policies);
        }
        if world.policies.iter().any(|policy| !policy.is_for_others)
            || world.mask_policies.iter().any(|mask_policy| !mask_policy.is_for_others)
        {
            break;
        }
    }
    drop_filters_over_hidden_cubes(world);
    let is_star = (0..world.mask_policies.len())
        .map(|index| has_star && generator.random.chance(40) && fits_all(world, index))
        .collect();
    let mut extras = Extras { is_star, ..Extras::default() };
    spread(world, &extras);
    if has_star && is_plain && generator.random.chance(15) {
        add_star_filter(world, &mut extras, &mut generator.random);
    }
    extras
}

/// Removes row filters that read a cube whose rows another policy hides. It is not defined which rows such a filter
/// reads.
fn drop_filters_over_hidden_cubes(world: &mut World) {
    let hidden: Vec<String> = world.policies.iter().map(|policy| policy.cube.clone()).collect();
    let policies = std::mem::take(&mut world.policies);
    let is_sound = |policy: &Policy| match &policy.row_filter {
        RowPolicy::Attribute { column: Expr::Column { cube: Some(joined), .. }, .. } => {
            world.behind(joined).is_none_or(|target| !hidden.contains(&target.name))
        }
        _ => true,
    };
    world.policies = policies.into_iter().filter(is_sound).collect();
}

/// Returns whether each cube that has one of the masked members has it as a dimension.
fn fits_all(world: &World, index: usize) -> bool {
    let masks = &world.mask_policies[index].masks;
    let fits = |cube: &Cube| masks.iter().all(|(name, _)| cube.measure(name).is_none() && cube.segment(name).is_none());
    world.cubes.iter().all(fits)
}

/// Copies each policy that applies to all cubes to the other cubes. A copy has the masks and denials of the dimensions
/// that its cube has.
fn spread(world: &mut World, extras: &Extras) {
    let mut more = Vec::new();
    for (mask_policy, _) in world.mask_policies.iter().zip(&extras.is_star).filter(|(_, is_star)| **is_star) {
        for cube in world.cubes.iter().filter(|cube| cube.name != mask_policy.cube) {
            let masks = mask_policy.masks.iter().filter(|(name, _)| cube.dimension(name).is_some()).cloned();
            let deny = mask_policy.deny.iter().filter(|name| cube.dimension(name).is_some()).cloned();
            more.push(MaskPolicy {
                cube: cube.name.clone(),
                masks: masks.collect(),
                deny: deny.collect(),
                ..mask_policy.clone()
            });
        }
    }
    world.mask_policies.extend(more);
}

fn add_star_filter(world: &mut World, extras: &mut Extras, random: &mut Random) {
    let most = random.between(0, MAX_STAR_ID);
    // A row filter that reads another cube would read rows that the filter on all cubes hides.
    let reads_across = |policy: &Policy| {
        matches!(&policy.row_filter, RowPolicy::Attribute { column: Expr::Column { cube: Some(_), .. }, .. })
    };
    if world.policies.iter().any(reads_across) {
        return;
    }
    for cube in &world.cubes {
        let bound = Box::new(Expr::Literal(Cell::Int(most)));
        let row_filter = RowPolicy::Condition(Expr::Compare(Comparison::LessOrEqual, Box::new(Expr::own(0)), bound));
        world.policies.push(Policy { cube: cube.name.clone(), row_filter, is_for_others: false });
    }
    extras.star_policies = world.cubes.len();
    extras.star_filter =
        Some(json!({"name": "all_rows", "cubes": "*", "row_filter": format!("{{CUBE}}.id <= {most}")}));
}

/// Converts the policies `all` from the form of the oracle's worlds to the form of the project's files.
pub(super) fn printed(all: &[Json], world: &World, extras: &Extras, is_typed: bool, random: &mut Random) -> Vec<Json> {
    // The order of `all`: row filters, then masks and denials, then the policies that `spread` has added.
    let rows = world.policies.len();
    let own_rows = rows - extras.star_policies;
    let filters = all.iter().take(own_rows);
    let mask_policies = all.iter().skip(rows).zip(&extras.is_star).map(|(mask_policy, is_star)| {
        let mut mask_policy = mask_policy.clone();
        if *is_star {
            mask_policy["cubes"] = json!("*");
        }
        sql_masks(&mut mask_policy, random);
        mask_policy
    });
    let mut written: Vec<Json> = filters.cloned().chain(mask_policies).chain(extras.star_filter.clone()).collect();
    for policy in &mut written {
        let conditions = if is_typed { APPLICABLE } else { &APPLICABLE[..UNTYPED] };
        let when = random.of(conditions).and_then(|text| serde_json::from_str(text).ok());
        if let Some(when) = when.filter(|_: &Json| policy.get("when").is_none()) {
            policy["when"] = when;
        }
    }
    written
}

/// Replaces some constant masks with SQL expressions that disclose as little as the constants.
fn sql_masks(mask_policy: &mut Json, random: &mut Random) {
    let masks = mask_policy.get_mut("mask").and_then(Json::as_object_mut);
    for mask in masks.into_iter().flat_map(|masks| masks.values_mut()) {
        if mask["constant"].is_string() && random.chance(50) {
            *mask = json!({"sql": random.of(&["'masked'", "{{ user.attributes.region }}", "upper('masked')"])});
        }
    }
}

/// Returns whether rows or values are hidden from the caller.
pub(super) fn hides(world: &World) -> bool {
    let shows_less = |cube: &Cube, full: &Cube| !people::is_people(full) && cube.rows.len() < full.rows.len();
    let has_hidden_rows = world.seen().cubes.iter().zip(&world.cubes).any(|(cube, full)| shows_less(cube, full));
    let is_mask = |mask_policy: &MaskPolicy| {
        !mask_policy.is_for_others && mask_policy.masks.iter().any(|(_, mask)| *mask != Mask::Hash)
    };
    has_hidden_rows || world.mask_policies.iter().any(is_mask)
}
