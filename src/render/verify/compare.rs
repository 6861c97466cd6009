//! The comparison of the survivors on the GPU with the twin's.

use super::verifier::{Copied, State, Verdict, Verifier};
use crate::{
    cull::{
        CullFrame, CullRequest, Culler, Gpu,
        layout::{Chunk, Row},
        reference,
    },
    render::{culler::GpuCuller, set_draws::SetDraws, views::ViewKind},
};
use bevy::{
    prelude::*,
    render::renderer::{RenderDevice, RenderQueue},
};

/// Runs the check after the frame has been submitted.
pub(in crate::render) fn verify_survivors(
    verifier: Res<Verifier>,
    gpu: Res<GpuCuller>,
    draws: Res<SetDraws>,
    (device, queue): (Res<RenderDevice>, Res<RenderQueue>),
) {
    let Ok(mut state) = verifier.0.lock() else {
        return;
    };
    let Some(culler) = &gpu.culler else { return };
    // The copies are made at extraction: a request that came after it is for the next frame.
    if !state.requested || state.sets.is_empty() && !gpu.sets.is_empty() {
        return;
    }
    for (id, copied) in &mut state.sets {
        if copied.is_none() {
            let read = culler
                .store()
                .read_instances(Gpu::new(device.wgpu_device(), &queue), *id);
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
        for (slot, view) in request.views.iter().enumerate() {
            let (key, kind, name) = &draws.views[*view as usize];
            let mut verdict = Verdict {
                entity: entity.id(),
                view: key.main_entity.id(),
                name: if *kind == ViewKind::Camera {
                    "camera".into()
                } else {
                    name.clone()
                },
                tested: set.instances.len() as u32,
                visible: 0,
                borderline: 0,
                error: None,
            };
            match culler.read_survivors(
                Gpu::new(device.wgpu_device(), &queue),
                &draws.frame,
                index,
                slot,
            ) {
                Ok(mut ids) => {
                    if !culler.compaction().is_ordered() {
                        ids.sort_unstable();
                    }
                    verdict.visible = ids.len() as u32;
                    compare(
                        culler,
                        &draws.frame,
                        (request, slot),
                        set,
                        &ids,
                        &mut verdict,
                    );
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

/// The GPU's ids against the twin's.
fn compare(
    culler: &Culler,
    frame: &CullFrame,
    (request, slot): (&CullRequest, usize),
    set: &Copied,
    ids: &[u32],
    verdict: &mut Verdict,
) {
    if !ids.is_sorted_by(|a, b| a < b) {
        verdict.error = Some("the ids are not in order".into());
        return;
    }
    let Some((chunk, row)) = twin_tables(culler, frame, request, slot) else {
        verdict.error = Some("the set is not resident".into());
        return;
    };
    let mut next = ids.iter().copied().peekable();
    for i in 0..set.instances.len() as u32 {
        let sphere = reference::load_sphere(&chunk, &set.instances, &set.scales, i);
        let expected = reference::is_visible(&chunk, &row, sphere);
        let found = next.next_if_eq(&i).is_some();
        if expected != found {
            let distance = reference::least_distance(&chunk, &row, sphere);
            if distance.is_nan() || distance.abs() > 1e-4 {
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

/// One chunk for the whole set, as if it lay at the start of a page, and the view in its space.
fn twin_tables(
    culler: &Culler,
    frame: &CullFrame,
    request: &CullRequest,
    slot: usize,
) -> Option<(Chunk, Row)> {
    use crate::cull::plan::{Plan, PlanLimits, PlanRequest};
    let view = frame.views.get(*request.views.get(slot)? as usize)?;
    let row = view.to_row(&request.world_from_local);
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
            rows: &[row],
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
    Some((chunk, row))
}
