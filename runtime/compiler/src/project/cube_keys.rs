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
        about: "A table or a query whose rows can be aggregated, grouped and joined.",
        keys: &[
            NAME,
            Key::optional(
                "sql_table",
                Kind::Text,
                "raw.$name",
                "The table with the rows: `schema.table`, or `{{ ref('model') }}`. Either this or `sql`.",
            )
            .also(&["table", "table_name", "from", "relation", "model"]),
            Key::optional(
                "sql",
                Kind::Text,
                "SELECT * FROM raw.$name",
                "A query that returns the rows. It begins with SELECT or WITH. Either this or `sql_table`.",
            )
            .also(&["query"]),
            Key::optional(
                "extends",
                Kind::Text,
                "other_cube",
                "Another cube, whose rows, members and joins this cube inherits. Its own members and joins replace those of the same name.",
            )
            .also(&["inherits", "base"]),
            TITLE,
            DESCRIPTION,
            Key::optional(
                "public",
                Kind::Boolean,
                "false",
                "True if queries may name the cube. With `false`, only joins, metrics and policies can use it. Default: true.",
            )
            .also(&["shown", "visible"]),
            Key::optional("dimensions", Kind::List(&DIMENSION), "[]", "Values to group and to filter rows by.")
                .also(&["columns", "fields", "attributes"]),
            Key::optional("measures", Kind::List(&MEASURE), "[]", "Aggregates over the rows.").also(&[
                "metrics",
                "aggregates",
                "facts",
            ]),
            Key::optional("joins", Kind::List(&JOIN), "[]", "Joins to other cubes.")
                .also(&["relationships"]),
            Key::optional("segments", Kind::List(&SEGMENT), "[]", "Named conditions on the rows.").also(&["filters"]),
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
                "The time or the query that shows that the rows changed. Cached results are not used after a change.",
            )
            .also(&["refresh_key"]),
            META,
        ],
        one_of: &["sql_table", "sql", "extends"],
        apart: &["sql_table", "sql"],
    };

