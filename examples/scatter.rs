//! Grass and trees on hills, scattered around the camera by the GPU. Drag with the left mouse button
//! to paint grass, with the right one to mow it. Arrow keys move the camera.

use bevy::{
    asset::RenderAssetUsages,
    light::CascadeShadowConfigBuilder,
    mesh::{Indices, MeshMergeError, PrimitiveTopology},
    prelude::*,
    render::render_resource::{Extent3d, TextureDimension, TextureFormat},
};
use bevy_gpu_culling::prelude::*;

/// Texels along a side of the maps.
const TEXELS: u32 = 256;
/// Side of the land.
const SIDE: f32 = 160.0;
/// Heights of the land, from black to white.
const HEIGHTS: core::ops::Range<f32> = -2.0..12.0;
/// Radius of the brush.
const BRUSH: f32 = 2.5;
const SKY: Color = Color::srgb(0.62, 0.77, 0.92);

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .run()
}

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.insert_resource(ClearColor(SKY))
        .add_systems(Startup, (plant, spawn))
        .add_systems(Update, (fly, paint).chain());
}

/// The map that the brush paints.
#[derive(Resource)]
struct Meadow(Handle<Image>);

fn plant(
    mut commands: Commands,
    mut images: ResMut<Assets<Image>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    let land = images.add(map(TextureFormat::R32Float, |place| {
        (land(place) - HEIGHTS.start) / (HEIGHTS.end - HEIGHTS.start)
    }));
    let path = images.add(map(TextureFormat::R8Unorm, on_path));
    // Thin on hills, with a circle that is mown.
    let mut meadow = map(TextureFormat::R8Unorm, |place| {
        1.0 - 0.07 * land_above(place)
    });
    for step in 0..60 {
        let way = Vec2::from_angle(step as f32 * 0.105) * 5.0;
        brush(&mut meadow, Vec2::new(-5.0, 26.0) + way, 1.6, -0.5);
    }
    let meadow = images.add(meadow);
    commands.insert_resource(Meadow(meadow.clone()));

    let material = MeshMaterial3d(materials.add(StandardMaterial {
        // Blades have two sides, and are lit as the ground is.
        cull_mode: None,
        perceptual_roughness: 0.9,
        ..default()
    }));
    // What both layers have in common.
    let plants = Scatter {
        exclusion_map: Some(path),
        height_map: Some(land),
        map_area: Rect::from_center_size(Vec2::ZERO, Vec2::splat(SIDE)),
        map_heights: HEIGHTS,
        ..default()
    };
    commands.spawn((
        Mesh3d(meshes.add(tuft())),
        material.clone(),
        Scatter {
            seed: 1,
            spacing: 0.35,
            radius: 40.0,
            min_distance: 0.0,
            density_map: Some(meadow),
            slopes: 0.0..0.7,
            align: 0.5,
            scales: 0.35..0.9,
            ..plants.clone()
        },
        Wind {
            strength: 0.35,
            wavelength: 15.0,
            calm_beyond: 60.0,
            ..default()
        },
    ));
    commands.spawn((
        Mesh3d(meshes.add(tree()?)),
        material,
        Scatter {
            seed: 2,
            spacing: 3.5,
            radius: 90.0,
            min_distance: 0.9,
            density: 0.7,
            // Above the valley.
            heights: 1.5..9.0,
            slopes: 0.0..0.6,
            scales: 0.6..1.3,
            ..plants
        },
    ));
    Ok(())
}

/// A map of the land.
fn map(format: TextureFormat, value: impl Fn(Vec2) -> f32) -> Image {
    let size = Extent3d {
        width: TEXELS,
        height: TEXELS,
        depth_or_array_layers: 1,
    };
    let values = (0..TEXELS * TEXELS).map(|texel| value(center(texel % TEXELS, texel / TEXELS)));
    let data = match format {
        TextureFormat::R32Float => values.flat_map(f32::to_le_bytes).collect(),
        _ => values
            .map(|value| (value.clamp(0.0, 1.0) * 255.0) as u8)
            .collect(),
    };
    let usage = RenderAssetUsages::default();
    Image::new(size, TextureDimension::D2, data, format, usage)
}

/// The middle of a texel.
fn center(x: u32, z: u32) -> Vec2 {
    (Vec2::new(x as f32, z as f32) + 0.5) / TEXELS as f32 * SIDE - SIDE / 2.0
}

