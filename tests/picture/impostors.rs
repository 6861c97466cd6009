//! Impostors: each instance looks like an entity with the mesh and the material of its level.

use super::{
    eye,
    materials::{Stripes, add_stripes},
    red,
};
use crate::scene::{How, SIZE, Stage, Stages, assert_same_picture, field};
use bevy::{
    camera::visibility::VisibilityRange,
    core_pipeline::prepass::{DeferredPrepass, DepthPrepass, MotionVectorPrepass, NormalPrepass},
    light::NotShadowCaster,
    pbr::DefaultOpaqueRendererMethod,
    prelude::*,
};
use bevy_gpu_culling::prelude::*;
use core::f32::consts::FRAC_PI_4;

/// On the GPU and on the CPU. That the two tiers of the GPU keep the same instances is tested
/// elsewhere.
const TIERS: [CullingTier; 2] = [CullingTier::Subgroup, CullingTier::Cpu];

/// Errors of the coarser level and of the impostor.
const ERRORS: [f32; 2] = [0.02, 0.05];

/// Where the set stands.
fn place() -> Transform {
    Transform::from_xyz(0.5, -0.3, -1.0)
        .with_rotation(Quat::from_rotation_y(0.3))
        .with_scale(Vec3::splat(1.2))
}

/// The full mesh, a coarser one, and two triangles without indices.
fn meshes(stage: &mut Stage) -> [Handle<Mesh>; 3] {
    let mut card = Mesh::from(Rectangle::new(0.7, 0.5));
    card.duplicate_vertices();
    card.remove_attribute(Mesh::ATTRIBUTE_UV_0);
    [
        stage.mesh(Sphere::new(0.3)),
        stage.mesh(Cuboid::new(0.4, 0.4, 0.4)),
        stage.mesh(card),
    ]
}

/// The impostor's material.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Look {
    Blue,
    Masked,
    Blended,
    /// A material of another type.
    Striped,
}

/// Gives an entity the impostor's material.
fn dress(stage: &mut Stage, entity: Entity, look: Look) {
    let alpha_mode = match look {
        Look::Blue => AlphaMode::Opaque,
        Look::Masked => AlphaMode::Mask(0.3),
        Look::Blended => AlphaMode::Blend,
        Look::Striped => {
            let color = LinearRgba::rgb(0.2, 0.8, 0.9);
            let material = MeshMaterial3d(stage.add(Stripes { color }));
            stage.entity(entity).insert(material);
            return;
        }
    };
    let material = stage.standard(StandardMaterial {
        base_color: Color::srgba(0.2, 0.4, 0.95, 0.6),
        alpha_mode,
        ..default()
    });
    stage.entity(entity).insert(material);
}

/// The level of an instance at a transform in the world: 2 is the impostor.
fn level_of(transform: &Transform, errors: [f32; 2]) -> usize {
    level_of_sphere(transform, errors, RADIUS)
}

/// The same with another radius.
fn level_of_sphere(transform: &Transform, errors: [f32; 2], radius: f32) -> usize {
    let begin = begin_of(transform, errors);
    let apart = eye().translation.distance(transform.translation);
    let apart = apart - radius * transform.scale.x;
    begin.iter().filter(|begin| apart >= **begin).count()
}

/// The radius by which sets are tested, around all meshes.
const RADIUS: f32 = 0.7;

/// The distances at which an instance's coarser level and impostor begin: of its sphere.
fn begin_of(transform: &Transform, errors: [f32; 2]) -> [f32; 2] {
    let pixels = SIZE.y as f32 / 2.0 / (FRAC_PI_4 / 2.0).tan();
    errors.map(|error| error * transform.scale.x * pixels)
}

pub fn stage(how: How) -> Stage {
    let mut stage = Stage::with(how, add_stripes);
    // Entities have one mesh for cameras and lights.
    let world = stage.app.world_mut();
    if let Some(mut settings) = world.get_resource_mut::<GpuCullingSettings>() {
        settings.shadow_lod_pixels = settings.lod_pixels;
    }
    stage
}

/// A set with a coarser level and an impostor. Returns both entities.
pub fn spawn(stage: &mut Stage, set: &InstanceSet, look: Look, fade: f32) -> [Entity; 2] {
    let [full, coarser, card] = meshes(stage);
    let material = stage.standard(red());
    let parent = stage.spawn_set(set, (full, material), place());
    stage.entity(parent).insert(CullingRadius(RADIUS));
    stage.entity(parent).insert(InstanceLods {
        levels: vec![InstanceLod::new(coarser, ERRORS[0])],
        fade,
        ..default()
    });
    let error = ERRORS[1];
    let child = (InstanceImpostor { error }, Mesh3d(card), ChildOf(parent));
    let child = stage.spawn(child);
    dress(stage, child, look);
    [parent, child]
}

