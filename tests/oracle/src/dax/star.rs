//! The star schema of the DAX queries: two facts, and the table of customers that both join, with policies.
//!
//! In: a seed. Out: rows with nulls, orphans, ties and empty strings, the policies of a caller, and the rows that this
//! caller sees.

use serde_json::{Map, Value as Json, json};
use terrane_compiler::project::SourceTree;

use crate::random::Random;

const PROJECT: &str = r#"
cubes:
  - name: customers
    sql_table: customers
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
      - {name: credit, type: number, sql: credit}
    measures:
      - {name: total_credit, type: sum, sql: credit}
  - name: orders
    sql_table: orders
    joins:
      - {name: customers, relationship: many_to_one, sql: "{orders}.customer_id = {customers}.id"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: status, type: string, sql: status}
      - {name: amount, type: number, sql: amount}
      - {name: is_gift, type: boolean, sql: is_gift}
      - {name: day, type: time, timezone: none, sql: day}
    measures:
      - {name: orders, type: count}
      - {name: revenue, type: sum, sql: amount}
      - {name: smallest, type: min, sql: amount}
      - {name: gifts, type: count, filters: [{sql: "{orders}.is_gift"}]}
  - name: refunds
    sql_table: refunds
    joins:
      - {name: customers, relationship: many_to_one, sql: "{refunds}.customer_id = {customers}.id"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
    measures:
      - {name: refunded, type: sum, sql: amount}
"#;

/// A column, as (table, name).
pub type Column = (&'static str, &'static str);

/// The columns by which queries group and filter.
pub const GROUPS: &[Column] = &[
    ("customers", "region"),
    ("customers", "credit"),
    ("orders", "status"),
    ("orders", "is_gift"),
    ("orders", "amount"),
];

/// The day of an order. Functions of time select its values.
pub const DAY: Column = ("orders", "day");

/// The amount of a refund. It is not a column of the project, but a measure reads it.
pub const REFUND: Column = ("refunds", "amount");

/// Returns the columns of a table that queries can name.
pub fn columns_of(table: &str) -> &'static [Column] {
    match table {
        "customers" => &[("customers", "id"), ("customers", "region"), ("customers", "credit")],
        "orders" => {
            &[("orders", "id"), ("orders", "status"), ("orders", "amount"), ("orders", "is_gift"), ("orders", "day")]
        }
        _ => &[("refunds", "id")],
    }
}

/// Returns the column that marks existing rows of a table. For a fact without a customer, the customer's mark is null.
/// No query names the column; filters by the rows of a table compare it.
pub fn mark_of(table: &str) -> Column {
    match table {
        "customers" => ("customers", MARK),
        "orders" => ("orders", MARK),
        _ => ("refunds", MARK),
    }
}

/// The name of the columns that mark rows.
pub const MARK: &str = "#row";

/// Rows as objects; a missing value is null.
#[derive(Debug, Clone, Default)]
pub struct Data {
    pub customers: Vec<Json>,
    pub orders: Vec<Json>,
    pub refunds: Vec<Json>,
}

/// The policies of the caller.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    pub row_filters: Vec<RowPolicy>,
    pub masks: Vec<(Column, Mask)>,
    pub denied: Vec<Column>,
}

