//! Finds undeclared keys and references in the rows of tables.
//!
//! In: tables. Out: keys, proved over all rows, and references, supported by a sample. A reference needs a matching
//! name and matching values, or very distinctive values. Failed statements become notes.

use terrane_app::ports::warehouse::Warehouse;

use super::catalog::{Row, count, rows};
use super::column_kind::ColumnKind;
use super::statements::{self, SAMPLE_ROWS};
use super::table::{Evidence, Reference, Table};
use super::texts::shown;
use crate::names::{is_spelled, singular, snake};

/// The largest number of statements that search for references.
const MAX_STATEMENTS: usize = 2_000;

/// Names of key columns that do not name the table of the key.
const GENERIC: &[&str] = &["id", "uuid", "guid", "key", "code", "number", "no", "name", "slug", "pk"];

/// The last words of the names of keys, the most likely first.
const KEY_WORDS: [&str; 8] = ["id", "key", "uuid", "guid", "code", "number", "no", "nr"];

/// Finds a column that identifies the rows of a table without a declared key.
pub(super) async fn find_key(warehouse: &dyn Warehouse, table: &mut Table, notes: &mut Vec<String>) {
    if !table.key.is_empty() {
        return;
    }
    if let Some(declared) = table.unique.first() {
        table.key = declared.clone();
        return;
    }
    let candidates = key_candidates(table);
    if candidates.is_empty() {
        return;
    }
    let (candidates, counts) = match uniqueness(warehouse, table, candidates).await {
        Ok(found) => found,
        Err(reason) => {
            notes.push(format!("{}: could not look for a key: {reason}", table.name));
            return;
        }
    };
    let total = count(&counts, 0);
    // In a table of one row every column is unique, so uniqueness proves nothing.
    let proved = (0..candidates.len())
        .find(|at| total > 1 && count(&counts, 1 + 2 * at) == total && count(&counts, 2 + 2 * at) == total);
    match proved {
        Some(at) => {
            table.key = vec![candidates[at]];
            table.key_evidence = Evidence::Sampled { found: total, of: total };
        }
        // The first column is a candidate whatever its name is. The reason is of interest only if the column is
        // named like a key.
        None if total > 1 && candidates.first().is_some_and(|first| is_key_name(table, *first)) => {
            let reason = why_no_key(warehouse, table, candidates[0], &counts).await;
            notes.push(format!("{}: {reason}, so it is not a key and nothing joins to it", table.name));
        }
        None => {}
    }
}

/// Returns the candidates that may identify the rows, and the counts of [`statements::uniqueness`] over all rows for
/// them. Candidates with a repeated or missing value in a sample are left out, except a first one that is named like a
/// key: the numbers in its note are those of all rows.
///
/// # Errors
/// Returns the warehouse's message about a failed statement.
async fn uniqueness(
    warehouse: &dyn Warehouse,
    table: &Table,
    candidates: Vec<usize>,
) -> Result<(Vec<usize>, Row), String> {
    let first = |found: Vec<Row>| found.into_iter().next().unwrap_or_default();
    let counts = first(rows(warehouse, &statements::uniqueness(table, &candidates, true)).await?);
    let total = count(&counts, 0);
    if total < u64::from(SAMPLE_ROWS) {
        // The sample has all rows.
        return Ok((candidates, counts));
    }
    let is_possible = |at: usize, column: usize| {
        let is_unique = count(&counts, 1 + 2 * at) == total && count(&counts, 2 + 2 * at) == total;
        is_unique || (at == 0 && is_key_name(table, column))
    };
    let candidates: Vec<usize> = candidates
        .iter()
        .enumerate()
        .filter(|(at, column)| is_possible(*at, **column))
        .map(|(_, column)| *column)
        .collect();
    if candidates.is_empty() {
        return Ok((candidates, counts));
    }
    let counts = first(rows(warehouse, &statements::uniqueness(table, &candidates, false)).await?);
    Ok((candidates, counts))
}

