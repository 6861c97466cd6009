//! Median and spread of many runs.

/// Of the times of one case, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// The middle one.
    pub median: f64,
    /// From the tenth to the ninetieth hundredth, as a share of the median.
    pub spread: f64,
}

impl Times {
    /// Of at least one time.
    pub fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = times.len().saturating_sub(1);
            times
                .get((last as f64 * share).round() as usize)
                .copied()
                .unwrap_or(f64::NAN)
        };
        // A timestamp's step is the least that a run can take.
        let median = at(0.5).max(1e-3);
        Self {
            median,
            spread: (at(0.9) - at(0.1)) / median,
        }
    }
}
