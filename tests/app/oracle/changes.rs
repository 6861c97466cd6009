//! Changes while an app runs. After each step the set looks like Bevy's entities.

use super::{
    axes::Light,
    build::{self, eye, ground, lights, members, moved},
    stage,
};
use crate::scene::{How, SIZE, Stage, different_pixels, field};
use bevy::{
    camera::{
        Viewport,
        visibility::{NoFrustumCulling, RenderLayers},
    },
    light::{NotShadowCaster, NotShadowReceiver},
    prelude::*,
};
use bevy_gpu_culling::prelude::*;

/// The scene that the steps change.
pub struct Scene {
    set: Entity,
    mesh: Handle<Mesh>,
    material: Handle<StandardMaterial>,
    camera: Entity,
    sun: Entity,
    lamp: Entity,
    /// An entity that one step spawned and a later one despawns.
    guest: Option<Entity>,
}

type Change = fn(&mut Stage, &mut Scene);

/// The steps: a name for the table, and the change.
pub const STEPS: &[(&str, Change)] = &[
    ("a directional and a point light", |_, _| ()),
    ("`NotShadowCaster`", |stage, scene| {
        insert(stage, scene.set, NotShadowCaster);
    }),
    ("`NotShadowReceiver`", |stage, scene| {
        remove::<NotShadowCaster>(stage, scene.set);
        insert(stage, scene.set, NotShadowReceiver);
    }),
    ("`NotShadowReceiver` removed", |stage, scene| {
        remove::<NotShadowReceiver>(stage, scene.set);
    }),
    ("`RenderLayers` of a light", |stage, scene| {
        let light = build::spot(stage);
        insert(stage, light, RenderLayers::layer(1));
        scene.guest = Some(light);
    }),
    (
        "`RenderLayers` of the set, a camera and a light",
        |stage, scene| {
            respawn(stage, scene);
            insert(stage, scene.set, RenderLayers::layer(1));
            insert(stage, scene.camera, RenderLayers::from_layers(&[0, 1]));
        },
    ),
    ("`RenderLayers` removed", |stage, scene| {
        respawn(stage, scene);
        remove::<RenderLayers>(stage, scene.camera);
        take_guest(stage, scene);
    }),
    ("`shadow_maps_enabled` off", |stage, scene| {
        shadows(stage, scene, false);
    }),
    ("`shadow_maps_enabled` on again", |stage, scene| {
        shadows(stage, scene, true);
    }),
    ("a light despawned, another spawned", |stage, scene| {
        stage.app.world_mut().despawn(scene.lamp);
        scene.guest = Some(build::spot(stage));
    }),
    ("a light moved", |stage, scene| {
        let mut sun = stage.entity(scene.sun);
        sun.get_mut::<Transform>().unwrap().rotate_y(0.6);
        take_guest(stage, scene);
    }),
    ("a camera added, with a viewport", |stage, scene| {
        let away = Transform::from_xyz(-7.0, 2.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y);
        let corner = Camera {
            order: 1,
            viewport: Some(Viewport {
                physical_position: SIZE / 2,
                physical_size: SIZE / 3,
                ..default()
            }),
            ..default()
        };
        scene.guest = Some(stage.camera(away, corner));
    }),
    ("`is_active` off", |stage, scene| {
        active(stage, scene, false);
    }),
    ("`is_active` on again", |stage, scene| {
        active(stage, scene, true);
    }),
    ("a camera removed", take_guest),
    ("a camera moved", |stage, scene| {
        let away = Transform::from_xyz(4.0, 5.0, 6.0).looking_at(Vec3::ZERO, Vec3::Y);
        insert(stage, scene.camera, away);
    }),
    (
        "the mesh's asset swapped for one without indices",
        |stage, scene| {
            let mesh = Mesh::from(Cuboid::new(0.3, 0.7, 0.4));
            let mesh = mesh.with_duplicated_vertices().with_computed_flat_normals();
            stage
                .app
                .world_mut()
                .resource_mut::<Assets<Mesh>>()
                .insert(scene.mesh.id(), mesh)
                .unwrap();
        },
    ),
    (
        "the mesh's asset swapped for one with other attributes",
        |stage, scene| {
            let mesh = super::materials::colored(Sphere::new(0.4).mesh().ico(2).unwrap());
            stage
                .app
                .world_mut()
                .resource_mut::<Assets<Mesh>>()
                .insert(scene.mesh.id(), mesh)
                .unwrap();
        },
    ),
    (
        "the material's asset swapped for an additive one",
        |stage, scene| {
            let material = StandardMaterial {
                base_color: Color::srgba(0.1, 0.4, 0.2, 0.5),
                alpha_mode: AlphaMode::Add,
                ..default()
            };
            let mut materials = stage
                .app
                .world_mut()
                .resource_mut::<Assets<StandardMaterial>>();
            materials.insert(scene.material.id(), material).unwrap();
        },
    ),
    (
        "the material's asset swapped for a masked one",
        |stage, scene| {
            let texture = stage.add(super::materials::checker());
            let material = StandardMaterial {
                base_color_texture: Some(texture),
                alpha_mode: AlphaMode::Mask(0.5),
                ..default()
            };
            let mut materials = stage
                .app
                .world_mut()
                .resource_mut::<Assets<StandardMaterial>>();
            materials.insert(scene.material.id(), material).unwrap();
        },
    ),
    (
        "a second entity with the same set, mesh and material",
        |stage, scene| {
            let at = Transform::from_xyz(0.0, 2.0, -1.0).with_rotation(Quat::from_rotation_x(0.4));
            let parts = (scene.mesh.clone(), MeshMaterial3d(scene.material.clone()));
            scene.guest = Some(match stage.how {
                How::Entities => stage.spawn_set(&field(250, true), parts, at),
                How::Set(_) => {
                    let shared = stage
                        .app
                        .world()
                        .get::<GpuInstances>(scene.set)
                        .unwrap()
                        .clone();
                    stage.spawn((Mesh3d(parts.0), parts.1, shared, at))
                }
            });
        },
    ),
    ("the first of them despawned", |stage, scene| {
        stage.entity(scene.set).despawn();
        scene.set = scene.guest.take().unwrap();
    }),
    ("`Visibility::Hidden`", |stage, scene| {
        insert(stage, scene.set, Visibility::Hidden);
    }),
    (
        "visible again, as a child of a moved entity",
        |stage, scene| {
            insert(stage, scene.set, Visibility::Inherited);
            let parent = stage.spawn((Transform::from_xyz(0.5, 0.3, 0.2), Visibility::default()));
            stage.entity(scene.set).insert(ChildOf(parent));
        },
    ),
];

