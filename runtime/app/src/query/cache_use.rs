//! The source of a query's result. The log and the answer name it.

/// The source of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheUse {
    /// A tier of the cache, by its name.
    Hit(&'static str),
    Miss(MissReason),
}

/// The reason why a result came from the warehouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissReason {
    Disabled,
    Bypassed,
    Absent,
    /// The data has changed.
    Outdated,
    /// The data has no version, and the time for which the result may be reused has passed.
    Expired,
    /// The result is older than the caller allows.
    TooOld,
    /// The version of the data could not be read.
    VersionUnknown,
    /// The data has no version, and such results are not stored.
    NoVersion,
    Nondeterministic,
    Streamed,
}

impl CacheUse {
    pub(super) fn is_hit(self) -> bool {
        matches!(self, CacheUse::Hit(_))
    }

    pub(super) fn miss_reason(self) -> Option<&'static str> {
        let CacheUse::Miss(reason) = self else { return None };
        Some(match reason {
            MissReason::Disabled => "disabled",
            MissReason::Bypassed => "bypassed",
            MissReason::Absent => "absent",
            MissReason::Outdated => "outdated",
            MissReason::Expired => "expired",
            MissReason::TooOld => "too_old",
            MissReason::VersionUnknown => "version_unknown",
            MissReason::NoVersion => "no_version",
            MissReason::Nondeterministic => "nondeterministic",
            MissReason::Streamed => "streamed",
        })
    }
}
