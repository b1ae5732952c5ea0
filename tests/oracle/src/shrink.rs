//! Reduces a difference: removes parts of its case as long as a difference remains.
//!
//! In: a case with a difference. Out: a smaller case with a difference of the same kind. A step is undone if it breaks
//! the world or leads to another kind of difference.

use serde_json::Value as Json;

use crate::case::Case;
use crate::product::Product;
use crate::world::{MeasureKind, World};

/// The largest number of attempts for one case.
const MAX_TRIES: usize = 400;

pub fn shrink(product: &Product, case: Case) -> Case {
    let mut shrinker = Shrinker { product, kind: kind(&case.about), best: case, tries: 0 };
    loop {
        let before = shrinker.tries;
        let changed = shrinker.query() | shrinker.world();
        if !changed || shrinker.tries >= MAX_TRIES || shrinker.tries == before {
            return shrinker.best;
        }
    }
}

/// Returns the kind of a difference, which is the first word of its description: `refused with …`, `row 0, …`.
fn kind(about: &str) -> String {
    about.split([' ', ':']).next().unwrap_or_default().to_owned()
}

struct Shrinker<'p> {
    product: &'p Product,
    kind: String,
    best: Case,
    tries: usize,
}

impl Shrinker<'_> {
    /// Returns whether the case still fails in the same way after a step. If it does, the step is applied.
    fn takes(&mut self, query: Json, world: World) -> bool {
        if self.tries >= MAX_TRIES {
            return false;
        }
        self.tries += 1;
        let case = Case { query, world, ..self.best.clone() };
        match case.difference(self.product) {
            Ok(Some(about)) if kind(&about) == self.kind => {
                self.best = Case { about, ..case };
                true
            }
            _ => false,
        }
    }

    /// Removes keys of objects and items of lists, if the result is still a query.
    fn query(&mut self) -> bool {
        let mut changed = false;
        let mut index = 0;
        while let Some(smaller) = without(&self.best.query, &mut index.clone()) {
            if self.takes(smaller, self.best.world.clone()) {
                changed = true;
            } else {
                index += 1;
            }
        }
        changed
    }

    fn world(&mut self) -> bool {
        let mut changed = self.each(|world| &mut world.metrics);
        changed |= self.each(|world| &mut world.policies);
        changed |= self.each(|world| &mut world.mask_policies);
        changed |= self.each(|world| &mut world.rollups);
        for index in 0..self.best.world.rollups.len() {
            changed |= self.each(|world| &mut world.rollups[index].measures);
            changed |= self.each(|world| &mut world.rollups[index].dimensions);
            changed |= self.each(|world| &mut world.rollups[index].segments);
        }
        for index in 0..self.best.world.mask_policies.len() {
            changed |= self.each(|world| &mut world.mask_policies[index].masks);
            changed |= self.each(|world| &mut world.mask_policies[index].deny);
        }
        changed |= self.each(|world| &mut world.cubes);
        for index in (0..self.best.world.cubes.len()).rev() {
            if index >= self.best.world.cubes.len() {
                continue;
            }
            changed |= self.each(|world| &mut world.cubes[index].rows);
            changed |= self.each(|world| &mut world.cubes[index].measures);
            changed |= self.each(|world| &mut world.cubes[index].dimensions);
            changed |= self.each(|world| &mut world.cubes[index].segments);
            changed |= self.each(|world| &mut world.cubes[index].joins);
            changed |= self.filters(index);
        }
        changed
    }

    /// Tries to remove parts of a list: first the whole list, then ever smaller parts, at last single items.
    fn each<T>(&mut self, list: impl Fn(&mut World) -> &mut Vec<T>) -> bool {
        let mut changed = false;
        let mut size = list(&mut self.best.world.clone()).len();
        while size > 0 {
            let mut at = 0;
            while at < list(&mut self.best.world.clone()).len() {
                let mut world = self.best.world.clone();
                let items = list(&mut world);
                let end = (at + size).min(items.len());
                items.drain(at..end);
                if self.takes(self.best.query.clone(), world) {
                    changed = true;
                } else {
                    at += size;
                }
            }
            size /= 2;
        }
        changed
    }

    /// Removes the filters of measures.
    fn filters(&mut self, cube: usize) -> bool {
        let mut changed = false;
        for index in 0..self.best.world.cubes[cube].measures.len() {
            let mut world = self.best.world.clone();
            let (MeasureKind::Aggregate(aggregate) | MeasureKind::Rolling(aggregate, _)) =
                &mut world.cubes[cube].measures[index].kind
            else {
                continue;
            };
            if !aggregate.filters.is_empty() {
                aggregate.filters.clear();
                changed |= self.takes(self.best.query.clone(), world);
            }
        }
        changed
    }
}

/// Returns the JSON without its `index`-th part, counted depth first; `None` if it has fewer parts.
fn without(json: &Json, index: &mut usize) -> Option<Json> {
    match json {
        Json::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                if *index == 0 {
                    let mut fewer = items.clone();
                    fewer.remove(at);
                    return Some(Json::Array(fewer));
                }
                *index -= 1;
                if let Some(smaller) = without(item, index) {
                    let mut changed = items.clone();
                    changed[at] = smaller;
                    return Some(Json::Array(changed));
                }
            }
            None
        }
        Json::Object(map) => {
            for (key, value) in map {
                if *index == 0 {
                    let mut fewer = map.clone();
                    fewer.remove(key);
                    return Some(Json::Object(fewer));
                }
                *index -= 1;
                if let Some(smaller) = without(value, index) {
                    let mut changed = map.clone();
                    changed.insert(key.clone(), smaller);
                    return Some(Json::Object(changed));
                }
            }
            None
        }
        _ => None,
    }
}
