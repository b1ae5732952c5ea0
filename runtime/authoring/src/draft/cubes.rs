//! Drafts cubes and sources from tables.
//!
//! In: tables with keys and references. Out: a [`ProjectDraft`]: definitions as files, and notes for a person. SQL
//! uses the names of the warehouse's columns; members get snake_case names.

use std::sync::Arc;

use terrane_compiler::model::{self, Model};
use terrane_compiler::project::{self, Inputs, SourceTree};

use super::classify::{NumberRole, classify, role};
use super::column_kind::ColumnKind;
use super::joins::{self, Aliases, Join};
use super::table::{Column, Evidence, Table};
use crate::PROJECT_FILE;
use crate::names::{self, Taken, column_sql, snake, snake_or};
use crate::yaml::{Yaml, document};

#[derive(Debug)]
pub struct ProjectDraft {
    pub cubes: Vec<DraftCube>,
    /// The path inside the project and the text of each file.
    pub files: Vec<(String, String)>,
    /// Facts that a person should know, such as tables that could not be read.
    pub notes: Vec<String>,
}

/// A summary of one cube.
#[derive(Debug)]
pub struct DraftCube {
    pub name: String,
    /// The table's name in the warehouse, such as `shop.orders`.
    pub table: String,
    pub key: Vec<String>,
    pub key_evidence: Evidence,
    pub joins: Vec<Join>,
    pub dimensions: Vec<String>,
    pub measures: Vec<String>,
    /// Columns without a member, with their types.
    pub left_out: Vec<(String, String)>,
    /// Sentences that say which columns of numbers became dimensions or measures, and why.
    pub numbers: Vec<String>,
}

/// The largest number of joins that are renamed because a cube has two equally short join paths.
const MAX_RENAMES: usize = 500;
const GREETING: &str = "Created by `terrane init`. Change names, measures and descriptions as you like.";

pub(super) fn draft(tables: &[Table], warehouse: &str, notes: Vec<String>) -> ProjectDraft {
    let mut taken = Taken::default();
    let named = tables.iter().enumerate().map(|(at, table)| cube_name(table, at, &mut taken));
    let cubes: Vec<String> = named.collect();
    let mut aliases = Aliases::default();
    let mut all = joins::joins(tables, &cubes, &mut taken, &mut aliases);
    let drawn = |joins: &[Vec<Join>]| -> Vec<(DraftCube, Yaml)> {
        let each = tables.iter().zip(&cubes).zip(joins);
        each.map(|((table, name), joins)| cube(table, name, joins)).collect()
    };
    for _ in 0..MAX_RENAMES {
        let Some((owner, target)) = second_path(&model_of(&files_of(&drawn(&all)), warehouse), &cubes, &all) else {
            break;
        };
        let join = all[owner].iter_mut().find(|join| join.name == target);
        join.into_iter().for_each(|join| aliases.rename(&mut taken, &cubes[owner], join));
    }
    let drafted = drawn(&all);
    let mut files = sources(tables);
    files.extend(files_of(&drafted));
    ProjectDraft { cubes: drafted.into_iter().map(|(cube, _)| cube).collect(), files, notes }
}

/// Returns the name of a table's cube: `orders`, or with the schema if two tables have the same name.
fn cube_name(table: &Table, at: usize, taken: &mut Taken) -> String {
    let name = snake_or(&table.name, || format!("table_{}", at + 1));
    if taken.has(&name) { taken.take(&snake(&format!("{}_{}", table.schema, table.name))) } else { taken.take(&name) }
}

fn model_of(files: &[(String, String)], warehouse: &str) -> Model {
    let texts = files.iter().map(|(path, text)| (Arc::from(path.as_str()), Arc::from(text.as_str())));
    let mut tree = SourceTree { files: texts.collect() };
    tree.files.insert(PROJECT_FILE.into(), "name: draft\n".into());
    let inputs = Inputs { warehouse: warehouse.into(), ..Inputs::default() };
    model::build(&project::read(&tree, &inputs).0).0
}

