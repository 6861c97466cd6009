//! What a frame makes again if one of many sets changes: counted, so that no clock decides.

use crate::scene::{How, Stage, field};
use bevy::{
    camera::visibility::Visibility, ecs::message::MessageCursor, platform::collections::HashMap,
    prelude::*, render::RenderApp,
};
use bevy_gpu_culling::{
    instance::GpuWritten,
    prelude::*,
    render::{FrameWork, InstanceBuffers},
};

const SETS: usize = 200;

/// Sets in view, each with its own material.
struct Many {
    stage: Stage,
    entities: Vec<Entity>,
    materials: Vec<Handle<StandardMaterial>>,
    camera: Entity,
}

impl Many {
    fn new(compaction: Compaction) -> Self {
        let mut stage = Stage::new(How::Set(None));
        let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
        settings.compaction = compaction;
        let mesh = stage.mesh(Cuboid::from_length(0.1));
        let (mut entities, mut materials) = (Vec::new(), Vec::new());
        for index in 0..SETS {
            let material = stage.standard(StandardMaterial::default());
            materials.push(material.0.clone());
            let (x, y) = ((index % 20) as f32, (index / 20) as f32);
            let at = Transform::from_xyz(x * 0.2 - 2.0, y * 0.2 - 1.0, 0.0);
            let set = field(40, false);
            entities.push(stage.spawn_set(&set, (mesh.clone(), material), at));
        }
        let eye = Transform::from_xyz(0.0, 0.0, 20.0).looking_at(Vec3::ZERO, Vec3::Y);
        let camera = stage.camera(eye, ());
        stage.update(8);
        Self {
            stage,
            entities,
            materials,
            camera,
        }
    }

    /// The work of a frame, before which `change` happens, and of the frame after it.
    fn works(&mut self, change: impl FnOnce(&mut Self)) -> [FrameWork; 2] {
        change(self);
        // The report arrives in the next frame.
        self.stage.update(1);
        let works = [(); 2].map(|()| {
            self.stage.update(1);
            self.stage.app.world().resource::<CullingReport>().work
        });
        self.stage.update(2);
        works
    }

    fn get<T: Component<Mutability = bevy::ecs::component::Mutable>>(
        &mut self,
        entity: Entity,
    ) -> Mut<'_, T> {
        self.stage.app.world_mut().get_mut(entity).unwrap()
    }

    fn edit(&mut self, index: usize, edit: impl FnOnce(&mut InstanceSet)) {
        let world = self.stage.app.world_mut();
        let set = world
            .get::<GpuInstances>(self.entities[index])
            .unwrap()
            .0
            .clone();
        let mut sets = world.resource_mut::<Assets<InstanceSet>>();
        edit(&mut sets.get_mut(&set).unwrap());
    }
}

const NOTHING: FrameWork = FrameWork {
    entities: 0,
    requests: 0,
    plans: 0,
    moved: 0,
    materials: 0,
    slot_bytes: 0,
    writes: 0,
    bound_jobs: 0,
    scatter_tiles: 0,
};

