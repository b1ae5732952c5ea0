//! The keys of cubes and of their parts, and the words that are valid as values.
//!
//! Contains tables and lookups in them; [`cubes`](super::cubes) uses them to read files.

use super::definitions::MeasureType;
use super::keys::{DESCRIPTION, FORMAT, HIDDEN, Key, Kind, META, MappingKeys, NAME, PUBLIC, TITLE, Words};
use crate::snippet::{AggregateFunction, Fraction, Precision, Spread};
use crate::types::Granularity;
use crate::types::{DimensionType, Relationship, TimeKind, WindowOffset};

/// Returns the word of a measure's type in a project's files.
pub fn measure_type_word(ty: MeasureType) -> &'static str {
    use AggregateFunction::{Percentile, StdDev, Variance};
    MEASURE_TYPES.word(&match ty {
        MeasureType::Aggregate(Percentile(Fraction::HALF, _)) => aggregate(MEDIAN),
        MeasureType::Aggregate(Percentile(..)) => MeasureWord::Percentile,
        MeasureType::Aggregate(StdDev(_)) => aggregate(StdDev(Spread::Population)),
        MeasureType::Aggregate(Variance(_)) => aggregate(Variance(Spread::Population)),
        ty => MeasureWord::Type(ty),
    })
}

/// Returns the word of a dimension's type in a project's files.
pub fn dimension_type_word(ty: DimensionType) -> &'static str {
    DIMENSION_TYPES.word(&ty)
}

pub(super) static CUBE: MappingKeys =
    MappingKeys {
        called: "cube",
        about: "A table or query whose rows can be measured, grouped and joined.",
        keys: &[
            NAME,
            Key::optional(
                "sql_table",
                Kind::Text,
                "raw.$name",
                "The table that has the rows: `schema.table`, or `{{ ref('model') }}`. Either this or `sql`.",
            )
            .also(&["table", "table_name", "from", "relation", "model"]),
            Key::optional(
                "sql",
                Kind::Text,
                "SELECT * FROM raw.$name",
                "A query that makes the rows; it begins with SELECT or WITH. Either this or `sql_table`.",
            )
            .also(&["query"]),
            Key::optional(
                "extends",
                Kind::Text,
                "other_cube",
                "Another cube, whose rows, members and joins this one takes over; own ones win by name.",
            )
            .also(&["inherits", "base"]),
            TITLE,
            DESCRIPTION,
            Key::optional(
                "public",
                Kind::Boolean,
                "false",
                "Whether queries may name it; `false` leaves it to joins, metrics and policies. Default: true.",
            )
            .also(&["shown", "visible"]),
            Key::optional("dimensions", Kind::List(&DIMENSION), "[]", "What rows are grouped and filtered by.")
                .also(&["columns", "fields", "attributes"]),
            Key::optional("measures", Kind::List(&MEASURE), "[]", "What is computed from many rows.").also(&[
                "metrics",
                "aggregates",
                "facts",
            ]),
            Key::optional("joins", Kind::List(&JOIN), "[]", "The cubes that can be reached from this one.")
                .also(&["relationships"]),
            Key::optional("segments", Kind::List(&SEGMENT), "[]", "Conditions with a name.").also(&["filters"]),
            Key::optional(
                "pre_aggregations",
                Kind::List(&PRE_AGGREGATION),
                "[]",
                "Stored groups and aggregates that answer queries instead of the rows.",
            )
            .also(&["rollups", "aggregations"]),
            Key::optional(
                "refresh",
                Kind::Mapping(&CUBE_REFRESH),
                "{every: 5 minutes}",
                "When its rows count as changed, so that cached results are not used any more.",
            )
            .also(&["refresh_key"]),
            META,
        ],
        one_of: &["sql_table", "sql", "extends"],
        apart: &["sql_table", "sql"],
    };