/// Returns the reason for which the first candidate does not identify the rows.
async fn why_no_key(warehouse: &dyn Warehouse, table: &Table, column: usize, counts: &[Option<String>]) -> String {
    let name = &table.columns[column].name;
    let (total, values, distinct) = (count(counts, 0), count(counts, 1), count(counts, 2));
    if values < total {
        return format!("`{name}` has no value in {} of {total} rows", total - values);
    }
    let found = rows(warehouse, &statements::repeated(table, column)).await.unwrap_or_default();
    let example = found.first().and_then(|row| Some((row.first()?.as_deref()?, count(row, 1))));
    let example = example.map(|(value, rows)| format!(" (`{}` is in {rows} rows)", shown(value))).unwrap_or_default();
    format!("`{name}` has {distinct} distinct values in {total} rows{example}")
}

/// Returns whether a column is named like a key of its table, or is the first column and named like a key of any table.
fn is_key_name(table: &Table, column: usize) -> bool {
    let name = snake(&table.columns[column].name);
    let last = name.rsplit('_').next();
    key_names(table).contains(&name) || (column == 0 && last.is_some_and(|word| KEY_WORDS.contains(&word)))
}

/// Returns the columns that are named like a key, the most likely first, then the first column whatever its name is.
fn key_candidates(table: &Table) -> Vec<usize> {
    let key_names = key_names(table);
    let named =
        key_names.iter().filter_map(|name| table.columns.iter().position(|column| snake(&column.name) == *name));
    let mut candidates: Vec<usize> = Vec::new();
    for at in named.chain([0]) {
        let is_key = table.columns.get(at).is_some_and(|column| column.kind.is_key());
        if is_key && !candidates.contains(&at) {
            candidates.push(at);
        }
    }
    candidates
}

/// Returns the names of keys of a table, the most likely first.
fn key_names(table: &Table) -> Vec<String> {
    let (all, one) = (snake(&table.name), singular(&snake(&table.name)));
    let mut names: Vec<String> = vec!["id".to_owned()];
    for word in KEY_WORDS {
        names.extend([format!("{one}_{word}"), format!("{one}{word}"), format!("{all}_{word}"), word.to_owned()]);
    }
    names.extend([one, "slug".to_owned(), "pk".to_owned()]);
    names
}

/// A column that may contain another table's key.
struct Candidate {
    table: usize,
    column: usize,
    target: usize,
    is_named: bool,
}

/// Finds references between tables without declared references.
pub(super) async fn find_references(warehouse: &dyn Warehouse, tables: &mut [Table], notes: &mut Vec<String>) {
    notes.extend(other_types(tables));
    let candidates = reference_candidates(tables);
    let mut found: Vec<(Candidate, Evidence)> = Vec::new();
    let mut statements = 0;
    for candidate in candidates {
        let of_column =
            |(known, _): &&(Candidate, Evidence)| known.table == candidate.table && known.column == candidate.column;
        // A reference that was found by name decides the target of its column. Two tables refer to each other in one
        // direction only.
        let is_decided = found.iter().any(|known| of_column(&known) && known.0.is_named)
            || found.iter().any(|(known, _)| known.table == candidate.target && known.target == candidate.table);
        if is_decided {
            continue;
        }
        statements += 1;
        if statements > MAX_STATEMENTS {
            notes.push("not every column was compared with every key: select fewer tables to compare all".to_owned());
            break;
        }
        let (of, target) = (&tables[candidate.table], &tables[candidate.target]);
        let statement = statements::containment(of, candidate.column, target, target.key[0]);
        let counts = match rows(warehouse, &statement).await {
            Ok(rows) => rows.into_iter().next().unwrap_or_default(),
            Err(reason) => {
                let column = &of.columns[candidate.column].name;
                notes.push(format!("could not compare {}.{column} with {}: {reason}", of.name, target.name));
                continue;
            }
        };
        let (all, contained) = (count(&counts, 0), count(&counts, 1));
        // With a matching name, some values may be missing, as is common in files. Without a matching name, there must
        // be at least three values, and nearly all of them must match: flags or the numbers 1 to 9 occur in many keys
        // by accident.
        let is_reference = if candidate.is_named {
            contained > 0 && contained * 2 >= all
        } else {
            all >= 3 && contained * 20 >= all * 19
        };
        if is_reference {
            found.push((candidate, Evidence::Sampled { found: contained, of: all }));
        } else if candidate.is_named && all > 0 {
            let (column, key) = (&of.columns[candidate.column].name, &target.columns[target.key[0]].name);
            notes.push(format!(
                "{}: no join from `{column}` to {}: {contained} of {all} sampled values occur in its `{key}`",
                of.name, target.name
            ));
        }
    }
    let of_same = |a: &Candidate, b: &Candidate| a.table == b.table && a.column == b.column;
    for (at, (candidate, evidence)) in found.iter().enumerate() {
        // Values that match several keys are ambiguous.
        let is_ambiguous = !candidate.is_named
            && found.iter().enumerate().any(|(other, (known, _))| other != at && of_same(known, candidate));
        if !is_ambiguous {
            let target_columns = tables[candidate.target].key.clone();
            tables[candidate.table].references.push(Reference {
                columns: vec![candidate.column],
                target: candidate.target,
                target_columns,
                evidence: *evidence,
            });
        }
    }
    for table in tables {
        table.references.sort_by(|a, b| a.columns.cmp(&b.columns));
    }
}

