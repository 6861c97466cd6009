//! Sets whose instances a compute pass writes.

use super::data::words_of;
use super::gpu_written::{GpuWritten, Written};
use super::limits::check_len;
use super::{InstanceBounds, InstanceError, InstanceSet};

impl InstanceSet {
    /// A set without data on the CPU. In any frame, your compute pass writes up to `capacity`
    /// instances into the buffer that the culling and the draws read. Nothing is read back.
    ///
    /// At first, all instances are live ([`set_live`](Self::set_live)) and invisible until they are
    /// written. The plugin's `InstanceBuffers` (render world) hands out the buffers,
    /// `GpuCullingSystems::WriteInstances` is the place in the frame, and the shader module
    /// `bevy_gpu_culling::instance` has `pack`, `unpack` and `hidden`. An instance is never drawn
    /// if its position or scale is not a finite number, or if a scale is negative.
    ///
    /// Everything that edits single instances ([`push`](Self::push), [`set`](Self::set), ..) fails
    /// with [`InstanceError::GpuWritten`]. To change the capacity, replace the set with another
    /// one.
    ///
    /// # Errors
    ///
    /// [`InstanceError::InvalidBounds`] if `settings.bounds` is not a finite box;
    /// [`InstanceError::DataSize`] if `settings.data_size` is not 0, 4, 8, 12 or 16;
    /// [`InstanceError::TooMany`] above [`MAX_LEN`](Self::MAX_LEN).
    ///
    /// ```
    /// use bevy_gpu_culling::instance::{GpuWritten, InstanceSet};
    /// use glam::Vec3;
    ///
    /// let box_of_swarm = GpuWritten::within(Vec3::splat(-50.0), Vec3::splat(50.0)).with_tags();
    /// let mut swarm = InstanceSet::gpu_written(1_000_000, box_of_swarm)?.keep_previous(true);
    /// swarm.set_live(200_000)?;
    /// assert_eq!(swarm.len(), 200_000);
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
    /// ```
    pub fn gpu_written(capacity: u32, settings: GpuWritten) -> Result<Self, InstanceError> {
        check_len(capacity as usize)?;
        if settings.data_size > 0 {
            words_of(settings.data_size as usize)?;
        }
        let mut set = Self {
            written: Some(Written {
                settings,
                capacity,
                live: capacity,
            }),
            ..Self::default()
        };
        set.set_written_bounds(settings.bounds)?;
        Ok(set)
    }

    /// What is known of the instances that the GPU writes; `None` for a set with data on the CPU.
    #[must_use]
    pub fn written(&self) -> Option<GpuWritten> {
        self.written.map(|written| written.settings)
    }

    /// Number of instances that the GPU may write; `None` for a set with data on the CPU.
    #[must_use]
    pub fn written_capacity(&self) -> Option<u32> {
        self.written.map(|written| written.capacity)
    }

    /// Sets the number of live instances: the first `live` ones are tested and drawn, the others
    /// are ignored. If only the GPU knows the number, keep all instances live and write `hidden()`
    /// to the rest: blocks with nothing else cost next to nothing.
    ///
    /// # Errors
    ///
    /// [`InstanceError::LiveOutOfRange`] above the capacity, which is 0 for a set with data on the
    /// CPU.
    pub fn set_live(&mut self, live: u32) -> Result<(), InstanceError> {
        match &mut self.written {
            Some(written) if live <= written.capacity => {
                if written.live != live {
                    written.live = live;
                    self.log.begin();
                }
                Ok(())
            }
            written => Err(InstanceError::LiveOutOfRange {
                live,
                capacity: written.map_or(0, |written| written.capacity),
            }),
        }
    }

    /// Replaces the bounding box of the positions that the GPU writes.
    ///
    /// # Errors
    ///
    /// [`InstanceError::InvalidBounds`]; [`InstanceError::NotWritten`] for a set with data on the
    /// CPU.
    pub fn set_written_bounds(&mut self, bounds: InstanceBounds) -> Result<(), InstanceError> {
        let Some(written) = &mut self.written else {
            return Err(InstanceError::NotWritten);
        };
        let InstanceBounds {
            min,
            max,
            max_scale,
        } = bounds;
        let ordered = min.cmple(max).all() && min.is_finite() && max.is_finite();
        if !ordered || !max_scale.is_finite() || max_scale < 0.0 {
            return Err(InstanceError::InvalidBounds { bounds });
        }
        written.settings.bounds = bounds;
        self.channels.bounds = Some(bounds);
        self.log.begin();
        Ok(())
    }

