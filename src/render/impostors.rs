//! Impostors from photographs: far instances become cards that show their mesh from all sides.
//!
//! 1. `component`: [`BakeImpostor`] asks for photographs of its entity's mesh, or of the `parts` below
//!    it. `queue`: who asks, and what was photographed.
//! 2. `darkroom`: takes them, one job at a time. `stage`: copies of the meshes before a camera, one
//!    per direction of the `octahedron`, with the material of `photo`. `calm`: when they are drawn.
//! 3. `develop`: the camera's pictures become an `atlas` of a `grid` of views: smaller, without gaps
//!    between what is seen, and with mips.
//! 4. `cards`: an entity with an atlas gets a child with
//!    [`InstanceImpostor`](super::InstanceImpostor), whose material is of `card`.
//! 5. `asset`: files of atlases.

mod asset;
mod atlas;
mod calm;
mod card;
mod cards;
mod component;
mod darkroom;
mod develop;
mod error;
mod grid;
mod octahedron;
mod parts;
mod photo;
mod queue;
mod stage;

pub use asset::{ImpostorAtlasLoader, ImpostorAtlasSaver};
pub use atlas::ImpostorAtlas;
pub use card::{ImpostorCard, ImpostorMaterial};
pub use cards::ImpostorAtlas3d;
pub use component::{BakeImpostor, ImpostorBaked};
pub use error::ImpostorError;
pub use octahedron::ImpostorSides;
pub use stage::ImpostorStage;

use super::{
    materials::{add_module, installs_late},
    settings::GpuCullingSystems,
};
use bevy::{
    pbr::PbrPlugin,
    prelude::*,
    render::{Render, RenderApp, RenderSystems, erased_render_asset::ErasedRenderAssetPlugin},
};
use calm::{CalmFrames, count_calm_frames};

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
        if installs_late::<MaterialPlugin<ImpostorMaterial>>(app, "ImpostorPlugin", install) {
            // Bevy does not finish plugins that are added this late.
            ErasedRenderAssetPlugin::<MeshMaterial3d<ImpostorMaterial>>::default().finish(app);
            ErasedRenderAssetPlugin::<MeshMaterial3d<photo::PhotoMaterial>>::default().finish(app);
        }
    }
}

/// Has the log tell of what needs the plugin if the app lacks it.
pub(super) fn build(app: &mut App) {
    app.add_systems(
        PostUpdate,
        warn_without_plugin.run_if(not(resource_exists::<queue::ImpostorBakes>)),
    );
}

fn warn_without_plugin(
    bakes: Query<Entity, Added<BakeImpostor>>,
    atlases: Query<Entity, Added<ImpostorAtlas3d>>,
) {
    let bakes = bakes.iter().map(|entity| ("BakeImpostor", entity));
    let atlases = atlases.iter().map(|entity| ("ImpostorAtlas3d", entity));
    for (name, entity) in bakes.chain(atlases) {
        warn!("{name} on {entity} does nothing: add ImpostorPlugin to the app");
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
    .register_asset_reflect::<ImpostorAtlas>()
    .register_asset_reflect::<ImpostorMaterial>()
    .init_resource::<queue::ImpostorBakes>()
    .init_resource::<darkroom::Darkroom>()
    .init_resource::<cards::Cards>()
    .insert_resource(calm.clone())
    .add_systems(
        PreUpdate,
        (
            queue::forget_changed,
            queue::ask_for_bakes,
            darkroom::run_bakes,
        )
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