/// Finds two join paths of the same length between two cubes. Returns the last join of the second path: the index of
/// the cube that has the join, and the join's name. Paths through a role are left out: each role has a path of its own
/// to a cube behind it, and the first join is used there.
fn second_path(model: &Model, cubes: &[String], joins: &[Vec<Join>]) -> Option<(usize, String)> {
    let mut ties = model.cubes.iter().filter(|cube| cube.alias_of.is_none()).flat_map(|cube| model.ties(cube.id));
    ties.find_map(|tie| {
        let owner = tie.other.iter().rev().nth(1).copied().unwrap_or(tie.start);
        let owner = cubes.iter().position(|name| **name == *model.cube(owner).name)?;
        let target = &*model.cube(tie.to).name;
        let join = joins[owner].iter().find(|join| join.name == target && !join.is_alias())?;
        Some((owner, join.name.clone()))
    })
}

fn files_of(cubes: &[(DraftCube, Yaml)]) -> Vec<(String, String)> {
    let file = |(cube, yaml): &(DraftCube, Yaml)| {
        let left_out: Vec<String> = cube.left_out.iter().map(|(name, ty)| format!("{name} ({ty})")).collect();
        let mut comment = GREETING.to_owned();
        if !left_out.is_empty() {
            let left_out = left_out.join(", ");
            comment += &format!("\nOmitted, because their types can be neither grouped nor aggregated: {left_out}.");
        }
        cube.numbers.iter().for_each(|line| comment += &format!("\n{line}"));
        let yaml = Yaml::map([("cubes", Yaml::List(vec![yaml.clone()]))]);
        (format!("cubes/{}.yml", cube.name), document(&comment, &yaml))
    };
    cubes.iter().map(file).collect()
}

fn cube(table: &Table, name: &str, joins: &[Join]) -> (DraftCube, Yaml) {
    let mut members = Members { taken: Taken::default(), dimensions: Vec::new(), measures: Vec::new() };
    members.measure("count", "count", None, None, Some(&names::title(name)));
    let mut left_out = Vec::new();
    let keys_first = (0..table.columns.len()).filter(|at| table.key.contains(at));
    let order: Vec<usize> = keys_first.chain((0..table.columns.len()).filter(|at| !table.key.contains(at))).collect();
    let primary_time = primary_time(table);
    for at in &order {
        let column = &table.columns[*at];
        let what = classify(table, *at);
        if column.kind == ColumnKind::Other {
            left_out.push((column.name.clone(), column.type_name.clone()));
        } else if !what.sum {
            let name = member_name(table, *at);
            members.dimension(&name, column, table.key.contains(at), primary_time == Some(*at));
        }
    }
    for at in &order {
        let (column, what) = (&table.columns[*at], classify(table, *at));
        let (name, sql) = (member_name(table, *at), column_sql(&column.name));
        let named = |lead: &str, known: &[&str]| {
            let is_in_name = known.iter().any(|word| name == *word || name.starts_with(&format!("{word}_")));
            if is_in_name { name.clone() } else { format!("{lead}_{name}") }
        };
        if what.sum {
            let name = named("total", &["total", "sum"]);
            members.measure(&name, "sum", Some(&sql), what.format, None);
        }
        if what.average {
            let name = named("average", &["average", "avg", "mean"]);
            members.measure(&name, "avg", Some(&sql), what.format, None);
        }
    }
    for join in joins {
        let [(own, _)] = &join.columns[..] else { continue };
        let is_key = table.column_index(own).is_some_and(|column| table.key == [column]);
        // A key is different in every row, so a count of distinct keys would only repeat the count of rows.
        if !is_key {
            members.measure(&format!("distinct_{}", join.name), "count_distinct", Some(&column_sql(own)), None, None);
        }
    }
    let Members { dimensions, measures, .. } = members;
    let name_of = |member: &Yaml| member.get("name").and_then(Yaml::as_text).unwrap_or_default().to_owned();
    let drafted = DraftCube {
        name: name.to_owned(),
        table: format!("{}.{}", table.schema, table.name),
        key: table.key.iter().map(|at| table.columns[*at].name.clone()).collect(),
        key_evidence: table.key_evidence,
        joins: joins.to_vec(),
        dimensions: dimensions.iter().map(name_of).collect(),
        measures: measures.iter().map(name_of).collect(),
        left_out,
        numbers: numbers(table),
    };
    let relation = format!("{}.{}", names::identifier(&table.schema), names::identifier(&table.name));
    let mut yaml = Yaml::map([("name", Yaml::text(name)), ("sql_table", Yaml::text(relation))]);
    if let Some(title) = title(&table.name, name) {
        yaml.set("title", Yaml::Text(title));
    }
    if let Some(comment) = &table.comment {
        yaml.set("description", Yaml::text(comment.trim()));
    }
    let lists = [("joins", joins.iter().map(join_yaml).collect()), ("dimensions", dimensions), ("measures", measures)];
    for (key, items) in lists {
        if !items.is_empty() {
            yaml.set(key, Yaml::List(items));
        }
    }
    (drafted, yaml)
}

