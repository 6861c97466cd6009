//! The demo to fly through: freeze, change the tier, the compaction and the number of orbs. In a
//! window, or on a page of `examples/gallery`.

use super::{
    cli::{Cli, Occlusion},
    field::LayerSet,
    freeze::FreezePlugin,
    help::HelpPlugin,
    look,
    scene::{Field, show, toggle_colors, toggle_lods},
};
use bevy::{
    camera_controller::free_camera::{FreeCamera, FreeCameraPlugin},
    core_pipeline::prepass::DepthPrepass,
    dev_tools::diagnostics_overlay::{DiagnosticsOverlay, DiagnosticsOverlayPlugin},
    diagnostic::FrameTimeDiagnosticsPlugin,
    input::{common_conditions::input_just_pressed, keyboard::Key},
    prelude::*,
    render::{occlusion_culling::OcclusionCulling, renderer::RenderDevice},
    tasks::{AsyncComputeTaskPool, Task, futures::check_ready},
};
use bevy_gpu_culling::{instance::InstanceError, prelude::*};

/// The most orbs that the key `+` makes. `--count` takes more.
const MAX: u32 = 1 << 28;

/// Adds the field, the keys and the text.
pub fn add(app: &mut App, cli: &Cli, field: Field, sets: Vec<LayerSet>) {
    app.add_plugins((FreeCameraPlugin, HelpPlugin))
        .insert_resource(ClearColor(Color::BLACK))
        .add_systems(
            Update,
            (
                finish_rebuild,
                change_count.run_if(not(resource_exists::<Rebuild>)),
                thin_fog,
            ),
        );
    if cli.peer.is_none() {
        app.add_plugins((
            GpuCullingPlugin::from(cli.settings()),
            CullingOverlayPlugin::default(),
            FreezePlugin,
        ))
        .add_systems(
            Update,
            (
                toggle_freeze.run_if(input_just_pressed(KeyCode::KeyF)),
                toggle_colors.run_if(input_just_pressed(KeyCode::KeyM)),
                toggle_lods.run_if(input_just_pressed(KeyCode::KeyL)),
                toggle_occlusion.run_if(input_just_pressed(KeyCode::KeyO)),
                cycle_overlay.run_if(input_just_pressed(KeyCode::KeyI)),
                cycle_tier.run_if(input_just_pressed(KeyCode::KeyT)),
                cycle_compaction.run_if(input_just_pressed(KeyCode::KeyC)),
            ),
        );
    } else {
        app.add_plugins((
            DiagnosticsOverlayPlugin,
            FrameTimeDiagnosticsPlugin::default(),
        ));
        app.add_systems(Startup, |mut commands: Commands| {
            commands.spawn(DiagnosticsOverlay::fps());
        });
    }
    let mut opening = Some((field, sets));
    let occlusion = match cli.peer {
        None => cli.occlusion(),
        Some(_) => Occlusion::Off,
    };
    app.add_systems(Startup, move |world: &mut World| {
        if let Some((field, sets)) = opening.take() {
            open(world, field, sets, occlusion);
        }
    });
}

/// Puts the first field and the camera into the world.
fn open(world: &mut World, field: Field, sets: Vec<LayerSet>, occlusion: Occlusion) {
    let radius = field.radius();
    show(world, field, sets);
    let camera = look::camera(world, radius);
    let mut camera = world.spawn((camera, pilot(radius)));
    look::equip(&mut camera, occlusion);
    if let Some(mut place) = camera.get_mut::<Transform>() {
        // The free camera has no roll and would jerk out of one.
        let ahead = place.forward();
        place.look_to(ahead, Vec3::Y);
    }
}

/// Switches occlusion on and off.
fn toggle_occlusion(
    mut commands: Commands,
    cameras: Query<(Entity, Has<InstanceOcclusion>, Has<OcclusionCulling>), With<Camera3d>>,
) {
    for (camera, hides_own, hides_bevys) in &cameras {
        let mut camera = commands.entity(camera);
        match hides_own || hides_bevys {
            true => camera.remove::<(InstanceOcclusion, OcclusionCulling, DepthPrepass)>(),
            false => camera.insert(InstanceOcclusion::auto()),
        };
    }
}

/// A fly camera whose speed grows with the field.
fn pilot(radius: f32) -> FreeCamera {
    FreeCamera {
        walk_speed: 0.15 * radius,
        run_speed: 0.6 * radius,
        friction: 12.0,
        // The default, M, colors meshlets, and L is for levels of detail.
        keyboard_key_toggle_cursor_grab: KeyCode::KeyG,
        ..default()
    }
}

