//! Revocation of tokens that were issued to applications, by `jti` or by subject.
//!
//! In: revocations of the state database. Out: the decision whether a verified token is revoked. Not here: sessions,
//! whose end is recorded in the sessions themselves.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{AuthError, Authenticator};
use crate::ports::credentials::{Revocation, RevokedTokens};
use crate::ports::tokens::TokenId;

/// The longest lifetime that a token of an application may have. Revocations are stored for longer than this.
pub const MAX_APPLICATION_TOKEN_AGE: Duration = Duration::from_secs(30 * 86_400);

/// The maximum time by which the clocks of applications may be ahead. Adapters accept tokens whose time of issue is at
/// most this much later than the current time.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(5);

/// All revocations: the revoked tokens, with the time of the revocation.
#[derive(Debug, Default)]
pub(crate) struct Revocations(HashMap<RevokedTokens, Timestamp>);

impl Revocations {
    pub(super) fn new(all: Vec<Revocation>) -> Self {
        Revocations(all.into_iter().map(|revocation| (revocation.tokens, revocation.revoked_at)).collect())
    }

    /// Returns whether a token was revoked. A token without a time of issue counts as issued before each revocation. So
    /// does a token that was issued up to [`CLOCK_TOLERANCE`] after a revocation, because its clock may have been
    /// ahead.
    pub(super) fn refuse(&self, id: &TokenId, user_id: &Arc<str>) -> bool {
        let token = id.token.clone().map(RevokedTokens::Token);
        if token.is_some_and(|token| self.0.contains_key(&token)) {
            return true;
        }
        let subjects = [Some(user_id.clone()), id.subject.clone()].into_iter().flatten().map(RevokedTokens::Subject);
        let revoked_at = subjects.filter_map(|subject| self.0.get(&subject)).max();
        revoked_at.is_some_and(|revoked_at| {
            id.issued_at.is_none_or(|issued_at| {
                issued_at.duration_since(*revoked_at) <= SignedDuration::try_from(CLOCK_TOLERANCE).unwrap_or_default()
            })
        })
    }
}

impl RevokedTokens {
    /// Returns the name of these tokens in the audit log.
    pub fn resource(&self) -> String {
        match self {
            RevokedTokens::Token(id) => format!("token:{id}"),
            RevokedTokens::Subject(subject) => format!("user:{subject}"),
        }
    }
}

impl Authenticator {
    /// Returns an error if a token of an application was revoked.
    pub(super) async fn check_revocations(&self, id: &TokenId, user_id: &Arc<str>) -> Result<(), AuthError> {
        let read = async { Ok(Some(Arc::new(Revocations::new(self.ports.credentials.revocations().await?)))) };
        let revocations = self.cache.revocations.get(ALL, read).await?.ok_or(AuthError::Unavailable)?;
        if revocations.refuse(id, user_id) { Err(AuthError::InvalidToken { why: "it was revoked" }) } else { Ok(()) }
    }
}

/// The key of the only cache entry. All revocations are read together.
const ALL: &str = "revocations";

#[cfg(test)]
mod tests {
    use super::*;

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn revoked_tokens_are_rejected_by_id_and_subject() {
        let revocations = Revocations::new(vec![
            Revocation { tokens: RevokedTokens::Token("t1".into()), revoked_at: time(10) },
            Revocation { tokens: RevokedTokens::Subject("ada".into()), revoked_at: time(100) },
        ]);
        let id = |token: Option<&str>, subject: &str, issued_at: Option<i64>| TokenId {
            token: token.map(Into::into),
            subject: Some(subject.into()),
            issued_at: issued_at.map(time),
        };
        for (id, user_id, is_refused) in [
            (id(Some("t1"), "bob", Some(1_000)), "bob", true),
            (id(Some("t2"), "bob", Some(1)), "bob", false),
            (id(Some("ada"), "bob", Some(1)), "bob", false),
            (id(None, "t1", None), "t1", false),
            (id(None, "ada", Some(100)), "u1", true),
            (id(None, "u1", Some(99)), "ada", true),
            (id(None, "ada", Some(105)), "ada", true),
            (id(None, "ada", Some(106)), "ada", false),
            (id(None, "ada", None), "ada", true),
        ] {
            assert_eq!(revocations.refuse(&id, &user_id.into()), is_refused, "{id:?} {user_id}");
        }
    }
}