/// Returns sentences about the columns of numbers that are no keys.
fn numbers(table: &Table) -> Vec<String> {
    let (mut labels, mut rates, mut amounts) = (Vec::new(), Vec::new(), Vec::new());
    for (at, column) in table.columns.iter().enumerate() {
        let name = &column.name;
        match role(table, at) {
            NumberRole::None => {}
            NumberRole::Label(reason) => labels.push(format!("{name} ({reason})")),
            NumberRole::Rate(reason) => rates.push(format!("{name} ({reason})")),
            NumberRole::Share => rates.push(format!("{name} (its values are between 0 and 1)")),
            NumberRole::Amount => amounts.push(name.clone()),
        }
    }
    let sentence = |lead: &str, names: Vec<String>, advice: &str| {
        (!names.is_empty()).then(|| format!("{lead}: {}. {advice}", names.join(", ")))
    };
    let sentences = [
        sentence("Numbers as dimensions", labels, "To add one up, write a measure of type sum."),
        sentence("Numbers with an average, but no sum", rates, "To add one up, write a measure of type sum."),
        sentence("Numbers as measures", amounts, "To group or filter by one, write a dimension of type number."),
    ];
    sentences.into_iter().flatten().collect()
}

/// Returns the name of a column's member: `customer_id`, or `column_3` for a name in another script.
fn member_name(table: &Table, at: usize) -> String {
    snake_or(&table.columns[at].name, || format!("column_{}", at + 1))
}

struct Members {
    taken: Taken,
    dimensions: Vec<Yaml>,
    measures: Vec<Yaml>,
}

impl Members {
    fn dimension(&mut self, name: &str, column: &Column, is_key: bool, is_primary_time: bool) {
        let name = self.taken.take(name);
        let (ty, sql) = match column.kind {
            ColumnKind::Integer | ColumnKind::Decimal | ColumnKind::Float => ("number", column_sql(&column.name)),
            ColumnKind::Boolean => ("boolean", column_sql(&column.name)),
            ColumnKind::Date | ColumnKind::Timestamp | ColumnKind::Instant => ("time", column_sql(&column.name)),
            // The value is cast to text, because engines do not compare text with a UUID.
            ColumnKind::TextLike => {
                ("string", format!("CAST({{CUBE}}.{} AS VARCHAR)", names::identifier(&column.name)))
            }
            ColumnKind::Text | ColumnKind::Other => ("string", column_sql(&column.name)),
        };
        let title = title(&column.name, &name);
        let mut member = Yaml::map([("name", Yaml::Text(name)), ("type", Yaml::text(ty)), ("sql", Yaml::Text(sql))]);
        if is_key {
            member.set("primary_key", Yaml::Boolean(true));
        }
        if is_primary_time {
            member.set("primary_time", Yaml::Boolean(true));
        }
        // Without a zone the instant is unknown, so the value is shown as it is stored.
        if column.kind == ColumnKind::Timestamp {
            member.set("timezone", Yaml::text("none"));
        }
        if let Some(title) = title {
            member.set("title", Yaml::Text(title));
        }
        if let Some(comment) = &column.comment {
            member.set("description", Yaml::text(comment.trim()));
        }
        self.dimensions.push(match &column.note {
            Some(note) => Yaml::Commented(note.clone(), Box::new(member)),
            None => member,
        });
    }

