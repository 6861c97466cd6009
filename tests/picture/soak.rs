//! Random apps: sets of instances, of meshlets, of instances that the GPU writes or scatters, and
//! crowds of small sets come, go, are edited, moved, hidden and detached; cameras, viewports, lights,
//! an interface and settings change; the render world is on its own thread. Now and then every
//! survivor is compared with the twin, and the picture with Bevy's entities.
//!
//! A run tries one app, from seed 0. `SOAK_SEED=7` tries the app from seed 7 instead, and
//! `SOAK_MINUTES=60` goes on with the next seeds for an hour (`cargo xtask soak`). An app that fails
//! is made smaller: what is left of its acts is printed, and kept in a file. `SOAK_ACTS=<file>` tries
//! the acts in a file, whatever seeds are by then.

mod acts;

use super::{batch_sets::sun, red, scatter::window};
use crate::scene::{How, SIZE, Stage, different_pixels, field, field_of, posed};
use acts::{Act, CROWD, Edit, Part, Place, Thing};
use bevy::{
    camera::{
        Viewport,
        visibility::{NoFrustumCulling, RenderLayers},
    },
    core_pipeline::prepass::{DepthPrepass, NormalPrepass},
    light::{DirectionalLightShadowMap, PointLightShadowMap},
    prelude::*,
    render::{
        Extract, ExtractSchedule, RenderApp,
        renderer::{RenderGraph, RenderQueue},
    },
};
use bevy_gpu_culling::{prelude::*, render::InstanceBuffers};
use core::f32::consts::TAU;
use std::{
    collections::BTreeSet,
    panic::catch_unwind,
    path::Path,
    time::{Duration, Instant},
};

fn at(place: Place) -> Vec3 {
    Vec3::from_array(place.map(f32::from)) / 10.0
}

/// Camera number `turn` of a ring around the origin.
fn look(turn: u8) -> Transform {
    let angle = f32::from(turn) / 256.0 * TAU;
    let eye = Vec3::new(angle.sin() * 12.0, 4.0, angle.cos() * 12.0);
    Transform::from_translation(eye).looking_at(Vec3::ZERO, Vec3::Y)
}

/// How a set comes to the GPU.
enum Kind {
    /// Its meshes are drawn whole.
    Plain,
    /// Its meshes are drawn by meshlets.
    Meshlets,
    /// Its mesh has joints, which have poses.
    Posed,
    /// The GPU writes these instances.
    Written(Box<InstanceSet>),
    /// The GPU scatters instances around the cameras.
    Scattered(Box<Scatter>),
}

impl Kind {
    /// Whether the app has the instances, and can edit them.
    fn is_edited(&self) -> bool {
        matches!(self, Self::Plain | Self::Meshlets | Self::Posed)
    }
}

/// What the GPU writes in each frame, into which sets.
#[derive(Resource, Clone, Default)]
struct Written(Vec<(AssetId<InstanceSet>, InstanceSet)>);

fn extract_written(mut written: ResMut<Written>, from: Extract<Res<Written>>) {
    written.clone_from(&from);
}

fn write(written: Res<Written>, buffers: Res<InstanceBuffers>, queue: Res<RenderQueue>) {
    for (id, set) in &written.0 {
        if let Some(buffer) = buffers.get(*id) {
            let instances = &buffer.regions()[0].instances;
            queue.write_buffer(instances, 0, bytemuck::cast_slice(set.packed()));
        }
    }
}

/// A set of the app.
struct Set {
    entity: Entity,
    kind: Kind,
    mesh: usize,
    paint: usize,
    place: Transform,
    parts: Vec<Part>,
    detached: Vec<Entity>,
}

/// Index of the mesh with joints.
const POSED: usize = 3;

/// What both stages have before anything happens.
struct Props {
    meshes: Vec<Handle<Mesh>>,
    meshlets: Vec<Handle<MeshletMesh>>,
    /// The last mesh is posed.
    poses: Option<Handle<AnimationPoses>>,
    paints: Vec<MeshMaterial3d<StandardMaterial>>,
}

