//! Classifies column types by their use in a cube.
//!
//! In: a type name from the catalog of DuckDB or PostgreSQL. Out: a [`ColumnKind`].

/// The kind of a column's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ColumnKind {
    Integer,
    Decimal,
    Float,
    Text,
    Boolean,
    Date,
    /// A timestamp without a time zone.
    Timestamp,
    /// A timestamp with a time zone.
    Instant,
    /// A type that is cast to text to be shown and compared, such as a UUID.
    TextLike,
    /// A list, structure, byte string, time of day …: neither grouped nor aggregated.
    Other,
}

impl ColumnKind {
    pub(super) fn of(type_name: &str) -> ColumnKind {
        let lower = type_name.to_ascii_lowercase();
        if lower.ends_with(']') || lower.starts_with("struct") || lower.starts_with("map") || lower.starts_with("union")
        {
            return ColumnKind::Other;
        }
        let word = lower.split('(').next().unwrap_or_default().trim();
        match word {
            "tinyint" | "smallint" | "integer" | "int" | "bigint" | "hugeint" | "utinyint" | "usmallint"
            | "uinteger" | "ubigint" | "uhugeint" | "int2" | "int4" | "int8" => ColumnKind::Integer,
            "decimal" | "numeric" => ColumnKind::Decimal,
            "float" | "double" | "real" | "double precision" => ColumnKind::Float,
            "varchar" | "text" | "character varying" | "character" | "char" | "bpchar" | "citext" | "name" => {
                ColumnKind::Text
            }
            "boolean" | "bool" => ColumnKind::Boolean,
            "date" => ColumnKind::Date,
            "timestamp" | "timestamp_s" | "timestamp_ms" | "timestamp_ns" | "datetime" => {
                if lower.ends_with("with time zone") { ColumnKind::Instant } else { ColumnKind::Timestamp }
            }
            "timestamp without time zone" => ColumnKind::Timestamp,
            "timestamp with time zone" | "timestamptz" => ColumnKind::Instant,
            "uuid" | "enum" => ColumnKind::TextLike,
            _ => ColumnKind::Other,
        }
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, ColumnKind::Integer | ColumnKind::Decimal | ColumnKind::Float)
    }

    pub(super) fn is_time(self) -> bool {
        matches!(self, ColumnKind::Date | ColumnKind::Timestamp | ColumnKind::Instant)
    }

    /// Returns true if columns of this kind can be keys, and can be compared with keys of other tables.
    pub(super) fn is_key(self) -> bool {
        matches!(self, ColumnKind::Integer | ColumnKind::Text | ColumnKind::TextLike)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_both_engines_are_classified() {
        let cases = [
            ("BIGINT", ColumnKind::Integer),
            ("DECIMAL(18,3)", ColumnKind::Decimal),
            ("numeric", ColumnKind::Decimal),
            ("double precision", ColumnKind::Float),
            ("character varying(20)", ColumnKind::Text),
            ("ENUM('a', 'b')", ColumnKind::TextLike),
            ("TIMESTAMP WITH TIME ZONE", ColumnKind::Instant),
            ("timestamp(3) with time zone", ColumnKind::Instant),
            ("timestamp without time zone", ColumnKind::Timestamp),
            ("TIMESTAMP_NS", ColumnKind::Timestamp),
            ("INTEGER[]", ColumnKind::Other),
            ("STRUCT(a INTEGER)", ColumnKind::Other),
            ("JSON", ColumnKind::Other),
            ("TIME", ColumnKind::Other),
            ("interval", ColumnKind::Other),
            ("bytea", ColumnKind::Other),
        ];
        for (name, kind) in cases {
            assert_eq!(ColumnKind::of(name), kind, "{name}");
        }
    }
}
