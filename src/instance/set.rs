//! The instance set: what one entity draws.
//!
//! This file is long because of the documentation of its public methods.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "bevy")]
use bevy::reflect::std_traits::ReflectDefault;
#[cfg(all(feature = "bevy", feature = "serde"))]
use bevy::reflect::{ReflectDeserialize, ReflectSerialize};

use super::changes::{ChangeLog, GRANULE};
use glam::Vec3;

use super::channels::Channels;
use super::gpu_written::Written;
use super::limits::MAX_LEN;
use super::scales::{ScaleKind, Scales};
use super::{
    InstanceBounds, InstanceError, InstanceTransform, PackedInstance, SetChanges, SetVersion,
};

/// Up to [`MAX_LEN`](Self::MAX_LEN) instances, packed for the GPU: the asset that an entity draws.
///
/// | channel | bytes per instance | exists if |
/// | --- | --- | --- |
/// | position and rotation, [`packed`](Self::packed) | 16 | always |
/// | uniform scale, [`scales`](Self::scales) | 4 | a scale is not 1, or [`with_scales`](Self::with_scales) set them |
/// | or scale per axis, [`non_uniform_scales`](Self::non_uniform_scales) | 12 | a scale differs between axes, or [`with_non_uniform_scales`](Self::with_non_uniform_scales) set them |
/// | tag, [`tags`](Self::tags) | 4 | a tag is not 0, or [`with_tags`](Self::with_tags) set them |
/// | or data, [`data`](Self::data) | 8, 12 or 16 | [`with_data`](Self::with_data) or [`set_data`](Self::set_data) set it; the first 4 bytes are the tag |
///
/// All input is checked. The first problem is returned as an [`InstanceError`] that names the
/// index, and the set stays unchanged. Rotations are quantized; see
/// [`PackedQuat`](super::PackedQuat).
///
/// Each edit raises the [`revision`](Self::revision). A renderer remembers the last revision that
/// it has seen and asks [`changes_since`](Self::changes_since) what to upload.
///
/// A clone is another set: it starts with the same data and revision, but later changes are not
/// shared. A renderer that meets the clone in place of the original uploads all of it.
///
/// # Memory
///
/// In an app, the data stays on the CPU by default, so that it can be read and edited. A set whose
/// `asset_usage` is only `RenderAssetUsages::RENDER_WORLD` is *released* after its upload, as a
/// Bevy mesh or image is. Its length, its bounds and the list of its channels stay known; the data
/// is gone. Methods that edit then return [`InstanceError::Released`] (except
/// [`truncate`](Self::truncate) and [`clear`](Self::clear), which still work; after `clear`, the
/// set can be filled again). Methods that read find nothing, and a clone is empty too. An empty set
/// has nothing to release: it can be filled at any time. With only `MAIN_WORLD`, a set is never
/// uploaded.
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
#[cfg_attr(
    feature = "bevy",
    derive(bevy::asset::Asset, bevy::reflect::Reflect),
    reflect(opaque),
    reflect(Clone, Debug, Default)
)]
#[cfg_attr(
    all(feature = "bevy", feature = "serde"),
    reflect(Serialize, Deserialize)
)]
#[derive(Clone, Default)]
pub struct InstanceSet {
    pub(super) channels: Channels,
    pub(super) log: ChangeLog,
    pub(super) lineage: Lineage,
    /// Where the data is kept; see [Memory](Self#memory).
    #[cfg(feature = "bevy")]
    pub asset_usage: bevy::asset::RenderAssetUsages,
    /// Settings of a set whose instances a compute pass writes; its channels are then empty.
    pub(super) written: Option<Written>,
    pub(super) keeps_previous: bool,
}

impl InstanceSet {
    /// Granularity of [`changes_since`](Self::changes_since) in instances: ranges are rounded
    /// outwards to multiples of it (4 KiB of packed data).
    pub const CHANGE_GRANULE: usize = GRANULE;

