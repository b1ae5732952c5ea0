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
