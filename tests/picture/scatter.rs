//! Scatter: what the GPU places looks like entities where the twin says, and nothing is placed
//! again without a reason.

use super::{
    box_mesh,
    scenes::{wait_for, watch},
};
use crate::{
    log::Log,
    scene::{How, Stage, assert_same_picture},
};
use bevy::{
    asset::RenderAssetUsages,
    camera::{Viewport, visibility::RenderLayers},
    prelude::*,
    render::render_resource::{Extent3d, TextureDimension, TextureFormat},
};
use bevy_gpu_culling::{prelude::*, render::FrameWork};

/// Texels along a side of the maps.
const TEXELS: u32 = 32;

/// A map whose texels are these fractions of x and z, which go from 0 to 1.
fn map(format: TextureFormat, value: impl Fn(f32, f32) -> f32) -> Image {
    let size = Extent3d {
        width: TEXELS,
        height: TEXELS,
        depth_or_array_layers: 1,
    };
    let at = |texel: u32| texel as f32 / (TEXELS - 1) as f32;
    let values = (0..TEXELS * TEXELS).map(|texel| value(at(texel % TEXELS), at(texel / TEXELS)));
    let data: Vec<u8> = match format {
        TextureFormat::R32Float => values.flat_map(f32::to_le_bytes).collect(),
        _ => values.map(|value| (value * 255.0) as u8).collect(),
    };
    let usage = RenderAssetUsages::default();
    Image::new(size, TextureDimension::D2, data, format, usage)
}

/// What the log says of scatters. Other tests log other things at the same time.
fn told(log: &Log) -> Vec<String> {
    let mut lines = log.lines();
    lines.retain(|line| line.contains("Scatter on "));
    lines
}

/// Hills with a road, on which more grows to one side.
fn hills(stage: &mut Stage) -> Scatter {
    let height = map(TextureFormat::R32Float, |x, z| {
        0.5 + 0.25 * (x * 9.0).sin() + 0.25 * (z * 7.0).cos()
    });
    let density = map(TextureFormat::R8Unorm, |x, _| x);
    let road = map(TextureFormat::R8Unorm, |x, z| {
        f32::from((x - z).abs() < 0.06)
    });
    Scatter {
        seed: 4,
        spacing: 0.7,
        radius: 20.0,
        density_map: Some(stage.add(density)),
        exclusion_map: Some(stage.add(road)),
        height_map: Some(stage.add(height)),
        map_area: Rect::new(-20.0, -18.0, 22.0, 20.0),
        map_heights: -2.0..1.5,
        heights: -1.8..1.2,
        slopes: 0.0..0.75,
        align: 0.8,
        scales: 0.4..1.1,
        ..default()
    }
}

/// What an entity with a scatter looks like.
fn look(stage: &mut Stage) -> (Mesh3d, MeshMaterial3d<StandardMaterial>) {
    let mesh = Mesh3d(stage.mesh(box_mesh()));
    let material = stage.standard(StandardMaterial {
        base_color: Color::srgb(0.4, 0.7, 0.2),
        perceptual_roughness: 0.9,
        ..default()
    });
    (mesh, material)
}

/// The tiles that a window has around a place in the scatter's space.
pub fn window(scatter: &Scatter, eye: Vec3) -> Vec<IVec2> {
    let size = scatter.tile_size();
    let reach = (scatter.radius / size).ceil() as i32;
    let center = (eye.xz() / size).floor().as_ivec2();
    let tiles = (-reach..=reach).flat_map(|z| (-reach..=reach).map(move |x| IVec2::new(x, z)));
    tiles.map(|tile| center + tile).collect()
}

/// Spawns what grows in the tiles, as a set or as entities.
fn spawn(stage: &mut Stage, scatter: &Scatter, at: Transform, tiles: Vec<IVec2>) -> Entity {
    let look = look(stage);
    if stage.how != How::Entities {
        return stage.spawn((look, scatter.clone(), at));
    }
    let parent = stage.spawn((at, Visibility::default()));
    plant(stage, scatter, parent, look, tiles);
    parent
}

