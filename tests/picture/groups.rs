//! Entities that share a set are tested together, and look as if each were tested on its own.

use super::{eye, moved, red};
use crate::scene::{How, Stage, field};
use bevy::{
    core_pipeline::prepass::{DepthPrepass, MotionVectorPrepass, NormalPrepass},
    light::{CascadeShadowConfigBuilder, DirectionalLightShadowMap, NotShadowCaster},
    prelude::*,
};
use bevy_gpu_culling::{
    prelude::*,
    render::{ViewKind, ViewReport},
};
use image::RgbaImage;

/// How the primitives of a tree have their instances.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sets {
    /// They share one set: they are tested together.
    One,
    /// Each has a copy of the set, which cannot be tested together.
    Copies,
    /// Only the trunk is there.
    Trunk,
}

/// What the primitives of a tree look like, and what is drawn of them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Look {
    /// Their spheres differ.
    Plain,
    /// They have the same sphere, and levels of detail with the same errors.
    Levels,
    /// As `Levels`; levels fade into each other.
    Fading,
    /// They are drawn in a range of distances.
    Ranged,
}

fn green() -> StandardMaterial {
    StandardMaterial {
        base_color: Color::srgb(0.2, 0.8, 0.3),
        alpha_mode: AlphaMode::Mask(0.5),
        double_sided: true,
        cull_mode: None,
        ..red()
    }
}

/// A trunk with indices, and a crown without, in front of each other.
fn meshes(stage: &mut Stage) -> [[Handle<Mesh>; 2]; 2] {
    let trunk = |sides: u32| Cylinder::new(0.1, 0.8).mesh().resolution(sides).build();
    let crown = |rings: u32| {
        let mut crown = Sphere::new(0.35).mesh().uv(7, rings);
        crown.duplicate_vertices();
        crown.translated_by(Vec3::new(0.05, 0.3, 0.1))
    };
    [
        [trunk(6), trunk(3)].map(|mesh| stage.mesh(mesh)),
        [crown(5), crown(3)].map(|mesh| stage.mesh(mesh)),
    ]
}

