//! Sequences of frames: cameras and walls move.

use super::{Way, assert_equal, camera_report, shadows};
use crate::scene::{
    How, SIZE, Stage, field, field_of,
    normals::{Normals, add_normals},
};
use bevy::{
    camera::{ScalingMode, Viewport},
    core_pipeline::prepass::DeferredPrepass,
    pbr::DefaultOpaqueRendererMethod,
    prelude::*,
    render::occlusion_culling::OcclusionCulling,
};
use bevy_gpu_culling::{
    prelude::*,
    render::{MeshletReport, OcclusionReport},
};
use image::RgbaImage;
use std::sync::OnceLock;

/// What a sequence changes.
pub struct Actors {
    pub camera: Entity,
    pub wall: Entity,
    pub boxes: Entity,
    pub slabs: Entity,
}

/// A material without lights.
pub fn colored(stage: &mut Stage, [red, green, blue]: [f32; 3]) -> MeshMaterial3d<Normals> {
    let color = LinearRgba::rgb(red, green, blue);
    MeshMaterial3d(stage.add(Normals::new(color)))
}

pub fn stage(tier: Option<CullingTier>) -> Stage {
    Stage::with(How::Set(tier), add_normals)
}

/// A field of boxes, a set of walls in front of it, and an entity as a wall.
pub fn build(stage: &mut Stage) -> Actors {
    let mesh = stage.mesh(Cuboid::new(0.3, 0.25, 0.2));
    let red = colored(stage, [0.9, 0.3, 0.2]);
    let boxes = stage.spawn_set(
        &field_of(3000, ScaleKind::NonUniform),
        (mesh, red),
        Transform::IDENTITY,
    );
    let slab = stage.mesh(Cuboid::new(2.0, 3.0, 0.2));
    let blue = colored(stage, [0.2, 0.3, 0.8]);
    let slabs = (0..5).map(|i| Transform::from_xyz(i as f32 * 3.0 - 6.0, 0.0, 6.0));
    let slabs = InstanceSet::from_transforms(slabs).unwrap();
    let slabs = stage.spawn_set(&slabs, (slab, blue), Transform::IDENTITY);
    let wall = stage.mesh(Cuboid::new(8.0, 6.0, 0.3));
    let green = colored(stage, [0.2, 0.7, 0.3]);
    let wall = stage.spawn((Mesh3d(wall), green, Transform::from_xyz(-3.0, 0.0, 4.0)));
    let camera = stage.camera(Transform::IDENTITY, ());
    Actors {
        camera,
        wall,
        boxes,
        slabs,
    }
}

/// Gives everything lit materials, and lights.
pub fn light(stage: &mut Stage, actors: &Actors) {
    stage.lights(false);
    for (entity, color) in [
        (actors.boxes, Color::srgb(0.9, 0.3, 0.2)),
        (actors.slabs, Color::srgb(0.2, 0.3, 0.8)),
        (actors.wall, Color::srgb(0.2, 0.7, 0.3)),
    ] {
        let lit = stage.standard(StandardMaterial::from(color));
        let mut entity = stage.entity(entity);
        entity.remove::<MeshMaterial3d<Normals>>().insert(lit);
    }
}

/// Where camera and wall are in a frame.
pub fn step(frame: usize) -> (Transform, Transform) {
    let t = frame as f32;
    let eye = match frame % 5 {
        // A cut.
        4 => Vec3::new(-9.0, 3.0, -2.0),
        _ => Vec3::new(t - 4.0, 0.5 + 0.2 * t, 13.0 - 0.5 * t),
    };
    let camera = Transform::from_translation(eye).looking_at(Vec3::new(0.2 * t, 0.0, 0.0), Vec3::Y);
    let wall = Transform::from_xyz(if frame % 3 == 2 { 40.0 } else { -3.0 + t }, 0.0, 4.0);
    (camera, wall)
}

