//! An example that draws into a picture: its cameras, and whether everything is there.

use bevy::{
    asset::UntypedAssetId,
    camera::RenderTarget,
    prelude::*,
    render::render_resource::{TextureFormat, TextureUsages},
    window::{PrimaryWindow, WindowResolution},
};
use bevy_gpu_culling::prelude::*;
use std::{collections::HashSet, time::Duration};

/// Time from frame to frame. The same picture then shows the same moment, however long the frames
/// take.
pub const STEP: Duration = Duration::from_micros(16_667);
/// Frames in a row after which everything is there. What a frame begins, the next one may still
/// wait for.
pub const SETTLED: u32 = 3;
/// Frames that move before the picture.
pub const FRAMES: u32 = 6;
/// The least number of colors of a picture that shows something.
pub const COLORS: usize = 50;

/// Makes every camera draw to an image, which is returned, and follows the sets to the GPU.
pub fn redirect(app: &mut App, size: UVec2) -> Handle<Image> {
    app.init_resource::<Partial>()
        .add_systems(Last, follow_uploads);
    let mut image = Image::new_target_texture(size.x, size.y, TextureFormat::Rgba8UnormSrgb, None);
    image.texture_descriptor.usage |= TextureUsages::COPY_SRC;
    let target = app.world_mut().resource_mut::<Assets<Image>>().add(image);
    let shown = target.clone();
    app.add_systems(
        PostStartup,
        move |mut commands: Commands, cameras: Query<Entity, With<Camera>>| {
            for camera in &cameras {
                commands
                    .entity(camera)
                    .insert(RenderTarget::Image(shown.clone().into()));
            }
        },
    );
    // Nothing shows this window. It tells the examples its size and the place of the cursor.
    let mut window = Window {
        resolution: WindowResolution::new(size.x, size.y),
        ..default()
    };
    window.set_cursor_position(Some(size.as_vec2() / 2.0));
    app.world_mut().spawn((window, PrimaryWindow));
    target
}

/// Sets of which the GPU has only a part.
#[derive(Resource, Default)]
struct Partial(HashSet<AssetId<InstanceSet>>);

fn follow_uploads(
    mut progress: MessageReader<InstanceUploadProgress>,
    mut partial: ResMut<Partial>,
) {
    for progress in progress.read() {
        if progress.is_complete() {
            partial.0.remove(&progress.set);
        } else {
            partial.0.insert(progress.set);
        }
    }
}

/// What entities draw and may come from a file.
fn assets(world: &mut World) -> Vec<UntypedAssetId> {
    let mut entities = world.query::<AnyOf<(&GpuInstances, &MeshletMesh3d, &InstanceScene)>>();
    let assets = entities.iter(world).flat_map(|(set, mesh, scene)| {
        [
            set.map(|set| set.id().untyped()),
            mesh.map(|mesh| mesh.0.id().untyped()),
            scene.map(|scene| scene.0.id().untyped()),
        ]
    });
    assets.flatten().collect()
}

/// Whether files are loaded, sets are on the GPU, scenes are spawned, and levels of detail are
/// built.
pub fn is_loaded(world: &mut World) -> bool {
    let assets = assets(world);
    let server = world.resource::<AssetServer>();
    // The server knows nothing of assets that an example made itself.
    let is_there = |asset: UntypedAssetId| {
        server.get_load_state(asset).is_none() || server.is_loaded_with_dependencies(asset)
    };
    let are_there = assets.into_iter().all(is_there);
    let mut spawning = world.query_filtered::<(), (With<InstanceScene>, Without<Children>)>();
    let mut building = world.query_filtered::<(), With<BuildLods>>();
    let mut sets = world.query::<&GpuInstances>();
    let Partial(partial) = world.resource();
    let have_arrived = sets.iter(world).all(|set| !partial.contains(&set.id()));
    let are_spawned = spawning.iter(world).next().is_none();
    are_there && have_arrived && are_spawned && building.iter(world).next().is_none()
}
