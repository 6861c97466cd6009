use super::*;
use crate::render::animation::{AnimationPoses, PoseTable};
use crate::render::mesh_spheres::{MeshSpheres, forget_changed_meshes};
use bevy::ecs::system::SystemId;

fn lods(errors: &[f32]) -> InstanceLods {
    let level = |error: &f32| InstanceLod {
        error: *error,
        ..InstanceLod::default()
    };
    InstanceLods {
        levels: errors.iter().map(level).collect(),
        ..InstanceLods::default()
    }
}

#[test]
fn problems_name_level_value_and_remedy() {
    assert_eq!(problem_of(&lods(&[0.0, 0.1, 0.1, 2.0]), None, None), None);
    for (errors, named) in [
        (&[0.1, 0.05][..], "level 2"),
        (&[f32::NAN], "level 1"),
        (&[-1.0], "-1"),
        (&[f32::INFINITY], "inf"),
        (&[0.1; 8], "8 levels"),
    ] {
        let problem = problem_of(&lods(errors), None, None).unwrap_or_default();
        assert!(problem.contains(named), "{errors:?}: {problem}");
    }
    let fades = InstanceLods {
        fade: f32::NAN,
        ..lods(&[0.1])
    };
    let problem = problem_of(&fades, None, None).unwrap_or_default();
    assert!(problem.contains("fade is NaN"), "{problem}");
    for (reason, named) in [
        (IgnoreReason::Meshlets, "MeshletMesh3d"),
        (IgnoreReason::Impostor, "InstanceImpostor"),
    ] {
        let problem = problem_of(&lods(&[0.1]), Some(reason), None).unwrap_or_default();
        assert!(problem.contains(named), "{problem}");
    }
    let impostor = SetImpostor {
        entity: Entity::PLACEHOLDER,
        error: 0.2,
    };
    assert_eq!(problem_of(&lods(&[0.1]), None, Some(&impostor)), None);
    let problem = problem_of(&lods(&[0.1, 0.2]), None, Some(&impostor)).unwrap_or_default();
    assert!(problem.contains("level 2 is not drawn"), "{problem}");
}

#[test]
fn the_sphere_grows_around_the_meshes_of_all_levels() {
    let sphere = BoundingSphere {
        center: Vec3::ZERO,
        radius: 1.0,
    };
    let level = |(center, radius)| SetLod {
        mesh: SetLodMesh::Indices(0..3),
        error: 0.0,
        sphere: Some(BoundingSphere { center, radius }),
    };
    let levels = SetLods {
        levels: [(Vec3::ZERO, 0.1), (Vec3::X, 4.0)].map(level).into(),
        fade: 0.0,
        full: None,
    };
    assert_eq!(levels.enlarge(sphere).radius, 5.0);
}

/// A world with the system, an entity with one level, and the level's mesh.
fn world_with_level() -> (World, SystemId, Entity, AssetId<Mesh>) {
    let mut world = World::new();
    world.init_resource::<Assets<Mesh>>();
    world.init_resource::<Messages<AssetEvent<Mesh>>>();
    world.init_resource::<MeshSpheres>();
    world.init_resource::<Assets<AnimationPoses>>();
    world.init_resource::<PoseTable>();
    world.init_resource::<Messages<AssetEvent<AnimationPoses>>>();
    world.init_resource::<CpuClock>();
    let system = world.register_system(resolve_lods);
    let mesh = world
        .resource_mut::<Assets<Mesh>>()
        .add(Cuboid::from_length(1.0));
    let id = mesh.id();
    let levels = vec![InstanceLod::new(mesh, 0.1)];
    let lods = InstanceLods {
        levels,
        ..default()
    };
    let entity = world.spawn((lods, GpuInstances::default())).id();
    (world, system, entity, id)
}

/// The radius around the level's mesh, in thousandths.
fn radius(world: &World, entity: Entity) -> Option<u32> {
    let sphere = world.get::<SetLods>(entity)?.levels.first()?.sphere?;
    Some((sphere.radius * 1000.0).round() as u32)
}

#[test]
fn levels_are_resolved_again_if_one_of_their_own_meshes_changes() -> Result {
    let (mut world, system, entity, id) = world_with_level();
    world.run_system(system)?;
    assert_eq!(radius(&world, entity), Some(866));

    // Removed without an event: to be seen only if the levels are resolved again.
    let mut meshes = world.resource_mut::<Assets<Mesh>>();
    let other = meshes.add(Cuboid::from_length(3.0)).id();
    meshes.remove_untracked(id).ok_or("the mesh is gone")?;
    world.write_message(AssetEvent::Added { id: other });
    world.write_message(AssetEvent::Unused { id });
    world.run_system(system)?;
    assert_eq!(radius(&world, entity), Some(866));

    let mut meshes = world.resource_mut::<Assets<Mesh>>();
    meshes.insert(id, Cuboid::from_length(4.0).into())?;
    world.write_message(AssetEvent::Modified { id });
    world.run_system_cached(forget_changed_meshes)?;
    world.run_system(system)?;
    assert_eq!(radius(&world, entity), Some(3464));
    Ok(())
}

#[test]
fn levels_that_are_removed_and_inserted_again_in_one_frame_stay() -> Result {
    let (mut world, system, entity, _) = world_with_level();
    world.run_system(system)?;
    let lods = world
        .entity_mut(entity)
        .take::<InstanceLods>()
        .ok_or("no levels")?;
    world.entity_mut(entity).insert(lods);
    world.run_system(system)?;
    assert!(world.entity(entity).contains::<SetLods>());

    world.entity_mut(entity).remove::<InstanceLods>();
    world.run_system(system)?;
    assert!(!world.entity(entity).contains::<SetLods>());
    Ok(())
}

#[test]
fn levels_are_drawn_once_meshlets_or_an_impostor_are_gone() -> Result {
    let (mut world, system, entity, _) = world_with_level();
    world.entity_mut(entity).insert(MeshletMesh3d::default());
    world.run_system(system)?;
    assert_eq!(radius(&world, entity), None);
    world.entity_mut(entity).remove::<MeshletMesh3d>();
    world.run_system(system)?;
    assert_eq!(radius(&world, entity), Some(866));

    world.entity_mut(entity).insert(InstanceImpostor::default());
    world.run_system(system)?;
    assert_eq!(radius(&world, entity), None);
    world.entity_mut(entity).remove::<InstanceImpostor>();
    world.run_system(system)?;
    assert_eq!(radius(&world, entity), Some(866));
    Ok(())
}