#[test]
fn one_set_that_changes_among_many_costs_what_it_costs() {
    let mut many = Many::new(Compaction::Auto);
    let camera = many.camera;
    let one = many.entities[SETS / 2];
    assert_eq!(many.works(|_| ()), [NOTHING; 2], "all still");
    let moved = many.works(|many| many.get::<Transform>(camera).translation.x += 0.1);
    assert_eq!(moved, [NOTHING; 2], "the camera moves");

    // The slot has the transform of the frame before, so it changes twice.
    let slot = FrameWork {
        requests: 1,
        slot_bytes: 688,
        ..NOTHING
    };
    let moved = many.works(|many| many.get::<Transform>(one).translation.z += 0.1);
    assert_eq!(moved, [FrameWork { moved: 1, ..slot }, slot], "one moves");

    let edited = FrameWork {
        writes: 1,
        bound_jobs: 1,
        ..NOTHING
    };
    let works = many.works(|many| many.edit(SETS / 2, |set| set.set(7, Vec3::Y).unwrap()));
    assert_eq!(works, [edited, NOTHING], "one is edited");

    // It stays at its place, and has as many blocks as before.
    let works = many.works(|many| {
        many.edit(SETS / 2, |set| {
            set.push(Vec3::Y).unwrap();
        });
    });
    let grown = FrameWork { moved: 1, ..edited };
    assert_eq!(works, [grown, NOTHING], "one gets an instance");

    // Its rows rest, and wait for it.
    let hidden = FrameWork {
        materials: 1,
        ..NOTHING
    };
    let last = *many.entities.last().unwrap();
    let works = many.works(|many| *many.get::<Visibility>(last) = Visibility::Hidden);
    assert_eq!(works, [hidden, NOTHING], "one leaves the view");
    let works = many.works(|many| *many.get::<Visibility>(last) = Visibility::Inherited);
    // It finds the slot and the rows that it had. No other set has its material, so that was new.
    let shown = FrameWork {
        requests: 1,
        ..hidden
    };
    assert_eq!(works, [shown, NOTHING], "one enters the view");

    let works = many.works(|many| {
        let material = &many.materials[3];
        let world = many.stage.app.world_mut();
        let mut all = world.resource_mut::<Assets<StandardMaterial>>();
        all.get_mut(material).unwrap().base_color = Color::BLACK;
    });
    assert!(
        works[0].materials <= 1 && works[1].materials <= 1 && works[0].plans == 0,
        "one material changes: {works:?}"
    );
    let (views, _) = many.stage.verify();
    assert_eq!(views, SETS);

    // Only what is read again counts.
    let read = FrameWork {
        entities: 1,
        requests: 1,
        ..NOTHING
    };
    let works = many.works(|many| {
        many.stage.entity(one).insert(NoOcclusionCulling);
    });
    assert_eq!(works, [read, NOTHING], "one gets a component");
    let works = many.works(|many| {
        many.stage.entity(one).remove::<NoOcclusionCulling>();
    });
    assert_eq!(works, [read, NOTHING], "one loses a component");
    let works = many.works(|many| {
        many.stage.entity(one).insert(NoInstanceSorting);
    });
    let planned = FrameWork { plans: 1, ..read };
    assert_eq!(works, [planned, NOTHING], "one is drawn in another order");
    let works = many.works(|many| {
        many.stage.entity(one).remove::<GpuInstances>();
    });
    assert_eq!(works, [NOTHING; 2], "one loses its set");
    // Its asset goes a frame later.
    let works = many.works(|many| many.stage.entity(last).despawn());
    assert_eq!(works, [NOTHING; 2], "one goes");
    let material = many.materials[0].clone();
    let spawn = |many: &mut Many| {
        // Its mesh is new, too.
        let mesh = many.stage.mesh(Cuboid::from_length(0.1));
        let parts = (mesh, MeshMaterial3d(material));
        let set = field(40, false);
        (many.stage).spawn_set(&set, parts, Transform::default())
    };
    let works = many.works(|many| {
        spawn(many);
    });
    let sum = |of: fn(&FrameWork) -> u64| works.iter().map(of).sum::<u64>();
    let seen = [
        sum(|work| work.entities),
        sum(|work| work.plans),
        sum(|work| work.moved),
        sum(|work| work.slot_bytes),
    ];
    // Its slot, and the table of the slots of as many granules as there are sets.
    let slots = 688 + 16 + 4 * SETS as u64;
    assert_eq!(seen, [1, 0, 1, slots], "one comes: {works:?}");
    let (views, _) = many.stage.verify();
    assert_eq!(views, SETS - 1);

    // It would be there twice.
    let set = many.stage.add(field(40, false));
    let works = many.works(|many| {
        many.stage.entity(one).insert(GpuInstances(set));
    });
    let all = SETS as u64;
    assert_eq!(works.map(|work| work.entities), [all, 0], "one comes back");
    let (views, _) = many.stage.verify();
    assert_eq!(views, SETS);
}