/// A sequence of frames with and without occlusion.
pub struct Sequence<'a> {
    pub name: &'a str,
    pub way: Way,
    pub tier: CullingTier,
    /// Changes the scene before the first frame.
    pub dress: &'a dyn Fn(&mut Stage, &Actors),
    /// Changes the scene in a frame; also told whether the stage hides.
    pub act: &'a dyn Fn(&mut Stage, &Actors, usize, bool),
    /// Counters, in the last frame, of the views that must hide something.
    pub report: &'a dyn Fn(&mut Stage) -> (u64, Option<OcclusionReport>),
    /// Whether they must hide something.
    pub hides: bool,
    /// Number of instances that are never hidden: they are visible, but in no early list.
    pub never_hidden: u64,
    /// Most pixels in which two surfaces may have the same depth, so that the order of the draws
    /// decides. It is not 0 only in forward cameras whose viewport has the coarse half of the
    /// depths: there, another order of the sets changes such pixels without occlusion, too.
    pub ties: usize,
    /// The sequence without occlusion, if others have the same.
    pub plain: Option<&'static OnceLock<Shown>>,
}

/// Two cuts, and a frame after the second.
const FRAMES: usize = 11;

/// What a sequence shows.
pub struct Shown {
    /// The picture of each frame.
    pictures: Vec<RgbaImage>,
    /// Number of visible instances in the last frame.
    visible: u64,
    occlusion: Option<OcclusionReport>,
}

/// What the scene shows without occlusion if nothing but camera and wall moves.
static PLAIN: OnceLock<Shown> = OnceLock::new();

impl Default for Sequence<'_> {
    fn default() -> Self {
        Self {
            name: "",
            way: Way::Forward,
            tier: CullingTier::Subgroup,
            dress: &|_, _| (),
            act: &|_, _, _, _| (),
            report: &camera_report,
            hides: true,
            never_hidden: 0,
            ties: 0,
            plain: None,
        }
    }
}

impl Sequence<'_> {
    /// What all frames show.
    fn run(&self, way: Way) -> Shown {
        let mut stage = stage(Some(self.tier));
        let actors = build(&mut stage);
        way.equip(&mut stage.entity(actors.camera), self.way == Way::Prepass);
        (self.dress)(&mut stage, &actors);
        if way == Way::Shadows {
            shadows::equip_lights(&mut stage);
        }
        let pictures = (0..FRAMES).map(|frame| {
            let (camera, wall) = step(frame);
            *stage.entity(actors.camera).get_mut::<Transform>().unwrap() = camera;
            *stage.entity(actors.wall).get_mut::<Transform>().unwrap() = wall;
            (self.act)(&mut stage, &actors, frame, way != Way::Off);
            if frame == 0 {
                // The first frames draw nothing until pipelines and meshes are there.
                stage.update(3);
                if self.way == Way::Shadows {
                    // With or without occlusion, a spot light lights nothing in the first four or
                    // five frames of an app.
                    stage.update(3);
                }
            }
            stage.picture_now()
        });
        let pictures = pictures.collect();
        let (visible, occlusion) = (self.report)(&mut stage);
        Shown {
            pictures,
            visible,
            occlusion,
        }
    }

    /// Compares the pictures of all frames, then what is drawn in the last.
    pub fn assert_equal(&self) {
        let Self { name, tier, .. } = *self;
        let hiding = self.run(self.way);
        let own;
        let plain = if let Some(shared) = self.plain {
            shared.get_or_init(|| Sequence::default().run(Way::Off))
        } else {
            own = self.run(Way::Off);
            &own
        };
        for (frame, (hiding, plain)) in hiding.pictures.iter().zip(&plain.pictures).enumerate() {
            let differ = hiding.pixels().zip(plain.pixels()).filter(|(a, b)| a != b);
            if self.ties == 0 || differ.count() > self.ties {
                assert_equal(&format!("{name}-{tier}-{frame}"), hiding, plain);
            }
        }
        assert_eq!(plain.occlusion, None);
        let (visible, kept) = (hiding.visible, plain.visible);
        if self.hides {
            let occlusion = hiding.occlusion.unwrap();
            assert_eq!(occlusion.late, 0, "{name}: nothing moves");
            assert_eq!(visible + occlusion.hidden, kept, "{name}: {occlusion:?}");
            assert!(
                occlusion.too_small <= occlusion.hidden,
                "{name}: {occlusion:?}"
            );
            assert!(visible * 10 < kept * 8, "{name}: {visible} of {kept}");
            assert!(
                occlusion.early + self.never_hidden >= visible,
                "{name}: {occlusion:?}, {visible}"
            );
        } else {
            assert_eq!((hiding.occlusion, visible), (None, kept), "{name}");
        }
    }
}

