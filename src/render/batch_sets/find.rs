//! Finds the batch sets of a plan.

use super::{
    member::Member,
    view::{BatchSetDraw, ListDraws, ViewBatchSets},
};
use crate::cull::{Culler, DrawList, DrawPart, WantedDraws};
use crate::render::{draw_slots::SlotTable, set_draws::SetDraws};
use bevy::platform::collections::{HashMap, hash_map::Entry};

/// The batch sets of a plan.
#[derive(Default)]
pub(super) struct Found {
    pub views: Vec<ViewBatchSets>,
    pub wanted: Vec<WantedDraws>,
    pub tables: Vec<SlotTable>,
}

/// A table describes a page, for what is drawn as one shape of the requests.
type TableKey = (usize, usize);

impl Found {
    pub fn new(draws: &SetDraws, culler: &Culler) -> Self {
        let mut found = Self::default();
        let (places, members) = found.add_tables(draws);
        // The members of each batch set, in the order of `drawn`.
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for (index, member) in members {
            let number = member.batch_set as usize;
            if sets.len() <= number {
                sets.resize_with(number + 1, Vec::new);
            }
            sets[number].push(index);
        }
        sets.retain(|members| members.len() > 1);
        if sets.is_empty() {
            found.tables.clear();
            return found;
        }
        for set in &sets {
            found.add_set(set, &places, draws, culler);
        }
        found
    }

    /// Fills the tables. Returns the table of each entity, and the members that have one.
    fn add_tables(&mut self, draws: &SetDraws) -> (HashMap<TableKey, u32>, Vec<(usize, Member)>) {
        let mut places: HashMap<TableKey, u32> = HashMap::default();
        let mut members = Vec::new();
        for (index, drawn) in draws.drawn.iter().enumerate() {
            let request = draws.frame.requests.get(drawn.of.request);
            // The granules of a set without rows may have become another's.
            let has_rows = request.is_some_and(|request| !request.views.is_empty());
            let Some(member) = drawn.member.filter(|_| has_rows) else {
                continue;
            };
            let granules = member.granules;
            let next = self.tables.len() as u32;
            let place = match places.entry((granules.page, drawn.of.shape)) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    self.tables.push(SlotTable::default());
                    *entry.insert(next)
                }
            };
            let granules = granules.first..granules.end;
            if self.tables[place as usize].put(granules, drawn.first_slot) {
                members.push((index, member));
            }
        }
        (places, members)
    }

    /// Adds a batch set in all views in which several of its members are.
    fn add_set(
        &mut self,
        members: &[usize],
        tables: &HashMap<TableKey, u32>,
        draws: &SetDraws,
        culler: &Culler,
    ) {
        let mut by_view: Vec<InView> = Vec::new();
        for &index in members {
            let drawn = &draws.drawn[index];
            let (Some(member), Some(request)) =
                (drawn.member, draws.frame.requests.get(drawn.of.request))
            else {
                continue;
            };
            let key = (member.granules.page, drawn.of.shape);
            let Some(&table) = tables.get(&key) else {
                continue;
            };
            for (place, view) in request.views.iter().enumerate() {
                let command = |part: &DrawPart| {
                    Some(Command {
                        batch: part.batch,
                        table,
                        command: culler.command_of(part, drawn.of.shape)?,
                    })
                };
                let at = *view as usize;
                if by_view.len() <= at {
                    by_view.resize_with(at + 1, Default::default);
                }
                by_view[at].members.push(index);
                for list in ListDraws::lists(culler.hides(*view)) {
                    let parts = culler.draw_parts_of(drawn.of.request, (place, *view), *list);
                    let commands = parts.iter().filter_map(command);
                    by_view[at]
                        .commands
                        .extend(commands.map(|command| (*list, command)));
                }
            }
        }
        for (view, mut found) in by_view.into_iter().enumerate() {
            if found.members.len() < 2 {
                continue;
            }
            if self.views.len() <= view {
                self.views.resize_with(view + 1, Default::default);
            }
            let key = |(list, command): &(DrawList, Command)| (*list, command.batch, command.table);
            found.commands.sort_by_key(key);
            let mut lists = ListDraws::default();
            for run in found.commands.chunk_by(|a, b| key(a) == key(b)) {
                let (list, batch, table) = key(&run[0]);
                let commands = run.iter().map(|(_, command)| command.command);
                let draw = want(&mut self.wanted, batch, commands.collect());
                lists.add(list, BatchSetDraw { batch, table, draw });
            }
            let view = &mut self.views[view];
            view.of_drawn.resize(draws.drawn.len(), None);
            for member in &found.members {
                view.of_drawn[*member] = Some(view.sets.len() as u32);
            }
            view.sets.push(lists);
            view.members.push(found.members);
        }
    }
}

/// The members of a batch set that a view sees.
#[derive(Default)]
struct InView {
    members: Vec<usize>,
    commands: Vec<(DrawList, Command)>,
}

/// A command of a member.
struct Command {
    batch: usize,
    table: u32,
    /// Its index in the batch.
    command: u32,
}

/// Adds a multi-draw of commands of a batch. Returns its index in the batch.
fn want(wanted: &mut Vec<WantedDraws>, batch: usize, commands: Vec<u32>) -> usize {
    let at = match wanted.iter().position(|draws| draws.batch == batch) {
        Some(at) => at,
        None => {
            wanted.push(WantedDraws {
                batch,
                draws: Vec::new(),
            });
            wanted.len() - 1
        }
    };
    let draws = &mut wanted[at].draws;
    draws.push(commands);
    draws.len() - 1
}
