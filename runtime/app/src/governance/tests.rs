use super::DiffMark;
use super::certification::{allowed_moves, next_status};
use super::diff::diff;
use crate::ports::governance::Transition;
use crate::ports::governance_records::CertificationStatus;
use CertificationStatus::{Archived, Certified, Deprecated, Draft, PendingReview};

/// The table of moves in the documented interface: status, move, next status.
const TABLE: [(CertificationStatus, Transition, CertificationStatus); 7] = [
    (Draft, Transition::Submit, PendingReview),
    (PendingReview, Transition::Certify, Certified),
    (PendingReview, Transition::Reject, Draft),
    (Certified, Transition::Deprecate, Deprecated),
    (Draft, Transition::Archive, Archived),
    (Deprecated, Transition::Archive, Archived),
    (Deprecated, Transition::Restore, Draft),
];

#[test]
fn only_listed_transitions_are_allowed() {
    for status in CertificationStatus::ALL {
        for transition in Transition::ALL {
            let row = TABLE.iter().find(|(from, step, _)| (*from, *step) == (status, transition));
            let expected = row.map(|(_, _, to)| *to);
            assert_eq!(next_status(status, transition), expected, "{status:?} {transition:?}");
            assert_eq!(allowed_moves(status).contains(&transition), expected.is_some(), "{status:?} {transition:?}");
        }
    }
}

/// Performs random transitions. An artifact becomes certified only from a pending review, and an archived artifact
/// stays archived.
#[test]
fn random_transitions_follow_the_table() {
    let mut seed: u64 = 42;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..2_000 {
        let (mut status, mut path) = (Draft, vec![Draft]);
        for _ in 0..30 {
            let transition = Transition::ALL[random(Transition::ALL.len())];
            match next_status(status, transition) {
                Some(next) => {
                    assert_ne!(next, status);
                    status = next;
                    path.push(next);
                }
                None => assert!(!allowed_moves(status).contains(&transition)),
            }
        }
        for pair in path.windows(2) {
            assert!(pair[1] != Certified || pair[0] == PendingReview, "{path:?}");
            assert!(pair[1] != Deprecated || pair[0] == Certified, "{path:?}");
            assert_ne!(pair[0], Archived, "{path:?}");
        }
    }
}

#[test]
fn diff_contains_the_changed_lines() {
    let lines = |before: &str, after: &str| {
        let mark = |mark| if mark == DiffMark::Added { '+' } else { '-' };
        diff(before, after).into_iter().map(|line| format!("{}{}", mark(line.mark), line.text)).collect::<Vec<_>>()
    };
    assert_eq!(lines("a\nb\nc", "a\nb\nc"), Vec::<String>::new());
    assert_eq!(lines("a\nb\nc", "a\nx\nc"), ["-b", "+x"]);
    assert_eq!(lines("", "a"), ["+a"]);
    assert_eq!(lines("a\nb\nc\nd", "b\nd\ne"), ["-a", "-c", "+e"]);
    let (long, other) = ("a\n".repeat(2_000), "b\n".repeat(2_000));
    assert_eq!(lines(&long, &other).len(), 4_000, "long texts are not compared line by line");
}
