//! Draws bars and lines of numbers with characters of a terminal.
//!
//! In: numbers, and the glyphs that the terminal can show. Out: one line of text without a line break.

/// The set of characters for drawing on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    /// Block characters, for terminals with UTF-8.
    Blocks,
    Ascii,
}

/// The length of a full bar, in characters.
const WIDTH: f64 = 24.0;
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

impl Glyphs {
    fn levels(self) -> [char; 8] {
        match self {
            Glyphs::Blocks => ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
            Glyphs::Ascii => ['_', '.', ':', '-', '=', '+', '*', '#'],
        }
    }
}

/// Draws a bar whose length is proportional to `value / most`. A negative value has a bar of `-`.
pub fn bar(value: f64, most: f64, glyphs: Glyphs) -> String {
    if most <= 0.0 || !most.is_finite() || !value.is_finite() {
        return String::new();
    }
    let length = (value.abs() / most).min(1.0) * WIDTH;
    if value < 0.0 {
        return "-".repeat(length.round() as usize);
    }
    if glyphs == Glyphs::Ascii {
        return "#".repeat(length.round() as usize);
    }
    let whole = length.floor();
    let eighths = ((length - whole) * 8.0).floor() as usize;
    let mut bar = "█".repeat(whole as usize);
    if eighths > 0 {
        bar.push(EIGHTHS[eighths.min(7)]);
    }
    bar
}

/// Draws one character for each value, scaled between the smallest and the largest value. A missing value is a space.
pub fn sparkline(values: &[Option<f64>], glyphs: Glyphs) -> String {
    let present = || values.iter().flatten().copied().filter(|value| value.is_finite());
    let (least, most) = present().fold((f64::MAX, f64::MIN), |(least, most), v| (least.min(v), most.max(v)));
    let levels = glyphs.levels();
    let level = |value: f64| {
        let share = if most > least { (value - least) / (most - least) } else { 0.5 };
        levels[((share * 7.0).round() as usize).min(7)]
    };
    values.iter().map(|value| value.filter(|value| value.is_finite()).map_or(' ', level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion_to_the_largest_value() {
        assert_eq!(bar(10.0, 10.0, Glyphs::Blocks).chars().count(), 24);
        assert_eq!(bar(5.0, 10.0, Glyphs::Blocks).chars().count(), 12);
        assert_eq!(bar(5.0, 10.0, Glyphs::Ascii), "#".repeat(12));
        assert_eq!(bar(0.0, 10.0, Glyphs::Blocks), "");
        assert_eq!(bar(-5.0, 10.0, Glyphs::Blocks), "-".repeat(12));
        assert_eq!(bar(1.0, f64::INFINITY, Glyphs::Blocks), "");
        assert_eq!(bar(f64::NAN, 10.0, Glyphs::Blocks), "");
    }

    #[test]
    fn lines_show_the_least_the_most_and_gaps() {
        assert_eq!(sparkline(&[Some(0.0), None, Some(7.0), Some(3.0)], Glyphs::Blocks), "▁ █▄");
        assert_eq!(sparkline(&[Some(0.0), Some(f64::NAN), Some(7.0)], Glyphs::Ascii), "_ #");
        assert_eq!(sparkline(&[Some(2.0), Some(2.0)], Glyphs::Blocks), "▅▅");
        assert_eq!(sparkline(&[], Glyphs::Blocks), "");
    }
}
