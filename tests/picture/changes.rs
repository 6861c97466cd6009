//! What changes at run time is drawn: sets, settings, bounds.

use super::{box_mesh, eye, red, red_boxes};
use crate::{
    log::Log,
    scene::{How, Stage, assert_same_picture, field},
};
use bevy::{asset::RenderAssetUsages, mesh::MeshCompressionArgs, prelude::*};
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;

/// Steps through changes at run time, and compares after each.
#[test]
fn changes_at_run_time_are_drawn() {
    let run = |how| {
        let mut stage = Stage::new(how);
        let cube = stage.mesh(box_mesh());
        let cone = stage.mesh(Cone::new(0.3, 0.6));
        let materials = [red(), StandardMaterial::from(Color::srgb(0.2, 0.5, 0.9))]
            .map(|material| stage.add(material));
        let sets = [field(500, false), field(700, true)];
        stage.lights(false);
        stage.camera(eye(), ());
        let material = |index: usize| MeshMaterial3d(materials[index].clone());
        let mut first = stage.spawn_set(&sets[0], (cube.clone(), material(0)), Transform::IDENTITY);
        let mut pictures = vec![("start", stage.picture())];

        let world = stage.app.world_mut();
        world.get_mut::<Transform>(first).unwrap().rotate_y(0.5);
        pictures.push(("moved", stage.picture()));

        stage.entity(first).insert(Visibility::Hidden);
        stage.spawn_set(
            &field(40, false),
            (cone.clone(), material(1)),
            Transform::IDENTITY,
        );
        pictures.push(("hidden", stage.picture()));

        // An entity's handles are changed on the set and, one by one, on the entities that stand
        // for it.
        if how == How::Entities {
            stage.entity(first).despawn();
            let at = Transform::from_rotation(Quat::from_rotation_y(0.5));
            first = stage.spawn_set(&sets[1], (cone.clone(), material(1)), at);
        } else {
            let handle = stage.add(sets[1].clone());
            let mut entity = stage.entity(first);
            entity.insert((
                Visibility::Inherited,
                GpuInstances(handle),
                Mesh3d(cone.clone()),
                material(1),
            ));
        }
        pictures.push(("other set, mesh and material", stage.picture()));

        let mut assets = stage
            .app
            .world_mut()
            .resource_mut::<Assets<StandardMaterial>>();
        assets.get_mut(&materials[1]).unwrap().base_color = Color::srgb(0.9, 0.9, 0.1);
        pictures.push(("edited material", stage.picture()));

        let grown = [
            Transform::from_xyz(0.0, 1.0, 5.0),
            Transform::from_xyz(1.0, 1.0, 4.5),
        ];
        if how == How::Entities {
            for transform in grown {
                stage.spawn((Mesh3d(cone.clone()), material(1), transform, ChildOf(first)));
            }
        } else {
            let handle = stage
                .app
                .world()
                .get::<GpuInstances>(first)
                .unwrap()
                .0
                .clone();
            let mut assets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
            assets.get_mut(&handle).unwrap().extend(grown).unwrap();
        }
        pictures.push(("pushed", stage.picture()));

        stage.entity(first).despawn();
        pictures.push(("despawned", stage.picture()));
        stage.spawn_set(
            &sets[0],
            (cube, material(0)),
            Transform::from_xyz(0.0, 0.5, 0.0),
        );
        pictures.push(("respawned", stage.picture()));
        if how != How::Entities {
            stage.verify();
        }
        pictures
    };
    for ((name, set), (_, entities)) in run(How::Set(None)).into_iter().zip(run(How::Entities)) {
        assert_same_picture(&name.replace(' ', "-"), &set, &entities);
    }
}

#[test]
fn compactions_change_at_run_time() {
    let mut stage = Stage::new(How::Set(None));
    stage.lights(false);
    stage.camera(eye(), ());
    red_boxes(&mut stage, &field(3000, true), Transform::IDENTITY);
    let first = stage.picture();
    for &compaction in Compaction::ALL {
        stage
            .app
            .world_mut()
            .resource_mut::<GpuCullingSettings>()
            .compaction = compaction;
        let (picture, report) = stage.picture_and_report();
        assert_same_picture(&format!("switched-{compaction}"), &picture, &first);
        stage.verify();
        assert_eq!(report.compaction, compaction);
    }
}

#[test]
fn tiers_change_at_run_time() {
    let mut stage = Stage::new(How::Set(None));
    stage.lights(false);
    stage.camera(eye(), ());
    red_boxes(&mut stage, &field(1000, true), Transform::IDENTITY);
    let first = stage.picture();
    for tier in CullingTier::ALL {
        stage
            .app
            .world_mut()
            .resource_mut::<GpuCullingSettings>()
            .tier = Some(tier);
        assert_same_picture(&format!("switched-{tier}"), &stage.picture(), &first);
        stage.verify();
    }
}

