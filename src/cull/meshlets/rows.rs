//! From requests to the rows of the meshlet stages.

use super::{
    batch::MeshletBatch,
    culler::MeshletCuller,
    layout::MeshletRow,
    readback::RowMeaning,
    request::{MeshletRequest, SeenFaces},
};
use crate::cull::{
    CullFrame, Culler, DrawList, DrawPart, DrawShape,
    layout::{DistanceBand, Projection, ViewPlanes},
};
use glam::Vec4;
use std::collections::hash_map::Entry;
use wgpu::Device;

impl MeshletCuller {
    /// Adds the rows of a request if its mesh is known and has indices.
    pub(super) fn add_request(
        &mut self,
        device: &Device,
        culler: &Culler,
        frame: &CullFrame,
        meshlet_request: &MeshletRequest,
    ) {
        let mesh = meshlet_request.mesh;
        if !self.tables.has(mesh) {
            return;
        }
        let Some(request) = frame.requests.get(meshlet_request.request) else {
            return;
        };
        // Meshlets of all levels count their indices from the full mesh's first.
        let DrawShape::Indexed {
            first_index,
            base_vertex,
            ..
        } = request.shape
        else {
            return;
        };
        for (slot, &view) in request.views.iter().enumerate() {
            let faces = meshlet_request.faces.get(slot).copied().unwrap_or_default();
            let eye = frame.views.get(view as usize).map_or(Vec4::ZERO, |view| {
                let eye = view.eye_in(&request.world_from_local);
                match faces {
                    SeenFaces::Front => eye,
                    SeenFaces::Back => -eye,
                    SeenFaces::Both => Vec4::ZERO,
                }
            });
            let projection = culler.projection_in(view, &request.world_from_local);
            let draws_visible = meshlet_request.draws_visible.get(slot);
            let lists = lists_of(culler, meshlet_request.request, slot, view, draws_visible);
            for (list, part) in lists {
                let Some(range) = self.tables.range(mesh, part.level) else {
                    continue;
                };
                let Some(version) = culler.batch_version(part.batch) else {
                    continue;
                };
                let key = version.key;
                let Some(plan) = culler.batch_plan(part.batch) else {
                    continue;
                };
                let Some(draw) = culler.row_of(&part) else {
                    continue;
                };
                if self.is_refused(key) {
                    continue;
                }
                let batch = match self.batches.entry(key) {
                    Entry::Occupied(batch) => batch.into_mut(),
                    Entry::Vacant(place) => match MeshletBatch::new(device) {
                        Ok(batch) => place.insert(batch),
                        Err(error) => {
                            self.refuse(key, error);
                            continue;
                        }
                    },
                };
                let first_draw = batch.draw_count();
                let draws = u64::from(first_draw) + range.len() as u64 + 1;
                let Some(chunk) = plan.chunks.get(part.chunk as usize) else {
                    continue;
                };
                if !draw.is_indexed() || range.is_empty() || draws > self.max_draws {
                    continue;
                }
                if !self.keys.iter().any(|(_, known)| *known == key) {
                    self.keys.push((part.batch, key));
                }
                let row = batch.row_table.len() as u32;
                self.lookup.insert((part.batch, part.row), row);
                batch.row_table.push(MeshletRow {
                    planes: ViewPlanes {
                        // The instance decides the level, wherever its meshlets lie.
                        band: DistanceBand::default(),
                        ..draw.planes
                    },
                    chunk: *chunk,
                    eye,
                    projection: match list {
                        DrawList::Late | DrawList::Visible => projection.unwrap_or_default(),
                        DrawList::Kept | DrawList::Early => Projection::default(),
                    },
                    draw_row: part.row,
                    first_meshlet: range.start,
                    meshlet_count: range.len() as u32,
                    first_draw,
                    first_index,
                    base_vertex,
                    ..MeshletRow::default()
                });
                batch.meanings.push(RowMeaning {
                    request: request.key,
                    view,
                    level: part.level as u32,
                    list,
                    meshlets: range.len() as u32,
                    triangles: draw.element_count / 3,
                });
            }
        }
    }
}

/// The draws of a request in its `slot`-th view, which is the frame's view `view`: all that have
/// meshlets to test, with their lists.
fn lists_of(
    culler: &Culler,
    request: usize,
    slot: usize,
    view: u32,
    draws_visible: Option<&bool>,
) -> impl Iterator<Item = (DrawList, DrawPart)> {
    let parts_of = move |list| culler.draw_parts_of(request, slot, view, list);
    // Other views, and other requests of the view, have no late list.
    let lists: &'static [DrawList] = match (parts_of(DrawList::Late), draws_visible) {
        ([], _) => &[DrawList::Kept],
        (_, Some(false)) => &[DrawList::Early, DrawList::Late],
        _ => &[DrawList::Early, DrawList::Late, DrawList::Visible],
    };
    let lists = lists.iter();
    lists.flat_map(move |list| parts_of(*list).iter().map(move |part| (*list, *part)))
}
