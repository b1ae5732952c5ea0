//! A governance hook for tests. It returns the verdict that its configuration describes, or misbehaves as it describes.
//!
//! In: a JSON object, such as `{"filter": {"cube": "orders", "member": "region", "value": "EU"}}`. Out: the verdict
//! with this row filter. The hook is not shipped.

use terrane_sdk::filter::{column, never};
use terrane_sdk::governance::{
    Artifact, GateFinding, Hook, Mask, Obligations, Principal, QueryFacts, Severity, Transition, Verdict,
};
use terrane_sdk::json::Json;
use terrane_sdk::{CallContext, Granularity, Issue, PluginError, PluginInfo};

/// The component.
pub struct Probe;

impl Hook for Probe {
    const INFO: PluginInfo = PluginInfo::new("policy-probe", "0.1.0", "Probe");

    fn on_query(context: &CallContext, who: &Principal, query: &QueryFacts) -> Result<Verdict, PluginError> {
        let config = Json::config(&context.config_json).map_err(PluginError::Internal)?;
        if config.get("unless_role").and_then(Json::text).is_some_and(|role| who.has_role(role)) {
            return Ok(Verdict::abstain());
        }
        if config.get("only_for").and_then(Json::text).is_none_or(|cube| query.reads(cube)) {
            misbehave(&config)?;
        }
        if let Some(code) = config.get("deny").and_then(Json::text) {
            return Ok(Verdict::deny(code, "the probe says no", "for the audit log only"));
        }
        let mut obligations = Obligations::default();
        let word = |json: &Json, name: &str| json.get(name).and_then(Json::text).unwrap_or_default().to_owned();
        for filter in config.get("filters").map(Json::items).unwrap_or_default().iter().chain(config.get("filter")) {
            let cube = word(filter, "cube");
            // Skips cubes that the query does not read, as a real policy does, unless the configuration says `always`.
            if !query.reads(&cube) && filter.get("always").is_none() {
                continue;
            }
            let condition = match filter.get("value").and_then(Json::text) {
                Some(value) => column(&word(filter, "member")).eq(value),
                None => never(),
            };
            obligations = obligations.row_filter(&cube, &condition);
        }
        for mask in config.get("masks").map(Json::items).unwrap_or_default().iter().chain(config.get("mask")) {
            let cube = word(mask, "cube");
            if query.reads(&cube) {
                obligations = obligations.mask(&cube, &word(mask, "member"), mask_of(&word(mask, "kind")));
            }
        }
        if let Some(rows) = config.get("max_rows").and_then(Json::number) {
            obligations = obligations.limit_rows(rows as u64);
        }
        obligations.require_time_filter = config.get("time").and_then(Json::bool) == Some(true);
        if let Some(warning) = config.get("warning").and_then(Json::text) {
            obligations = obligations.warning(warning);
        }
        if let Some(key) = config.get("note").and_then(Json::text) {
            obligations = obligations.note(key, &arguments_text(who, query));
        }
        if config.get("two_roots").is_some() {
            obligations.row_filters.iter_mut().for_each(|filter| filter.predicate.roots.push(0));
        }
        Ok(Verdict::permit(obligations))
    }

    fn on_certify(
        context: &CallContext,
        _: &Principal,
        item: &Artifact,
        _: Transition,
        _: &str,
    ) -> Result<Vec<GateFinding>, PluginError> {
        misbehave(&Json::config(&context.config_json).map_err(PluginError::Internal)?)?;
        Ok(vec![GateFinding::blocking("probed", Severity::Info, &format!("the probe saw {}", item.id))])
    }

    fn check_config(config_json: &str) -> Result<(), Vec<Issue>> {
        Json::config(config_json).map(|_| ()).map_err(|message| vec![Issue { path: String::new(), message }])
    }
}

/// Returns the hook's arguments as text.
fn arguments_text(who: &Principal, query: &QueryFacts) -> String {
    let members: Vec<String> = query.members.iter().map(|used| format!("{}.{}", used.cube, used.member)).collect();
    let literals = format!("{:?}", query.filters.literals);
    format!(
        "{} {} {:?} {} {} {} {literals}",
        who.user_id,
        who.auth_method,
        query.surface,
        who.scopes.join(","),
        query.cubes.join(","),
        members.join(",")
    )
}

fn mask_of(kind: &str) -> Mask {
    match kind {
        "drop" => Mask::DropColumn,
        "hash" => Mask::Hash,
        "partial" => Mask::Partial,
        "fixed" => Mask::Fixed("hidden".to_owned()),
        "year" => Mask::TruncateDate(Granularity::Year),
        "named" => Mask::Named("of a later host".to_owned()),
        _ => Mask::Nullify,
    }
}

fn misbehave(config: &Json) -> Result<(), PluginError> {
    match config.get("fault").and_then(Json::text) {
        Some("trap") => {
            // An index out of bounds causes a trap, whatever the panic strategy is.
            let nothing: Vec<u8> = Vec::new();
            Err(PluginError::Internal(format!("{}", nothing[config.fields().len()])))
        }
        Some("loop") => loop {
            std::hint::black_box(());
        },
        Some("memory") => {
            let mut blocks = Vec::new();
            loop {
                blocks.push(vec![1_u8; 1 << 20]);
                std::hint::black_box(&blocks);
            }
        }
        Some("error") => Err(PluginError::Internal("on purpose".to_owned())),
        _ => Ok(()),
    }
}

terrane_sdk::export_hook!(Probe);
