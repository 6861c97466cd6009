//! Impostors: a forest whose far trees are cards that show photographs of the tree. The cards are
//! tinted; the key `C` switches the tint.
//!
//! It needs Bevy's feature `free_camera`.

use bevy::{
    camera_controller::free_camera::{FreeCamera, FreeCameraPlugin},
    input::common_conditions::input_just_pressed,
    prelude::*,
};
use bevy_gpu_culling::{prelude::*, render::ImpostorMaterial};

/// Trees that are seen at most this many pixels large are cards.
const PIXELS: f32 = 50.0;

/// Green of the needles, brown of the trunk, and the tint of the cards.
const NEEDLES: Srgba = Srgba::rgb(0.12, 0.36, 0.16);
const TRUNK: Srgba = Srgba::rgb(0.3, 0.2, 0.12);
const TINT: Color = Color::srgb(1.0, 0.6, 1.0);

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .insert_resource(Count(100_000))
        .run()
}

/// Number of instances.
#[derive(Resource)]
pub struct Count(pub u32);

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_plugins((FreeCameraPlugin, ImpostorPlugin))
        .add_systems(Startup, spawn)
        .add_systems(
            Update,
            (
                tint_new_cards,
                switch_tint.run_if(input_just_pressed(KeyCode::KeyC)),
            ),
        );
}

fn spawn(
    mut commands: Commands,
    count: Res<Count>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    let side = count.0.isqrt();
    // A square grid, in gentle waves.
    let places = (0..side * side).map(|i| {
        let middle = side as f32 / 2.0;
        let (x, z) = ((i % side) as f32 - middle, (i / side) as f32 - middle);
        let height = (x * 0.15).sin() + (z * 0.11).cos();
        Transform::from_xyz(x * 1.4, height, z * 1.4).with_rotation(Quat::from_rotation_y(i as f32))
    });
    let set = InstanceSet::from_transforms(places)?.sorted();
    commands.spawn((
        GpuInstances(sets.add(set)),
        Mesh3d(meshes.add(tree()?)),
        MeshMaterial3d(materials.add(StandardMaterial {
            perceptual_roughness: 0.9,
            ..default()
        })),
        BakeImpostor {
            below_pixels: PIXELS,
            sides: ImpostorSides::Above,
            ..default()
        },
        InstanceLods {
            fade: 0.2,
            ..default()
        },
    ));
    commands.spawn((
        Camera3d::default(),
        FreeCamera::default(),
        Transform::from_xyz(0.0, 6.5, 12.0).looking_at(Vec3::new(0.0, 1.0, -6.0), Vec3::Y),
    ));
    commands.spawn((
        DirectionalLight::default(),
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
    info!("C switches the tint of the impostors");
    Ok(())
}

/// Cards come when the tree is photographed.
fn tint_new_cards(
    cards: Query<&MeshMaterial3d<ImpostorMaterial>, Added<InstanceImpostor>>,
    mut materials: ResMut<Assets<ImpostorMaterial>>,
) {
    for card in &cards {
        if let Some(mut material) = materials.get_mut(&card.0) {
            material.base.base_color = TINT;
        }
    }
}

fn switch_tint(
    cards: Query<&MeshMaterial3d<ImpostorMaterial>>,
    mut materials: ResMut<Assets<ImpostorMaterial>>,
) {
    for card in &cards {
        if let Some(mut material) = materials.get_mut(&card.0) {
            let is_tinted = material.base.base_color == TINT;
            material.base.base_color = if is_tinted { Color::WHITE } else { TINT };
        }
    }
}

/// A trunk and three cones of needles.
fn tree() -> Result<Mesh> {
    let color = |mesh: Mesh, color: Srgba| {
        let colors = vec![LinearRgba::from(color).to_f32_array(); mesh.count_vertices()];
        mesh.with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, colors)
    };
    let trunk = Mesh::from(Cylinder::new(0.08, 0.5)).translated_by(Vec3::Y * 0.25);
    let mut tree = color(trunk, TRUNK);
    for (radius, base) in CONES {
        let cone = Cone::new(radius, 0.9).mesh().resolution(24).build();
        let cone = cone.translated_by(Vec3::Y * (base + 0.45));
        tree.merge(&color(cone, NEEDLES))?;
    }
    Ok(tree)
}

/// Radius and base of the cones, which are 0.9 high.
const CONES: [(f32, f32); 3] = [(0.6, 0.3), (0.48, 0.7), (0.34, 1.1)];
