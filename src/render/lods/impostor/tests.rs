//! Tests of which impostors sets have.

use super::*;
use crate::instance::InstanceSet;

/// A world in which the system has run once.
struct Attached {
    world: World,
    schedule: Schedule,
    set: Handle<InstanceSet>,
}

impl Attached {
    fn new() -> Self {
        let mut world = World::new();
        world.init_resource::<Assets<InstanceSet>>();
        let set = world.resource_mut::<Assets<InstanceSet>>();
        let set = set.into_inner().add(InstanceSet::new());
        let mut schedule = Schedule::default();
        schedule.add_systems(attach_impostors);
        Self {
            world,
            schedule,
            set,
        }
    }

    fn run(&mut self) {
        self.schedule.run(&mut self.world);
    }

    /// The set that the impostor draws, and the impostor that the parent knows.
    fn state(&self, parent: Entity, child: Entity) -> (bool, Option<Entity>) {
        let instances = self.world.get::<GpuInstances>(child);
        let has_set = instances.is_some_and(|instances| instances.0 == self.set);
        assert_eq!(has_set, self.world.get::<ImpostorOf>(child).is_some());
        let known = self.world.get::<SetImpostor>(parent);
        (has_set, known.map(|known| known.entity))
    }
}

#[test]
fn an_impostor_has_its_parents_set_as_long_as_it_is_its_child() {
    let mut scene = Attached::new();
    let set = GpuInstances(scene.set.clone());
    let parent = scene.world.spawn(set.clone()).id();
    let child = scene.world.spawn(InstanceImpostor { error: 1.0 }).id();
    scene.run();
    assert_eq!(scene.state(parent, child), (false, None), "no parent");
    scene.world.entity_mut(child).insert(ChildOf(parent));
    scene.run();
    assert_eq!(scene.state(parent, child), (true, Some(child)));

    let second = scene
        .world
        .spawn((InstanceImpostor { error: 2.0 }, ChildOf(parent)))
        .id();
    scene.run();
    assert_eq!(scene.state(parent, second), (false, Some(child)), "second");
    scene.world.entity_mut(child).remove::<ChildOf>();
    scene.run();
    assert_eq!(scene.state(parent, child), (false, Some(second)));
    assert_eq!(scene.state(parent, second), (true, Some(second)));

    scene.world.entity_mut(parent).remove::<GpuInstances>();
    scene.run();
    assert_eq!(scene.state(parent, second), (false, None), "no set");
    scene.world.entity_mut(parent).insert(set.clone());
    scene.run();
    assert_eq!(scene.state(parent, second), (true, Some(second)));

    for error in [-1.0, f32::NAN, f32::INFINITY] {
        let impostor = InstanceImpostor { error };
        scene.world.entity_mut(second).insert(impostor);
        scene.run();
        assert_eq!(scene.state(parent, second), (false, None), "{error}");
    }
    scene
        .world
        .entity_mut(second)
        .insert(InstanceImpostor { error: 3.0 });
    scene.run();
    let known = scene.world.get::<SetImpostor>(parent);
    assert_eq!(known.map(|known| known.error), Some(3.0));
    scene.world.entity_mut(second).despawn();
    scene.run();
    assert!(!scene.world.entity(parent).contains::<SetImpostor>());
}

/// An entity that is no impostor any more keeps its set, as it keeps any required component.
#[test]
fn what_is_no_impostor_any_more_is_an_ordinary_set() {
    let mut scene = Attached::new();
    let set = GpuInstances(scene.set.clone());
    let parent = scene.world.spawn(set).id();
    let child = scene
        .world
        .spawn((InstanceImpostor { error: 1.0 }, ChildOf(parent)))
        .id();
    scene.run();
    scene.world.entity_mut(child).remove::<InstanceImpostor>();
    scene.run();
    assert!(!scene.world.entity(parent).contains::<SetImpostor>());
    assert!(!scene.world.entity(child).contains::<ImpostorOf>());
    let instances = scene.world.get::<GpuInstances>(child);
    assert_eq!(instances.map(|set| &set.0), Some(&scene.set));
}

#[test]
fn removals_from_other_entities_concern_no_impostor() -> Result {
    let mut scene = Attached::new();
    let set = || GpuInstances(scene.set.clone());
    let parent = scene.world.spawn(set()).id();
    let child = (InstanceImpostor { error: 1.0 }, ChildOf(parent));
    let child = scene.world.spawn(child).id();
    let other_set = scene.world.spawn(set()).id();
    let button = scene.world.spawn_empty().id();
    let label = scene.world.spawn(ChildOf(button)).id();
    let shot = scene.world.spawn(ChildOf(other_set)).id();
    scene.run();
    let concern = |mut removals: Removals| removals.concern_impostors();
    let world = &mut scene.world;
    let concern = world.register_system(concern);
    world.clear_trackers();
    assert!(!world.run_system(concern)?, "nothing was removed");
    world.entity_mut(label).remove::<ChildOf>();
    world.despawn(shot);
    world.despawn(button);
    world.despawn(other_set);
    assert!(!world.run_system(concern)?, "none is or has an impostor");
    world.entity_mut(child).remove::<ChildOf>();
    assert!(world.run_system(concern)?, "an impostor lost its parent");
    world.despawn(child);
    assert!(world.run_system(concern)?, "an impostor is gone");
    Ok(())
}

#[test]
fn problems_name_what_is_missing() {
    let entity = |index| Entity::from_raw_u32(index).unwrap_or(Entity::PLACEHOLDER);
    let (parent, other) = (entity(3), entity(4));
    for (problem, named) in [
        (problem_of(f32::NAN, None, None), "NaN".to_owned()),
        (problem_of(1.0, None, None), "no parent".to_owned()),
        (
            problem_of(1.0, Some(parent), Some(other)),
            format!("{other}. Remove"),
        ),
        (
            problem_of(1.0, Some(parent), None),
            format!("{parent} has no GpuInstances"),
        ),
    ] {
        assert!(problem.contains(&named), "{problem}");
    }
}