/// Sets that the CPU has dropped stay when the culler is replaced by another of its tier.
#[test]
fn a_new_culler_takes_over_what_the_cpu_dropped() {
    for tier in CullingTier::ALL {
        let mut stage = Stage::new(How::Set(None));
        let world = stage.app.world_mut();
        world.resource_mut::<GpuCullingSettings>().tier = Some(tier);
        stage.camera(eye(), ());
        let dropped = field(300, true).with_asset_usage(RenderAssetUsages::RENDER_WORLD);
        red_boxes(&mut stage, &dropped, Transform::IDENTITY);
        let (first, report) = stage.picture_and_report();
        assert_eq!((report.tier, report.instances), (Some(tier), 300), "{tier}");
        let world = stage.app.world_mut();
        world.resource_mut::<GpuCullingSettings>().self_test ^= true;
        let (picture, report) = stage.picture_and_report();
        assert_eq!(report.instances, 300, "{tier}");
        assert_same_picture(&format!("dropped-{tier}"), &picture, &first);
    }
}

/// A set's box moves in the frame in which its instances do, or the set is missing for a
/// frame.
#[test]
fn a_set_that_leaves_its_box_is_drawn_in_the_same_frame() {
    let mut stage = Stage::new(How::Set(None));
    let near = field(300, false);
    let far = |at: f32| {
        let moved = move |instance: InstanceTransform| instance.translation + Vec3::X * at;
        near.iter().map(moved).collect::<Vec<_>>()
    };
    let away = InstanceSet::from_transforms(far(-1000.0)).unwrap();
    let set = red_boxes(&mut stage, &away, Transform::IDENTITY);
    stage.camera(eye(), ());
    let empty = stage.picture();
    let handle = stage
        .app
        .world()
        .get::<GpuInstances>(set)
        .unwrap()
        .0
        .clone();
    let mut sets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
    sets.get_mut(&handle)
        .unwrap()
        .splice(0..300, far(0.0))
        .unwrap();
    let now = stage.picture_now();
    assert_same_picture("left-its-box", &now, &stage.picture());
    assert_ne!(now, empty);
}

/// A set that does not fit into one frame's upload takes another's place as a whole, and so does a
/// set that gets a channel.
#[test]
fn a_large_set_is_replaced_in_one_frame() {
    let mut stage = Stage::new(How::Set(None));
    let [old, mut new] = [field(5_000, false), field(7_000, true)];
    let set = red_boxes(&mut stage, &old, Transform::IDENTITY);
    stage.camera(eye(), ());
    let before = stage.picture();
    let world = stage.app.world_mut();
    let handle = world.get::<GpuInstances>(set).unwrap().0.clone();
    // A fourth of it in the first frame: 1,024 instances.
    world.resource_mut::<GpuCullingSettings>().upload_budget = Some(4 * 16 * 1024);

    let replace = |stage: &mut Stage, before: &RgbaImage, edit: &dyn Fn(&mut InstanceSet)| {
        let mut sets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
        edit(&mut sets.get_mut(&handle).unwrap());
        let mut frames_before = 0;
        loop {
            let now = stage.picture_now();
            if now != *before {
                // Later frames show the same: all of it is there.
                assert_eq!(now, stage.picture());
                stage.verify();
                return (now, frames_before);
            }
            frames_before += 1;
            assert!(frames_before < 100);
        }
    };
    let (after, frames) = replace(&mut stage, &before, &|set| *set = new.clone());
    assert!(frames > 2, "{frames} frames drew the old set");
    // A first tag changes nothing that is seen; the first scale of a set without one does.
    let (again, frames) = replace(&mut stage, &after, &|set| *set = old.clone());
    assert!(frames > 2 && again == before);
    let (scaled, frames) = replace(&mut stage, &before, &|set| {
        let all: Vec<_> = set
            .iter()
            .map(|instance| instance.with_scale(2.0))
            .collect();
        set.set_range(0, all).unwrap();
    });
    assert!(frames > 2, "{frames} frames drew the set without scales");

    // What is edited on the way comes with the rest; a small edit after that comes at once.
    new.truncate(6_000);
    let edited = |set: &mut InstanceSet| {
        *set = new.clone();
        set.truncate(3_000);
    };
    let (small, _) = replace(&mut stage, &scaled, &edited);
    assert_ne!(small, after);
    let (_, frames) = replace(&mut stage, &small, &|set| set.truncate(500));
    assert_eq!(frames, 0);
}