impl Props {
    fn new(stage: &mut Stage) -> Self {
        // The app of the entities has no plugin.
        let has_plugin = stage.how != How::Entities;
        let meshes = [
            Mesh::from(Cuboid::new(0.5, 0.3, 0.4)),
            Mesh::from(Sphere::new(0.25)),
            Mesh::from(Cone::new(0.25, 0.6)),
            if has_plugin {
                posed::mesh()
            } else {
                posed::posed()
            },
        ];
        let paint = |color, alpha_mode| StandardMaterial {
            base_color: color,
            alpha_mode,
            ..red()
        };
        let paints = [
            paint(Color::srgb(0.9, 0.3, 0.2), AlphaMode::Opaque),
            paint(Color::srgb(0.3, 0.7, 0.3), AlphaMode::Opaque),
            paint(Color::srgba(0.3, 0.4, 0.9, 0.8), AlphaMode::Mask(0.5)),
        ];
        let poses = has_plugin.then(|| stage.add(posed::poses()));
        let cut = meshes
            .iter()
            .take(POSED)
            .filter(|_| has_plugin)
            .map(|mesh| {
                let meshlets = MeshletMesh::from_mesh(mesh, &MeshletSettings::default());
                stage.add(meshlets.unwrap())
            });
        Self {
            meshlets: cut.collect(),
            poses,
            meshes: meshes.into_iter().map(|mesh| stage.mesh(mesh)).collect(),
            paints: paints
                .into_iter()
                .map(|paint| stage.standard(paint))
                .collect(),
        }
    }
}

/// The app as it should be.
struct Model {
    sets: Vec<Set>,
    things: Vec<Thing>,
    turn: u8,
    /// `None` for the best one.
    tier: Option<CullingTier>,
    cameras: Vec<Entity>,
    lights: Vec<Entity>,
}

/// Spawns cameras and lights as they should be. Returns the cameras for sets, and all else.
fn surround(stage: &mut Stage, things: &[Thing], turn: u8) -> [Vec<Entity>; 2] {
    let has = |thing| things.contains(&thing);
    let mut cameras = vec![stage.camera(look(turn), ())];
    if has(Thing::Viewport) {
        let part = Viewport {
            physical_position: SIZE / 8,
            physical_size: SIZE / 2 + 31,
            ..default()
        };
        stage.entity(cameras[0]).insert(Camera {
            viewport: Some(part),
            ..default()
        });
    }
    if has(Thing::SecondCamera) {
        let corner = Viewport {
            physical_size: SIZE / 3,
            ..default()
        };
        let camera = Camera {
            order: 1,
            viewport: Some(corner),
            ..default()
        };
        cameras.push(stage.camera(look(turn.wrapping_add(90)), camera));
    }
    for camera in &cameras {
        if has(Thing::Prepass) {
            stage.entity(*camera).insert((DepthPrepass, NormalPrepass));
        }
        if has(Thing::Occlusion) && stage.how != How::Entities {
            let hides = InstanceOcclusion {
                near_pixels: 60.0,
                may_pause: turn % 2 == 1,
            };
            stage.entity(*camera).insert(hides);
        }
    }
    let mut others = Vec::new();
    if has(Thing::Interface) {
        others.extend(stage.interface(2));
    }
    let sun = stage.spawn(sun(2, 40.0));
    let lamp = PointLight {
        intensity: 2_000_000.0,
        range: 25.0,
        color: Color::srgb(0.5, 0.7, 1.0),
        shadow_maps_enabled: has(Thing::LampShadows),
        ..default()
    };
    let lamp = stage.spawn((lamp, Transform::from_xyz(-5.0, 6.0, 3.0)));
    let mut light = stage.entity(sun);
    light
        .get_mut::<DirectionalLight>()
        .unwrap()
        .shadow_maps_enabled = has(Thing::SunShadows);
    // So that each picture shows something.
    let (ball, gray) = (stage.mesh(Sphere::new(1.0)), StandardMaterial::default());
    let gray = stage.standard(gray);
    let ball = stage.spawn((Mesh3d(ball), gray));
    others.extend([sun, lamp, ball]);
    [cameras, others]
}

fn small_shadows(app: &mut App) {
    app.insert_resource(DirectionalLightShadowMap { size: 256 })
        .insert_resource(PointLightShadowMap { size: 128 });
}

/// The app of the sets, in which the GPU writes some.
fn prepare(app: &mut App) {
    small_shadows(app);
    app.init_resource::<Written>();
    let render_app = app.get_sub_app_mut(RenderApp).unwrap();
    render_app
        .init_resource::<Written>()
        .add_systems(ExtractSchedule, extract_written)
        .add_systems(RenderGraph, write.in_set(GpuCullingSystems::WriteInstances));
}

/// Frames until what no set uses any more is released.
const QUIET: usize = 140;

