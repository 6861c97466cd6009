//! What a report says.

use super::sets::SetReport;
use crate::{
    cull::{Compaction, CullingTier, meshlets::MeshletExpansion},
    render::{cpu_times::CpuTimes, views::ViewKind},
};
use bevy::{prelude::*, render::sync_world::MainEntity};
use core::ops::Add;

/// What the culling did some frames ago.
///
/// The counters are read back from the GPU without waiting for it: in every fourth frame while sets
/// and views stay the same ([`Culler::wants_counts`](crate::cull::Culler::wants_counts)).
#[derive(Resource, Reflect, Clone, Debug, Default)]
#[reflect(Resource, Clone, Debug, Default)]
pub struct CullingReport {
    /// The tier in use; `None` before the renderer has started, and if the device cannot cull.
    pub tier: Option<CullingTier>,
    /// The compaction in use; never [`Compaction::Auto`].
    pub compaction: Compaction,
    /// Number of instances of all sets that some view sees. Instances that several
    /// entities test together count once.
    pub instances: u64,
    /// The counters of each view.
    pub views: Vec<ViewReport>,
    /// The counters of each entity whose set some view tests, by entity. [`CullingReport::set`]
    /// finds one.
    pub sets: Vec<SetReport>,
    /// Bytes uploaded in the last frame: instances, channels and tables.
    pub uploaded_bytes: u64,
    /// What the last frame had to make again.
    pub work: FrameWork,
    /// Bytes that the plugin holds on the GPU for culling and draws: instances, visibility words,
    /// survivors, draw slots. Uniforms of expanded sets and what meshes take are not counted.
    pub gpu_bytes: u64,
    /// Number of survivors that did not fit in the counters' frame, and were not drawn.
    pub overflow: u64,
    /// CPU time of the plugin's systems in the last frame.
    pub cpu: CpuTimes,
    /// Number of compute passes of the culling in the last frame, without the passes of meshlets: 0
    /// without a set, one per stage, and one per view that hides instances.
    pub passes: u32,
    /// Number of dispatches in those passes.
    pub dispatches: u32,
    /// Number of draw calls of sets in the last frame, in all views and passes. A multi-draw is
    /// one.
    pub draw_calls: u32,
    /// How instances are expanded to meshlets; never [`MeshletExpansion::Auto`]. If that differs
    /// between sets, the one that is not the division. `None` without sets drawn by meshlets.
    pub expansion: Option<MeshletExpansion>,
    /// Meshlets in the views of cameras.
    pub meshlets: MeshletReport,
    /// Meshlets in shadow views.
    pub shadow_meshlets: MeshletReport,
}

/// What a frame had to make again, because something changed. All numbers are 0 in a frame like the
/// one before it; a camera may move.
#[derive(Reflect, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[reflect(Clone, Debug, Default, PartialEq)]
pub struct FrameWork {
    /// Number of entities with sets that were read: those that came, or changed in more than their
    /// place. All, if they are many, or one of them is an impostor, has one, or had a set before.
    pub entities: u64,
    /// Number of entities whose request was made again: they came into view for the first time, or
    /// changed, or moved, or did so in the frame before. If an entity that shares its set with
    /// others, an impostor, or a set with one `MeshUniform` per survivor does so, or is seen by
    /// other views than before, the requests of all such entities are made again.
    pub requests: u64,
    /// Number of plans of all sets: a view sees other entities than before, or an entity came or
    /// went (unless they are small sets, and there are many), or a set has more or fewer blocks of
    /// 1,024 instances.
    pub plans: u64,
    /// Number of requests that moved, changed their length by a few instances, or were added behind
    /// the others. The plan stays, except for their part of it.
    pub moved: u64,
    /// Number of entities whose material was looked at: they are new, or came into view, or their
    /// material changed.
    pub materials: u64,
    /// Bytes of draw slots that were uploaded: 688 per region of a set that moved, and in the frame
    /// after it.
    pub slot_bytes: u64,
    /// Number of writes of instances, scales and data.
    pub writes: u64,
    /// Number of dispatches that computed the bounds of blocks.
    pub bound_jobs: u64,
    /// Number of tiles of [`Scatter`](crate::render::Scatter) that were filled.
    pub scatter_tiles: u64,
}

/// Counters of the sets that are drawn by meshlets
/// ([`MeshletMesh3d`](crate::render::MeshletMesh3d)).
#[derive(Reflect, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[reflect(Clone, Debug, Default, PartialEq)]
pub struct MeshletReport {
    /// Number of meshlets of visible instances that were tested.
    pub tested: u64,
    /// Number of meshlets rejected by the frustum, or by a light's range.
    pub culled_by_frustum: u64,
    /// Number of meshlets rejected because all their triangles face away.
    pub culled_by_cone: u64,
    /// Number of meshlets rejected because what is drawn before them hides them, or because they
    /// reach no sample of the picture: in views that [hide](crate::render::InstanceOcclusion).
    pub culled_by_occlusion: u64,
    /// Number of meshlets drawn.
    pub drawn: u64,
    /// Number of triangles of the meshlets drawn.
    pub triangles: u64,
    /// Number of triangles of the visible instances.
    pub whole_triangles: u64,
    /// Number of rows (a view of a chunk of a set) that were drawn whole, because their meshlets
    /// did not fit. The buffers grow.
    pub rows_drawn_whole: u64,
}

