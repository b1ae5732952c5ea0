//! The data of the other side: equal in everything that the caller may see.
//!
//! In: a world whose cubes have a last column of tags ([`CODE`]). Out: the same world with other hidden rows and other
//! masked values. These values stay: the rows that the caller sees; the columns that joins, row filters and distinct
//! keys read unmasked; the first character of a partial mask; strings under a hash mask. After each change,
//! the oracle's own filter checks that the same rows are visible.

use std::collections::{BTreeMap, BTreeSet};

use terrane_oracle_tests::random::Random;
use terrane_oracle_tests::world::{Cell, ColumnType, Cube, Expr, Mask, RowPolicy, World};

use super::people;

/// The last column of every table. It contains tags while data is generated, then codes that answers must not disclose
/// for hidden rows.
pub(super) const CODE: &str = "canary_code";
/// The beginning of every code of a hidden row. No answer may contain it.
pub const CANARY: &str = "x-canary";

const WORDS: &[&str] = &["a", "A", "b", "zz", "é", "😀", "%", "O'Hara", "0", "-5", "true", "2024-01-01", "x.y"];
const SMALL: &[i64] = &[0, 1, 2, 7, -3, i32::MAX as i64, i32::MIN as i64];
const BIG: &[i64] = &[0, 5, -1, i64::MAX, i64::MIN];
const CENTS: &[i64] = &[0, 125, -999, 999_999_999_999_999_999];
const DOUBLES: &[f64] = &[0.0, 1.5, -2.25, 1e300];

/// The changes that a value of a masked column allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freedom {
    Any,
    /// Everything after the first character may change. The empty string and null must not.
    AfterFirstCharacter,
}

/// Adds the column of tags. Each row gets a tag of its own.
pub(super) fn add_tags(world: &mut World) {
    for cube in &mut world.cubes {
        cube.columns.push(terrane_oracle_tests::world::Column { name: CODE.to_owned(), ty: ColumnType::Text });
        for (index, row) in cube.rows.iter_mut().enumerate() {
            row.push(Cell::Text(format!("#{index}")));
        }
    }
}

/// Creates the other side of a tagged world.
pub(super) fn other_side(world: &World, random: &mut Random) -> World {
    let visible = visible_rows(world);
    let mut other = world.clone();
    for index in 0..other.cubes.len() {
        let before = other.cubes[index].rows.clone();
        change_hidden_rows(&mut other.cubes[index], &visible[index], random);
        if visible_rows(&other) != visible {
            other.cubes[index].rows = before;
        }
    }
    for index in 0..other.cubes.len() {
        let before = other.cubes[index].rows.clone();
        change_masked_values(world, &mut other.cubes[index], random);
        if tags_of(&visible_rows(&other)) != tags_of(&visible) {
            other.cubes[index].rows = before;
        }
    }
    other
}

/// Replaces tags with codes: numbers on rows that the caller sees, canaries on hidden rows.
pub(super) fn replace_tags(world: &mut World, side: &str) {
    let visible = tags_of(&visible_rows(world));
    for (cube, visible) in world.cubes.iter_mut().zip(visible) {
        let code = cube.columns.len() - 1;
        for row in &mut cube.rows {
            let tag = text_of(&row[code]).to_owned();
            let number = tag.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().unwrap_or_default();
            row[code] = Cell::Text(match visible.contains(&tag) {
                true => (1 + number % 3).to_string(),
                false => format!("{CANARY}-{side}-{number}"),
            });
        }
    }
}

/// Returns the number of hidden rows, and the number of cells that differ in visible rows.
pub(super) fn differences(left: &World, right: &World) -> (usize, usize) {
    let is_hidden = |cube: &Cube, row: &&Vec<Cell>| text_of(&row[cube.columns.len() - 1]).starts_with(CANARY);
    let hidden = left.cubes.iter().map(|cube| cube.rows.iter().filter(|row| is_hidden(cube, row)).count()).sum();
    let shown = |world: &World| -> Vec<Vec<Cell>> {
        let cubes = world.cubes.iter();
        cubes.flat_map(|cube| cube.rows.iter().filter(|row| !is_hidden(cube, row)).cloned()).collect()
    };
    let (left, right) = (shown(left), shown(right));
    let cells = left.iter().flatten().zip(right.iter().flatten()).filter(|(left, right)| left != right).count();
    (hidden, cells)
}

