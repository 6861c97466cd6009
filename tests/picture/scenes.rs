//! Scenes as instances look like scenes that Bevy spawns once per instance.

use crate::{
    log::Log,
    scene::{How, Stage, assert_same_picture, different_pixels, field},
};
use bevy::{
    camera::visibility::RenderLayers, math::Affine3A, mesh::skinning::SkinnedMesh, prelude::*,
    world_serialization::WorldInstanceReady,
};
use bevy_gpu_culling::prelude::*;
use std::sync::{Arc, Mutex};

/// How often a scene was spawned, and the parts of the last one.
pub(super) type Spawned = Arc<Mutex<(usize, Vec<Entity>)>>;

pub(super) fn watch(stage: &mut Stage) -> Spawned {
    let spawned = Spawned::default();
    let (into, also) = (spawned.clone(), spawned.clone());
    stage
        .app
        .add_observer(move |ready: On<InstanceSceneReady>| {
            let mut spawned = into.lock().unwrap();
            *spawned = (spawned.0 + 1, ready.parts.clone());
        });
    stage.app.add_observer(move |_: On<WorldInstanceReady>| {
        also.lock().unwrap().0 += 1;
    });
    spawned
}

/// Waits until scenes were spawned `count` times in all. Returns the parts of the last one.
pub(super) fn wait_for(stage: &mut Stage, spawned: &Spawned, count: usize) -> Vec<Entity> {
    for _ in 0..2000 {
        stage.update(1);
        let (seen, parts) = spawned.lock().unwrap().clone();
        if seen >= count {
            assert_eq!(seen, count);
            return parts;
        }
        std::thread::sleep(core::time::Duration::from_millis(5));
    }
    panic!("{:?} of {count}", spawned.lock().unwrap());
}

/// Where the trees stand.
fn place() -> Transform {
    Transform::from_xyz(0.5, -2.0, -4.0)
        .with_rotation(Quat::from_rotation_y(0.3))
        .with_scale(Vec3::new(0.9, 0.7, 0.8))
}