fn insert(stage: &mut Stage, entity: Entity, bundle: impl Bundle + Clone) {
    for entity in members(stage, entity) {
        stage.entity(entity).insert(bundle.clone());
    }
}

fn remove<B: Bundle>(stage: &mut Stage, entity: Entity) {
    for entity in members(stage, entity) {
        stage.entity(entity).remove::<B>();
    }
}

fn shadows(stage: &mut Stage, scene: &Scene, enabled: bool) {
    let world = stage.app.world_mut();
    world
        .get_mut::<DirectionalLight>(scene.sun)
        .unwrap()
        .shadow_maps_enabled = enabled;
    world
        .get_mut::<PointLight>(scene.lamp)
        .unwrap()
        .shadow_maps_enabled = enabled;
}

fn active(stage: &mut Stage, scene: &Scene, active: bool) {
    let camera = scene.guest.unwrap();
    stage
        .app
        .world_mut()
        .get_mut::<Camera>(camera)
        .unwrap()
        .is_active = active;
}

fn respawn(stage: &mut Stage, scene: &mut Scene) {
    stage.entity(scene.set).despawn();
    let parts = (scene.mesh.clone(), MeshMaterial3d(scene.material.clone()));
    scene.set = stage.spawn_set(&field(250, true), parts, moved());
}

fn take_guest(stage: &mut Stage, scene: &mut Scene) {
    if let Some(guest) = scene.guest.take() {
        stage.app.world_mut().despawn(guest);
    }
}

fn spawn(stage: &mut Stage) -> Scene {
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.add(StandardMaterial::from(Color::srgb(0.9, 0.4, 0.3)));
    let parts = (mesh.clone(), MeshMaterial3d(material.clone()));
    let set = stage.spawn_set(&field(250, true), parts, moved());
    ground(stage);
    // A colorful mesh that no step changes.
    let ball = stage.mesh(super::materials::colored(Sphere::new(1.0).into()));
    let white = stage.standard(StandardMaterial::default());
    stage.spawn((Mesh3d(ball), white, Transform::from_xyz(2.0, -1.5, 2.0)));
    let (sun, lamp) = (build::sun(stage), build::lamp(stage));
    let camera = stage.camera(eye(), ());
    Scene {
        set,
        mesh,
        material,
        camera,
        sun,
        lamp,
        guest: None,
    }
}

