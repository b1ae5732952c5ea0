//! Keys and references that no catalog has, found by looking at rows.
//!
//! In: tables. Out: their keys, proved over all rows, and references, made probable by a sample. A name
//! alone proves nothing and values alone little, so a reference needs both, or very telling values. What
//! could not be looked at is noted.

use terrane_app::ports::warehouse::Warehouse;

use super::catalog::{count, rows};
use super::kind::Kind;
use super::statements;
use super::table::{Evidence, Reference, Table};
use crate::authoring::names::{is_spelled, singular, snake};

/// Statements that looking for references may cost.
const MAX_STATEMENTS: usize = 2_000;

/// Key names that say nothing of their table.
const GENERIC: &[&str] = &["id", "uuid", "guid", "key", "code", "number", "no", "name", "slug", "pk"];

/// Finds a column that tells the rows of a table without a declared key apart.
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
    let counts = match rows(warehouse, &statements::uniqueness(table, &candidates)).await {
        Ok(rows) => rows.into_iter().next().unwrap_or_default(),
        Err(why) => {
            notes.push(format!("{}: no key was looked for: {why}", table.name));
            return;
        }
    };
    let total = count(&counts, 0);
    // Any column of one row is unique.
    let proved = (0..candidates.len())
        .find(|at| total > 1 && count(&counts, 1 + 2 * at) == total && count(&counts, 2 + 2 * at) == total);
    if let Some(at) = proved {
        table.key = vec![candidates[at]];
        table.key_evidence = Evidence::Found { found: total, of: total };
    }
}

/// Columns that are called like a key, the likeliest first; the first column may be one whatever its name.
fn key_candidates(table: &Table) -> Vec<usize> {
    let (all, one) = (snake(&table.name), singular(&snake(&table.name)));
    let mut wanted: Vec<String> = vec!["id".to_owned()];
    for word in ["id", "key", "uuid", "guid", "code", "number", "no", "nr"] {
        wanted.extend([format!("{one}_{word}"), format!("{one}{word}"), format!("{all}_{word}"), word.to_owned()]);
    }
    wanted.extend([one, "slug".to_owned(), "pk".to_owned()]);
    let named = wanted.iter().filter_map(|name| table.columns.iter().position(|column| snake(&column.name) == *name));
    let mut candidates: Vec<usize> = Vec::new();
    for at in named.chain([0]) {
        let is_key = table.columns.get(at).is_some_and(|column| column.kind.is_key());
        if is_key && !candidates.contains(&at) {
            candidates.push(at);
        }
    }
    candidates
}

/// A column that may hold another table's key.
struct Candidate {
    table: usize,
    column: usize,
    target: usize,
    is_named: bool,
}

/// Finds references between tables that declare none.
pub(super) async fn find_references(warehouse: &dyn Warehouse, tables: &mut [Table], notes: &mut Vec<String>) {
    let candidates = reference_candidates(tables);
    let mut found: Vec<(Candidate, Evidence)> = Vec::new();
    let mut statements = 0;
    for candidate in candidates {
        let of_column =
            |(known, _): &&(Candidate, Evidence)| known.table == candidate.table && known.column == candidate.column;
        // A name settles what a column refers to; two tables may share their keys in one direction only.
        let is_settled = found.iter().any(|known| of_column(&known) && known.0.is_named)
            || found.iter().any(|(known, _)| known.table == candidate.target && known.target == candidate.table);
        if is_settled {
            continue;
        }
        statements += 1;
        if statements > MAX_STATEMENTS {
            notes.push("not every column was held against every key: choose fewer tables to have that".to_owned());
            break;
        }
        let (of, target) = (&tables[candidate.table], &tables[candidate.target]);
        let statement = statements::containment(of, candidate.column, target, target.key[0]);
        let counts = match rows(warehouse, &statement).await {
            Ok(rows) => rows.into_iter().next().unwrap_or_default(),
            Err(why) => {
                let column = &of.columns[candidate.column].name;
                notes.push(format!("{}.{column} was not held against {}: {why}", of.name, target.name));
                continue;
            }
        };
        let (all, contained) = (count(&counts, 0), count(&counts, 1));
        // Where the name says it, a reference may miss here and there, as they do in files. Where only the
        // values say it, nearly all of them must be there, and several: two flags, or the numbers 1 to 9,
        // are found in many keys by accident.
        let is_reference = if candidate.is_named {
            contained > 0 && contained * 2 >= all
        } else {
            all >= 3 && contained * 20 >= all * 19
        };
        if is_reference {
            found.push((candidate, Evidence::Found { found: contained, of: all }));
        }
    }
    let of_same = |a: &Candidate, b: &Candidate| a.table == b.table && a.column == b.column;
    for (at, (candidate, evidence)) in found.iter().enumerate() {
        // Values that fit into several keys tell nothing.
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

/// By name first; then texts that might be anything's key.
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
                } else if of.kind == Kind::Text && at != target && table.key != [column] {
                    unnamed.push(candidate);
                }
            }
        }
    }
    named.extend(unnamed);
    named
}

/// `customer_id`, `billing_customer_id`, `customerid`; `tailnum` where that is the key's own name.
fn is_named_after(column: &str, table: &str, key: &str) -> bool {
    // What is left of a name in another script says nothing.
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
    fn references_are_known_by_their_names() {
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
