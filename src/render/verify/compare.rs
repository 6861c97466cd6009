//! The comparison of the survivors on the GPU with the twin's.

use super::verifier::{Copied, State, Verdict, Verifier};
use crate::{
    cull::{
        CullFrame, CullRequest, Culler,
        layout::{Chunk, ViewPlanes},
        reference,
    },
    render::{culler::GpuCuller, gpu::RenderGpu, set_draws::SetDraws, views::view_at},
};
use bevy::prelude::*;

/// Distance from a border, in world units, within which rounding may decide differently on the GPU.
const BORDER: f32 = 1e-4;

/// Runs a requested check after the frame has been submitted.
pub(in crate::render) fn verify_survivors(
    verifier: Res<Verifier>,
    sets: Res<GpuCuller>,
    draws: Res<SetDraws>,
    gpu: RenderGpu,
) {
    let Ok(mut state) = verifier.0.lock() else {
        return;
    };
    let Some(culler) = &sets.culler else { return };
    // Sets are copied at extraction: a request that came after it is for the next frame.
    if !state.requested || state.sets.is_empty() && !sets.sets.is_empty() {
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
    for (index, request) in draws.frame.requests.iter().enumerate() {
        let (Some(Some(set)), Some(entity)) = (state.sets.get(&request.set), draws.entity(index))
        else {
            continue;
        };
        for (place, view) in request.views.iter().enumerate() {
            let Some(view) = view_at(&draws.views, *view) else {
                continue;
            };
            let mut verdict = Verdict {
                entity: entity.id(),
                view: view.key.main_entity.id(),
                name: view.display_name(),
                tested: set.instances.len() as u32,
                visible: 0,
                borderline: 0,
                error: None,
            };
            match culler.read_survivors(gpu.wgpu(), &draws.frame, index, place) {
                Ok(mut ids) => {
                    if !culler.compaction().is_ordered() {
                        ids.sort_unstable();
                    }
                    verdict.visible = ids.len() as u32;
                    match twin_tables(culler, &draws.frame, request, place) {
                        Some(tables) => compare(&tables, set, &ids, &mut verdict),
                        None => verdict.error = Some("the set is not resident".into()),
                    }
                }
                Err(error) => verdict.error = Some(error.to_string()),
            }
            verdicts.push(verdict);
        }
    }
    *state = State {
        verdicts: Some(verdicts),
        ..State::default()
    };
}

/// Compares the GPU's ids with the twin's.
fn compare(tables: &TwinTables, set: &Copied, ids: &[u32], verdict: &mut Verdict) {
    let TwinTables { chunk, row } = tables;
    if !ids.is_sorted_by(|a, b| a < b) {
        verdict.error = Some("the ids are not in order".into());
        return;
    }
    let mut next = ids.iter().copied().peekable();
    for i in 0..set.instances.len() as u32 {
        let sphere = reference::load_sphere(chunk, &set.instances, &set.scales, i);
        let expected = reference::is_visible(chunk, row, sphere);
        let found = next.next_if_eq(&i).is_some();
        if expected != found {
            let distance = reference::least_distance(chunk, row, sphere);
            if distance.is_nan() || distance.abs() > BORDER {
                verdict.error = Some(format!(
                    "instance {i}, {distance} from the border, is {} on the GPU",
                    if found { "visible" } else { "culled" }
                ));
                return;
            }
            verdict.borderline += 1;
        }
    }
    if let Some(id) = next.next() {
        verdict.error = Some(format!("id {id} is not of the set"));
    }
}

/// What the twin tests the instances of a set in a view with.
struct TwinTables {
    chunk: Chunk,
    row: ViewPlanes,
}

/// The tables of a request in a view: one chunk for the whole set, as if the set lay at the start
/// of a page, and the view in the set's space. `None` if the set is not resident.
fn twin_tables(
    culler: &Culler,
    frame: &CullFrame,
    request: &CullRequest,
    place: usize,
) -> Option<TwinTables> {
    use crate::cull::plan::{Plan, PlanLimits, PlanRequest};
    let view = frame.views.get(*request.views.get(place)? as usize)?;
    let row = view.planes_in(&request.world_from_local);
    let len = culler.store().set_len(request.set)?;
    let region = [crate::cull::Region {
        page: 0,
        first: 0,
        capacity: len.next_multiple_of(1024),
    }];
    let plan = Plan::build(
        &[PlanRequest {
            regions: &region,
            len,
            has_scale: culler.store().set_channels(request.set)?.scale,
            world_from_local: request.world_from_local,
            sphere: request.sphere,
            shape: request.shape,
            views: &[row],
        }],
        PlanLimits {
            counts: u32::MAX,
            few_counts: u32::MAX,
            workgroups: u32::MAX,
        },
    );
    let chunk = plan
        .batches
        .first()
        .and_then(|batch| batch.chunks.first())
        .copied()
        .unwrap_or_default();
    Some(TwinTables { chunk, row })
}