/// Spawns entities where the twin says.
fn plant(
    stage: &mut Stage,
    scatter: &Scatter,
    parent: Entity,
    look: impl Bundle + Clone,
    tiles: Vec<IVec2>,
) {
    let images = stage.app.world().resource::<Assets<Image>>();
    let plants = scatter.plants_in(tiles, images).unwrap();
    assert!(plants.len() > 300, "{}", plants.len());
    for place in plants {
        let place = Transform::from(place);
        stage.spawn((look.clone(), place, ChildOf(parent)));
    }
}

/// A camera above the hills.
const EYE: Vec3 = Vec3::new(3.0, 4.0, 9.0);

fn camera(stage: &mut Stage) -> Entity {
    let at = Transform::from_translation(EYE).looking_at(Vec3::new(-1.0, -1.0, -4.0), Vec3::Y);
    stage.camera(at, ())
}

/// The work of a frame, before which `change` happens, and of the frame after it.
fn works(stage: &mut Stage, change: impl FnOnce(&mut Stage)) -> [FrameWork; 2] {
    change(stage);
    // The report arrives in the next frame.
    stage.update(1);
    let works = [(); 2].map(|()| {
        stage.update(1);
        stage.app.world().resource::<CullingReport>().work
    });
    stage.update(2);
    works
}

fn set_of(stage: &Stage, entity: Entity) -> &GpuInstances {
    stage.app.world().get::<GpuInstances>(entity).unwrap()
}

#[test]
fn a_scatter_looks_like_entities_where_the_twin_says() {
    let log = Log::start();
    for (name, tier) in [("", None), ("-workgroup", Some(CullingTier::Workgroup))] {
        let draw = |how| {
            let mut stage = Stage::new(how);
            stage.lights(true);
            camera(&mut stage);
            let scatter = hills(&mut stage);
            let at = Transform::from_xyz(0.5, -0.3, -1.0)
                .with_rotation(Quat::from_rotation_y(0.3))
                .with_scale(Vec3::splat(1.2));
            let eye = at.compute_affine().inverse().transform_point3(EYE);
            spawn(&mut stage, &scatter, at, window(&scatter, eye));
            stage.picture()
        };
        let (set, entities) = (draw(How::Set(tier)), draw(How::Entities));
        assert_same_picture(&format!("scatter{name}"), &set, &entities);
    }
    assert_eq!(told(&log), Vec::<String>::new());
}

/// With levels of detail, and a camera that hides, a scatter looks like a set of the same instances.
#[test]
fn a_scatter_has_levels_and_is_hidden() {
    let draw = |is_scatter: bool| {
        let mut stage = Stage::new(How::Set(None));
        stage.lights(true);
        let camera = camera(&mut stage);
        stage.entity(camera).insert(InstanceOcclusion {
            near_pixels: 1e9,
            ..default()
        });
        let scatter = hills(&mut stage);
        let look = look(&mut stage);
        let coarse = stage.mesh(Cuboid::from_length(0.5));
        let levels = InstanceLods {
            levels: vec![InstanceLod::new(coarse, 0.08)],
            ..default()
        };
        if is_scatter {
            stage.spawn((look.clone(), scatter, levels));
        } else {
            let images = stage.app.world().resource::<Assets<Image>>();
            let plants = scatter.plants_in(window(&scatter, EYE), images).unwrap();
            let set = InstanceSet::from_transforms(plants.into_iter().map(Transform::from));
            let set = GpuInstances(stage.add(set.unwrap()));
            stage.spawn((look.clone(), set, levels));
        }
        let wall = Mesh3d(stage.mesh(Cuboid::new(8.0, 6.0, 0.2)));
        stage.spawn((wall, look.1, Transform::from_xyz(-1.0, 0.0, 2.0)));
        let (picture, report) = stage.picture_and_report();
        let view = report.views.iter().find(|view| view.name == "camera");
        let view = view.unwrap();
        let levels: Vec<_> = view.levels.iter().map(|level| level.visible).collect();
        (picture, levels, view.occlusion.unwrap().hidden)
    };
    let (scatter, levels, hidden) = draw(true);
    let (set, levels_of_set, _) = draw(false);
    assert_same_picture("scatter-levels", &scatter, &set);
    assert_eq!(levels, levels_of_set);
    assert!(
        levels.len() == 2 && levels.iter().all(|count| *count > 20),
        "{levels:?}"
    );
    assert!(hidden > 50, "{hidden}");
}

