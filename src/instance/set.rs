//! The instance set: what one entity draws.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::changes::{ChangeLog, GRANULE};
use super::channels::{Channels, MAX_LEN};
use super::gpu_written::Written;
use super::{
    InstanceBounds, InstanceError, InstanceOrder, InstanceTransform, PackedInstance, SetChanges,
};

/// Up to [`MAX_LEN`](Self::MAX_LEN) instances, packed for the GPU: the asset that an entity draws.
///
/// | channel | bytes an instance | there when |
/// | --- | --- | --- |
/// | position and rotation, [`packed`](Self::packed) | 16 | always |
/// | uniform scale, [`scales`](Self::scales) | 4 | one scale is not 1, or [`with_scales`](Self::with_scales) gave them |
/// | tag, [`tags`](Self::tags) | 4 | one tag is not 0, or [`with_tags`](Self::with_tags) gave them |
///
/// All input is checked, and the first thing wrong is returned as an [`InstanceError`] that names
/// the index; the set is then as it was before. Rotations are quantised, see
/// [`PackedQuat`](super::PackedQuat).
///
/// Each edit raises the [`revision`](Self::revision). A renderer remembers the last one it has seen
/// and asks [`changes_since`](Self::changes_since) what to upload.
///
/// A clone is another set: it starts with the same data and revision, but what it changes later is
/// its own, so a renderer that meets it in the place of the first uploads all of it.
///
/// # Memory
///
/// In an app the data stays on the CPU by default, so that it can be read and edited. A set whose `asset_usage` is
/// `RenderAssetUsages::RENDER_WORLD` alone is *released* when it has been uploaded, as a Bevy mesh or image is: length, bounds
/// and which channels there are stay known, the data is gone. Then the methods that edit return
/// [`InstanceError::Released`] ([`truncate`](Self::truncate) and [`clear`](Self::clear) go on working), those that
/// read find nothing, and a clone is as empty. With `MAIN_WORLD` alone a set is never uploaded.
///
/// ```
/// use bevy_gpu_culling::instance::{InstanceSet, InstanceTransform};
/// use glam::{Quat, Vec3};
///
/// let grid = (0..100).map(|i| Vec3::new((i % 10) as f32, 0.0, (i / 10) as f32));
/// let mut set = InstanceSet::from_transforms(grid)?;
/// set.push(InstanceTransform::from(Vec3::Y).with_rotation(Quat::from_rotation_y(0.5)))?;
/// assert_eq!(set.len(), 101);
/// assert!(set.scales().is_none());
/// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
/// ```
#[cfg_attr(feature = "bevy", derive(bevy::asset::Asset, bevy::reflect::TypePath))]
#[derive(Clone, Default)]
pub struct InstanceSet {
    pub(super) channels: Channels,
    pub(super) log: ChangeLog,
    lineage: Lineage,
    /// Where the data is kept; see [Memory](Self#memory).
    #[cfg(feature = "bevy")]
    pub asset_usage: bevy::asset::RenderAssetUsages,
    /// Set where a compute pass writes the instances; the channels are then empty.
    pub(super) written: Option<Written>,
    pub(super) previous: bool,
}

impl InstanceSet {
    /// [`changes_since`](Self::changes_since) rounds its ranges outwards to this many instances (4
    /// KiB of packed data).
    pub const CHANGE_GRANULE: usize = GRANULE;

