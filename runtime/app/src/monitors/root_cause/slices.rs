//! The arithmetic of root causes, without queries.
//!
//! In: groups of a step and of the history before it. Out: slices with their shares of the gap, and the smallest set of
//! slices that explains most of the gap. The shares of all slices of a dimension add up to 1. A set localises the gap
//! if its share of the gap is much larger than its share of the expected value. The difference of these two shares is
//! its *lift*.
//!
//! If the values of a measure do not add up, its slices are weighed by rows. A slice moves the measure in two ways. The
//! effect of its rate is its current weight times the change of its value. The effect of the mix is the change of its
//! weight times the distance of its value from the usual value. A group without a value has no weight. The moves of all
//! slices add up to the distance of the measure from its value over the history, and shares refer to this distance.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Group, Groups};

/// The share of the gap that a set of slices must explain.
const ENOUGH: f64 = 0.8;
/// The largest number of slices in a set.
const MAX_SLICES: usize = 5;
/// The smallest lift of a set that localises the gap. A set with less lift is part of a broad change.
const MIN_LIFT: f64 = 0.3;
/// The lift that each further slice of a set must add.
const LIFT_OF_A_SLICE: f64 = 0.03;
/// The lift that a pair of dimensions must add to a single dimension.
const LIFT_OF_A_PAIR: f64 = 0.02;
/// The largest negative share of a slice that is listed as moving against the gap.
const AGAINST: f64 = -0.05;

/// The relative distance up to which two values are equal.
const ROUNDING: f64 = 1e-9;

type Key = Vec<Option<Arc<str>>>;

/// The totals of a detection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) expected: f64,
    pub(super) actual: f64,
    /// The detector's expected value divided by the mean over the history.
    pub(super) scale: f64,
    /// The number of steps of history.
    pub(super) steps: f64,
    pub(super) is_exact: bool,
    /// The value and rows of the whole history.
    pub(super) history: Group,
}

/// One group with its share of the gap.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Slice {
    pub(super) key: Key,
    /// The value before the step; `None` if the group had none.
    pub(super) before: Option<f64>,
    pub(super) after: Option<f64>,
    /// The amount by which the slice moved the measure.
    pub(super) moved: f64,
    pub(super) share: f64,
    pub(super) support: f64,
}

/// The smallest set of slices of some dimensions that explains enough of the gap.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    pub(super) dimensions: Vec<Arc<str>>,
    pub(super) chosen: Vec<Slice>,
    pub(super) against: Vec<Slice>,
    pub(super) share: f64,
    pub(super) lift: f64,
}

impl Candidate {
    pub(super) fn is_localised(&self) -> bool {
        self.lift >= MIN_LIFT
    }
}

/// Returns the slices of all groups. If a group is missing in the step or in the history, it counts as empty there.
pub(super) fn slices_of(now: Groups, history: Groups, frame: &Frame) -> Vec<Slice> {
    let mut all: BTreeMap<Key, (Group, Group)> = BTreeMap::new();
    for (key, group) in now {
        all.entry(key).or_default().0 = group;
    }
    for (key, group) in history {
        all.entry(key).or_default().1 = group;
    }
    if frame.is_exact { added(all, frame) } else { weighed(all, frame) }
}

/// Returns the slices of an additive measure.
fn added(groups: BTreeMap<Key, (Group, Group)>, frame: &Frame) -> Vec<Slice> {
    let gap = frame.actual - frame.expected;
    let slice = |(key, (now, history)): (Key, (Group, Group))| {
        let after = now.value.unwrap_or(0.0);
        let before = history.value.unwrap_or(0.0) / frame.steps * frame.scale;
        let (moved, support) = (after - before, part(before, frame.expected));
        Slice { key, before: Some(before), after: Some(after), moved, share: part(moved, gap), support }
    };
    groups.into_iter().map(slice).collect()
}