pub(super) static MEASURE: MappingKeys = MappingKeys::new(
    "measure",
    "A value computed from many rows.",
    &[
        NAME,
        Key::required("type", Kind::Word(&MEASURE_TYPES), "sum", "How the rows become one value.").also(&[
            "agg",
            "aggregation",
            "aggregate",
            "measure_type",
        ]),
        Key::optional(
            "sql",
            Kind::Text,
            "amount",
            "What is aggregated: a column or an expression. Of a `number` an expression over `{measures}`. \
             Only `count` does without.",
        )
        .also(&["expr", "expression", "column", "field"]),
        Key::optional("filters", Kind::List(&FILTER), "[]", "Conditions that a row must meet to be measured.").also(&[
            "where",
            "filter",
            "condition",
        ]),
        Key::optional(
            "percentile",
            Kind::Text,
            "0.95",
            "Of a `percentile`: the share of values below it, from 0 to 1, with at most six decimal places.",
        )
        .also(&["fraction", "quantile"]),
        Key::optional(
            "sample",
            Kind::Boolean,
            "true",
            "Of a `stddev` or a `variance`: whether the values are a sample of a larger population. Default: false.",
        ),
        Key::optional(
            "approximate",
            Kind::Boolean,
            "true",
            "Of a `median` or a `percentile`: whether the warehouse may approximate the value if it cannot compute \
             it exactly. Default: false.",
        ),
        Key::optional(
            "from",
            Kind::Word(&FROM),
            "all",
            "Of a `running_total`: whether rows before the queried range count too (`all`). Default: range.",
        ),
        Key::optional(
            "rolling_window",
            Kind::Mapping(&ROLLING_WINDOW),
            "{trailing: 28 day}",
            "The range of time around each step of the query's time dimension that the value is computed over.",
        )
        .also(&["window", "moving_window"]),
        TITLE,
        DESCRIPTION,
        FORMAT,
        Key::optional("drill_members", Kind::Texts, "[id]", "Members that a client offers for a closer look.")
            .also(&["drill", "drill_fields"]),
        HIDDEN,
        PUBLIC,
        META,
    ],
);

pub(super) static ROLLING_WINDOW: MappingKeys = MappingKeys {
    called: "rolling_window",
    about: "A range of time around each step of the query's time dimension.",
    keys: &[
        Key::optional(
            "trailing",
            Kind::Text,
            "28 day",
            "The length before the end of the step: an integer and a unit from seconds to years, or `unbounded`.",
        ),
        Key::optional(
            "leading",
            Kind::Text,
            "7 day",
            "The length after the end of the step: an integer and a unit from seconds to years, or `unbounded`.",
        ),
        Key::optional(
            "offset",
            Kind::Word(&WINDOW_OFFSETS),
            "start",
            "The point of the step from which both lengths are measured: `start` or `end`. Default: end.",
        ),
    ],
    one_of: &["trailing", "leading"],
    apart: &[],
};

pub(super) static FILTER: MappingKeys = MappingKeys::new(
    "filter",
    "A condition on the rows of a measure.",
    &[Key::required("sql", Kind::Text, "\"{CUBE}.status = 'paid'\"", "The condition, in SQL.")],
);

pub(super) static DIMENSION: MappingKeys = MappingKeys::new(
    "dimension",
    "What rows are grouped and filtered by.",
    &[
        NAME,
        Key::required("type", Kind::Word(&DIMENSION_TYPES), "string", "What its values are.")
            .also(&["data_type", "datatype"]),
        Key::required(
            "sql",
            Kind::Text,
            "$name",
            "A column of the rows, or an expression over columns and dimensions.",
        )
        .also(&["expr", "expression", "column", "field"]),
        Key::optional(
            "primary_key",
            Kind::Boolean,
            "true",
            "Whether it is the primary key, alone or together with other dimensions so marked. Default: false.",
        )
        .also(&["pk", "key", "is_primary_key", "unique"]),
        Key::optional(
            "primary_time",
            Kind::Boolean,
            "true",
            "Of `time`: whether ranges without a dimension mean it. Default: true where it is the only one.",
        ),
        Key::optional(
            "partition",
            Kind::Boolean,
            "true",
            "Whether the table is partitioned by it, so that a filter on it reads a part of the table. Default: false.",
        ),
        Key::optional(
            "timezone",
            Kind::Word(&TIME_KINDS),
            "none",
            "Of `time`: `utc` for instants, `none` for a clock on the wall, which is never shifted. Default: utc.",
        ),
        Key::optional(
            "granularities",
            Kind::Words(&GRANULARITIES),
            "[day, month]",
            "Of `time`: the steps that it may be grouped by. Default: all eight.",
        )
        .also(&["granularity", "grains", "time_grains"]),
        Key::optional(
            "tests",
            Kind::WordsOrMappings(&DIMENSION_TEST_WORDS, &DIMENSION_TEST),
            "[not_null, unique]",
            "Rules for its values, which `terrane test` and `terrane check --data` check on the rows.",
        )
        .also(&["data_tests", "checks"]),
        TITLE,
        DESCRIPTION,
        FORMAT,
        HIDDEN,
        PUBLIC,
        META,
    ],
);

