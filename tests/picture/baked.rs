//! Impostors from photographs look like the meshes that were photographed.

use crate::{
    eye,
    log::Log,
    scene::{How, Stage, assert_same_picture, field},
    scenes::{self, watch},
};
use bevy::{
    core_pipeline::prepass::{DeferredPrepass, DepthPrepass, MotionVectorPrepass, NormalPrepass},
    pbr::DefaultOpaqueRendererMethod,
    prelude::*,
};
use bevy_gpu_culling::{
    prelude::*,
    render::{ImpostorError, ImpostorMaterial, ViewReport},
};
use image::RgbaImage;
use std::sync::{Arc, Mutex};

/// What was baked.
type Baked = Arc<Mutex<Vec<ImpostorBaked>>>;

fn stage(how: How) -> (Stage, Baked) {
    let baked = Baked::default();
    let into = baked.clone();
    let stage = Stage::with(how, |app| {
        app.add_plugins((ImpostorPlugin, InstanceTintPlugin));
        app.add_observer(move |event: On<ImpostorBaked>| {
            into.lock().unwrap().push(event.event().clone());
        });
    });
    (stage, baked)
}

/// Draws frames until this many entities have an answer.
fn wait_for(stage: &mut Stage, baked: &Baked, count: usize) -> Vec<ImpostorBaked> {
    for _ in 0..3000 {
        stage.update(1);
        stage.wait_for_gpu();
        let baked = baked.lock().unwrap();
        if baked.len() >= count {
            return baked.clone();
        }
        drop(baked);
        std::thread::sleep(core::time::Duration::from_millis(2));
    }
    panic!("{:?} of {count}", baked.lock().unwrap());
}

/// A mesh without symmetries: a trunk and a crown at its side, in two colors.
fn tree() -> Mesh {
    let color = |mesh: Mesh, color: LinearRgba| {
        let colors = vec![color.to_f32_array(); mesh.count_vertices()];
        mesh.with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, colors)
    };
    let trunk = Mesh::from(Cuboid::new(0.12, 0.5, 0.2)).translated_by(Vec3::Y * 0.25);
    let crown = Sphere::new(0.35).mesh().ico(4).unwrap();
    let crown = crown.translated_by(Vec3::new(0.15, 0.7, 0.05));
    let mut tree = color(trunk, LinearRgba::rgb(0.5, 0.25, 0.1));
    tree.merge(&color(crown, LinearRgba::rgb(0.1, 0.6, 0.2)))
        .unwrap();
    tree
}

fn bark() -> StandardMaterial {
    StandardMaterial {
        perceptual_roughness: 0.8,
        ..default()
    }
}

/// Peak signal-to-noise ratio in decibels of two pictures.
fn psnr(a: &RgbaImage, b: &RgbaImage) -> f64 {
    let difference = |(a, b): (&u8, &u8)| (f64::from(*a) - f64::from(*b)).powi(2);
    let pairs = a.as_raw().iter().zip(b.as_raw());
    let mean = pairs.map(difference).sum::<f64>() / a.as_raw().len() as f64;
    10.0 * (255.0 * 255.0 / mean.max(1e-9)).log10()
}

/// The mean of all bytes.
fn mean(picture: &RgbaImage) -> f64 {
    let sum: f64 = picture.as_raw().iter().map(|byte| f64::from(*byte)).sum();
    sum / picture.as_raw().len() as f64
}

fn save(name: &str, picture: &RgbaImage) {
    if let Some(folder) = std::env::var_os("BAKED_OUT") {
        let path = std::path::Path::new(&folder).join(format!("{name}.png"));
        picture.save(path).unwrap();
    }
}

/// A bake in which all instances become cards.
fn bake(sides: ImpostorSides) -> BakeImpostor {
    BakeImpostor {
        below_pixels: 4096.0,
        sides,
        views: 8,
        resolution: 64,
    }
}

