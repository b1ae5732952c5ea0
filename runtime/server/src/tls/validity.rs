//! From when to when a certificate is good: the one field of it that a server needs to read itself
//! (RFC 5280, section 4.1). What is not understood is `None`; clients judge the rest.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    pub from: Timestamp,
    pub until: Timestamp,
}

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

impl Validity {
    pub(super) fn of(certificate: &[u8]) -> Option<Self> {
        let mut outer = Der(certificate);
        let mut signed = Der(Der(outer.expect(SEQUENCE)?).expect(SEQUENCE)?);
        // Absent in certificates of the first version.
        if signed.0.first() == Some(&VERSION) {
            signed.expect(VERSION)?;
        }
        for skipped in [INTEGER, SEQUENCE, SEQUENCE] {
            signed.expect(skipped)?;
        }
        let mut times = Der(signed.expect(SEQUENCE)?);
        Some(Validity { from: times.time()?, until: times.time()? })
    }

    pub fn holds_at(&self, now: Timestamp) -> bool {
        (self.from..=self.until).contains(&now)
    }
}

/// The rest of an encoding.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The content of the next element, which must have this tag.
    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, content) = self.next()?;
        (found == tag).then_some(content)
    }

    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match usize::from(*first) {
            short @ 0..=0x7f => (short, rest),
            long => {
                let (digits, rest) = rest.split_at_checked(long & 0x7f).filter(|(digits, _)| digits.len() <= 4)?;
                (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
            }
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }

    fn time(&mut self) -> Option<Timestamp> {
        let (tag, content) = self.next()?;
        let text = std::str::from_utf8(content).ok()?.strip_suffix('Z')?;
        let (year, rest) = match tag {
            // Two digits: 1950 to 2049.
            UTC_TIME => {
                let (year, rest) = text.split_at_checked(2)?;
                let year: i16 = year.parse().ok()?;
                (if year < 50 { 2_000 + year } else { 1_900 + year }, rest)
            }
            GENERALIZED_TIME => {
                let (year, rest) = text.split_at_checked(4)?;
                (year.parse().ok()?, rest)
            }
            _ => return None,
        };
        let part = |at: usize| rest.get(at..at + 2)?.parse::<i8>().ok();
        let time = DateTime::new(year, part(0)?, part(2)?, part(4)?, part(6)?, part(8)?, 0).ok()?;
        Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![tag, 0x82];
        out.extend((content.len() as u16).to_be_bytes());
        out.extend(content);
        out
    }

    fn certificate(version: &[u8], times: &[(u8, &str)]) -> Vec<u8> {
        let times: Vec<u8> = times.iter().flat_map(|(tag, text)| element(*tag, text.as_bytes())).collect();
        let mut signed = version.to_vec();
        signed.extend([element(INTEGER, &[1]), element(SEQUENCE, &[]), element(SEQUENCE, &[0; 300])].concat());
        signed.extend(element(SEQUENCE, &times));
        element(SEQUENCE, &element(SEQUENCE, &signed))
    }

    #[test]
    fn both_kinds_of_time_are_read() {
        let times = [(UTC_TIME, "991231235959Z"), (GENERALIZED_TIME, "20510203040506Z")];
        for version in [&[][..], &[VERSION, 3, 2, 1, 2]] {
            let validity = Validity::of(&certificate(version, &times)).unwrap();
            assert_eq!(validity.from.to_string(), "1999-12-31T23:59:59Z");
            assert_eq!(validity.until.to_string(), "2051-02-03T04:05:06Z");
            assert!(validity.holds_at(validity.until) && !validity.holds_at(Timestamp::MAX));
        }
    }

    #[test]
    fn what_is_no_certificate_has_none() {
        let whole = certificate(&[], &[(UTC_TIME, "991231235959Z"), (UTC_TIME, "491231235959Z")]);
        assert!(Validity::of(&whole).is_some());
        assert!((0..whole.len()).all(|end| Validity::of(&whole[..end]).is_none()));
        for time in ["", "Z", "9913", "991331235959Z", "99123123595\u{e9}Z", "991231235959"] {
            assert!(Validity::of(&certificate(&[], &[(UTC_TIME, time), (UTC_TIME, time)])).is_none(), "{time}");
        }
    }
}
