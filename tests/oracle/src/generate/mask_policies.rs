//! Generates masks that fit existing dimensions, and denied members.
//!
//! In: the generator and a world. Out: mask policies on one or two cubes. Not here: their effects (`world`, `oracle`).

use super::Generator;
use crate::world::{Cell, Cube, Dimension, DimensionKind, Mask, MaskPolicy, World};

pub fn mask_policies(generator: &mut Generator, world: &World) -> Vec<MaskPolicy> {
    (0..1 + generator.random.below(2)).filter_map(|_| mask_policy(generator, world)).collect()
}

fn mask_policy(generator: &mut Generator, world: &World) -> Option<MaskPolicy> {
    let cube = generator.random.of(&world.cubes);
    let count = generator.random.below(3);
    let masked = generator.random.some(&cube.dimensions, count);
    let masks: Vec<_> = masked.iter().map(|dimension| (dimension.name.clone(), mask(generator, dimension))).collect();
    let deny = match masks.is_empty() || generator.random.chance(30) {
        true => vec![some_member(generator, cube)],
        false => Vec::new(),
    };
    let allow_aggregate = generator.random.chance(40);
    let is_for_others = generator.random.chance(10);
    Some(MaskPolicy { cube: cube.name.clone(), masks, deny, allow_aggregate, is_for_others })
}

/// Returns a mask. Only strings can be hashed or partially masked.
fn mask(generator: &mut Generator, dimension: &Dimension) -> Mask {
    match (dimension.kind, generator.random.below(4)) {
        (DimensionKind::String, 0) => Mask::Hash,
        (DimensionKind::String, 1) => Mask::Partial,
        (DimensionKind::String, 2) => Mask::Constant(Cell::Text("hidden".to_owned())),
        (DimensionKind::Number, 0 | 1) => Mask::Constant(Cell::Int(7)),
        (DimensionKind::Boolean, 0) => Mask::Constant(Cell::Bool(true)),
        _ => Mask::Null,
    }
}

fn some_member(generator: &mut Generator, cube: &Cube) -> String {
    let dimensions = cube.dimensions.iter().map(|dimension| &dimension.name);
    let measures = cube.measures.iter().map(|measure| &measure.name);
    let segments = cube.segments.iter().map(|segment| &segment.name);
    let all: Vec<&String> = dimensions.chain(measures).chain(segments).collect();
    (*generator.random.of(&all)).clone()
}