/// The height of the land.
fn land(place: Vec2) -> f32 {
    let Vec2 { x, y: z } = place * 0.05;
    let hills = (x + 0.6 * z.sin()).sin() + (1.3 * z - 0.4 * x).cos() + 0.4 * (2.7 * x + z).sin();
    // A valley along the path.
    let away = ((place.x - bend(place.y)).abs() / 25.0).min(1.0);
    2.0 * hills * away + 5.0 * away * away
}

/// How far the land is above the valley.
fn land_above(place: Vec2) -> f32 {
    (land(place) - 0.5).max(0.0)
}

/// Where the path goes.
fn bend(z: f32) -> f32 {
    5.0 * (z * 0.06).sin()
}

/// 1 on the path, 0 beside it.
fn on_path(place: Vec2) -> f32 {
    (2.2 - (place.x - bend(place.y)).abs()).clamp(0.0, 1.0)
}

/// Adds to a map around a place.
fn brush(image: &mut Image, place: Vec2, radius: f32, more: f32) {
    let Some(data) = &mut image.data else { return };
    for (texel, value) in (0..).zip(data) {
        let away = center(texel % TEXELS, texel / TEXELS).distance(place);
        let strength = (1.5 - away / radius).clamp(0.0, 1.0);
        *value = (f32::from(*value) + 255.0 * more * strength) as u8;
    }
}

/// Paints where the cursor is.
fn paint(
    camera: Single<(&Camera, &GlobalTransform), With<Camera3d>>,
    windows: Query<&Window>,
    buttons: Option<Res<ButtonInput<MouseButton>>>,
    time: Res<Time>,
    meadow: Res<Meadow>,
    mut images: ResMut<Assets<Image>>,
    mut gizmos: Gizmos,
) {
    let (camera, place) = *camera;
    let cursor = windows.iter().find_map(Window::cursor_position);
    let ray = cursor.and_then(|cursor| camera.viewport_to_world(place, cursor).ok());
    let Some(hit) = ray.and_then(hit_land) else {
        return;
    };
    let up = Quat::from_rotation_x(core::f32::consts::FRAC_PI_2);
    gizmos.circle(
        Isometry3d::new(hit + Vec3::Y * 0.3, up),
        BRUSH,
        Color::WHITE,
    );
    let is_held = |button| (buttons.as_ref()).is_some_and(|buttons| buttons.pressed(button));
    let more = match (is_held(MouseButton::Left), is_held(MouseButton::Right)) {
        (true, false) => 3.0 * time.delta_secs(),
        (false, true) => -3.0 * time.delta_secs(),
        _ => return,
    };
    // The changed map fills the tiles again, in this frame.
    if let Some(mut image) = images.get_mut(&meadow.0) {
        brush(&mut image, hit.xz(), BRUSH, more);
    }
}

/// Where a ray meets the land.
fn hit_land(ray: Ray3d) -> Option<Vec3> {
    let points = (0..2000).map(|step| ray.get_point(step as f32 * 0.1));
    points.into_iter().find(|point| point.y < land(point.xz()))
}

/// Moves the camera along the land.
fn fly(
    mut camera: Single<&mut Transform, With<Camera3d>>,
    keys: Option<Res<ButtonInput<KeyCode>>>,
    time: Res<Time>,
) {
    let axis = |more, less| {
        let is_held = |key| keys.as_ref().is_some_and(|keys| keys.pressed(key));
        f32::from(is_held(more)) - f32::from(is_held(less))
    };
    let way = Vec3::new(
        axis(KeyCode::ArrowRight, KeyCode::ArrowLeft),
        0.0,
        axis(KeyCode::ArrowDown, KeyCode::ArrowUp),
    );
    if way != Vec3::ZERO {
        camera.translation += way * 15.0 * time.delta_secs();
        camera.translation.y = land(camera.translation.xz()) + 5.0;
    }
}