/// Trees that stand upright, turned about Y.
fn upright(count: usize) -> InstanceSet {
    let field = field(count, true);
    let trees = field.iter().enumerate().map(|(at, instance)| {
        let tree = Transform::from(instance);
        tree.with_rotation(Quat::from_rotation_y(at as f32))
    });
    InstanceSet::from_transforms(trees.collect::<Vec<_>>()).unwrap()
}

/// A set of trees in light with shadows.
fn spawn(stage: &mut Stage, set: &InstanceSet, camera: impl Bundle) -> Entity {
    let mesh = stage.mesh(tree());
    let material = stage.standard(bark());
    let entity = stage.spawn_set(set, (mesh, material), place());
    stage.lights(true);
    let samples = stage.camera(eye(), Msaa::Sample4);
    stage.entity(samples).insert(camera);
    entity
}

/// Where the set stands: turned and stretched evenly.
fn place() -> Transform {
    Transform::from_xyz(0.3, -0.2, -1.0)
        .with_rotation(Quat::from_rotation_y(0.4))
        .with_scale(Vec3::splat(1.1))
}

fn camera_of(report: &CullingReport) -> &ViewReport {
    let mut views = report.views.iter();
    views.find(|view| view.name == "camera").unwrap()
}

/// Whether cards look like their meshes. The bounds are for views of 64 pixels that are seen up to
/// twice as large. Edges are one pixel off, and cards have no samples at their edges.
fn assert_alike(name: &str, cards: &RgbaImage, meshes: &RgbaImage, min_decibels: f64) {
    save(&format!("{name}-meshes"), meshes);
    save(&format!("{name}-cards"), cards);
    let (decibels, means) = (psnr(cards, meshes), [mean(cards), mean(meshes)]);
    println!("{name}: {decibels:.1} dB, means {means:.1?}");
    assert!(decibels >= min_decibels, "{name}: {decibels:.1} dB");
    let [ours, theirs] = means;
    assert!((ours / theirs - 1.0).abs() < 0.02, "{name}: {means:?}");
    // They are not the same picture.
    assert!(decibels < 45.0, "{name}: {decibels:.1} dB");
}

#[test]
fn cards_look_like_their_mesh() {
    for (sides, set) in [
        (ImpostorSides::All, field(300, true)),
        (ImpostorSides::Above, upright(300)),
    ] {
        let (mut stage, baked) = stage(How::Set(None));
        let entity = spawn(&mut stage, &set, ());
        let expected = stage.picture();
        stage.entity(entity).insert(bake(sides));
        let answers = wait_for(&mut stage, &baked, 1);
        assert_eq!(answers[0].entity, entity);
        assert!(answers[0].result.is_ok(), "{answers:?}");
        let (picture, report) = stage.picture_and_report();
        stage.verify();
        assert_alike(&format!("{sides:?}"), &picture, &expected, 23.0);
        let camera = camera_of(&report);
        let visible: Vec<_> = camera.levels.iter().map(|level| level.visible).collect();
        assert_eq!(visible[0], 0, "{visible:?}");
        assert_eq!(camera.levels[1].triangles, 6 * visible[1]);

        // The cameras and the copies are gone.
        let world = stage.app.world_mut();
        let left = world.query::<&ImpostorStage>().iter(world).count();
        assert_eq!(left, 0);

        // Without the components, meshes are drawn again.
        let mut tree = stage.entity(entity);
        tree.remove::<(BakeImpostor, ImpostorAtlas3d)>();
        assert_eq!(stage.picture(), expected);
        assert!(stage.entity(entity).get::<Children>().is_none());
    }
}

