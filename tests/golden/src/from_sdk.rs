//! Converts the SDK's types to the compiler's, as the plugin host does for a component.

use terrane_compiler::sql::dialect_profile as host;
use terrane_compiler::types::{Granularity, LogicalType};
use terrane_sdk::dialect as sdk;

pub(crate) fn raw_profile(profile: sdk::Profile) -> host::RawProfile {
    host::RawProfile {
        name: profile.name,
        quoting: quoting(profile.quoting),
        placeholders: match profile.placeholders {
            sdk::PlaceholderStyle::Question => host::PlaceholderStyle::Question,
            sdk::PlaceholderStyle::DollarN => host::PlaceholderStyle::DollarN,
            sdk::PlaceholderStyle::ColonN => host::PlaceholderStyle::ColonN,
            sdk::PlaceholderStyle::AtPn => host::PlaceholderStyle::AtPn,
            sdk::PlaceholderStyle::Pyformat => host::PlaceholderStyle::Pyformat,
            sdk::PlaceholderStyle::None => host::PlaceholderStyle::None,
        },
        max_params: profile.max_params,
        limit: match profile.limit {
            sdk::LimitStyle::LimitOffset => host::LimitStyle::LimitOffset,
            sdk::LimitStyle::FetchFirst => host::LimitStyle::FetchFirst,
            sdk::LimitStyle::Top => host::LimitStyle::Top,
            sdk::LimitStyle::Rownum => host::LimitStyle::Rownum,
        },
        default_null_order: match profile.default_null_order {
            sdk::NullOrder::NullsLow => host::NullOrder::NullsLow,
            sdk::NullOrder::NullsHigh => host::NullOrder::NullsHigh,
            sdk::NullOrder::NullsFirst => host::NullOrder::NullsFirst,
            sdk::NullOrder::NullsLast => host::NullOrder::NullsLast,
        },
        features: features(profile.features),
        ops: profile.ops.into_iter().map(op).collect(),
        times: profile.times.into_iter().map(time).collect(),
        types: profile.types.into_iter().map(|t| (logical_type(t.ty), t.sql)).collect(),
        date_literal: profile.date_literal,
        timestamp_literal: profile.timestamp_literal,
        timestamp_tz_literal: profile.timestamp_tz_literal,
        true_literal: profile.true_literal,
        false_literal: profile.false_literal,
        explain: profile.explain,
        extra: profile.extra,
    }
}

fn quoting(quoting: sdk::Quoting) -> host::Quoting {
    host::Quoting {
        ident_open: quoting.ident_open,
        ident_close: quoting.ident_close,
        ident_escape: quoting.ident_escape,
        string_quote: quoting.string_quote,
        string_prefix: quoting.string_prefix,
        string_escape: quoting.string_escape,
        string_escape_backslash: quoting.string_escape_backslash,
        folding: match quoting.folding {
            sdk::CaseFolding::ToLower => host::CaseFolding::ToLower,
            sdk::CaseFolding::ToUpper => host::CaseFolding::ToUpper,
            sdk::CaseFolding::Keep => host::CaseFolding::Keep,
        },
        max_ident_bytes: quoting.max_ident_bytes,
        reserved: quoting.reserved,
    }
}

fn features(flags: sdk::Feature) -> host::Features {
    host::Features {
        nulls_first_last: flags.contains(sdk::Feature::NULLS_FIRST_LAST),
        ilike: flags.contains(sdk::Feature::ILIKE),
        filter_clause: flags.contains(sdk::Feature::FILTER_CLAUSE),
        grouping_sets: flags.contains(sdk::Feature::GROUPING_SETS),
        ctes: flags.contains(sdk::Feature::CTES),
        recursive_ctes: flags.contains(sdk::Feature::RECURSIVE_CTES),
        lateral: flags.contains(sdk::Feature::LATERAL),
        qualify: flags.contains(sdk::Feature::QUALIFY),
        window_functions: flags.contains(sdk::Feature::WINDOW_FUNCTIONS),
        boolean_literals: flags.contains(sdk::Feature::BOOLEAN_LITERALS),
        full_outer_join: flags.contains(sdk::Feature::FULL_OUTER_JOIN),
        interval_arithmetic: flags.contains(sdk::Feature::INTERVAL_ARITHMETIC),
        explain_json: flags.contains(sdk::Feature::EXPLAIN_JSON),
        cancel_by_query_id: flags.contains(sdk::Feature::CANCEL_BY_QUERY_ID),
        punctuated_names: flags.contains(sdk::Feature::PUNCTUATED_NAMES),
    }
}

/// Converts an operator's template. The enums of both crates have the variants of the contract in the same order.
fn op(template: sdk::OpTemplate) -> host::RawOp {
    host::RawOp {
        op: host::Op::ALL[template.op as usize],
        name: template.name,
        arity: template.arity,
        ty: template.ty.map(logical_type),
        sql: template.sql,
    }
}

fn time(template: sdk::TimeTemplate) -> host::RawTime {
    host::RawTime {
        granularity: Granularity::ALL[template.granularity as usize],
        trunc: template.trunc,
        trunc_instant: template.trunc_instant,
        add: template.add,
        diff: template.diff,
        part: template.part,
        label: template.label,
    }
}

fn logical_type(ty: sdk::LogicalType) -> LogicalType {
    LogicalType::ALL[ty as usize]
}