pub(super) static DIMENSION_TEST: MappingKeys = MappingKeys {
    called: "test",
    about: "A rule for the values of a dimension.",
    keys: &[
        Key::optional(
            "accepted_values",
            Kind::Values,
            "[paid, open]",
            "The values that rows may have. Rows without a value pass.",
        )
        .also(&["accepted", "values", "enum"]),
        Key::optional(
            "relationships",
            Kind::Text,
            "customers.id",
            "A dimension of another cube that has each value. Rows without a value pass.",
        )
        .also(&["relationship", "references"]),
    ],
    one_of: &["accepted_values", "relationships"],
    apart: &["accepted_values", "relationships"],
};

pub(super) static SEGMENT: MappingKeys = MappingKeys::new(
    "segment",
    "A condition with a name.",
    &[
        NAME,
        Key::required("sql", Kind::Text, "\"{CUBE}.status = 'paid'\"", "The condition, on columns and dimensions.")
            .also(&["where", "filter", "condition"]),
        TITLE,
        DESCRIPTION,
        HIDDEN,
        PUBLIC,
        META,
    ],
);

pub(super) static JOIN: MappingKeys = MappingKeys::new(
    "join",
    "Another cube that can be reached from this one.",
    &[
        Key::required(
            "name",
            Kind::Name,
            "customers",
            "The cube that is joined, or another name for what `cube` says.",
        )
        .also(&["to", "target"]),
        Key::optional(
            "cube",
            Kind::Text,
            "customers",
            "The cube behind `name`, where that is another one. Default: `name`.",
        ),
        Key::required(
            "relationship",
            Kind::Word(&RELATIONSHIPS),
            "many_to_one",
            "How many rows of the one belong to how many of the other, from this cube's view.",
        )
        .also(&["type", "kind", "cardinality", "relation"]),
        Key::required(
            "sql",
            Kind::Text,
            "\"{CUBE}.$name_id = {$name}.id\"",
            "Which rows belong together: a condition on both cubes, and no third.",
        )
        .also(&["on", "condition", "sql_on"]),
        Key::optional(
            "always",
            Kind::Boolean,
            "true",
            "Whether every row finds one there, so that an inner join will do. Default: false.",
        ),
        DESCRIPTION,
        META,
    ],
);

pub(super) static PRE_AGGREGATION: MappingKeys = MappingKeys::new(
    "pre-aggregation",
    "Stored groups and aggregates that answer queries instead of the rows.",
    &[
        NAME,
        Key::optional("type", Kind::Word(&ROLLUP), "rollup", "The kind of pre-aggregation. Default: rollup."),
        Key::optional("measures", Kind::Texts, "[count]", "Measures of the cube."),
        Key::optional("dimensions", Kind::Texts, "[status]", "Dimensions of the cube, or of one that it joins."),
        Key::optional("segments", Kind::Texts, "[paid]", "Segments of the cube by which queries may filter."),
        Key::optional("filters", Kind::List(&FILTER), "[]", "Conditions that a row must meet to be counted.")
            .also(&["where", "filter"]),
        Key::optional("time_dimension", Kind::Text, "created_at", "A time dimension of the cube."),
        Key::optional("granularity", Kind::Word(&GRANULARITIES), "day", "The step of `time_dimension`."),
        Key::optional("partition_granularity", Kind::Word(&GRANULARITIES), "month", "How much one partition holds."),
        Key::optional(
            "timezone",
            Kind::Text,
            "Europe/Berlin",
            "The time zone of steps of a day or more, by its IANA name. Default: UTC.",
        )
        .also(&["time_zone", "zone"]),
        Key::optional("refresh", Kind::Mapping(&REFRESH), "{every: 1 hour}", "When it is computed again.")
            .also(&["refresh_key"]),
        Key::optional(
            "max_staleness",
            Kind::Text,
            "2 hours",
            "The age from which a table is not read: an integer and a unit. Default: any.",
        ),
        Key::optional(
            "build_range",
            Kind::Mapping(&BUILD_RANGE),
            "{start: 2024-01-01}",
            "The days that are computed ahead. Default: all.",
        ),
        Key::optional(
            "arrival",
            Kind::Text,
            "inserted_at",
            "A column that says when a row arrived, so that late rows are found.",
        ),
        Key::optional("indexes", Kind::Texts, "[status]", "Dimensions of the pre-aggregation that get an index."),
        DESCRIPTION,
        META,
    ],
);

