//! Median and spread of many runs.

/// Statistics of one case's times, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Median in microseconds.
    pub median: f64,
    /// Distance from the 10th to the 90th percentile, as a share of the median.
    pub spread: f64,
}

impl Times {
    /// Statistics of `times`, which has at least one time.
    pub fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = times.len().saturating_sub(1);
            times
                .get((last as f64 * share).round() as usize)
                .copied()
                .unwrap_or(f64::NAN)
        };
        // No run can take less than one timestamp step.
        let median = at(0.5).max(1e-3);
        Self {
            median,
            spread: (at(0.9) - at(0.1)) / median,
        }
    }
}