    fn measure(&mut self, name: &str, ty: &str, sql: Option<&str>, format: Option<&str>, title: Option<&str>) {
        let name = self.taken.take(name);
        let title = title.map(str::to_owned).or_else(|| self::title(&name, &name));
        let mut member = Yaml::map([("name", Yaml::Text(name)), ("type", Yaml::text(ty))]);
        for (key, value) in [("sql", sql), ("format", format), ("title", title.as_deref())] {
            if let Some(value) = value {
                member.set(key, Yaml::text(value));
            }
        }
        self.measures.push(member);
    }
}

/// Returns a title if it differs from the one that the name implies: `Customer ID`, `Größe`.
fn title(original: &str, name: &str) -> Option<String> {
    if !original.is_ascii() || original.contains(' ') {
        return Some(original.trim().to_owned()).filter(|title| !title.is_empty());
    }
    let title = names::title(name);
    let plain = name.replace('_', " ");
    (!title.eq_ignore_ascii_case(&plain) || title.chars().skip(1).any(char::is_uppercase)).then_some(title)
}

fn join_yaml(join: &Join) -> Yaml {
    let mut yaml = Yaml::map([("name", Yaml::text(&*join.name))]);
    if join.is_alias() {
        yaml.set("cube", Yaml::text(&*join.cube));
    }
    yaml.set("relationship", Yaml::text("many_to_one"));
    yaml.set("sql", Yaml::Text(join.sql()));
    match (join.evidence, &join.columns[..]) {
        (Evidence::Sampled { found, of }, [(own, other)]) => {
            let comment =
                format!("Found in the data: {found} of {of} sampled values of {own} occur in {}.{other}.", join.cube);
            Yaml::Commented(comment, Box::new(yaml))
        }
        _ => yaml,
    }
}

/// Returns the index of the primary time column of a table with several time columns. The time of an event is preferred
/// to the time of the last change. Of equal candidates, the first column is returned.
fn primary_time(table: &Table) -> Option<usize> {
    const EVENT: &[&str] = &["created", "occurred", "happened", "ordered", "placed", "purchased", "event", "started"];
    const LATER: &[&str] = &[
        "updated",
        "modified",
        "changed",
        "deleted",
        "removed",
        "birth",
        "born",
        "dob",
        "expires",
        "expiry",
        "expired",
        "end",
        "ended",
        "until",
        "shipped",
        "delivered",
        "closed",
        "due",
        "returned",
        "loaded",
        "synced",
        "last",
    ];
    let times: Vec<usize> = (0..table.columns.len()).filter(|at| table.columns[*at].kind.is_time()).collect();
    // A single time dimension is the primary one without being declared.
    if times.len() < 2 {
        return None;
    }
    let one = names::singular(&snake(&table.name));
    times.into_iter().min_by_key(|at| {
        let name = snake(&table.columns[*at].name);
        let words: Vec<&str> = name.split('_').collect();
        let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
        let rank = if has(LATER) {
            3
        } else if has(EVENT) || name.starts_with(&one) {
            0
        } else if matches!(&*name, "date" | "time" | "timestamp" | "ts") {
            1
        } else {
            2
        };
        (rank, table.columns[*at].is_nullable, *at)
    })
}