/// Changes a value that the caller sees, so that the attack must find a difference.
pub(super) fn change_visible_value(world: &mut World, random: &mut Random) {
    let visible = tags_of(&visible_rows(world));
    for (cube, visible) in world.cubes.iter_mut().zip(visible) {
        let code = cube.columns.len() - 1;
        let types: Vec<ColumnType> = cube.columns.iter().map(|column| column.ty).collect();
        for row in cube.rows.iter_mut().filter(|row| visible.contains(text_of(&row[code]))) {
            for (column, ty) in types.iter().enumerate().take(code).skip(1) {
                row[column] = cell(*ty, random);
            }
        }
    }
}

fn visible_rows(world: &World) -> Vec<Vec<Vec<Cell>>> {
    world.seen().cubes.iter().map(|cube| cube.rows.clone()).collect()
}

fn tags_of(rows: &[Vec<Vec<Cell>>]) -> Vec<BTreeSet<String>> {
    let tag = |row: &Vec<Cell>| row.last().map(|cell| text_of(cell).to_owned()).unwrap_or_default();
    rows.iter().map(|rows| rows.iter().map(tag).collect()).collect()
}

fn text_of(cell: &Cell) -> &str {
    match cell {
        Cell::Text(text) => text,
        _ => "",
    }
}

fn change_hidden_rows(cube: &mut Cube, visible: &[Vec<Cell>], random: &mut Random) {
    let code = cube.columns.len() - 1;
    let shown: BTreeSet<&str> = visible.iter().map(|row| text_of(&row[code])).collect();
    let mut used: BTreeSet<i64> = cube.rows.iter().filter_map(|row| id_of(row)).collect();
    let types: Vec<ColumnType> = cube.columns.iter().map(|column| column.ty).collect();
    let mut rows = Vec::with_capacity(cube.rows.len());
    for (index, row) in cube.rows.iter().enumerate() {
        if shown.contains(text_of(&row[code])) {
            rows.push(row.clone());
            continue;
        }
        match random.below(5) {
            0 => {}
            1 => rows.extend([row.clone(), tagged(row, index + 1_000)]),
            2 => {
                let mut moved = changed(row, &types, people::is_people(cube), random);
                moved[0] = Cell::Int(unused(&mut used));
                rows.push(moved);
            }
            _ => rows.push(changed(row, &types, people::is_people(cube), random)),
        }
    }
    // The new row resembles a hidden row, or a visible row that the filter may hide after the change.
    let pattern = cube.rows.iter().find(|row| !shown.contains(text_of(&row[code])));
    if let Some(pattern) = pattern.filter(|_| random.chance(60)) {
        let mut new = changed(&tagged(pattern, 2_000), &types, people::is_people(cube), random);
        new[0] = Cell::Int(unused(&mut used));
        let at = random.below(rows.len() + 1);
        rows.insert(at, new);
    }
    cube.rows = rows;
}

fn tagged(row: &[Cell], number: usize) -> Vec<Cell> {
    let mut row = row.to_vec();
    if let Some(tag) = row.last_mut() {
        *tag = Cell::Text(format!("#{number}"));
    }
    row
}

/// Returns the row with one to three other values. The id and the tag do not change.
fn changed(row: &[Cell], types: &[ColumnType], has_plain_texts: bool, random: &mut Random) -> Vec<Cell> {
    let mut row = row.to_vec();
    for _ in 0..1 + random.below(3) {
        let column = 1 + random.below(types.len() - 1);
        if column + 1 < types.len() {
            row[column] =
                if has_plain_texts { people::hidden_cell(column, random) } else { cell(types[column], random) };
        }
    }
    row
}

fn id_of(row: &[Cell]) -> Option<i64> {
    match row.first() {
        Some(Cell::Int(id)) => Some(*id),
        _ => None,
    }
}

fn unused(used: &mut BTreeSet<i64>) -> i64 {
    // Takes the smallest unused id. Foreign keys are at most 11, so a visible row may refer to the new hidden row.
    let id = (0..).find(|id| !used.contains(id)).unwrap_or_default();
    used.insert(id);
    id
}

fn cell(ty: ColumnType, random: &mut Random) -> Cell {
    if random.chance(10) {
        return Cell::Null;
    }
    match ty {
        ColumnType::Text => Cell::Text((*random.of(WORDS)).to_owned()),
        ColumnType::Small => Cell::Int(*random.of(SMALL)),
        ColumnType::Big => Cell::Int(*random.of(BIG)),
        ColumnType::Decimal => Cell::Cents(*random.of(CENTS)),
        ColumnType::Double => Cell::Double(*random.of(DOUBLES)),
        ColumnType::Boolean => Cell::Bool(random.chance(50)),
        ColumnType::Date => Cell::Day(random.between(0, 20_000) as i32),
        ColumnType::Timestamp | ColumnType::TimestampTz => Cell::Micros(random.between(0, 1_700_000_000) * 1_000_000),
    }
}

