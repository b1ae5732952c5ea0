//! Closes members that show the values of closed members.
//!
//! In: drafts in which some members are masked. Out: the same drafts, in which every member that is computed from
//! masked members is closed, and a finding for each.

use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::Diagnostic;

use crate::draft::{CubeDraft, DIMENSIONS, ITEMS, MEASURES, Member, SEGMENTS, member};
use crate::finding::closed;

/// Closes the members that are computed from masked members, because their values would show what the model masks.
pub(crate) fn close_derived(drafts: &mut [CubeDraft], findings: &mut Vec<Diagnostic>) {
    const CLOSED: [usize; 3] = [DIMENSIONS, MEASURES, SEGMENTS];
    let masked_need = |drafts: &[CubeDraft], item: &Member| {
        let mut masked = item.needs.iter().filter(|need| member(drafts, need).is_some_and(|need| need.is_masked));
        masked.next().cloned()
    };
    loop {
        let mut derived = Vec::new();
        for (at, draft) in drafts.iter().enumerate() {
            for (list, index, item) in CLOSED
                .iter()
                .flat_map(|list| (0..).zip(&draft.lists[*list]).map(move |(index, item)| (*list, index, item)))
            {
                if let Some(need) = masked_need(drafts, item).filter(|_| !item.is_masked) {
                    derived.push((at, list, index, need));
                }
            }
        }
        if derived.is_empty() {
            return;
        }
        for (at, list, index, need) in derived {
            let cube = drafts[at].original.clone();
            let item: &mut Member = &mut drafts[at].lists[list][index];
            item.is_masked = true;
            item.yaml.set("public", Yaml::Boolean(false));
            let what = format!(
                "{} `{}` of cube `{cube}` is closed: it reads {need}, which the model shows to some callers only",
                ITEMS[list], item.name
            );
            let cure = "Write a policy with `mask` or `deny` for the other callers (policies/*.yml), then remove `public: false`.";
            findings.push(closed(item.span.clone(), what, cure));
        }
    }
}
