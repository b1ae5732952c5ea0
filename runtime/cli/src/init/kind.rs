//! What a column's type lets it be in a cube.
//!
//! In: a type as the catalog of DuckDB or PostgreSQL writes it. Out: a [`Kind`].

/// Types, as far as cubes tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Integer,
    Decimal,
    Float,
    Text,
    Boolean,
    Date,
    /// Without a zone.
    Timestamp,
    /// An instant.
    Instant,
    /// Shown as text, and compared as text once it is cast.
    TextLike,
    /// Lists, structures, bytes, times of day …: nothing groups or sums by them.
    Other,
}

impl Kind {
    pub(super) fn of(type_name: &str) -> Kind {
        let lower = type_name.to_ascii_lowercase();
        if lower.ends_with(']') || lower.starts_with("struct") || lower.starts_with("map") || lower.starts_with("union")
        {
            return Kind::Other;
        }
        let word = lower.split('(').next().unwrap_or_default().trim();
        match word {
            "tinyint" | "smallint" | "integer" | "int" | "bigint" | "hugeint" | "utinyint" | "usmallint"
            | "uinteger" | "ubigint" | "uhugeint" | "int2" | "int4" | "int8" => Kind::Integer,
            "decimal" | "numeric" => Kind::Decimal,
            "float" | "double" | "real" | "double precision" => Kind::Float,
            "varchar" | "text" | "character varying" | "character" | "char" | "bpchar" | "citext" | "name" => {
                Kind::Text
            }
            "boolean" | "bool" => Kind::Boolean,
            "date" => Kind::Date,
            "timestamp" | "timestamp_s" | "timestamp_ms" | "timestamp_ns" | "datetime" => {
                if lower.ends_with("with time zone") { Kind::Instant } else { Kind::Timestamp }
            }
            "timestamp without time zone" => Kind::Timestamp,
            "timestamp with time zone" | "timestamptz" => Kind::Instant,
            "uuid" | "enum" => Kind::TextLike,
            _ => Kind::Other,
        }
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Kind::Integer | Kind::Decimal | Kind::Float)
    }

    pub(super) fn is_time(self) -> bool {
        matches!(self, Kind::Date | Kind::Timestamp | Kind::Instant)
    }

    /// Whether values can tell rows apart and be compared with those of another column.
    pub(super) fn is_key(self) -> bool {
        matches!(self, Kind::Integer | Kind::Text | Kind::TextLike)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_both_engines_are_known() {
        let cases = [
            ("BIGINT", Kind::Integer),
            ("DECIMAL(18,3)", Kind::Decimal),
            ("numeric", Kind::Decimal),
            ("double precision", Kind::Float),
            ("character varying(20)", Kind::Text),
            ("ENUM('a', 'b')", Kind::TextLike),
            ("TIMESTAMP WITH TIME ZONE", Kind::Instant),
            ("timestamp(3) with time zone", Kind::Instant),
            ("timestamp without time zone", Kind::Timestamp),
            ("TIMESTAMP_NS", Kind::Timestamp),
            ("INTEGER[]", Kind::Other),
            ("STRUCT(a INTEGER)", Kind::Other),
            ("JSON", Kind::Other),
            ("TIME", Kind::Other),
            ("interval", Kind::Other),
            ("bytea", Kind::Other),
        ];
        for (name, kind) in cases {
            assert_eq!(Kind::of(name), kind, "{name}");
        }
    }
}
