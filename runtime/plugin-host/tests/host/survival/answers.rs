//! Tests the limits on huge requests, and on answers that are small in the guest but huge in the host.

use terrane_app::ports::audit::Details;
use terrane_app::ports::plugins::Limit;
use terrane_compiler::governance::{MemberUse, Usage};
use terrane_compiler::types::LogicalType;

use super::*;
use crate::guests::image;

/// Returns code that writes `count` pairs of pointer and length at address 70,000 and up. Each pair refers to the same
/// 60,000 bytes.
fn aliases(count: u32) -> String {
    format!(
        "(local $i i32)
        (loop $again
          (i32.store (i32.add (i32.const 70000) (i32.mul (local.get $i) (i32.const 8))) (i32.const 4096))
          (i32.store offset=4 (i32.add (i32.const 70000) (i32.mul (local.get $i) (i32.const 8))) (i32.const 60000))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const {count}))))
        (memory.fill (i32.const 4096) (i32.const 0x61) (i32.const 60000))"
    )
}

/// Returns a body whose answer has the list of `count` aliases at the offset `at`.
fn with_list(at: u32, count: u32) -> String {
    let base = image::BASE + 50_000;
    format!(
        "{} (memory.fill (i32.const {base}) (i32.const 0) (i32.const 96))
        (i32.store (i32.const {}) (i32.const 70000)) (i32.store (i32.const {}) (i32.const {count})) (i32.const {base})",
        aliases(count),
        base + at,
        base + at + 4
    )
}

#[tokio::test]
async fn lists_that_expand_to_gigabytes_reach_the_transfer_limit() {
    // 5,000 strings over the same 60,000 bytes are 300 MB. Each role has a list of strings or lists in its answer.
    for (role, function, body) in [
        // The column names in the arena of a plan.
        (PluginRole::Check, "make-plan", with_list(28, 5_000)),
        // The warnings of a permit.
        (PluginRole::Governance, "on-query", permitting(&with_list(52, 5_000))),
        // The models, each of which is a list of bytes.
        (PluginRole::Detector, "train", with_list(4, 5_000)),
    ] {
        let (_, id) = ROLES.into_iter().find(|(known, _)| *known == role).unwrap();
        let guest = RoleGuest::new(role, id).with(function, &body);
        let stage = Stage::of(&guest, |_| {});
        let fault = match function {
            "train" => stage.train().await,
            _ => stage.call(INPUT).await.unwrap_err(),
        };
        assert!(fault.contains(&format!("limit of transferred bytes in `{function}`")), "{role}: {fault}");
    }
}

/// Changes the body so that its answer is a `permit`.
fn permitting(body: &str) -> String {
    let at = image::BASE + 50_000;
    let (code, answer) = body.rsplit_once("(i32.const ").unwrap();
    format!("{code} (i32.store8 (i32.const {}) (i32.const 1)) (i32.const {answer}", at + 8)
}

#[test]
fn lists_of_the_guest_description_reach_the_transfer_limit() {
    for (role, id) in ROLES {
        // The list `extra` of the record `info`, whose elements are pairs of strings.
        let describe = format!(
            "{} (i32.store (i32.const 2088) (i32.const 70000)) (i32.store (i32.const 2092) (i32.const 2500)) (i32.const 2048)",
            aliases(5_000)
        );
        let guest = RoleGuest { describe, ..RoleGuest::new(role, id) };
        let found = refusal(&guest, LITTLE_FUEL);
        assert_eq!(found, PluginFault::Limit { call: "describe", limit: Limit::Transfer }, "{role}");
    }
}

#[tokio::test]
async fn shared_nodes_beyond_the_tree_limit_are_a_fault() {
    // Each node has its predecessor twice as a child, so the tree has 2^30 - 1 nodes.
    let mut verdict = image::Image::new(80);
    verdict.byte(8, 1);
    let filter = verdict.room(56);
    verdict.text(filter, "orders");
    let nodes = verdict.room(30 * 16);
    let args = verdict.room(30 * 8);
    // The nodes are the literal `true`, then 29 times `and`.
    let literal = verdict.room(16);
    verdict.byte(literal, 1);
    verdict.byte(literal + 8, 1);
    verdict.byte(nodes, 1);
    for index in 1..30_u32 {
        let node = nodes + index as usize * 16;
        verdict.byte(node, 4);
        verdict.word(node + 4, (index - 1) * 2);
        verdict.word(node + 8, 2);
        let pair = args + (index as usize - 1) * 8;
        verdict.word(pair, index - 1);
        verdict.word(pair + 4, index - 1);
    }
    verdict.list(filter + 8, nodes, 30);
    verdict.list(filter + 16, args, 58);
    verdict.list(filter + 32, literal, 1);
    let root = verdict.room(4);
    verdict.word(root, 29);
    verdict.list(filter + 48, root, 1);
    verdict.list(16, filter, 1);
    let answer = format!("(i32.const {})", image::BASE);
    let fault = Stage::of_body(PluginRole::Governance, &verdict.data(), &answer).call(INPUT).await.unwrap_err();
    assert!(fault.contains("expand to more than 4096"), "{fault}");
}

