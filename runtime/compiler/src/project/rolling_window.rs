//! Reads `rolling_window` of a measure.
//!
//! In: the fields of the measure, and its type. Out: the window, or a diagnostic at its place. Not here: the meaning of
//! a window in a query.

use super::cube_keys::{GRANULARITIES, ROLLING_WINDOW, WINDOW_OFFSETS, measure_type_word};
use super::definitions::MeasureType;
use super::fields::Fields;
use super::keys::WordList;
use crate::diagnostic::{Code, Diagnostic};
use crate::text::nearest::{in_backticks, likely};
use crate::text::shorten;
use crate::types::{MAX_WINDOW_UNITS, RollingWindow, WindowLength, WindowLengthError, WindowOffset};

/// Reads the window. `None` without one, or if it cannot be used, which is reported.
pub(super) fn read(fields: &mut Fields, ty: Option<MeasureType>) -> Option<RollingWindow> {
    let measure = fields.what();
    let place = fields.key_origin("rolling_window")?.span();
    let node = fields.node("rolling_window")?;
    if let Some(ty) = ty.filter(|ty| !allows_window(*ty)) {
        let message = format!("{measure} has `rolling_window`, which a {} cannot have", measure_type_word(ty));
        let hint = match ty {
            MeasureType::Number => "Write the window on the measures that it is computed from.",
            MeasureType::RunningTotal => "Remove it, or write `type: sum` with `trailing: unbounded`.",
            MeasureType::Aggregate(_) => {
                "Write it on a measure of the type `count`, `count_distinct`, `sum`, `avg`, `min` or `max`."
            }
        };
        fields.report(Diagnostic::error(Code::MisplacedField, message).hint(hint).at(place));
        return None;
    }
    let label = format!("rolling_window of {measure}");
    let mut window = Fields::open_as(node, &ROLLING_WINDOW, label, fields.diagnostics())?;
    if window.lacks_all() {
        let message = format!("{} has no `trailing` and no `leading`", window.what());
        let hint = "Add `trailing: 28 day`, `leading: 7 day`, or both.";
        window.report(Diagnostic::error(Code::MissingField, message).hint(hint).at(place));
        return None;
    }
    let (trailing, leading) = (length(&mut window, "trailing"), length(&mut window, "leading"));
    let offset = match window.has("offset") {
        true => window.choice("offset", &WINDOW_OFFSETS),
        false => Some(WindowOffset::End),
    };
    Some(RollingWindow { trailing: trailing?, leading: leading?, offset: offset? })
}

fn allows_window(ty: MeasureType) -> bool {
    matches!(ty, MeasureType::Aggregate(function) if !function.is_of_distribution())
}

/// Reads the length of one side. `None` if it cannot be read, which is reported.
fn length(window: &mut Fields, side: &'static str) -> Option<WindowLength> {
    if !window.has(side) {
        return Some(WindowLength::Zero);
    }
    let text = window.text(side)?;
    let error = match WindowLength::parse(&text.value) {
        Ok(length) => return Some(length),
        Err(error) => error,
    };
    let found = format!("`{side}` of {} is `{}`", window.what(), shorten(&text.value));
    let example = window.example(side);
    let (code, message, hint) = match &error {
        WindowLengthError::UnknownUnit(unit) => {
            let units = GRANULARITIES.words();
            let meant = likely(unit, units.iter().copied());
            let meant = meant.map(|word| format!("Did you mean `{word}`? ")).unwrap_or_default();
            let hint = format!("{meant}Available units: {}.", in_backticks(units.iter().copied()));
            (Code::UnknownValue, format!("{found}, whose unit is unknown"), hint)
        }
        WindowLengthError::Malformed => {
            let hint = format!("Write an integer and a unit, as in `{example}`, or `unbounded`.");
            (Code::WrongValue, format!("{found}, which is not a length of time"), hint)
        }
        WindowLengthError::NotPositive => {
            let hint =
                format!("Write a number from 1, as in `{example}`. The key `{side}` already states the direction.");
            (Code::WrongValue, format!("{found}, which is not a positive length"), hint)
        }
        WindowLengthError::TooLong => {
            let hint = format!("Write a number up to {MAX_WINDOW_UNITS}, a longer unit, or `unbounded`.");
            (Code::WrongValue, format!("{found}, which is too long"), hint)
        }
    };
    window.report(Diagnostic::error(code, message).hint(hint).at(text.span()));
    None
}
