//! Reports per set and per camera, against a count on the CPU.

use super::{box_mesh, eye, moved, red};
use crate::scene::{How, Stage, field};
use bevy::{
    camera::{
        Viewport,
        primitives::{CascadesFrusta, Frustum},
    },
    light::{CascadeShadowConfigBuilder, DirectionalLightShadowMap, PointLightShadowMap},
    prelude::*,
};
use bevy_gpu_culling::{
    prelude::*,
    render::{SetReport, ViewKind},
};

/// Number of a set's boxes that touch the inside of some of a frustum's planes.
fn count(set: &InstanceSet, at: &Transform, frustum: &Frustum, planes: &[usize]) -> u64 {
    let half = box_mesh().half_size;
    let radius = half.length() * at.scale.abs().max_element();
    let touches = |center: Vec3| {
        let inside = |plane: &usize| {
            let plane = frustum.half_spaces[*plane].normal_d();
            plane.dot(center.extend(1.0)) + radius > 0.0
        };
        planes.iter().all(inside)
    };
    let centers = set.iter().map(|one| at.transform_point(one.translation));
    centers.filter(|center| touches(*center)).count() as u64
}

/// Planes of a camera: all but the far one.
const OF_CAMERA: [usize; 5] = [0, 1, 2, 3, 4];
/// Planes of a cascade: all but the near one.
const OF_CASCADE: [usize; 5] = [0, 1, 2, 3, 5];

/// Two cameras beside each other.
fn cameras(stage: &mut Stage) -> [Entity; 2] {
    let far = Transform::from_xyz(9.0, 5.0, 11.0).looking_at(Vec3::new(-2.0, 0.0, 1.0), Vec3::Y);
    [(0, eye()), (1, far)].map(|(place, at)| {
        let viewport = Viewport {
            physical_position: UVec2::new(160 * place, 0),
            physical_size: UVec2::new(160, 200),
            ..default()
        };
        let camera = Camera {
            order: place as isize,
            viewport: Some(viewport),
            ..default()
        };
        stage.camera(at, camera)
    })
}

