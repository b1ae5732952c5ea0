//! Finds the cube that a question is about.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Item, ItemKind};
use crate::language::Language;
use crate::members::{MemberEntry, MemberKind, Vocabulary};

/// The cube and the kind of a member that an item may mean; `None` for a metric.
type CubeMember<'v> = (Option<&'v Arc<str>>, MemberKind);

/// The points of a cube for an item that can only mean its measures. Measures score more than dimensions, because
/// several cubes often have the same dimensions.
const POINTS_OF_MEASURES: i32 = 10;
/// The points of a cube for an item that can only mean its members.
const POINTS_OF_DIMENSIONS: i32 = 1;
/// The points of a cube for its own name.
const POINTS_OF_NAME: i32 = 3;
/// The points of a cube for an item that cannot be combined with it.
const POINTS_OF_FOREIGN: i32 = -5;

/// Returns the cube that the items fit best. Items whose members all belong to one cube count most. A cube that cannot
/// be combined with an item loses.
pub(super) fn main_cube(vocabulary: &Vocabulary, items: &[Item], language: &Language) -> Option<Arc<str>> {
    let mut named: Vec<Vec<CubeMember<'_>>> = Vec::new();
    for item in items {
        let members: Vec<usize> = match &item.kind {
            ItemKind::Member(candidates) => candidates.members.clone(),
            ItemKind::Value(values) => values.iter().filter_map(|known| vocabulary.index_of(&known.member)).collect(),
            // A word in the names of too many measures, such as `delay`.
            ItemKind::Unknown => vocabulary.measures_with(&language.stem(&item.text.to_lowercase())),
            _ => continue,
        };
        if members.is_empty() {
            continue;
        }
        let of = |index: usize| (vocabulary.entry(index).cube.as_ref(), vocabulary.entry(index).kind);
        named.push(members.into_iter().map(of).collect());
    }
    let mut scores: BTreeMap<&Arc<str>, i32> = BTreeMap::new();
    for cube in named.iter().flatten().filter_map(|(cube, _)| *cube) {
        scores.entry(cube).or_insert_with(|| named.iter().map(|members| score(vocabulary, cube, members)).sum());
    }
    // A cube without points is the best one only if all others have fewer.
    let most = *scores.values().max()?;
    if most < 0
        && let Some(joining) = joining(vocabulary, &named)
    {
        return Some(joining);
    }
    let mut best = scores.into_iter().filter(|(_, score)| *score == most).map(|(cube, _)| cube);
    let last = best.next_back()?;
    (most > 0 || best.next().is_none()).then(|| Arc::clone(last))
}

/// Returns the only cube with counted rows that joins the members of all items, as the flights join airlines and
/// airports.
fn joining(vocabulary: &Vocabulary, named: &[Vec<CubeMember<'_>>]) -> Option<Arc<str>> {
    let joins = |cube: &str| {
        let is_joined = |(own, _): &CubeMember<'_>| own.is_some_and(|own| vocabulary.is_joined(cube, own));
        named.iter().all(|members| members.iter().any(is_joined))
    };
    only_counted(vocabulary, joins)
}

/// Returns the only cube with counted rows that joins a cube.
pub(super) fn joining_of(vocabulary: &Vocabulary, cube: &str) -> Option<Arc<str>> {
    only_counted(vocabulary, |other| other != cube && vocabulary.is_joined(other, cube))
}

/// Returns the only cube with counted rows that joins others and that no other cube joins. Its rows are counted if a
/// question names no cube at all.
pub(super) fn only_fact(vocabulary: &Vocabulary) -> Option<Arc<str>> {
    let is_joined = |name: &str| {
        let joins = |(_, entry): (usize, &MemberEntry)| {
            entry.kind == MemberKind::Cube && *entry.name != *name && entry.joined.iter().any(|one| **one == *name)
        };
        vocabulary.entries().any(joins)
    };
    let joins_others = |name: &str| vocabulary.cube(name).is_some_and(|cube| cube.joined.len() > 1);
    only_counted(vocabulary, |name| joins_others(name) && !is_joined(name))
}

fn only_counted(vocabulary: &Vocabulary, keeps: impl Fn(&str) -> bool) -> Option<Arc<str>> {
    let cubes = vocabulary.entries().map(|(_, entry)| entry).filter(|entry| entry.kind == MemberKind::Cube);
    let mut found = cubes.filter(|entry| entry.count.is_some() && !entry.joined.is_empty() && keeps(&entry.name));
    let (only, None) = (found.next()?, found.next()) else { return None };
    Some(Arc::clone(&only.name))
}

/// Returns the points that the members of an item give to a cube.
fn score(vocabulary: &Vocabulary, cube: &Arc<str>, members: &[CubeMember<'_>]) -> i32 {
    let is_own = |(own, _): &CubeMember<'_>| *own == Some(cube);
    let is_joined = |(own, _): &CubeMember<'_>| own.is_none_or(|own| vocabulary.is_joined(cube, own));
    if !members.iter().any(is_joined) {
        return POINTS_OF_FOREIGN;
    }
    if members.iter().all(is_own) {
        return if members.iter().all(|(_, kind)| kind.is_value()) { POINTS_OF_MEASURES } else { POINTS_OF_DIMENSIONS };
    }
    let is_name = |member: &CubeMember<'_>| is_own(member) && member.1 == MemberKind::Cube;
    if members.iter().any(is_name) { POINTS_OF_NAME } else { 0 }
}