/// Returns the slices of a measure whose values are weighed by rows.
fn weighed(groups: BTreeMap<Key, (Group, Group)>, frame: &Frame) -> Vec<Slice> {
    let weight = |group: &Group| if group.value.is_some() { group.rows } else { 0.0 };
    let total = |side: fn(&(Group, Group)) -> &Group| groups.values().map(|pair| weight(side(pair))).sum::<f64>();
    let (all_now, all_before) = (total(|pair| &pair.0), total(|pair| &pair.1));
    let usual = frame.history.value.unwrap_or(frame.expected);
    let slice = |(key, (now, history)): (Key, (Group, Group))| {
        let (weight_now, weight_before) = (part(weight(&now), all_now), part(weight(&history), all_before));
        let before = history.value.or(now.value.map(|_| usual)).unwrap_or(usual);
        let rate = weight_now * (now.value.unwrap_or(before) - before);
        let mix = (weight_now - weight_before) * (before - usual);
        let (before, after) = (history.value, now.value);
        Slice { key, before, after, moved: rate + mix, share: 0.0, support: weight_before }
    };
    let mut slices: Vec<Slice> = groups.clone().into_iter().map(slice).collect();
    let moved: f64 = slices.iter().map(|slice| slice.moved).sum();
    // If the value moved against the gap, for example within a season, the slices do not explain the gap.
    if moved * (frame.actual - frame.expected) > 0.0 {
        slices.iter_mut().for_each(|slice| slice.share = part(slice.moved, moved));
    }
    slices
}

fn part(part: f64, total: f64) -> f64 {
    if total == 0.0 { 0.0 } else { part / total }
}

/// Returns the smallest set of slices that explains enough of the gap; `None` if more than [`MAX_SLICES`] are needed.
pub(super) fn best_candidate(dimensions: &[Arc<str>], mut slices: Vec<Slice>) -> Option<Candidate> {
    slices.sort_by(|one, other| other.share.total_cmp(&one.share).then_with(|| one.key.cmp(&other.key)));
    let (mut share, mut support, mut count) = (0.0, 0.0, 0);
    for slice in slices.iter().take(MAX_SLICES).take_while(|slice| slice.share > 0.0) {
        (share, support, count) = (share + slice.share, support + slice.support, count + 1);
        if share >= ENOUGH {
            break;
        }
    }
    if share < ENOUGH {
        return None;
    }
    // A set may explain more than the gap if other slices moved against the gap. The surplus does not add to the lift.
    let lift = share.min(1.0) - support - LIFT_OF_A_SLICE * (count - 1) as f64;
    let against = slices.iter().rev().take(MAX_SLICES).take_while(|slice| slice.share <= AGAINST).cloned().collect();
    slices.truncate(count);
    Some(Candidate { dimensions: dimensions.to_vec(), chosen: slices, against, share, lift })
}

/// Returns whether a dimension only says which rows the measure counts: each of its groups has the share 0 or 1 (or 100
/// percent), before the step and in it. Such a dimension, for example the flag that the numerator of a ratio filters
/// by, would explain every gap.
pub(super) fn determines_the_value(slices: &[Slice]) -> bool {
    let values = || slices.iter().flat_map(|slice| [slice.before, slice.after]).flatten();
    let is_equal = |one: f64, other: f64| (one - other).abs() <= other.abs() * ROUNDING;
    let whole =
        values().find(|value| *value != 0.0).filter(|value| [1.0, 100.0].iter().any(|one| is_equal(*value, *one)));
    let Some(counted) = whole else { return false };
    values().any(|value| value == 0.0)
        && values().all(|value| value == 0.0 || is_equal(value, counted))
        && slices
            .iter()
            .all(|slice| slice.before.zip(slice.after).is_none_or(|(before, after)| is_equal(after, before)))
}

