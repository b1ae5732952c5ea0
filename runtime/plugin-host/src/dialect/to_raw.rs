//! Converts the contract's types to the compiler's, without checks.

use crate::bindings::dialect::exports::terrane::dialect::dialect as wire;
use terrane_compiler::sql::dialect_profile as host;
use terrane_compiler::types::{Granularity, LogicalType};
// A type that several interfaces share is generated in the module of the interface that defines it.
use crate::bindings::common::LogicalType as WireType;

pub(super) fn raw_profile(profile: wire::Profile) -> host::RawProfile {
    host::RawProfile {
        name: profile.name,
        quoting: quoting(profile.quoting),
        placeholders: match profile.placeholders {
            wire::PlaceholderStyle::Question => host::PlaceholderStyle::Question,
            wire::PlaceholderStyle::DollarN => host::PlaceholderStyle::DollarN,
            wire::PlaceholderStyle::ColonN => host::PlaceholderStyle::ColonN,
            wire::PlaceholderStyle::AtPn => host::PlaceholderStyle::AtPn,
            wire::PlaceholderStyle::Pyformat => host::PlaceholderStyle::Pyformat,
            wire::PlaceholderStyle::None => host::PlaceholderStyle::None,
        },
        max_params: profile.max_params,
        limit: match profile.limit {
            wire::LimitStyle::LimitOffset => host::LimitStyle::LimitOffset,
            wire::LimitStyle::FetchFirst => host::LimitStyle::FetchFirst,
            wire::LimitStyle::Top => host::LimitStyle::Top,
            wire::LimitStyle::Rownum => host::LimitStyle::Rownum,
        },
        default_null_order: match profile.default_null_order {
            wire::NullOrder::NullsLow => host::NullOrder::NullsLow,
            wire::NullOrder::NullsHigh => host::NullOrder::NullsHigh,
            wire::NullOrder::NullsFirst => host::NullOrder::NullsFirst,
            wire::NullOrder::NullsLast => host::NullOrder::NullsLast,
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

fn quoting(quoting: wire::Quoting) -> host::Quoting {
    host::Quoting {
        ident_open: quoting.ident_open,
        ident_close: quoting.ident_close,
        ident_escape: quoting.ident_escape,
        string_quote: quoting.string_quote,
        string_prefix: quoting.string_prefix,
        string_escape: quoting.string_escape,
        string_escape_backslash: quoting.string_escape_backslash,
        folding: match quoting.folding {
            wire::CaseFolding::ToLower => host::CaseFolding::ToLower,
            wire::CaseFolding::ToUpper => host::CaseFolding::ToUpper,
            wire::CaseFolding::Keep => host::CaseFolding::Keep,
        },
        max_ident_bytes: quoting.max_ident_bytes,
        reserved: quoting.reserved,
    }
}

fn features(flags: wire::Feature) -> host::Features {
    host::Features {
        nulls_first_last: flags.contains(wire::Feature::NULLS_FIRST_LAST),
        ilike: flags.contains(wire::Feature::ILIKE),
        filter_clause: flags.contains(wire::Feature::FILTER_CLAUSE),
        grouping_sets: flags.contains(wire::Feature::GROUPING_SETS),
        ctes: flags.contains(wire::Feature::CTES),
        recursive_ctes: flags.contains(wire::Feature::RECURSIVE_CTES),
        lateral: flags.contains(wire::Feature::LATERAL),
        qualify: flags.contains(wire::Feature::QUALIFY),
        window_functions: flags.contains(wire::Feature::WINDOW_FUNCTIONS),
        boolean_literals: flags.contains(wire::Feature::BOOLEAN_LITERALS),
        full_outer_join: flags.contains(wire::Feature::FULL_OUTER_JOIN),
        interval_arithmetic: flags.contains(wire::Feature::INTERVAL_ARITHMETIC),
        explain_json: flags.contains(wire::Feature::EXPLAIN_JSON),
        cancel_by_query_id: flags.contains(wire::Feature::CANCEL_BY_QUERY_ID),
        punctuated_names: flags.contains(wire::Feature::PUNCTUATED_NAMES),
    }
}

/// Converts an operator's template. Both enums have the contract's order.
fn op(template: wire::OpTemplate) -> host::RawOp {
    host::RawOp {
        op: host::Op::ALL[template.op as usize],
        name: template.name,
        arity: template.arity,
        ty: template.ty.map(logical_type),
        sql: template.sql,
    }
}

fn time(template: wire::TimeTemplate) -> host::RawTime {
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

fn logical_type(ty: WireType) -> LogicalType {
    LogicalType::ALL[ty as usize]
}