fn change_masked_values(world: &World, cube: &mut Cube, random: &mut Random) {
    let types: Vec<ColumnType> = cube.columns.iter().map(|column| column.ty).collect();
    let is_people = people::is_people(cube);
    for (column, freedom) in free_columns(world, cube) {
        for row in &mut cube.rows {
            let new = if is_people { people::masked_cell(random) } else { cell(types[column], random) };
            row[column] = match (freedom, &row[column]) {
                (Freedom::Any, _) => new,
                (Freedom::AfterFirstCharacter, Cell::Text(text)) if !text.is_empty() => {
                    let first: String = text.chars().take(1).collect();
                    Cell::Text(format!("{first}{}", random.below(1_000)))
                }
                (Freedom::AfterFirstCharacter, old) => old.clone(),
            };
        }
    }
}

/// Returns the columns whose raw values must not affect any answer.
fn free_columns(world: &World, cube: &Cube) -> BTreeMap<usize, Freedom> {
    let raw = raw_columns(world, cube);
    let columns = (1..cube.columns.len() - 1).filter(|column| !raw.contains(column));
    columns.filter_map(|column| Some((column, freedom(world, cube, column)?))).collect()
}

fn freedom(world: &World, cube: &Cube, column: usize) -> Option<Freedom> {
    let mask_policies =
        || world.mask_policies.iter().filter(|mask_policy| !mask_policy.is_for_others && mask_policy.cube == cube.name);
    let over = |name: &str| cube.dimension(name).filter(|dimension| dimension.sql == Expr::own(column));
    let covers = |name: &String| over(name).is_some();
    let covering: Vec<_> = mask_policies()
        .filter(|mask_policy| {
            mask_policy.masks.iter().any(|(name, _)| covers(name)) || mask_policy.deny.iter().any(covers)
        })
        .collect();
    if covering.is_empty() || covering.iter().any(|mask_policy| mask_policy.allow_aggregate) {
        return None;
    }
    // A partial or hash mask shows something of the column's value, so the value must be the same on both sides. Only
    // if a partial mask applies to the plain column may the value differ after its first character.
    let masks = mask_policies().flat_map(|mask_policy| &mask_policy.masks);
    let mut freedom = Freedom::Any;
    for (name, mask) in masks {
        let Some(dimension) = cube.dimension(name) else { continue };
        let reads = reads(&dimension.sql, column);
        match mask {
            Mask::Null | Mask::Constant(_) => {}
            Mask::Partial if covers(name) && cube.columns[column].ty == ColumnType::Text => {
                freedom = Freedom::AfterFirstCharacter;
            }
            Mask::Partial | Mask::Hash if reads => return None,
            Mask::Partial | Mask::Hash => {}
        }
    }
    Some(freedom)
}

fn reads(sql: &Expr, column: usize) -> bool {
    match sql {
        Expr::Column { column: own, .. } => *own == column,
        // The member may read any column.
        Expr::Member { .. } => true,
        other => other.parts().into_iter().any(|part| reads(part, column)),
    }
}

/// Returns the columns of join keys and row filters. Answers may depend on the raw values of these columns.
fn raw_columns(world: &World, cube: &Cube) -> BTreeSet<usize> {
    let mut raw = BTreeSet::new();
    for other in &world.cubes {
        for join in &other.joins {
            raw.extend((other.name == cube.name).then_some(join.left));
            raw.extend((join.target() == cube.name).then_some(join.right));
        }
    }
    for policy in &world.policies {
        let Some(own) = world.cube(&policy.cube) else { continue };
        let mut columns = Vec::new();
        match &policy.row_filter {
            RowPolicy::Condition(sql) => columns_of(sql, &mut columns),
            RowPolicy::Attribute { column, .. } => columns_of(column, &mut columns),
            RowPolicy::Hook { .. } => {}
        }
        for (of, column) in columns {
            let of = of.map_or(Some(own), |name| world.behind(&name));
            raw.extend(of.filter(|of| of.name == cube.name).map(|_| column));
        }
    }
    raw
}

fn columns_of(sql: &Expr, found: &mut Vec<(Option<String>, usize)>) {
    match sql {
        Expr::Column { cube, column } => found.push((cube.clone(), *column)),
        other => other.parts().into_iter().for_each(|part| columns_of(part, found)),
    }
}
