//! The DAX functions that Terrane supports, in one table.
//!
//! In: a name. Out: a [`Function`] with its parameters, its description, and the [`Operation`] that it is planned as.
//! The binder, completions, the list of functions in the interface, and the documentation all use this table.

mod table;
mod unsupported;

use terrane_compiler::text::nearest::likely;

use crate::types::Type;

pub use table::FUNCTIONS;
pub use unsupported::replacement;

/// A function of DAX.
#[derive(Debug)]
pub struct Function {
    /// The name in upper case.
    pub name: &'static str,
    pub category: Category,
    pub parameters: &'static [Parameter],
    pub returns: Returns,
    /// One sentence that ends with a period.
    pub description: &'static str,
    pub operation: Operation,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    Aggregation,
    DateAndTime,
    Filter,
    Information,
    Iterator,
    Logical,
    Math,
    Table,
    Text,
    TimeIntelligence,
}

#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub kind: ParameterKind,
    pub presence: Presence,
}

/// The kind of expression that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    Scalar(Accepts),
    /// A scalar that is evaluated for each row of the first argument.
    RowScalar(Accepts),
    Table,
    /// A table that is evaluated for each row of the first argument.
    RowTable,
    /// A column of the model.
    Column,
    TableOrColumn,
    /// A logical expression, a table or a modifier.
    Filter,
    /// The name of a new column, as a string.
    Name,
    /// `ASC` or `DESC`.
    Order,
    /// `SKIP` or `DENSE`.
    Ties,
    /// A unit of time for DATEDIFF.
    DiffInterval,
    /// A unit of time by which dates are shifted.
    ShiftInterval,
    /// A column of dates, or a table with one column of dates.
    Dates,
}

/// The values that a scalar parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    Any,
    Number,
    Text,
    Boolean,
    Date,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Required,
    Optional,
    /// A parameter of a group. The group must be given at least once, and may be repeated.
    Repeated,
    /// A parameter of a group. The group may be given any number of times, also not at all.
    AnyNumber,
    /// A parameter that may be omitted in each repetition of its group.
    OptionalInGroup,
}

/// The value of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    Table,
    Scalar(Type),
    /// The type of the first argument, or the common type of several arguments.
    SameType,
    /// No value: the function is usable only as a filter of CALCULATE or CALCULATETABLE.
    Modifier,
}

/// An aggregate function over values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aggregation {
    Sum,
    Average,
    Min,
    Max,
    Count,
    CountA,
    CountBlank,
    DistinctCount,
    DistinctCountNoBlank,
}

/// The way in which a function is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// An aggregate of a column of the model.
    Aggregate(Aggregation),
    CountRows,
    /// An aggregate of an expression over the rows of a table.
    Iterate(Aggregation),
    ConcatenateX,
    RankX,
    Filter,
    All,
    AllExcept,
    AllSelected,
    RemoveFilters,
    KeepFilters,
    UseRelationship,
    Calculate,
    CalculateTable,
    Values,
    Distinct,
    TreatAs,
    SummarizeColumns,
    Summarize,
    RollupAddIsSubtotal,
    RollupGroup,
    AddColumns,
    SelectColumns,
    TopN,
    Row,
    CrossJoin,
    Union,
    Intersect,
    Except,
    Generate,
    Related,
    RelatedTable,
    SelectedValue,
    HasOneValue,
    ContainsRow,
    IsBlank,
    IsError,
    IfError,
    If,
    And,
    Or,
    Not,
    Switch,
    Coalesce,
    True,
    False,
    Blank,
    Divide,
    Round,
    Int,
    Abs,
    Left,
    Right,
    Len,
    Upper,
    Lower,
    Substitute,
    Format,
    Year,
    Month,
    Day,
    Date,
    Today,
    Now,
    DateDiff,
    PreviousYear,
    SamePeriodLastYear,
    DateAdd,
    DatesBetween,
    DatesYtd,
    TotalYtd,
}

/// Returns the function with this name, in any case.
pub fn find(name: &str) -> Option<&'static Function> {
    // `NOT` is an operator, but the table lists it because authors write it like a function.
    FUNCTIONS.binary_search_by(|function| compare(function.name, name)).ok().map(|at| &FUNCTIONS[at])
}

/// Compares a name in upper case with a name in any case.
fn compare(name: &str, other: &str) -> std::cmp::Ordering {
    name.bytes().cmp(other.bytes().map(|byte| byte.to_ascii_uppercase()))
}

/// Returns the supported function that an unknown name most likely misspells. Names of other functions are not taken
/// for misspellings.
pub fn nearest_to(name: &str) -> Option<&'static str> {
    if unsupported::is_known(name) {
        return None;
    }
    likely(name, FUNCTIONS.iter().map(|function| function.name))
}