fn spawn(
    mut commands: Commands,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    commands.spawn((
        Mesh3d(meshes.add(ground())),
        MeshMaterial3d(materials.add(StandardMaterial {
            perceptual_roughness: 1.0,
            ..default()
        })),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(1.0, 7.5, 42.0).looking_at(Vec3::new(-2.5, 1.0, 18.0), Vec3::Y),
    ));
    let cascades = CascadeShadowConfigBuilder {
        num_cascades: 2,
        maximum_distance: 70.0,
        ..default()
    };
    commands.spawn((
        DirectionalLight {
            shadow_maps_enabled: true,
            ..default()
        },
        cascades.build(),
        Transform::default().looking_to(Vec3::new(1.0, -1.2, -0.7), Vec3::Y),
    ));
}

/// The land as a mesh, with a vertex per texel of the height map.
fn ground() -> Mesh {
    let (mut points, mut normals, mut colors) = (Vec::new(), Vec::new(), Vec::new());
    for texel in 0..TEXELS * TEXELS {
        let place = center(texel % TEXELS, texel / TEXELS);
        let height = |x: f32, z: f32| land(place + Vec2::new(x, z));
        points.push([place.x, height(0.0, 0.0), place.y]);
        let slope = [
            height(-0.5, 0.0) - height(0.5, 0.0),
            1.0,
            height(0.0, -0.5) - height(0.0, 0.5),
        ];
        normals.push(Vec3::from(slope).normalize());
        let grass = Vec3::new(0.12, 0.17, 0.05);
        let color = grass.lerp(Vec3::new(0.42, 0.33, 0.2), on_path(place));
        colors.push(color.extend(1.0).to_array());
    }
    let corners = (0..TEXELS - 1).flat_map(|z| (0..TEXELS - 1).map(move |x| z * TEXELS + x));
    let triangles = corners.flat_map(|a| {
        let [b, c, d] = [a + 1, a + TEXELS, a + TEXELS + 1];
        [a, c, b, b, c, d]
    });
    Mesh::new(
        PrimitiveTopology::TriangleList,
        RenderAssetUsages::default(),
    )
    .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, points)
    .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, normals)
    .with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, colors)
    .with_inserted_indices(Indices::U32(triangles.collect()))
}

/// Blades that taper and get lighter upwards. The tuft is as high as 1.
fn tuft() -> Mesh {
    let (mut points, mut colors, mut triangles) = (Vec::new(), Vec::new(), Vec::new());
    for blade in 0..7u32 {
        let turn = Quat::from_rotation_y(blade as f32 * 2.4);
        let first = points.len() as u32;
        for [height, width] in [[0.0, 0.06], [0.5, 0.04], [1.0, 0.0]] {
            let height = height * (1.0 - 0.07 * blade as f32);
            for side in [-width, width] {
                let out = 0.06 + 0.35 * height * height;
                points.push(turn * Vec3::new(side, height, out));
                let light = 0.35 + 0.65 * height;
                colors.push([0.2 * light, 0.33 * light, 0.05 * light, 1.0]);
            }
        }
        for [a, b, c] in [[0, 1, 2], [2, 1, 3], [2, 3, 4]] {
            triangles.extend([first + a, first + b, first + c]);
        }
    }
    let up = vec![Vec3::Y; points.len()];
    Mesh::new(
        PrimitiveTopology::TriangleList,
        RenderAssetUsages::default(),
    )
    .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, points)
    .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, up)
    .with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, colors)
    .with_inserted_indices(Indices::U32(triangles))
}

/// A trunk and three cones.
fn tree() -> Result<Mesh, MeshMergeError> {
    let trunk = Cylinder::new(0.18, 1.2).mesh().resolution(7).build();
    let mut tree = colored(trunk.translated_by(Vec3::Y * 0.6), [0.16, 0.1, 0.06, 1.0]);
    for [height, radius] in [[1.6, 1.3], [2.5, 1.0], [3.4, 0.65]] {
        let cone = Cone::new(radius, 1.7).mesh().resolution(9).build();
        let light = 0.6 + 0.12 * height;
        let green = [0.05 * light, 0.16 * light, 0.06 * light, 1.0];
        tree.merge(&colored(cone.translated_by(Vec3::Y * height), green))?;
    }
    Ok(tree)
}

/// The mesh with positions, normals and this color.
fn colored(mut mesh: Mesh, color: [f32; 4]) -> Mesh {
    mesh.remove_attribute(Mesh::ATTRIBUTE_UV_0);
    let colors = vec![color; mesh.count_vertices()];
    mesh.with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, colors)
}
