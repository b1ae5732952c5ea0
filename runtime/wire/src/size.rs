//! Sizes in bytes as text: a number and a unit, decimal (`MB`) or binary (`MiB`).

/// The letters of the units, in ascending order: each is a thousand, or 1,024 times, the previous one.
const LETTERS: [&str; 4] = ["K", "M", "G", "T"];

/// Reads a size, in bytes. Text without a unit is a number of bytes.
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = (text[..end].parse::<f64>().ok()?, text[end..].trim().to_ascii_uppercase());
    let (letter, base) = match unit.as_str() {
        "" | "B" => return Some(number as u64),
        unit if unit.ends_with("IB") => (unit.strip_suffix("IB")?, 1_024.0),
        unit => (unit.strip_suffix('B')?, 1_000.0_f64),
    };
    let power = LETTERS.iter().position(|known| *known == letter)?;
    Some((number * base.powi(power as i32 + 1)) as u64)
}

/// Returns a size in the largest unit that needs no fraction.
pub fn text(bytes: u64) -> String {
    let units = [4_u32, 3, 2, 1].into_iter().zip(LETTERS.into_iter().rev());
    let mut whole = units.flat_map(|(power, letter)| {
        [(1_000_u64.pow(power), format!("{letter}B")), (1_024_u64.pow(power), format!("{letter}iB"))]
    });
    let found = whole.find(|(size, _)| bytes != 0 && bytes.is_multiple_of(*size));
    found.map_or_else(|| format!("{bytes}B"), |(size, unit)| format!("{}{unit}", bytes / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (written, bytes, again) in [
            ("10GB", 10_000_000_000, "10GB"),
            ("256 MiB", 268_435_456, "256MiB"),
            ("1.5 kb", 1_500, "1500B"),
            ("7", 7, "7B"),
            ("0", 0, "0B"),
            ("2000MB", 2_000_000_000, "2GB"),
        ] {
            assert_eq!(parse(written), Some(bytes), "{written}");
            assert_eq!(text(bytes), again, "{written}");
        }
        for wrong in ["", "GB", "ten GB", "-1GB", "10 parsecs"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
