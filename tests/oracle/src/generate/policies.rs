//! Generates row filters of policies over existing columns.
//!
//! In: the generator and a world. Out: policies, which hide rows of the first cube in most worlds. Not here: which rows
//! they hide (`world`).

use super::Generator;
use crate::world::{
    BOOLEAN_ATTRIBUTES, Cell, ColumnType, Cube, Expr, NUMBER_ATTRIBUTES, Policy, RowPolicy, TEXT_ATTRIBUTES, World,
};

/// Returns policies. A filter may read a cube that a to-one join reaches, if no policy hides rows of that cube.
pub fn policies(generator: &mut Generator, world: &World) -> Vec<Policy> {
    let mut policies: Vec<Policy> = Vec::new();
    for _ in 0..1 + generator.random.below(3) {
        let cube = generator.random.of(&world.cubes);
        if generator.random.chance(40) {
            let row_filter = hook(generator, world, cube);
            policies.extend(row_filter.map(|row_filter| Policy {
                cube: cube.name.clone(),
                row_filter,
                is_for_others: false,
            }));
            continue;
        }
        let row_filter = match generator.random.chance(30) {
            true => RowPolicy::Condition(generator.condition(cube, true)),
            false => match attribute(generator, world, cube) {
                Some(row_filter) => row_filter,
                None => continue,
            },
        };
        let is_for_others = generator.random.chance(10);
        policies.push(Policy { cube: cube.name.clone(), row_filter, is_for_others });
    }
    // The result of a filter that reads a cube whose rows another policy hides is not defined.
    let hidden: Vec<String> = policies.iter().map(|policy| policy.cube.clone()).collect();
    policies.retain(|policy| match &policy.row_filter {
        RowPolicy::Attribute { column: Expr::Column { cube: Some(joined), .. }, .. } => {
            world.behind(joined).is_none_or(|target| !hidden.contains(&target.name))
        }
        _ => true,
    });
    policies
}

/// Returns the row filter of a hook, with values from the rows of the cube and sometimes null.
fn hook(generator: &mut Generator, world: &World, cube: &Cube) -> Option<RowPolicy> {
    // If two cubes read one table, a hook would have to name both.
    if world.cubes.iter().filter(|other| other.table == cube.table).count() > 1 {
        return None;
    }
    let names: Vec<&String> = cube.dimensions.iter().map(|dimension| &dimension.name).collect();
    let names: Vec<&String> = names.into_iter().filter(|name| cube.hooked(name).is_some()).collect();
    if names.is_empty() || cube.rows.is_empty() {
        return None;
    }
    let name = (*generator.random.of(&names)).clone();
    let (_, column) = cube.hooked(&name)?;
    let mut values: Vec<Cell> = Vec::new();
    for _ in 0..generator.random.below(4) {
        values.push(generator.random.of(&cube.rows)[column].clone());
    }
    Some(RowPolicy::Hook { dimension: name, values, is_negated: generator.random.chance(50) })
}

fn attribute(generator: &mut Generator, world: &World, cube: &Cube) -> Option<RowPolicy> {
    let joins: Vec<_> = cube.joins.iter().filter(|join| join.relationship.is_to_one() && join.right == 0).collect();
    let through = (!joins.is_empty() && generator.random.chance(40)).then(|| *generator.random.of(&joins));
    let of = match through {
        Some(join) => world.cube(join.target())?,
        None => cube,
    };
    let fits = |index: &usize| names(of.columns[*index].ty).is_some();
    let columns: Vec<usize> = (0..of.columns.len()).filter(fits).collect();
    let column = *generator.random.of(&columns);
    let attribute = (*generator.random.of(names(of.columns[column].ty)?)).to_owned();
    Some(RowPolicy::Attribute {
        column: Expr::Column { cube: through.map(|join| join.name.clone()), column },
        attribute,
    })
}

/// Returns the names of the attributes with which a column of a type may be compared.
fn names(ty: ColumnType) -> Option<&'static [&'static str]> {
    match ty {
        ColumnType::Text => Some(TEXT_ATTRIBUTES),
        ColumnType::Small | ColumnType::Big | ColumnType::Decimal | ColumnType::Double => Some(NUMBER_ATTRIBUTES),
        ColumnType::Boolean => Some(BOOLEAN_ATTRIBUTES),
        ColumnType::Date | ColumnType::Timestamp | ColumnType::TimestampTz => None,
    }
}
