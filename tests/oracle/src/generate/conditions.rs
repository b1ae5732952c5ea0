//! Generates filter conditions as JSON: every operator, with values from the data, similar values, and invalid ones.

use serde_json::{Value as Json, json};
use terrane_compiler::query::Operator;

use super::Generator;
use super::cells::TEXTS;
use crate::world::{Cell, Cube, DimensionKind, Expr};

const TEXT: &[Operator] = &[
    Operator::Equals,
    Operator::NotEquals,
    Operator::Contains,
    Operator::NotContains,
    Operator::StartsWith,
    Operator::EndsWith,
    Operator::InList,
    Operator::NotInList,
    Operator::Set,
    Operator::NotSet,
];
const NUMBER: &[Operator] = &[
    Operator::Equals,
    Operator::NotEquals,
    Operator::Gt,
    Operator::Gte,
    Operator::Lt,
    Operator::Lte,
    Operator::Between,
    Operator::InList,
    Operator::NotInList,
    Operator::Set,
    Operator::NotSet,
];
const BOOLEAN: &[Operator] =
    &[Operator::Equals, Operator::NotEquals, Operator::InList, Operator::NotInList, Operator::Set, Operator::NotSet];
const TIME: &[Operator] = &[
    Operator::Equals,
    Operator::NotEquals,
    Operator::Gt,
    Operator::Gte,
    Operator::Lt,
    Operator::Lte,
    Operator::Between,
    Operator::InList,
    Operator::NotInList,
    Operator::InDateRange,
    Operator::NotInDateRange,
    Operator::BeforeDate,
    Operator::AfterDate,
    Operator::Set,
    Operator::NotSet,
];
const WORDS: &[&str] = &[
    "today",
    "yesterday",
    "this month",
    "last month",
    "last 7 days",
    "this year",
    "last quarter",
    "last 2 weeks",
    "this week",
    "2024",
    "2024-Q1",
    "2024-03",
    "2024-W01",
    "2020-W53",
    "2024-02-29",
    "last 10 years",
    "from 2024-01-01 to 2024-03-31",
    "from 2018 to 2021-01-03",
];

impl Generator {
    /// Generates a random condition on a dimension.
    pub(super) fn dimension_condition(&mut self, member: &str, cube: &Cube, name: &str) -> Json {
        let Some(dimension) = cube.dimension(name) else { return json!({}) };
        let column = match &dimension.sql {
            Expr::Column { cube: None, column } => Some(*column),
            _ => None,
        };
        self.condition_of(member, dimension.kind, |generator| {
            let row = (!cube.rows.is_empty()).then(|| generator.random.below(cube.rows.len()));
            match (row, column) {
                (Some(row), Some(column)) => json_of(&cube.rows[row][column]),
                _ => None,
            }
        })
    }

    /// Returns a condition on a member of a kind. `seen` may return a value of the data.
    pub(super) fn condition_of(
        &mut self,
        member: &str,
        kind: DimensionKind,
        mut seen: impl FnMut(&mut Generator) -> Option<Json>,
    ) -> Json {
        let operators = match kind {
            DimensionKind::String => TEXT,
            DimensionKind::Number => NUMBER,
            DimensionKind::Boolean => BOOLEAN,
            DimensionKind::Time => TIME,
        };
        let wrong = if self.random.chance(2) { Some(*self.random.of(TIME)) } else { None };
        let operator = wrong.unwrap_or_else(|| *self.random.of(operators));
        let mut value = |generator: &mut Generator, takes_null: bool| {
            if takes_null && generator.random.chance(12) {
                return Json::Null;
            }
            if generator.random.chance(1) {
                return json!("2024-13-45");
            }
            let seen = if generator.random.chance(70) { seen(generator) } else { None };
            seen.unwrap_or_else(|| generator.value_of(kind))
        };
        let mut filter = json!({"member": member, "operator": operator.as_str()});
        match operator {
            Operator::Set | Operator::NotSet => {}
            Operator::InList | Operator::NotInList => {
                let count = self.random.below(4);
                filter["value"] = (0..count).map(|_| value(self, true)).collect();
            }
            Operator::InDateRange | Operator::NotInDateRange if self.random.chance(50) => {
                filter["value"] = json!(self.random.of(WORDS));
            }
            Operator::Between | Operator::InDateRange | Operator::NotInDateRange => {
                filter["value"] = json!([value(self, false), value(self, false)]);
            }
            Operator::Equals | Operator::NotEquals => filter["value"] = value(self, true),
            _ => filter["value"] = value(self, false),
        }
        filter
    }

    fn value_of(&mut self, kind: DimensionKind) -> Json {
        match kind {
            DimensionKind::String => json!(self.random.of(TEXTS)),
            DimensionKind::Boolean => json!(self.random.chance(50)),
            DimensionKind::Number => match self.random.below(8) {
                0 => json!("2"),
                1 => json!(1.5),
                2 => json!(0.1),
                3 => json!(i64::MAX),
                _ => json!(self.random.between(-3, 6)),
            },
            DimensionKind::Time => json!(self.time_text()),
        }
    }

    /// Returns a date, a period or a timestamp. The timestamp is at noon, because other hours may occur twice.
    pub(super) fn time_text(&mut self) -> String {
        let at = self.moment();
        match self.random.below(12) {
            0 => at.strftime("%Y").to_string(),
            1 => at.strftime("%Y-%m").to_string(),
            2 => format!("{}-Q{}", at.year(), (at.month() - 1) / 3 + 1),
            3 => {
                let week = at.date().iso_week_date();
                format!("{:04}-W{:02}", week.year(), week.week())
            }
            4 => at.strftime("%Y-%m-%dT12:00:00").to_string(),
            5 => at.strftime("%Y-%m-%d 12:30").to_string(),
            6 => at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            7 => at.strftime("%Y-%m-%dT%H:%M:%S+05:30").to_string(),
            8 => "9999-12-31".to_owned(),
            _ => at.strftime("%Y-%m-%d").to_string(),
        }
    }

    /// Generates a random value for `date_range` or `time_range`.
    pub(super) fn date_range(&mut self) -> Json {
        if self.random.chance(40) {
            return json!(self.random.of(WORDS));
        }
        let mut ends = [self.moment(), self.moment()];
        ends.sort();
        if self.random.chance(5) {
            ends.reverse();
        }
        let [start, end] = ends.map(|end| match self.random.chance(80) {
            true => end.strftime("%Y-%m-%d").to_string(),
            false => end.strftime("%Y-%m-%dT12:00:00").to_string(),
        });
        match self.random.below(10) {
            0 => json!([start, null]),
            1 => json!([null, end]),
            _ => json!([start, end]),
        }
    }
}

/// Returns a cell of the data as a filter's value.
fn json_of(cell: &Cell) -> Option<Json> {
    match cell {
        Cell::Bool(value) => Some(json!(value)),
        Cell::Int(value) => Some(json!(value)),
        // Written with all digits and a decimal point, because a double would lose digits.
        Cell::Cents(value) => {
            let sign = if *value < 0 { "-" } else { "" };
            let text = format!("{sign}{}.{:02}", value.unsigned_abs() / 100, value.unsigned_abs() % 100);
            serde_json::from_str(&text).ok()
        }
        Cell::Double(value) => Some(json!(value)),
        Cell::Text(text) => Some(json!(text)),
        Cell::Null | Cell::Day(_) | Cell::Micros(_) => None,
    }
}