#[test]
fn a_forward_camera_draws_the_same_picture() {
    for tier in [CullingTier::Subgroup, CullingTier::Workgroup] {
        let name = "forward";
        Sequence {
            name,
            tier,
            plain: Some(&PLAIN),
            ..default()
        }
        .assert_equal();
    }
}

#[test]
fn a_camera_with_a_prepass_draws_the_same_picture() {
    Sequence {
        name: "prepass",
        way: Way::Prepass,
        ..default()
    }
    .assert_equal();
}

/// A viewport stores its depths in a part of the range: a camera before all others, or behind.
#[test]
fn viewports_with_a_part_of_the_depths_draw_the_same_picture() {
    for (way, name) in [(Way::Forward, "depths"), (Way::Prepass, "depths-prepass")] {
        for depth in [0.5..1.0, 0.0..0.5] {
            Sequence {
                name: &format!("{name}-{}", depth.start),
                way,
                ties: if way == Way::Forward { 4 } else { 0 },
                dress: &|stage, actors| {
                    // Bevy's own occlusion culling of entities expects all depths.
                    let one = InstanceSet::from_transforms([Transform::IDENTITY]).unwrap();
                    let one = GpuInstances(stage.add(one));
                    stage.entity(actors.wall).insert(one);
                    let mut camera = stage.entity(actors.camera);
                    camera.get_mut::<Camera>().unwrap().viewport = Some(Viewport {
                        physical_size: SIZE,
                        depth: depth.clone(),
                        ..default()
                    });
                },
                // So it must be asked for.
                act: &|stage, actors, _, hides| {
                    if hides && way == Way::Prepass {
                        stage.entity(actors.camera).insert(OcclusionCulling);
                    }
                },
                ..default()
            }
            .assert_equal();
        }
    }
}

#[test]
fn cameras_with_msaa_draw_the_same_picture() {
    for (name, way) in [("forward-4", Way::Forward), ("prepass-4", Way::Prepass)] {
        Sequence {
            name,
            way,
            dress: &|stage, actors| {
                stage.entity(actors.camera).insert(Msaa::Sample4);
            },
            ..default()
        }
        .assert_equal();
    }
}

#[test]
fn a_deferred_camera_draws_the_same_picture() {
    Sequence {
        name: "deferred",
        way: Way::Prepass,
        dress: &|stage, actors| {
            light(stage, actors);
            stage
                .app
                .insert_resource(DefaultOpaqueRendererMethod::deferred());
            stage
                .entity(actors.camera)
                .insert((Msaa::Off, DeferredPrepass));
        },
        ..default()
    }
    .assert_equal();
}

#[test]
fn an_orthographic_camera_draws_the_same_picture() {
    Sequence {
        name: "orthographic",
        dress: &|stage, actors| {
            let lens = OrthographicProjection {
                scaling_mode: ScalingMode::FixedVertical {
                    viewport_height: 9.0,
                },
                ..OrthographicProjection::default_3d()
            };
            stage.entity(actors.camera).insert(Projection::from(lens));
        },
        ..default()
    }
    .assert_equal();
}

#[test]
fn masked_and_blended_sets_and_levels_of_detail_look_the_same() {
    Sequence {
        name: "looks",
        // The blended ones.
        never_hidden: 60,
        dress: &|stage, actors| {
            light(stage, actors);
            // The boxes are masked and have a coarser level. Behind them are blended ones.
            let coarser = stage.mesh(
                Tetrahedron::default()
                    .mesh()
                    .build()
                    .scaled_by(Vec3::splat(0.2)),
            );
            let lods = InstanceLods {
                levels: vec![InstanceLod::new(coarser, 0.02)],
                fade: 0.3,
                ..default()
            };
            let masked = stage.standard(StandardMaterial {
                base_color: Color::srgba(0.9, 0.3, 0.2, 0.7),
                alpha_mode: AlphaMode::Mask(0.5),
                ..default()
            });
            stage.entity(actors.boxes).insert((lods, masked));
            let glass = stage.standard(StandardMaterial {
                base_color: Color::srgba(0.2, 0.9, 0.4, 0.3),
                alpha_mode: AlphaMode::Blend,
                ..default()
            });
            let mesh = stage.mesh(Sphere::new(0.4));
            stage.spawn_set(&field(60, false), (mesh, glass), Transform::IDENTITY);
        },
        ..default()
    }
    .assert_equal();
}

