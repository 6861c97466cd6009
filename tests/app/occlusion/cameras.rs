//! Cameras that cannot hide in their main pass hide in Bevy's prepasses, and need nothing more.

use super::{Way, camera_report, sequences};
use crate::scene::{SIZE, Stage};
use bevy::{
    camera::Viewport,
    core_pipeline::prepass::{DeferredPrepass, DepthPrepass, MotionVectorPrepass, NormalPrepass},
    ecs::component::Component,
    light::{Atmosphere, atmosphere::ScatteringMedium},
    pbr::AtmosphereSettings,
    prelude::*,
    render::occlusion_culling::OcclusionCulling,
};
use bevy_gpu_culling::prelude::*;

/// Whether a camera has a depth prepass and Bevy's occlusion culling.
fn given(stage: &mut Stage, camera: Entity) -> [bool; 2] {
    let camera = stage.entity(camera);
    [
        camera.contains::<DepthPrepass>(),
        camera.contains::<OcclusionCulling>(),
    ]
}

/// Number of instances that the camera hides; `None` if it does not hide.
fn hidden(stage: &mut Stage) -> Option<u64> {
    camera_report(stage).1.map(|lists| lists.hidden)
}

const HIDES: InstanceOcclusion = InstanceOcclusion {
    near_pixels: 1e9,
    may_pause: false,
};

/// Gives the camera the component, and takes it away. Beside it, the depth prepass may stay.
fn check<C: Component + Default>(stage: &mut Stage, camera: Entity, name: &str, stays: bool) {
    stage.entity(camera).insert((C::default(), HIDES));
    assert!(hidden(stage) > Some(500), "{name} hides");
    assert_eq!(given(stage, camera), [true; 2], "{name}");
    // Without the pass, it hides in its main pass.
    stage.entity(camera).remove::<C>();
    assert!(hidden(stage) > Some(500), "without {name}");
    assert_eq!(given(stage, camera), [false; 2], "without {name}");
    stage.entity(camera).insert(C::default());
    stage.update(2);
    assert_eq!(given(stage, camera), [true; 2], "{name} again");
    stage.entity(camera).remove::<InstanceOcclusion>();
    assert_eq!(hidden(stage), None, "{name} does not hide");
    assert_eq!(
        given(stage, camera),
        [stays, false],
        "{name} without occlusion"
    );
    assert!(stage.entity(camera).contains::<C>());
    stage.entity(camera).remove::<(C, DepthPrepass)>();
}

#[test]
fn cameras_with_any_prepass_hide() {
    let mut stage = sequences::stage(None);
    let camera = sequences::build(&mut stage).camera;
    let (eye, _) = sequences::step(0);
    stage.entity(camera).insert((eye, Msaa::Off));
    check::<NormalPrepass>(&mut stage, camera, "a normal prepass", true);
    check::<MotionVectorPrepass>(&mut stage, camera, "a prepass of motion vectors", true);
    check::<DeferredPrepass>(&mut stage, camera, "a deferred prepass", true);
    // Its sky is not drawn: there is no atmosphere.
    check::<AtmosphereSettings>(&mut stage, camera, "a sky", false);
}

#[test]
fn what_the_app_gave_stays() {
    let mut stage = sequences::stage(None);
    let camera = sequences::build(&mut stage).camera;
    let (eye, _) = sequences::step(0);
    stage.entity(camera).insert((eye, DepthPrepass, HIDES));
    assert!(hidden(&mut stage) > Some(500));
    assert_eq!(given(&mut stage, camera), [true; 2]);
    stage.entity(camera).remove::<InstanceOcclusion>();
    stage.update(2);
    assert_eq!(given(&mut stage, camera), [true, false]);

    stage.entity(camera).insert((OcclusionCulling, HIDES));
    assert!(hidden(&mut stage) > Some(500));
    stage.entity(camera).remove::<InstanceOcclusion>();
    stage.update(2);
    assert_eq!(given(&mut stage, camera), [true; 2]);
    // Bevy's component alone hides, too.
    assert!(hidden(&mut stage).is_some());
}

/// Mesa's lavapipe (22.3) crashes in the pipelines of Bevy's atmosphere, with or without sets.
#[test]
fn a_camera_with_a_sky_draws_the_same_picture() {
    if sequences::stage(None).is_software() {
        println!("not run: Bevy's atmosphere needs a GPU");
        return;
    }
    sequences::Sequence {
        name: "sky",
        way: Way::Prepass,
        dress: &|stage, actors| {
            let medium = stage.add(ScatteringMedium::default());
            stage.spawn(Atmosphere::earth(medium));
            stage
                .entity(actors.camera)
                .remove::<DepthPrepass>()
                .insert(AtmosphereSettings::default());
        },
        ..default()
    }
    .assert_equal();
}

/// Bevy's depth pyramid is of whole pictures: in a viewport it would hide entities that are in view.
#[test]
fn a_camera_with_prepasses_and_a_viewport_hides_nothing() {
    let mut stage = sequences::stage(None);
    let camera = sequences::build(&mut stage).camera;
    let (eye, _) = sequences::step(0);
    let all = Viewport {
        physical_size: SIZE,
        ..default()
    };
    let half = Viewport {
        physical_position: UVec2::new(SIZE.x / 2, 0),
        physical_size: UVec2::new(SIZE.x / 2, SIZE.y),
        ..default()
    };
    stage.entity(camera).insert((eye, NormalPrepass, HIDES));
    for (viewport, hides) in [(all.clone(), true), (half, false), (all, true)] {
        stage.entity(camera).get_mut::<Camera>().unwrap().viewport = Some(viewport);
        assert_eq!(hidden(&mut stage) > Some(100), hides);
        assert_eq!(given(&mut stage, camera)[1], hides);
    }
    // What the app takes away is given again.
    stage.entity(camera).remove::<DepthPrepass>();
    assert!(hidden(&mut stage) > Some(100));
    assert_eq!(given(&mut stage, camera), [true; 2]);
}
