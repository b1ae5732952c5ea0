//! Forms of strings that represent dates or numbers.
//!
//! Out: the list of all forms. Each has a pattern and the SQL that converts a string of the form. Not here: the counts
//! of values of each form, and the notes about columns.

mod days;
mod numbers;

/// The share of a column's values, in percent, that must have one form. The other values count as exceptions.
pub const MOST_PERCENT: u64 = 90;

/// A form of strings that represent dates or numbers.
#[derive(Debug, Clone, Copy)]
pub struct TextForm {
    /// The plural noun in notes.
    pub what: &'static str,
    pub is_number: bool,
    /// A pattern of a whole value without outer spaces. SIMILAR TO of each engine and regular expressions accept it.
    pub pattern: &'static str,
    /// Another form of the same values with other results, such as dates with the other order of day and month. If both
    /// forms match the same number of values, a person has to choose.
    pub other: Option<Other>,
    /// A fact about the conversion that a person should check.
    pub caveat: Option<&'static str>,
    duckdb: &'static str,
    postgres: &'static str,
}

/// Another form of the same values.
#[derive(Debug, Clone, Copy)]
pub struct Other {
    /// The noun of the other form, which identifies it.
    pub what: &'static str,
    /// The condition for the other form, such as "the month is first".
    pub condition: &'static str,
}

/// The number of forms.
pub const COUNT: usize = days::ISO.len() + numbers::NUMBERS.len() + days::DAYS.len();

/// Returns all forms, those with more exact types first. If two forms match the same number of values, the first one
/// counts: `1,234` is a number with thousands separators. If other values of the column have a decimal comma, the form
/// with a decimal comma matches more values.
pub fn all() -> impl ExactSizeIterator<Item = &'static TextForm> + DoubleEndedIterator + Clone {
    (0..COUNT).map(|at| {
        let (iso, numbers) = (days::ISO.len(), numbers::NUMBERS.len());
        match at {
            at if at < iso => &days::ISO[at],
            at if at < iso + numbers => &numbers::NUMBERS[at - iso],
            at => &days::DAYS[at - iso - numbers],
        }
    })
}

impl TextForm {
    const fn new(what: &'static str, is_number: bool, pattern: &'static str, sql: &'static str) -> Self {
        TextForm { what, is_number, pattern, other: None, caveat: None, duckdb: sql, postgres: sql }
    }

    /// Adds another form of the same values.
    const fn or(self, what: &'static str, condition: &'static str) -> Self {
        TextForm { other: Some(Other { what, condition }), ..self }
    }

    const fn caveat(self, caveat: &'static str) -> Self {
        TextForm { caveat: Some(caveat), ..self }
    }

    const fn on_postgres(self, sql: &'static str) -> Self {
        TextForm { postgres: sql, ..self }
    }

    /// Returns the type of a dimension of such values.
    pub fn ty(&self) -> &'static str {
        if self.is_number { "number" } else { "time" }
    }

    /// Returns the SQL that converts a column. `column` is an expression without outer spaces in its values.
    pub fn sql(&self, is_postgres: bool, column: &str) -> String {
        let sql = if is_postgres { self.postgres } else { self.duckdb };
        sql.replace("$column", column)
    }
}

#[cfg(test)]
mod tests {
    use super::all;

    #[test]
    fn forms_have_different_names_and_known_others() {
        for (at, form) in all().enumerate() {
            assert!(all().skip(at + 1).all(|other| other.what != form.what), "{}", form.what);
            if let Some(other) = form.other {
                assert!(all().any(|form| form.what == other.what), "{}", other.what);
            }
        }
    }
}
