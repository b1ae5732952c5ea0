//! The window of a rolling measure: a range of calendar time around each step of the query's time axis.
//!
//! In: the text of a length, such as `28 day`. Out: plain data. Not here: the rows of a window (`sql::lower`), YAML.

use std::fmt;

use super::Granularity;

/// The largest count of units on one side of a window.
pub const MAX_WINDOW_UNITS: u32 = 10_000;

/// The range of time over which a rolling measure is aggregated: half-open, from `trailing` before the anchor to
/// `leading` after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RollingWindow {
    pub trailing: WindowLength,
    pub leading: WindowLength,
    pub offset: WindowOffset,
}

/// The length of one side of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowLength {
    /// The side ends at the anchor.
    Zero,
    /// A count of at least 1.
    Units {
        count: u32,
        unit: Granularity,
    },
    Unbounded,
}

/// The anchor of a window within each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowOffset {
    Start,
    End,
}

/// The reason why a string is not the length of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowLengthError {
    /// The text is not a count and a unit.
    Malformed,
    /// The count is 0 or negative.
    NotPositive,
    /// The count exceeds [`MAX_WINDOW_UNITS`].
    TooLong,
    UnknownUnit(String),
}

impl RollingWindow {
    /// Returns the lengths of both sides.
    pub fn sides(&self) -> [WindowLength; 2] {
        [self.trailing, self.leading]
    }

    /// Returns the finest unit of the lengths.
    pub fn finest_unit(&self) -> Option<Granularity> {
        self.units().min()
    }

    /// Returns the coarsest unit of the lengths.
    pub fn coarsest_unit(&self) -> Option<Granularity> {
        self.units().max()
    }

    fn units(&self) -> impl Iterator<Item = Granularity> {
        self.sides().into_iter().filter_map(|side| match side {
            WindowLength::Units { unit, .. } => Some(unit),
            WindowLength::Zero | WindowLength::Unbounded => None,
        })
    }

    /// Returns whether the window at each step contains the whole step, for steps within one bucket of a granularity.
    pub fn covers_step(&self, granularity: Granularity) -> bool {
        let side = match self.offset {
            WindowOffset::End => self.trailing,
            WindowOffset::Start => self.leading,
        };
        match side {
            WindowLength::Zero => false,
            WindowLength::Units { unit, .. } => unit >= granularity,
            WindowLength::Unbounded => true,
        }
    }
}

impl WindowLength {
    /// Reads `28 day`, `1 month` or `unbounded`, in any case, with units in the singular or plural.
    ///
    /// # Errors
    /// The text has a different form.
    pub fn parse(text: &str) -> Result<Self, WindowLengthError> {
        let lower = text.trim().to_ascii_lowercase();
        if lower == "unbounded" {
            return Ok(WindowLength::Unbounded);
        }
        let is_of_count = |c: char| c.is_ascii_digit() || matches!(c, '-' | '.');
        let end = lower.find(|c| !is_of_count(c)).ok_or(WindowLengthError::Malformed)?;
        let (count, unit) = lower.split_at(end);
        let count: i64 = match count.parse() {
            Ok(count) => count,
            Err(_) if count.len() > 1 && count.bytes().all(|b| b.is_ascii_digit()) => {
                return Err(WindowLengthError::TooLong);
            }
            Err(_) => return Err(WindowLengthError::Malformed),
        };
        let unit = unit.trim();
        let known = unit.strip_suffix('s').unwrap_or(unit).parse();
        let unit = known.map_err(|_| match unit {
            "" => WindowLengthError::Malformed,
            unit => WindowLengthError::UnknownUnit(unit.to_owned()),
        })?;
        match u32::try_from(count) {
            Ok(count @ 1..=MAX_WINDOW_UNITS) => Ok(WindowLength::Units { count, unit }),
            _ if count <= 0 => Err(WindowLengthError::NotPositive),
            _ => Err(WindowLengthError::TooLong),
        }
    }
}

impl WindowOffset {
    pub fn as_str(self) -> &'static str {
        match self {
            WindowOffset::Start => "start",
            WindowOffset::End => "end",
        }
    }
}

/// Writes the form that [`WindowLength::parse`] reads. A side that ends at the anchor is `0`.
impl fmt::Display for WindowLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WindowLength::Zero => f.write_str("0"),
            WindowLength::Units { count, unit } => write!(f, "{count} {unit}"),
            WindowLength::Unbounded => f.write_str("unbounded"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read() {
        let units = |count, unit| Ok(WindowLength::Units { count, unit });
        for (text, length) in [
            ("28 day", units(28, Granularity::Day)),
            (" 1  Months ", units(1, Granularity::Month)),
            ("7days", units(7, Granularity::Day)),
            ("UNBOUNDED", Ok(WindowLength::Unbounded)),
            ("0 day", Err(WindowLengthError::NotPositive)),
            ("-7 day", Err(WindowLengthError::NotPositive)),
            ("7", Err(WindowLengthError::Malformed)),
            ("day", Err(WindowLengthError::Malformed)),
            ("1.5 day", Err(WindowLengthError::Malformed)),
            ("3 fortnights", Err(WindowLengthError::UnknownUnit("fortnights".to_owned()))),
            ("10001 day", Err(WindowLengthError::TooLong)),
            ("99999999999999999999 day", Err(WindowLengthError::TooLong)),
        ] {
            assert_eq!(WindowLength::parse(text), length, "{text}");
        }
    }

    #[test]
    fn window_covers_a_step_on_the_side_of_the_step() {
        let day = WindowLength::Units { count: 3, unit: Granularity::Day };
        let window = |trailing, leading, offset| RollingWindow { trailing, leading, offset };
        assert!(window(day, WindowLength::Zero, WindowOffset::End).covers_step(Granularity::Day));
        assert!(!window(day, WindowLength::Zero, WindowOffset::End).covers_step(Granularity::Month));
        assert!(!window(day, WindowLength::Zero, WindowOffset::Start).covers_step(Granularity::Day));
        assert!(window(day, WindowLength::Unbounded, WindowOffset::Start).covers_step(Granularity::Year));
    }
}
