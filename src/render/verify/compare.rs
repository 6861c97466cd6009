//! The comparison of the survivors on the GPU with the twin's.

use super::verifier::{Copied, State, Verdict, Verifier};
use crate::{
    cull::{
        Culler, CullingTier, DrawList, Gpu, SetId,
        layout::{BLOCK, Batch, Chunk, ChunkView, FarFirstJob, ROUNDING},
        reading_is_pending,
        reference::{self, Placed},
    },
    render::{
        culler::GpuCuller, gpu::RenderGpu, groups::RequestShape, set_draws::SetDraws,
        views::view_at,
    },
};
use bevy::{platform::collections::HashSet, prelude::*};

/// Least distance from a border, in the set's units, within which rounding may decide differently
/// on the GPU.
const BORDER: f32 = 1e-4;

/// Whether rounding may decide differently on the GPU: twin and GPU add up products of the
/// instance's coordinates, and each may fuse other operations.
fn is_borderline(distance: f32, placed: &Placed) -> bool {
    let largest = placed.origin.abs().max_element();
    distance.abs() <= BORDER.max(largest * ROUNDING)
}

/// Runs a requested check after the frame has been submitted. There are no verdicts before
/// everything can be read.
pub(in crate::render) fn verify_survivors(
    verifier: Res<Verifier>,
    culling: Res<GpuCuller>,
    draws: Res<SetDraws>,
    gpu: RenderGpu,
) {
    let Ok(mut state) = verifier.0.lock() else {
        return;
    };
    let Some(culler) = &culling.culler else {
        return;
    };
    // Sets are copied at extraction: a request that came after it is for the next frame.
    if !state.is_requested || state.sets.is_empty() && culling.extraction.lists.len() > 0 {
        return;
    }
    for (id, copied) in &mut state.sets {
        if copied.is_none() {
            let read = culler.store().read_instances(gpu.wgpu(), *id);
            *copied = read
                .ok()
                .map(|(instances, scales)| Copied { instances, scales });
        }
    }
    let mut verdicts = Vec::new();
    for drawn in &draws.drawn {
        let (entity, of) = (drawn.entity, drawn.of);
        let (index, request) = (of.request, &draws.frame.requests[of.request]);
        let Some(Some(set)) = state.sets.get(&request.set) else {
            continue;
        };
        for (place, view) in request.views.iter().enumerate() {
            let Some(view) = view_at(&draws.views, *view) else {
                continue;
            };
            if request.rests_in(place) {
                continue;
            }
            let mut verdict = Verdict {
                entity: entity.id(),
                view: view.key.main_entity.id(),
                name: view.display_name().to_owned(),
                tested: set.instances.len() as u32,
                visible: 0,
                borderline: 0,
                error: None,
            };
            let Some(parts) = twin_parts(culler, gpu.wgpu(), request.set, set, index, place) else {
                verdict.error = Some("the set is not resident".into());
                verdicts.push(verdict);
                continue;
            };
            let is_hiding =
                culler.hides(request.views[place]) || culler.is_frozen(request.views[place]);
            if is_hiding && drawn.may_be_hidden {
                let at = (of, place, request.views[place]);
                if let Err(error) =
                    compare_hiding(culler, gpu.wgpu(), at, (set, &parts), &mut verdict)
                {
                    verdict.error = Some(error);
                }
                verdicts.push(verdict);
                continue;
            }
            for (part, twin) in culler.draw_parts(index, place).iter().zip(&parts) {
                match culler.read_shape(gpu.wgpu(), request.set, part, of.shape) {
                    Ok(mut ids) => {
                        if !culler.compaction().is_ordered() {
                            ids.sort_unstable();
                        }
                        verdict.visible += ids.len() as u32;
                        if verdict.error.is_none() {
                            compare(twin, set, &ids, &mut verdict);
                        }
                    }
                    Err(error) => verdict.error = Some(error.to_string()),
                }
            }
            verdicts.push(verdict);
        }
    }
    if reading_is_pending() {
        return;
    }
    *state = State {
        verdicts: Some(verdicts),
        ..State::default()
    };
}

/// Compares the lists of a request in a view that hides: all are of what the twin keeps, and what
/// is visible was drawn early or is late. (What is hidden depends on the depth.)
fn compare_hiding(
    culler: &Culler,
    gpu: Gpu<'_>,
    (of, place, view): (RequestShape, usize, u32),
    (set, parts): (&Copied, &[TwinPart]),
    verdict: &mut Verdict,
) -> Result<(), String> {
    let lists = [DrawList::Early, DrawList::Late, DrawList::Visible];
    let lists = lists.map(|list| culler.draw_parts_of(of.request, place, view, list));
    for (number, part) in parts.iter().enumerate() {
        let mut ids: [HashSet<u32>; 3] = default();
        for (ids, list) in ids.iter_mut().zip(lists) {
            // A frozen view has no late lists.
            if list.is_empty() && culler.is_frozen(view) {
                continue;
            }
            let draw = list.get(number).ok_or("a list is missing")?;
            let read = culler.read_shape(gpu, part.set, draw, of.shape);
            ids.extend(read.map_err(|error| error.to_string())?);
        }
        let [early, late, visible] = &ids;
        verdict.visible += visible.len() as u32;
        if let Some(id) = visible
            .iter()
            .find(|id| early.contains(*id) == late.contains(*id))
        {
            return Err(format!(
                "instance {id} is visible, but not either early or late"
            ));
        }
        if let Some(id) = late.iter().find(|id| !visible.contains(*id)) {
            return Err(format!("instance {id} is late, but not visible"));
        }
        for id in early.union(visible) {
            let planes = &part.view.planes;
            let chunk = &part.chunk;
            let i = id - chunk.first_instance;
            let sphere = reference::load_sphere(chunk, &set.instances, &set.scales, i);
            if reference::is_visible(chunk, planes, sphere) {
                continue;
            }
            let distance = reference::min_distance(chunk, planes, sphere);
            if !is_borderline(distance, &sphere) {
                return Err(format!(
                    "instance {id}, {distance} from the border, is not culled"
                ));
            }
            verdict.borderline += 1;
        }
    }
    Ok(())
}

