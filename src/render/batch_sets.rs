//! Batch sets: entities whose draws differ in nothing but their commands. One multi-draw draws all
//! of them in a view.
//!
//! Entities are in one batch set if they have the same material, and meshes in the same buffers
//! with the same attributes. Bevy calls that a batch set, too, and draws it with one multi-draw.
//! The first entity of a batch set that a view sees is its *leader*: its item in Bevy's phase draws
//! all, and the items of the others draw nothing.
//!
//! ```text
//! entities       houses A    houses B    a moving set C    trees D (blended)
//! batch set      0           0           0                 none
//! draws          A, B, C     -           -                 D
//! ```
//!
//! The vertex stage finds the draw slot of an instance by its block
//! ([`draw_slots`](super::draw_slots)). So a set that is drawn at several places keeps its own
//! draws, and so does what has several slots per region: sets that fade, are thinned out or
//! colored.

use super::{
    draw_slots::{BLOCKS_OF_TABLE, DrawSlots, SlotTable},
    set_draws::{Drawn, SetDraws},
    set_meshes::{BoundMesh, MeshClass},
};
use crate::cull::{
    CullError, Culler, CullingTier, DrawPart, Gpu, IndirectDraws, MultiDraws, Region, Version,
    WantedDraws, layout::BLOCK,
};
use bevy::{
    asset::UntypedAssetId,
    log::warn_once,
    platform::collections::{HashMap, hash_map::Entry},
    prelude::*,
};
use core::ops::Range;

/// What the entities of a batch set have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BatchSetKey {
    pub material: UntypedAssetId,
    pub mesh: BoundMesh,
    pub class: MeshClass,
    pub casts_shadows: bool,
    pub may_be_hidden: bool,
}

/// An entity that a batch set may draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub key: BatchSetKey,
    /// The blocks of its set.
    pub blocks: PageBlocks,
}

/// Blocks of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageBlocks {
    page: usize,
    first: u32,
    end: u32,
}

impl PageBlocks {
    /// The blocks of a set; `None` if it has several regions, or if they lie behind what a table of
    /// slots describes.
    pub fn of(regions: &[Region]) -> Option<Self> {
        let [region] = regions else {
            return None;
        };
        let first = region.first / BLOCK;
        let end = first + region.capacity.div_ceil(BLOCK);
        (end <= BLOCKS_OF_TABLE).then_some(Self {
            page: region.page,
            first,
            end,
        })
    }
}

/// What the item of an entity draws in a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    /// Its own draws.
    #[default]
    Alone,
    /// Nothing: its leader draws it.
    Follower,
    /// The draws of the batch set with this index in the view.
    Leader(u32),
}

/// A part of a batch set in one batch of the culling: one multi-draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BatchSetDraw {
    pub batch: usize,
    /// Index of the table that finds the draw slots.
    pub table: u32,
    commands: Range<u32>,
}

/// The batch sets of a view.
#[derive(Default)]
struct ViewBatchSets {
    /// By the index of the entity in [`SetDraws::drawn`].
    roles: Vec<Role>,
    sets: Vec<Vec<BatchSetDraw>>,
}

/// The batch sets of the frame.
#[derive(Resource, Default)]
pub(super) struct BatchSets {
    /// By the index of the view.
    views: Vec<ViewBatchSets>,
    /// `None` before the first batch set.
    draws: Option<Result<MultiDraws, CullError>>,
    /// Bytes uploaded since [`Self::take_uploaded`].
    uploaded: u64,
    /// What the batch sets were made from.
    made_from: Option<(Version, Vec<Made>)>,
}

/// What a batch set depends on of an entity.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Made {
    member: Option<Member>,
    first_slot: u32,
}

impl Made {
    fn from(drawn: &Drawn) -> Self {
        Self {
            member: drawn.member,
            first_slot: drawn.first_slot,
        }
    }
}

impl BatchSets {
    /// Finds the batch sets of a frame that is planned, and gives `slots` their tables.
    pub fn prepare(
        &mut self,
        draws: &SetDraws,
        culler: &Culler,
        slots: &mut DrawSlots,
        gpu: Gpu<'_>,
    ) {
        let now = || draws.drawn.iter().map(Made::from);
        let version = culler.plan_version();
        let stays = self.made_from.as_ref().is_some_and(|(of, made)| {
            *of == version && made.len() == now().len() && made.iter().copied().eq(now())
        });
        if !stays {
            let mut made = self.made_from.take().map_or(Vec::new(), |(_, made)| made);
            made.clear();
            made.extend(now());
            self.find(draws, culler, slots, gpu);
            self.made_from = Some((version, made));
        }
        if let Some(Ok(multi)) = &mut self.draws
            && !self.views.is_empty()
            && let Err(error) = multi.prepare(gpu.device, culler)
        {
            self.give_up(&error);
        }
    }

    /// Number of bytes uploaded since the last call.
    pub fn take_uploaded(&mut self) -> u64 {
        core::mem::take(&mut self.uploaded)
    }