#[test]
fn a_camera_that_hides_makes_no_more_again_than_another() {
    let mut many = Many::new(Compaction::Auto);
    let (camera, last) = (many.camera, *many.entities.last().unwrap());
    many.stage
        .entity(camera)
        .insert(InstanceOcclusion::default());
    many.stage.update(8);
    assert_eq!(many.works(|_| ()), [NOTHING; 2], "all still");
    let turned = many.works(|many| {
        let eye = Transform::from_xyz(0.0, 0.0, 20.0).looking_at(Vec3::X * 30.0, Vec3::Y);
        *many.get::<Transform>(camera) = eye;
    });
    assert_eq!(turned, [NOTHING; 2], "all leave the view");
    let turned = many.works(|many| {
        let eye = Transform::from_xyz(0.0, 0.0, 20.0).looking_at(Vec3::ZERO, Vec3::Y);
        *many.get::<Transform>(camera) = eye;
    });
    assert_eq!(turned, [NOTHING; 2], "all enter the view");
    let hidden = many.works(|many| *many.get::<Visibility>(last) = Visibility::Hidden);
    assert_eq!(hidden.map(|work| work.plans), [0, 0], "one is hidden");
    let shown = many.works(|many| *many.get::<Visibility>(last) = Visibility::Inherited);
    // Its material is new again, so its pipelines say once more what they draw.
    assert_eq!(shown.map(|work| work.plans), [0, 0], "one is shown");
    let (views, visible) = many.stage.verify();
    assert_eq!((views, visible > 0), (SETS, true));
}

#[test]
fn a_material_that_many_sets_lose_and_get_again_draws_them() {
    let mut many = Many::new(Compaction::Auto);
    let shown = many.stage.picture();
    let all = many.entities.clone();
    for entity in &all {
        *many.get::<Visibility>(*entity) = Visibility::Hidden;
    }
    let hidden = many.stage.picture();
    assert!(hidden != shown);
    for entity in &all {
        *many.get::<Visibility>(*entity) = Visibility::Inherited;
    }
    assert!(many.stage.picture() == shown);
    // Entities that lose their set are drawn as Bevy draws them, with their own material.
    for entity in &all {
        many.stage.entity(*entity).remove::<GpuInstances>();
    }
    assert!(many.stage.picture() != hidden);
}

/// The frame in which each set last arrived completely.
#[derive(Default)]
struct Arrivals {
    cursor: MessageCursor<InstanceUploadProgress>,
    last: HashMap<AssetId<InstanceSet>, usize>,
}

impl Arrivals {
    fn read(&mut self, stage: &Stage, frame: usize) {
        let messages = stage
            .app
            .world()
            .resource::<Messages<InstanceUploadProgress>>();
        for one in self.cursor.read(messages).filter(|one| one.is_complete()) {
            self.last.insert(one.set, frame);
        }
    }
}

