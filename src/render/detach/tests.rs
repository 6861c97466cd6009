#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

/// All materials are copied in the same way.
type Material = MeshMaterial3d<StandardMaterial>;

#[derive(Component)]
struct Mine;

/// A world with a set of three instances on an entity that is moved.
fn forest() -> (World, Entity) {
    let mut world = World::new();
    let registry = AppTypeRegistry::default();
    registry.write().register::<Material>();
    world.insert_resource(registry);
    let mut sets = Assets::<InstanceSet>::default();
    let rows = (0..3).map(|i| Transform::from_xyz(i as f32, 0.0, 0.0));
    let set = InstanceSet::from_transforms(rows).unwrap();
    let set = sets.add(set);
    world.insert_resource(sets);
    let entity = world.spawn((
        GpuInstances(set),
        Mesh3d::default(),
        Material::default(),
        Transform::from_xyz(0.0, 5.0, 0.0).with_scale(Vec3::splat(2.0)),
        (RenderLayers::layer(3), NotShadowCaster, Mine),
    ));
    let entity = entity.id();
    (world, entity)
}

fn set(world: &World, entity: Entity) -> &InstanceSet {
    let handle = &world.get::<GpuInstances>(entity).unwrap().0;
    world.resource::<Assets<InstanceSet>>().get(handle).unwrap()
}

fn edit(world: &mut World, entity: Entity, edit: impl FnOnce(&mut InstanceSet)) {
    let handle = world.get::<GpuInstances>(entity).unwrap().0.clone();
    let mut sets = world.resource_mut::<Assets<InstanceSet>>();
    edit(&mut sets.get_mut(&handle).unwrap());
}

fn detached(world: &mut World, forest: Entity, index: u32) -> Entity {
    let entity = world.commands().detach_instance(forest, index).id();
    world.flush();
    entity
}

fn attach_again(world: &mut World, entity: Entity) {
    world.commands().attach_instance(entity);
    world.flush();
}

#[test]
fn an_instance_becomes_an_entity_that_looks_like_it() {
    let (mut world, forest) = forest();
    let tree = detached(&mut world, forest, 2);
    assert!(set(&world, forest).is_hidden(2));
    let place = world.get::<Transform>(tree).unwrap();
    assert_eq!(*place, Transform::from_xyz(2.0, 0.0, 0.0));
    assert_eq!(world.get::<ChildOf>(tree).unwrap().0, forest);
    let tree = world.entity(tree);
    assert!(tree.contains::<Mesh3d>() && tree.contains::<Material>());
    assert!(tree.contains::<NotShadowCaster>());
    assert_eq!(tree.get::<RenderLayers>(), Some(&RenderLayers::layer(3)));
    assert!(!tree.contains::<GpuInstances>() && !tree.contains::<Mine>());
}

#[test]
fn an_entity_that_nobody_moved_becomes_the_same_instance() {
    let (mut world, forest) = forest();
    let turn = Quat::from_euler(EulerRot::XYZ, 0.3, 1.1, -0.7);
    let place = Transform::from_xyz(0.1, 0.2, 0.3).with_rotation(turn);
    edit(&mut world, forest, |set| set.set(1, place).unwrap());
    let before = set(&world, forest).packed()[1];
    let tree = detached(&mut world, forest, 1);
    attach_again(&mut world, tree);
    assert_eq!(set(&world, forest).packed()[1], before);
    assert!(!set(&world, forest).is_hidden(1));
    assert!(world.get_entity(tree).is_err());
}

#[test]
fn an_instance_comes_back_where_its_entity_is() {
    let (mut world, forest) = forest();
    let tree = detached(&mut world, forest, 0);
    // In the world, without a parent.
    world.entity_mut(tree).remove::<ChildOf>();
    let place = Transform::from_xyz(4.0, 7.0, -2.0).with_scale(Vec3::splat(6.0));
    world.entity_mut(tree).insert(place);
    attach_again(&mut world, tree);
    let back = set(&world, forest).get(0).unwrap();
    assert_eq!(back.translation, Vec3::new(2.0, 1.0, -1.0));
    assert_eq!(back.scale, Vec3::splat(3.0));
}