/// Counters of one view.
#[derive(Reflect, Clone, Debug)]
#[reflect(Clone, Debug)]
pub struct ViewReport {
    /// The camera or light in the main world.
    pub entity: MainEntity,
    /// The kind of the view.
    pub kind: ViewKind,
    /// The camera in the main world that the view belongs to: itself for a camera, the one whose
    /// cascade it is, and `None` for faces of point lights and spot lights, which all cameras
    /// share.
    pub camera: Option<MainEntity>,
    /// `camera`, or the shadow pass's name.
    pub name: String,
    /// Number of instances tested. Entities that share a set and a transform are tested together:
    /// their instances count once.
    pub tested: u64,
    /// Number of instances drawn: by a camera in its main pass, by a light in its shadow map. One
    /// that fades between two levels of detail counts twice; one that several entities draw
    /// together counts once.
    pub visible: u64,
    /// The lists of a view that hides instances
    /// ([`InstanceOcclusion`](crate::render::InstanceOcclusion)); `None` in other views, and until
    /// the counters have arrived.
    pub occlusion: Option<OcclusionReport>,
    /// What was kept at each level of detail, the full mesh first. Sets without levels are drawn at
    /// the first.
    pub levels: Vec<LevelReport>,
}

/// Counters of a view that hides instances.
#[derive(Reflect, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[reflect(Clone, Debug, Default, PartialEq)]
pub struct OcclusionReport {
    /// Number of instances drawn first: those that the view saw in the frame before, and those
    /// that are large.
    pub early: u64,
    /// Number of instances that were visible but not drawn first.
    pub late: u64,
    /// Number of instances that the frustum keeps and that were hidden behind what was drawn first,
    /// or too small.
    pub hidden: u64,
    /// Number of hidden instances that reach no sample of the viewport, wherever they are: small
    /// ones between two samples, or beyond the border. Groups that are hidden as a whole are not
    /// looked at.
    pub too_small: u64,
}

impl Add for OcclusionReport {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            early: self.early + other.early,
            late: self.late + other.late,
            hidden: self.hidden + other.hidden,
            too_small: self.too_small + other.too_small,
        }
    }
}

/// Counters of one level of detail of a view.
#[derive(Reflect, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[reflect(Clone, Debug, Default, PartialEq)]
pub struct LevelReport {
    /// Number of instances kept.
    pub visible: u64,
    /// Number of their triangles, of all entities that draw them, if meshes are lists of
    /// triangles. Instances that are drawn by meshlets count whole; [`MeshletReport`] says what is
    /// drawn of them.
    pub triangles: u64,
}

impl ViewReport {
    /// Number of instances that the frustum and the ranges keep, hidden or not.
    #[must_use]
    pub fn in_frustum(&self) -> u64 {
        self.visible + self.occlusion.map_or(0, |lists| lists.hidden)
    }

    /// Number of triangles of all instances kept.
    #[must_use]
    pub fn triangles(&self) -> u64 {
        self.levels.iter().map(|level| level.triangles).sum()
    }
}

impl CullingReport {
    /// Numbers of instances tested and kept, summed over cameras.
    #[must_use]
    pub fn cameras(&self) -> (u64, u64) {
        self.sum(|kind| kind == ViewKind::Camera)
    }

    /// The lists of all cameras that hide instances, summed; `None` without such a camera.
    #[must_use]
    pub fn camera_occlusion(&self) -> Option<OcclusionReport> {
        let views = self.views.iter();
        let cameras = views.filter(|view| view.kind == ViewKind::Camera);
        let lists = cameras.filter_map(|view| view.occlusion);
        lists.reduce(Add::add)
    }

    /// Numbers of instances tested and kept, summed over shadow views.
    #[must_use]
    pub fn shadows(&self) -> (u64, u64) {
        self.sum(|kind| kind != ViewKind::Camera)
    }

    /// The counters of one entity with [`GpuInstances`](crate::render::GpuInstances); `None` if no
    /// view tests its set, and until the counters have arrived.
    ///
    /// ```
    /// # use bevy::prelude::*;
    /// # use bevy_gpu_culling::prelude::*;
    /// fn print_visible(report: Res<CullingReport>, sets: Query<(Entity, &Name),
    /// With<GpuInstances>>) {
    ///     for (entity, name) in &sets {
    ///         if let Some(set) = report.set(entity) {
    ///             info!("{name}: {} of {} instances", set.visible, set.tested);
    ///         }
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn set(&self, entity: Entity) -> Option<&SetReport> {
        let entity = MainEntity::from(entity);
        let place = self.sets.binary_search_by_key(&entity, |set| set.entity);
        self.sets.get(place.ok()?)
    }

    fn sum(&self, which: impl Fn(ViewKind) -> bool) -> (u64, u64) {
        let views = self.views.iter().filter(|view| which(view.kind));
        views.fold((0, 0), |(tested, visible), view| {
            (tested + view.tested, visible + view.visible)
        })
    }
}
