//! The period of validity of a certificate, which the server reports before it ends (RFC 5280, section 4.1.2.5).
//!
//! In: the DER of a certificate. Out: [`Validity`], or `None` if the certificate cannot be parsed. Not here: other
//! checks of the certificate, which clients make.

use jiff::{SignedDuration, Timestamp};
use x509_cert::certificate::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::time::Time;

/// A period that includes both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    pub from: Timestamp,
    pub until: Timestamp,
}

impl Validity {
    pub(super) fn of(certificate: &[u8]) -> Option<Self> {
        let certificate = Certificate::from_der(certificate).ok()?;
        let validity = certificate.tbs_certificate().validity();
        Some(Validity { from: timestamp(validity.not_before)?, until: timestamp(validity.not_after)? })
    }

    pub fn holds_at(&self, now: Timestamp) -> bool {
        (self.from..=self.until).contains(&now)
    }
}

fn timestamp(time: Time) -> Option<Timestamp> {
    Timestamp::from_duration(SignedDuration::try_from(time.to_unix_duration()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    /// A certificate that begins with a UTCTime and ends with a GeneralizedTime.
    const CERTIFICATE: &str = "\
        MIHWMIGJoAMCAQICAQEwBQYDK2VwMBQxEjAQBgNVBAMMCWxvY2FsaG9zdDAgFw05OTEyMzEyMzU5NTlaGA8yMDUxMD\
        IwMzA0MDUwNlowFDESMBAGA1UEAwwJbG9jYWxob3N0MCowBQYDK2VwAyEAA6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1f\
        HdyGZBJVMbgwBQYDK2VwA0EAlURRQJHqHz4pSO4NGYuT+QY9WoLd/5kEQQSHOofSbkst43ykS3OntpcoPopsaGnYyX\
        9TEflRrPpJoiumH++EBw==";

    #[test]
    fn both_kinds_of_time_are_read() {
        let validity = Validity::of(&STANDARD.decode(CERTIFICATE).unwrap()).unwrap();
        assert_eq!(validity.from.to_string(), "1999-12-31T23:59:59Z");
        assert_eq!(validity.until.to_string(), "2051-02-03T04:05:06Z");
        assert!(validity.holds_at(validity.until) && !validity.holds_at(Timestamp::MAX));
    }

    #[test]
    fn certificate_that_is_cut_off_has_no_validity() {
        let whole = STANDARD.decode(CERTIFICATE).unwrap();
        assert!((0..whole.len()).all(|end| Validity::of(&whole[..end]).is_none()));
    }
}