/// The same as entities, one per instance and level in which it is drawn.
fn spawn_entities(stage: &mut Stage, set: &InstanceSet, look: Look, fade: f32) {
    let meshes = meshes(stage);
    let material = stage.standard(red());
    let mut count = [0; 3];
    for instance in set.iter() {
        let transform = place() * Transform::from(instance);
        let level = level_of(&transform, ERRORS);
        count[level] += 1;
        let [first, second] = begin_of(&transform, ERRORS);
        let of_center = |distance: f32| distance + RADIUS * transform.scale.x;
        let near = of_center(first)..of_center((first * (1.0 + fade)).min(second));
        let far = of_center(second)..of_center(second * (1.0 + fade));
        let margins = [
            (0.0..0.0, near.clone()),
            (near, far.clone()),
            (far, 1e6..1e6),
        ];
        for (at, (start_margin, end_margin)) in margins.into_iter().enumerate() {
            let entity = (Mesh3d(meshes[at].clone()), transform);
            let entity = match fade > 0.0 {
                true => stage.spawn((
                    entity,
                    VisibilityRange {
                        start_margin,
                        end_margin,
                        use_aabb: false,
                    },
                )),
                false if at == level => stage.spawn(entity),
                false => continue,
            };
            match at {
                2 => dress(stage, entity, look),
                _ => drop(stage.entity(entity).insert(material.clone())),
            }
        }
    }
    assert!(count.iter().all(|count| *count > 15), "{count:?}");
}

#[test]
fn far_instances_look_like_entities_with_the_impostors_mesh_and_material() {
    let stages = Stages::new(&stage);
    let set = field(400, true);
    for look in [Look::Blue, Look::Masked, Look::Striped, Look::Blended] {
        let expected = stages.draw(How::Entities, |stage| {
            spawn_entities(stage, &set, look, 0.0);
            stage.lights(true);
            stage.camera(eye(), Msaa::Sample4);
        });
        // One material on every tier is enough.
        let tiers = if look == Look::Striped {
            &TIERS[..]
        } else {
            &TIERS[..1]
        };
        for &tier in tiers {
            let (picture, report) = stages.with(How::Set(Some(tier)), |stage| {
                spawn(stage, &set, look, 0.0);
                stage.lights(true);
                stage.camera(eye(), Msaa::Sample4);
                let drawn = stage.picture_and_report();
                stage.verify();
                drawn
            });
            let name = format!("{look:?} impostors on {tier}");
            assert_same_picture(&name, &picture, &expected);
            let camera = report.views.iter().find(|view| view.name == "camera");
            let camera = camera.unwrap();
            let kept: u64 = camera.levels.iter().map(|level| level.visible).sum();
            assert_eq!((camera.levels.len(), kept), (3, camera.visible), "{name}");
            assert_eq!(camera.levels[2].triangles, camera.levels[2].visible * 2);
            assert_eq!((camera.tested, report.instances), (400, 400), "{name}");
        }
    }
}

/// In forward passes, in prepasses, deferred, masked, and with several samples per pixel.
#[test]
fn an_instance_fades_into_its_impostor() {
    let stages = Stages::new(&stage);
    let set = field(400, true);
    let fade = 0.6;
    let spawn_in = |stage: &mut Stage, look| match stage.how {
        How::Entities => spawn_entities(stage, &set, look, fade),
        How::Set(_) => drop(spawn(stage, &set, look, fade)),
    };
    for look in [Look::Blue, Look::Masked] {
        let forward = |how| {
            stages.draw(how, |stage| {
                spawn_in(stage, look);
                stage.lights(false);
                stage.camera(eye(), ());
            })
        };
        let expected = forward(How::Entities);
        let tiers = if look == Look::Blue {
            &TIERS[..]
        } else {
            &TIERS[..1]
        };
        for &tier in tiers {
            let name = format!("{look:?} impostors fade on {tier}");
            assert_same_picture(&name, &forward(How::Set(Some(tier))), &expected);
        }
    }
    let prepasses = |how| {
        stages.draw(how, |stage| {
            spawn_in(stage, Look::Blue);
            stage.lights(false);
            let prepasses = (DepthPrepass, NormalPrepass, MotionVectorPrepass);
            stage.camera(eye(), (prepasses, Msaa::Sample4));
        })
    };
    let name = "impostors fade in prepasses";
    assert_same_picture(name, &prepasses(How::Set(None)), &prepasses(How::Entities));
    let deferred = |how| {
        stages.draw(how, |stage| {
            let method = DefaultOpaqueRendererMethod::deferred();
            stage.app.insert_resource(method);
            spawn_in(stage, Look::Blue);
            stage.lights(false);
            stage.camera(eye(), (DepthPrepass, DeferredPrepass, Msaa::Off));
        })
    };
    let name = "deferred impostors fade";
    assert_same_picture(name, &deferred(How::Set(None)), &deferred(How::Entities));
}

/// A change of an impostor.
type Step = fn(&mut EntityWorldMut);