fn furnish(stage: &mut Stage) -> Handle<WorldAsset> {
    stage.lights(false);
    let eye = Transform::from_xyz(0.0, 4.0, 14.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.camera(eye, ());
    stage
        .app
        .world()
        .resource::<AssetServer>()
        .load("tree.glb#Scene0")
}

#[test]
fn a_scene_looks_as_if_it_was_spawned_at_each_instance() {
    let set = field(20, true);
    let mut bevys = Stage::new(How::Entities);
    let spawned = watch(&mut bevys);
    let tree = furnish(&mut bevys);
    let parent = bevys.spawn((place(), Visibility::default()));
    for instance in set.iter() {
        let root = WorldAssetRoot(tree.clone());
        bevys.spawn((root, Transform::from(instance), ChildOf(parent)));
    }
    wait_for(&mut bevys, &spawned, set.len());
    let expected = bevys.picture();

    let mut stage = Stage::new(How::Set(None));
    let spawned = watch(&mut stage);
    let tree = furnish(&mut stage);
    let handle = stage.add(set);
    let root = (InstanceScene(tree.clone()), GpuInstances(handle), place());
    let root = stage.spawn(root);
    let parts = wait_for(&mut stage, &spawned, 1);
    assert_eq!(parts.len(), 4);
    assert_same_picture("scene", &stage.picture(), &expected);
    // All parts of a tree are tested together.
    assert_eq!(stage.report().instances, 20);

    // The parts follow the entity to another set.
    let other = GpuInstances(stage.add(field(3, false)));
    stage.entity(root).insert(other.clone());
    let picture = stage.picture();
    assert!(different_pixels("scene-other-set", &picture, &expected).is_err());
    for part in &parts {
        assert_eq!(stage.entity(*part).get::<GpuInstances>(), Some(&other));
    }

    // They are spawned again when the scene changes, as it does by hot reloading.
    let world = stage.app.world_mut();
    let mut scenes = world.resource_mut::<Assets<WorldAsset>>();
    let mut scene = scenes.get_mut(&tree).unwrap();
    let mut meshes = scene.world.query_filtered::<Entity, With<Mesh3d>>();
    let first = meshes.iter(&scene.world).next().unwrap();
    scene.world.despawn(first);
    drop(scene);
    let fewer = wait_for(&mut stage, &spawned, 2);
    assert_eq!(fewer.len(), 3);
    assert!(!fewer.iter().any(|part| parts.contains(part)));
    assert!(stage.app.world().get_entity(parts[0]).is_err());

    // They go with the component.
    stage.entity(root).remove::<InstanceScene>();
    let none = stage.picture();
    assert!(none.pixels().all(|pixel| pixel == none.get_pixel(0, 0)));
    assert!(stage.entity(root).get::<Children>().is_none());
}

/// A component that cannot be copied.
#[derive(Component)]
struct Unregistered;

/// Names a mesh of the scene, and an entity without a mesh.
#[derive(Component, Reflect)]
#[reflect(Component)]
struct Friends {
    #[entities]
    mesh: Entity,
    #[entities]
    other: Entity,
}

#[test]
fn what_a_set_cannot_have_is_left_out_and_named() {
    let log = Log::start();
    let mut stage = Stage::new(How::Set(None));
    let spawned = watch(&mut stage);
    stage.app.register_type::<Friends>();
    let mesh = Mesh3d(stage.mesh(Cuboid::default()));
    let material = stage.standard(StandardMaterial::default());
    let mut world = World::new();
    let outer = Transform::from_xyz(1.0, 2.0, 3.0).with_scale(Vec3::new(2.0, 1.0, 0.5));
    let inner = Transform::from_rotation(Quat::from_rotation_x(0.7)).with_scale(Vec3::splat(-2.0));
    let root = world.spawn((outer, Visibility::default())).id();
    let look = (mesh.clone(), material);
    let extra = (Name::new("cube"), RenderLayers::layer(3), Unregistered);
    let cube = world
        .spawn((look.clone(), inner, ChildOf(root), extra))
        .id();
    let hidden = world.spawn((Transform::default(), Visibility::Hidden, ChildOf(root)));
    let hidden = hidden.id();
    let hidden = (look.clone(), Name::new("hidden"), ChildOf(hidden));
    let friends = Friends {
        mesh: world.spawn(hidden).id(),
        other: root,
    };
    world.entity_mut(cube).insert(friends);
    world.spawn((look, SkinnedMesh::default(), ChildOf(root)));
    world.spawn((PointLight::default(), ChildOf(root)));
    world.spawn((Camera3d::default(), ChildOf(root)));
    let scene = InstanceScene(stage.add(WorldAsset::new(world)));
    let set = GpuInstances(stage.add(field(10, false)));
    let root = stage.spawn((scene, set.clone()));
    let parts = wait_for(&mut stage, &spawned, 1);
    stage.update(40);

    let names: Vec<_> = parts
        .iter()
        .map(|part| stage.entity(*part).get::<Name>().unwrap().to_string())
        .collect();
    assert_eq!(names, ["cube", "hidden"]);
    let [cube, hidden] = [parts[0], parts[1]];
    let friends = stage.app.world().get::<Friends>(cube).unwrap();
    assert_eq!((friends.mesh, friends.other), (hidden, Entity::PLACEHOLDER));
    let offset = stage.entity(cube).get::<InstanceOffset>().copied();
    let expected: Affine3A = outer.compute_affine() * inner.compute_affine();
    assert_eq!(offset, Some(InstanceOffset(expected)));
    assert_eq!(
        stage.entity(cube).get::<Transform>(),
        Some(&Transform::IDENTITY)
    );
    assert_eq!(stage.entity(cube).get::<Mesh3d>(), Some(&mesh));
    assert_eq!(stage.entity(cube).get::<GpuInstances>(), Some(&set));
    assert_eq!(
        stage.entity(cube).get::<RenderLayers>(),
        Some(&RenderLayers::layer(3))
    );
    assert_eq!(
        stage.entity(cube).get::<Visibility>(),
        Some(&Visibility::Inherited)
    );
    assert_eq!(
        stage.entity(hidden).get::<Visibility>(),
        Some(&Visibility::Hidden)
    );
    let root = format!("InstanceScene on {root}");
    let left_out = "1 skinned mesh, 1 light and 1 camera of the WorldAsset";
    log.assert_once(&[&root, left_out, "WorldAssetRoot"]);
    log.assert_once(&[&root, "cannot be copied by reflection", "register_type"]);
    let told = log
        .lines()
        .iter()
        .filter(|line| line.contains(&root))
        .count();
    assert_eq!(told, 2, "each once, and no other");
}

/// As apps do that strip colliders from scenes.
#[test]
fn an_observer_may_despawn_parts_and_the_root() {
    let log = Log::start();
    let mut stage = Stage::new(How::Set(None));
    let spawned = watch(&mut stage);
    stage.app.add_observer(
        |added: On<Add<Name>>, names: Query<(&Name, Option<&ChildOf>)>, mut commands: Commands| {
            match names.get(added.entity) {
                Ok((name, _)) if name.as_str() == "collider" => {
                    commands.entity(added.entity).despawn();
                }
                Ok((name, Some(root))) if name.as_str() == "bomb" => {
                    commands.entity(root.parent()).despawn();
                }
                _ => {}
            }
        },
    );
    let look = (
        Mesh3d(stage.mesh(Cuboid::default())),
        stage.standard(StandardMaterial::default()),
    );
    let scene_of = |stage: &mut Stage, names: [&'static str; 3]| {
        let mut world = World::new();
        for name in names {
            world.spawn((Name::new(name), look.clone()));
        }
        InstanceScene(stage.add(WorldAsset::new(world)))
    };
    let set = GpuInstances(stage.add(field(10, false)));
    let scene = scene_of(&mut stage, ["collider", "cube", "collider"]);
    stage.spawn((scene, set.clone()));
    let parts = wait_for(&mut stage, &spawned, 1);
    assert_eq!(parts.len(), 1);
    assert!(stage.entity(parts[0]).contains::<Mesh3d>());

    let scene = scene_of(&mut stage, ["cube", "bomb", "cube"]);
    let root = stage.spawn((scene, set));
    stage.update(3);
    let world = stage.app.world_mut();
    assert!(world.get_entity(root).is_err());
    let mut left = world.query_filtered::<Entity, With<GpuInstances>>();
    assert_eq!(left.iter(world).count(), 2, "the first root and its part");
    // Other tests log meanwhile.
    let lines = log.lines();
    let of_scenes = lines.iter().find(|line| line.contains("render::scene"));
    assert_eq!(of_scenes, None);
}
