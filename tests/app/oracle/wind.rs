//! Wind bends instances as the twin here says: as entities whose vertices were moved, and if all
//! vertices lean alike, as entities that move.

use super::{
    build::{eye, moved, pane},
    stage,
};
use crate::scene::{How, Stage, assert_same_picture, different_pixels, field_of};
use bevy::{
    camera::visibility::VisibilityRange,
    core_pipeline::prepass::{DepthPrepass, MotionVectorPrepass, NormalPrepass},
    math::Affine3A,
    mesh::VertexAttributeValues,
    prelude::*,
};
use bevy_gpu_culling::instance::ScaleKind;
use bevy_gpu_culling::prelude::*;
use core::f32::consts::TAU;
use core::time::Duration;
use image::RgbaImage;

const WIND: Wind = Wind {
    direction: Vec3::new(1.6, 0.0, 1.2),
    strength: 0.7,
    height: 0.9,
    frequency: 0.25,
    wavelength: 7.0,
    calm_beyond: f32::INFINITY,
};

/// How far a vertex at a height above an instance's origin leans in the world. `at` is the place of
/// the set.
fn bend(
    wind: &Wind,
    (at, instance): (&Affine3A, &Transform),
    index: usize,
    height: f32,
    time: f32,
) -> Vec3 {
    let direction = wind.direction.normalize();
    let origin = at.transform_point3(instance.translation);
    let side = Vec2::new(direction.z, -direction.x);
    let across = Vec2::new(origin.x, origin.z).dot(side) / (3.0 * wind.wavelength);
    let along = origin.dot(direction) / wind.wavelength;
    let phase = TAU * (wind.frequency * time - along) + (TAU * across).sin();
    let tremble = (3.0 * phase + 2.4 * (index % 1024) as f32).sin();
    let gust = 0.5 + 0.35 * phase.sin() + 0.15 * tremble;
    let far = origin.distance(eye().translation) / wind.calm_beyond;
    let calm = (2.0 - 2.0 * far).clamp(0.0, 1.0);
    let share = (height / wind.height).clamp(0.0, 1.0);
    let lean = wind.strength * calm * share * share * gust;
    let up = at.transform_vector3(instance.rotation * Vec3::Y * instance.scale.y);
    let in_set = at.inverse().transform_vector3(direction).length();
    direction * lean * instance.scale.y / in_set - up * (0.4 * lean * lean / wind.height)
}

/// The seconds that have passed, as shaders get them.
fn seconds(stage: &Stage) -> f32 {
    stage.app.world().resource::<Time>().elapsed_secs_wrapped()
}

/// A field of slender boxes on the ground, and the mesh.
fn boxes() -> (InstanceSet, Mesh) {
    let plant = Cuboid::new(0.3, 1.2, 0.2).mesh().build();
    let plant = plant.translated_by(Vec3::Y * 0.6);
    (field_of(220, ScaleKind::NonUniform), plant)
}

/// The same boxes as entities, each with its own bent mesh in the world.
fn bent(stage: &mut Stage, wind: &Wind, offset: Affine3A, at: Transform, time: f32) {
    let (set, plant) = boxes();
    let material = stage.standard(StandardMaterial::default());
    for (index, instance) in set.iter().enumerate() {
        let instance = Transform::from(instance);
        let of_set = at.compute_affine();
        let place = of_set * instance.compute_affine();
        let mut mesh = plant.clone();
        let bends: Vec<_> = {
            let points = mesh.attribute(Mesh::ATTRIBUTE_POSITION);
            let Some(VertexAttributeValues::Float32x3(points)) = points else {
                panic!("boxes have positions");
            };
            let heights = points
                .iter()
                .map(|point| offset.transform_point3(Vec3::from(*point)).y);
            let of = (&of_set, &instance);
            heights
                .map(|height| bend(wind, of, index, height, time))
                .collect()
        };
        let whole = place * offset;
        transform(&mut mesh, &whole, &bends);
        let mesh = stage.mesh(mesh);
        stage.spawn((Mesh3d(mesh), material.clone()));
    }
}

