//! The price of a warehouse, and the costs of its time in millionths of the currency.

use std::time::Duration;

/// The prices of a warehouse.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Prices {
    /// The price of a second on the warehouse; `None` if it is unknown.
    pub second: Option<f64>,
}

impl Prices {
    /// Returns the cost in millionths, rounded up; `None` without prices.
    pub fn cost_micros(&self, warehouse: Duration) -> Option<u64> {
        let cost = warehouse.as_secs_f64() * self.second? * 1_000_000.0;
        Some(cost.ceil() as u64)
    }
}

/// Returns an amount of the currency in millionths; `None` if it is negative, above 1,000,000,000, or has more than six
/// decimals.
pub fn micros(amount: f64) -> Option<u64> {
    let micros = (amount * 1_000_000.0).round();
    // Both sides are the double that is nearest to the same decimal number.
    let is_exact = (0.0..=1e15).contains(&micros) && micros / 1_000_000.0 == amount;
    is_exact.then_some(micros as u64)
}

#[cfg(test)]
mod tests {
    use super::micros;

    #[test]
    fn amounts_are_exact_or_refused() {
        for (amount, expected) in [
            ("0", Some(0)),
            ("0.000001", Some(1)),
            ("0.1", Some(100_000)),
            ("123456789.123456", Some(123_456_789_123_456)),
            ("1000000000", Some(1_000_000_000_000_000)),
            ("1e-7", None),
            ("0.0000015", None),
            ("1000000001", None),
            ("-1", None),
            ("NaN", None),
        ] {
            assert_eq!(micros(amount.parse().unwrap_or(f64::NAN)), expected, "{amount}");
        }
    }
}