/// Returns one file of sources for each schema.
fn sources(tables: &[Table]) -> Vec<(String, String)> {
    let mut schemas: Vec<&str> = tables.iter().map(|table| table.schema.as_str()).collect();
    schemas.sort_unstable();
    schemas.dedup();
    let mut taken = Taken::default();
    let file = |schema: &str| {
        let name = taken.take(&snake_or(schema, || "source".to_owned()));
        let of_schema = tables.iter().filter(|table| table.schema == schema).map(source_table);
        let source = Yaml::map([
            ("name", Yaml::text(&*name)),
            ("schema", Yaml::text(schema)),
            ("tables", Yaml::List(of_schema.collect())),
        ]);
        (format!("sources/{name}.yml"), document(GREETING, &Yaml::map([("sources", Yaml::List(vec![source]))])))
    };
    schemas.into_iter().map(file).collect()
}

fn source_table(table: &Table) -> Yaml {
    let mut yaml = Yaml::map([("name", Yaml::text(&*table.name))]);
    if let Some(comment) = &table.comment {
        yaml.set("description", Yaml::text(comment.trim()));
    }
    let columns = table.columns.iter().map(|column| {
        let mut yaml = Yaml::map([("name", Yaml::text(&*column.name)), ("type", Yaml::text(&*column.type_name))]);
        if let Some(comment) = &column.comment {
            yaml.set("description", Yaml::text(comment.trim()));
        }
        yaml
    });
    yaml.set("columns", Yaml::List(columns.collect()));
    yaml
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, columns: &[(&str, ColumnKind)]) -> Table {
        let columns = columns.iter().map(|(name, kind)| Column {
            name: (*name).to_owned(),
            type_name: "VARCHAR".to_owned(),
            kind: *kind,
            is_nullable: true,
            comment: None,
            note: None,
            statistics: None,
        });
        Table {
            schema: "raw".to_owned(),
            name: name.to_owned(),
            comment: None,
            columns: columns.collect(),
            key: Vec::new(),
            key_evidence: Evidence::Declared,
            unique: Vec::new(),
            references: Vec::new(),
        }
    }

    #[test]
    fn columns_in_another_script_are_named_by_position() {
        let tables =
            [table("注文", &[("日本", ColumnKind::Text), ("id", ColumnKind::Text), ("значение", ColumnKind::Float)])];
        let draft = draft(&tables, "duckdb", Vec::new());
        let cube = &draft.cubes[0];
        assert_eq!(cube.name, "table_1");
        assert_eq!(cube.dimensions, ["column_1", "id", "column_3"]);
        assert_eq!(cube.measures, ["count"]);
        assert!(cube.joins.is_empty());
    }

    #[test]
    fn roles_of_numbers_are_explained() {
        let mut orders = table(
            "orders",
            &[
                ("id", ColumnKind::Integer),
                ("zip_code", ColumnKind::Integer),
                ("Year", ColumnKind::Integer),
                ("is_paid", ColumnKind::Integer),
                ("order", ColumnKind::Integer),
                ("unit_price", ColumnKind::Decimal),
                ("amount", ColumnKind::Decimal),
                ("note", ColumnKind::Text),
            ],
        );
        orders.key = vec![0];
        let draft = draft(&[orders, table("notes", &[("note", ColumnKind::Text)])], "duckdb", Vec::new());
        let expected = [
            "Numbers as dimensions: zip_code (its name ends in `code`), Year (by its name), is_paid (its name begins with `is`), \
             order (it has the name of its table). To add one up, write a measure of type sum.",
            "Numbers with an average, but no sum: unit_price (its name has the word `price`). To add one up, write a measure of type sum.",
            "Numbers as measures: amount. To group or filter by one, write a dimension of type number.",
        ];
        assert_eq!(draft.cubes[0].numbers, expected);
        assert!(draft.cubes[1].numbers.is_empty());
        let (_, text) = draft.files.iter().find(|(path, _)| path == "cubes/orders.yml").unwrap();
        assert!(text.contains("# Numbers as measures: amount."), "{text}");
    }
}