/// A condition that the visible rows of a table meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowPolicy {
    CustomersOfRegion(&'static str),
    CustomersWithCredit,
    OrdersWithStatus(&'static str),
    OrdersWithAmount,
    /// The orders whose customer is in a region and visible to the caller. Row filters apply to every table that a
    /// query reads.
    OrdersOfRegion(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    Null,
    Constant(&'static str),
}

impl Policies {
    /// Generates policies. Half of the callers have none.
    pub fn random(random: &mut Random) -> Policies {
        let mut policies = Policies::default();
        if random.chance(50) {
            return policies;
        }
        let row_filters = [
            RowPolicy::CustomersOfRegion("US"),
            RowPolicy::CustomersWithCredit,
            RowPolicy::OrdersWithStatus("paid"),
            RowPolicy::OrdersWithAmount,
            RowPolicy::OrdersOfRegion("EU"),
        ];
        let count = random.below(3);
        policies.row_filters = random.some(&row_filters, count);
        if random.chance(40) {
            let mask = if random.chance(50) { Mask::Null } else { Mask::Constant("hidden") };
            policies.masks.push((*random.of(&[("customers", "region"), ("orders", "status")]), mask));
        }
        if random.chance(20) {
            policies.denied.push(*random.of(&[("orders", "is_gift"), ("customers", "credit")]));
        }
        match random.below(6) {
            0 => policies.denied.push(*random.of(&[("customers", "id"), ("orders", "id")])),
            1 => policies.masks.push((*random.of(&[("customers", "id"), ("orders", "id")]), Mask::Null)),
            _ => {}
        }
        policies
    }

    pub fn is_masked(&self, column: Column) -> bool {
        self.masks.iter().any(|(masked, _)| *masked == column)
    }

    fn yaml(&self) -> String {
        let mut policies: Vec<Json> = Vec::new();
        for filter in &self.row_filters {
            let name = format!("p{}", policies.len());
            policies.push(json!({"name": name, "cubes": [filter.table()], "row_filter": filter.sql()}));
        }
        for ((cube, column), mask) in &self.masks {
            let mask = match mask {
                Mask::Null => json!("null"),
                Mask::Constant(text) => json!({"constant": text}),
            };
            policies.push(json!({"name": format!("p{}", policies.len()), "cubes": [cube], "mask": {(*column): mask}}));
        }
        for (cube, column) in &self.denied {
            policies.push(json!({"name": format!("p{}", policies.len()), "cubes": [cube], "deny": [column]}));
        }
        json!({ "policies": policies }).to_string()
    }

    /// Returns the rows with other values in the denied columns that measures aggregate or filter by.
    pub fn with_others(&self, data: &Data, (is_gift, credit): (Option<bool>, Option<i64>)) -> Data {
        let mut data = data.clone();
        for (table, column) in &self.denied {
            let (rows, value) = match (*table, *column) {
                ("orders", "is_gift") => (&mut data.orders, Json::from(is_gift)),
                ("customers", "credit") => (&mut data.customers, Json::from(credit)),
                _ => continue,
            };
            for row in rows {
                row[*column] = value.clone();
            }
        }
        data
    }

    /// Returns the rows that the caller sees, with masks applied.
    pub fn seen(&self, data: &Data) -> Data {
        let passes = |table: &str, row: &Json, customers: &[Json]| {
            let mut filters = self.row_filters.iter().filter(|filter| filter.table() == table);
            filters.all(|filter| filter.passes(row, customers))
        };
        let is_seen = |customer: &&Json| passes("customers", customer, &data.customers);
        let customers: Vec<Json> = data.customers.iter().filter(is_seen).cloned().collect();
        let stays = |table: &str, row: &Json| passes(table, row, &customers);
        let rows = |table: &str, rows: &[Json]| -> Vec<Json> {
            let mut rows: Vec<Json> = rows.iter().filter(|row| stays(table, row)).cloned().collect();
            for ((_, column), mask) in self.masks.iter().filter(|((of, _), _)| *of == table) {
                for row in &mut rows {
                    if *column == "id" {
                        // Joins compare the unmasked key.
                        row["key"] = row["id"].clone();
                    }
                    row[*column] = match mask {
                        Mask::Null => Json::Null,
                        Mask::Constant(text) => json!(text),
                    };
                }
            }
            rows
        };
        Data {
            customers: rows("customers", &data.customers),
            orders: rows("orders", &data.orders),
            refunds: rows("refunds", &data.refunds),
        }
    }
}

impl RowPolicy {
    fn table(self) -> &'static str {
        match self {
            RowPolicy::CustomersOfRegion(_) | RowPolicy::CustomersWithCredit => "customers",
            RowPolicy::OrdersWithStatus(_) | RowPolicy::OrdersWithAmount | RowPolicy::OrdersOfRegion(_) => "orders",
        }
    }

    fn sql(self) -> String {
        match self {
            RowPolicy::CustomersOfRegion(region) => format!("{{customers}}.region = '{region}'"),
            RowPolicy::CustomersWithCredit => "{customers}.credit > 0".to_owned(),
            RowPolicy::OrdersWithStatus(status) => format!("{{orders}}.status = '{status}'"),
            RowPolicy::OrdersWithAmount => "{orders}.amount >= 0".to_owned(),
            RowPolicy::OrdersOfRegion(region) => format!("{{customers}}.region = '{region}'"),
        }
    }

    fn passes(self, row: &Json, customers: &[Json]) -> bool {
        match self {
            RowPolicy::CustomersOfRegion(region) => row["region"] == region,
            RowPolicy::CustomersWithCredit => row["credit"].as_f64().is_some_and(|credit| credit > 0.0),
            RowPolicy::OrdersWithStatus(status) => row["status"] == status,
            RowPolicy::OrdersWithAmount => row["amount"].as_f64().is_some_and(|amount| amount >= 0.0),
            RowPolicy::OrdersOfRegion(region) => {
                partner(row, customers).is_some_and(|customer| customer["region"] == region)
            }
        }
    }
}

/// Returns the customer of a row of a fact; `None` for an orphan.
fn partner<'d>(row: &Json, customers: &'d [Json]) -> Option<&'d Json> {
    let key = &row["customer_id"];
    let key_of = |customer: &Json| customer.get("key").unwrap_or(&customer["id"]).clone();
    customers.iter().find(|customer| !key.is_null() && key_of(customer) == *key)
}

