//! Checks the output of a compaction.

use crate::common::{Scene, options, order, page_bounds, page_copy, position};
use bevy_gpu_culling::{
    cull::{
        BatchData, Compaction, Culler, CullerOptions, CullingTier, Gpu,
        layout::{BLOCK_WORDS, Bound, DrawCommand, FarFirstJob, NOT_INDEXED},
        plan::BatchPlan,
        reference,
    },
    instance::PackedInstance,
};
use wgpu::Features;

pub const GPU_TIERS: [CullingTier; 2] = [CullingTier::Subgroup, CullingTier::Workgroup];

/// Every compaction on every tier that supports it.
pub fn rungs() -> impl Iterator<Item = (Compaction, CullingTier)> {
    GPU_TIERS.into_iter().flat_map(|tier| {
        Compaction::supported(tier, Features::SUBGROUP).map(move |compaction| (compaction, tier))
    })
}

pub fn with(compaction: Compaction, tier: CullingTier, shader_checks: bool) -> CullerOptions {
    CullerOptions {
        compaction,
        ..options(tier, shader_checks)
    }
}

/// Compares the rows of a batch with the twin: as lists if the compaction is ordered, otherwise as
/// sets. `bounds` has the bounds of the page's blocks on the GPU. Instances within 1e-4 of a border
/// may differ. Returns the number of survivors.
pub fn check_batch(
    compaction: Compaction,
    plan: &BatchPlan,
    data: &BatchData,
    bounds: &[Bound],
    instances: &[PackedInstance],
    scales: &[f32],
) -> Result<u64, String> {
    let mut words = vec![0; plan.word_len() as usize];
    reference::vote(
        &plan.batch,
        &plan.chunks,
        &plan.chunk_views,
        instances,
        scales,
        &mut words,
    );
    let first_words = match compaction.sorts_blocks() {
        true => order(plan, bounds),
        false => Vec::new(),
    };
    let position = position(plan, &first_words);
    let (mut survivors, mut needed, mut next) = (0, 0, 0);
    for chunk in &plan.chunks {
        for r in 0..chunk.row_count {
            let row = (chunk.first_row + r) as usize;
            let (draw, args) = (&plan.chunk_views[row], &data.draws[row]);
            let (first, count) = (args.first_survivor(draw.is_indexed()), args.instance_count);
            let static_part = [
                args.element_count,
                args.first_element,
                if draw.is_indexed() {
                    args.base_vertex_or_first_instance
                } else {
                    args.first_instance
                },
            ];
            let base_vertex = if draw.is_indexed() {
                draw.base_vertex.cast_unsigned()
            } else {
                0
            };
            if static_part != [draw.element_count, draw.first_element, base_vertex] {
                return Err(format!("row {row}: {args:?} is no command for {draw:?}"));
            }
            if compaction.is_ordered() && first != next {
                return Err(format!(
                    "row {row} starts at {first}, the rows before it end at {next}"
                ));
            }
            for shape in 1..=draw.sibling_count as usize {
                let at = plan.command_of(row as u32, shape).unwrap_or(u32::MAX) as usize;
                let (Some(mesh), Some(args)) = (
                    plan.siblings.get(at - plan.chunk_views.len()),
                    data.draws.get(at),
                ) else {
                    return Err(format!("row {row} has no command for shape {shape}"));
                };
                let mut expected = DrawCommand {
                    instance_count: count,
                    ..*mesh
                };
                match mesh.first_instance {
                    NOT_INDEXED => expected.base_vertex_or_first_instance = first,
                    _ => expected.first_instance = first,
                }
                if *args != expected {
                    return Err(format!(
                        "row {row}, shape {shape}: {args:?}, not {expected:?}"
                    ));
                }
            }
            // A region without survivors may begin after the last id.
            let ids = data
                .survivors
                .get(first as usize..first as usize + count as usize);
            let ids = if count == 0 { Some(&[][..]) } else { ids };
            let mut ids = ids
                .ok_or_else(|| format!("row {row} ends behind the arena: {args:?}"))?
                .to_vec();
            next = first + count;
            survivors += count;
            needed = if count > 0 { needed.max(next) } else { needed };
            let inside = chunk.first_instance..chunk.first_instance + chunk.instance_count;
            if let Some(id) = ids.iter().find(|id| !inside.contains(id)) {
                return Err(format!("row {row}: id {id} is not in {inside:?}"));
            }
            let place = |id: &u32| position(draw, id - chunk.first_instance);
            if !compaction.is_ordered() {
                ids.sort_unstable();
            }
            if compaction.is_ordered() && !ids.is_sorted_by(|a, b| place(a) < place(b)) {
                return Err(format!(
                    "row {row}: an id is there twice, or not in its place"
                ));
            }
            ids.sort_unstable();
            if !ids.is_sorted_by(|a, b| a < b) {
                return Err(format!("row {row}: an id is there twice"));
            }
            for i in 0..chunk.instance_count {
                let bit = (chunk.first_count + r * chunk.block_count) * BLOCK_WORDS * 32 + i;
                let expected = words[(bit / 32) as usize] & (1 << (bit % 32)) != 0;
                if ids.binary_search(&(chunk.first_instance + i)).is_ok() != expected {
                    let sphere = reference::load_sphere(chunk, instances, scales, i);
                    let distance =
                        reference::min_distance(chunk, &plan.chunk_views[row].planes, sphere);
                    if distance.is_nan() || distance.abs() > 1e-4 {
                        return Err(format!("row {row}, instance {i}: the twin says {expected}"));
                    }
                }
            }
        }
    }
    let totals = data.totals;
    if (
        totals.survivors,
        totals.overflow,
        totals.draw_count,
        totals.needed,
    ) != (survivors, 0, 1, needed)
    {
        return Err(format!(
            "{totals:?} for {survivors} survivors up to place {needed}"
        ));
    }
    Ok(u64::from(survivors))
}