/// All parts of a scene stand where the scatter places them, also when it gets a set of another size.
#[test]
fn a_scattered_scene_looks_like_the_scene_with_a_set_of_the_same_instances() {
    let start = || {
        let mut stage = Stage::new(How::Set(None));
        let spawned = watch(&mut stage);
        stage.lights(true);
        camera(&mut stage);
        let scatter = Scatter {
            spacing: 2.0,
            ..hills(&mut stage)
        };
        let assets = stage.app.world().resource::<AssetServer>();
        let tree = InstanceScene(assets.load("tree.glb#Scene0"));
        (stage, spawned, scatter, tree)
    };
    let radii = [20.0, 80.0];
    let (mut stage, spawned, scatter, tree) = start();
    let entity = stage.spawn((tree, scatter));
    let parts = wait_for(&mut stage, &spawned, 1);
    let scattered = radii.map(|radius| {
        stage.entity(entity).get_mut::<Scatter>().unwrap().radius = radius;
        stage.update(3);
        let set = set_of(&stage, entity);
        for part in &parts {
            assert_eq!(set_of(&stage, *part), set, "{part} at {radius}");
        }
        let set = set.clone();
        (stage.picture(), set)
    });
    assert_ne!(scattered[0].1, scattered[1].1, "the radius needs more room");
    for (radius, (scattered, _)) in radii.into_iter().zip(scattered) {
        let (mut stage, spawned, scatter, tree) = start();
        let scatter = Scatter { radius, ..scatter };
        let images = stage.app.world().resource::<Assets<Image>>();
        let plants = scatter.plants_in(window(&scatter, EYE), images).unwrap();
        assert!(plants.len() > 30, "{}", plants.len());
        let set = InstanceSet::from_transforms(plants.into_iter().map(Transform::from));
        let set = GpuInstances(stage.add(set.unwrap()));
        stage.spawn((tree, set));
        wait_for(&mut stage, &spawned, 1);
        let name = format!("scatter-scene-{radius}");
        assert_same_picture(&name, &scattered, &stage.picture());
    }
}

/// A camera that goes on and comes back finds what grew there, and only the tiles that came are
/// filled.
#[test]
fn only_tiles_that_come_are_filled_and_a_standing_camera_does_nothing() {
    let mut stage = Stage::new(How::Set(None));
    stage.lights(false);
    let camera = camera(&mut stage);
    let scatter = hills(&mut stage);
    let entity = spawn(&mut stage, &scatter, Transform::IDENTITY, Vec::new());
    let first = stage.picture();
    let nothing = [FrameWork::default(); 2];
    let tiles = |works: [FrameWork; 2]| works.map(|work| work.scatter_tiles);
    assert_eq!(works(&mut stage, |_| ()), nothing, "all still");
    let by = |x: f32| {
        move |stage: &mut Stage| {
            let world = stage.app.world_mut();
            world.get_mut::<Transform>(camera).unwrap().translation.x += x;
        }
    };
    // The camera is in tile (0, 0), which reaches to 22.4.
    assert_eq!(works(&mut stage, by(15.0)), nothing, "in the same tile");
    let handle = set_of(&stage, entity).clone();
    let moved = works(&mut stage, by(8.0));
    assert_eq!(tiles(moved), [3, 0], "in the next tile");
    assert!((1..=3).contains(&moved[0].bound_jobs), "{moved:?}");
    assert_eq!(tiles(works(&mut stage, by(1000.0))), [9, 0], "far away");
    assert_eq!(tiles(works(&mut stage, by(-1023.0))), [9, 0], "back");
    assert_eq!(set_of(&stage, entity), &handle, "the set stays");
    assert_same_picture("scatter-back", &stage.picture(), &first);
    // A camera that comes has its own window: nine slots, of which its tiles are all in the first.
    let with_second = works(&mut stage, |stage| {
        let at = Transform::from_xyz(1.0, 5.0, 5.0);
        stage.camera(
            at,
            Camera {
                order: 1,
                ..default()
            },
        );
    });
    assert_eq!(tiles(with_second), [9, 0], "a second camera");
}

