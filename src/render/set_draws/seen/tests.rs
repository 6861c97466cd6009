use super::*;
use bevy::prelude::Entity;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn main(index: u32) -> MainEntity {
    Entity::from_raw_u32(index)
        .unwrap_or(Entity::PLACEHOLDER)
        .into()
}

/// Entities in ascending order, whose order is not the order of their indices.
fn sorted(indices: &BTreeSet<u32>) -> Vec<MainEntity> {
    let mut entities: Vec<_> = indices.iter().map(|index| main(*index)).collect();
    entities.sort_unstable();
    entities
}

proptest! {
    #[test]
    fn the_common_entities_of_two_lists_are_found_once(
        sets in prop::collection::btree_set(0u32..300, 0..60),
        visible in prop::collection::btree_set(0u32..300, 0..200),
    ) {
        let of_sets: Vec<_> = sorted(&sets).into_iter().zip(0..).collect();
        let list: Vec<_> = sorted(&visible).into_iter().map(|entity| ((), entity)).collect();
        let mut found = Vec::new();
        each_common(&of_sets, &list, |place| found.push(place));
        let expected = of_sets.iter().filter(|(set, _)| list.contains(&((), *set)));
        prop_assert_eq!(found, expected.map(|(_, place)| *place).collect::<Vec<_>>());
    }

    /// A frame is the entity that some place has from then on, which no place had before, or
    /// none; what each view sees; and whether Bevy makes its lists again.
    #[test]
    fn what_is_followed_is_what_a_walk_finds(
        sets in prop::collection::btree_set(0u32..80, 1..30),
        frames in prop::collection::vec(
            (
                prop::collection::btree_map(0usize..35, any::<bool>(), 0..4),
                prop::collection::vec(prop::collection::btree_set(0u32..120, 0..60), 70),
                prop::bool::weighted(0.2),
            ),
            1..6,
        ),
    ) {
        let mut places: Vec<_> = sorted(&sets).into_iter().map(Some).collect();
        let listed = |places: &[Option<MainEntity>]| {
            let listed = places.iter().zip(0..).filter_map(|(entity, place)| Some(((*entity)?, place)));
            listed.collect::<Vec<_>>()
        };
        let mut followed = SeenSets::default();
        followed.sort(listed(&places).into_iter());
        followed.count = places.len();
        let mut next = 80;
        let mut lists = vec![RenderVisibleEntitiesClass::default(); 70];
        for (frame, (changes, seen, is_made_again)) in frames.iter().enumerate() {
            let mut changed = Vec::new();
            for (place, is_gone) in changes.iter().filter(|_| frame > 0) {
                let entity = (!is_gone).then(|| main(next));
                next += 1;
                let place = (*place).min(places.len());
                changed.push(place);
                match places.get_mut(place) {
                    Some(known) => *known = entity,
                    None => places.push(entity),
                }
            }
            changed.dedup();
            for (list, seen) in lists.iter_mut().zip(seen) {
                if *is_made_again {
                    *list = RenderVisibleEntitiesClass::default();
                }
                let seen: Vec<_> = sorted(seen);
                let seen: Vec<_> = seen.into_iter().map(|main| (Entity::PLACEHOLDER, main)).collect();
                list.prepare_for_new_frame();
                list.update_cpu_culled_entities(&seen);
            }
            let key = |view| RetainedViewEntity::new(main(view), None, 0);
            let views = (0..).map(key).zip(lists.iter().map(Some)).collect::<Vec<_>>();
            let before = followed.bits.clone();
            let entity_at = |place: usize| places[place];
            followed.see(frame > 0, &changed, entity_at, views.iter().copied());
            let mut walked = SeenSets::default();
            walked.sort(listed(&places).into_iter());
            walked.count = places.len();
            walked.see(false, &[], entity_at, views.iter().copied());
            prop_assert_eq!(&followed.bits, &walked.bits);
            prop_assert_eq!(&followed.by_entity, &walked.by_entity);
            prop_assert!(!walked.is_followed);
            prop_assert!(is_made_again | followed.is_followed | (frame == 0));
            for place in 0..places.len() {
                let of = (0..70).filter(|view| followed.sees(*view as usize, place));
                prop_assert_eq!(followed.views_of(place).collect::<Vec<_>>(), of.collect::<Vec<u32>>());
                prop_assert_eq!(followed.places().contains(&place), followed.is_seen(place));
                if followed.is_followed {
                    let words = place * 2..place * 2 + 2;
                    let before = before.get(words.clone()).unwrap_or(&[0, 0]);
                    let was_seen = before.iter().any(|word| *word != 0);
                    let is_changed = before != &followed.bits[words];
                    let noted = followed.changed.iter().find(|changed| changed.place == place);
                    prop_assert!(noted.is_some() || !is_changed);
                    prop_assert!(noted.is_none_or(|noted| noted.was_seen == was_seen));
                }
            }
        }
    }
}
