//! Generates cubes, their tables and their joins.
//!
//! In: the generator. Out: a world whose to-one joins find at most one row and whose primary keys are unique, as
//! `check --data` requires.

use super::Generator;
use super::names::Names;
use crate::world::{Cell, Column, ColumnType, Cube, Join, Relationship, World};

const TYPES: &[ColumnType] = &[
    ColumnType::Text,
    ColumnType::Text,
    ColumnType::Small,
    ColumnType::Small,
    ColumnType::Big,
    ColumnType::Decimal,
    ColumnType::Double,
    ColumnType::Boolean,
    ColumnType::Date,
    ColumnType::Timestamp,
    ColumnType::Timestamp,
    ColumnType::TimestampTz,
];

/// A column that contains primary keys of another cube.
struct ForeignKey {
    cube: usize,
    column: usize,
    is_unique: bool,
}

/// Generates a world.
pub fn world(generator: &mut Generator) -> World {
    let count = 1 + generator.random.below(8).min(generator.random.below(8));
    let mut names = Names::new();
    let mut tables = Names::new();
    let mut cubes: Vec<Cube> = (0..count).map(|index| empty(generator, &mut names, &mut tables, index)).collect();
    let keys = join(generator, &mut cubes, &mut names);
    for index in 0..cubes.len() {
        fill(generator, &mut cubes, index, &keys);
    }
    let mut world = World { cubes, ..World::default() };
    super::members::add(generator, &mut world, &mut names);
    world
}

fn empty(generator: &mut Generator, names: &mut Names, tables: &mut Names, index: usize) -> Cube {
    let mut columns = Names::new();
    let id = Column { name: columns.column(generator, "id"), ty: ColumnType::Small };
    let mut all = vec![id];
    for number in 0..2 + generator.random.below(5) {
        let ty = *generator.random.of(TYPES);
        all.push(Column { name: columns.column(generator, &format!("col{number}")), ty });
    }
    Cube {
        name: names.member(generator, &format!("cube{index}")),
        table: tables.table(generator, &format!("table{index}")),
        columns: all,
        rows: Vec::new(),
        dimensions: Vec::new(),
        measures: Vec::new(),
        segments: Vec::new(),
        joins: Vec::new(),
        is_query: generator.random.chance(15),
    }
}

/// Adds joins in all directions, which may form cycles. Returns the columns with their keys.
fn join(generator: &mut Generator, cubes: &mut [Cube], names: &mut Names) -> Vec<ForeignKey> {
    let mut keys = Vec::new();
    if cubes.len() < 2 && !generator.random.chance(20) {
        return keys;
    }
    let count = generator.random.below(cubes.len() * 2) + usize::from(cubes.len() > 1);
    for number in 0..count {
        let from = generator.random.below(cubes.len());
        let to = generator.random.below(cubes.len());
        let needs_alias = from == to || generator.random.chance(12);
        let has_join = cubes[from].joins.iter().any(|join| join.target() == cubes[to].name && join.cube.is_none());
        if has_join && !needs_alias {
            continue;
        }
        let name = match needs_alias {
            true => names.member(generator, &format!("alias{number}")),
            false => cubes[to].name.clone(),
        };
        let cube = needs_alias.then(|| cubes[to].name.clone());
        let is_unique = generator.random.chance(20);
        let column = cubes[from].columns.len();
        cubes[from].columns.push(Column { name: format!("fk {number}"), ty: ColumnType::Small });
        keys.push(ForeignKey { cube: from, column, is_unique });
        let relationship = if is_unique { Relationship::OneToOne } else { Relationship::ManyToOne };
        cubes[from].joins.push(Join { name, cube, relationship, left: column, right: 0, is_enforced: false });
        // The other cube may declare the same join in the opposite direction.
        let back = cubes[from].name.clone();
        let has_back = cubes[to].joins.iter().any(|join| join.name == back);
        if from != to && !has_back && generator.random.chance(30) {
            let relationship = if is_unique { Relationship::OneToOne } else { Relationship::OneToMany };
            cubes[to].joins.push(Join {
                name: back,
                cube: None,
                relationship,
                left: 0,
                right: column,
                is_enforced: false,
            });
            if !needs_alias && generator.random.chance(30) {
                cubes[from].joins.pop();
            }
        }
    }
    keys
}

fn fill(generator: &mut Generator, cubes: &mut [Cube], index: usize, keys: &[ForeignKey]) {
    let count = match generator.random.below(10) {
        0 => 0,
        1 | 2 => 1,
        _ => 2 + generator.random.below(9),
    };
    for row in 0..count {
        let mut cells = Vec::with_capacity(cubes[index].columns.len());
        for column in 0..cubes[index].columns.len() {
            let key = keys.iter().find(|key| key.cube == index && key.column == column);
            cells.push(match (column, key) {
                (0, _) => Cell::Int(row as i64),
                (_, Some(_)) if generator.random.chance(15) => Cell::Null,
                // The keys of a one-to-one join are unique, and some of them find no row.
                (_, Some(key)) if key.is_unique => Cell::Int(row as i64 * 3 % 11),
                (_, Some(_)) => Cell::Int(generator.random.between(0, 11)),
                (_, None) => generator.cell(cubes[index].columns[column].ty),
            });
        }
        cubes[index].rows.push(cells);
    }
}