/// Bytes on the GPU that a scene may leave: up to 4,096 slots are kept for the next one.
const MAX_LEFT: u64 = 4 << 20;

/// Runs an app, and panics if it is wrong.
fn run(acts: &[Act]) {
    let mut stage = Stage::pipelined(How::Set(None), prepare);
    let mut peer = Stage::with(How::Entities, small_shadows);
    let props = [Props::new(&mut stage), Props::new(&mut peer)];
    let things = vec![Thing::SunShadows, Thing::Occlusion];
    let [cameras, lights] = surround(&mut stage, &things, 0);
    stage.update(QUIET);
    let before = stage.report().gpu_bytes;
    let mut model = Model {
        sets: Vec::new(),
        things,
        turn: 0,
        tier: None,
        cameras,
        lights,
    };
    for (number, act) in acts.iter().chain([&Act::Check]).enumerate() {
        if let Act::Check = act {
            check(&mut stage, &mut peer, &model, &props[1], number);
        } else {
            model.act(&mut stage, &props[0], act);
        }
    }
    for set in &model.sets {
        stage.entity(set.entity).despawn();
    }
    stage.update(QUIET);
    let left = stage.report();
    assert_eq!((left.instances, left.draw_calls), (0, 0), "{left:?}");
    let more = left.gpu_bytes.saturating_sub(before);
    assert!(more < MAX_LEFT, "{more} bytes are left on the GPU");
}

impl Model {
    fn act(&mut self, stage: &mut Stage, props: &Props, act: &Act) {
        let count = self.sets.len();
        let at_set = |number: &u8| usize::from(*number).checked_rem(count);
        match act {
            Act::Spawn {
                count,
                mesh,
                paint,
                kind,
                at: place,
            } => {
                let (mesh, paint) = (usize::from(mesh % 3), usize::from(paint % 3));
                let mesh = if kind % 9 == 3 { POSED } else { mesh };
                let place = Transform::from_translation(at(*place));
                let (entity, kind) = spawn(stage, props, (*count, *kind), (mesh, paint), place);
                let (parts, detached) = (Vec::new(), Vec::new());
                self.sets.push(Set {
                    entity,
                    kind,
                    mesh,
                    paint,
                    place,
                    parts,
                    detached,
                });
            }
            Act::Crowd(..) if self.tier == Some(CullingTier::Cpu) => {}
            Act::Crowd(count, place) => {
                for number in 0..*count {
                    let mesh = usize::from(number % 3);
                    let set = field_of(usize::from(number % 4) + 1, ScaleKind::Uniform);
                    let turn = f32::from(number) * 0.7;
                    let offset = Vec3::new(turn.sin(), 0.0, turn.cos()) * turn * 0.2;
                    let place = Transform::from_translation(at(*place) + offset);
                    let look = (props.meshes[mesh].clone(), props.paints[mesh].clone());
                    let entity = stage.spawn_set(&set, look, place);
                    self.sets.push(Set {
                        entity,
                        kind: Kind::Plain,
                        mesh,
                        paint: mesh,
                        place,
                        parts: Vec::new(),
                        detached: Vec::new(),
                    });
                }
            }
            Act::Despawn(number) => {
                if let Some(at) = at_set(number) {
                    stage.entity(self.sets.swap_remove(at).entity).despawn();
                }
            }
            Act::Edit(number, change) => {
                if let Some(at) = at_set(number)
                    && self.sets[at].kind.is_edited()
                {
                    stage.edit_set(self.sets[at].entity, |set| edit(set, change));
                }
            }
            Act::Move(number, to, is_flat) => {
                if let Some(number) = at_set(number) {
                    let set = &mut self.sets[number];
                    let scale = if *is_flat {
                        Vec3::new(1.2, 0.6, 1.0)
                    } else {
                        Vec3::ONE
                    };
                    let turn = Quat::from_rotation_y(f32::from(to[0]) / 20.0);
                    set.place = Transform::from_translation(at(*to))
                        .with_scale(scale)
                        .with_rotation(turn);
                    stage.entity(set.entity).insert(set.place);
                }
            }
            Act::Toggle(number, part) => {
                if let Some(at) = at_set(number) {
                    self.sets[at].toggle(stage, props, *part);
                }
            }
            Act::Detach(number, id) => {
                if let Some(at) = at_set(number) {
                    self.sets[at].detach(stage, *id);
                }
            }
            Act::Attach(number) => {
                let set = at_set(number).map(|at| &mut self.sets[at]);
                if let Some(set) = set
                    && let Some(entity) = set.detached.pop()
                {
                    let world = stage.app.world_mut();
                    world.commands().attach_instance(entity);
                    world.flush();
                    // It stays if an edit has removed its instance, or put another in its place.
                    if world.get_entity(entity).is_ok() {
                        set.detached.push(entity);
                    }
                }
            }
            Act::Look(turn) => {
                self.turn = *turn;
                let turns = [*turn, turn.wrapping_add(90)];
                for (camera, turn) in self.cameras.iter().zip(turns) {
                    stage.entity(*camera).insert(look(turn));
                }
            }
            Act::Switch(thing) => {
                match self.things.iter().position(|known| known == thing) {
                    Some(at) => drop(self.things.swap_remove(at)),
                    None => self.things.push(*thing),
                }
                for entity in self.cameras.drain(..).chain(self.lights.drain(..)) {
                    stage.entity(entity).despawn();
                }
                [self.cameras, self.lights] = surround(stage, &self.things, self.turn);
            }
            Act::Tier(number) => {
                let tiers = CullingTier::ALL;
                let tier = tiers[usize::from(*number) % tiers.len()];
                // There, each set is a direct draw, for each of which lavapipe compiles the vertex
                // shader again and keeps the code: half a gigabyte per frame of two crowds.
                if tier == CullingTier::Cpu && count >= CROWD {
                    return;
                }
                self.tier = Some(tier);
                let world = stage.app.world_mut();
                world.resource_mut::<GpuCullingSettings>().tier = Some(tier);
            }
            Act::Setting(number) => {
                let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
                match number % 4 {
                    0 => settings.shader_checks ^= true,
                    1 => settings.self_test ^= true,
                    2 => settings.near_levels_from ^= 1 << 18,
                    _ => {
                        let all = [
                            Compaction::Auto,
                            Compaction::Classify,
                            Compaction::VoteScanCompact,
                        ];
                        settings.compaction = all[usize::from(number / 4) % 3];
                    }
                }
            }
            Act::Frames(count) => stage.update((*count).into()),
            Act::Check => {}
        }
    }

