//! Impostors from photographs: far instances become cards that show their mesh from all sides.
//!
//! 1. `bake`: [`BakeImpostor`] asks for photographs of its entity, or of the parts of its scene.
//! 2. `stage`: copies of the meshes before a camera, one per direction of the `octahedron`, with
//!    the material of `photo`.
//! 3. `develop`: the camera's pictures become an `atlas`, off the main thread: smaller, without
//!    gaps between what is seen, and with mips.
//! 4. `cards`: an entity with an atlas gets a child with
//!    [`InstanceImpostor`](super::InstanceImpostor), whose material is of `card`.
//! 5. `asset`: files of atlases.

mod asset;
mod atlas;
mod bake;
mod card;
mod cards;
mod develop;
mod error;
mod octahedron;
mod photo;
mod stage;

pub use asset::{ImpostorAtlasLoader, ImpostorAtlasSaver};
pub use atlas::ImpostorAtlas;
pub use bake::{BakeImpostor, ImpostorBaked};
pub use card::{ImpostorCard, ImpostorMaterial};
pub use cards::ImpostorAtlas3d;
pub use error::ImpostorError;
pub use octahedron::ImpostorSides;

use super::{
    components::GpuInstances, lods::InstanceImpostor, materials::add_module,
    settings::GpuCullingSystems,
};
use bevy::{
    ecs::query::QueryData,
    pbr::PbrPlugin,
    prelude::*,
    render::{
        Render, RenderApp, RenderSystems, erased_render_asset::ErasedRenderAssetPlugin,
        render_resource::PipelineCache,
    },
};
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// What says whether an entity is part of what its parent is photographed with.
#[derive(QueryData)]
struct SetPart {
    is_set: Has<GpuInstances>,
    is_impostor: Has<InstanceImpostor>,
    visibility: Option<&'static Visibility>,
}

impl SetPartItem<'_, '_> {
    fn is_part(&self) -> bool {
        let is_hidden = self.visibility == Some(&Visibility::Hidden);
        self.is_set && !self.is_impostor && !is_hidden
    }
}

/// Number of frames in a row in which no pipeline was being compiled. Both worlds have it.
#[derive(Resource, Clone, Default)]
struct CalmFrames(Arc<AtomicU32>);

impl CalmFrames {
    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

fn count_calm_frames(calm: Res<CalmFrames>, pipelines: Res<PipelineCache>) {
    match pipelines.waiting_pipelines().next() {
        Some(_) => calm.reset(),
        None => _ = calm.0.fetch_add(1, Ordering::Relaxed),
    }
}

/// Adds [`BakeImpostor`] and [`ImpostorAtlas3d`] to an app. It needs Bevy's `PbrPlugin`, which is
/// one of `DefaultPlugins`; added after it, assets can be made at once.
///
/// ```no_run
/// use bevy::prelude::*;
/// use bevy_gpu_culling::prelude::*;
///
/// App::new()
///     .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), ImpostorPlugin))
///     .run();
/// ```
///
/// It is no part of [`GpuCullingPlugin`](super::GpuCullingPlugin), because each type of material
/// adds systems to every frame. [`InstanceImpostor`](super::InstanceImpostor) with cards of your
/// own does not need it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImpostorPlugin;

impl Plugin for ImpostorPlugin {
    fn build(&self, app: &mut App) {
        if app.is_plugin_added::<PbrPlugin>() {
            install(app);
        }
    }

    /// Installs what had to wait because `PbrPlugin` was added later.
    fn finish(&self, app: &mut App) {
        if app.is_plugin_added::<MaterialPlugin<ImpostorMaterial>>() {
            return;
        }
        if !app.is_plugin_added::<PbrPlugin>() {
            error!("ImpostorPlugin does nothing: the app has no PbrPlugin. Add DefaultPlugins");
            return;
        }
        install(app);
        // Bevy does not finish plugins that are added this late.
        ErasedRenderAssetPlugin::<MeshMaterial3d<ImpostorMaterial>>::default().finish(app);
        ErasedRenderAssetPlugin::<MeshMaterial3d<photo::PhotoMaterial>>::default().finish(app);
    }
}

fn install(app: &mut App) {
    // Before the materials ask for their shaders: a file that is not there yet fails for good.
    for (name, source) in [
        (
            "impostor_views",
            include_str!("../../shaders/draw/impostor_views.wesl"),
        ),
        (
            "impostor_photo",
            include_str!("../../shaders/draw/impostor_photo.wesl"),
        ),
        ("impostor", include_str!("../../shaders/draw/impostor.wesl")),
    ] {
        add_module(app, name, source.as_bytes());
    }
    let calm = CalmFrames::default();
    app.add_plugins((
        MaterialPlugin::<photo::PhotoMaterial>::default(),
        MaterialPlugin::<ImpostorMaterial>::default(),
    ))
    .register_type::<BakeImpostor>()
    .register_type::<ImpostorAtlas3d>()
    .register_type::<ImpostorBaked>()
    .register_type::<ImpostorSides>()
    .register_type::<cards::CardOf>()
    .init_asset::<ImpostorAtlas>()
    .register_asset_loader(ImpostorAtlasLoader)
    .register_asset_reflect::<ImpostorMaterial>()
    .init_resource::<bake::ImpostorBakes>()
    .init_resource::<cards::Cards>()
    .insert_resource(calm.clone())
    .add_systems(
        PreUpdate,
        (bake::forget_changed, bake::ask_for_bakes, bake::run_bakes)
            .chain()
            .run_if(resource_exists::<Assets<StandardMaterial>>),
    )
    .add_systems(
        PostUpdate,
        cards::give_cards
            .run_if(resource_exists::<Assets<Mesh>>)
            .before(GpuCullingSystems::UpdateBounds),
    );
    if let Some(render_app) = app.get_sub_app_mut(RenderApp) {
        render_app
            .insert_resource(calm)
            .add_systems(Render, count_calm_frames.in_set(RenderSystems::Cleanup));
    }
}
