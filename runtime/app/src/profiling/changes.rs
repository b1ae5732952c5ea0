//! Compares a profile with the previous profile.
//!
//! In: the counts, types and frequent values of both profiles. Out: the columns that differ. Values are compared as
//! text.

use std::sync::Arc;

use jiff::Timestamp;

/// The fields of a profile that are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileSummary {
    pub profiled_at: Timestamp,
    pub row_count: u64,
    /// The sample that the columns were computed from, as text; empty for all rows.
    pub sample: Arc<str>,
    pub columns: Vec<ColumnSummary>,
}

/// The fields of a column's profile that are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSummary {
    pub name: Arc<str>,
    pub ty: Arc<str>,
    pub null_count: Option<u64>,
    pub distinct_count: Option<u64>,
    /// The most frequent values.
    pub values: Vec<Arc<str>>,
}

/// A number or a type in the previous profile and in the current one.
pub type Pair<T> = (T, T);

/// The differences between a profile and the previous profile.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileChanges {
    /// The time of the previous profile.
    pub since: Timestamp,
    pub row_count: Pair<u64>,
    pub columns: Vec<ColumnChange>,
}

/// The differences of a column. A field is `None` if it did not change.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnChange {
    pub name: Arc<str>,
    pub kind: ColumnChangeKind,
    pub ty: Option<Pair<Arc<str>>>,
    pub null_count: Option<Pair<Option<u64>>>,
    pub distinct_count: Option<Pair<Option<u64>>>,
    /// Frequent values that were not frequent in the previous profile.
    pub new_values: Vec<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnChangeKind {
    Added,
    Removed,
    Changed,
}

impl ColumnChangeKind {
    pub fn as_str(self) -> &'static str {
        match self {
            ColumnChangeKind::Added => "added",
            ColumnChangeKind::Removed => "removed",
            ColumnChangeKind::Changed => "changed",
        }
    }
}

impl ProfileChanges {
    /// Returns the differences between two profiles of the same range. Numbers and values of columns are compared only
    /// if both profiles have the same kind of sample.
    pub fn between(before: &ProfileSummary, now: &ProfileSummary) -> Self {
        let has_same_sample = before.sample == now.sample;
        let find = |columns: &'_ [ColumnSummary], name: &str| columns.iter().position(|column| *column.name == *name);
        let mut columns = Vec::new();
        for column in &now.columns {
            match find(&before.columns, &column.name) {
                Some(index) => columns.extend(ColumnChange::between(&before.columns[index], column, has_same_sample)),
                None => columns.push(ColumnChange::of(column, ColumnChangeKind::Added)),
            }
        }
        let removed = before.columns.iter().filter(|column| find(&now.columns, &column.name).is_none());
        columns.extend(removed.map(|column| ColumnChange::of(column, ColumnChangeKind::Removed)));
        ProfileChanges { since: before.profiled_at, row_count: (before.row_count, now.row_count), columns }
    }
}

impl ColumnChange {
    fn of(column: &ColumnSummary, kind: ColumnChangeKind) -> Self {
        ColumnChange {
            name: Arc::clone(&column.name),
            kind,
            ty: None,
            null_count: None,
            distinct_count: None,
            new_values: Vec::new(),
        }
    }

    fn between(before: &ColumnSummary, now: &ColumnSummary, has_same_sample: bool) -> Option<Self> {
        fn pair<T: Clone + PartialEq>(before: &T, now: &T) -> Option<Pair<T>> {
            (before != now).then(|| (before.clone(), now.clone()))
        }
        // If the previous profile has no frequent values, it is unknown which values are new.
        let is_new = |value: &&Arc<str>| has_same_sample && !before.values.is_empty() && !before.values.contains(value);
        let change = ColumnChange {
            ty: pair(&before.ty, &now.ty),
            null_count: pair(&before.null_count, &now.null_count).filter(|_| has_same_sample),
            distinct_count: pair(&before.distinct_count, &now.distinct_count).filter(|_| has_same_sample),
            new_values: now.values.iter().filter(is_new).cloned().collect(),
            ..ColumnChange::of(now, ColumnChangeKind::Changed)
        };
        let is_same = change == ColumnChange::of(now, ColumnChangeKind::Changed);
        (!is_same).then_some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, ty: &str, nulls: u64, values: &[&str]) -> ColumnSummary {
        ColumnSummary {
            name: name.into(),
            ty: ty.into(),
            null_count: Some(nulls),
            distinct_count: Some(values.len() as u64),
            values: values.iter().map(|value| Arc::from(*value)).collect(),
        }
    }

    fn summary(row_count: u64, columns: Vec<ColumnSummary>) -> ProfileSummary {
        ProfileSummary { profiled_at: Timestamp::UNIX_EPOCH, row_count, sample: "".into(), columns }
    }

    #[test]
    fn columns_that_differ_are_named() {
        let before = summary(
            10,
            vec![
                column("same", "text", 0, &["a"]),
                column("nulls", "text", 0, &["a"]),
                column("type", "integer", 0, &[]),
                column("values", "text", 0, &["a", "b"]),
                column("gone", "text", 0, &[]),
            ],
        );
        let now = summary(
            12,
            vec![
                column("same", "text", 0, &["a"]),
                column("nulls", "text", 3, &["a"]),
                column("type", "text", 0, &[]),
                column("values", "text", 0, &["b", "c"]),
                column("new", "text", 0, &["x"]),
            ],
        );
        let changes = ProfileChanges::between(&before, &now);
        assert_eq!(changes.row_count, (10, 12));
        let kinds: Vec<_> = changes.columns.iter().map(|change| (&*change.name, change.kind.as_str())).collect();
        assert_eq!(
            kinds,
            [("nulls", "changed"), ("type", "changed"), ("values", "changed"), ("new", "added"), ("gone", "removed")]
        );
        assert_eq!(changes.columns[0].null_count, Some((Some(0), Some(3))));
        assert_eq!(changes.columns[1].ty, Some(("integer".into(), "text".into())));
        assert_eq!(changes.columns[2].new_values, ["c".into()]);
        assert_eq!(ProfileChanges::between(&now, &now).columns, []);
        let sampled = ProfileSummary { sample: "10 random".into(), ..before };
        let changes = ProfileChanges::between(&sampled, &now);
        let names: Vec<_> = changes.columns.iter().map(|change| &*change.name).collect();
        assert_eq!(names, ["type", "new", "gone"], "counts of a sample are not compared with those of all rows");
    }
}
