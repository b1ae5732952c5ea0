//! The smoothing itself, after Hyndman and Athanasopoulos, Forecasting: Principles and Practice, 8.3 (additive). The
//! state starts as with statsmodels' `heuristic` for short series: the level is the first season's mean, the trend the
//! difference of the first two seasons' means, and the season the first season's distances from its mean.
//!
//! A missing value moves the state as if the forecast had been observed.

/// The smoothing factor of each part, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smoothing {
    pub alpha: f64,
    pub beta: f64,
    pub gamma: f64,
}

/// The learned state.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    level: f64,
    trend: f64,
    /// The seasonal parts of the next season's points, the next point first. Empty without enough history.
    season: Vec<f64>,
    /// The root mean square of the one-step errors.
    deviation: f64,
}

impl Model {
    /// Learns from a history. The model is empty if the history is shorter than two seasons or if the first two seasons
    /// have gaps.
    pub fn fit(values: &[f64], season: usize, smoothing: Smoothing) -> Model {
        let nothing = Model { level: f64::NAN, trend: f64::NAN, season: vec![], deviation: f64::NAN };
        let start = values.get(..2 * season).filter(|start| start.iter().all(|value| !value.is_nan()));
        let Some(start) = start else { return nothing };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / season as f64;
        let (first, second) = start.split_at(season);
        let mut model = Model {
            level: mean(first),
            trend: (mean(second) - mean(first)) / season as f64,
            season: first.iter().map(|value| value - mean(first)).collect(),
            deviation: 0.0,
        };
        let (mut squares, mut errors) = (0.0, 0_u32);
        for value in values {
            if let Some(error) = model.follow(*value, smoothing) {
                squares += error * error;
                errors += 1;
            }
        }
        model.deviation = (squares / f64::from(errors)).sqrt();
        model
    }

    /// Advances by one point. Returns the distance of the value from the forecast; `None` for a missing value.
    fn follow(&mut self, value: f64, smoothing: Smoothing) -> Option<f64> {
        let Smoothing { alpha, beta, gamma } = smoothing;
        let season = self.season.remove(0);
        let foretold = self.level + self.trend + season;
        let known = if value.is_nan() { foretold } else { value };
        let level = alpha * (known - season) + (1.0 - alpha) * (self.level + self.trend);
        // The seasonal equation in statsmodels' form: it uses the level and the trend before this point.
        let season = gamma * (known - self.level - self.trend) + (1.0 - gamma) * season;
        self.trend = beta * (level - self.level) + (1.0 - beta) * self.trend;
        self.level = level;
        self.season.push(season);
        (!value.is_nan()).then_some(value - foretold)
    }

    /// Returns the forecast `steps` after the history; `None` for an empty model.
    pub fn forecast(&self, steps: usize) -> Option<f64> {
        let season = self.season.get((steps - 1) % self.season.len().max(1))?;
        let forecast = self.level + steps as f64 * self.trend + season;
        forecast.is_finite().then_some(forecast)
    }

    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Returns level, trend, deviation and season as little-endian doubles.
    pub fn to_bytes(&self) -> Vec<u8> {
        let numbers = [self.level, self.trend, self.deviation].into_iter().chain(self.season.iter().copied());
        numbers.flat_map(f64::to_le_bytes).collect()
    }

    /// Parses the output of [`Model::to_bytes`]; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Model> {
        let (chunks, rest) = bytes.as_chunks::<8>();
        let numbers: Vec<f64> = chunks.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect();
        match numbers.as_slice() {
            [level, trend, deviation, season @ ..] if rest.is_empty() => {
                Some(Model { level: *level, trend: *trend, season: season.to_vec(), deviation: *deviation })
            }
            _ => None,
        }
    }
}
