//! The prices of a warehouse, and the costs of its use in millionths of the currency.

use std::time::Duration;

/// The number of bytes of a terabyte.
const TERABYTE: f64 = 1e12;

/// The prices of a warehouse. An unknown price (`None`) adds nothing to costs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Prices {
    /// The price of a second on the warehouse.
    pub second: Option<f64>,
    /// The price of 10¹² scanned bytes.
    pub terabyte_scanned: Option<f64>,
    /// The price of 10¹² bytes of answers that leave the warehouse.
    pub terabyte_of_egress: Option<f64>,
}

/// The resources of a warehouse that a query uses. An unknown quantity is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    pub seconds: Option<f64>,
    pub scan_bytes: Option<f64>,
    pub egress_bytes: Option<f64>,
}

/// The parts of a cost, in the currency of the prices. A part without a price is 0; a part with a price but an unknown
/// quantity is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CostParts {
    pub scan: Option<f64>,
    pub compute: Option<f64>,
    pub egress: Option<f64>,
}

impl Prices {
    /// Returns prices of which only that of a second is known.
    pub fn of_second(second: Option<f64>) -> Self {
        Prices { second, ..Prices::default() }
    }

    /// Returns whether any price is known.
    pub fn is_known(&self) -> bool {
        self.second.or(self.terabyte_scanned).or(self.terabyte_of_egress).is_some()
    }

    /// Returns the parts of the cost of a use.
    pub fn parts(&self, usage: Usage) -> CostParts {
        let part = |price: Option<f64>, unit: f64, quantity: Option<f64>| match price {
            None => Some(0.0),
            Some(price) => quantity.map(|quantity| quantity * price / unit),
        };
        CostParts {
            scan: part(self.terabyte_scanned, TERABYTE, usage.scan_bytes),
            compute: part(self.second, 1.0, usage.seconds),
            egress: part(self.terabyte_of_egress, TERABYTE, usage.egress_bytes),
        }
    }

    /// Returns the cost of the quantities that are known; `None` without prices, or if no quantity with a price
    /// is known.
    pub fn cost(&self, usage: Usage) -> Option<f64> {
        let priced = [
            (self.terabyte_scanned, usage.scan_bytes),
            (self.second, usage.seconds),
            (self.terabyte_of_egress, usage.egress_bytes),
        ];
        let is_any_known = priced.iter().any(|(price, quantity)| price.is_some() && quantity.is_some());
        is_any_known.then(|| self.parts(usage).sum())
    }

    /// Returns the cost in millionths, rounded up, as [`Prices::cost`] defines it.
    pub fn cost_micros(&self, usage: Usage) -> Option<u64> {
        self.cost(usage).map(|cost| (cost * 1_000_000.0).ceil() as u64)
    }
}

impl Usage {
    /// Returns the use of a time on the warehouse.
    pub fn of_time(warehouse: Duration) -> Self {
        Usage { seconds: Some(warehouse.as_secs_f64()), ..Usage::default() }
    }
}

impl CostParts {
    /// Returns the sum of the known parts.
    pub fn sum(&self) -> f64 {
        [self.scan, self.compute, self.egress].into_iter().flatten().sum()
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
    use super::*;

    #[test]
    fn known_parts_add_up() {
        let prices = Prices { second: Some(0.5), terabyte_scanned: Some(5.0), terabyte_of_egress: None };
        let usage = Usage { seconds: Some(2.0), scan_bytes: Some(2e11), egress_bytes: None };
        assert_eq!(prices.parts(usage), CostParts { scan: Some(1.0), compute: Some(1.0), egress: Some(0.0) });
        assert_eq!(prices.cost(usage), Some(2.0));
        assert_eq!(prices.cost_micros(usage), Some(2_000_000));
        let unknown = Usage { scan_bytes: None, ..usage };
        assert_eq!((prices.parts(unknown).scan, prices.cost(unknown)), (None, Some(1.0)));
        assert_eq!(prices.cost(Usage::default()), None);
        assert_eq!(Prices::default().cost(usage), None);
    }

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