    /// Bytes that multi-draws hold on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        match &self.draws {
            Some(Ok(draws)) => draws.gpu_bytes(),
            _ => 0,
        }
    }

    /// All entities draw themselves.
    pub fn clear(&mut self) {
        self.views.clear();
        self.made_from = None;
    }

    fn give_up(&mut self, error: &CullError) {
        warn_once!("sets are drawn one by one: {error}");
        self.views.clear();
    }

    fn find(&mut self, draws: &SetDraws, culler: &Culler, slots: &mut DrawSlots, gpu: Gpu<'_>) {
        self.views.clear();
        let found = match culler.tier() {
            CullingTier::Cpu => Found::default(),
            _ => Found::new(draws, culler),
        };
        slots.set_tables(&found.tables);
        if found.wanted.is_empty() {
            return;
        }
        let multi = self
            .draws
            .get_or_insert_with(|| MultiDraws::new(gpu.device));
        let planned = match multi {
            Ok(multi) => multi.plan(gpu, &found.wanted),
            Err(error) => Err(error.clone()),
        };
        match planned {
            Ok(bytes) => {
                self.uploaded += bytes;
                self.views = found.views;
            }
            Err(error) => self.give_up(&error),
        }
    }

    /// What records the commands of the frame's multi-draws.
    pub fn follower(&mut self) -> Option<&mut MultiDraws> {
        match &mut self.draws {
            Some(Ok(draws)) if !self.views.is_empty() => Some(draws),
            _ => None,
        }
    }

    /// What the item of an entity draws in a view. Both are indices of the frame.
    pub fn role(&self, view: usize, drawn: usize) -> Role {
        let view = self.views.get(view);
        let role = view.and_then(|view| view.roles.get(drawn));
        role.copied().unwrap_or_default()
    }

    /// The draws of a batch set of a view.
    pub fn draws(
        &self,
        view: usize,
        set: u32,
    ) -> impl Iterator<Item = (&BatchSetDraw, IndirectDraws<'_>)> {
        let sets = self.views.get(view).map_or(&[][..], |view| &view.sets);
        let draws = sets.get(set as usize).into_iter().flatten();
        draws.filter_map(|draw| {
            let Some(Ok(multi)) = &self.draws else {
                return None;
            };
            Some((draw, multi.source(draw.batch, &draw.commands)?))
        })
    }
}

/// The batch sets of a plan.
#[derive(Default)]
struct Found {
    views: Vec<ViewBatchSets>,
    wanted: Vec<WantedDraws>,
    tables: Vec<SlotTable>,
}

/// A table describes a page, for what is drawn as one shape of the requests.
type TableKey = (usize, usize);

impl Found {
    fn new(draws: &SetDraws, culler: &Culler) -> Self {
        let mut found = Self::default();
        let (places, members) = found.add_tables(draws);
        // The members of each key, in the order of `drawn`.
        let mut numbers: HashMap<BatchSetKey, usize> = HashMap::default();
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for (index, member) in members {
            let next = sets.len();
            let number = *numbers.entry(member.key).or_insert(next);
            if number == next {
                sets.push(Vec::new());
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
            let Some(member) = drawn.member else {
                continue;
            };
            let blocks = member.blocks;
            let next = self.tables.len() as u32;
            let place = match places.entry((blocks.page, drawn.of.shape)) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    self.tables.push(SlotTable::default());
                    *entry.insert(next)
                }
            };
            let blocks = blocks.first..blocks.end;
            if self.tables[place as usize].put(blocks, drawn.first_slot) {
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
            let key = (member.blocks.page, drawn.of.shape);
            let Some(&table) = tables.get(&key) else {
                continue;
            };
            for (place, view) in request.views.iter().enumerate() {
                let parts = culler.draw_parts(drawn.of.request, place);
                let command = |part: &DrawPart| {
                    Some(Command {
                        batch: part.batch,
                        table,
                        command: culler.command_of(part, drawn.of.shape)?,
                    })
                };
                let view = *view as usize;
                if by_view.len() <= view {
                    by_view.resize_with(view + 1, Default::default);
                }
                let in_view = &mut by_view[view];
                in_view.members.push(index);
                in_view.commands.extend(parts.iter().filter_map(command));
            }
        }
        for (view, mut found) in by_view.into_iter().enumerate() {
            let Some((leader, followers)) = found.members.split_first() else {
                continue;
            };
            if followers.is_empty() {
                continue;
            }
            if self.views.len() <= view {
                self.views.resize_with(view + 1, Default::default);
            }
            let key = |command: &Command| (command.batch, command.table);
            found.commands.sort_by_key(key);
            let runs = found.commands.chunk_by(|a, b| key(a) == key(b));
            let parts = runs.map(|run| BatchSetDraw {
                batch: run[0].batch,
                table: run[0].table,
                commands: want(&mut self.wanted, run),
            });
            let parts = parts.collect();
            let view = &mut self.views[view];
            view.roles.resize(draws.drawn.len(), Role::Alone);
            view.roles[*leader] = Role::Leader(view.sets.len() as u32);
            for follower in followers {
                view.roles[*follower] = Role::Follower;
            }
            view.sets.push(parts);
        }
    }
}

/// The members of a batch set that a view sees.
#[derive(Default)]
struct InView {
    members: Vec<usize>,
    commands: Vec<Command>,
}

/// A command of a member.
struct Command {
    batch: usize,
    table: u32,
    /// Its index in the batch.
    command: u32,
}

/// Adds commands of one batch. Returns their places.
fn want(wanted: &mut Vec<WantedDraws>, run: &[Command]) -> Range<u32> {
    let batch = run[0].batch;
    let at = match wanted.iter().position(|draws| draws.batch == batch) {
        Some(at) => at,
        None => {
            wanted.push(WantedDraws {
                batch,
                commands: Vec::new(),
            });
            wanted.len() - 1
        }
    };
    let into = &mut wanted[at].commands;
    let first = into.len() as u32;
    into.extend(run.iter().map(|command| command.command));
    first..into.len() as u32
}