/// The parameters of a function: those at fixed positions, then a group that repeats, then one last parameter.
struct Layout {
    fixed: &'static [Parameter],
    group: &'static [Parameter],
    last: Option<&'static Parameter>,
}

impl Function {
    fn layout(&self) -> Layout {
        let is_fixed = |p: &Parameter| matches!(p.presence, Presence::Required | Presence::Optional);
        let start = self.parameters.iter().position(|p| !is_fixed(p)).unwrap_or(self.parameters.len());
        let (fixed, rest) = self.parameters.split_at(start);
        let end = rest.iter().position(is_fixed).unwrap_or(rest.len());
        let (group, last) = rest.split_at(end);
        Layout { fixed, group, last: last.first() }
    }

    /// Returns the parameter for the argument at `index` in a call with `arguments` arguments.
    pub fn parameter(&self, index: usize, arguments: usize) -> Option<&'static Parameter> {
        let Layout { fixed, group, last } = self.layout();
        if let Some(parameter) = fixed.get(index) {
            return Some(parameter);
        }
        let in_group = index - fixed.len();
        if group.is_empty() {
            return None;
        }
        let is_last = index + 1 == arguments && (arguments - fixed.len()) % group.len() == 1;
        match last {
            Some(last) if is_last => Some(last),
            _ => Some(&group[in_group % group.len()]),
        }
    }

    /// Returns the accepted numbers of arguments in words, or `None` if the function takes this number.
    pub(crate) fn refuses(&self, arguments: usize) -> Option<String> {
        let Layout { fixed, group, last } = self.layout();
        let required = fixed.iter().filter(|p| p.presence == Presence::Required).count();
        if group.is_empty() {
            let most = fixed.len();
            let takes = if required == most { most.to_string() } else { format!("{required} to {most}") };
            return (arguments < required || arguments > most).then_some(takes);
        }
        // A column of SELECTCOLUMNS may have no name.
        if self.operation == Operation::SelectColumns {
            return (arguments < 2).then(|| "2 or more".to_owned());
        }
        let of_group = group.iter().filter(|p| p.presence != Presence::OptionalInGroup).count();
        let least = required + if group[0].presence == Presence::Repeated { of_group } else { 0 };
        let is_whole = group.len() == 1
            || of_group < group.len()
            || self.has_own_order()
            || arguments <= fixed.len()
            || match (arguments - fixed.len()) % group.len() {
                0 => true,
                1 => last.is_some(),
                _ => false,
            };
        (arguments < least || !is_whole).then(|| match of_group {
            1 => format!("{least} or more"),
            _ => format!("{least} or more, in groups of {of_group}"),
        })
    }

    /// Returns whether the function distinguishes its arguments by form rather than by position, as SUMMARIZE does.
    pub(crate) fn has_own_order(&self) -> bool {
        matches!(self.operation, Operation::SummarizeColumns | Operation::Summarize)
    }

    /// Returns the call with its parameters: `DIVIDE(<numerator>, <denominator>[, <alternate>])`.
    pub fn signature(&self) -> String {
        let mut text = format!("{}(", self.name);
        let mut is_first = true;
        let Layout { fixed, group, last } = self.layout();
        let mut add = |text: &mut String, names: &[&Parameter], is_optional: bool, suffix: &str| {
            let names: Vec<String> = names.iter().map(|p| format!("<{}>", p.name)).collect();
            let separator = if is_first { "" } else { ", " };
            let names = names.join(", ");
            text.push_str(&if is_optional {
                format!("[{separator}{names}]{suffix}")
            } else {
                format!("{separator}{names}{suffix}")
            });
            is_first = false;
        };
        for parameter in fixed {
            add(&mut text, &[parameter], parameter.presence == Presence::Optional, "");
        }
        if self.has_own_order() {
            // Each run of parameters repeats separately: first columns, then filters, then named expressions.
            for run in group.chunk_by(|one, two| {
                one.kind != ParameterKind::Column
                    && two.kind != ParameterKind::Filter
                    && one.kind != ParameterKind::Filter
            }) {
                add(&mut text, &run.iter().collect::<Vec<_>>(), true, "…");
            }
        } else if !group.is_empty() {
            if group[0].presence == Presence::Repeated {
                let needed: Vec<&Parameter> =
                    group.iter().filter(|p| p.presence != Presence::OptionalInGroup).collect();
                add(&mut text, &needed, false, "");
            }
            add(&mut text, &group.iter().collect::<Vec<_>>(), true, "…");
        }
        if let Some(last) = last {
            add(&mut text, &[last], true, "");
        }
        text.push(')');
        text
    }
}

impl Category {
    pub fn as_str(self) -> &'static str {
        match self {
            Category::Aggregation => "aggregation",
            Category::DateAndTime => "date_and_time",
            Category::Filter => "filter",
            Category::Information => "information",
            Category::Iterator => "iterator",
            Category::Logical => "logical",
            Category::Math => "math",
            Category::Table => "table",
            Category::Text => "text",
            Category::TimeIntelligence => "time_intelligence",
        }
    }
}