#[test]
fn every_change_at_run_time_looks_like_bevys_entities() {
    let mut stages = [stage(How::Set(None)), stage(How::Entities)];
    let mut scenes = stages.each_mut().map(spawn);
    let mut failures = Vec::new();
    for (name, change) in STEPS {
        let mut pictures = Vec::new();
        for (stage, scene) in stages.iter_mut().zip(&mut scenes) {
            change(stage, scene);
            pictures.push(stage.picture());
        }
        let file: String = name
            .chars()
            .filter(|c| c.is_alphanumeric() || *c == ' ')
            .collect();
        let file = format!("change {file}").replace(' ', "-");
        let result = different_pixels(&file, &pictures[0], &pictures[1]);
        let hidden = *name == "`Visibility::Hidden`";
        let views = if hidden { 0 } else { stages[0].verify().0 };
        println!("{name}: {result:?}, {views} views");
        failures.extend(result.err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_caster_that_no_camera_sees_casts_its_shadow() {
    let mut failures = Vec::new();
    let draw = |how: How, light: Light| {
        let mut stage = stage(how);
        let mesh = stage.mesh(Cuboid::new(0.6, 0.4, 0.6));
        let material = stage.standard(StandardMaterial::default());
        // High above the camera's view.
        let high = Transform::from_xyz(0.0, 9.0, -2.0).with_scale(Vec3::new(0.7, 0.4, 0.7));
        stage.spawn_set(&field(60, false), (mesh, material), high);
        ground(&mut stage);
        lights(&mut stage, light);
        let world = stage.app.world_mut();
        let mut placed =
            world.query_filtered::<&mut Transform, Or<(With<DirectionalLight>, With<SpotLight>)>>();
        for mut light in placed.iter_mut(world) {
            *light =
                Transform::from_xyz(0.5, 16.0, -1.5).looking_at(Vec3::new(0.0, 0.0, -2.0), Vec3::X);
        }
        let down =
            Transform::from_xyz(0.0, 1.0, 6.0).looking_at(Vec3::new(0.0, -4.0, -2.0), Vec3::Y);
        stage.camera(down, ());
        let picture = stage.picture();
        if how != How::Entities {
            let camera = stage.report().cameras().1;
            assert_eq!(camera, 0, "the camera must not keep casters");
            assert!(stage.report().shadows().1 > 0, "a light must keep casters");
            stage.verify();
        }
        picture
    };
    for light in [Light::Directional, Light::Spot] {
        let name = format!("caster-outside-{light:?}").to_lowercase();
        let (set, bevy) = (draw(How::Set(None), light), draw(How::Entities, light));
        failures.extend(different_pixels(&name, &set, &bevy).err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn without_frustum_culling_every_instance_is_drawn_in_every_view() {
    let mut stage = stage(How::Set(None));
    let scene = spawn(&mut stage);
    let culled = stage.report();
    assert!(culled.cameras().1 < 250);
    insert(&mut stage, scene.set, NoFrustumCulling);
    stage.update(2);
    let kept = stage.report();
    assert_eq!(kept.cameras(), (250, 250));
    assert_eq!(kept.shadows().0, kept.shadows().1);
    assert_eq!(
        kept.views.len(),
        1 + 4 + 6,
        "one camera, its cascades and the lamp's faces"
    );
    assert_eq!(kept.instances, 250);
    // A set without the component is still tested.
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(StandardMaterial::default());
    stage.spawn_set(&field(100, false), (mesh, material), Transform::IDENTITY);
    stage.update(2);
    let both = stage.report();
    assert_eq!(
        (both.cameras().0, both.instances, both.views.len()),
        (350, 350, 11)
    );
    assert!(both.cameras().1 > 250 && both.cameras().1 < 350);
    stage.verify();
    remove::<NoFrustumCulling>(&mut stage, scene.set);
    stage.update(2);
    assert!(stage.report().cameras().1 < 350 - 100);
}