/// The picture of the frame right after each change shows the changed maps.
#[test]
fn painted_maps_and_changed_components_are_seen_at_once() {
    let run = |how| {
        let mut stage = Stage::new(how);
        stage.lights(false);
        camera(&mut stage);
        let mut scatter = hills(&mut stage);
        let tiles = window(&scatter, EYE);
        let mut entity = spawn(&mut stage, &scatter, Transform::IDENTITY, tiles.clone());
        let mut pictures = vec![("planted", stage.picture())];
        let mut next = |stage: &mut Stage, name, scatter: &Scatter| {
            if how == How::Entities {
                stage.entity(entity).despawn();
                entity = spawn(stage, scatter, Transform::IDENTITY, tiles.clone());
            } else {
                let mut old = stage.entity(entity);
                if old.get::<Scatter>() != Some(scatter) {
                    old.insert(scatter.clone());
                }
            }
            pictures.push((name, stage.picture_now()));
        };
        // Dense on the left, and bare in a stripe.
        let painted = scatter.density_map.clone().unwrap();
        let mut images = stage.app.world_mut().resource_mut::<Assets<Image>>();
        let mut image = images.get_mut(&painted).unwrap();
        for (texel, value) in image.data.as_mut().unwrap().iter_mut().enumerate() {
            *value = if (texel / TEXELS as usize).is_multiple_of(8) {
                0
            } else {
                255 - *value
            };
        }
        drop(image);
        next(&mut stage, "painted", &scatter);
        scatter.seed = 5;
        scatter.scales = 0.6..0.9;
        next(&mut stage, "other seed", &scatter);
        scatter.height_map = None;
        scatter.turn = 0.3;
        next(&mut stage, "without heights", &scatter);
        scatter.density_map = None;
        scatter.density = 0.4;
        scatter.jitter = 0.3;
        scatter.min_distance = 0.0;
        next(&mut stage, "without a density map", &scatter);
        pictures
    };
    let (sets, entities) = (run(How::Set(None)), run(How::Entities));
    for ((name, set), (_, entities)) in sets.into_iter().zip(entities) {
        assert_same_picture(
            &format!("scatter-{}", name.replace(' ', "-")),
            &set,
            &entities,
        );
    }
}

/// Two cameras whose windows overlap, and one on another layer.
#[test]
fn each_camera_has_its_window_and_no_tile_is_there_twice() {
    let draw = |how| {
        let mut stage = Stage::new(how);
        stage.lights(false);
        let scatter = Scatter {
            radius: 5.0,
            scales: 0.5..1.0,
            spacing: 0.5,
            ..default()
        };
        let mut tiles = Vec::new();
        for (index, x) in [(0, -6.0), (1, 21.0)] {
            let viewport = Viewport {
                physical_position: UVec2::new(160 * index, 0),
                physical_size: UVec2::new(160, 200),
                ..default()
            };
            let camera = Camera {
                order: index as isize,
                viewport: Some(viewport),
                ..default()
            };
            let eye = Vec3::new(x, 6.0, 12.0);
            let at = Transform::from_translation(eye);
            stage.camera(at.looking_at(Vec3::new(9.0, 0.0, 0.0), Vec3::Y), camera);
            let more = window(&scatter, eye);
            tiles.extend(
                more.into_iter()
                    .filter(|tile| !tiles.contains(tile))
                    .collect::<Vec<_>>(),
            );
        }
        let elsewhere = Camera {
            order: -1,
            ..default()
        };
        let elsewhere = (RenderLayers::layer(3), elsewhere);
        stage.camera(Transform::from_xyz(9.0, 3.0, 0.0), elsewhere);
        spawn(&mut stage, &scatter, Transform::IDENTITY, tiles);
        let picture = stage.picture();
        if how != How::Entities {
            let tested = stage.report().instances;
            // Two windows of nine tiles.
            assert_eq!(tested, 18 * 1024);
        }
        picture
    };
    let (set, entities) = (draw(How::Set(None)), draw(How::Entities));
    assert_same_picture("scatter-two-cameras", &set, &entities);
}

