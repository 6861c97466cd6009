//! Faults on purpose, one after the other: the device refuses to create something, does not build a
//! kernel, or does not map a buffer. The app goes on, says so, and draws the scene as before once
//! the device does what it is asked for.

use crate::{
    Written,
    log::Log,
    scene::{How, Stage, different_pixels, field, field_of, posed},
    write_sets, written_set,
};
use bevy::{
    light::{DirectionalLightShadowMap, PointLightShadowMap},
    prelude::*,
    render::settings::WgpuSettings,
    time::TimeUpdateStrategy,
};
use bevy_gpu_culling::{
    cull::{Fault, Faults, policy::RETRY_AFTER},
    instance::ScaleKind,
    prelude::*,
};
use image::RgbaImage;
use std::time::Duration;

/// What scenes are made of. It is there from the start.
struct Props {
    cube: Handle<Mesh>,
    ball: Handle<Mesh>,
    card: Handle<Mesh>,
    red: MeshMaterial3d<StandardMaterial>,
    glass: MeshMaterial3d<StandardMaterial>,
    torus: Handle<MeshletMesh>,
    pole: Handle<Mesh>,
    camera: Entity,
}

/// An app with lights and a camera that hides.
fn stage() -> (Stage, Props) {
    let mut stage = Stage::on(How::Set(None), WgpuSettings::default(), |app| {
        app.insert_resource(DirectionalLightShadowMap { size: 256 })
            .insert_resource(PointLightShadowMap { size: 128 })
            // The wind stands still.
            .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::ZERO));
        write_sets(app);
    });
    stage.lights(true);
    let eye = Transform::from_xyz(0.0, 3.0, 7.0).looking_at(Vec3::new(0.5, 0.0, 0.0), Vec3::Y);
    let camera = stage.camera(eye, InstanceOcclusion::default());
    let red = StandardMaterial::from(Color::srgb(0.9, 0.3, 0.2));
    let glass = StandardMaterial {
        alpha_mode: AlphaMode::Blend,
        ..StandardMaterial::from(Color::srgba(0.2, 0.4, 0.9, 0.5))
    };
    let torus = Torus::new(0.1, 0.3).mesh();
    let torus = torus.major_resolution(16).minor_resolution(8).build();
    let settings = MeshletSettings {
        lods: Some(LodSettings::default()),
        ..default()
    };
    let props = Props {
        cube: stage.mesh(Cuboid::new(0.5, 0.4, 0.6)),
        ball: stage.mesh(Sphere::new(0.2).mesh().ico(1).unwrap()),
        card: stage.mesh(Rectangle::new(0.4, 0.4)),
        red: stage.standard(red),
        glass: stage.standard(glass),
        torus: stage.add(MeshletMesh::from_mesh(&torus, &settings).unwrap()),
        pole: stage.mesh(posed::mesh()),
        camera,
    };
    // So that each picture shows something.
    stage.spawn((Mesh3d(props.ball.clone()), props.red.clone()));
    (stage, props)
}

/// Sets of each kind, from their start through an edit and a move of the camera.
fn play(stage: &mut Stage, props: &Props) -> Vec<Entity> {
    let at = |x| Transform::from_xyz(x, 0.0, 0.0);
    let levels = InstanceLods {
        levels: vec![InstanceLod::new(props.cube.clone(), 0.05)],
        ..default()
    };
    let balls = (props.ball.clone(), props.red.clone());
    let cubes = (props.cube.clone(), props.red.clone());
    let leveled = stage.spawn_set(&field(300, true), balls.clone(), at(0.2));
    stage.entity(leveled).insert(levels);
    stage.spawn((
        InstanceImpostor { error: 0.06 },
        Mesh3d(props.card.clone()),
        props.red.clone(),
        ChildOf(leveled),
    ));
    let stretched = field_of(200, ScaleKind::NonUniform);
    let tags: Vec<_> = (0..200).collect();
    let tagged = stretched.with_tags(tags).unwrap().keep_previous(true);
    let tagged = stage.spawn_set(&tagged, cubes.clone(), at(-0.4));
    let glass = (props.ball.clone(), props.glass.clone());
    let blended = stage.spawn_set(&field(80, false), glass, at(0.7));
    stage.entity(blended).insert(Wind {
        strength: 0.2,
        height: 0.2,
        ..default()
    });
    let uniforms = stage.spawn_set(&field(60, true), cubes, at(1.0));
    stage.entity(uniforms).insert(InstanceMeshUniforms);
    let of_meshlets = stage.add(field(50, false));
    let of_meshlets = stage.spawn((
        MeshletMesh3d(props.torus.clone()),
        props.red.clone(),
        GpuInstances(of_meshlets),
        at(-0.9),
    ));
    let scattered = stage.spawn((
        Mesh3d(props.ball.clone()),
        props.red.clone(),
        Scatter {
            spacing: 2.0,
            radius: 6.0,
            ..default()
        },
        Transform::from_xyz(0.0, -1.5, 0.0),
    ));
    let poles = (props.pole.clone(), props.red.clone());
    let posed = stage.spawn_set(&field(40, true), poles, at(0.5));
    let poses = stage.add(posed::poses());
    stage
        .entity(posed)
        .insert(InstanceAnimation { poses, ..default() });
    let written = written_set(stage, field(30, false));
    let written = stage.spawn((
        Mesh3d(props.ball.clone()),
        props.red.clone(),
        written,
        at(-1.2),
    ));
    stage.update(3);
    for set in [leveled, tagged] {
        stage.edit_set(set, |set| {
            set.extend(field(400, true).iter()).unwrap();
            set.hide(3).unwrap();
        });
    }
    stage.update(2);
    let mut camera = stage.entity(props.camera);
    camera.get_mut::<Transform>().unwrap().translation.x += 0.5;
    stage.update(3);
    let others = [uniforms, of_meshlets, scattered, posed, written];
    [leveled, tagged, blended]
        .into_iter()
        .chain(others)
        .collect()
}