/// The kinds of pre-aggregation.
pub(super) static ROLLUP: Words<()> = Words { list: &[("rollup", ())], also: &[] };

pub(super) static REFRESH: MappingKeys = MappingKeys::new(
    "refresh",
    "When it is computed again.",
    &[
        Key::optional(
            "every",
            Kind::Text,
            "1 hour",
            "An integer and a unit from seconds to weeks: `10 minutes`, `1 hour`, `30s`.",
        ),
        Key::optional(
            "sql",
            Kind::Text,
            "SELECT max(updated_at) FROM raw.orders",
            "A query whose result changes when the rows do.",
        )
        .also(&["query"]),
        Key::optional(
            "update_window",
            Kind::Text,
            "7 days",
            "The time before the newest row in which rows still change; with `incremental`, older partitions stay.",
        ),
        Key::optional(
            "incremental",
            Kind::Boolean,
            "true",
            "Whether only partitions whose rows changed are computed again. Default: false.",
        ),
    ],
);

pub(super) static BUILD_RANGE: MappingKeys = MappingKeys::new(
    "build_range",
    "The days that are computed ahead, both included.",
    &[
        Key::optional("start", Kind::Text, "2024-01-01", "The first day. Default: that of the oldest row."),
        Key::optional("end", Kind::Text, "2024-12-31", "The last day. Default: that of the newest row."),
    ],
);

pub(super) static CUBE_REFRESH: MappingKeys = MappingKeys::new(
    "refresh",
    "When the rows of a cube count as changed.",
    &[
        Key::optional(
            "every",
            Kind::Text,
            "5 minutes",
            "An integer and a unit from seconds to weeks. With `sql`: how often the query runs. Default: 10 seconds.",
        ),
        Key::optional(
            "sql",
            Kind::Text,
            "SELECT max(updated_at) FROM raw.orders",
            "A query whose result changes when the rows do.",
        )
        .also(&["query"]),
    ],
);

const MEDIAN: AggregateFunction = AggregateFunction::Percentile(Fraction::HALF, Precision::Exact);

/// The type of a measure, as a project's file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MeasureWord {
    Type(MeasureType),
    /// A percentile, whose fraction is a key of its own.
    Percentile,
}

const fn aggregate(function: AggregateFunction) -> MeasureWord {
    MeasureWord::Type(MeasureType::Aggregate(function))
}

