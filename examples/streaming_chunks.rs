//! An endless land of chunks, each a separate set. They are made in the background, spawned ahead
//! of the camera and despawned behind it.

use bevy::{
    asset::RenderAssetUsages,
    platform::collections::HashMap,
    prelude::*,
    tasks::{AsyncComputeTaskPool, Task, futures::check_ready},
    time::common_conditions::on_timer,
};
use bevy_gpu_culling::prelude::*;
use std::time::Duration;

/// Chunks that are seen in each direction. One more stays, so that none comes and goes at once.
const SIGHT: i32 = 3;
/// Chunks per second that the camera flies.
const SPEED: f32 = 2.5;
const SKY: Color = Color::srgb(0.62, 0.76, 0.9);

/// A chunk on its way, or spawned.
enum Chunk {
    Made(Task<Result<InstanceSet, InstanceError>>),
    Spawned(Entity),
    /// It could not be made, and the log says why.
    Refused,
}

/// The chunks around the camera, and what all of them share.
#[derive(Resource)]
pub struct Land {
    chunks: HashMap<IVec2, Chunk>,
    /// Blocks along a side of a chunk. A block is one unit wide.
    side: u32,
    mesh: Handle<Mesh>,
    material: Handle<TintedMaterial>,
    /// How many were spawned and despawned.
    counts: [u32; 2],
}

impl Land {
    /// Whether no chunk is on its way.
    pub fn is_complete(&self) -> bool {
        let is_made = |chunk| !matches!(chunk, &Chunk::Made(_));
        !self.chunks.is_empty() && self.chunks.values().all(is_made)
    }
}

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .insert_resource(Count(40_000))
        .run()
}

/// Number of blocks per chunk.
#[derive(Resource)]
pub struct Count(pub u32);

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_plugins(InstanceTintPlugin)
        .insert_resource(ClearColor(SKY))
        .add_systems(Startup, spawn)
        .add_systems(
            Update,
            (
                (leave, plan, arrive, fly).chain(),
                tell.run_if(on_timer(Duration::from_secs(1))),
            ),
        );
}

fn spawn(
    mut commands: Commands,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<TintedMaterial>>,
    count: Res<Count>,
) {
    let side = count.0.isqrt().max(1);
    let sight = (SIGHT as u32 * side) as f32;
    commands.insert_resource(Land {
        chunks: HashMap::default(),
        side,
        mesh: meshes.add(block()),
        // The light is in the colors, so that software draws the land in time.
        material: materials.add(InstanceTint::material(StandardMaterial {
            unlit: true,
            ..default()
        })),
        counts: [0; 2],
    });
    commands.spawn((
        Camera3d::default(),
        Msaa::Off,
        // Hides the end of the land.
        DistanceFog {
            color: SKY,
            falloff: FogFalloff::Linear {
                start: 0.55 * sight,
                end: 0.95 * sight,
            },
            ..default()
        },
        Transform::from_xyz(0.0, 26.0, 0.0).looking_to(Vec3::new(0.15, -0.36, -1.0), Vec3::Y),
    ));
}

/// A block with its top at the origin. Its sides are darker.
fn block() -> Mesh {
    let block = Mesh::from(Cuboid::new(1.0, 8.0, 1.0)).translated_by(Vec3::NEG_Y * 4.0);
    // Cuboids have four vertices per side: front, back, right, left, top, bottom.
    let lights = [0.75, 0.6, 0.65, 0.5, 1.0, 0.4];
    let colors = lights.map(|light| [[light, light, light, 1.0]; 4]);
    block.with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, colors.concat())
}

/// The camera flies once the first chunks are there.
fn fly(
    mut camera: Single<&mut Transform, With<Camera3d>>,
    land: Res<Land>,
    time: Res<Time>,
    mut has_begun: Local<bool>,
) {
    *has_begun |= land.is_complete();
    if *has_begun {
        camera.translation.z -= SPEED * land.side as f32 * time.delta_secs();
    }
}

/// The chunk that the camera is over.
fn here(camera: &Transform, land: &Land) -> IVec2 {
    (camera.translation.xz() / land.side as f32)
        .floor()
        .as_ivec2()
}