impl Returns {
    /// Returns the name of the type in the list of functions.
    pub fn as_str(self) -> &'static str {
        match self {
            Returns::Table => "Table",
            Returns::Scalar(ty) => ty.as_str(),
            Returns::SameType => "Variant",
            Returns::Modifier => "Filter",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The functions that the DAX interface must support.
    const SPECIFIED: &str = "SUM COUNT COUNTROWS AVERAGE MIN MAX DISTINCTCOUNT COUNTA COUNTBLANK SUMX AVERAGEX MINX MAXX \
        COUNTX FILTER ALL ALLEXCEPT CALCULATE CALCULATETABLE VALUES DISTINCT SUMMARIZECOLUMNS SUMMARIZE ADDCOLUMNS \
        SELECTCOLUMNS TOPN ISBLANK ISERROR HASONEVALUE IF AND OR NOT SWITCH YEAR MONTH DAY TODAY NOW DATEDIFF RANKX \
        PREVIOUSYEAR";

    #[test]
    fn every_specified_function_is_known() {
        let missing: Vec<&str> = SPECIFIED.split_whitespace().filter(|name| find(name).is_none()).collect();
        assert_eq!(missing, Vec::<&str>::new());
    }

    #[test]
    fn table_of_functions_is_in_order() {
        assert!(FUNCTIONS.is_sorted_by(|one, two| one.name < two.name));
        for function in FUNCTIONS {
            assert!(function.description.ends_with('.'), "{}", function.name);
        }
    }

    #[test]
    fn names_have_no_case() {
        assert_eq!(find("CountRows").map(|f| f.operation), Some(Operation::CountRows));
        assert!(find("COUNTROW").is_none());
        assert_eq!(nearest_to("countrow"), Some("COUNTROWS"));
        assert_eq!(nearest_to("DIVIED"), Some("DIVIDE"));
        for name in ["XIRR", "MEDIANX", "STDEV.P", "NPV", "EARLIER", "", "TOTALMTD", "eomonth", "ROUNDUP", "cot"] {
            assert_eq!(nearest_to(name), None, "{name}");
        }
        assert_eq!(replacement("CountAX"), Some("Use COUNTX, which counts values of all types."));
        assert_eq!(replacement("COT"), None);
    }

    #[test]
    fn signatures_show_groups() {
        let of = |name: &str| find(name).unwrap().signature();
        assert_eq!(of("DIVIDE"), "DIVIDE(<numerator>, <denominator>[, <alternate>])");
        assert_eq!(of("ADDCOLUMNS"), "ADDCOLUMNS(<table>, <name>, <expression>[, <name>, <expression>]…)");
        assert_eq!(of("SWITCH"), "SWITCH(<expression>, <value>, <result>[, <value>, <result>]…[, <else>])");
        assert_eq!(of("TOPN"), "TOPN(<n>, <table>[, <order_by>, <order>]…)");
        assert_eq!(of("TODAY"), "TODAY()");
        assert_eq!(
            of("SUMMARIZECOLUMNS"),
            "SUMMARIZECOLUMNS([<group_column>]…[, <filter_table>]…[, <name>, <expression>]…)"
        );
    }

    #[test]
    fn arguments_are_counted_in_groups() {
        let refuses = |name: &str, count: usize| find(name).unwrap().refuses(count).is_some();
        for (name, taken, refused) in [
            ("DIVIDE", &[2, 3][..], &[0, 1, 4][..]),
            ("ADDCOLUMNS", &[3, 5], &[0, 1, 2, 4]),
            ("SWITCH", &[3, 4, 5, 6], &[0, 1, 2]),
            ("TOPN", &[2, 3, 4, 5, 6], &[0, 1]),
            ("CALCULATE", &[1, 2, 9], &[0]),
            ("AND", &[2], &[1, 3]),
            ("COALESCE", &[2, 3, 7], &[0, 1]),
            ("SUMMARIZECOLUMNS", &[1, 2, 3, 4], &[]),
            ("ALL", &[0, 1, 3], &[]),
        ] {
            taken.iter().for_each(|count| assert!(!refuses(name, *count), "{name} takes {count}"));
            refused.iter().for_each(|count| assert!(refuses(name, *count), "{name} refuses {count}"));
        }
    }

    #[test]
    fn last_argument_may_be_outside_of_a_group() {
        let switch = find("SWITCH").unwrap();
        let names =
            |count: usize| -> Vec<&str> { (0..count).map(|at| switch.parameter(at, count).unwrap().name).collect() };
        assert_eq!(names(4), ["expression", "value", "result", "else"]);
        assert_eq!(names(5), ["expression", "value", "result", "value", "result"]);
    }
}
