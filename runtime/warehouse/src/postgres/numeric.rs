//! Decodes PostgreSQL's NUMERIC: groups of four digits (`numeric_send` in its sources).
//!
//! NaN and the infinities become null, as in JSON, because an Arrow decimal cannot represent them.

use crate::columns::Decimals;
use crate::sessions::CellError;

const NEGATIVE: u16 = 0x4000;
const HEADER: usize = 8;
/// The number of decimal digits of a group.
const WIDTH: i32 = 4;
/// The smallest integer with more than 38 digits.
const LIMIT: i128 = 10_i128.pow(38);

struct Numeric {
    is_negative: bool,
    /// The weight of the first group, as a power of 10,000.
    weight: i32,
    /// The number of decimal digits after the point.
    scale: u16,
    groups: Vec<u16>,
}

pub(super) fn append(decimals: &mut Decimals, bytes: &[u8]) -> Result<(), CellError> {
    let word = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let header = (|| Some((word(0)?, word(2)?, word(4)?, word(6)?)))();
    let (count, weight, sign, scale) = header.ok_or(CellError::Length(bytes.len()))?;
    if !matches!(sign, 0 | NEGATIVE) {
        decimals.push_null();
        return Ok(());
    }
    let groups = (0..usize::from(count)).map(|index| word(HEADER + 2 * index)).collect::<Option<Vec<u16>>>();
    let groups = groups.ok_or(CellError::Length(bytes.len()))?;
    let numeric = Numeric { is_negative: sign == NEGATIVE, weight: i32::from(weight as i16), scale, groups };
    match numeric.unscaled() {
        Some(unscaled) => decimals.push(unscaled, scale),
        None => decimals.push_text(&numeric.text()).map_err(|error| CellError::Value(error.to_string()))?,
    }
    Ok(())
}

impl Numeric {
    /// Returns the digits of the number as an integer without its point. Returns `None` above 38 digits.
    fn unscaled(&self) -> Option<i128> {
        let add = |number: i128, group: &u16| number.checked_mul(10_000)?.checked_add(i128::from(*group));
        let number = self.groups.iter().try_fold(0_i128, add)?;
        let last = self.weight + 1 - i32::try_from(self.groups.len()).ok()?;
        let shift = last * WIDTH + i32::from(self.scale);
        let power = 10_i128.checked_pow(shift.unsigned_abs())?;
        // Digits beyond the scale are zeros that fill the last group.
        let number = if shift < 0 { number / power } else { number.checked_mul(power)? };
        (number < LIMIT).then_some(if self.is_negative { -number } else { number })
    }

    fn text(&self) -> String {
        let group = |power: i32| {
            let index = usize::try_from(self.weight - power).ok();
            index.and_then(|index| self.groups.get(index)).copied().unwrap_or(0)
        };
        let digits =
            |powers: &mut dyn Iterator<Item = i32>| powers.map(|p| format!("{:04}", group(p))).collect::<String>();
        let whole = digits(&mut (0..=self.weight.max(0)).rev());
        let scale = usize::from(self.scale);
        let fraction = digits(&mut (1..=i32::from(self.scale.div_ceil(4))).map(|n| -n));
        let sign = if self.is_negative { "-" } else { "" };
        format!("{sign}{whole}.{}", &fraction[..scale])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(is_negative: bool, weight: i32, scale: u16, groups: &[u16]) -> Numeric {
        Numeric { is_negative, weight, scale, groups: groups.to_vec() }
    }

    #[test]
    fn numeric_digits_follow_their_weight() {
        for (number, unscaled, text) in [
            (numeric(false, 0, 2, &[10, 1000]), 1010, "0010.10"),
            (numeric(true, -1, 2, &[500]), -5, "-0000.05"),
            (numeric(false, 1, 0, &[1]), 10_000, "00010000."),
            (numeric(false, 0, 0, &[]), 0, "0000."),
            (numeric(false, -2, 7, &[120]), 12, "0000.0000012"),
        ] {
            assert_eq!((number.unscaled(), number.text().as_str()), (Some(unscaled), text));
        }
    }

    #[test]
    fn more_digits_than_38_are_left_to_text() {
        let wide = numeric(false, 9, 0, &[9_999; 10]);
        assert_eq!(wide.unscaled(), None);
        assert_eq!(wide.text(), format!("{}.", "9".repeat(40)));
    }
}