/// What cards look like in other passes is what they look like in the forward pass.
#[test]
fn cards_are_drawn_in_all_passes() {
    let (mut stage, baked) = stage(How::Set(None));
    let set = field(200, true);
    let entity = spawn(&mut stage, &set, ());
    stage.entity(entity).insert(bake(ImpostorSides::All));
    let answers = wait_for(&mut stage, &baked, 1);
    let atlas = answers[0].result.clone().unwrap();
    let mut draw = |name: &str, deferred: bool, camera: &dyn Fn(&mut EntityWorldMut)| {
        stage.clear();
        let method = match deferred {
            true => DefaultOpaqueRendererMethod::deferred(),
            false => DefaultOpaqueRendererMethod::forward(),
        };
        stage.app.insert_resource(method);
        let entity = spawn(&mut stage, &set, Msaa::Off);
        stage.entity(entity).insert(ImpostorAtlas3d {
            atlas: atlas.clone(),
            below_pixels: 4096.0,
        });
        let world = stage.app.world_mut();
        let mut cameras = world.query_filtered::<Entity, With<Camera3d>>();
        let found = cameras.single(world).unwrap();
        camera(&mut world.entity_mut(found));
        let picture = stage.picture();
        stage.verify();
        save(name, &picture);
        picture
    };
    let forward = draw("forward", false, &|_| ());
    let prepasses = draw("prepasses", false, &|camera| {
        camera.insert((DepthPrepass, NormalPrepass, MotionVectorPrepass));
    });
    assert_same_picture("cards with prepasses", &prepasses, &forward);
    let deferred = draw("deferred", true, &|camera| {
        camera.insert((DepthPrepass, DeferredPrepass));
    });
    // The G-buffer holds colors and normals in 8 bits.
    let decibels = psnr(&deferred, &forward);
    assert!(decibels > 35.0, "deferred: {decibels:.1} dB");
}

/// Half of them are drawn by meshes, half by cards, and a part by both.
#[test]
fn meshes_fade_into_cards() {
    let (mut stage, baked) = stage(How::Set(None));
    let entity = spawn(&mut stage, &field(300, true), ());
    let fade = |fade| InstanceLods { fade, ..default() };
    let expected = stage.picture();
    stage.entity(entity).insert((
        BakeImpostor {
            below_pixels: 30.0,
            ..bake(ImpostorSides::All)
        },
        fade(0.0),
    ));
    wait_for(&mut stage, &baked, 1);
    let (sharp, report) = stage.picture_and_report();
    let drawn_once = camera_of(&report).visible;
    assert_alike("sharp", &sharp, &expected, 25.0);
    stage.entity(entity).insert(fade(0.8));
    let (picture, report) = stage.picture_and_report();
    stage.verify();
    assert_alike("fading", &picture, &expected, 25.0);
    assert_ne!(picture, sharp);
    let camera = camera_of(&report);
    let [near, far] = [0, 1].map(|level| camera.levels[level].visible);
    assert!(
        near > 30 && far > 30 && near + far > drawn_once + 10,
        "{near} and {far} of {drawn_once}"
    );
}

/// The largest change of the mean of 16 by 16 pixels between a picture and the next.
fn largest_change(pictures: &[RgbaImage]) -> f64 {
    const SIDE: u32 = 16;
    let (width, height) = pictures[0].dimensions();
    let corners = || (0..height / SIDE).flat_map(|y| (0..width / SIDE).map(move |x| (x, y)));
    let mean = |picture: &RgbaImage, (x, y): (u32, u32)| {
        let square = image::imageops::crop_imm(picture, x * SIDE, y * SIDE, SIDE, SIDE);
        mean(&square.to_image())
    };
    let changes = pictures
        .windows(2)
        .flat_map(|pair| corners().map(|at| (mean(&pair[0], at) - mean(&pair[1], at)).abs()));
    changes.fold(0.0, f64::max)
}

