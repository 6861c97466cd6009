//! The instance under the cursor is marked, and a click removes it. A right click hides what is
//! around it.
//!
//! It needs a feature: `cargo run --example picking --features picking`.

use bevy::{picking::mesh_picking::ray_cast::MeshRayCastSettings, prelude::*};
use bevy_gpu_culling::prelude::*;

/// Shows which instance is under the cursor.
#[derive(Component)]
struct Marker;

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .insert_resource(Count(1_000_000))
        .run()
}

/// Number of instances.
#[derive(Resource)]
pub struct Count(pub u32);

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_plugins(InstancePickingPlugin)
        .add_systems(Startup, spawn)
        .add_systems(Update, mark);
}

fn spawn(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
    count: Res<Count>,
) -> Result {
    let side = count.0.isqrt();
    // A square grid, in gentle waves.
    let places = (0..side * side).map(|i| {
        let middle = side as f32 / 2.0;
        let (x, z) = ((i % side) as f32 - middle, (i / side) as f32 - middle);
        let height = (x * 0.15).sin() + (z * 0.11).cos();
        Transform::from_xyz(x * 1.2, height, z * 1.2).with_rotation(Quat::from_rotation_y(i as f32))
    });
    // A click finds its instance by the id, whatever was removed since the ray.
    let set = InstanceSet::from_transforms(places)?.sorted().with_ids();
    let mesh = meshes.add(Cuboid::from_length(0.7));
    commands
        .spawn((
            Mesh3d(mesh.clone()),
            MeshMaterial3d(materials.add(Color::srgb(0.3, 0.5, 0.8))),
            GpuInstances(sets.add(set)),
        ))
        .observe(edit);
    commands.spawn((
        Marker,
        Mesh3d(mesh),
        MeshMaterial3d(materials.add(StandardMaterial {
            base_color: Color::srgb(1.0, 0.6, 0.1),
            emissive: LinearRgba::rgb(1.0, 0.4, 0.0),
            ..default()
        })),
        Pickable::IGNORE,
        Visibility::Hidden,
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 9.0, 14.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
    commands.spawn((
        DirectionalLight {
            shadow_maps_enabled: true,
            ..default()
        },
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
    Ok(())
}

/// Puts the marker on the instance under the cursor.
fn mark(
    camera: Single<(&Camera, &GlobalTransform), With<Camera3d>>,
    window: Single<&Window>,
    mut ray_cast: InstanceRayCast,
    mut marker: Single<(&mut Transform, &mut Visibility), With<Marker>>,
    entities: Query<&GpuInstances>,
    sets: Res<Assets<InstanceSet>>,
) {
    let (camera, place) = *camera;
    let cursor = window.cursor_position();
    let ray = cursor.and_then(|cursor| camera.viewport_to_world(place, cursor).ok());
    let hits = ray.map(|ray| ray_cast.cast_ray(ray, &MeshRayCastSettings::default()));
    let instance = hits.and_then(|hits| {
        let (entity, hit) = hits.first()?;
        // No time has passed since the ray: the index is the instance's.
        sets.get(&entities.get(*entity).ok()?.0)?.get(hit.instance)
    });
    let (transform, visibility) = &mut *marker;
    **visibility = match instance {
        Some(_) => Visibility::Visible,
        None => Visibility::Hidden,
    };
    if let Some(instance) = instance {
        transform.translation = instance.translation;
        transform.rotation = instance.rotation;
        transform.scale = instance.scale * 1.1;
    }
}

/// Removes the instance that was clicked, or hides what is around it.
fn edit(
    click: On<PointerClick>,
    entities: Query<&GpuInstances>,
    mut query: InstanceQuery,
    mut sets: ResMut<Assets<InstanceSet>>,
) -> Result {
    let Some(hit) = click.hit.extra_as::<InstanceHit>() else {
        return Ok(());
    };
    if click.button == PointerButton::Primary {
        let set = entities.get(click.entity).ok();
        // Another click of this frame may have moved or removed it.
        if let Some(mut set) = set.and_then(|set| sets.get_mut(&set.0))
            && let Some(index) = hit.index_in(&set)
        {
            // A refused edit is logged. An error without a severity would end the app.
            set.swap_remove(index).with_severity(Severity::Error)?;
        }
        return Ok(());
    }
    let around = InstanceRegion::Sphere {
        center: hit.point,
        radius: 4.0,
    };
    for (entity, instances) in query.in_region(&around, &sets) {
        let set = entities.get(entity).ok();
        let Some(mut set) = set.and_then(|set| sets.get_mut(&set.0)) else {
            continue;
        };
        for index in instances {
            set.hide(index).with_severity(Severity::Error)?;
        }
    }
    Ok(())
}