    /// What grows around the cameras.
    fn plants(&self, stage: &Stage, scatter: &Scatter, at: &Transform) -> Vec<InstanceTransform> {
        let to_set = at.compute_affine().inverse();
        let turns = [self.turn, self.turn.wrapping_add(90)];
        let cameras = turns.into_iter().take(self.cameras.len());
        let eyes = cameras.map(|turn| to_set.transform_point3(look(turn).translation));
        let tiles: BTreeSet<_> = eyes
            .flat_map(|eye| window(scatter, eye))
            .map(|tile| tile.to_array())
            .collect();
        let images = stage.app.world().resource::<Assets<Image>>();
        let tiles = tiles.into_iter().map(IVec2::from);
        scatter.plants_in(tiles, images).unwrap()
    }
}

/// Spawns a set of a kind.
fn spawn(
    stage: &mut Stage,
    props: &Props,
    (count, kind): (u16, u8),
    (mesh, paint): (usize, usize),
    place: Transform,
) -> (Entity, Kind) {
    let set = field_of(count.into(), ScaleKind::Uniform);
    let paint = props.paints[paint].clone();
    let plain = (props.meshes[mesh].clone(), paint.clone());
    match kind % 9 {
        0 => {
            let set = GpuInstances(stage.add(set));
            let meshlets = MeshletMesh3d(props.meshlets[mesh].clone());
            (stage.spawn((meshlets, paint, set, place)), Kind::Meshlets)
        }
        1 => {
            let around = GpuWritten::within(Vec3::splat(-15.0), Vec3::splat(15.0));
            let empty = InstanceSet::gpu_written(count.into(), around).unwrap();
            let (id, entity) = {
                let handle = stage.add(empty);
                let id = handle.id();
                let (mesh, paint) = plain;
                let parts = (Mesh3d(mesh), paint, GpuInstances(handle), place);
                (id, stage.spawn(parts))
            };
            let set = field(count.into(), false);
            let mut written = stage.app.world_mut().resource_mut::<Written>();
            written.0.push((id, set.clone()));
            (entity, Kind::Written(Box::new(set)))
        }
        2 => {
            let scatter = Scatter {
                seed: count.into(),
                spacing: 1.2 + f32::from(count % 7) * 0.2,
                radius: 8.0 + f32::from(count % 5),
                scales: 0.6..1.1,
                ..default()
            };
            let (mesh, paint) = plain;
            let entity = stage.spawn((Mesh3d(mesh), paint, scatter.clone(), place));
            (entity, Kind::Scattered(Box::new(scatter)))
        }
        3 => {
            let entity = stage.spawn_set(&set, plain, place);
            let poses = props.poses.clone().unwrap();
            stage.entity(entity).insert(InstanceAnimation::from(poses));
            (entity, Kind::Posed)
        }
        _ => (stage.spawn_set(&set, plain, place), Kind::Plain),
    }
}

