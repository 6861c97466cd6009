//! Near levels first: the finer half of the levels of detail of all sets is drawn in a separate
//! pass, before Bevy's main pass draws the coarser half and the sets without levels.
//!
//! Each set draws near instances first, but one set after the other: of nine sets, far instances
//! of the first one are shaded before near ones of the last one hide them. Levels of detail divide
//! a set by distance, so two passes do most of what one order of all sets would do.
//!
//! ```text
//! set by set             1 near, 1 far, 2 near, 2 far, 3 near, 3 far
//! near levels first      1 near, 2 near, 3 near | 1 far, 2 far, 3 far
//! ```

use crate::render::{
    phases::{CameraTargets, OpaquePhases},
    set_draws::{Drawn, SetDraws},
    settings::{GpuCullingSettings, GpuCullingSystems},
};
use bevy::{
    core_pipeline::{
        Core3d, Core3dSystems,
        core_3d::main_opaque_pass_3d,
        prepass::{DeferredPrepass, DepthPrepass, MotionVectorPrepass, NormalPrepass},
    },
    prelude::*,
    render::{
        camera::ExtractedCamera,
        renderer::{RenderContext, ViewQuery},
        view::{ExtractedView, RetainedViewEntity},
    },
};

/// Adds the systems to the render world.
pub(in crate::render) fn build_render(render_app: &mut SubApp) {
    render_app.init_resource::<DrawnLevels>().add_systems(
        Core3d,
        (
            (start_near_levels, draw_near_levels, end_near_levels)
                .chain()
                .in_set(GpuCullingSystems::DrawNearLevels)
                .before(main_opaque_pass_3d)
                .in_set(Core3dSystems::MainPass),
            draw_all_levels
                .after(main_opaque_pass_3d)
                .before(GpuCullingSystems::DrawLate)
                .in_set(Core3dSystems::MainPass),
        ),
    );
}

/// Which levels of detail the draws of a view take at present: all, unless the view is divided.
#[derive(Resource, Default)]
pub(in crate::render) struct DrawnLevels(Option<(RetainedViewEntity, LevelHalf)>);

/// A half of the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LevelHalf {
    Near,
    Far,
}

impl DrawnLevels {
    /// Whether the draws of a view take this level of an entity at present.
    pub fn take(&self, view: &RetainedViewEntity, drawn: &Drawn, level: usize) -> bool {
        let half = self.0.filter(|(divided, _)| divided == view);
        match (half, drawn.near_levels) {
            (Some((_, LevelHalf::Near)), Some(near)) => level < near,
            (Some((_, LevelHalf::Far)), Some(near)) => level >= near,
            _ => true,
        }
    }

    /// Whether the draws of a view take a part of the levels at present.
    pub fn divide(&self, view: &RetainedViewEntity) -> bool {
        self.0.is_some_and(|(divided, _)| divided == *view)
    }

    fn is_near(&self, view: &RetainedViewEntity) -> bool {
        self.0 == Some((*view, LevelHalf::Near))
    }
}

/// Least number of instances per set, on average: each set is drawn once more.
const MIN_OF_EACH_SET: u64 = 4096;

/// Cameras without a prepass. Behind a prepass nothing hidden is shaded.
type WithoutPrepass = (
    Without<DepthPrepass>,
    Without<NormalPrepass>,
    Without<MotionVectorPrepass>,
    Without<DeferredPrepass>,
);

/// Divides a camera's levels, if its sets have enough instances.
fn start_near_levels(
    view: ViewQuery<&ExtractedView, (With<ExtractedCamera>, WithoutPrepass)>,
    draws: Res<SetDraws>,
    settings: Res<GpuCullingSettings>,
    mut levels: ResMut<DrawnLevels>,
) {
    let key = view.into_inner().retained_view_entity;
    let min = u64::from(settings.near_levels_from);
    let leveled = draws.leveled;
    let of_each_set = leveled.instances / u64::from(leveled.sets.max(1));
    let pays = leveled.sets > 1 && leveled.instances >= min && of_each_set >= MIN_OF_EACH_SET;
    levels.0 = pays.then_some((key, LevelHalf::Near));
}

/// Draws the near levels of a divided camera.
fn draw_near_levels(
    world: &World,
    view: ViewQuery<CameraTargets>,
    phases: OpaquePhases,
    (draws, levels): (Res<SetDraws>, Res<DrawnLevels>),
    mut context: RenderContext,
) {
    let entity = view.entity();
    let targets = view.into_inner();
    if levels.is_near(&targets.view.retained_view_entity) {
        let is_drawn = |entity| draws.has_near_levels(entity);
        let label = "gpu_culling near levels";
        targets.draw(label, &phases, (world, entity), is_drawn, &mut context);
    }
}

/// From then on, a divided camera draws the far levels.
fn end_near_levels(mut levels: ResMut<DrawnLevels>) {
    if let Some((_, half)) = &mut levels.0 {
        *half = LevelHalf::Far;
    }
}

/// From then on, all draws take all levels.
fn draw_all_levels(mut levels: ResMut<DrawnLevels>) {
    levels.0 = None;
}