#[tokio::test]
async fn valid_responses_are_read() {
    let answer = format!("(i32.const {})", image::BASE);
    let stage = Stage::of_body(PluginRole::Governance, &image::verdict().data(), &answer);
    let Ok(Decision::Permit(permit)) = stage.authorize(INPUT, &Arc::default()).await else { panic!("no permit") };
    assert_eq!((permit.obligations.row_filters.len(), permit.obligations.masks.len()), (1, 1));
    assert_eq!((permit.warnings.len(), permit.audit.len()), (1, 1));
    let stage = Stage::of_body(PluginRole::Detector, &image::detection().data(), &answer);
    assert_eq!(stage.detect(INPUT).await.unwrap().scores, [0.0, 0.5, 1.0, 0.25]);
}

/// Returns the facts of a query with this number of members, each of about this number of bytes.
fn wide(members: usize, bytes: usize) -> Arc<QueryFacts> {
    let member = |number: usize| MemberUse {
        cube: "orders".into(),
        member: format!("member_{number}").into(),
        ty: LogicalType::Text,
        is_measure: false,
        usage: Usage::Selected,
        tags: vec!["t".repeat(bytes).into()],
        pii: false,
        classification: None,
    };
    Arc::new(QueryFacts { members: (0..members).map(member).collect(), ..QueryFacts::default() })
}

#[tokio::test]
async fn model_of_megabytes_is_reported_or_refused_by_the_guests_memory() {
    let hook = RoleGuest::new(PluginRole::Governance, "policy-test").with("on-query", "(i32.const 4096)");
    let growing = RoleGuest { grows: true, ..hook.clone() };
    // The facts have over 1 MB, which fits into a guest's memory.
    let stage = Stage::of(&growing, |_| {});
    assert_eq!(stage.authorize(INPUT, &wide(10_000, 100)).await, Ok(Decision::Abstain));
    // A guest whose allocator reserves no memory violates the contract, because it returns an invalid address.
    let fault = Stage::of(&hook, |_| {}).authorize(INPUT, &wide(10_000, 100)).await.unwrap_err();
    assert!(fault.contains("from `on-query`"), "{fault}");
    // The facts have over 64 MiB, the limit of a guest's memory.
    let fault = stage.authorize(INPUT, &wide(70, 1 << 20)).await.unwrap_err();
    assert_eq!(fault, "reached its limit of memory in `on-query`");
    assert_eq!(stage.authorize(INPUT, &wide(1, 1)).await, Ok(Decision::Abstain));
}

#[tokio::test]
async fn artifact_of_megabytes_is_reported_or_refused_as_well() {
    use terrane_app::ports::governance::{Artifact, MetadataChange, Transition};
    let hook = RoleGuest::new(PluginRole::Governance, "policy-test")
        .with("on-certify", "(i32.const 4096)")
        .with("on-metadata-change", "(i32.const 4096)");
    let stage = Stage::of(&RoleGuest { grows: true, ..hook }, |_| {});
    let context = context(INPUT);
    let asking = HookRequest { context: &context, now: Timestamp::UNIX_EPOCH, time_zone: "UTC" };
    for (bytes, is_reported) in [(2 << 20, true), (65 << 20, false)] {
        let model = Artifact {
            kind: "model".to_owned(),
            body: Details::Encoded("x".repeat(bytes).into()),
            ..Artifact::default()
        };
        let certified = stage.hooks.certify(&asking, &model, Transition::Certify, "").await.remove(0).answer;
        let changed = stage.hooks.change(&asking, &MetadataChange::Added(model)).await.remove(0).answer;
        for (function, answer) in [("on-certify", certified), ("on-metadata-change", changed)] {
            match answer {
                Ok(findings) => assert!(is_reported && findings.is_empty()),
                Err(fault) => {
                    assert_eq!(fault.message, format!("reached its limit of memory in `{function}`"));
                    assert!(!is_reported);
                }
            }
        }
    }
}