impl Set {
    fn toggle(&mut self, stage: &mut Stage, props: &Props, part: Part) {
        // What the entity draws then, its mesh or its meshlets, is not for this test.
        if part == Part::Levels && !matches!(self.kind, Kind::Plain | Kind::Posed) {
            return;
        }
        let known = self.parts.iter().position(|known| *known == part);
        match known {
            Some(at) => drop(self.parts.swap_remove(at)),
            None => self.parts.push(part),
        }
        let is_on = known.is_none();
        let mut entity = stage.entity(self.entity);
        match (part, is_on) {
            (Part::Hidden, true) => drop(entity.insert(Visibility::Hidden)),
            (Part::Hidden, false) => drop(entity.insert(Visibility::Inherited)),
            (Part::OtherLayer, true) => drop(entity.insert(RenderLayers::layer(2))),
            (Part::OtherLayer, false) => drop(entity.remove::<RenderLayers>()),
            (Part::Levels, true) => {
                // It looks the same.
                let levels = vec![InstanceLod::new(props.meshes[self.mesh].clone(), 0.02)];
                entity.insert(InstanceLods {
                    levels,
                    ..default()
                });
            }
            (Part::Levels, false) => drop(entity.remove::<InstanceLods>()),
            (Part::NoSorting, true) => drop(entity.insert(NoInstanceSorting)),
            (Part::NoSorting, false) => drop(entity.remove::<NoInstanceSorting>()),
        }
    }

    fn detach(&mut self, stage: &mut Stage, id: u16) {
        // The CPU has no instance of the GPU's, and an entity has no meshlets.
        if !matches!(self.kind, Kind::Plain) {
            return;
        }
        let set = content(stage, self.entity);
        let visible: Vec<u32> = (0..set.len() as u32)
            .filter(|id| !set.is_hidden(*id))
            .collect();
        let Some(id) = visible.get(usize::from(id).checked_rem(visible.len()).unwrap_or(0)) else {
            return;
        };
        let world = stage.app.world_mut();
        let entity = world.commands().detach_instance(self.entity, *id).id();
        world.flush();
        self.detached.push(entity);
    }
}

fn content(stage: &Stage, entity: Entity) -> &InstanceSet {
    let world = stage.app.world();
    let handle = &world.get::<GpuInstances>(entity).unwrap().0;
    world.resource::<Assets<InstanceSet>>().get(handle).unwrap()
}

fn edit(set: &mut InstanceSet, edit: &Edit) {
    let len = set.len() as u32;
    let more = |count: u16| field_of(count.into(), ScaleKind::Uniform);
    let id = |id: u16| u32::from(id) % len.max(1);
    match edit {
        Edit::Replace(count) => *set = more(*count),
        Edit::Extend(count) => set.extend(more(*count).iter()).unwrap(),
        Edit::Push(place) => drop(set.push(at(*place)).unwrap()),
        Edit::Set(to, place) if len > 0 => set.set(id(*to), at(*place)).unwrap(),
        Edit::Hide(at) if len > 0 => set.hide(id(*at)).unwrap(),
        Edit::Show(at) if len > 0 => set.show(id(*at)).unwrap(),
        Edit::SwapRemove(at) if len > 0 => {
            let _ = set.swap_remove(id(*at)).unwrap();
        }
        Edit::Truncate(at) => set.truncate(id(*at) as usize),
        Edit::Sort => drop(set.sort()),
        _ => {}
    }
}