/// Compares the GPU's ids of one draw with the twin's, in the twin's order.
fn compare(part: &TwinPart, set: &Copied, ids: &[u32], verdict: &mut Verdict) {
    let ids = match before_sort(part, set, ids) {
        Ok(ids) => ids,
        Err(id) => {
            verdict.error = Some(format!("instance {id} is not in its place by depth"));
            return;
        }
    };
    let mut next = ids.iter().copied().peekable();
    let TwinPart {
        batch, chunk, view, ..
    } = part;
    for rank in 0..batch.rank_count() {
        let first_word = reference::first_word_at(batch, &part.first_words, rank);
        for place in (0..batch.unit_words).flat_map(|k| ((first_word ^ k) * 32..).take(32)) {
            if place >= chunk.instance_count {
                continue;
            }
            let i = chunk.first_instance + place;
            let sphere = reference::load_sphere(chunk, &set.instances, &set.scales, place);
            let expected = reference::is_visible(chunk, &view.planes, sphere);
            let found = next.next_if_eq(&i).is_some();
            if expected == found {
                continue;
            }
            let distance = reference::min_distance(chunk, &view.planes, sphere);
            if !is_borderline(distance, &sphere) {
                let how = match (found, ids.contains(&i)) {
                    (true, _) => "visible",
                    (false, true) => "not in its place",
                    (false, false) => "culled",
                };
                let error =
                    format!("instance {i}, {distance} from the border, is {how} on the GPU");
                verdict.error = Some(error);
                return;
            }
            verdict.borderline += 1;
        }
    }
    if let Some(id) = next.next() {
        verdict.error = Some(format!("id {id} is not of the set, or not in its place"));
    }
}

/// The ids of a draw as the compaction left them, in set order if the draw is far first. `Err` is
/// the first id that the sort should not have put in its place.
fn before_sort(part: &TwinPart, set: &Copied, ids: &[u32]) -> Result<Vec<u32>, u32> {
    let mut before = ids.to_vec();
    let Some(job) = &part.job else {
        return Ok(before);
    };
    before.sort_unstable();
    let mut sorted = before.clone();
    sorted.sort_by_cached_key(|id| reference::depth_key(job, &set.instances, &set.scales, *id));
    let mut places = ids.iter().zip(&sorted);
    match places.find(|(id, expected)| id != expected) {
        Some((id, _)) => Err(*id),
        None => Ok(before),
    }
}

/// One region of a set in a view, as a separate batch.
struct TwinPart {
    set: SetId,
    /// What it sorts; `None` if its survivors keep their order.
    job: Option<FarFirstJob>,
    batch: Batch,
    /// Its first instance is counted from the start of the set.
    chunk: Chunk,
    view: ChunkView,
    /// What stands at each rank.
    first_words: Vec<u32>,
}

/// The tables of a request in a view, from the frame's plan. `None` if the set is not resident.
fn twin_parts(
    culler: &Culler,
    gpu: Gpu<'_>,
    id: SetId,
    set: &Copied,
    request: usize,
    view: usize,
) -> Option<Vec<TwinPart>> {
    // Without bounds, all blocks are in one ring.
    let bounds = culler.store().read_bounds(gpu, id).ok()?;
    let is_sorted = culler.compaction().sorts_blocks();
    let is_ordered = culler.compaction().is_ordered();
    let mut parts = Vec::new();
    let mut first = 0;
    for part in culler.draw_parts(request, view) {
        if part.region == 0 {
            // The next level begins.
            first = 0;
        }
        let plan = culler.plan().batches.get(part.batch)?;
        let chunk = *plan.chunks.get(part.chunk as usize)?;
        let batch = Batch {
            count_len: chunk.block_count,
            chunk_count: 1,
            is_near_first: if is_sorted {
                plan.batch.is_near_first
            } else {
                0
            },
            ..plan.batch
        };
        let chunk = Chunk {
            first_instance: first,
            first_row: 0,
            row_count: 1,
            first_count: 0,
            ..chunk
        };
        let view = ChunkView {
            first_count: 0,
            ..*plan.chunk_views.get(part.row as usize)?
        };
        let first_words = reference::order(&batch, &[chunk], &[view], |range| {
            if culler.tier() == CullingTier::Cpu {
                let floats = set.scales.len() / set.instances.len().max(1);
                let numbers = range.start * floats..range.end * floats;
                let scales = set.scales.get(numbers).unwrap_or_default();
                return reference::bound(&set.instances[range], scales);
            }
            let block = range.start / BLOCK as usize;
            bounds.get(block).copied().unwrap_or_default()
        });
        let job = FarFirstJob::of_row(0, &chunk, &view);
        parts.push(TwinPart {
            set: id,
            job: job.filter(|_| is_ordered),
            batch,
            chunk,
            view,
            first_words,
        });
        first += chunk.block_count * BLOCK;
    }
    Some(parts)
}
