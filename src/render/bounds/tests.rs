//! Tests of the bounds of sets.

use super::*;
use crate::instance::InstanceTransform;
use crate::render::animation::{AnimationPoses, PoseTable};
use crate::render::mesh_spheres::{MeshSpheres, forget_changed_meshes};

#[test]
fn a_box_of_huge_instances_is_finite() {
    let at = |x: f32, scale: f32| InstanceTransform::from(Vec3::splat(x)).with_scale(scale);
    for instances in [
        [at(-f32::MAX, 1.0), at(f32::MAX, 1.0)],
        [at(f32::MAX, 1.0), at(f32::MAX, 1.0)],
        [at(0.0, f32::MAX), at(1.0, 1.0)],
    ] {
        let set = InstanceSet::from_transforms(instances).unwrap_or_default();
        let sphere = BoundingSphere {
            center: Vec3::Y,
            radius: 10.0,
        };
        let aabb = set_aabb(&set, sphere);
        assert!(
            aabb.center.is_finite() && aabb.half_extents.is_finite(),
            "{aabb:?}"
        );
        assert!(aabb.half_extents.min_element() >= 10.0, "{aabb:?}");
    }
}

#[test]
fn an_edit_of_a_set_does_not_read_the_vertices_of_its_mesh() -> Result {
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, AssetPlugin::default()))
        .init_asset::<Mesh>()
        .init_asset::<InstanceSet>()
        .init_asset::<AnimationPoses>()
        .init_resource::<PoseTable>()
        .init_resource::<MeshSpheres>()
        .init_resource::<CpuClock>()
        .add_systems(
            PostUpdate,
            (forget_changed_meshes, update_bounds)
                .chain()
                .after(bevy::asset::AssetEventSystems),
        );
    let sphere = |side: f32| Cuboid::from_length(side).mesh().build();
    let world = app.world_mut();
    let mesh = world.resource_mut::<Assets<Mesh>>().add(sphere(2.0));
    let set = InstanceSet::from_transforms([Vec3::ZERO])?;
    let set = world.resource_mut::<Assets<InstanceSet>>().add(set);
    let parts = (Mesh3d(mesh.clone()), GpuInstances(set.clone()));
    let entity = world.spawn(parts).id();
    let radius = |app: &mut App| {
        app.update();
        let sphere = app.world().get::<SetSphere>(entity).copied();
        sphere.map(|sphere| (sphere.all.radius * 1000.0).round() as u32)
    };
    assert_eq!(radius(&mut app), Some(1732));

    // Nobody is told that the mesh has changed, so whoever reads it again is found out.
    let edit = |app: &mut App, x: f32| -> Result {
        let mut sets = app.world_mut().resource_mut::<Assets<InstanceSet>>();
        sets.get_mut(&set)
            .ok_or("the set is gone")?
            .set(0, Vec3::X * x)?;
        Ok(())
    };
    let mut meshes = app.world_mut().resource_mut::<Assets<Mesh>>();
    *meshes.get_mut_untracked(&mesh).ok_or("the mesh is gone")? = sphere(4.0);
    edit(&mut app, 5.0)?;
    assert_eq!(radius(&mut app), Some(1732));
    let center = app.world().get::<Aabb>(entity).map(|aabb| aabb.center.x);
    // Bounds grow only.
    assert_eq!(center, Some(2.5), "the edit was followed");

    // Now it has.
    let mut meshes = app.world_mut().resource_mut::<Assets<Mesh>>();
    *meshes.get_mut(&mesh).ok_or("the mesh is gone")? = sphere(6.0);
    assert_eq!(radius(&mut app), Some(5196));
    Ok(())
}

#[test]
fn the_box_reaches_around_the_largest_instance_at_any_rotation() {
    let set = InstanceSet::from_transforms([
        InstanceTransform::from(Vec3::new(-1.0, 0.0, 0.0)),
        InstanceTransform::from(Vec3::new(3.0, 5.0, 0.0)).with_scale(2.0),
    ])
    .unwrap_or_default();
    let aabb = set_aabb(
        &set,
        BoundingSphere {
            center: Vec3::Y,
            radius: 0.5,
        },
    );
    // Besides what is added for rounding.
    let is_around = |corner: Vec3, expected: Vec3| corner.abs_diff_eq(expected, 1e-5);
    assert!(is_around(aabb.min().into(), Vec3::new(-4.0, -3.0, -3.0)));
    assert!(is_around(aabb.max().into(), Vec3::new(6.0, 8.0, 3.0)));
    assert_eq!(
        set_aabb(
            &InstanceSet::new(),
            BoundingSphere {
                center: Vec3::ZERO,
                radius: 1.0
            }
        ),
        Aabb::default()
    );
}