/// Despawns what is far behind. The GPU's memory is used again for the next chunks.
fn leave(
    camera: Single<&Transform, With<Camera3d>>,
    mut land: ResMut<Land>,
    mut commands: Commands,
) {
    let here = here(&camera, &land);
    let Land { chunks, counts, .. } = &mut *land;
    chunks.retain(|at, chunk| {
        let stays = at.chebyshev_distance(here) <= SIGHT as u32 + 1;
        // A task that is dropped is canceled.
        if let (false, Chunk::Spawned(entity)) = (stays, chunk) {
            commands.entity(*entity).despawn();
            counts[1] += 1;
        }
        stays
    });
}

/// Begins the chunks that came in sight, the nearest first.
fn plan(camera: Single<&Transform, With<Camera3d>>, mut land: ResMut<Land>) {
    let here = here(&camera, &land);
    let side = land.side;
    let mut around: Vec<IVec2> = (-SIGHT..=SIGHT)
        .flat_map(|y| (-SIGHT..=SIGHT).map(move |x| here + IVec2::new(x, y)))
        .collect();
    around.sort_by_key(|at| at.distance_squared(here));
    for at in around {
        land.chunks.entry(at).or_insert_with(|| {
            Chunk::Made(AsyncComputeTaskPool::get().spawn(async move { blocks(at, side) }))
        });
    }
}

/// Spawns the chunks that were made since the last frame.
fn arrive(mut land: ResMut<Land>, mut commands: Commands, mut sets: ResMut<Assets<InstanceSet>>) {
    let Land {
        chunks,
        side,
        mesh,
        material,
        counts,
    } = &mut *land;
    for (at, chunk) in chunks {
        let Chunk::Made(task) = chunk else {
            continue;
        };
        let Some(set) = check_ready(task) else {
            continue;
        };
        let set = match set {
            Ok(set) => set,
            Err(error) => {
                error!("chunk {at} stays empty: {error}");
                *chunk = Chunk::Refused;
                continue;
            }
        };
        // The instances count from the chunk's corner, so that they are precise anywhere.
        let corner = (*at * *side as i32).as_vec2();
        let entity = commands.spawn((
            Mesh3d(mesh.clone()),
            MeshMaterial3d(material.clone()),
            GpuInstances(sets.add(set)),
            Transform::from_xyz(corner.x, 0.0, corner.y),
        ));
        *chunk = Chunk::Spawned(entity.id());
        counts[0] += 1;
    }
}

fn tell(land: Res<Land>, report: Res<CullingReport>) {
    let [spawned, despawned] = land.counts;
    info!(
        "{spawned} chunks spawned, {despawned} despawned; {} instances in {} MB on the GPU",
        report.instances,
        report.gpu_bytes >> 20
    );
}

/// The blocks of a chunk. The copy on the CPU goes when they are on the GPU.
fn blocks(at: IVec2, side: u32) -> Result<InstanceSet, InstanceError> {
    let block = |i: u32| {
        let place = UVec2::new(i % side, i / side).as_vec2();
        let land = place + (at * side as i32).as_vec2();
        let [height, beside] = [height(land), height(land + Vec2::X)];
        // Water is flat.
        let top = Vec3::new(place.x, height.max(0.0).round(), place.y);
        let color = color(height, height - beside);
        (Transform::from_translation(top), InstanceTint::tag(color))
    };
    let set = InstanceSet::from_tagged((0..side * side).map(block))?;
    Ok(set
        .sorted()
        .with_asset_usage(RenderAssetUsages::RENDER_WORLD))
}

fn height(at: Vec2) -> f32 {
    let hill = |scale: f32, turn: f32| {
        let place = Vec2::from_angle(turn).rotate(at) / scale;
        place.x.sin() * place.y.cos()
    };
    9.0 * hill(23.0, 0.4) + 4.0 * hill(11.0, 1.7) + 1.2 * hill(5.0, 2.9) + 4.0
}

/// What is higher than its neighbor in the east lies in the sun.
fn color(height: f32, slope: f32) -> Hsla {
    let light = 0.12 * slope.clamp(-1.5, 1.5);
    match height {
        ..0.0 => Hsla::hsl(208.0, 0.55, 0.42 + 0.014 * height.max(-9.0)),
        ..1.5 => Hsla::hsl(48.0, 0.45, 0.6 + light),
        ..7.5 => Hsla::hsl(100.0, 0.4, 0.33 + light),
        ..11.0 => Hsla::hsl(30.0, 0.15, 0.4 + light),
        _ => Hsla::hsl(210.0, 0.1, 0.85 + light),
    }
}