/// A hidden instance looks like a removed one, on each tier, and comes back.
#[test]
fn hidden_instances_are_not_drawn() {
    for tier in CullingTier::ALL {
        let mut stage = Stage::new(How::Set(Some(tier)));
        let all = field(300, true);
        let set = red_boxes(&mut stage, &all, Transform::IDENTITY);
        stage.lights(false);
        stage.camera(eye(), ());
        let shown = stage.picture();
        let world = stage.app.world_mut();
        let handle = world.get::<GpuInstances>(set).unwrap().0.clone();
        let edit = |stage: &mut Stage, edit: &dyn Fn(&mut InstanceSet)| {
            let mut sets = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
            edit(&mut sets.get_mut(&handle).unwrap());
            let picture = stage.picture_now();
            stage.verify();
            picture
        };
        let hidden = edit(&mut stage, &|set| {
            (0..300).step_by(2).for_each(|at| set.hide(at).unwrap());
        });
        assert_ne!(hidden, shown);
        let back = edit(&mut stage, &|set| {
            (0..300).step_by(2).for_each(|at| set.show(at).unwrap());
        });
        assert_same_picture("shown-again", &back, &shown);
        let removed = edit(&mut stage, &|set| {
            set.retain(|index, _| index % 2 == 1).unwrap();
        });
        assert_same_picture("hidden", &hidden, &removed);
    }
}

/// What a compressed mesh is decoded with follows it: when it is compressed in place, and when the
/// next mesh gets the row of one that is gone.
#[test]
fn meshes_are_compressed_and_replaced_at_run_time() {
    let compress = |mesh: &mut Mesh| {
        mesh.compress_mesh(&MeshCompressionArgs::regular()).unwrap();
    };
    let run = |how| {
        let mut stage = Stage::new(how);
        let ring = stage.mesh(Torus::new(0.1, 0.4));
        let cube = stage.mesh(box_mesh());
        let material = stage.standard(red());
        for (mesh, count) in [(&ring, 120), (&cube, 90)] {
            let parts = (mesh.clone(), material.clone());
            stage.spawn_set(
                &field(count, true),
                parts,
                Transform::from_xyz(0.2, 0.3, 0.4),
            );
        }
        stage.lights(false);
        stage.camera(eye(), ());
        let mut pictures = vec![("plain", stage.picture())];

        let mut meshes = stage.app.world_mut().resource_mut::<Assets<Mesh>>();
        for mesh in [&ring, &cube] {
            compress(&mut meshes.get_mut(mesh).unwrap());
        }
        pictures.push(("compressed", stage.picture()));

        let world = stage.app.world_mut();
        let mut drawn = world.query::<&mut Mesh3d>();
        for mut mesh in drawn.iter_mut(world).filter(|mesh| mesh.0 == ring) {
            mesh.0 = cube.clone();
        }
        drop(ring);
        stage.update(3);
        let mut ball = Sphere::new(0.6).mesh().build();
        compress(&mut ball);
        let parts = (stage.mesh(ball), material);
        stage.spawn_set(&field(30, false), parts, Transform::IDENTITY);
        pictures.push(("another mesh", stage.picture()));
        pictures
    };
    let (set, entities) = (run(How::Set(None)), run(How::Entities));
    for ((name, set), (_, entities)) in set.iter().zip(&entities) {
        assert_same_picture(&format!("compression: {name}"), set, entities);
    }
}

/// The order that makes it so, which the schedule's executor could else choose the other way round.
#[test]
fn bounds_are_updated_after_asset_events() {
    use bevy::{asset::AssetEventSystems, ecs::schedule::Schedules};
    let builds = |before: bool| {
        let mut stage = Stage::new(How::Set(None));
        let set = GpuCullingSystems::UpdateBounds;
        match before {
            true => stage
                .app
                .configure_sets(PostUpdate, set.before(AssetEventSystems)),
            false => stage
                .app
                .configure_sets(PostUpdate, set.after(AssetEventSystems)),
        };
        let world = stage.app.world_mut();
        let mut schedule = world
            .resource_mut::<Schedules>()
            .remove(PostUpdate)
            .unwrap();
        schedule.initialize(world).is_ok()
    };
    assert!(builds(false));
    assert!(!builds(true), "the other order is possible");
}

/// A component that lies in no table. Queries that leave out entities with it do not see tables.
#[derive(Component)]
#[component(storage = "SparseSet")]
struct Asleep;

#[test]
fn sets_are_drawn_if_the_app_disables_entities_by_a_sparse_component() {
    let log = Log::start();
    let draw = |is_sparse| {
        // Before the first query is made.
        let mut stage = Stage::with(How::Set(None), |app| {
            if is_sparse {
                app.world_mut().register_disabling_component::<Asleep>();
            }
        });
        stage.camera(eye(), ());
        let ball = stage.mesh(Sphere::new(0.2).mesh().ico(2).unwrap());
        let look = (Mesh3d(ball), stage.standard(red()));
        let set = GpuInstances(stage.add(field(40, false)));
        stage.spawn((look.clone(), set.clone()));
        let one = stage.picture();
        // No asset changes with the second entity.
        let second = stage.spawn((look, set, Transform::from_xyz(0.0, 1.0, 0.0)));
        let both = stage.picture();
        let at = Transform::from_xyz(1.0, 1.0, 0.0);
        stage.entity(second).insert(at);
        let moved = stage.picture();
        assert!(both != one && moved != both);
        [one, both, moved]
    };
    assert!(draw(true) == draw(false));
    log.assert_once(&[
        "WARN",
        "all entities with GpuInstances are read in each frame",
    ]);
}