/// Moves the vertices of a mesh to the world, and each a bit further.
fn transform(mesh: &mut Mesh, to_world: &Affine3A, bends: &[Vec3]) {
    let normals = to_world.matrix3.inverse().transpose();
    if let Some(VertexAttributeValues::Float32x3(all)) = mesh.attribute_mut(Mesh::ATTRIBUTE_NORMAL)
    {
        for normal in all {
            *normal = (normals * Vec3::from(*normal)).normalize().into();
        }
    }
    if let Some(VertexAttributeValues::Float32x3(all)) =
        mesh.attribute_mut(Mesh::ATTRIBUTE_POSITION)
    {
        for (point, bend) in all.iter_mut().zip(bends) {
            *point = (to_world.transform_point3(Vec3::from(*point)) + bend).into();
        }
    }
}

/// Lights, perhaps with shadows, and a camera. Bevy 0.20.1 gives a cascade the distances from
/// another view, if one has the number in the render world that its camera has in the main world.
/// So what depends on distances is compared without shadows.
fn furnish(stage: &mut Stage, wind: &Wind) {
    stage.lights(wind.calm_beyond.is_infinite());
    stage.camera(eye(), ());
}

#[test]
fn bent_instances_look_like_entities_with_bent_meshes() {
    let offset = Transform::from_xyz(0.1, 0.2, -0.1).with_scale(Vec3::new(1.2, 0.9, 1.0));
    let calm = Wind {
        calm_beyond: 11.0,
        ..WIND
    };
    for (name, wind, offset) in [
        ("wind", WIND, Transform::IDENTITY),
        ("wind-offset", WIND, offset),
        ("wind-calm", calm, Transform::IDENTITY),
    ] {
        let mut sets = stage(How::Set(None));
        sets.tick(Duration::from_secs_f32(0.0));
        let (set, plant) = boxes();
        let mesh = sets.mesh(plant);
        let material = sets.standard(StandardMaterial::default());
        let entity = sets.spawn_set(&set, (mesh, material), moved());
        sets.entity(entity)
            .insert((wind, InstanceOffset::from(offset)));
        furnish(&mut sets, &wind);
        sets.tick(Duration::from_secs_f32(1.3));
        sets.update(1);
        sets.tick(Duration::from_secs_f32(0.0));
        let ours = sets.picture();
        sets.verify();

        let mut entities = stage(How::Entities);
        bent(
            &mut entities,
            &wind,
            offset.compute_affine(),
            moved(),
            seconds(&sets),
        );
        furnish(&mut entities, &wind);
        assert_same_picture(name, &ours, &entities.picture());

        // The comparison sees the wind, and the time.
        sets.tick(Duration::from_secs_f32(0.9));
        sets.update(1);
        sets.tick(Duration::from_secs_f32(0.0));
        let later = sets.picture();
        assert!(different_pixels(&format!("{name}-later"), &later, &ours).is_err());
        sets.entity(entity).get_mut::<Wind>().unwrap().strength = 0.1;
        let weak = sets.picture();
        assert!(different_pixels(&format!("{name}-weak"), &weak, &later).is_err());
        sets.entity(entity).remove::<Wind>();
        let still = sets.picture();
        assert!(different_pixels(&format!("{name}-still"), &still, &ours).is_err());
    }
}

/// The instances of a set, or the same as entities, of a mesh that lies above the height
/// of the wind: all of its vertices lean alike.
fn high(stage: &mut Stage) -> (Entity, Vec<Transform>) {
    let mesh = Cuboid::new(0.5, 0.4, 0.6).mesh().build();
    let mesh = stage.mesh(mesh.translated_by(Vec3::Y * 1.2));
    let material = stage.standard(StandardMaterial::default());
    let set = field_of(220, ScaleKind::Uniform);
    let at = Transform::from_xyz(0.3, 0.2, -1.0).with_rotation(Quat::from_rotation_y(0.3));
    let places: Vec<Transform> = set
        .iter()
        .map(|instance| at * Transform::from(instance))
        .collect();
    let entity = match stage.how {
        How::Entities => {
            let parent = stage.spawn((Transform::IDENTITY, Visibility::default()));
            for place in &places {
                stage.spawn((
                    Mesh3d(mesh.clone()),
                    material.clone(),
                    *place,
                    ChildOf(parent),
                ));
            }
            parent
        }
        How::Set(_) => stage.spawn_set(&set, (mesh, material), at),
    };
    (entity, places)
}

