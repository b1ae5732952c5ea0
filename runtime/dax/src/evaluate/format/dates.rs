//! Formats of dates and times.
//!
//! In: a moment and a format. Out: a string with English names. `m` means minutes after an hour, and months otherwise.

use jiff::civil::DateTime;

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const NAMES: [(&str, &str); 11] = [
    ("long date", "dddd, mmmm d, yyyy"),
    ("medium date", "dddd, mmmm d, yyyy"),
    ("short date", "m/d/yyyy"),
    ("long time", "h:nn:ss AM/PM"),
    ("medium time", "hh:nn AM/PM"),
    ("short time", "hh:nn"),
    ("general date", GENERAL),
    ("c", GENERAL),
    ("ddddd", "m/d/yyyy"),
    ("dddddd", "dddd, mmmm d, yyyy"),
    ("ttttt", "h:nn:ss AM/PM"),
];
const GENERAL: &str = "m/d/yyyy h:nn:ss AM/PM";
/// The elements for the two halves of a day, each with the words for the first and the second half.
const HALVES: [&str; 4] = ["AM/PM", "am/pm", "A/P", "a/p"];

/// Returns whether a format is a date format: it has letters for parts of a date, and no digit placeholders of numbers.
pub(super) fn is_format(format: &str, name: &str) -> bool {
    let mut is_quoted = false;
    let mut has_date = false;
    for character in format.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '0' | '#' => return NAMES.iter().any(|(found, _)| *found == name),
            'd' | 'D' | 'm' | 'M' | 'y' | 'Y' | 'h' | 'H' | 's' | 'S' => has_date = true,
            _ => {}
        }
    }
    has_date
}

/// Formats a moment; `name` is the format in lower case.
pub(super) fn format(moment: DateTime, format: &str, name: &str) -> String {
    let is_midnight = moment.time() == jiff::civil::Time::midnight();
    let named = NAMES.iter().find(|(found, _)| *found == name).map(|(_, format)| *format);
    let format = match named.unwrap_or(format) {
        "" | GENERAL if is_midnight => "m/d/yyyy",
        "" => GENERAL,
        other => other,
    };
    let has_halves = HALVES.iter().any(|halves| format.contains(halves)) || format.contains("tt");
    let mut out = String::new();
    let mut rest = format;
    let mut is_behind_hour = false;
    while let Some(first) = rest.chars().next() {
        let length = if let Some(halves) = HALVES.iter().find(|halves| rest.starts_with(**halves)) {
            let (morning, evening) = halves.split_once('/').unwrap_or((halves, halves));
            out.push_str(if moment.hour() < 12 { morning } else { evening });
            halves.len()
        } else if first == '"' {
            let end = rest[1..].find('"').map_or(rest.len(), |at| at + 2);
            out.push_str(rest[1..end].trim_end_matches('"'));
            end
        } else if first == '\\' {
            let escaped = rest.chars().nth(1);
            out.extend(escaped);
            1 + escaped.map_or(0, char::len_utf8)
        } else {
            let letter = first.to_ascii_lowercase();
            let count = rest.chars().take_while(|c| c.to_ascii_lowercase() == letter).count();
            if !first.is_ascii_alphabetic() {
                out.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let minutes = letter == 'm' && is_behind_hour && count <= 2;
            let letter = if minutes { 'n' } else { letter };
            write(moment, letter, count, has_halves, &mut out);
            is_behind_hour = letter == 'h';
            // The letters are ASCII, so each is one byte long.
            count
        };
        rest = &rest[length.min(rest.len())..];
    }
    out
}

/// Writes one element of a format: a letter that occurs `count` times.
fn write(moment: DateTime, letter: char, count: usize, has_halves: bool, out: &mut String) {
    let number = |value: i64| match count {
        1 => value.to_string(),
        _ => format!("{value:02}"),
    };
    let weekday = usize::from(moment.weekday().to_sunday_zero_offset().unsigned_abs());
    let month = usize::from(moment.month().unsigned_abs());
    let text = match (letter, count) {
        ('d', 3) => WEEKDAYS[weekday][..3].to_owned(),
        ('d', 4) => WEEKDAYS[weekday].to_owned(),
        ('d', _) => number(i64::from(moment.day())),
        ('m', 3) => MONTHS[month - 1][..3].to_owned(),
        ('m', 4) => MONTHS[month - 1].to_owned(),
        ('m', _) => number(i64::from(moment.month())),
        ('y', 1) => moment.day_of_year().to_string(),
        ('y', 2) => format!("{:02}", moment.year().rem_euclid(100)),
        ('y', _) => format!("{:04}", moment.year()),
        ('q', _) => ((month - 1) / 3 + 1).to_string(),
        ('w', 1) => (weekday + 1).to_string(),
        ('w', 2) => week_of_year(moment, weekday).to_string(),
        ('h', _) => {
            let hour = i64::from(moment.hour());
            number(if has_halves { (hour + 11) % 12 + 1 } else { hour })
        }
        ('n', _) => number(i64::from(moment.minute())),
        ('s', _) => number(i64::from(moment.second())),
        ('t', 2) => if moment.hour() < 12 { "AM" } else { "PM" }.to_owned(),
        (other, count) => std::iter::repeat_n(other, count).collect(),
    };
    out.push_str(&text);
}

/// Returns the number of the week, which begins on Sunday. The first week contains January 1. `weekday` is 0 on Sunday.
fn week_of_year(moment: DateTime, weekday: usize) -> usize {
    let days_before = usize::from(moment.day_of_year().unsigned_abs()) - 1;
    // A year has less than 53 weeks and 7 days.
    let first_weekday = (weekday + 53 * 7 - days_before) % 7;
    (days_before + first_weekday) / 7 + 1
}
