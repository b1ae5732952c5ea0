//! Names of series of values over time: runs of detectors have them, and monitors, alerts and messages refer to them.

use std::sync::Arc;

/// The values that identify a series within its run: dimensions in the order of the request, `None` for null.
pub type SeriesKey = Vec<(Arc<str>, Option<Arc<str>>)>;

/// The measure or metric whose values form the series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeriesValue {
    Measure {
        cube: Arc<str>,
        /// With or without the name of the cube.
        measure: Arc<str>,
    },
    /// A metric of the project.
    Metric(Arc<str>),
}

impl SeriesValue {
    pub fn cube(&self) -> Option<&Arc<str>> {
        match self {
            SeriesValue::Measure { cube, .. } => Some(cube),
            SeriesValue::Metric(_) => None,
        }
    }

    pub fn measure(&self) -> Option<&Arc<str>> {
        match self {
            SeriesValue::Measure { measure, .. } => Some(measure),
            SeriesValue::Metric(_) => None,
        }
    }

    pub fn metric(&self) -> Option<&Arc<str>> {
        match self {
            SeriesValue::Measure { .. } => None,
            SeriesValue::Metric(metric) => Some(metric),
        }
    }

    /// Returns the name in queries: `cube.measure`, or the name of the metric.
    pub fn member(&self) -> Arc<str> {
        match self {
            SeriesValue::Measure { cube, measure } => qualified(cube, measure),
            SeriesValue::Metric(metric) => Arc::clone(metric),
        }
    }

    /// Returns the name of a dimension in queries. Dimensions of a metric are named with their cube.
    pub fn dimension(&self, name: &str) -> Arc<str> {
        match self {
            SeriesValue::Measure { cube, .. } => qualified(cube, name),
            SeriesValue::Metric(_) => name.into(),
        }
    }
}

/// Returns the qualified name of a member. A name with a dot is one already.
pub(crate) fn qualified(cube: &str, name: &str) -> Arc<str> {
    if name.contains('.') { name.into() } else { format!("{cube}.{name}").into() }
}