/// Compares survivors with the twin, and the picture with one of entities.
fn check(stage: &mut Stage, peer: &mut Stage, model: &Model, props: &Props, number: usize) {
    peer.clear();
    surround(peer, &model.things, model.turn);
    for set in &model.sets {
        let visibility = if set.parts.contains(&Part::Hidden) {
            Visibility::Hidden
        } else {
            Visibility::Inherited
        };
        let layers = RenderLayers::layer(if set.parts.contains(&Part::OtherLayer) {
            2
        } else {
            0
        });
        let parent = peer.spawn((set.place, visibility));
        let shown: Vec<_> = match &set.kind {
            Kind::Written(_) | Kind::Scattered(_) if model.tier == Some(CullingTier::Cpu) => {
                continue;
            }
            Kind::Written(instances) => instances.iter().collect(),
            Kind::Scattered(scatter) => model.plants(stage, scatter, &set.place),
            Kind::Plain | Kind::Meshlets | Kind::Posed => {
                let set = content(stage, set.entity);
                let shown = (0..).zip(set.iter()).filter(|(id, _)| !set.is_hidden(*id));
                shown.map(|(_, place)| place).collect()
            }
        };
        let mut places: Vec<_> = shown
            .into_iter()
            .map(|place| (Transform::from(place), layers.clone()))
            .collect();
        for entity in &set.detached {
            let entity = stage.app.world().entity(*entity);
            let layers = entity.get::<RenderLayers>().cloned().unwrap_or_default();
            places.push((*entity.get::<Transform>().unwrap(), layers));
        }
        let look = (
            Mesh3d(props.meshes[set.mesh].clone()),
            props.paints[set.paint].clone(),
        );
        for (place, layers) in places {
            // Bevy culls a box by a sphere that is too small if the parent stretches a turned child.
            let part = (place, layers, NoFrustumCulling);
            peer.spawn((look.clone(), part, ChildOf(parent)));
        }
    }
    stage.settle();
    peer.settle();
    let pictures = [stage.picture(), peer.picture()];
    if let Err(error) = different_pixels(&format!("soak-{number}"), &pictures[0], &pictures[1]) {
        panic!("act {number}: {error}");
    }
    stage.verify();
}

/// Number of apps after which the bound of memory is set. Before, a software driver compiles most of
/// the pipelines that apps have, and keeps them for as long as the process runs.
const WARM_UP: u32 = 20;

/// The most bytes that the process may hold until it has tried twice as many apps, if it holds this
/// many now: a quarter more for pipelines that no app had before, which become rare, and what an
/// allocator keeps of a large app. If each app leaves something behind, that is too much at some
/// time.
fn max_held(now: u64) -> u64 {
    now + now / 4 + (256 << 20)
}

/// Bytes that the process holds; 0 if the system does not say.
fn held() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let held = lines.find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"));
    let held = held.and_then(|held| held.trim().parse::<u64>().ok());
    held.unwrap_or(0) << 10
}

/// Tries an app. If it fails, tries for this long which of its acts it needs for that, and panics.
fn try_app(name: &str, acts: &[Act], patience: Duration) {
    let fails = |acts: &[Act]| catch_unwind(|| run(acts)).is_err();
    if !fails(acts) {
        return;
    }
    let end = Instant::now() + patience;
    let left = acts::shrunk(acts, |acts| Instant::now() < end && fails(acts));
    let text = acts::to_text(&left);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("soak.acts");
    std::fs::write(&path, &text).unwrap();
    panic!(
        "{name} fails, and so does an app with these acts, which SOAK_ACTS={} tries again:\n{text}",
        path.display()
    );
}

/// The number in an environment variable.
fn number(name: &str) -> Option<f64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_apps_look_like_bevys_entities() {
    let minutes = number("SOAK_MINUTES").unwrap_or(0.0);
    let patience = Duration::from_secs_f64(60.0 * minutes.max(10.0));
    if let Ok(path) = std::env::var("SOAK_ACTS") {
        let text = std::fs::read_to_string(&path).unwrap();
        try_app(&format!("SOAK_ACTS={path}"), &acts::read(&text), patience);
        return;
    }
    let end = Instant::now() + Duration::from_secs_f64(60.0 * minutes);
    let (mut apps, mut most) = (0u32, u64::MAX);
    for seed in number("SOAK_SEED").unwrap_or(0.0) as u64.. {
        try_app(&format!("SOAK_SEED={seed}"), &acts::of_seed(seed), patience);
        let held = held();
        println!("seed {seed}: as it should be, {} MiB held", held >> 20);
        assert!(
            held <= most,
            "SOAK_SEED={seed}: the process holds {held} bytes, {most} at most after so many apps"
        );
        apps += 1;
        if apps.is_multiple_of(WARM_UP) && (apps / WARM_UP).is_power_of_two() {
            most = max_held(held);
        }
        if Instant::now() >= end {
            break;
        }
    }
}