/// Has the sets go, and what was made for them.
fn end(stage: &mut Stage, props: &Props, sets: &[Entity]) {
    for set in sets {
        stage.entity(*set).despawn();
    }
    stage.app.insert_resource(Written::default());
    let mut camera = stage.entity(props.camera);
    camera.get_mut::<Transform>().unwrap().translation.x -= 0.5;
    rest(stage, props);
}

/// Enough frames for what is tried again, or no longer used. Nothing is drawn in them.
fn rest(stage: &mut Stage, props: &Props) {
    set_active(stage, props, false);
    stage.update(RETRY_AFTER as usize + 1);
    set_active(stage, props, true);
}

/// Switches the camera, and the shadows.
fn set_active(stage: &mut Stage, props: &Props, is_active: bool) {
    let mut camera = stage.entity(props.camera);
    camera.get_mut::<Camera>().unwrap().is_active = is_active;
    cast_shadows(stage, is_active);
}

/// Switches the shadows.
fn cast_shadows(stage: &mut Stage, is_active: bool) {
    let world = stage.app.world_mut();
    let mut lights = world.query::<AnyOf<(&mut DirectionalLight, &mut PointLight)>>();
    for (sun, lamp) in lights.iter_mut(world) {
        if let Some(mut sun) = sun {
            sun.shadow_maps_enabled = is_active;
        }
        if let Some(mut lamp) = lamp {
            lamp.shadow_maps_enabled = is_active;
        }
    }
}

/// Which calls have a fault.
#[derive(Clone, Copy, Debug)]
enum Calls {
    One,
    /// All from one on, as if memory were full.
    AllFrom,
}

/// Panics if the picture is not the expected one.
fn compare(stage: &mut Stage, expected: &RgbaImage, what: &str) {
    let picture = stage.picture();
    if let Err(error) = different_pixels("fault", &picture, expected) {
        panic!("{what}: {error}");
    }
}

/// Tries each call that could have the fault, from the first on; with a software adapter, which
/// takes seconds for each, every 47th. Returns the number of tries.
fn each_call(fault: Fault, calls: Calls) -> u64 {
    let log = Log::start();
    let (mut stage, props) = stage();
    let step = if stage.is_software() { 47 } else { 1 };
    let sets = play(&mut stage, &props);
    let expected = stage.picture();
    end(&mut stage, &props, &sets);
    let (mut first, mut tries) = (0, 0);
    loop {
        let before = log.lines().len();
        let failing = match calls {
            Calls::One => first..first + 1,
            Calls::AllFrom => first..u64::MAX,
        };
        let faults = Faults::inject(fault, failing);
        let sets = play(&mut stage, &props);
        let refused = faults.refused();
        drop(faults);
        stage.assert_runs("a fault");
        let Some(what) = refused.first() else {
            println!("{fault:?}, {calls:?}: {tries} of {first} calls");
            return tries;
        };
        let told = log.lines().split_off(before);
        if std::env::var_os("FAULTS").is_some() {
            println!("{first} {what}: {told:?}");
        }
        // One per thing that is refused, not one per frame; and if a list of survivors cannot grow,
        // what did not fit.
        let is_overflow =
            |line: &&String| line.contains("did not fit") || line.contains("the room grows");
        let overflows = told.iter().filter(is_overflow).count();
        let max = if let Calls::One = calls { 1 } else { 24 };
        let is_brief = overflows <= 1 && told.len() - overflows <= max;
        assert!(is_brief, "call {first}, {what}: {told:?}");
        if told.is_empty() {
            // Nothing is missing, or only for some frames.
            compare(&mut stage, &expected, &format!("call {first}, {what}"));
        } else {
            rest(&mut stage, &props);
            let text = format!("call {first}, {what}, {told:?}");
            compare(&mut stage, &expected, &text);
        }
        stage.verify();
        end(&mut stage, &props, &sets);
        first += step;
        tries += 1;
    }
}

/// What a culler consists of besides kernels. Without one of these, the culling was once off for
/// good.
const PARTS: [&str; 3] = [
    "gpu_culling no channel",
    "tables of the culling",
    "counts of draws",
];