/// A new field that is being made in the background.
#[derive(Resource)]
pub struct Rebuild {
    /// `None` after it is done.
    field: Option<Field>,
    sets: Task<Result<Vec<LayerSet>, InstanceError>>,
}

fn toggle_freeze(
    mut commands: Commands,
    cameras: Query<(Entity, Has<FreezeCulling>), With<FreeCamera>>,
) {
    for (camera, frozen) in &cameras {
        if frozen {
            commands.entity(camera).remove::<FreezeCulling>();
        } else {
            commands.entity(camera).insert(FreezeCulling::default());
        }
    }
}

fn cycle_overlay(mut detail: ResMut<OverlayDetail>) {
    *detail = detail.next();
}

/// The next tier that the device supports.
fn cycle_tier(
    mut settings: ResMut<GpuCullingSettings>,
    report: Res<CullingReport>,
    device: Res<RenderDevice>,
) {
    let tiers = CullingTier::ALL;
    let now = settings.tier.or(report.tier);
    let at = tiers
        .iter()
        .position(|tier| Some(*tier) == now)
        .unwrap_or(0);
    for step in 1..=tiers.len() {
        let next = tiers[(at + step) % tiers.len()];
        match next.check(device.features(), &device.limits()) {
            Ok(()) => {
                settings.tier = Some(next);
                return;
            }
            Err(error) => info!("{error}"),
        }
    }
}

/// The next compaction that the tier supports.
fn cycle_compaction(
    mut settings: ResMut<GpuCullingSettings>,
    report: Res<CullingReport>,
    device: Res<RenderDevice>,
) {
    let tier = settings.tier.or(report.tier).unwrap_or(CullingTier::Cpu);
    let all: Vec<_> = Compaction::supported(tier, device.features()).collect();
    let at = all.iter().position(|one| *one == settings.compaction);
    if let Some(next) = all.get(at.map_or(0, |at| (at + 1) % all.len())) {
        settings.compaction = *next;
    }
}

/// Starts to make a field of twice or half the orbs, in the background.
fn change_count(mut commands: Commands, keys: Res<ButtonInput<Key>>, field: Res<Field>) {
    let typed = |key: &str| keys.just_pressed(Key::Character(key.into()));
    let count = if typed("+") || typed("=") {
        field.count.saturating_mul(2).clamp(1, MAX.max(field.count))
    } else if typed("-") || typed("_") {
        (field.count / 2).max(1)
    } else {
        return;
    };
    if count == field.count {
        return;
    }
    let next = Field {
        count,
        ..field.clone()
    };
    let worker = next.clone();
    let sets = AsyncComputeTaskPool::get().spawn(async move { worker.generate() });
    commands.insert_resource(Rebuild {
        field: Some(next),
        sets,
    });
}

/// Shows the new field when it is made, from the same place in it.
fn finish_rebuild(world: &mut World) {
    let Some(mut rebuild) = world.get_resource_mut::<Rebuild>() else {
        return;
    };
    let Some(sets) = check_ready(&mut rebuild.sets) else {
        return;
    };
    let field = rebuild.field.take();
    world.remove_resource::<Rebuild>();
    let (sets, field) = match (sets, field) {
        (Ok(sets), Some(field)) => (sets, field),
        (Err(error), _) => return error!("the count stays: {error}"),
        _ => return,
    };
    let radius = field.radius();
    let growth = radius / world.resource::<Field>().radius();
    show(world, field, sets);
    let cameras: Vec<Entity> = world
        .query_filtered::<Entity, With<FreeCamera>>()
        .iter(world)
        .collect();
    for camera in cameras {
        let mut camera = world.entity_mut(camera);
        if let Some(mut place) = camera.get_mut::<Transform>() {
            place.translation *= growth;
        }
        // A frustum that was frozen in the old field has no meaning in the new one.
        camera
            .remove::<FreezeCulling>()
            .insert((look::lens(radius), pilot(radius)));
    }
}

fn thin_fog(
    field: Res<Field>,
    mut cameras: Query<(&Transform, &mut DistanceFog), Changed<Transform>>,
) {
    for (place, mut fog) in &mut cameras {
        *fog = look::fog(place.translation, field.radius());
    }
}