/// A camera backs away from trees until most of them are cards: no picture differs from the one
/// before by much more than if meshes are drawn.
#[test]
fn cards_do_not_pop_up() {
    let (mut stage, baked) = stage(How::Set(None));
    let entity = spawn(&mut stage, &field(300, true), ());
    // No tree is so near that it crosses much of a square from one picture to the next.
    let away = Transform::from_translation(18.0 * eye().forward().as_vec3());
    stage.entity(entity).insert(away);
    let fly = |stage: &mut Stage| {
        let cards = |report: &CullingReport| {
            let levels = &camera_of(report).levels;
            levels.get(1).map_or(0, |level| level.visible)
        };
        let (mut pictures, mut seen) = (Vec::new(), Vec::new());
        for step in 0..16 {
            let world = stage.app.world_mut();
            let mut cameras = world.query_filtered::<&mut Transform, With<Camera3d>>();
            let mut camera = cameras.single_mut(world).unwrap();
            *camera = eye();
            camera.translation += eye().back() * (0.04 * step as f32);
            let (picture, report) = stage.picture_and_report();
            pictures.push(picture);
            seen.push(cards(&report));
        }
        println!("{seen:?}");
        (largest_change(&pictures), seen)
    };
    let (full, _) = fly(&mut stage);
    stage.entity(entity).insert(BakeImpostor {
        below_pixels: 10.0,
        ..bake(ImpostorSides::All)
    });
    wait_for(&mut stage, &baked, 1);
    for fade in [0.3, 0.0] {
        stage
            .entity(entity)
            .insert(InstanceLods { fade, ..default() });
        let (change, cards) = fly(&mut stage);
        println!("fade {fade}: {change:.2}, {full:.2} of meshes");
        assert!(cards[15] > cards[0] + 4, "{cards:?}");
        assert!(change <= 1.5 * full, "fade {fade}: {change} and {full}");
    }
    stage.verify();
}