    /// The largest number of instances in a set: 4,294,966,272 (2^32 - 1,024). More give
    /// [`InstanceError::TooMany`].
    pub const MAX_LEN: usize = MAX_LEN;

    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty set with memory for `capacity` instances.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let mut set = Self::default();
        set.channels.instances.reserve(capacity);
        set
    }

    /// A set of these instances, in this order. Takes everything that converts to an
    /// [`InstanceTransform`]: `Transform`, `Affine3A`, `Mat4`, `Vec3`.
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

    /// A set of these instances, each with a tag, in this order.
    ///
    /// # Errors
    ///
    /// Same as [`from_transforms`](Self::from_transforms).
    pub fn from_tagged<T: Into<InstanceTransform>>(
        instances: impl IntoIterator<Item = (T, u32)>,
    ) -> Result<Self, InstanceError> {
        let channels = Channels::collect_tagged(instances, 0, 0)?;
        Ok(Self {
            channels,
            ..Self::default()
        })
    }

    /// A set of instances that are already packed. The array is checked and taken over, not copied.
    ///
    /// # Errors
    ///
    /// [`InstanceError::NonFinitePosition`]; [`InstanceError::RotationNotNormalized`] for bits that
    /// [`PackedQuat::encode`](super::PackedQuat::encode) never writes, such as zeroed memory;
    /// [`InstanceError::TooMany`].
    pub fn from_packed(instances: Vec<PackedInstance>) -> Result<Self, InstanceError> {
        let channels = Channels::from_packed(instances, 0)?;
        Ok(Self {
            channels,
            ..Self::default()
        })
    }

    /// Sets which side keeps the data: `RenderAssetUsages::RENDER_WORLD` drops it on the CPU after
    /// its upload. See [Memory](Self#memory).
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

    /// Releases the set and returns what it held. Dropping that may take time, so the caller
    /// chooses the thread. This is not an edit.
    #[doc(hidden)]
    pub fn release(&mut self) -> impl Send + 'static + use<> {
        self.channels.release()
    }

    /// Number of instances, also in a [released](Self::is_released) set. For a set that the GPU
    /// writes, the number of live instances.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.written {
            Some(written) => written.live as usize,
            None => self.channels.len(),
        }
    }

    /// Whether there are no instances.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An instance, decoded: its rotation is the quantized one. `None` beyond the end, and in a
    /// [released](Self::is_released) set.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<InstanceTransform> {
        let at = self.check_index(index).ok()?;
        Some(self.decoded(at))
    }

    /// All instances in index order, decoded; nothing for a [released](Self::is_released) set.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = InstanceTransform> + DoubleEndedIterator + '_ {
        (0..self.channels.instances.len()).map(|at| self.decoded(at))
    }

    /// Positions and rotations, as the shaders read them; empty for a set that the GPU writes. The
    /// first coordinate of a [hidden](Self::hide) instance is NaN.
    #[must_use]
    pub fn packed(&self) -> &[PackedInstance] {
        &self.channels.instances
    }

    /// The uniform scale channel, one value per instance; `None` if all are 1, and if scales differ
    /// between axes ([`non_uniform_scales`](Self::non_uniform_scales)).
    #[must_use]
    pub fn scales(&self) -> Option<&[f32]> {
        match &self.channels.scales {
            Scales::Uniform(scales) => Some(scales),
            _ => None,
        }
    }

    /// The scale channel of a set whose scales differ between axes, one value per instance; `None`
    /// in other sets.
    #[must_use]
    pub fn non_uniform_scales(&self) -> Option<&[Vec3]> {
        match &self.channels.scales {
            Scales::NonUniform(scales) => Some(scales),
            _ => None,
        }
    }

    /// The scales as the shaders read them: [`ScaleKind::floats`] numbers per instance.
    #[must_use]
    pub fn scale_floats(&self) -> &[f32] {
        self.channels.scales.floats()
    }

    /// Whether there is a scale channel, also in a [released](Self::is_released) set and in a set
    /// that the GPU writes.
    #[must_use]
    pub fn has_scales(&self) -> bool {
        self.scale_kind() != ScaleKind::One
    }

    /// What the set stores of its instances' scales, also in a [released](Self::is_released) set
    /// and in a set that the GPU writes.
    #[must_use]
    pub fn scale_kind(&self) -> ScaleKind {
        self.shape().0
    }

    /// The bounding box of all positions, and the largest scale; `None` for an empty set. This is a
    /// cheap lookup.
    ///
    /// It is never too small. It is tight until an edit moves an instance inwards, shrinks, hides
    /// or removes it. Then it stays large until [`tighten_bounds`](Self::tighten_bounds) is called,
    /// or a [`truncate`](Self::truncate) or [`retain`](Self::retain) that removes instances. Once
    /// it was tightened while all instances were [hidden](Self::hide), it is `None`.
    #[must_use]
    pub fn bounds(&self) -> Option<InstanceBounds> {
        self.channels.bounds
    }

    /// Keeps the previous frame's instances on the GPU. Motion vectors (`MotionVectorPrepass`:
    /// temporal anti-aliasing, motion blur) then follow instances that move within the set, whether
    /// [`set`](Self::set) moves them or the GPU writes them. Without it, motion vectors follow only
    /// the entity.
    ///
    /// This doubles the set's memory on the GPU, and each frame copies what the previous frame
    /// changed. Instances are identified by index: an instance that [`push`](Self::push),
    /// [`extend`](Self::extend) or [`splice`](Self::splice) puts at or shifts to an index has no
    /// motion in that frame. Neither has one that [`teleport`](Self::teleport) moves.
    #[must_use]
    pub fn keep_previous(mut self, keep: bool) -> Self {
        self.set_keep_previous(keep);
        self
    }

    /// Same as [`keep_previous`](Self::keep_previous), in place. A change uploads the set again.
    pub fn set_keep_previous(&mut self, keep: bool) {
        if self.keeps_previous != keep {
            self.keeps_previous = keep;
            self.log.begin();
            self.log.mark_everything();
        }
    }

    /// Whether the set [keeps](Self::keep_previous) the previous places of its instances.
    #[must_use]
    pub fn keeps_previous(&self) -> bool {
        self.keeps_previous
    }

    /// Number of the latest edit: 1 for a new set, greater after each edit that changes something.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.log.revision()
    }

    /// Names this set, and its state: no other set, and no other state of this set, has the same
    /// version. See [`index_since`](Self::index_since).
    #[must_use]
    pub fn version(&self) -> SetVersion {
        SetVersion {
            lineage: self.lineage.0,
            revision: self.revision(),
        }
    }

    /// What was written after the set had this revision.
    ///
    /// 0 stands for a reader that has seen nothing and gives [`SetChanges::Everything`]. A revision
    /// is meaningful only for the set that it came from.
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

    /// Distinguishes sets that replace each other under one handle. No two sets of a process have
    /// the same lineage, not even a set and its clone. Revisions of one lineage say nothing about
    /// another.
    #[doc(hidden)]
    #[must_use]
    pub fn lineage(&self) -> u64 {
        self.lineage.0
    }

    /// An existing instance, hidden or not.
    pub(super) fn decoded(&self, at: usize) -> InstanceTransform {
        let mut packed = self.channels.instances[at];
        if let Some(x) = self.channels.hidden.x(at) {
            packed.position[0] = x;
        }
        InstanceTransform {
            scale: self.channels.scale(at),
            ..InstanceTransform::from(packed)
        }
    }
}

/// Prints how much is there, not what: a set may hold millions of instances.
impl fmt::Debug for InstanceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceSet")
            .field("len", &self.len())
            .field("scales", &self.scale_kind())
            .field("data", &self.data_size())
            .field("bounds", &self.channels.bounds)
            .field("released", &self.is_released())
            .field("revision", &self.revision())
            .field("written", &self.written)
            .field("keeps_previous", &self.keeps_previous)
            .finish_non_exhaustive()
    }
}

/// A number that is unique to each set, and to each clone.
pub(super) struct Lineage(u64);

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