    /// Refuses edits of instances that are not here because the GPU writes them or they were
    /// released.
    pub(super) fn check_not_written(&self) -> Result<(), InstanceError> {
        match self.written {
            Some(_) => Err(InstanceError::GpuWritten),
            None => self.channels.check_here(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use glam::Vec3;

    fn settings() -> GpuWritten {
        GpuWritten::within(Vec3::splat(-2.0), Vec3::splat(3.0)).with_scales(4.0)
    }

    #[test]
    fn a_written_set_has_a_length_and_bounds_but_no_data() {
        let mut set = InstanceSet::gpu_written(100, settings()).unwrap();
        assert_eq!((set.len(), set.written_capacity()), (100, Some(100)));
        assert!(set.packed().is_empty() && set.scales().is_none() && set.iter().len() == 0);
        assert_eq!(set.bounds(), Some(settings().bounds));
        assert_eq!((set.get(0), set.tag(0)), (None, None));

        assert_eq!(set.scale_kind(), crate::instance::ScaleKind::Uniform);
        assert!(set.has_scales() && !set.has_tags() && set.data_size() == 0);
        let with_data = InstanceSet::gpu_written(1, settings().with_data(12)).unwrap();
        assert_eq!((with_data.data_size(), with_data.has_tags()), (12, true));

        let seen = set.revision();
        set.set_live(100).unwrap();
        assert_eq!(set.revision(), seen, "the same number as before");
        set.set_live(7).unwrap();
        assert!(set.len() == 7 && set.revision() > seen);
        set.truncate(9);
        assert_eq!(set.len(), 7);
        set.clear();
        assert_eq!((set.len(), set.bounds()), (0, Some(settings().bounds)));
        set.set_live(100).unwrap();
        let error = set.set_live(101).unwrap_err();
        let (live, capacity) = (101, 100);
        assert_eq!(error, InstanceError::LiveOutOfRange { live, capacity });
        set.tighten_bounds();
        let (sorted, order) = set.sorted_with_order();
        assert!(order.is_empty() && sorted.len() == 100);
        assert_eq!(sorted.bounds(), Some(settings().bounds));
    }

    #[test]
    fn edits_of_instances_that_are_not_here_are_refused() {
        let mut set = InstanceSet::gpu_written(4, settings()).unwrap();
        let refused = InstanceError::GpuWritten;
        assert_eq!(set.push(Vec3::ZERO).unwrap_err(), refused);
        assert_eq!(set.extend([Vec3::ZERO]).unwrap_err(), refused);
        assert_eq!(set.set(0, Vec3::ZERO).unwrap_err(), refused);
        assert_eq!(set.set_tag(0, 1).unwrap_err(), refused);
        assert_eq!(set.splice(.., [Vec3::ZERO]).unwrap_err(), refused);
        assert_eq!(set.clone().with_tags(vec![]).unwrap_err(), refused);
        assert_eq!(set.with_scales(vec![]).unwrap_err(), refused);
        assert_eq!(
            InstanceSet::new().set_live(1).unwrap_err(),
            InstanceError::LiveOutOfRange {
                live: 1,
                capacity: 0
            }
        );
    }

    #[test]
    fn a_capacity_beyond_the_limit_is_refused() {
        let max = InstanceSet::MAX_LEN as u32;
        assert_eq!(max, 4_294_966_272);
        let set = InstanceSet::gpu_written(max, settings()).unwrap();
        assert_eq!(set.len(), max as usize);
        for capacity in [max + 1, u32::MAX] {
            let error = InstanceSet::gpu_written(capacity, settings()).unwrap_err();
            let (len, limit) = (capacity as usize, max as usize);
            assert_eq!(error, InstanceError::TooMany { len, limit });
        }
    }

    #[test]
    fn bounds_must_be_a_finite_box() {
        let bad = [
            GpuWritten::within(Vec3::ONE, Vec3::ZERO),
            GpuWritten::within(Vec3::ZERO, Vec3::splat(f32::INFINITY)),
            GpuWritten::within(Vec3::splat(f32::NAN), Vec3::ONE),
            settings().with_scales(f32::NAN),
            settings().with_scales(-1.0),
        ];
        for settings in bad {
            let error = InstanceSet::gpu_written(1, settings).unwrap_err();
            assert!(
                matches!(error, InstanceError::InvalidBounds { .. }),
                "{error}"
            );
        }
        let error = InstanceSet::new().set_written_bounds(settings().bounds);
        assert_eq!(error, Err(InstanceError::NotWritten));
    }
}