/// One of several sets with the same material draws what is late of all.
#[test]
fn joined_sets_look_the_same() {
    let dress = |stage: &mut Stage, actors: &Actors| {
        let world = stage.app.world();
        let material = world.get::<MeshMaterial3d<Normals>>(actors.boxes);
        let material = material.unwrap().clone();
        for number in 0..6 {
            let size = number as f32;
            let mesh = stage.mesh(Cuboid::new(0.2 + 0.03 * size, 0.23, 0.21));
            let at = Transform::from_xyz(0.13 * size, 0.37, -0.29 * size)
                .with_rotation(Quat::from_rotation_y(0.4 + size));
            let set = field_of(400, ScaleKind::NonUniform);
            stage.spawn_set(&set, (mesh, material.clone()), at);
        }
    };
    for (name, way) in [("joined", Way::Forward), ("joined-prepass", Way::Prepass)] {
        Sequence {
            name,
            way,
            dress: &dress,
            ..default()
        }
        .assert_equal();
    }
}

#[test]
fn cameras_side_by_side_draw_the_same_picture() {
    Sequence {
        name: "side-by-side",
        dress: &|stage, actors| {
            let half = |left: bool| Viewport {
                physical_position: UVec2::new(if left { 0 } else { SIZE.x / 2 }, 3),
                physical_size: UVec2::new(SIZE.x / 2, SIZE.y - 7),
                ..default()
            };
            let own = stage
                .entity(actors.camera)
                .get::<InstanceOcclusion>()
                .copied();
            let mut camera = stage.entity(actors.camera);
            camera.get_mut::<Camera>().unwrap().viewport = Some(half(false));
            let eye = Transform::from_xyz(-8.0, 2.0, 9.0).looking_at(Vec3::ZERO, Vec3::Y);
            let other = stage.camera(eye, ());
            let mut other = stage.entity(other);
            other.insert(Camera {
                order: 1,
                viewport: Some(half(true)),
                clear_color: ClearColorConfig::None,
                ..default()
            });
            if let Some(own) = own {
                other.insert(own);
            }
        },
        ..default()
    }
    .assert_equal();
}

#[test]
fn sets_that_move_and_change_look_the_same() {
    Sequence {
        name: "changes",
        act: &|stage, actors, frame, _| {
            let turn = Quat::from_rotation_y(0.1 * frame as f32);
            let place = Transform::from_rotation(turn).with_scale(Vec3::new(1.0, 1.2, 0.9));
            *stage.entity(actors.boxes).get_mut::<Transform>().unwrap() = place;
            let set = stage
                .entity(actors.boxes)
                .get::<GpuInstances>()
                .unwrap()
                .0
                .clone();
            let mut sets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
            let mut set = sets.get_mut(&set).unwrap();
            match frame % 4 {
                1 => set.truncate(2900 - 100 * frame),
                2 => {
                    let more = (0..50)
                        .map(|i| Transform::from_xyz(0.1 * i as f32, 2.0, frame as f32 - 6.0));
                    set.extend(more).unwrap();
                }
                _ => {}
            }
        },
        ..default()
    }
    .assert_equal();
}

#[test]
fn occlusion_may_be_switched_at_any_time() {
    Sequence {
        name: "switched",
        plain: Some(&PLAIN),
        act: &|stage, actors, frame, hides| {
            let mut camera = stage.entity(actors.camera);
            match frame % 4 {
                _ if !hides => &mut camera,
                1 => camera.remove::<InstanceOcclusion>(),
                _ => camera.insert(InstanceOcclusion {
                    near_pixels: 30.0,
                    ..default()
                }),
            };
        },
        ..default()
    }
    .assert_equal();
}

#[test]
fn sets_that_are_never_hidden_are_drawn_whole() {
    Sequence {
        name: "never",
        plain: Some(&PLAIN),
        dress: &|stage, _| {
            let world = stage.app.world_mut();
            let mut sets = world.query_filtered::<Entity, With<GpuInstances>>();
            let sets: Vec<_> = sets.iter(world).collect();
            for set in sets {
                stage.entity(set).insert(NoOcclusionCulling);
            }
        },
        hides: false,
        ..default()
    }
    .assert_equal();
}