pub(super) static MEASURE: MappingKeys = MappingKeys::new(
    "measure",
    "An aggregate over the rows of a cube.",
    &[
        NAME,
        Key::required("type", Kind::Word(&MEASURE_TYPES), "sum", "The aggregation of the rows.").also(&[
            "agg",
            "aggregation",
            "aggregate",
            "measure_type",
        ]),
        Key::optional(
            "sql",
            Kind::Text,
            "amount",
            "The column or the expression to aggregate. For `number`, an expression over `{measures}`. Optional only for \
             `count`.",
        )
        .also(&["expr", "expression", "column", "field"]),
        Key::optional("filters", Kind::List(&FILTER), "[]", "Conditions that a row must meet to be aggregated.").also(&[
            "where",
            "filter",
            "condition",
        ]),
        Key::optional(
            "percentile",
            Kind::Text,
            "0.95",
            "For `percentile`, the share of values below it, from 0 to 1, with at most six decimal places.",
        )
        .also(&["fraction", "quantile"]),
        Key::optional(
            "sample",
            Kind::Boolean,
            "true",
            "For `stddev` and `variance`, true if the values are a sample of a larger population. Default: false.",
        ),
        Key::optional(
            "approximate",
            Kind::Boolean,
            "true",
            "For `median` and `percentile`, true if the warehouse may approximate a value that it cannot compute exactly. \
             Default: false.",
        ),
        Key::optional(
            "from",
            Kind::Word(&FROM),
            "all",
            "For `running_total`, the rows to add up: those of the queried range (`range`), or earlier rows too (`all`). Default: range.",
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
        Key::optional("drill_members", Kind::Texts, "[id]", "Members that a client offers for drilling down.")
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
    "A value to group and to filter rows by.",
    &[
        NAME,
        Key::required("type", Kind::Word(&DIMENSION_TYPES), "string", "The type of its values.")
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
            "True if the dimension is the primary key or a part of it. Default: false.",
        )
        .also(&["pk", "key", "is_primary_key", "unique"]),
        Key::optional(
            "primary_time",
            Kind::Boolean,
            "true",
            "For `time`, true if time ranges without a dimension apply to it. Default: true if it is the cube's only time dimension.",
        ),
        Key::optional(
            "partition",
            Kind::Boolean,
            "true",
            "True if the table is partitioned by the dimension, so that a filter on it reads only a part of the table. Default: false.",
        ),
        Key::optional(
            "timezone",
            Kind::Word(&TIME_KINDS),
            "none",
            "For `time`, `utc` for instants, or `none` for local times, which are never converted. Default: utc.",
        ),
        Key::optional(
            "granularities",
            Kind::Words(&GRANULARITIES),
            "[day, month]",
            "For `time`, the granularities that queries may use. Default: all.",
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
    "A named condition on the rows.",
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
    "A join to another cube.",
    &[
        Key::required("name", Kind::Name, "customers", "The joined cube, or an alias of the cube in `cube`.")
            .also(&["to", "target"]),
        Key::optional("cube", Kind::Text, "customers", "The joined cube, if `name` is an alias. Default: `name`."),
        Key::required(
            "relationship",
            Kind::Word(&RELATIONSHIPS),
            "many_to_one",
            "The numbers of rows that match: this cube first, then the joined cube.",
        )
        .also(&["type", "kind", "cardinality", "relation"]),
        Key::required(
            "sql",
            Kind::Text,
            "\"{CUBE}.$name_id = {$name}.id\"",
            "The condition of the join. It may refer to these two cubes only.",
        )
        .also(&["on", "condition", "sql_on"]),
        Key::optional(
            "always",
            Kind::Boolean,
            "true",
            "True if every row has a joined row, so that an inner join returns the same rows. Default: false.",
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
        Key::optional("partition_granularity", Kind::Word(&GRANULARITIES), "month", "The period of one partition."),
        Key::optional(
            "timezone",
            Kind::Text,
            "Europe/Berlin",
            "The time zone of steps of a day or more, by its IANA name. Default: UTC.",
        )
        .also(&["time_zone", "zone"]),
        Key::optional(
            "refresh",
            Kind::Mapping(&REFRESH),
            "{every: 1 hour}",
            "The time or the query that starts a new build.",
        )
        .also(&["refresh_key"]),
        Key::optional(
            "max_staleness",
            Kind::Text,
            "2 hours",
            "The maximum age of a table that queries read: an integer and a unit. Default: any.",
        ),
        Key::optional(
            "build_range",
            Kind::Mapping(&BUILD_RANGE),
            "{start: 2024-01-01}",
            "The days to build in advance. Default: all.",
        ),
        Key::optional(
            "arrival",
            Kind::Text,
            "inserted_at",
            "A column with the time at which a row arrived, to find late rows.",
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
    "The time or the query that starts a new build.",
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
            "A query whose result changes if the rows change.",
        )
        .also(&["query"]),
        Key::optional(
            "update_window",
            Kind::Text,
            "7 days",
            "The period before the newest row in which rows may still change. With `incremental`, older partitions are not rebuilt.",
        ),
        Key::optional(
            "incremental",
            Kind::Boolean,
            "true",
            "True to rebuild only partitions whose rows changed. Default: false.",
        ),
    ],
);

pub(super) static BUILD_RANGE: MappingKeys = MappingKeys::new(
    "build_range",
    "The days to build in advance, with both ends included.",
    &[
        Key::optional("start", Kind::Text, "2024-01-01", "The first day. Default: that of the oldest row."),
        Key::optional("end", Kind::Text, "2024-12-31", "The last day. Default: that of the newest row."),
    ],
);

pub(super) static CUBE_REFRESH: MappingKeys = MappingKeys::new(
    "refresh",
    "The time or the query that shows that the rows of a cube changed.",
    &[
        Key::optional(
            "every",
            Kind::Text,
            "5 minutes",
            "An integer and a unit from seconds to weeks. With `sql`, the interval between two runs of the query. Default: 10 seconds.",
        ),
        Key::optional(
            "sql",
            Kind::Text,
            "SELECT max(updated_at) FROM raw.orders",
            "A query whose result changes if the rows change.",
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