/// Spawns a forest, and a sun with shadows. Returns the entities of the trees' primitives.
fn forest(stage: &mut Stage, sets: Sets, look: Look) -> Vec<Entity> {
    let set = field(200, look != Look::Plain);
    let one = stage.add(set.clone());
    let at = match look {
        Look::Plain | Look::Ranged => moved(),
        _ => Transform::from_xyz(0.5, -0.3, -1.0).with_scale(Vec3::splat(1.1)),
    };
    let mut trees = Vec::new();
    for (mesh, material) in meshes(stage).into_iter().zip([red(), green()]) {
        let material = stage.standard(material);
        let set = match sets {
            Sets::Copies => stage.add(set.clone()),
            _ => one.clone(),
        };
        let [full, coarse] = mesh;
        let tree = stage.spawn((Mesh3d(full), material, GpuInstances(set), at));
        match look {
            Look::Plain => {}
            Look::Levels | Look::Fading => {
                let lods = InstanceLods {
                    levels: vec![InstanceLod::new(coarse, 0.03)],
                    fade: if look == Look::Fading { 0.4 } else { 0.0 },
                    ..default()
                };
                stage.entity(tree).insert((lods, CullingRadius(0.8)));
            }
            Look::Ranged => {
                let range = bevy::camera::visibility::VisibilityRange {
                    start_margin: 4.0..5.0,
                    end_margin: 9.0..12.0,
                    use_aabb: false,
                };
                stage.entity(tree).insert(InstanceVisibilityRange(range));
            }
        }
        trees.push(tree);
        if sets == Sets::Trunk {
            break;
        }
    }
    // Shadow maps take most of the time.
    stage
        .app
        .insert_resource(DirectionalLightShadowMap { size: 256 });
    let cascades = CascadeShadowConfigBuilder {
        num_cascades: 2,
        maximum_distance: 30.0,
        ..default()
    };
    let sun = DirectionalLight {
        illuminance: 5_000.0,
        shadow_maps_enabled: true,
        ..default()
    };
    let at = Transform::from_xyz(4.0, 9.0, 3.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.spawn((sun, cascades.build(), at));
    trees
}

/// A camera with one of several ways to draw.
fn camera(stage: &mut Stage, way: usize) -> Entity {
    let camera = stage.camera(eye(), ());
    let mut entity = stage.entity(camera);
    match way {
        0 => {}
        1 => drop(entity.insert((DepthPrepass, NormalPrepass, MotionVectorPrepass, Msaa::Off))),
        _ => {
            entity.insert(InstanceOcclusion {
                near_pixels: 30.0,
                ..default()
            });
            let mesh = stage.mesh(Cuboid::new(6.0, 3.0, 0.2));
            let material = stage.standard(red());
            let at = Transform::from_xyz(-2.0, 0.5, 2.0);
            stage.spawn((Mesh3d(mesh), material, at));
        }
    }
    camera
}

fn assert_equal(name: &str, pictures: [&RgbaImage; 2]) {
    let [one, copies] = pictures;
    let colors: std::collections::HashSet<_> = copies.pixels().collect();
    assert!(colors.len() > 50, "{name} shows {} colors", colors.len());
    let differ = one.pixels().zip(copies.pixels()).filter(|(a, b)| a != b);
    assert_eq!(differ.count(), 0, "{name}: pixels differ");
}

/// Tests of cameras and of shadow views.
fn tests(report: &CullingReport) -> [u64; 2] {
    [report.cameras().0, report.shadows().0]
}

/// Two entities that share a set look as if each had its own. They cost what one costs, and the
/// triangles of both are counted.
fn assert_looks(stage: &mut Stage, looks: &[(Look, usize)]) {
    for (look, way) in looks {
        let name = format!("{look:?}, camera {way}, {:?}", stage.how);
        let mut draw = |sets: Sets| {
            stage.clear();
            forest(stage, sets, *look);
            camera(stage, *way);
            let picture = stage.picture();
            let (views, _) = stage.verify();
            (picture, views, stage.report())
        };
        let (one, views, shared) = draw(Sets::One);
        let (copies, views_of_copies, apart) = draw(Sets::Copies);
        assert_equal(&name, [&one, &copies]);
        assert_eq!(views, views_of_copies, "{name}: an entity has no verdicts");
        assert!(shared.cameras().1 > 10, "{name}: {shared:?}");
        let twice = tests(&shared).map(|tests| 2 * tests);
        assert_eq!(twice, tests(&apart), "{name}: tests of both");
        let triangles = |report: &CullingReport| -> u64 {
            report.views.iter().map(ViewReport::triangles).sum()
        };
        match look {
            // The same instances: a sphere around both may keep more.
            Look::Levels | Look::Fading => assert_eq!(triangles(&shared), triangles(&apart)),
            _ => assert!(triangles(&shared) >= triangles(&apart)),
        }
        if *look == Look::Levels {
            let (_, _, trunk) = draw(Sets::Trunk);
            let cost = |report: &CullingReport| {
                let views = report.views.iter().map(|view| (view.kind, view.tested));
                let views: Vec<(ViewKind, u64)> = views.collect();
                (report.passes, report.dispatches, report.instances, views)
            };
            assert_eq!(cost(&shared), cost(&trunk), "{name}: the cost of one");
            assert!(triangles(&shared) > triangles(&trunk));
        }
    }
}

#[test]
fn primitives_that_share_a_set_look_as_if_each_had_its_own() {
    let mut stage = Stage::new(How::Set(None));
    let looks = [
        (Look::Plain, 2),
        (Look::Levels, 0),
        (Look::Fading, 0),
        (Look::Ranged, 1),
    ];
    assert_looks(&mut stage, &looks);
    assert_changes(&mut stage);
    let mut stage = Stage::new(How::Set(Some(CullingTier::Cpu)));
    assert_looks(&mut stage, &[(Look::Plain, 0)]);
}

/// A change of one entity of a group.
type Change = (&'static str, bool, fn(&mut Stage, &[Entity]));

/// What is changed of one entity shows at once, whether or not both are still tested together.
fn assert_changes(stage: &mut Stage) {
    let changes: [Change; 8] = [
        ("at first", true, |_, _| ()),
        ("the trunk moves", false, |stage, trees| {
            let mut tree = stage.entity(trees[0]);
            tree.get_mut::<Transform>().unwrap().translation.x += 0.2;
        }),
        ("the crown follows", true, |stage, trees| {
            let mut tree = stage.entity(trees[1]);
            tree.get_mut::<Transform>().unwrap().translation.x += 0.2;
        }),
        ("the trunk is hidden", true, |stage, trees| {
            stage.entity(trees[0]).insert(Visibility::Hidden);
        }),
        ("the crown blends", false, |stage, trees| {
            stage.entity(trees[0]).insert(Visibility::Inherited);
            let material = stage.standard(StandardMaterial {
                base_color: Color::srgba(0.2, 0.8, 0.3, 0.5),
                alpha_mode: AlphaMode::Blend,
                ..default()
            });
            stage.entity(trees[1]).insert(material);
        }),
        ("the crown has uniforms", false, |stage, trees| {
            let material = stage.standard(green());
            stage
                .entity(trees[1])
                .insert((material, InstanceMeshUniforms));
        }),
        ("the crown casts no shadow", false, |stage, trees| {
            let mut tree = stage.entity(trees[1]);
            tree.remove::<InstanceMeshUniforms>();
            tree.insert(NotShadowCaster);
        }),
        ("the trunk is gone", true, |stage, trees| {
            stage.entity(trees[0]).despawn();
        }),
    ];
    let [one, copies] = [Sets::One, Sets::Copies].map(|sets| {
        stage.clear();
        let trees = forest(stage, sets, Look::Plain);
        camera(stage, 0);
        let all = changes.map(|(name, ..)| name).into_iter().zip(changes);
        let draw = |(_, (_, _, change)): (&str, Change)| {
            change(stage, &trees);
            let picture = stage.picture();
            stage.verify();
            (picture, stage.report())
        };
        all.map(draw).collect::<Vec<_>>()
    });
    for ((name, is_one, _), (one, copies)) in changes.iter().zip(one.into_iter().zip(copies)) {
        assert_equal(name, [&one.0, &copies.0]);
        let entities = match *name {
            "the trunk is hidden" | "the trunk is gone" => 1,
            _ => 2,
        };
        let times = if *is_one { entities } else { 1 };
        let tested = tests(&one.1).map(|tests| times * tests);
        assert_eq!(tested, tests(&copies.1), "{name}");
    }
}
