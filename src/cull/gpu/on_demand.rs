//! What is made when it is first needed.

use crate::cull::{CullError, policy::RETRY_AFTER};

/// A value that is made when it is first needed. If the device had no memory for it
/// ([`CullError::Gpu`]), it is asked again [`RETRY_AFTER`] frames later. Any other error stays.
pub(crate) struct OnDemand<T> {
    made: Option<Result<T, CullError>>,
    refused_in: u64,
}

impl<T> Default for OnDemand<T> {
    fn default() -> Self {
        Self {
            made: None,
            refused_in: 0,
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
        if matches!(self.made, Some(Err(CullError::Gpu { .. })))
            && now >= self.refused_in + RETRY_AFTER
        {
            self.made = None;
        }
        if self.made.is_none() {
            self.refused_in = now;
        }
        let made = self.made.get_or_insert_with(make);
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
        self.made = Some(Ok(made));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cull::CullingTier;

    #[test]
    fn only_memory_is_asked_for_again() {
        let memory = || CullError::Gpu {
            what: "kernels",
            message: "out of memory".into(),
        };
        let mut lacks = OnDemand::<u32>::default();
        assert_eq!(lacks.get_or_make(7, || Err(memory())), Err(memory()));
        let early = lacks.get_or_make(7 + RETRY_AFTER - 1, || Ok(1));
        assert_eq!(early, Err(memory()));
        assert_eq!(lacks.get_or_make(7 + RETRY_AFTER, || Ok(2)), Ok(&mut 2));
        assert_eq!(lacks.get_or_make(1000, || Ok(3)), Ok(&mut 2));

        let invalid = || CullError::Pipeline {
            tier: CullingTier::Subgroup,
            label: "vote",
            message: "no such type".into(),
        };
        let mut broken = OnDemand::<u32>::default();
        assert_eq!(broken.get_or_make(0, || Err(invalid())), Err(invalid()));
        let later = broken.get_or_make(10 * RETRY_AFTER, || Ok(1));
        assert_eq!(later, Err(invalid()));
        assert_eq!(broken.get(), None);
    }
}