#[test]
fn sets_that_are_replaced_in_each_frame_take_turns() {
    let mut stage = Stage::new(How::Set(None));
    let (sets, instances) = (12, 1024);
    let bytes = instances as u64 * 16;
    let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
    // Two of the twelve.
    settings.upload_budget = Some(2 * bytes);
    let mesh = stage.mesh(Cuboid::from_length(0.05));
    let material = stage.standard(StandardMaterial::default());
    let set = field(instances, false);
    let handles: Vec<_> = (0..sets).map(|_| stage.add(set.clone())).collect();
    for handle in &handles {
        stage.spawn((
            Mesh3d(mesh.clone()),
            material.clone(),
            GpuInstances(handle.clone()),
        ));
    }
    stage.camera(Transform::from_xyz(0.0, 3.0, 7.0), ());
    let mut arrivals = Arrivals::default();
    for frame in 0..30 {
        stage.update(1);
        arrivals.read(&stage, frame);
    }
    assert_eq!(arrivals.last.len(), sets, "all have arrived");
    let mut oldest = 0;
    for frame in 30..80 {
        let mut all = stage.app.world_mut().resource_mut::<Assets<InstanceSet>>();
        for handle in &handles {
            let other = InstanceSet::from_packed(set.packed().to_vec()).unwrap();
            *all.get_mut(handle).unwrap() = other;
        }
        stage.update(1);
        arrivals.read(&stage, frame);
        let uploaded = stage.app.world().resource::<CullingReport>().uploaded_bytes;
        assert!(
            uploaded < 2 * bytes + 32_768,
            "{uploaded} bytes in one frame"
        );
        if frame >= 40 {
            let ages = arrivals.last.values().map(|last| frame - last);
            oldest = oldest.max(ages.max().unwrap());
        }
    }
    // The message comes a frame later.
    assert!(oldest <= 8, "one shows what it was {oldest} frames before");
}

#[test]
fn a_flow_of_small_sets_does_not_keep_a_large_one_from_arriving() {
    let mut stage = Stage::new(How::Set(None));
    let budget = 1024 * 16;
    let mut settings = stage.app.world_mut().resource_mut::<GpuCullingSettings>();
    settings.upload_budget = Some(budget);
    let mesh = stage.mesh(Cuboid::from_length(0.05));
    let material = stage.standard(StandardMaterial::default());
    stage.camera(Transform::from_xyz(0.0, 3.0, 7.0), ());
    let large = stage.add(field(10_000, false));
    stage.spawn((
        Mesh3d(mesh.clone()),
        material.clone(),
        GpuInstances(large.clone()),
    ));
    let small = field(1024, false);
    let mut arrivals = Arrivals::default();
    for frame in 0..60 {
        // As many bytes as the frame may upload.
        stage.spawn_set(
            &small,
            (mesh.clone(), material.clone()),
            Transform::default(),
        );
        stage.update(1);
        arrivals.read(&stage, frame);
        if arrivals.last.contains_key(&large.id()) {
            return;
        }
    }
    panic!("the large set has not arrived");
}

#[test]
fn a_set_that_the_gpu_writes_costs_nothing_while_no_view_tests_it() {
    let mut many = Many::new(Compaction::Classify);
    let set = InstanceSet::gpu_written(5000, GpuWritten::within(-Vec3::ONE, Vec3::ONE)).unwrap();
    let set = many.stage.add(set);
    let mesh = many.stage.mesh(Cuboid::from_length(0.05));
    let material = many.stage.standard(StandardMaterial::default());
    let spawn = |many: &mut Many| {
        let parts = (Mesh3d(mesh.clone()), material.clone());
        many.stage.spawn((parts, GpuInstances(set.clone())))
    };
    let has_buffers = |many: &Many| {
        let world = many.stage.app.sub_app(RenderApp).world();
        world.resource::<InstanceBuffers>().get(&set).is_some()
    };
    let entity = spawn(&mut many);
    many.stage.update(3);
    let jobs = |works: [FrameWork; 2]| works.map(|work| work.bound_jobs);
    assert!(has_buffers(&many));
    assert_eq!(jobs(many.works(|_| ())), [1, 1]);
    let works = many.works(|many| *many.get::<Visibility>(entity) = Visibility::Hidden);
    assert_eq!(jobs(works), [0, 0], "hidden");
    assert!(has_buffers(&many), "an entity uses it");
    let works = many.works(|many| *many.get::<Visibility>(entity) = Visibility::Inherited);
    assert_eq!(jobs(works), [1, 1], "shown again");
    let works = many.works(|many| {
        many.stage.app.world_mut().despawn(entity);
    });
    assert_eq!(jobs(works), [0, 0], "no entity uses it");
    assert!(!has_buffers(&many));
    spawn(&mut many);
    many.stage.update(2);
    assert!(has_buffers(&many), "used again");
}