/// A sun with two cascades per camera.
fn sun(stage: &mut Stage) -> Entity {
    stage
        .app
        .insert_resource(DirectionalLightShadowMap { size: 64 });
    let cascades = CascadeShadowConfigBuilder {
        num_cascades: 2,
        first_cascade_far_bound: 6.0,
        maximum_distance: 15.0,
        ..default()
    };
    let sun = DirectionalLight {
        shadow_maps_enabled: true,
        ..default()
    };
    let at = Transform::from_xyz(4.0, 9.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.spawn((sun, cascades.build(), at))
}

#[test]
fn each_set_and_each_camera_has_its_counters() {
    for tier in [None, Some(CullingTier::Cpu)] {
        let mut stage = Stage::new(How::Set(tier));
        let placed = moved().with_scale(Vec3::splat(1.3));
        let sets = [
            (field(2000, false), Transform::IDENTITY),
            (field(700, false), placed),
        ];
        let mesh = stage.mesh(box_mesh());
        let material = stage.standard(red());
        let [first, second] = [0, 1].map(|index| {
            let (set, at) = &sets[index];
            stage.spawn_set(set, (mesh.clone(), material.clone()), *at)
        });
        // It is tested with the first.
        let handle = stage.entity(first).get::<GpuInstances>().unwrap().clone();
        let blue = stage.standard(StandardMaterial::from(Color::srgb(0.2, 0.3, 0.9)));
        let joined = stage.spawn((handle, Mesh3d(mesh), blue, sets[0].1));
        let cameras = cameras(&mut stage);
        let sun = sun(&mut stage);
        let report = stage.report();

        let frusta = stage.entity(sun).get::<CascadesFrusta>().unwrap().clone();
        let mut of_sets = [[0; 2]; 2];
        for camera in cameras {
            let frustum = *stage.entity(camera).get::<Frustum>().unwrap();
            let seen = |(set, at): &(InstanceSet, Transform)| count(set, at, &frustum, &OF_CAMERA);
            let of_camera = [&sets[0], &sets[1]].map(seen);
            let view = |kind| {
                let views = report.views.iter();
                views.filter(move |view| (view.kind, view.camera) == (kind, Some(camera.into())))
            };
            let own: Vec<_> = view(ViewKind::Camera).map(|view| view.visible).collect();
            assert_eq!(own, [of_camera.iter().sum::<u64>()], "camera {camera}");

            let cascades = &frusta.frusta[&camera];
            let mut of_shadows = Vec::new();
            for frustum in cascades {
                let seen =
                    |(set, at): &(InstanceSet, Transform)| count(set, at, frustum, &OF_CASCADE);
                let of_cascade = [&sets[0], &sets[1]].map(seen);
                of_shadows.push(of_cascade.iter().sum::<u64>());
                for (sum, of_cascade) in of_sets.iter_mut().zip(of_cascade) {
                    sum[1] += of_cascade;
                }
            }
            let own: Vec<_> = view(ViewKind::Cascade).map(|view| view.visible).collect();
            assert_eq!(own, of_shadows, "cascades of {camera}");
            assert!(of_shadows[0] < of_shadows[1], "{of_shadows:?}");
            for (sum, of_camera) in of_sets.iter_mut().zip(of_camera) {
                sum[0] += of_camera;
            }
        }
        let expected = |entity: Entity, set: usize| SetReport {
            entity: entity.into(),
            tested: 2 * sets[set].0.len() as u64,
            visible: of_sets[set][0],
            shadow_tested: 4 * sets[set].0.len() as u64,
            shadow_visible: of_sets[set][1],
        };
        for (entity, set) in [(first, 0), (second, 1), (joined, 0)] {
            let expected = expected(entity, set);
            assert_eq!(report.set(entity), Some(&expected), "set {set}");
            assert!(expected.visible > 50 && expected.visible < expected.tested);
        }
        assert_eq!(report.sets.len(), 3);
        let sum = |of: fn(&SetReport) -> u64| -> u64 {
            report
                .sets
                .iter()
                .filter(|set| set.entity.id() != joined)
                .map(of)
                .sum()
        };
        assert_eq!(
            (sum(|set| set.tested), sum(|set| set.visible)),
            report.cameras()
        );
        let shadows = (sum(|set| set.shadow_tested), sum(|set| set.shadow_visible));
        assert_eq!(shadows, report.shadows());
        assert_eq!(report.set(cameras[0]), None);
    }
}

#[test]
fn lights_that_all_cameras_share_belong_to_none() {
    let mut stage = Stage::new(How::Set(None));
    stage.app.insert_resource(PointLightShadowMap { size: 16 });
    super::red_boxes(&mut stage, &field(300, false), Transform::IDENTITY);
    let cameras = cameras(&mut stage);
    let light = PointLight {
        shadow_maps_enabled: true,
        range: 30.0,
        ..default()
    };
    stage.spawn((light, Transform::from_xyz(0.0, 3.0, 0.0)));
    let report = stage.report();
    let faces = report
        .views
        .iter()
        .filter(|view| view.kind == ViewKind::PointFace);
    let of_faces: Vec<_> = faces.map(|view| view.camera).collect();
    assert_eq!(of_faces, [None; 6]);
    let mut of_cameras: Vec<_> = report
        .views
        .iter()
        .filter_map(|view| Some(view.camera?.id()))
        .collect();
    of_cameras.sort_by_key(|camera| *camera != cameras[0]);
    assert_eq!(of_cameras, cameras);
}

/// The lists of a camera that hides are parts of what its sets test and draw.
#[test]
fn hidden_instances_count_once_per_set() {
    let mut stage = Stage::new(How::Set(None));
    let set = super::red_boxes(&mut stage, &field(2000, false), Transform::IDENTITY);
    let wall = stage.mesh(Cuboid::new(4.0, 3.0, 0.2));
    let material = stage.standard(red());
    stage.spawn((Mesh3d(wall), material, Transform::from_xyz(0.0, 1.0, 3.0)));
    let camera = stage.camera(eye(), ());
    stage.entity(camera).insert(InstanceOcclusion::default());
    stage.update(6);
    let report = stage.report();
    let view = &report.views[0];
    assert!(
        view.occlusion.is_some_and(|lists| lists.early > 0),
        "{view:?}"
    );
    let of_set = report.set(set).unwrap();
    assert_eq!((of_set.tested, of_set.visible), (view.tested, view.visible));
    assert_eq!(of_set.tested, 2000);
    assert!(of_set.visible > 0);
}

/// A set that no view sees has no counters, and so has one that is gone.
#[test]
fn sets_come_and_go() {
    let mut stage = Stage::new(How::Set(None));
    let set = super::red_boxes(&mut stage, &field(300, false), Transform::IDENTITY);
    assert_eq!(stage.report().set(set), None);
    stage.camera(eye(), ());
    assert_eq!(stage.report().set(set).map(|set| set.tested), Some(300));
    stage.entity(set).insert(Visibility::Hidden);
    assert_eq!(stage.report().set(set), None);
    stage.entity(set).insert(Visibility::Inherited);
    assert_eq!(stage.report().set(set).map(|set| set.tested), Some(300));
    stage.entity(set).despawn();
    assert_eq!(stage.report().sets, Vec::new());
}
