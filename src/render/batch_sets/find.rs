//! Finds the batch sets of a plan.

use super::{
    member::Member,
    view::{BatchSetDraw, ListDraws, ViewBatchSets},
};
use crate::cull::{Culler, DrawList, DrawPart, WantedDraws};
use crate::render::{
    draw_slots::SlotTable,
    set_draws::{Drawn, SetDraws},
};
use bevy::platform::collections::{HashMap, hash_map::Entry};

/// The batch sets of a plan.
#[derive(Default)]
pub(super) struct Found {
    /// By the index of the view.
    pub views: Vec<ViewBatchSets>,
    pub wanted: Vec<WantedDraws>,
    pub tables: Vec<SlotTable>,
    /// Index of each table in `tables`.
    places: HashMap<TableKey, u32>,
}

/// A table describes a page, for what is drawn as one shape of the requests.
type TableKey = (usize, usize);

impl Found {
    pub fn new(draws: &SetDraws, culler: &Culler) -> Self {
        let mut found = Self::default();
        let members = found.add_tables(draws);
        // The members of each batch set, in the order of `drawn`.
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for (index, member) in members {
            let number = member.batch_set as usize;
            if sets.len() <= number {
                sets.resize_with(number + 1, Vec::new);
            }
            sets[number].push(index);
        }
        let sets = (0..).zip(&sets).filter(|(_, members)| members.len() > 1);
        for (number, members) in sets {
            found.add_set(number, members, draws, culler);
        }
        if found.wanted.is_empty() {
            found = Self::default();
        }
        found
    }

    /// Takes the granules from entities that went, at these indices: other sets may get them. Their
    /// rows rest, so their commands draw nothing.
    pub fn let_go(&mut self, went: &[usize], draws: &SetDraws) {
        for drawn in went.iter().filter_map(|index| draws.drawn.get(*index)) {
            let Some(member) = drawn.member else {
                continue;
            };
            if let Some(&table) = self.places.get(&table_key(&member, drawn)) {
                let granules = member.granules.first..member.granules.end;
                self.tables[table as usize].remove(granules, drawn.first_slot);
            }
        }
    }

    /// Adds the entities of the frame from `first_new` on to batch sets that are there. Returns
    /// false if one is missing, of some entity in some view: all must then be found again.
    pub fn grow(&mut self, first_new: usize, draws: &SetDraws, culler: &Culler) -> bool {
        let mut new = draws.drawn.iter().enumerate().skip(first_new);
        new.all(|(index, drawn)| {
            let Some(member) = member_of(draws, drawn) else {
                return true;
            };
            let Some(&table) = self.places.get(&table_key(&member, drawn)) else {
                return false;
            };
            let granules = member.granules.first..member.granules.end;
            !self.tables[table as usize].put(granules, drawn.first_slot)
                || self.add_member(index, member, table, draws, culler)
        })
    }

    /// Adds an entity to its batch set in each view. Returns false if one is missing.
    fn add_member(
        &mut self,
        index: usize,
        member: Member,
        table: u32,
        draws: &SetDraws,
        culler: &Culler,
    ) -> bool {
        let drawn = &draws.drawn[index];
        let request = drawn.of.request;
        let views = draws.frame.requests[request].views.iter().enumerate();
        for (place, &view) in views {
            let Some(of_view) = self.views.get_mut(view as usize) else {
                return false;
            };
            let Some(&set) = of_view.of_numbers.get(&member.batch_set) else {
                return false;
            };
            for list in ListDraws::lists(culler.hides(view)) {
                let parts = culler.draw_parts_of(request, place, view, *list);
                let commands = parts
                    .iter()
                    .filter_map(|part| command_of(culler, drawn, part, table));
                for command in commands {
                    let mut draws = of_view.sets[set as usize].of(*list).iter();
                    let draw =
                        draws.find(|draw| (draw.batch, draw.table) == (command.batch, table));
                    let mut batches = self.wanted.iter_mut();
                    let batch = batches.find(|wanted| wanted.batch == command.batch);
                    let Some((draw, batch)) = draw.zip(batch) else {
                        return false;
                    };
                    batch.draws[draw.draw].push(command.command);
                }
            }
            of_view.add_member(index, set);
        }
        true
    }

    /// Fills the tables. Returns the members that have one.
    fn add_tables(&mut self, draws: &SetDraws) -> Vec<(usize, Member)> {
        let mut members = Vec::new();
        for (index, drawn) in draws.drawn.iter().enumerate() {
            let Some(member) = member_of(draws, drawn) else {
                continue;
            };
            let granules = member.granules;
            let next = self.tables.len() as u32;
            let place = match self.places.entry(table_key(&member, drawn)) {
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
        members
    }

    /// Adds a batch set in all views in which several of its members are.
    fn add_set(&mut self, number: u32, members: &[usize], draws: &SetDraws, culler: &Culler) {
        let mut by_view: Vec<InView> = Vec::new();
        for &index in members {
            let drawn = &draws.drawn[index];
            let (Some(member), Some(request)) =
                (drawn.member, draws.frame.requests.get(drawn.of.request))
            else {
                continue;
            };
            let Some(&table) = self.places.get(&table_key(&member, drawn)) else {
                continue;
            };
            for (place, view) in request.views.iter().enumerate() {
                let at = *view as usize;
                if by_view.len() <= at {
                    by_view.resize_with(at + 1, Default::default);
                }
                by_view[at].members.push(index);
                for list in ListDraws::lists(culler.hides(*view)) {
                    let parts = culler.draw_parts_of(drawn.of.request, place, *view, *list);
                    let commands = parts
                        .iter()
                        .filter_map(|part| command_of(culler, drawn, part, table));
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
            let set = view.sets.len() as u32;
            view.of_numbers.insert(number, set);
            view.sets.push(lists);
            view.members.push(Vec::new());
            for member in found.members {
                view.add_member(member, set);
            }
        }
    }
}

/// What decides the batch set of an entity, if it has rows: otherwise its granules may have become
/// another's.
fn member_of(draws: &SetDraws, drawn: &Drawn) -> Option<Member> {
    let request = draws.frame.requests.get(drawn.of.request)?;
    let has_rows = !request.views.is_empty() && !drawn.is_gone;
    drawn.member.filter(|_| has_rows)
}

fn table_key(member: &Member, drawn: &Drawn) -> TableKey {
    (member.granules.page, drawn.of.shape)
}

/// The command of an entity's part.
fn command_of(culler: &Culler, drawn: &Drawn, part: &DrawPart, table: u32) -> Option<Command> {
    Some(Command {
        batch: part.batch,
        table,
        command: culler.command_of(part, drawn.of.shape)?,
    })
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