    /// The most instances of a set: 4,294,966,272 (2^32 - 1,024). More are
    /// [`InstanceError::TooMany`].
    pub const MAX_LEN: usize = MAX_LEN;

    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty set with room for `capacity` instances.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let mut set = Self::default();
        set.channels.instances.reserve(capacity);
        set
    }

    /// A set of these instances, in this order. Takes all that an [`InstanceTransform`] is made
    /// from: `Transform`, `Affine3A`, `Mat4`, `Vec3`.
    ///
    /// # Errors
    ///
    /// The first instance that [`InstanceTransform`] does not allow, or [`InstanceError::TooMany`].
    pub fn from_transforms<T: Into<InstanceTransform>>(
        transforms: impl IntoIterator<Item = T>,
    ) -> Result<Self, InstanceError> {
        let channels = Channels::collect(transforms, 0)?;
        Ok(Self {
            channels,
            ..Self::default()
        })
    }

    /// A set of instances that are packed already; the array is checked and taken over, not copied.
    ///
    /// # Errors
    ///
    /// [`InstanceError::NonFinitePosition`]; [`InstanceError::RotationNotNormalized`] for bits that
    /// [`PackedQuat::encode`](super::PackedQuat::encode) never writes, such as zeroed memory;
    /// [`InstanceError::TooMany`].
    pub fn from_packed(instances: Vec<PackedInstance>) -> Result<Self, InstanceError> {
        let channels = Channels::from_packed(instances)?;
        Ok(Self {
            channels,
            ..Self::default()
        })
    }

    /// Gives every instance a scale, in index order, in place of any they had.
    ///
    /// # Errors
    ///
    /// [`InstanceError::ChannelLength`] unless there is one for each;
    /// [`InstanceError::InvalidScale`].
    pub fn with_scales(mut self, scales: Vec<f32>) -> Result<Self, InstanceError> {
        self.check_not_written()?;
        self.channels.set_scales(scales)?;
        self.log.begin();
        self.log.mark_everything();
        Ok(self)
    }

    /// Gives every instance a tag, in index order, in place of any they had. What a tag means is up
    /// to the material, as with Bevy's `MeshTag`.
    ///
    /// # Errors
    ///
    /// [`InstanceError::ChannelLength`] unless there is one for each.
    pub fn with_tags(mut self, tags: Vec<u32>) -> Result<Self, InstanceError> {
        self.check_not_written()?;
        self.channels.set_tags(tags)?;
        self.log.begin();
        self.log.mark_everything();
        Ok(self)
    }

    /// Says where the data is kept: `RenderAssetUsages::RENDER_WORLD` drops it on the CPU when it has been uploaded. See
    /// [Memory](Self#memory).
    #[cfg(feature = "bevy")]
    #[must_use]
    pub fn with_asset_usage(mut self, usage: bevy::asset::RenderAssetUsages) -> Self {
        self.asset_usage = usage;
        self
    }

    /// Whether the data was dropped on the CPU after its upload. See [Memory](Self#memory).
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.channels.released.is_some()
    }

    /// Releases the set and returns what it held, to be dropped where that may take time. It is no edit.
    #[doc(hidden)]
    pub fn release(&mut self) -> impl Send + 'static + use<> {
        self.channels.release()
    }

    /// How many instances there are, also in a [released](Self::is_released) set; of a set that the GPU writes, how many
    /// are live.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.written {
            Some(written) => written.live as usize,
            None => self.channels.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An instance, decoded: its rotation is the quantised one. `None` beyond the end, and in a
    /// [released](Self::is_released) set.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<InstanceTransform> {
        let at = self.check_index(index).ok()?;
        Some(self.decoded(at))
    }

    /// The tag of an instance; 0 in a set without tags. `None` beyond the end, and in a
    /// [released](Self::is_released) set.
    #[must_use]
    pub fn tag(&self, index: u32) -> Option<u32> {
        let at = self.check_index(index).ok()?;
        Some(self.channels.tag(at))
    }

    /// All instances in index order, decoded; none of a [released](Self::is_released) set.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = InstanceTransform> + DoubleEndedIterator + '_ {
        (0..self.channels.instances.len()).map(|at| self.decoded(at))
    }

    /// Positions and rotations, as the shaders read them; empty for a set that the GPU writes.
    #[must_use]
    pub fn packed(&self) -> &[PackedInstance] {
        &self.channels.instances
    }

    /// The scale channel: one for each instance, or `None` when all are 1.
    #[must_use]
    pub fn scales(&self) -> Option<&[f32]> {
        self.channels.scales.as_deref()
    }

    /// The tag channel: one for each instance, or `None` when all are 0.
    #[must_use]
    pub fn tags(&self) -> Option<&[u32]> {
        self.channels.tags.as_deref()
    }

    /// Whether there is a scale channel, also in a [released](Self::is_released) set.
    #[must_use]
    pub fn has_scales(&self) -> bool {
        self.channels.shape().0
    }

    /// Whether there is a tag channel, also in a [released](Self::is_released) set.
    #[must_use]
    pub fn has_tags(&self) -> bool {
        self.channels.shape().1
    }

    /// The box around all positions, and the largest scale; `None` for an empty set. Costs nothing
    /// to ask.
    ///
    /// Never too small. It is tight until [`set`](Self::set) moves an instance inwards or shrinks
    /// it; then it stays large until [`truncate`](Self::truncate) or
    /// [`tighten_bounds`](Self::tighten_bounds).
    #[must_use]
    pub fn bounds(&self) -> Option<InstanceBounds> {
        self.channels.bounds
    }

    /// The same instances in the order of a Morton curve, and the way back to their old indices.
    ///
    /// Culling skips whole runs of instances at once, which pays when neighbours in the set are
    /// neighbours in space. The curve has 2²¹ cells along the longest side of the box around the
    /// set; instances in one cell keep their order. Scales and tags follow.
    ///
    /// The result is another set with a revision of its own. It takes 40 bytes an instance on top of the set
    /// itself while it works, on all cores. A [released](Self::is_released) set comes back as it is.
    #[must_use]
    pub fn sorted(self) -> (Self, InstanceOrder) {
        if self.is_released() || self.written.is_some() {
            return (self, InstanceOrder::default());
        }
        let previous = self.previous;
        let Channels {
            instances,
            scales,
            tags,
            ..
        } = self.channels;
        let order = InstanceOrder::along_curve(&instances);
        let mut channels = Channels {
            instances: order.gather(&instances),
            scales: scales.map(|scales| order.gather(&scales)),
            tags: tags.map(|tags| order.gather(&tags)),
            ..Channels::default()
        };
        channels.measure();
        let sorted = Self {
            channels,
            previous,
            #[cfg(feature = "bevy")]
            asset_usage: self.asset_usage,
            ..Self::default()
        };
        (sorted, order)
    }

    /// Keeps on the GPU where each instance was in the frame before, so that motion vectors
    /// (`MotionVectorPrepass`: temporal anti-aliasing, motion blur) follow instances that move within
    /// the set, by [`set`](Self::set) or written by the GPU. Without it they follow the entity alone.
    ///
    /// It doubles the set's memory on the GPU, and each frame copies what the frame before it changed.
    /// Instances go by their index: those that [`push`](Self::push), [`extend`](Self::extend) and
    /// [`splice`](Self::splice) put or shift to an index have no motion in that frame.
    #[must_use]
    pub fn keep_previous(mut self, keep: bool) -> Self {
        if self.previous != keep {
            self.previous = keep;
            self.log.begin();
            self.log.mark_everything();
        }
        self
    }

    /// Whether the set [keeps](Self::keep_previous) where its instances were.
    #[must_use]
    pub fn keeps_previous(&self) -> bool {
        self.previous
    }

    /// Counts edits. 1 for a set that was just made, more after each edit.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.log.revision()
    }

    /// What was written after the set had this revision.
    ///
    /// 0, as of a reader that has seen nothing, gives [`SetChanges::Everything`]. A revision means
    /// something only for the set that it came from.
    ///
    /// ```
    /// use bevy_gpu_culling::instance::{InstanceSet, SetChanges};
    /// use glam::Vec3;
    ///
    /// let mut set = InstanceSet::from_transforms(vec![Vec3::ZERO; 1000])?;
    /// assert_eq!(set.changes_since(0), SetChanges::Everything);
    ///
    /// let seen = set.revision();
    /// assert_eq!(set.changes_since(seen), SetChanges::Nothing);
    ///
    /// set.set(300, Vec3::X)?;
    /// let SetChanges::Ranges(changed) = set.changes_since(seen) else {
    ///     panic!("no channel came or went");
    /// };
    /// assert_eq!(changed.instances, [256..512]);
    /// # Ok::<(), bevy_gpu_culling::instance::InstanceError>(())
    /// ```
    #[must_use]
    pub fn changes_since(&self, revision: u64) -> SetChanges {
        self.log.since(revision, self.len())
    }

    /// Tells apart sets that take each other's place under one handle: no two sets of a process
    /// have the same, not even a set and its clone. Revisions of one lineage say nothing about
    /// another.
    #[doc(hidden)]
    #[must_use]
    pub fn lineage(&self) -> u64 {
        self.lineage.0
    }

    fn decoded(&self, at: usize) -> InstanceTransform {
        InstanceTransform::from(self.channels.instances[at]).with_scale(self.channels.scale(at))
    }
}

/// Says how much is there, not what: a set may hold millions.
impl fmt::Debug for InstanceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceSet")
            .field("len", &self.len())
            .field("scales", &self.has_scales())
            .field("tags", &self.has_tags())
            .field("bounds", &self.channels.bounds)
            .field("released", &self.is_released())
            .field("revision", &self.revision())
            .field("written", &self.written)
            .field("previous", &self.previous)
            .finish_non_exhaustive()
    }
}

/// A number of its own for each set, and for each clone.
struct Lineage(u64);

impl Default for Lineage {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Clone for Lineage {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests;
