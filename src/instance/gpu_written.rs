//! What the CPU knows of instances that a compute pass writes.

use super::{InstanceBounds, ScaleKind};
use glam::Vec3;

/// What the CPU must know about instances that it never sees; see
/// [`InstanceSet::gpu_written`](super::InstanceSet::gpu_written).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "bevy",
    derive(bevy::reflect::Reflect),
    reflect(Clone, Debug, PartialEq)
)]
pub struct GpuWritten {
    /// Bounding box of every position that the compute pass may write, and the largest scale. Bevy
    /// uses it to decide which cameras and lights see the set at all; an instance outside it may be
    /// missing there.
    pub bounds: InstanceBounds,
    /// Which scales the pass also writes.
    pub scales: ScaleKind,
    /// Size of the data that the pass also writes per instance, in bytes: 0, 4 (a tag), 8, 12 or
    /// 16.
    pub data_size: u32,
    /// Whether bounds of blocks of 1,024 instances are computed again each frame, so that a view
    /// skips blocks outside it. Computing them reads every instance twice. This is worth it if
    /// neighbors in the buffer are neighbors in space and most of them are out of view. Otherwise,
    /// `false` avoids that cost, and every instance is tested.
    pub classify: bool,
    /// Whether the app says which instances it writes: `InstanceBuffers::note_written`. Then only
    /// the bounds of those are computed again, and a frame that writes nothing costs nothing.
    /// The default is `false`.
    pub noted_writes: bool,
}

impl GpuWritten {
    /// Positions between two corners; neither scales nor data; blocks are classified.
    #[must_use]
    pub fn within(min: Vec3, max: Vec3) -> Self {
        Self {
            bounds: InstanceBounds {
                min,
                max,
                max_scale: 1.0,
            },
            scales: ScaleKind::One,
            data_size: 0,
            classify: true,
            noted_writes: false,
        }
    }

    /// Declares that the pass also writes one scale per instance, up to `max_scale`.
    #[must_use]
    pub fn with_scales(mut self, max_scale: f32) -> Self {
        self.scales = ScaleKind::Uniform;
        self.bounds.max_scale = max_scale;
        self
    }

    /// Declares that the pass also writes three scales per instance, one per axis of the mesh, each
    /// up to `max_scale`.
    #[must_use]
    pub fn with_non_uniform_scales(mut self, max_scale: f32) -> Self {
        self.scales = ScaleKind::NonUniform;
        self.bounds.max_scale = max_scale;
        self
    }

    /// Declares that the pass also writes tags.
    #[must_use]
    pub fn with_tags(self) -> Self {
        self.with_data(4)
    }

    /// Declares that the pass also writes data per instance, of 4, 8, 12 or 16 bytes. The first 4
    /// bytes are the tag.
    #[must_use]
    pub fn with_data(mut self, bytes: u32) -> Self {
        self.data_size = bytes;
        self
    }

    /// Sets whether blocks are classified.
    #[must_use]
    pub fn with_classify(mut self, classify: bool) -> Self {
        self.classify = classify;
        self
    }

    /// Sets whether the app says which instances it writes.
    #[must_use]
    pub fn with_noted_writes(mut self, noted_writes: bool) -> Self {
        self.noted_writes = noted_writes;
        self
    }
}

/// Settings and counts of a set that the GPU writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Written {
    pub settings: GpuWritten,
    pub capacity: u32,
    pub live: u32,
}

impl Written {
    /// Which optional channels exist: the kind of scales, and the words of data per instance.
    pub fn shape(&self) -> (ScaleKind, usize) {
        (self.settings.scales, self.settings.data_size as usize / 4)
    }
}
