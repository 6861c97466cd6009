//! Which entities changed, by the ticks of whole tables.
//!
//! A filter such as `Or<(Changed<A>, Changed<B>)>` asks each component of each entity. The ticks of
//! a component lie next to each other in a table, so that looking at all of them takes about a
//! tenth of that. Most tables have none that is new.

use bevy::ecs::change_detection::{ContiguousRef, Tick};

/// When some components of the entities of a table changed.
pub(super) struct TableTicks<'w, const COLUMNS: usize> {
    /// A tick per entity; empty for a component that the table lacks.
    pub columns: [&'w [Tick]; COLUMNS],
    /// When the system ran last, and when it runs now.
    pub run: (Tick, Tick),
}

/// The ticks of a component of a table, which may lack it.
pub(super) fn ticks_of<'w, T>(column: Option<&ContiguousRef<'w, T>>) -> &'w [Tick] {
    column.map_or(&[], ContiguousRef::changed_ticks_slice)
}

/// When the system that reads a component ran last, and when it runs now.
pub(super) fn run_of<T>(column: &ContiguousRef<T>) -> (Tick, Tick) {
    (column.last_run_tick(), column.this_run_tick())
}

impl<const COLUMNS: usize> TableTicks<'_, COLUMNS> {
    /// Whether something changed since the system ran last.
    pub fn have_changed(&self) -> bool {
        self.columns.iter().any(|column| {
            // Without an early end, the compiler compares several ticks at once.
            column
                .iter()
                .fold(false, |changed, tick| changed | self.is_new(*tick))
        })
    }

    /// The rows of the entities of which something changed since the system ran last.
    pub fn changed_rows(&self) -> impl Iterator<Item = usize> {
        let rows = match self.have_changed() {
            true => self.columns.iter().map(|column| column.len()).max(),
            false => None,
        };
        (0..rows.unwrap_or(0)).filter(|row| {
            let mut ticks = self.columns.iter().filter_map(|column| column.get(*row));
            ticks.any(|tick| self.is_new(*tick))
        })
    }

    fn is_new(&self, tick: Tick) -> bool {
        let (last, now) = self.run;
        tick.is_newer_than(last, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::{
        ecs::{query::QueryData, system::RunSystemOnce},
        prelude::*,
    };

    #[derive(Component)]
    struct Always(u32);

    #[derive(Component)]
    struct Seldom(u32);

    #[derive(QueryData)]
    #[query_data(contiguous(all))]
    struct Columns {
        entity: Entity,
        always: Ref<'static, Always>,
        seldom: Option<Ref<'static, Seldom>>,
    }

    type SomeChanged = Or<(Changed<Always>, Changed<Seldom>)>;

    /// The entities that the ticks of both components, and Bevy's filter, call changed.
    fn changed(tables: Query<Columns>, filtered: Query<Entity, SomeChanged>) -> [Vec<Entity>; 2] {
        let tables = tables.contiguous_iter().expect("dense components");
        let by_ticks = tables.flat_map(|table| {
            let ticks = TableTicks {
                columns: [
                    ticks_of(Some(&table.always)),
                    ticks_of(table.seldom.as_ref()),
                ],
                run: run_of(&table.always),
            };
            let rows = ticks.changed_rows();
            rows.map(|row| table.entity[row]).collect::<Vec<_>>()
        });
        [by_ticks.collect(), filtered.iter().collect()]
    }

    #[test]
    fn ticks_name_the_same_entities_as_bevys_filter() {
        let mut world = World::new();
        let mut all = Vec::new();
        for index in 0..100 {
            let mut entity = world.spawn(Always(index));
            if index % 3 == 0 {
                entity.insert(Seldom(index));
            }
            all.push(entity.id());
        }
        let system = world.register_system(changed);
        let run = |world: &mut World| -> Vec<Entity> {
            let [by_ticks, filtered] = world.run_system(system).expect("the system runs");
            assert_eq!(by_ticks, filtered);
            by_ticks
        };
        assert_eq!(run(&mut world).len(), 100);
        assert_eq!(run(&mut world), []);
        for index in [4, 9, 98] {
            world.get_mut::<Always>(all[index]).expect("it has one").0 += 1;
        }
        world.get_mut::<Seldom>(all[99]).expect("it has one").0 += 1;
        world.entity_mut(all[1]).insert(Seldom(1));
        let mut expected = vec![all[4], all[9], all[98], all[99], all[1]];
        expected.sort();
        let mut found = run(&mut world);
        found.sort();
        assert_eq!(found, expected);
        world.entity_mut(all[1]).remove::<Seldom>();
        assert_eq!(run(&mut world), []);
        let [first, _] = world.run_system_once(changed).expect("the system runs");
        assert_eq!(first.len(), 100);
    }
}