#[test]
fn a_frozen_camera_draws_what_it_saw() {
    for way in [Way::Forward, Way::Prepass] {
        let mut stage = stage(None);
        let actors = build(&mut stage);
        way.equip(&mut stage.entity(actors.camera), way == Way::Prepass);
        let (camera, wall) = step(0);
        *stage.entity(actors.camera).get_mut::<Transform>().unwrap() = camera;
        *stage.entity(actors.wall).get_mut::<Transform>().unwrap() = wall;
        let live = stage.picture();
        let (seen, occlusion) = camera_report(&mut stage);
        assert_eq!(occlusion.map(|lists| lists.late), Some(0));
        stage.entity(actors.camera).insert(FreezeCulling::default());
        assert_equal(&format!("frozen-{way:?}"), &stage.picture(), &live);

        // From behind, the field has holes: what was hidden is missing.
        let behind = Transform::from_xyz(0.0, 9.0, -14.0).looking_at(Vec3::ZERO, Vec3::Y);
        *stage.entity(actors.camera).get_mut::<Transform>().unwrap() = behind;
        stage
            .entity(actors.wall)
            .get_mut::<Transform>()
            .unwrap()
            .translation
            .x = 40.0;
        assert_eq!(camera_report(&mut stage), (seen, None));
        stage.entity(actors.camera).remove::<FreezeCulling>();
        let (visible, occlusion) = camera_report(&mut stage);
        assert!(occlusion.is_some() && visible != seen);
    }
}

/// Draws the boxes as balls by meshlets, with levels of detail.
#[cfg(feature = "meshlets")]
fn by_meshlets(stage: &mut Stage, actors: &Actors) {
    let ball = Sphere::new(0.2).mesh().ico(7).unwrap();
    let settings = MeshletSettings {
        lods: Some(LodSettings::default()),
        ..default()
    };
    let ball = MeshletMesh::from_mesh(&ball, &settings).unwrap();
    let mut assets = stage.app.world_mut().resource_mut::<Assets<MeshletMesh>>();
    let ball = MeshletMesh3d(assets.add(ball));
    stage.entity(actors.boxes).remove::<Mesh3d>().insert(ball);
    // Without an error, the nearest level would be coarse in this small picture.
    let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
    settings.lod_pixels = 0.1;
}

#[test]
#[cfg(feature = "meshlets")]
fn sets_by_meshlets_are_hidden() {
    for (way, tier, name) in [
        (Way::Forward, CullingTier::Subgroup, "meshlets"),
        (Way::Prepass, CullingTier::Workgroup, "meshlets-prepass"),
    ] {
        Sequence {
            name,
            way,
            tier,
            dress: &by_meshlets,
            ..default()
        }
        .assert_equal();
    }
}

/// The counters of meshlets are of what is drawn: of hidden instances none, and of instances that
/// are seen in part, only some.
#[test]
#[cfg(feature = "meshlets")]
fn hidden_meshlets_are_not_drawn() {
    for way in [Way::Forward, Way::Prepass] {
        let [hiding, plain] = [way, Way::Off].map(|own| {
            let mut stage = stage(None);
            let actors = build(&mut stage);
            own.equip(&mut stage.entity(actors.camera), way == Way::Prepass);
            by_meshlets(&mut stage, &actors);
            let (camera, _) = step(0);
            *stage.entity(actors.camera).get_mut::<Transform>().unwrap() = camera;
            stage.report()
        });
        let drawn = |report: &CullingReport| report.meshlets.drawn;
        assert!(drawn(&hiding) > 0, "{way:?}");
        assert!(
            drawn(&hiding) * 10 < drawn(&plain) * 8,
            "{way:?}: {} of {}",
            drawn(&hiding),
            drawn(&plain)
        );
        assert_eq!(hiding.meshlets.rows_drawn_whole, 0);
        assert_eq!(plain.meshlets.culled_by_occlusion, 0);
        // Without a prepass, few balls are late, and only these are compared with the depth.
        let MeshletReport {
            tested,
            culled_by_occlusion,
            ..
        } = hiding.meshlets;
        if way == Way::Prepass {
            assert!(culled_by_occlusion * 50 > tested, "{hiding:?}");
        }
    }
}
