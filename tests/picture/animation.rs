//! Animated figures look like Bevy's skinned entities at the same moment of the same clips.

use super::scenes::{wait_for, watch};
use crate::{
    log::Log,
    scene::{How, Stage, assert_same_picture, different_pixels, field_of, posed},
};
use bevy::{
    animation::AnimationClip,
    math::Affine3A,
    mesh::skinning::{SkinnedMesh, SkinnedMeshInverseBindposes},
    prelude::*,
};
use bevy_gpu_culling::{instance::ScaleKind, prelude::*, render::PoseClip};
use core::time::Duration;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A moment of a clip, and the weight of it.
type Moment = (usize, f32, f32);

const SURVEY: u8 = 0;
const WALK: u8 = 1;
const RUN: u8 = 2;

/// The file's scene and clips, loaded. Each label that is asked for before loads the file again,
/// and has its scene spawned again.
fn load(stage: &mut Stage) -> (Handle<WorldAsset>, [Handle<AnimationClip>; 3]) {
    let (scene, clips) = (scene(stage), clips(stage));
    for _ in 0..2000 {
        stage.update(1);
        let server = stage.app.world().resource::<AssetServer>();
        let is_loaded = |id| server.is_loaded_with_dependencies(id);
        if is_loaded(scene.id().untyped())
            && clips.iter().all(|clip| is_loaded(clip.id().untyped()))
        {
            // The events of the last one.
            stage.update(3);
            return (scene, clips);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the file is not loaded")
}

fn clips(stage: &Stage) -> [Handle<AnimationClip>; 3] {
    let server = stage.app.world().resource::<AssetServer>();
    [0, 1, 2].map(|clip| server.load(format!("fox.glb#Animation{clip}")))
}

fn scene(stage: &Stage) -> Handle<WorldAsset> {
    let server = stage.app.world().resource::<AssetServer>();
    server.load("fox.glb#Scene0")
}

/// Lets the time stand, however many frames have passed.
fn stand_at(stage: &mut Stage, moment: Duration) {
    let mut time = stage.app.world_mut().resource_mut::<Time<Virtual>>();
    time.set_max_delta(Duration::MAX);
    let step = moment - time.elapsed();
    stage.tick(step);
    stage.update(1);
    stage.tick(Duration::ZERO);
    assert_eq!(stage.app.world().resource::<Time>().elapsed(), moment);
}

fn furnish(stage: &mut Stage, shadows: bool) {
    stage.tick(Duration::ZERO);
    stage.lights(shadows);
    let eye = Transform::from_xyz(0.0, 3.0, 8.0).looking_at(Vec3::new(0.0, 0.4, 0.0), Vec3::Y);
    stage.camera(eye, ());
    let ground = stage.mesh(Plane3d::new(Vec3::Y, Vec2::splat(20.0)));
    let gray = stage.standard(Color::srgb(0.5, 0.5, 0.45).into());
    stage.spawn((Mesh3d(ground), gray, Transform::from_xyz(0.0, -0.01, 0.0)));
}

/// Where figures stand: in rows, and turned, as a set packs it.
fn places(count: usize) -> InstanceSet {
    let place = |at: usize| {
        let (row, column) = (at / 6, at % 6);
        Transform::from_xyz(column as f32 * 2.1 - 5.2, 0.0, 3.0 - row as f32 * 2.4)
            .with_rotation(Quat::from_rotation_y(at as f32 * 0.7))
            .with_scale(Vec3::splat(0.014 + 0.002 * (at % 3) as f32))
    };
    InstanceSet::from_transforms((0..count).map(place)).unwrap()
}

/// Bevy's entities at their moments. Returns the roots.
fn spawn_entities(stage: &mut Stage, moments: &[Vec<Moment>]) -> Vec<Entity> {
    let (fox, clips) = load(stage);
    let spawned = watch(stage);
    let roots: Vec<_> = places(moments.len())
        .iter()
        .map(|place| stage.spawn((WorldAssetRoot(fox.clone()), Transform::from(place))))
        .collect();
    wait_for(stage, &spawned, moments.len());
    let (graph, nodes) = AnimationGraph::from_clips(clips);
    let graph = AnimationGraphHandle(stage.add(graph));
    for (root, moments) in roots.iter().zip(moments) {
        let player = player_of(stage, *root);
        let mut entity = stage.entity(player);
        entity.insert(graph.clone());
        let mut player = entity.get_mut::<AnimationPlayer>().unwrap();
        for (clip, seconds, weight) in moments {
            let playing = player.play(nodes[*clip]);
            playing.set_weight(*weight).seek_to(*seconds).pause();
        }
    }
    roots
}

fn player_of(stage: &Stage, root: Entity) -> Entity {
    let world = stage.app.world();
    let mut open = vec![root];
    while let Some(entity) = open.pop() {
        if world.get::<AnimationPlayer>(entity).is_some() {
            return entity;
        }
        let children = world.get::<Children>(entity);
        open.extend(children.into_iter().flat_map(|children| children.iter()));
    }
    panic!("no player")
}

/// A set with states.
fn spawn_set(stage: &mut Stage, states: &[AnimationState], bake: BakeAnimation) -> Entity {
    load(stage);
    let spawned = watch(stage);
    let set = places(states.len()).with_data(states.to_vec()).unwrap();
    let set = GpuInstances(stage.add(set));
    let root = (
        InstanceScene(scene(stage)),
        bake.with_states_in_data(0),
        set,
    );
    let root = stage.spawn(root);
    let parts = wait_for(stage, &spawned, 1);
    assert_eq!(parts.len(), 1);
    wait_for_poses(stage, parts[0]);
    root
}

/// The poses of a part, as soon as they are baked.
fn wait_for_poses(stage: &mut Stage, part: Entity) -> Handle<AnimationPoses> {
    for _ in 0..2000 {
        stage.update(1);
        let world = stage.app.world();
        let handle = world.get::<InstanceAnimation>(part).unwrap().poses.clone();
        if world.resource::<Assets<AnimationPoses>>().contains(&handle) {
            return handle;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("nothing is baked")
}

/// Clips, and moments that are whole ticks.
fn moments(count: usize) -> Vec<(u8, f32)> {
    let moment = |at: usize| {
        let clip = [SURVEY, WALK, RUN][at % 3];
        let length = [3.4, 0.7, 1.15][at % 3];
        let ticks = (length * 1024.0 * (at * 37 % 100) as f32 / 100.0) as u32;
        (clip, ticks as f32 / 1024.0)
    };
    (0..count).map(moment).collect()
}

const NOW: Duration = Duration::from_secs(40);

/// Figures that have played their clips until their moments.
fn states(moments: &[(u8, f32)]) -> Vec<AnimationState> {
    let state = |(clip, seconds): &(u8, f32)| {
        AnimationState::play(*clip, NOW).begun_before(Duration::from_secs_f32(*seconds))
    };
    moments.iter().map(state).collect()
}

/// Without shadows: their maps have large texels, of which hundredths of a pixel decide.
#[test]
fn figures_look_like_bevys_skinned_entities() {
    let log = Log::start();
    let moments = moments(24);
    let mut bevys = Stage::new(How::Entities);
    furnish(&mut bevys, false);
    let alone = |(clip, seconds): &(u8, f32)| vec![(usize::from(*clip), *seconds, 1.0)];
    let all: Vec<_> = moments.iter().map(alone).collect();
    spawn_entities(&mut bevys, &all);
    bevys.settle();
    let expected = bevys.picture();

    let mut stage = Stage::new(How::Set(None));
    furnish(&mut stage, false);
    let bake = BakeAnimation {
        rate: Some(480.0),
        ..BakeAnimation::looping(clips(&stage))
    };
    let root = spawn_set(&mut stage, &states(&moments), bake);
    stand_at(&mut stage, NOW);
    stage.settle();
    let ours = stage.picture();
    assert_same_picture("figures", &ours, &expected);
    stage.verify();
    assert_eq!(stage.report().instances, 24);
    // The comparison sees poses.
    stand_at(&mut stage, NOW + Duration::from_secs(1));
    let later = stage.picture();
    assert!(different_pixels("figures-later", &later, &ours).is_err());
    // Figures whose states are gone are chosen for: nothing else changes.
    stage.edit_set(root, |set| {
        *set = places(24);
    });
    let automatic = stage.picture();
    assert!(different_pixels("figures-automatic", &automatic, &later).is_err());
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("states are in words 0 and 1 of the data"),
        "{lines:?}"
    );
}

/// Vertices of Bevy's entities and of poses that were baked by default, in pixels of a figure that
/// is 300 pixels long. While a clip blends into another, joints move straight from their place in one
/// to their place in the other, and Bevy's in arcs: legs are a bit shorter meanwhile.
#[test]
fn vertices_are_within_half_a_pixel_of_bevys() {
    let mut stage = Stage::new(How::Set(None));
    furnish(&mut stage, false);
    let (fox, clips) = load(&mut stage);
    let bake = BakeAnimation::looping(clips);
    let count = 60;
    let moments = moments(count);
    // Every second one has changed from another clip a twentieth of a second ago.
    let blend = 0.2;
    let share = 0.25;
    let mut all = Vec::new();
    let mut states = Vec::new();
    let spawned = watch(&mut stage);
    let set = GpuInstances(stage.add(places(1)));
    stage.spawn((InstanceScene(fox), bake, set));
    let part = wait_for(&mut stage, &spawned, 1)[0];
    let handle = wait_for_poses(&mut stage, part);
    let poses = stage.app.world().resource::<Assets<AnimationPoses>>();
    let poses = poses.get(&handle).unwrap().clone();
    let now = NOW;
    for (at, (clip, seconds)) in moments.iter().enumerate() {
        let since = blend * share;
        let seconds = seconds.max(since);
        let begun = Duration::from_secs_f32(seconds);
        let state = AnimationState::play(*clip, now).begun_before(begun);
        if at % 2 == 0 {
            all.push(vec![(usize::from(*clip), seconds, 1.0)]);
            states.push(state);
        } else {
            let changed = now - Duration::from_secs_f32(since);
            let to = (clip + 1) % 3;
            states.push(state.change_to(to, changed, &poses));
            // What is left goes on from a 256th of its length.
            let length = poses.seconds(*clip).unwrap();
            let left = ((seconds - since).rem_euclid(length) / length * 256.0).floor() / 256.0;
            let left = (left * length + since).rem_euclid(length);
            all.push(vec![
                (usize::from(*clip), left, 1.0 - share),
                (usize::from(to), since, share),
            ]);
        }
    }
    let mut bevys = Stage::new(How::Entities);
    furnish(&mut bevys, false);
    let roots = spawn_entities(&mut bevys, &all);
    bevys.update(3);
    let world = bevys.app.world_mut();
    let mut skins = world.query::<(&SkinnedMesh, &Mesh3d, &ChildOf)>();
    let mut worst = [0.0f32; 2];
    for (at, root) in roots.iter().enumerate() {
        let (skin, mesh) = skins
            .iter(world)
            .find_map(|(skin, mesh, child)| {
                let above = core::iter::successors(Some(child.parent()), |entity| {
                    Some(world.get::<ChildOf>(*entity)?.parent())
                });
                above.last().filter(|last| last == root)?;
                Some((skin, mesh))
            })
            .unwrap();
        let binds = world.resource::<Assets<SkinnedMeshInverseBindposes>>();
        let binds = binds.get(&skin.inverse_bindposes).unwrap();
        let to_root = world
            .get::<GlobalTransform>(*root)
            .unwrap()
            .affine()
            .inverse();
        let theirs: Vec<_> = skin
            .joints
            .iter()
            .zip(binds.iter())
            .map(|(joint, bind)| {
                let joint = world.get::<GlobalTransform>(*joint).unwrap().affine();
                to_root * joint * Affine3A::from_mat4(*bind)
            })
            .collect();
        let ours = poses.pose(states[at], now, blend);
        let mesh = world.resource::<Assets<Mesh>>().get(&mesh.0).unwrap();
        let pairs = [&ours, &theirs].map(|pose| posed::places(mesh, pose));
        for (ours, theirs) in pairs[0].iter().zip(&pairs[1]) {
            worst[at % 2] = worst[at % 2].max(ours.distance(*theirs) * 300.0 / 155.0);
        }
    }
    println!("pixels: {} in one clip, {} between two", worst[0], worst[1]);
    assert!(worst[0] < 0.5, "{worst:?}");
    assert!(worst[1] < 18.0, "{worst:?}");
}

/// Random poses of the pole: two clips that loop, and between them one that plays once.
fn random_poses(random: &mut ChaCha8Rng, stretches: bool) -> AnimationPoses {
    let mut number = |far: f32| random.random_range(-far..far);
    let mut joint = |pivot: Vec3| {
        let mut vector = |far: f32| Vec3::from_array([0; 3].map(|_| number(far)));
        let turn = Quat::from_scaled_axis(vector(0.9));
        let scale = vector(0.25) + 1.0;
        let scale = if stretches {
            scale
        } else {
            Vec3::splat(scale.x)
        };
        let place = Affine3A::from_scale_rotation_translation(scale, turn, pivot + vector(0.2));
        place * Affine3A::from_translation(-pivot)
    };
    let pivots = [-0.45, 0.45].map(|y| Vec3::Y * y);
    let clips = [(7, 0.9, true), (4, 1.3, false), (1, 0.4, true)];
    let clips = clips.map(|(count, seconds, loops)| PoseClip {
        poses: (0..count)
            .map(|_| pivots.map(&mut joint).to_vec())
            .collect(),
        seconds,
        loops,
    });
    AnimationPoses::around(pivots, clips).unwrap()
}

/// What instances may play: alone, in a change, standing, and from a time that has not come.
fn random_state(random: &mut ChaCha8Rng, poses: &AnimationPoses, now: Duration) -> AnimationState {
    let clip = random.random_range(0..4);
    let ago = Duration::from_millis(random.random_range(0..9_000));
    let speed = random.random_range(0.1..3.0);
    let state = AnimationState::play(clip, now).with_speed(speed);
    match random.random_range(0..6) {
        0 | 1 => state.begun_before(ago),
        2 | 3 => {
            let since = Duration::from_millis(random.random_range(0..250));
            let state = state.begun_before(ago);
            state.change_to(random.random_range(0..3), now - since, poses)
        }
        4 => AnimationState::stopped(clip, random.random_range(0.0..1.0)),
        _ => AnimationState::play(clip, now + ago),
    }
}

/// Bevy's entities have the mesh in the twin's pose. Shadows show it, too.
#[test]
fn the_vertex_stage_poses_as_the_twin() {
    // Between two ticks.
    let now = NOW + Duration::from_micros(400);
    let at = Transform::from_xyz(0.0, 1.0, -1.0).with_rotation(Quat::from_rotation_y(0.3));
    for (seed, stretches) in [(1, false), (2, true), (3, false)] {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let poses = random_poses(&mut random, stretches);
        let set = field_of(120, ScaleKind::NonUniform);
        let states: Vec<_> = (0..120)
            .map(|index| match seed {
                3 => AnimationState::automatic(index),
                _ => random_state(&mut random, &poses, now),
            })
            .collect();

        let mut bevys = Stage::new(How::Entities);
        furnish(&mut bevys, true);
        let paint = bevys.standard(Color::srgb(0.8, 0.4, 0.2).into());
        let parent = bevys.spawn((at, Visibility::default()));
        for (place, state) in set.iter().zip(&states) {
            let mesh = posed::in_pose(&posed::mesh(), &poses.pose(*state, now, 0.2));
            let look = (Mesh3d(bevys.mesh(mesh)), paint.clone());
            bevys.spawn((look, Transform::from(place), ChildOf(parent)));
        }
        let expected = bevys.picture();

        let mut stage = Stage::new(How::Set(None));
        furnish(&mut stage, true);
        let paint = stage.standard(Color::srgb(0.8, 0.4, 0.2).into());
        let mesh = stage.mesh(posed::mesh());
        // States lie behind a word of something else.
        let data = states.iter().map(|state| {
            let [start, playing]: [u32; 2] = bytemuck::cast(*state);
            [7, start, playing]
        });
        let set = set.with_data(data.collect::<Vec<[u32; 3]>>()).unwrap();
        let entity = stage.spawn_set(&set, (mesh, paint), at);
        let poses = stage.add(poses);
        let source = match seed {
            3 => AnimationSource::Automatic,
            _ => AnimationSource::InData { first_word: 1 },
        };
        stage.entity(entity).insert(InstanceAnimation {
            source,
            ..poses.into()
        });
        stand_at(&mut stage, now);
        let ours = stage.picture();
        assert_same_picture(&format!("twin-{seed}"), &ours, &expected);
        stage.verify();
        // The comparison sees time.
        stand_at(&mut stage, now + Duration::from_millis(70));
        let later = stage.picture();
        assert!(different_pixels(&format!("twin-{seed}-later"), &later, &ours).is_err());
    }
}