#[test]
fn what_draws_the_same_set_becomes_children() {
    let (mut world, forest) = forest();
    let instances = world.get::<GpuInstances>(forest).unwrap().clone();
    let up = Transform::from_xyz(0.0, 3.0, 0.0);
    let crown = (
        instances.clone(),
        InstanceOffset::from(up),
        Mesh3d::default(),
    );
    let card = (
        instances,
        InstanceImpostor { error: 0.1 },
        Mesh3d::default(),
    );
    world.spawn((
        crown,
        ChildOf(forest),
        Material::default(),
        Visibility::Hidden,
    ));
    world.spawn((card, ChildOf(forest)));
    let tree = detached(&mut world, forest, 0);
    assert!(world.get::<Mesh3d>(tree).is_some(), "the trunk");
    let children = world.get::<Children>(tree).unwrap().to_vec();
    assert_eq!(children.len(), 1, "the crown, and no impostor");
    assert_eq!(world.get::<Transform>(children[0]), Some(&up));
    assert!(world.get::<Material>(children[0]).is_some());
    assert_eq!(
        world.get::<Visibility>(children[0]),
        Some(&Visibility::Hidden)
    );
}

#[test]
fn an_instance_is_found_by_its_id() {
    let (mut world, forest) = forest();
    edit(&mut world, forest, |set| *set = set.clone().with_ids());
    let tree = detached(&mut world, forest, 2);
    let id = world.get::<DetachedInstance>(tree).unwrap().id;
    edit(&mut world, forest, |set| {
        let _ = set.swap_remove(0).unwrap();
    });
    let now = set(&world, forest).index_of(id.unwrap()).unwrap();
    assert_ne!(now, 2);
    attach_again(&mut world, tree);
    assert!(!set(&world, forest).is_hidden(now));
}

/// Without ids, an index may be another instance's by now.
#[test]
fn an_instance_that_an_edit_moved_there_is_not_overwritten() {
    let (mut world, forest) = forest();
    let tree = detached(&mut world, forest, 0);
    edit(&mut world, forest, |set| {
        let _ = set.swap_remove(0).unwrap();
    });
    let last = set(&world, forest).packed()[0];
    world.get_mut::<Transform>(tree).unwrap().translation.y = 7.0;
    attach_again(&mut world, tree);
    assert!(world.get_entity(tree).is_ok());
    assert_eq!(set(&world, forest).packed()[0], last);
    // If the app says that this instance may go, it does.
    edit(&mut world, forest, |set| set.hide(0).unwrap());
    attach_again(&mut world, tree);
    assert!(world.get_entity(tree).is_err());
    assert_eq!(set(&world, forest).get(0).unwrap().translation.y, 7.0);
}

#[test]
fn what_cannot_be_done_says_why_and_changes_nothing() {
    let (mut world, forest) = forest();
    let new = world.spawn_empty().id();
    let refused = |world: &mut World, set: Entity, index: u32| {
        let refused = detach(world, new, set, index).unwrap_err();
        assert!(
            world.entity(new).archetype().component_count() == 0,
            "{new} has components"
        );
        refused.to_string()
    };
    let other = world.spawn_empty().id();
    assert_eq!(
        refused(&mut world, other, 0),
        format!("{other} has no GpuInstances")
    );
    let beyond = refused(&mut world, forest, 3);
    assert!(
        beyond.contains(" has 3 instances; this index is beyond them"),
        "{beyond}"
    );
    let tree = detached(&mut world, forest, 1);
    assert!(refused(&mut world, forest, 1).starts_with("it is hidden already"));
    assert!(matches!(
        attach(&mut world, other),
        Err(DetachError::NotDetached)
    ));
    world.get_mut::<Transform>(tree).unwrap().translation.x = f32::NAN;
    assert!(matches!(
        attach(&mut world, tree),
        Err(DetachError::Transform(_))
    ));
    assert!(set(&world, forest).is_hidden(1) && world.get_entity(tree).is_ok());
    edit(&mut world, forest, |set| set.clear());
    assert!(matches!(
        attach(&mut world, tree),
        Err(DetachError::Removed(1))
    ));
    world.entity_mut(forest).insert(GpuInstances::default());
    assert!(matches!(
        attach(&mut world, tree),
        Err(DetachError::NoAsset(_))
    ));
}