/// Steps through changes at run time. Each is compared with entities in the same state.
#[test]
fn an_impostor_follows_its_parent_and_its_own_components() {
    let stages = Stages::new(&stage);
    let mut stage = stage(How::Set(None));
    let [parent, child] = spawn(&mut stage, &field(400, true), Look::Blue, 0.0);
    stage.lights(true);
    stage.camera(eye(), ());
    let compare = |name: &str, stage: &mut Stage, set: &InstanceSet, look| {
        let expected = stages.draw(How::Entities, |stage| {
            spawn_entities(stage, set, look, 0.0);
            stage.lights(true);
            stage.camera(eye(), ());
        });
        assert_same_picture(name, &stage.picture(), &expected);
        stage.verify();
    };
    dress(&mut stage, child, Look::Striped);
    stage
        .entity(child)
        .remove::<MeshMaterial3d<StandardMaterial>>();
    compare(
        "another material",
        &mut stage,
        &field(400, true),
        Look::Striped,
    );

    // The set is edited: a part of it is replaced, and it grows.
    let handle = stage
        .entity(parent)
        .get::<GpuInstances>()
        .unwrap()
        .0
        .clone();
    let other: Vec<_> = field(300, true).iter().collect();
    let mut edited = field(400, true);
    for set in [None, Some(&mut edited)] {
        let mut sets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
        let mut asset = set.is_none().then(|| sets.get_mut(&handle).unwrap());
        let set = match (set, &mut asset) {
            (Some(set), _) => set,
            (None, Some(asset)) => asset,
            (None, None) => continue,
        };
        set.splice(100..150, other[..50].iter().copied()).unwrap();
        set.extend(other[50..].iter().copied()).unwrap();
    }
    compare("an edited set", &mut stage, &edited, Look::Striped);

    // Another set.
    let set = field(500, true);
    let handle = stage.add(set.clone());
    stage.entity(parent).insert(GpuInstances(handle));
    compare("another set", &mut stage, &set, Look::Striped);

    // Hidden, without a material, with a mesh that is not loaded, detached and despawned: the
    // parent draws its levels at every distance.
    let levels_alone = stages.draw(How::Set(None), |stage| {
        let [_, child] = spawn(stage, &set, Look::Blue, 0.0);
        stage.entity(child).despawn();
        stage.lights(true);
        stage.camera(eye(), ());
    });
    let mesh = stage.entity(child).get::<Mesh3d>().unwrap().clone();
    let world = stage.app.world();
    let material = world.get::<MeshMaterial3d<Stripes>>(child).unwrap();
    let material = material.clone();
    let steps: [(&str, Step); 4] = [
        ("hidden", |child| {
            child.insert(Visibility::Hidden);
        }),
        ("without a material", |child| {
            child.remove::<MeshMaterial3d<Stripes>>();
        }),
        ("without a mesh", |child| {
            child.insert(Mesh3d::default());
        }),
        ("detached", |child| {
            child.remove::<ChildOf>();
        }),
    ];
    for (name, step) in steps {
        step(&mut stage.entity(child));
        assert_same_picture(name, &stage.picture(), &levels_alone);
        let again = (mesh.clone(), material.clone(), Visibility::Inherited);
        stage.entity(child).insert((again, ChildOf(parent)));
        let name = format!("no longer {name}");
        compare(&name, &mut stage, &set, Look::Striped);
    }
    stage.entity(child).despawn();
    assert_same_picture("despawned", &stage.picture(), &levels_alone);
}

/// A set without coarser levels has an impostor, too; so does one that is drawn from one
/// `MeshUniform` per instance. A radius and a range of the parent hold for both.
#[test]
fn any_set_has_an_impostor() {
    let stages = Stages::new(&stage);
    let set = field(400, true);
    let range = VisibilityRange::abrupt(4.0, 12.0);
    for name in ["expanded", "ranged", "with a radius", "without shadows"] {
        let radius = if name == "with a radius" { 0.6 } else { RADIUS };
        let expected = stages.draw(How::Entities, |stage| {
            let [full, _, card] = meshes(stage);
            let material = stage.standard(red());
            for instance in set.iter() {
                let transform = place() * Transform::from(instance);
                let entity = if level_of_sphere(&transform, ERRORS, radius) == 2 {
                    let entity = stage.spawn((Mesh3d(card.clone()), transform));
                    dress(stage, entity, Look::Blue);
                    if name == "without shadows" {
                        stage.entity(entity).insert(NotShadowCaster);
                    }
                    entity
                } else {
                    stage.spawn((Mesh3d(full.clone()), material.clone(), transform))
                };
                if name == "ranged" {
                    stage.entity(entity).insert(range.clone());
                }
            }
            stage.lights(true);
            stage.camera(eye(), ());
        });
        let picture = stages.draw(How::Set(None), |stage| {
            let [parent, child] = spawn(stage, &set, Look::Blue, 0.0);
            stage.entity(parent).remove::<InstanceLods>();
            match name {
                "expanded" => drop(stage.entity(parent).insert(InstanceMeshUniforms)),
                "ranged" => {
                    let range = InstanceVisibilityRange(range.clone());
                    stage.entity(parent).insert(range);
                }
                "with a radius" => drop(stage.entity(parent).insert(CullingRadius(radius))),
                _ => drop(stage.entity(child).insert(NotShadowCaster)),
            }
            stage.lights(true);
            stage.camera(eye(), ());
        });
        assert_same_picture(&format!("impostors, {name}"), &picture, &expected);
    }
}
