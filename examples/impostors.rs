//! Impostors: a forest whose far trees are pictures on two crossed cards, with their own material.
//! The cards are tinted; the key `C` switches the tint.
//!
//! It needs Bevy's feature `free_camera`.

use bevy::{
    asset::RenderAssetUsages,
    camera_controller::free_camera::{FreeCamera, FreeCameraPlugin},
    input::common_conditions::input_just_pressed,
    prelude::*,
    render::render_resource::{Extent3d, TextureDimension, TextureFormat},
};
use bevy_gpu_culling::prelude::*;
use core::f32::consts::FRAC_PI_2;

/// Height of a tree, and the least number of pixels that it is seen high as a mesh.
const HEIGHT: f32 = 2.0;
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
    app.add_plugins(FreeCameraPlugin)
        .add_systems(Startup, spawn)
        .add_systems(
            Update,
            switch_tint.run_if(input_just_pressed(KeyCode::KeyC)),
        );
}

fn spawn(
    mut commands: Commands,
    count: Res<Count>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut images: ResMut<Assets<Image>>,
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
    commands
        .spawn((
            GpuInstances(sets.add(set)),
            Mesh3d(meshes.add(tree()?)),
            MeshMaterial3d(materials.add(StandardMaterial {
                perceptual_roughness: 0.9,
                ..default()
            })),
            InstanceLods {
                fade: 0.2,
                ..default()
            },
        ))
        .with_child((
            InstanceImpostor {
                error: HEIGHT / PIXELS,
            },
            Mesh3d(meshes.add(cards()?)),
            MeshMaterial3d(materials.add(StandardMaterial {
                base_color: TINT,
                base_color_texture: Some(images.add(picture())),
                alpha_mode: AlphaMode::Mask(0.5),
                // The light is in the picture.
                unlit: true,
                cull_mode: None,
                ..default()
            })),
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

fn switch_tint(
    impostors: Query<&MeshMaterial3d<StandardMaterial>, With<InstanceImpostor>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    for material in &impostors {
        if let Some(mut material) = materials.get_mut(&material.0) {
            let is_tinted = material.base_color == TINT;
            material.base_color = if is_tinted { Color::WHITE } else { TINT };
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

/// Two upright rectangles that cross each other.
fn cards() -> Result<Mesh> {
    let card = Mesh::from(Rectangle::new(1.2, HEIGHT)).translated_by(Vec3::Y * (HEIGHT / 2.0));
    let mut cards = card.clone();
    cards.merge(&card.rotated_by(Quat::from_rotation_y(FRAC_PI_2)))?;
    Ok(cards)
}

/// The tree from the side. An app would take a photo, or render its mesh.
fn picture() -> Image {
    const SIZE: u32 = 64;
    let mut texels = Vec::new();
    for row in 0..SIZE {
        for column in 0..SIZE {
            let at = |pixel: u32| (pixel as f32 + 0.5) / SIZE as f32;
            let (x, y) = ((at(column) - 0.5) * 1.2, (1.0 - at(row)) * HEIGHT);
            let in_cone = |(radius, base): &(f32, f32)| {
                let up = (y - base) / 0.9;
                (0.0..1.0).contains(&up) && x.abs() < radius * (1.0 - up)
            };
            let in_trunk = x.abs() < 0.08 && (0.0..0.5).contains(&y);
            let (color, alpha) = match (CONES.iter().any(in_cone), in_trunk) {
                (true, _) => (NEEDLES, 1.0),
                (false, true) => (TRUNK, 1.0),
                (false, false) => (NEEDLES, 0.0),
            };
            // As if the sun stood at the left.
            let lit = color * (1.7 - x);
            texels.extend(lit.with_alpha(alpha).to_u8_array());
        }
    }
    Image::new(
        Extent3d {
            width: SIZE,
            height: SIZE,
            depth_or_array_layers: 1,
        },
        TextureDimension::D2,
        texels,
        TextureFormat::Rgba8UnormSrgb,
        RenderAssetUsages::RENDER_WORLD,
    )
}