/// Returns whether the slices of a pair of dimensions only split a slice of a single dimension: all of them have its
/// value, and together they explain no more.
pub(super) fn splits(pair: &Candidate, single: &Candidate) -> bool {
    let [whole] = &single.chosen[..] else { return false };
    let Some(place) = pair.dimensions.iter().position(|dimension| *dimension == single.dimensions[0]) else {
        return false;
    };
    pair.chosen.len() > 1
        && pair.share <= whole.share
        && pair.chosen.iter().all(|slice| slice.key[place] == whole.key[0])
}

/// Returns the better of two candidates. `other` has more dimensions, so it must have clearly more lift.
pub(super) fn better(known: Option<Candidate>, other: Option<Candidate>) -> Option<Candidate> {
    match (known, other) {
        (Some(known), Some(other)) if other.lift > known.lift + LIFT_OF_A_PAIR => Some(other),
        (Some(known), _) => Some(known),
        (None, other) => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    /// A generator of pseudorandom numbers with a fixed sequence.
    struct Random(u64);

    impl Random {
        /// Returns a number from 0 to 1.
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as f64 / f64::from(u32::MAX >> 1)
        }

        fn below(&mut self, end: usize) -> usize {
            ((self.next() * end as f64) as usize).min(end - 1)
        }
    }

    const DIMENSIONS: usize = 4;
    const VALUES: usize = 6;
    const STEPS: f64 = 28.0;

    /// The values of a cell, one for each dimension.
    type Cell = [usize; DIMENSIONS];

    /// Cells of a cube with their usual and their present values.
    struct Planted {
        cells: Vec<(Cell, f64, f64)>,
    }

    impl Planted {
        /// Creates cells that vary by a twentieth. The values of the cells that `is_hit` selects fall further.
        fn new(random: &mut Random, is_hit: impl Fn(&Cell) -> bool) -> Self {
            let weights: Vec<Vec<f64>> =
                (0..DIMENSIONS).map(|_| (0..VALUES).map(|_| 0.3 + random.next()).collect()).collect();
            let mut cells = Vec::new();
            for index in 0..VALUES.pow(DIMENSIONS as u32) {
                let cell: Cell = std::array::from_fn(|place| index / VALUES.pow(place as u32) % VALUES);
                let usual = 100.0 * cell.iter().zip(&weights).map(|(value, weights)| weights[*value]).product::<f64>();
                let noise = 1.0 + (random.next() - 0.5) / 10.0;
                let now = usual * noise * if is_hit(&cell) { 0.2 } else { 1.0 };
                cells.push((cell, usual, now));
            }
            Planted { cells }
        }

        fn frame(&self) -> Frame {
            let sum = |value: fn(&(Cell, f64, f64)) -> f64| self.cells.iter().map(value).sum::<f64>();
            let (expected, actual) = (sum(|cell| cell.1), sum(|cell| cell.2));
            let group = |value: f64| Group { value: Some(value), rows: 0.0 };
            let history = group(expected * STEPS);
            Frame { expected, actual, scale: 1.0, steps: STEPS, is_exact: true, history }
        }

        fn slices(&self, places: &[usize]) -> Vec<Slice> {
            let mut groups: BTreeMap<Key, (f64, f64)> = BTreeMap::new();
            for (cell, usual, now) in &self.cells {
                let key = places.iter().map(|place| Some(cell[*place].to_string().into())).collect();
                let group = groups.entry(key).or_default();
                *group = (group.0 + usual, group.1 + now);
            }
            let side = |value: fn(&(f64, f64)) -> f64| -> Groups {
                let group = |sums| Group { value: Some(value(sums)), rows: 0.0 };
                groups.iter().map(|(key, sums)| (key.clone(), group(sums))).collect()
            };
            slices_of(side(|sums| sums.1), side(|sums| sums.0 * STEPS), &self.frame())
        }

        /// Returns the best candidate, searched for as an explanation does.
        fn found(&self) -> Option<Candidate> {
            let name = |place: usize| -> Arc<str> { place.to_string().into() };
            let mut singles: Vec<Candidate> =
                (0..DIMENSIONS).filter_map(|place| best_candidate(&[name(place)], self.slices(&[place]))).collect();
            singles.sort_by(|one, other| other.lift.total_cmp(&one.lift));
            let mut best = singles.first().cloned();
            let places: Vec<usize> = singles.iter().take(3).map(|found| found.dimensions[0].parse().unwrap()).collect();
            for (index, one) in places.iter().enumerate() {
                for other in &places[index + 1..] {
                    let pair = best_candidate(&[name(*one), name(*other)], self.slices(&[*one, *other]));
                    let pair = pair.filter(|pair| !singles.iter().any(|single| splits(pair, single)));
                    best = better(best, pair);
                }
            }
            best.filter(Candidate::is_localised)
        }
    }

    /// Returns the dimensions and values of a candidate, if it has one slice.
    fn shown(found: Option<Candidate>) -> Option<Vec<(usize, usize)>> {
        let found = found.filter(|found| found.chosen.len() == 1)?;
        let parts = found.dimensions.iter().zip(&found.chosen[0].key);
        let mut parts: Vec<(usize, usize)> =
            parts.map(|(name, value)| (name.parse().unwrap(), value.as_deref().unwrap().parse().unwrap())).collect();
        parts.sort_unstable();
        Some(parts)
    }

    #[test]
    fn planted_single_causes_are_found() {
        let mut random = Random(7);
        let found = (0..100).filter(|_| {
            let (place, value) = (random.below(DIMENSIONS), random.below(VALUES));
            let planted = Planted::new(&mut random, |cell| cell[place] == value);
            shown(planted.found()) == Some(vec![(place, value)])
        });
        let found = found.count();
        assert!(found >= 95, "{found} of 100");
    }

    #[test]
    fn planted_pairs_are_found() {
        let mut random = Random(11);
        let found = (0..100).filter(|_| {
            let one = random.below(DIMENSIONS);
            let other = (one + 1 + random.below(DIMENSIONS - 1)) % DIMENSIONS;
            let (a, b) = (random.below(VALUES), random.below(VALUES));
            let planted = Planted::new(&mut random, |cell| cell[one] == a && cell[other] == b);
            let mut expected = vec![(one, a), (other, b)];
            expected.sort_unstable();
            shown(planted.found()) == Some(expected)
        });
        let found = found.count();
        assert!(found >= 85, "{found} of 100");
    }

    #[test]
    fn pair_that_splits_a_slice_yields_to_the_slice() {
        let slice = |key: &[&str], share: f64, support: f64| Slice {
            key: key.iter().map(|value| Some(Arc::from(*value))).collect(),
            before: Some(support),
            after: Some(support),
            moved: share,
            share,
            support,
        };
        let names = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect::<Vec<Arc<str>>>();
        // The whole slice explains more than the gap, because other slices moved against it.
        let whole = vec![slice(&["b1"], 1.3, 0.3), slice(&["b2"], -0.3, 0.7)];
        let whole = best_candidate(&names(&["b"]), whole).unwrap();
        let parts = |second: &str| {
            let parts = vec![
                slice(&["a1", "b1"], 0.5, 0.05),
                slice(&["a2", second], 0.4, 0.05),
                slice(&["a3", "b1"], 0.3, 0.2),
                slice(&["a1", "b2"], -0.2, 0.7),
            ];
            best_candidate(&names(&["a", "b"]), parts).unwrap()
        };
        assert!(parts("b1").lift > whole.lift, "{whole:?}");
        assert!(splits(&parts("b1"), &whole));
        assert!(!splits(&parts("b2"), &whole));
    }

    #[test]
    fn dimensions_that_determine_the_value_are_recognized() {
        let slice = |before: Option<f64>, after: Option<f64>| Slice {
            key: Vec::new(),
            before,
            after,
            moved: 0.0,
            share: 0.0,
            support: 0.0,
        };
        let flag = [slice(Some(0.0), Some(0.0)), slice(Some(1.0), Some(1.0)), slice(None, Some(0.0))];
        assert!(determines_the_value(&flag));
        // A price of each product is not the same for all products, so a change of their mix is a cause.
        let prices = [slice(Some(0.0), Some(0.0)), slice(Some(5.0), Some(5.0)), slice(Some(9.0), Some(9.0))];
        assert!(!determines_the_value(&prices));
        let plans = [slice(Some(0.0), Some(0.0)), slice(Some(5.0), Some(5.0))];
        assert!(!determines_the_value(&plans));
        let rates = [slice(Some(0.0), Some(0.0)), slice(Some(1.0), Some(0.9))];
        assert!(!determines_the_value(&rates));
        assert!(!determines_the_value(&[slice(Some(0.5), Some(0.5))]));
    }

    #[test]
    fn broad_changes_are_not_localised() {
        let mut random = Random(13);
        for _ in 0..50 {
            assert_eq!(Planted::new(&mut random, |_| true).found(), None);
        }
    }

    #[test]
    fn shares_add_up() {
        let mut random = Random(17);
        let planted = Planted::new(&mut random, |cell| cell[0] == 1);
        for places in [&[0][..], &[1], &[0, 2]] {
            let sum: f64 = planted.slices(places).iter().map(|slice| slice.share).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        }
        // Averages: 3 rows of 10 and 1 row of 2 became 2 rows of 9 and 2 rows of 2.
        let group = |value, rows| Group { value: Some(value), rows };
        let history = group(8.0, 4.0);
        let frame = Frame { expected: 8.0, actual: 5.5, scale: 1.0, steps: 1.0, is_exact: false, history };
        let key = |text: &str| vec![Some(Arc::from(text))];
        let slices = slices_of(
            vec![(key("a"), group(9.0, 2.0)), (key("b"), group(2.0, 2.0))],
            vec![(key("a"), group(10.0, 3.0)), (key("b"), group(2.0, 1.0))],
            &frame,
        );
        assert!((slices.iter().map(|slice| slice.share).sum::<f64>() - 1.0).abs() < 1e-9, "{slices:?}");
        // The measure fell by 2.5, from 8 to 5.5. Of this, `a` caused 0.5 by its rate and 0.5 by the mix. `b` caused
        // 1.5 by the mix.
        assert!((slices[0].share - 0.4).abs() < 1e-9 && (slices[1].share - 0.6).abs() < 1e-9, "{slices:?}");
        // A group without a value has no weight. Its missing value is shown as missing, and is not 0.
        let none = |rows| Group { value: None, rows };
        let slices = slices_of(
            vec![(key("a"), group(9.0, 2.0)), (key("b"), group(2.0, 2.0)), (key("c"), none(50.0))],
            vec![(key("a"), group(10.0, 3.0)), (key("b"), group(2.0, 1.0)), (key("c"), none(1.0))],
            &Frame { expected: 16.0, scale: 2.0, ..frame },
        );
        let shown: Vec<_> = slices.iter().map(|slice| (slice.before, slice.after, slice.share)).collect();
        assert_eq!(shown[2], (None, None, 0.0));
        assert_eq!((shown[0].0, shown[0].1), (Some(10.0), Some(9.0)));
        assert!((shown[0].2 - 0.4).abs() < 1e-9, "{shown:?}");
        // The value rose above its history but is below the expected value, so its slices do not explain the gap.
        let up = vec![(key("a"), group(11.0, 3.0)), (key("b"), group(2.0, 1.0))];
        let history = vec![(key("a"), group(10.0, 3.0)), (key("b"), group(2.0, 1.0))];
        let slices = slices_of(up, history, &Frame { expected: 20.0, actual: 8.75, ..frame });
        assert!(slices.iter().all(|slice| slice.share == 0.0), "{slices:?}");
    }
}
