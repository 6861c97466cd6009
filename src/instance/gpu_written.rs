//! What a set knows of instances that a compute pass writes.

use super::InstanceBounds;
use glam::Vec3;

/// What a set must know of instances that it never sees: see [`InstanceSet::gpu_written`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuWritten {
    /// A box around every position that the compute pass may write, and the largest scale. Bevy decides by it
    /// which cameras and lights see the set at all; an instance outside it may be missing there.
    pub bounds: InstanceBounds,
    /// The pass also writes a uniform scale for each instance.
    pub scales: bool,
    /// The pass also writes a tag for each instance.
    pub tags: bool,
    /// Bounds of blocks of 1,024 instances are made anew each frame, so that blocks outside a view are not read
    /// again for it. That reads every instance twice: worth it where neighbours in the buffer are neighbours in space and
    /// most of them are out of view. Where they are not, `false` saves it: every instance is then tested.
    pub classify: bool,
}

impl GpuWritten {
    /// Positions between two corners; neither scales nor tags; blocks are classified.
    #[must_use]
    pub fn within(min: Vec3, max: Vec3) -> Self {
        Self {
            bounds: InstanceBounds {
                min,
                max,
                max_scale: 1.0,
            },
            scales: false,
            tags: false,
            classify: true,
        }
    }

    /// The pass also writes scales, up to `max_scale`.
    #[must_use]
    pub fn with_scales(mut self, max_scale: f32) -> Self {
        self.scales = true;
        self.bounds.max_scale = max_scale;
        self
    }

    /// The pass also writes tags.
    #[must_use]
    pub fn with_tags(mut self) -> Self {
        self.tags = true;
        self
    }

    /// Whether blocks are classified.
    #[must_use]
    pub fn with_classify(mut self, classify: bool) -> Self {
        self.classify = classify;
        self
    }
}

/// A written set's settings and counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Written {
    pub settings: GpuWritten,
    pub capacity: u32,
    pub live: u32,
}
