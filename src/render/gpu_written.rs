//! The buffers that compute passes of the app write.

use crate::{cull::WrittenRegion, instance::InstanceSet};
use bevy::{platform::collections::HashMap, prelude::*};
use core::ops::Range;

/// Render world: the buffers of every set of [`InstanceSet::gpu_written`] that an entity uses.
///
/// Your compute pass may fill them in any frame. Nothing is read back.
///
/// 1. The buffers exist after the extraction. Make bind groups in
///    [`RenderSystems::PrepareBindGroups`](bevy::render::RenderSystems), and again when
///    [`InstanceBuffer::version`] changes.
/// 2. Record the pass in a system in
///    [`GpuCullingSystems::WriteInstances`](super::GpuCullingSystems) of the schedule
///    [`RenderGraph`](bevy::render::renderer::RenderGraph). It runs before the culling and the
///    cameras.
/// 3. The shader imports `bevy_gpu_culling::instance`: `PackedInstance`, `pack(position,
///    rotation)`, `unpack`, `pack_quat`, `unpack_quat` and `hidden()`, an instance that no view
///    sees. Scales are one `f32` or three, data up to four `u32`, of which the first is
///    the tag.
///
/// Instances that a frame does not write keep their values, so a pass may continue from them.
///
/// ```
/// use bevy::{prelude::*, render::{renderer::{RenderContext, RenderGraph}, RenderApp}};
/// use bevy_gpu_culling::{prelude::*, render::InstanceBuffers};
///
/// fn plugin(app: &mut App) {
///     if let Some(render_app) = app.get_sub_app_mut(RenderApp) {
///         render_app.add_systems(RenderGraph, swirl.in_set(GpuCullingSystems::WriteInstances));
///     }
/// }
///
/// #[derive(Resource)]
/// struct Swarm(AssetId<InstanceSet>); // extracted from the main world
///
/// fn swirl(swarm: Option<Res<Swarm>>, buffers: Res<InstanceBuffers>, mut context: RenderContext) {
///     let Some(buffer) = swarm.and_then(|swarm| buffers.get(swarm.0)) else {
///         return;
///     };
///     for region in buffer.regions() {
///         // bind region.instances_binding() and dispatch over region.capacity instances
///         let _pass = context.command_encoder().begin_compute_pass(&Default::default());
///     }
/// }
/// ```
///
/// The example `gpu_written` is complete.
#[derive(Resource, Default)]
pub struct InstanceBuffers {
    sets: HashMap<AssetId<InstanceSet>, InstanceBuffer>,
    /// The newest version.
    last_version: u64,
    /// Instances that the frame writes.
    noted: Vec<(AssetId<InstanceSet>, Range<u32>)>,
}

/// The buffers of one set.
#[derive(Clone, Debug)]
pub struct InstanceBuffer {
    regions: Vec<WrittenRegion>,
    live: u32,
    version: u64,
    /// Whether the plugin fills it, and other buffers, too.
    is_refilled: bool,
}

impl InstanceBuffers {
    /// The buffers of a set. `None` if the set has data on the CPU, is not loaded, or is not used
    /// by an entity, and on the tier `Cpu`. What was written stays as long as the asset lives.
    #[must_use]
    pub fn get(&self, set: impl Into<AssetId<InstanceSet>>) -> Option<&InstanceBuffer> {
        self.sets.get(&set.into())
    }

    /// Says that the frame writes these instances of a set, or may write them. Sets with
    /// [`GpuWritten::noted_writes`](crate::instance::GpuWritten::noted_writes) need it: an instance
    /// that is written without a note may be missing in a view, or be drawn where none is.
    ///
    /// Call it in [`GpuCullingSystems::WriteInstances`](super::GpuCullingSystems) of the frame, or
    /// before. The bounds of the blocks of 1,024 instances that it touches are computed again.
    pub fn note_written(&mut self, set: impl Into<AssetId<InstanceSet>>, range: Range<u32>) {
        self.noted.push((set.into(), range));
    }

    /// What the frame writes, once.
    pub(super) fn take_noted(
        &mut self,
    ) -> impl Iterator<Item = (AssetId<InstanceSet>, Range<u32>)> + '_ {
        self.noted.drain(..)
    }

    pub(super) fn insert(&mut self, set: AssetId<InstanceSet>, regions: Vec<WrittenRegion>) {
        self.last_version += 1;
        let buffer = InstanceBuffer {
            regions,
            live: 0,
            version: self.last_version,
            is_refilled: false,
        };
        self.sets.insert(set, buffer);
    }

    pub(super) fn set_live(&mut self, set: AssetId<InstanceSet>, live: u32) {
        if let Some(buffer) = self.sets.get_mut(&set) {
            buffer.live = live;
        }
    }

    pub(super) fn remove(&mut self, set: AssetId<InstanceSet>) {
        self.sets.remove(&set);
    }

    /// Removes the buffers of all other sets.
    pub(super) fn retain(&mut self, keep: impl Fn(AssetId<InstanceSet>) -> bool) {
        self.sets.retain(|asset, _| keep(*asset));
    }

    /// Says that the plugin fills the buffers of a set, and fills them again if they are replaced.
    pub(super) fn note_refilled(&mut self, set: AssetId<InstanceSet>) {
        if let Some(buffer) = self.sets.get_mut(&set) {
            buffer.is_refilled = true;
        }
    }

    /// The sets with buffers that only the app can fill again.
    pub(super) fn written_by_apps(&self) -> impl Iterator<Item = AssetId<InstanceSet>> {
        let sets = self.sets.iter().filter(|(_, buffer)| !buffer.is_refilled);
        sets.map(|(asset, _)| *asset)
    }

    pub(super) fn clear(&mut self) {
        self.sets.clear();
    }
}

impl InstanceBuffer {
    /// The regions of the set, in the order of its instances: several if one binding does not hold
    /// them all. An adapter that binds 128 MiB holds 8 million instances in one, or 4 million with
    /// [`InstanceSet::keep_previous`].
    #[must_use]
    pub fn regions(&self) -> &[WrittenRegion] {
        &self.regions
    }

    /// Number of instances that are live ([`InstanceSet::set_live`]). Those behind them are not
    /// tested.
    #[must_use]
    pub fn live(&self) -> u32 {
        self.live
    }

    /// Changes when the buffers are replaced: bind groups must then be made again.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }
}