/// Pictures of motion vectors while the wind blows, stops with the time, and blows again.
fn motions(how: How, frames: &mut Vec<f32>) -> Vec<RgbaImage> {
    let mut stage = stage(how);
    let (entity, places) = high(&mut stage);
    if how != How::Entities {
        stage.entity(entity).insert(WIND);
    }
    let prepasses = (DepthPrepass, NormalPrepass, MotionVectorPrepass);
    let camera = stage.camera(eye(), (prepasses, Msaa::Off));
    pane(&mut stage, camera);
    let mut pictures = Vec::new();
    let mut time = 0.0;
    for (frame, step) in [0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.2, 0.0, 0.0, 0.25]
        .into_iter()
        .enumerate()
    {
        stage.tick(Duration::from_secs_f32(step));
        // The twin needs the time of the frame before the frame: as the set had it.
        match how {
            How::Entities => time = frames[frame],
            How::Set(_) => {}
        }
        if how == How::Entities {
            let children = stage.app.world().get::<Children>(entity).unwrap().to_vec();
            for (index, (child, place)) in children.iter().zip(&places).enumerate() {
                let moved = bend(&WIND, (&Affine3A::IDENTITY, place), index, 5.0, time);
                let mut child = stage.entity(*child);
                child.get_mut::<Transform>().unwrap().translation = place.translation + moved;
            }
        }
        pictures.push(stage.picture_now());
        if how != How::Entities {
            frames.push(seconds(&stage));
        }
    }
    pictures
}

#[test]
fn the_wind_has_the_motion_of_entities_that_move() {
    let mut frames = Vec::new();
    let sets = motions(How::Set(None), &mut frames);
    let entities = motions(How::Entities, &mut frames);
    for (frame, (set, entities)) in sets.iter().zip(&entities).enumerate().skip(6) {
        different_pixels(&format!("motion-wind-{frame}"), set, entities).unwrap();
    }
    // The comparison sees motion.
    assert!(different_pixels("motion-wind-stops", &sets[6], &sets[8]).is_err());
}

/// A view keeps what the wind blows into it: plants behind the left edge lean to the right.
#[test]
fn what_leans_into_view_is_drawn() {
    let wind = Wind {
        direction: Vec3::X,
        strength: 4.0,
        height: 1.0,
        wavelength: f32::INFINITY,
        ..WIND
    };
    // The second one is wide, and leans further in the world than in its own space.
    let wide = Transform::from_scale(Vec3::new(4.0, 0.5, 1.0));
    for (range, at) in [(false, Transform::IDENTITY), (true, wide)] {
        let mut stage = stage(How::Set(None));
        stage.tick(Duration::from_secs_f32(0.0));
        let mesh = stage.mesh(
            Cuboid::new(0.2, 2.0, 0.2)
                .mesh()
                .build()
                .translated_by(Vec3::Y),
        );
        let material = stage.standard(StandardMaterial::default());
        let places = (0..40).map(|i| {
            let world = Vec3::new(-8.0, 0.0, 0.1 * i as f32 - 2.0);
            Transform::from_translation(world / at.scale)
        });
        let set = InstanceSet::from_transforms(places).unwrap();
        let entity = stage.spawn_set(&set, (mesh, material), at);
        if range {
            // A second room of slots: the set fades.
            let range = VisibilityRange {
                end_margin: 90.0..100.0,
                ..default()
            };
            stage.entity(entity).insert(InstanceVisibilityRange(range));
        }
        stage.lights(false);
        stage.camera(Transform::from_xyz(0.0, 1.0, 8.0), ());
        // None is in view.
        let still = stage.picture();
        let first = still.pixels().next().unwrap();
        assert!(still.pixels().all(|pixel| pixel == first));
        stage.entity(entity).insert(wind);
        stage.tick(Duration::from_secs_f32(1.0));
        stage.update(1);
        stage.tick(Duration::from_secs_f32(0.0));
        let blown = stage.picture();
        let seen = blown.pixels().filter(|pixel| *pixel != first).count();
        assert!(seen > 100, "{seen}");
        // Every instance is tested by a sphere that it does not leave.
        let views = stage.report().views;
        assert_eq!(views.iter().map(|view| view.visible).sum::<u64>(), 40);
    }
}