/// All parts of a scene become one card, at the same distance.
#[test]
fn a_scene_becomes_one_card() {
    let (mut stage, baked) = stage(How::Set(None));
    stage.lights(false);
    let eye = Transform::from_xyz(0.0, 4.0, 14.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.camera(eye, Msaa::Sample4);
    let server = stage.app.world().resource::<AssetServer>();
    let tree = InstanceScene(server.load("tree.glb#Scene0"));
    let handle = stage.add(upright(40));
    let spawned = watch(&mut stage);
    let root = stage.spawn((
        tree,
        GpuInstances(handle),
        Transform::from_xyz(0.0, -2.0, -4.0),
    ));
    let parts = scenes::wait_for(&mut stage, &spawned, 1);
    let (expected, report) = stage.picture_and_report();
    let meshes = camera_of(&report).triangles();
    stage.entity(root).insert(bake(ImpostorSides::Above));
    let answers = wait_for(&mut stage, &baked, 1);
    assert!(answers[0].result.is_ok(), "{answers:?}");
    let (picture, report) = stage.picture_and_report();
    stage.verify();
    assert_alike("scene", &picture, &expected, 20.0);
    let camera = camera_of(&report);
    assert!(
        camera.triangles() <= 6 * camera.visible && meshes > 1000,
        "{report:?}"
    );
    // One card, of the first part.
    let cards = |stage: &mut Stage| {
        let world = stage.app.world_mut();
        let mut cards = world.query_filtered::<&ChildOf, With<InstanceImpostor>>();
        cards.iter(world).map(ChildOf::parent).collect::<Vec<_>>()
    };
    assert_eq!(cards(&mut stage), [parts[0]]);

    // In between, each tree is drawn by all of its parts or by its card.
    let mut shown = stage.entity(root);
    let mut shown = shown.get_mut::<ImpostorAtlas3d>().unwrap();
    shown.below_pixels = 60.0;
    let picture = stage.picture();
    stage.verify();
    assert_alike("scene, some", &picture, &expected, 20.0);

    stage
        .entity(root)
        .remove::<(BakeImpostor, ImpostorAtlas3d)>();
    assert_eq!(stage.picture(), expected);
    assert!(cards(&mut stage).is_empty());
}

/// Entities with the same mesh, material and settings share photographs, which a file keeps.
#[test]
fn photographs_are_shared_saved_and_loaded() {
    let (mut stage, baked) = stage(How::Set(None));
    let mesh = stage.mesh(tree());
    let material = stage.standard(bark());
    let places = [Vec3::ZERO, Vec3::X];
    let entities = places.map(|at| {
        let parts = (mesh.clone(), material.clone());
        stage.spawn_set(&field(50, true), parts, Transform::from_translation(at))
    });
    stage.lights(true);
    stage.camera(eye(), ());
    for entity in entities {
        stage.entity(entity).insert(bake(ImpostorSides::All));
    }
    let answers = wait_for(&mut stage, &baked, 2);
    let atlases = [0, 1].map(|at| answers[at].result.clone().unwrap());
    assert_eq!(atlases[0], atlases[1]);
    let expected = stage.picture();
    let materials = |stage: &mut Stage| {
        let world = stage.app.world_mut();
        let mut cards = world.query::<&MeshMaterial3d<ImpostorMaterial>>();
        cards
            .iter(world)
            .map(|card| card.0.clone())
            .collect::<Vec<_>>()
    };
    let cards = materials(&mut stage);
    assert_eq!((cards.len(), &cards[0]), (2, &cards[1]));

    let world = stage.app.world_mut();
    let known = world
        .resource::<Assets<ImpostorAtlas>>()
        .get(&atlases[0])
        .unwrap();
    let loaded = ImpostorAtlas::from_bytes(&known.to_bytes()).unwrap();
    assert_eq!(&loaded, known);
    let loaded = stage.add(loaded);
    for entity in entities {
        stage
            .entity(entity)
            .remove::<BakeImpostor>()
            .insert(ImpostorAtlas3d {
                atlas: loaded.clone(),
                below_pixels: 4096.0,
            });
    }
    assert_same_picture("loaded cards", &stage.picture(), &expected);
    assert!(!materials(&mut stage).contains(&cards[0]));
}

#[test]
fn what_cannot_be_photographed_is_told() {
    // Other tests count what is logged.
    let _log = Log::start();
    let (mut stage, baked) = stage(How::Set(None));
    stage.camera(eye(), ());
    let set = field(10, false);
    let mesh = stage.mesh(tree());
    let material = stage.standard(bark());
    let standard =
        |stage: &mut Stage| stage.spawn_set(&set, (mesh.clone(), material.clone()), place());
    let bad = [
        BakeImpostor {
            views: 1,
            ..default()
        },
        BakeImpostor {
            resolution: 40,
            ..default()
        },
        BakeImpostor {
            below_pixels: f32::NAN,
            ..default()
        },
        BakeImpostor {
            views: 32,
            resolution: 512,
            ..default()
        },
    ];
    for bake in bad {
        let entity = standard(&mut stage);
        stage.entity(entity).insert(bake);
    }
    // Another material, and none at all.
    let other = MeshMaterial3d(stage.add(InstanceTint::material(Color::WHITE)));
    let entity = stage.spawn_set(&set, (mesh.clone(), other), place());
    stage.entity(entity).insert(bake(ImpostorSides::All));
    let clear = stage.standard(StandardMaterial {
        alpha_mode: AlphaMode::Mask(0.5),
        base_color: Color::NONE,
        ..default()
    });
    let entity = stage.spawn_set(&set, (mesh.clone(), clear), place());
    stage.entity(entity).insert(bake(ImpostorSides::All));
    let answers = wait_for(&mut stage, &baked, 6);
    let errors: Vec<_> = answers
        .iter()
        .map(|answer| answer.result.clone().err().unwrap())
        .collect();
    for (at, setting) in ["views", "resolution", "below_pixels"]
        .into_iter()
        .enumerate()
    {
        let error = errors[at].to_string();
        assert!(error.starts_with(setting), "{error}");
    }
    let count = |is: fn(&ImpostorError) -> bool| errors.iter().filter(|error| is(error)).count();
    assert_eq!(
        count(|error| matches!(error, ImpostorError::TooLarge { .. })),
        1,
        "{errors:?}"
    );
    assert_eq!(
        count(|error| *error == ImpostorError::Material),
        1,
        "{errors:?}"
    );
    assert_eq!(
        count(|error| matches!(error, ImpostorError::Empty(_))),
        1,
        "{errors:?}"
    );
    // All are drawn as if nothing had been asked.
    let report = stage.report();
    assert_eq!(report.instances, 60);
}
