//! A batch of random sets and views: its tables, what a device would bind, and what the twins say.

use super::machine::dispatch::Buffers;
use crate::common::{random_set, random_transform, random_view, rng};
use bevy_gpu_culling::{
    cull::{
        BoundingSphere, Compaction, DrawShape, Region,
        layout::{
            BAND_BY_DISTANCE, BLOCK, Bound, DistanceBand, DrawCommand, Totals, ViewPlanes,
            args_offset,
        },
        plan::{BatchPlan, Plan, PlanLimits, PlanRequest, RowRings},
        reference,
    },
    instance::{PackedInstance, ScaleKind},
};
use bytemuck::{NoUninit, cast_slice};
use glam::Vec3;
use rand::RngExt;

/// What random batches differ in.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub seed: u64,
    /// Instances of each set.
    pub lengths: &'static [u32],
    /// Most views of a set.
    pub views: u32,
    /// Whether rows take near units first.
    pub near_first: bool,
    /// See [`PlanLimits`].
    pub few_counts: u32,
    pub fine_words: u32,
    /// Percent of the survivors for which the arena has room.
    pub room: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 1,
            lengths: &[700, 2100, 33],
            views: 5,
            near_first: false,
            few_counts: 2048,
            fine_words: 1 << 18,
            room: 100,
        }
    }
}

/// What a batch binds and what must come out.
pub struct Scene {
    pub plan: BatchPlan,
    pub instances: Vec<PackedInstance>,
    pub scales: Vec<f32>,
    pub bounds: Vec<Bound>,
    pub scale_floats: u32,
    pub wanted: Output,
}

/// What a frame leaves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    pub survivors: Vec<u32>,
    pub totals: Totals,
    pub draws: Vec<DrawCommand>,
}

const SHAPES: [DrawShape; 2] = [
    DrawShape::Indexed {
        index_count: 36,
        first_index: 7,
        base_vertex: -3,
    },
    DrawShape::NonIndexed {
        vertex_count: 9,
        first_vertex: 4,
    },
];

impl Scene {
    pub fn random(settings: Settings) -> Self {
        let mut rng = rng(settings.seed);
        // A page with a scale per axis has no other sets.
        let per_axis = rng.random_bool(0.2);
        let plain = rng.random_bool(0.5);
        let scale_floats = if per_axis { 3 } else { 1 };
        let (mut instances, mut scales) = (Vec::new(), Vec::new());
        let mut sets = Vec::new();
        for len in settings.lengths {
            let kind = match per_axis {
                true => ScaleKind::NonUniform,
                false if !plain && rng.random() => ScaleKind::Uniform,
                false => ScaleKind::One,
            };
            let mut set = random_set(&mut rng, *len as usize, kind);
            // Hidden instances leave gaps in bounds.
            for hidden in 0..len / 300 {
                set.hide(hidden * 211 % len).unwrap();
            }
            if rng.random() {
                set = set.sorted();
            }
            let first = instances.len() as u32;
            let region = Region {
                page: 0,
                first,
                first_bound: first / BLOCK,
                capacity: len.next_multiple_of(BLOCK),
            };
            instances.extend_from_slice(set.packed());
            scales.extend_from_slice(set.scale_floats());
            let end = region.first + region.capacity;
            instances.resize(end as usize, PackedInstance::default());
            scales.resize((end * scale_floats) as usize, 1.0);
            let world = random_transform(&mut rng, plain);
            let mut row = |_| {
                let view = random_view(&mut rng);
                let mut planes = view.planes_in(&world);
                planes.order = view.order_in(&world, 0.5);
                if rng.random_bool(0.2) {
                    planes.band = random_band(&mut rng);
                }
                planes
            };
            let rows: Vec<ViewPlanes> = (0..settings.views).map(&mut row).collect();
            sets.push((region, *len, kind, world, rows));
        }
        let sphere = BoundingSphere {
            center: if plain {
                Vec3::ZERO
            } else {
                Vec3::new(0.3, 0.0, -0.7)
            },
            radius: 0.5,
        };
        let requests: Vec<_> = sets
            .iter()
            .enumerate()
            .map(|(index, (region, len, scale, world, rows))| PlanRequest {
                regions: std::slice::from_ref(region),
                len: *len,
                scale: *scale,
                world_from_local: *world,
                sphere,
                shapes: &SHAPES[index % 2..][..1],
                more: if index == 0 { &SHAPES } else { &[] },
                fades: false,
                thins: false,
                rows,
                rings: Some(RowRings {
                    radius: 0.5,
                    is_near_first: settings.near_first && index != 1,
                }),
                row_group: 1,
                lists: 1,
            })
            .collect();
        let limits = PlanLimits {
            few_counts: settings.few_counts,
            fine_words: settings.fine_words,
            ..PlanLimits::new(1 << 27, 65_535)
        };
        let mut plan = Plan::build(&requests, limits);
        assert_eq!(plan.batches.len(), 1);
        let plan = plan.batches.remove(0);
        let blocks = instances.len() as u32 / BLOCK;
        let bounds = (0..blocks).map(|block| {
            let mut regions = sets.iter();
            let (region, len, ..) = regions
                .rfind(|(region, ..)| region.first <= block * BLOCK)
                .unwrap();
            let first = (block * BLOCK) as usize;
            let end = (region.first + len).min((block + 1) * BLOCK) as usize;
            let floats = scale_floats as usize;
            reference::bound(
                &instances[first..end],
                &scales[first * floats..end * floats],
            )
        });
        let mut scene = Self {
            bounds: bounds.collect(),
            plan,
            instances,
            scales,
            scale_floats,
            wanted: Output::default(),
        };
        scene.plan.batch.survivor_capacity = u32::MAX;
        let all = scene.twins().totals.survivors;
        scene.plan.batch.survivor_capacity = (all * settings.room / 100).max(1);
        scene.wanted = scene.twins();
        scene
    }

