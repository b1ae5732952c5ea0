//! The units of members: their names, and the units that other members and descriptions show.

use std::collections::HashMap;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization as _;

use super::{MemberEntry, MemberKind, stems_of};
use crate::draft::{Aggregation, Unit};
use crate::language::{Language, Meaning};

/// Returns the units with a name of one word, by the stems of the words that name them. A word that names different
/// units is left out.
pub(super) fn named(entries: &[MemberEntry], language: &Language) -> HashMap<String, Unit> {
    let mut found: HashMap<String, Option<Unit>> = HashMap::new();
    for unit in entries.iter().filter_map(|entry| entry.unit.as_ref()) {
        let Unit::Named(name) = unit else { continue };
        // Questions are normalized in the same way: `m²` is `m2`.
        let normal: String = name.nfkc().collect();
        let own = match &stems_of(&normal, language)[..] {
            [stem] => Some(stem.clone()),
            // A unit such as `€` is its own name.
            [] => Some(name.to_lowercase()),
            _ => None,
        };
        for stem in own.into_iter().chain(language.words_for_unit(name).map(str::to_owned)) {
            let known = found.entry(stem).or_insert_with(|| Some(unit.clone()));
            if known.as_ref() != Some(unit) {
                *known = None;
            }
        }
    }
    found.into_iter().filter_map(|(stem, unit)| Some((stem, unit?))).collect()
}

/// Adds units to the numbers that have none: the unit of the measures that combine them, or else the first word of the
/// description, if it is a unit.
pub(super) fn completed(mut entries: Vec<MemberEntry>, language: &Language) -> Vec<MemberEntry> {
    let units = named(&entries, language);
    let of_measures = of_measures(&entries);
    let of = |entry: &MemberEntry| match entry.kind {
        MemberKind::Number if entry.unit.is_none() => {
            let measured = of_measures.get(&entry.name).copied().flatten().cloned();
            measured.or_else(|| described(entry, &units, language))
        }
        _ => None,
    };
    let found: Vec<Option<Unit>> = entries.iter().map(of).collect();
    for (entry, unit) in entries.iter_mut().zip(found) {
        entry.unit = entry.unit.take().or(unit);
    }
    entries
}

/// Returns the units of the measures whose values are values of a dimension, by the name of the dimension. A dimension
/// whose measures have different units has `None`.
fn of_measures(entries: &[MemberEntry]) -> HashMap<Arc<str>, Option<&Unit>> {
    use Aggregation::{Average, Maximum, Minimum, Sum};
    let mut found: HashMap<Arc<str>, Option<&Unit>> = HashMap::new();
    for measure in entries.iter().filter(|of| matches!(of.aggregation, Some(Average | Sum | Minimum | Maximum))) {
        let (Some(combined), Some(unit)) = (&measure.combines, &measure.unit) else { continue };
        let known = found.entry(Arc::clone(combined)).or_insert(Some(unit));
        if *known != Some(unit) {
            *known = None;
        }
    }
    found
}

/// Returns the unit that a description begins with, as in `Minutes late at departure`. A unit of time is in the plural:
/// `Hour of departure` is not a length.
fn described(entry: &MemberEntry, units: &HashMap<String, Unit>, language: &Language) -> Option<Unit> {
    let first = entry.description.as_ref()?.split(|c: char| !c.is_alphanumeric()).next()?.to_lowercase();
    let stem = language.stem(&first);
    let of_time = match language.phrase(&[&stem]) {
        Some((1, Meaning::Second)) => Some(Unit::Seconds),
        Some((1, Meaning::Minute)) => Some(Unit::Minutes),
        Some((1, Meaning::Hour)) => Some(Unit::Hours),
        Some((1, Meaning::Day)) => Some(Unit::Days),
        _ => None,
    };
    of_time.filter(|_| language.has_ending(&first)).or_else(|| units.get(&stem).cloned())
}
