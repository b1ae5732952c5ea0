//! Fakes of governance hooks, which answer as a case configures them.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use terrane_app::ports::governance::{
    Artifact, Decision, Denial, GateFinding, Governance, Hook, HookFault, HookRequest, HookResponse, MetadataChange,
    Permit, Transition,
};
use terrane_app::ports::severity::FindingSeverity;
use terrane_compiler::governance::{
    HookCondition, HookMask, MemberMask, Obligations, QueryFacts, RowFilter, TestOperator,
};
use terrane_compiler::types::Value;

use crate::fakes::SECRET;

/// One hook, with its answer to every query.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FakeHook {
    pub id: String,
    pub is_optional: bool,
    pub is_monitored: bool,
    /// True if each call of the hook fails.
    pub faults: bool,
    /// The code with which the hook denies each query; `None` if it denies no query.
    pub denies: Option<String>,
    /// A dimension such as `orders.status`. The hook's row filter accepts only the value `open`.
    pub filters: Option<String>,
    /// A dimension such as `orders.status`, whose values the hook masks as null.
    pub masks: Option<String>,
    pub max_rows: Option<u64>,
    pub wants_time: bool,
    pub warns: Option<String>,
    pub notes: Option<String>,
    /// True if the hook blocks changes of artifacts.
    pub blocks: bool,
}

/// The hooks of a case.
pub struct FakeHooks(pub Vec<FakeHook>);

impl FakeHook {
    fn said<T>(&self, answer: T) -> HookResponse<T> {
        let hook =
            Hook { id: self.id.as_str().into(), is_required: !self.is_optional, is_monitored: self.is_monitored };
        let fault = HookFault { message: SECRET.to_owned() };
        HookResponse { hook, answer: if self.faults { Err(fault) } else { Ok(answer) } }
    }

    fn decision(&self) -> Decision {
        if let Some(code) = &self.denies {
            return Decision::Deny(Denial {
                code: code.as_str().into(),
                public_message: "ask the owner of the data".into(),
                audit_reason: SECRET.into(),
            });
        }
        let member = |name: &String| name.split_once('.').map(|(cube, member)| (cube.into(), member.into()));
        let open = |(cube, member)| RowFilter {
            cube,
            condition: HookCondition::Test {
                member,
                operator: TestOperator::Eq,
                values: vec![Value::Text("open".into())],
            },
        };
        let mask = |(cube, member)| MemberMask { cube, member, mask: HookMask::Nullify };
        Decision::Permit(Permit {
            obligations: Obligations {
                row_filters: self.filters.iter().filter_map(member).map(open).collect(),
                masks: self.masks.iter().filter_map(member).map(mask).collect(),
                max_rows: self.max_rows,
                require_time_filter: self.wants_time,
            },
            warnings: self.warns.iter().cloned().collect(),
            audit: self.notes.iter().map(|note| ("note".to_owned(), note.clone())).collect(),
        })
    }

    fn findings(&self, item: &str) -> Vec<GateFinding> {
        let message = format!("`{item}` was looked at");
        vec![GateFinding {
            rule: "looked_at".to_owned(),
            severity: FindingSeverity::Low,
            message,
            is_blocking: self.blocks,
        }]
    }
}

#[async_trait]
impl Governance for FakeHooks {
    fn is_silent(&self) -> bool {
        self.0.is_empty()
    }

    async fn authorize(&self, _: &HookRequest<'_>, _: &Arc<QueryFacts>) -> Vec<HookResponse<Decision>> {
        self.0.iter().map(|hook| hook.said(hook.decision())).collect()
    }

    fn blame(&self, _: &HookRequest<'_>, _: &Hook, _: &str) {}

    async fn certify(
        &self,
        _: &HookRequest<'_>,
        item: &Artifact,
        _: Transition,
        _: &str,
    ) -> Vec<HookResponse<Vec<GateFinding>>> {
        self.0.iter().map(|hook| hook.said(hook.findings(&item.id))).collect()
    }

    async fn change(&self, _: &HookRequest<'_>, change: &MetadataChange) -> Vec<HookResponse<Vec<GateFinding>>> {
        let (MetadataChange::Added(item) | MetadataChange::Removed(item) | MetadataChange::Changed { after: item, .. }) =
            change;
        self.0.iter().map(|hook| hook.said(hook.findings(&item.id))).collect()
    }
}