/// Returns a note for each column that is named after another table's key, but whose type is not compared with the
/// key's type.
fn other_types(tables: &[Table]) -> Vec<String> {
    let mut notes = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        for column in &table.columns {
            for (target, key_table) in tables.iter().enumerate() {
                let [key] = key_table.key[..] else { continue };
                let key = &key_table.columns[key];
                let is_named = at != target && is_named_after(&column.name, &key_table.name, &key.name);
                if is_named && key.kind != column.kind && column.kind.is_key() {
                    notes.push(format!(
                        "{}: no join from `{}` ({}) to `{}` of {} ({}), because their types differ",
                        table.name, column.name, column.type_name, key.name, key_table.name, key.type_name
                    ));
                }
            }
        }
    }
    notes
}

/// Returns candidates with matching names first, then text columns.
fn reference_candidates(tables: &[Table]) -> Vec<Candidate> {
    let (mut named, mut unnamed) = (Vec::new(), Vec::new());
    for (at, table) in tables.iter().enumerate() {
        for (column, of) in table.columns.iter().enumerate() {
            for (target, key_table) in tables.iter().enumerate() {
                let [key] = key_table.key[..] else { continue };
                let is_itself = at == target && key == column;
                if is_itself || key_table.columns[key].kind != of.kind || !of.kind.is_key() {
                    continue;
                }
                let is_named = is_named_after(&of.name, &key_table.name, &key_table.columns[key].name);
                let candidate = Candidate { table: at, column, target, is_named };
                if is_named {
                    named.push(candidate);
                } else if of.kind == ColumnKind::Text && at != target && table.key != [column] {
                    unnamed.push(candidate);
                }
            }
        }
    }
    named.extend(unnamed);
    named
}

/// Returns true if a column is named after a table's key: `customer_id`, `billing_customer_id`, `customerid`, or
/// `tailnum` if that is the key's own name.
fn is_named_after(column: &str, table: &str, key: &str) -> bool {
    // The ASCII remainder of a name in another script has no meaning.
    if ![column, table, key].into_iter().all(is_spelled) {
        return false;
    }
    let (column, table, key) = (snake(column), snake(table), snake(key));
    let one = singular(&table);
    let mut names = vec![format!("{one}_{key}"), format!("{table}_{key}"), format!("{one}{key}")];
    if GENERIC.contains(&&*key) {
        names.push(one);
    } else {
        names.push(key);
    }
    names.iter().any(|name| column == *name || column.ends_with(&format!("_{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_recognized_by_name() {
        let cases = [
            ("customer_id", "customers", "id", true),
            ("billing_customer_id", "customers", "id", true),
            ("CustomerID", "Customers", "ID", true),
            ("customer_id", "customers", "customer_id", true),
            ("tailnum", "planes", "tailnum", true),
            ("origin", "airports", "faa", false),
            ("id", "customers", "id", false),
            ("code", "countries", "code", false),
            ("country_code", "countries", "code", true),
            ("name", "customers", "name", false),
            ("product_id", "customers", "id", false),
            ("日本", "t", "значение", false),
            ("日本_id", "customers", "id", false),
        ];
        for (column, table, key, is_named) in cases {
            assert_eq!(is_named_after(column, table, key), is_named, "{column} → {table}.{key}");
        }
    }
}