pub(super) static MEASURE_TYPES: Words<MeasureWord> = Words {
    list: &[
        ("count", aggregate(AggregateFunction::Count)),
        ("count_distinct", aggregate(AggregateFunction::CountDistinct)),
        ("count_distinct_approx", aggregate(AggregateFunction::CountDistinctApprox)),
        ("sum", aggregate(AggregateFunction::Sum)),
        ("avg", aggregate(AggregateFunction::Avg)),
        ("min", aggregate(AggregateFunction::Min)),
        ("max", aggregate(AggregateFunction::Max)),
        ("median", aggregate(MEDIAN)),
        ("percentile", MeasureWord::Percentile),
        ("stddev", aggregate(AggregateFunction::StdDev(Spread::Population))),
        ("variance", aggregate(AggregateFunction::Variance(Spread::Population))),
        ("number", MeasureWord::Type(MeasureType::Number)),
        ("running_total", MeasureWord::Type(MeasureType::RunningTotal)),
    ],
    also: &[
        ("average", "avg"),
        ("mean", "avg"),
        ("countdistinct", "count_distinct"),
        ("distinct", "count_distinct"),
        ("distinct_count", "count_distinct"),
        ("count_unique", "count_distinct"),
        ("approx_count_distinct", "count_distinct_approx"),
        ("countdistinctapprox", "count_distinct_approx"),
        ("total", "sum"),
        ("percentile_cont", "percentile"),
        ("quantile", "percentile"),
        ("standard_deviation", "stddev"),
        ("stdev", "stddev"),
        ("std", "stddev"),
        ("stddev_pop", "stddev"),
        ("var_pop", "variance"),
        ("minimum", "min"),
        ("maximum", "max"),
        ("ratio", "number"),
        ("calculated", "number"),
        ("expression", "number"),
        ("percent", "number"),
        ("cumulative", "running_total"),
        ("runningtotal", "running_total"),
    ],
};

pub(super) static DIMENSION_TYPES: Words<DimensionType> = Words {
    list: &[
        ("string", DimensionType::String),
        ("number", DimensionType::Number),
        ("time", DimensionType::Time),
        ("boolean", DimensionType::Boolean),
        ("geo", DimensionType::Geo),
    ],
    also: &[
        ("text", "string"),
        ("varchar", "string"),
        ("char", "string"),
        ("categorical", "string"),
        ("int", "number"),
        ("integer", "number"),
        ("bigint", "number"),
        ("float", "number"),
        ("double", "number"),
        ("decimal", "number"),
        ("numeric", "number"),
        ("date", "time"),
        ("datetime", "time"),
        ("timestamp", "time"),
        ("bool", "boolean"),
        ("location", "geo"),
    ],
};

/// A test of a dimension without a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DimensionTestWord {
    NotNull,
    Unique,
}

pub(super) static DIMENSION_TEST_WORDS: Words<DimensionTestWord> = Words {
    list: &[("not_null", DimensionTestWord::NotNull), ("unique", DimensionTestWord::Unique)],
    also: &[("notnull", "not_null"), ("required", "not_null"), ("distinct", "unique")],
};

pub(super) static RELATIONSHIPS: Words<Relationship> = Words {
    list: &[
        ("many_to_one", Relationship::ManyToOne),
        ("one_to_many", Relationship::OneToMany),
        ("one_to_one", Relationship::OneToOne),
    ],
    also: &[
        ("belongs_to", "many_to_one"),
        ("belongsto", "many_to_one"),
        ("has_many", "one_to_many"),
        ("hasmany", "one_to_many"),
        ("has_one", "one_to_one"),
        ("hasone", "one_to_one"),
    ],
};

pub(super) static GRANULARITIES: Words<Granularity> = Words {
    list: &[
        ("second", Granularity::Second),
        ("minute", Granularity::Minute),
        ("hour", Granularity::Hour),
        ("day", Granularity::Day),
        ("week", Granularity::Week),
        ("month", Granularity::Month),
        ("quarter", Granularity::Quarter),
        ("year", Granularity::Year),
    ],
    also: &[("date", "day"), ("daily", "day"), ("weekly", "week"), ("monthly", "month"), ("yearly", "year")],
};

pub(super) static TIME_KINDS: Words<TimeKind> = Words {
    list: &[("utc", TimeKind::Utc), ("none", TimeKind::WallClock)],
    also: &[("local", "none"), ("wall_clock", "none"), ("gmt", "utc"), ("z", "utc")],
};

/// The anchors of a rolling window within each step.
pub(super) static WINDOW_OFFSETS: Words<WindowOffset> =
    Words { list: &[("start", WindowOffset::Start), ("end", WindowOffset::End)], also: &[] };

/// The rows of a running total: all rows, or only those of the range.
pub(super) static FROM: Words<bool> = Words { list: &[("range", false), ("all", true)], also: &[] };