/// Returns the statements that create the tables.
pub fn statements(data: &Data) -> Vec<String> {
    let mut statements = Vec::new();
    for (table, rows, columns) in [
        ("customers", &data.customers, &[("id", "INTEGER"), ("region", "VARCHAR(200)"), ("credit", "INTEGER")][..]),
        (
            "orders",
            &data.orders,
            &[
                ("id", "INTEGER"),
                ("customer_id", "INTEGER"),
                ("status", "VARCHAR(200)"),
                ("amount", "DECIMAL(9, 2)"),
                ("is_gift", "BOOLEAN"),
                ("day", "DATE"),
            ],
        ),
        ("refunds", &data.refunds, &[("id", "INTEGER"), ("customer_id", "INTEGER"), ("amount", "INTEGER")]),
    ] {
        let types: Vec<String> = columns.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
        statements.push(format!("DROP TABLE IF EXISTS {table}"));
        statements.push(format!("CREATE TABLE {table} ({})", types.join(", ")));
        let rows = rows.iter().map(|row| {
            let values: Vec<String> = columns.iter().map(|(column, _)| literal(&row[*column])).collect();
            format!("({})", values.join(", "))
        });
        let rows: Vec<String> = rows.collect();
        if !rows.is_empty() {
            statements.push(format!("INSERT INTO {table} VALUES {}", rows.join(", ")));
        }
    }
    statements
}

fn literal(value: &Json) -> String {
    match value {
        Json::String(text) => format!("'{}'", text.replace('\'', "''")),
        Json::Null => "NULL".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the project with the policies of the caller.
pub fn source_tree(policies: &Policies) -> SourceTree {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: star\n".into());
    tree.files.insert("cubes/star.yml".into(), PROJECT.into());
    let has_policies = !policies.row_filters.is_empty() || !policies.masks.is_empty() || !policies.denied.is_empty();
    if has_policies {
        tree.files.insert("policies/all.yml".into(), policies.yaml().into());
    }
    tree
}

/// Generates tables with nulls, orphans and ties.
pub fn random_data(random: &mut Random) -> Data {
    let mut data = Data::default();
    for id in 0..random.below(5) {
        let region = constant(random, ("customers", "region"));
        let credit = constant(random, ("customers", "credit"));
        data.customers.push(json!({"id": id, "region": region, "credit": credit}));
    }
    for id in 0..random.below(12) {
        let mut order = Map::new();
        order.insert("id".to_owned(), json!(id));
        order.insert("customer_id".to_owned(), key(random));
        for name in ["status", "amount", "is_gift"] {
            order.insert(name.to_owned(), constant(random, ("orders", name)));
        }
        order.insert("day".to_owned(), json!(format!("2024-01-{:02}", 1 + random.below(3))));
        data.orders.push(Json::Object(order));
    }
    for id in 0..random.below(4) {
        data.refunds.push(json!({"id": id, "customer_id": key(random), "amount": random.below(4)}));
    }
    data
}

/// Returns a reference to a customer: a key that may not exist, or null.
fn key(random: &mut Random) -> Json {
    if random.chance(25) { Json::Null } else { json!(random.below(7)) }
}

/// Returns a value that a column can have.
pub fn constant(random: &mut Random, column: Column) -> Json {
    match column.1 {
        _ if random.below(5) == 0 => Json::Null,
        "region" => json!(random.of(&["US", "EU", ""])),
        "status" => json!(random.of(&["paid", "open", ""])),
        "is_gift" => json!(random.below(2) == 0),
        _ => json!(random.below(7) as i64 - 3),
    }
}

/// Returns the value with numbers as doubles that are rounded to nine decimals.
pub fn number(value: &Json) -> Json {
    value.as_f64().map_or_else(|| value.clone(), |number| json!((number * 1e9).round() / 1e9 + 0.0))
}

/// A row: its own columns, and for a fact also the columns of its customer.
pub type Row = Vec<(Column, Json)>;

impl Data {
    /// Returns the rows of a table with all columns that restrict the table.
    pub fn expanded(&self, table: &str) -> Vec<Row> {
        let rows = match table {
            "customers" => &self.customers,
            "orders" => &self.orders,
            _ => &self.refunds,
        };
        let expand = |row: &Json| -> Row {
            let own = columns_of(table).iter().map(|column| (*column, number(&row[column.1])));
            let own = own.chain([(mark_of(table), Json::Bool(true))]);
            if table == "customers" {
                return own.collect();
            }
            let customer = partner(row, &self.customers);
            let of_customer =
                |column: &Column| (*column, customer.map_or(Json::Null, |customer| number(&customer[column.1])));
            // The amount of a refund is not a column of the project, but a measure adds it up.
            let measured = (table == "refunds").then(|| (REFUND, number(&row["amount"])));
            let mark = (mark_of("customers"), customer.map_or(Json::Null, |_| Json::Bool(true)));
            own.chain(measured).chain(columns_of("customers").iter().map(of_customer)).chain([mark]).collect()
        };
        rows.iter().map(expand).collect()
    }

    /// Returns whether a fact has rows without a customer.
    pub fn has_orphans(&self) -> bool {
        self.orders.iter().chain(&self.refunds).any(|row| partner(row, &self.customers).is_none())
    }
}

pub fn value(row: &Row, column: Column) -> Json {
    row.iter().find(|(of, _)| *of == column).map_or(Json::Null, |(_, value)| value.clone())
}