/// Checks that far-first rows are sorted by depth, and equal depths as the compaction left them if
/// it keeps an order. Puts the rows back in set order.
fn undo_sort(
    compaction: Compaction,
    plan: &BatchPlan,
    data: &mut BatchData,
    (instances, scales): (&[PackedInstance], &[f32]),
) -> Result<(), String> {
    for job in FarFirstJob::of_batch(&plan.chunks, &plan.chunk_views) {
        let command = &data.draws[job.row as usize];
        if command.instance_count == 0 {
            continue;
        }
        let first = command.first_survivor(job.is_indexed != 0) as usize;
        let range = first..first + command.instance_count as usize;
        let ids = data.survivors.get_mut(range);
        let ids = ids.ok_or_else(|| format!("row {} ends behind the arena", job.row))?;
        if let Some(id) = ids.iter().find(|id| **id as usize >= instances.len()) {
            return Err(format!("row {}: id {id} is not in the page", job.row));
        }
        let key = |id: &u32| reference::depth_key(&job, instances, scales, *id);
        let is_sorted = match compaction.is_ordered() {
            true => ids.is_sorted_by_key(|id| (key(id), *id)),
            false => ids.is_sorted_by_key(key),
        };
        if !is_sorted {
            return Err(format!("row {} is not far first", job.row));
        }
        ids.sort_unstable();
    }
    Ok(())
}

/// [`check_batch`] for all batches of the frame.
pub fn check(culler: &Culler, gpu: Gpu<'_>, scene: &Scene) -> Result<u64, String> {
    let mut survivors = 0;
    for (index, plan) in culler.plan().batches.iter().enumerate() {
        let mut data = culler
            .read_batch(gpu, index)
            .map_err(|error| error.to_string())?;
        let (instances, scales) = page_copy(culler, scene, plan.page);
        let bounds = page_bounds(culler, gpu, scene, plan.page)?;
        let (compaction, copy) = (culler.compaction(), (&*instances, &*scales));
        undo_sort(compaction, plan, &mut data, copy)?;
        survivors += check_batch(compaction, plan, &data, &bounds, copy.0, copy.1)?;
    }
    Ok(survivors)
}
