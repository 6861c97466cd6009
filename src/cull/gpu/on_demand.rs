//! What is made when it is first needed, and when a device that refused something is asked again.

use crate::cull::{CullError, policy::RETRY_AFTER};

/// When the device is asked again for what it refused: [`RETRY_AFTER`] frames later. The timer does
/// not run if the device refused nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RetryTimer {
    started_in: Option<u64>,
}

impl RetryTimer {
    /// A timer that starts in frame `now`.
    pub const fn start(now: u64) -> Self {
        Self {
            started_in: Some(now),
        }
    }

    /// A timer that starts in frame `now` if the error is the device's ([`CullError::Gpu`]). After
    /// other errors, the device is not asked again.
    pub fn start_after(error: Option<&CullError>, now: u64) -> Self {
        match error {
            Some(CullError::Gpu { .. }) => Self::start(now),
            _ => Self::default(),
        }
    }

    /// Whether the device is not to be asked yet.
    pub fn waits(self, now: u64) -> bool {
        self.started_in
            .is_some_and(|started_in| now < started_in + RETRY_AFTER)
    }

    /// Whether the device is to be asked again.
    pub fn is_due(self, now: u64) -> bool {
        self.started_in.is_some() && !self.waits(now)
    }

    /// Stops the timer. Returns whether it ran.
    pub fn stop(&mut self) -> bool {
        self.started_in.take().is_some()
    }
}

/// A value that is made when it is first needed. If the device had no memory for it
/// ([`CullError::Gpu`]), it is asked again after the time of a [`RetryTimer`]. Any other error
/// stays.
pub(crate) struct OnDemand<T> {
    made: Option<Result<T, CullError>>,
    retry: RetryTimer,
}

impl<T> Default for OnDemand<T> {
    fn default() -> Self {
        Self {
            made: None,
            retry: RetryTimer::default(),
        }
    }
}

impl<T> OnDemand<T> {
    /// The value, which `make` makes if it is not there. `now` is the number of the frame.
    ///
    /// # Errors
    /// The error of `make`, also in the frames in which it is not asked again.
    pub fn get_or_make(
        &mut self,
        now: u64,
        make: impl FnOnce() -> Result<T, CullError>,
    ) -> Result<&mut T, CullError> {
        if self.retry.is_due(now) {
            self.made = None;
        }
        let made = self.made.get_or_insert_with(|| {
            let made = make();
            self.retry = RetryTimer::start_after(made.as_ref().err(), now);
            made
        });
        made.as_mut().map_err(|error| error.clone())
    }

    /// Whether it could not be made when it was asked for last: the log has said so.
    pub fn has_failed(&self) -> bool {
        matches!(self.made, Some(Err(_)))
    }

    /// The value, if it is there.
    pub fn get(&self) -> Option<&T> {
        self.made.as_ref()?.as_ref().ok()
    }

    /// The value, if it is there.
    #[cfg(feature = "bevy")]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.made.as_mut()?.as_mut().ok()
    }

    /// Replaces the value.
    #[cfg(feature = "testing")]
    pub fn set(&mut self, made: T) {
        *self = Self {
            made: Some(Ok(made)),
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cull::CullingTier;

    fn memory() -> CullError {
        CullError::Gpu {
            what: "kernels",
            message: "out of memory".into(),
        }
    }

    fn invalid() -> CullError {
        CullError::Pipeline {
            tier: CullingTier::Subgroup,
            label: "vote",
            message: "no such type".into(),
        }
    }

    #[test]
    fn a_timer_runs_from_a_refusal_until_it_is_stopped() {
        let state = |timer: RetryTimer, now| (timer.waits(now), timer.is_due(now));
        for mut timer in [
            RetryTimer::default(),
            RetryTimer::start_after(None, 7),
            RetryTimer::start_after(Some(&invalid()), 7),
        ] {
            assert_eq!(state(timer, 0), (false, false));
            assert_eq!(state(timer, 10 * RETRY_AFTER), (false, false));
            assert!(!timer.stop());
        }
        for mut timer in [
            RetryTimer::start(7),
            RetryTimer::start_after(Some(&memory()), 7),
        ] {
            assert_eq!(state(timer, 7), (true, false));
            assert_eq!(state(timer, 7 + RETRY_AFTER - 1), (true, false));
            assert_eq!(state(timer, 7 + RETRY_AFTER), (false, true));
            assert!(timer.stop());
            assert_eq!(state(timer, 7 + RETRY_AFTER), (false, false));
        }
    }

    #[test]
    fn only_memory_is_asked_for_again() {
        let mut lacks = OnDemand::<u32>::default();
        assert_eq!(lacks.get_or_make(7, || Err(memory())), Err(memory()));
        let early = lacks.get_or_make(7 + RETRY_AFTER - 1, || Ok(1));
        assert_eq!(early, Err(memory()));
        assert_eq!(lacks.get_or_make(7 + RETRY_AFTER, || Ok(2)), Ok(&mut 2));
        assert_eq!(lacks.get_or_make(1000, || Ok(3)), Ok(&mut 2));

        let mut broken = OnDemand::<u32>::default();
        assert_eq!(broken.get_or_make(0, || Err(invalid())), Err(invalid()));
        let later = broken.get_or_make(10 * RETRY_AFTER, || Ok(1));
        assert_eq!(later, Err(invalid()));
        assert_eq!(broken.get(), None);
    }
}