    /// What the CPU twins of the stages say.
    fn twins(&self) -> Output {
        let plan = &self.plan;
        let mut words = vec![0; plan.word_len() as usize];
        let (chunks, views) = (&plan.chunks, &plan.chunk_views);
        reference::vote(
            &plan.batch,
            chunks,
            views,
            &self.instances,
            &self.scales,
            &mut words,
        );
        let order = reference::order(&plan.batch, chunks, views, |range| {
            self.bounds[range.start / BLOCK as usize]
        });
        let places = reference::scan(&plan.batch, &words, &order);
        let mut output = Output::default();
        let all = places.last().copied().unwrap();
        let kept = all.min(plan.batch.survivor_capacity);
        output.survivors = vec![0; kept as usize];
        let survivors = &mut output.survivors;
        reference::compact(&plan.batch, (chunks, &order), &words, &places, survivors);
        output.draws = vec![DrawCommand::default(); views.len()];
        output.draws.extend_from_slice(&plan.siblings);
        let args = (&mut output.totals, &mut output.draws[..]);
        reference::write_args(&plan.batch, views, &places, args);
        output
    }

    /// What a device binds in the first frame.
    pub fn buffers(&self) -> Buffers {
        let plan = &self.plan;
        let mut args = vec![0; args_offset(plan.command_count()) as usize / 4];
        let siblings: &[u32] = cast_slice(&plan.siblings);
        let first = args_offset(plan.batch.row_count) as usize / 4;
        args[first..first + siblings.len()].copy_from_slice(siblings);
        let mut buffers = Buffers::from([
            (0, words(&[plan.batch])),
            (1, words(&plan.chunks)),
            (2, words(&plan.chunk_views)),
            (3, words(&self.instances)),
            (4, words(&self.scales)),
            (5, words(&self.bounds)),
            (10, vec![0; plan.batch.survivor_capacity as usize]),
            (11, args),
        ]);
        let scratch = Compaction::scratch(plan);
        buffers.extend(scratch.map(|(binding, bytes)| (binding, vec![0; bytes as usize / 4])));
        // Buffers end with a multiple of 256 bytes.
        for buffer in buffers.values_mut() {
            buffer.resize(buffer.len().next_multiple_of(64).max(64), 0);
        }
        buffers
    }

    /// What a frame has left in the buffers, compared with the twins.
    pub fn check(&self, buffers: &Buffers) -> Result<(), String> {
        let args = &buffers[&11];
        let first = args_offset(0) as usize / 4;
        let end = args_offset(self.plan.command_count()) as usize / 4;
        let mut totals: Totals = cast_slice(&args[..first])[0];
        // The twins do not classify.
        totals.crossed = 0;
        let draws: Vec<DrawCommand> = cast_slice(&args[first..end]).to_vec();
        let wanted = &self.wanted;
        if totals != wanted.totals {
            return Err(format!("{totals:?} instead of {:?}", wanted.totals));
        }
        if draws != wanted.draws {
            return Err(format!("{draws:?} instead of {:?}", wanted.draws));
        }
        let survivors = &buffers[&10][..wanted.survivors.len()];
        let mut pairs = survivors.iter().zip(&wanted.survivors);
        match pairs.position(|(found, wanted)| found != wanted) {
            Some(at) => Err(format!(
                "survivor {at} is {} instead of {}",
                survivors[at], wanted.survivors[at]
            )),
            None => Ok(()),
        }
    }
}

fn random_band(rng: &mut impl RngExt) -> DistanceBand {
    let mut squared = |max: f32| {
        let distance: f32 = rng.random_range(0.0..max);
        distance * distance
    };
    DistanceBand {
        flags: BAND_BY_DISTANCE,
        low: squared(60.0),
        high: squared(300.0),
        end: -1.0,
        ..DistanceBand::default()
    }
}

pub fn words<T: NoUninit>(table: &[T]) -> Vec<u32> {
    cast_slice(table).to_vec()
}
