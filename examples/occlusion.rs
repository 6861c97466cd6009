//! Occlusion: a canyon of boulders of 5,120 triangles. Its walls hide most of them, and what is
//! hidden is not drawn. The app says how many are in the picture.
//!
//! The key `O` switches occlusion off and on. `F` freezes culling: fly up, and only what the camera
//! saw is there. `--still` starts frozen and seen from above.

#[path = "common/canyon.rs"]
mod canyon;
mod common;

use bevy::{
    camera_controller::free_camera::{FreeCamera, FreeCameraPlugin},
    input::common_conditions::input_just_pressed,
    prelude::*,
    time::common_conditions::on_timer,
};
use bevy_gpu_culling::{prelude::*, render::ViewReport};
use std::time::Duration;

/// Where the camera rises to.
const ABOVE: Vec3 = Vec3::new(90.0, 130.0, 60.0);

fn main() -> AppExit {
    common::run(|app| {
        app.add_plugins(FreeCameraPlugin)
            .insert_resource(ClearColor(Color::srgb(0.55, 0.7, 0.85)))
            .add_systems(Startup, spawn)
            .add_systems(
                Update,
                (
                    switch_occlusion.run_if(input_just_pressed(KeyCode::KeyO)),
                    switch_freezing.run_if(input_just_pressed(KeyCode::KeyF)),
                    rise_when_seen.run_if(|still: Res<common::Still>| still.0),
                    tell.run_if(on_timer(Duration::from_secs(1))),
                ),
            );
    })
}

fn spawn(
    mut commands: Commands,
    count: Res<common::Count>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    let boulders = canyon::boulders(count.or(200_000));
    let set = InstanceSet::from_transforms(boulders)?.sorted();
    commands.spawn((
        GpuInstances(sets.add(set)),
        Mesh3d(meshes.add(canyon::boulder())),
        MeshMaterial3d(materials.add(canyon::rock())),
    ));
    commands.spawn((
        Camera3d::default(),
        InstanceOcclusion::default(),
        FreeCamera::default(),
        canyon::eye(),
    ));
    commands.spawn(common::sun(false));
    info!("O switches occlusion, F freezes culling");
    Ok(())
}

fn switch_occlusion(
    mut commands: Commands,
    camera: Single<(Entity, Has<InstanceOcclusion>), With<Camera>>,
) {
    let (camera, is_on) = *camera;
    if is_on {
        commands.entity(camera).remove::<InstanceOcclusion>();
    } else {
        commands.entity(camera).insert(InstanceOcclusion::default());
    }
}

fn switch_freezing(
    mut commands: Commands,
    camera: Single<(Entity, Has<FreezeCulling>), With<Camera>>,
) {
    let (camera, is_frozen) = *camera;
    if is_frozen {
        commands.entity(camera).remove::<FreezeCulling>();
    } else {
        commands.entity(camera).insert(FreezeCulling::default());
    }
}

/// Once the camera has seen what is hidden, it freezes and rises. The picture waits for it.
fn rise_when_seen(
    mut commands: Commands,
    report: Res<CullingReport>,
    mut busy: ResMut<common::Busy>,
    camera: Single<(Entity, &mut Transform, Has<FreezeCulling>), With<Camera>>,
) {
    let (camera, mut place, is_frozen) = camera.into_inner();
    busy.0 = !is_frozen;
    let is_seen = |view: &ViewReport| view.occlusion.is_some_and(|lists| lists.late == 0);
    if is_frozen {
        *place = Transform::from_translation(ABOVE).looking_at(Vec3::new(0.0, 0.0, -60.0), Vec3::Y);
    } else if report.views.iter().any(is_seen) {
        commands.entity(camera).insert(FreezeCulling::default());
    }
}

fn tell(report: Res<CullingReport>) {
    let (tested, visible) = report.cameras();
    info!("{visible} of {tested} boulders are drawn");
}