/// Nothing grows with fields or maps that are not valid, and the log says so once.
#[test]
fn what_is_not_valid_plants_nothing_and_is_told_once() {
    let log = Log::start();
    let mut stage = Stage::new(How::Set(None));
    stage.lights(false);
    camera(&mut stage);
    let empty = stage.picture();
    let good = hills(&mut stage);
    let entity = spawn(&mut stage, &good, Transform::IDENTITY, Vec::new());
    let planted = stage.picture();
    assert!(planted != empty);
    assert_eq!(told(&log), Vec::<String>::new());
    let encoded = stage.add(map(TextureFormat::R8Unorm, |_, _| 1.0));
    let mut images = stage.app.world_mut().resource_mut::<Assets<Image>>();
    let mut image = images.get_mut(&encoded).unwrap();
    image.data = Some([255; 4].repeat((TEXELS * TEXELS) as usize));
    image.texture_descriptor.format = TextureFormat::Rgba8UnormSrgb;
    drop(image);
    let images = stage.app.world().resource::<Assets<Image>>();
    let gone = images.reserve_handle();
    let bad = [
        (
            Scatter {
                spacing: 0.0,
                ..good.clone()
            },
            "spacing is 0, which must be above 1e-12 and at most 1e12",
        ),
        (
            Scatter {
                radius: 1e7,
                ..good.clone()
            },
            "radius is 10000000, with a spacing of 0.7, which must be small enough for 4294966272",
        ),
        (
            Scatter {
                density_map: Some(encoded),
                ..good.clone()
            },
            "the density_map has the format Rgba8UnormSrgb, whose values are encoded",
        ),
        (
            Scatter {
                height_map: Some(gone),
                ..good.clone()
            },
            "the height_map is not loaded",
        ),
    ];
    for (count, (scatter, said)) in (1..).zip(bad) {
        for _ in 0..2 {
            stage.entity(entity).insert(scatter.clone());
            assert!(stage.picture() == empty, "{said}");
        }
        let lines = told(&log);
        assert_eq!(lines.len(), count, "{lines:?}");
        let expected = format!("Scatter on {entity} plants nothing: {said}");
        assert!(lines[count - 1].contains(&expected), "{lines:?}");
        stage.entity(entity).insert(good.clone());
        assert_same_picture("scatter-good-again", &stage.picture(), &planted);
    }
    // A rule that is no WGSL, and one that is not valid.
    let rules = [
        (
            Shader::from_wesl("", "a.wesl"),
            "plants nothing: the rule is no WGSL",
        ),
        (
            Shader::from_wgsl("fn scatter_share() {}", "b.wgsl"),
            "is not filled: its rule does not compile",
        ),
    ];
    for (count, (shader, said)) in (5..).zip(rules) {
        let rule = Some(stage.add(shader));
        stage.entity(entity).insert(Scatter {
            rule,
            ..good.clone()
        });
        assert!(stage.picture() == empty, "{said}");
        let lines = told(&log);
        assert_eq!(lines.len(), count, "{lines:?}");
        assert!(lines[count - 1].contains(said), "{lines:?}");
    }
    // With a rule by which nothing grows, nothing is left.
    let bare =
        "fn scatter_share(p: vec3<f32>, slope: vec2<f32>, share: f32) -> f32 { return 0.0; }";
    let rule = stage.add(Shader::from_wgsl(bare, "c.wgsl"));
    let with_rule = Scatter {
        rule: Some(rule.clone()),
        ..good.clone()
    };
    stage.entity(entity).insert(with_rule);
    assert!(stage.picture() == empty);
    // It is edited: all grow that grew.
    let all = Shader::from_wgsl(bare.replace("0.0", "share"), "c.wgsl");
    let mut shaders = stage.app.world_mut().resource_mut::<Assets<Shader>>();
    shaders.insert(&rule, all).unwrap();
    assert_same_picture("scatter-ruled", &stage.picture(), &planted);
    assert_eq!(told(&log).len(), 6);
    // Without the component, nothing is left.
    stage.entity(entity).remove::<Scatter>();
    assert!(stage.picture() == empty);
    assert_eq!(told(&log).len(), 6);
}

#[test]
fn the_tier_cpu_says_that_it_cannot_draw_it() {
    let log = Log::start();
    let mut stage = Stage::new(How::Set(Some(CullingTier::Cpu)));
    stage.lights(false);
    camera(&mut stage);
    let empty = stage.picture();
    let scatter = hills(&mut stage);
    let entity = spawn(&mut stage, &scatter, Transform::IDENTITY, Vec::new());
    assert!(stage.picture() == empty);
    log.assert_once(&["ERROR", &entity.to_string(), "is not drawn"]);
    assert_eq!(told(&log), Vec::<String>::new());
}