/// One fault at the start.
#[derive(Clone, Copy, Debug)]
enum AtStart {
    /// Of the call with this number.
    Call(Fault, u64),
    /// A refusal of the first thing that errors call so.
    First(&'static str),
}

impl AtStart {
    fn inject(self) -> Faults {
        match self {
            Self::Call(fault, call) => Faults::inject(fault, call..call + 1),
            Self::First(what) => Faults::inject_into(what, Fault::Refused, 0..1),
        }
    }
}

/// An app that starts on a device that refuses one kernel or buffer, or does not build a kernel,
/// takes another tier, or draws without what it lacks, and looks the same.
#[test]
fn each_refusal_at_the_start_is_survived() {
    const FAULTS: [Fault; 2] = [Fault::Refused, Fault::NotBuilt];
    let log = Log::start();
    let (expected, tries) = {
        let counts = FAULTS.map(|fault| (fault, Faults::inject(fault, 0..0)));
        let (mut stage, props) = stage();
        let calls = counts.map(|(fault, faults)| (fault, faults.calls()));
        play(&mut stage, &props);
        // A software adapter takes long for each.
        let tries: Vec<_> = match stage.is_software() {
            true => {
                let kernels = FAULTS.map(|fault| AtStart::Call(fault, 0));
                let parts = PARTS.map(AtStart::First);
                kernels.into_iter().chain(parts).collect()
            }
            false => {
                let each = |(fault, calls): (Fault, u64)| {
                    (0..calls).map(move |call| AtStart::Call(fault, call))
                };
                calls.into_iter().flat_map(each).collect()
            }
        };
        (stage.picture(), tries)
    };
    for at_start in tries {
        let before = log.lines().len();
        let faults = at_start.inject();
        let (mut stage, props) = stage();
        play(&mut stage, &props);
        let refused = faults.refused();
        drop(faults);
        stage.assert_runs("a fault at the start");
        let told = log.lines().split_off(before);
        if std::env::var_os("FAULTS").is_some() {
            println!("{at_start:?} {refused:?}: {told:?}");
        }
        let text = format!("{at_start:?}, {refused:?}, {told:?}");
        let max = match at_start {
            // The next tier is taken.
            AtStart::Call(Fault::NotBuilt, _) => 1,
            _ => 3,
        };
        assert!(refused.len() == 1 && told.len() <= max, "{text}");
        // If nothing is told, nothing is missing.
        if !told.is_empty() {
            rest(&mut stage, &props);
        }
        compare(&mut stage, &expected, &text);
        stage.verify();
    }
}

/// The driver builds no kernel that is first needed once the app runs. The app goes on without what
/// they do, and says so once for each.
#[test]
fn kernels_that_are_not_built_are_done_without() {
    let log = Log::start();
    let (mut stage, props) = stage();
    let faults = Faults::inject(Fault::NotBuilt, 0..u64::MAX);
    let sets = play(&mut stage, &props);
    let refused = faults.refused();
    drop(faults);
    stage.assert_runs("kernels that are not built");
    let told = log.lines();
    let is_brief = !told.is_empty() && told.len() <= refused.len();
    assert!(is_brief, "{refused:?}: {told:#?}");
    // What needs none of them is drawn.
    assert!(stage.report().instances > 0);
    end(&mut stage, &props, &sets);
    stage.assert_runs("sets whose kernels are not built go");
    assert_eq!(log.lines(), told);
}

/// Memory is full from the first frame on, or from the first frame with sets; then there is some.
/// The camera draws all the time; a software adapter takes long for shadows.
#[test]
fn memory_that_was_full_for_a_while_is_asked_for_again() {
    // Faults are of all threads.
    let _alone = Log::start();
    let (mut stage, props) = stage();
    play(&mut stage, &props);
    let expected = stage.picture();
    let is_software = stage.is_software();
    drop(stage);
    // A software adapter takes a minute for each.
    for is_first in [false, true].into_iter().take(2 - usize::from(is_software)) {
        let full = || Faults::inject(Fault::Refused, 0..u64::MAX);
        let at_start = is_first.then(full);
        let (mut stage, props) = self::stage();
        let later = (!is_first).then(full);
        play(&mut stage, &props);
        drop((at_start, later));
        stage.assert_runs("full memory");
        cast_shadows(&mut stage, false);
        // What is asked for again may need something that is asked for again.
        stage.update(2 * RETRY_AFTER as usize + 4);
        cast_shadows(&mut stage, true);
        let text = format!("full from the first frame on: {is_first}");
        compare(&mut stage, &expected, &text);
        stage.verify();
    }
}

#[test]
fn each_refusal_is_survived() {
    assert!(each_call(Fault::Refused, Calls::One) > 1);
}

#[test]
fn memory_that_is_full_from_any_call_on_is_survived() {
    assert!(each_call(Fault::Refused, Calls::AllFrom) > 1);
}

#[test]
fn each_buffer_that_is_not_mapped_is_survived() {
    for fault in [Fault::MapFailed, Fault::MapUnanswered] {
        for calls in [Calls::One, Calls::AllFrom] {
            assert!(each_call(fault, calls) > 0);
        }
    }
}
