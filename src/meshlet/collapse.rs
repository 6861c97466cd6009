//! The collapse of edges: a surface becomes coarser from level to level, with meshoptimizer.

use super::{
    MeshData, MeshletError, POSITION, POSITION_FORMAT, VertexAttribute,
    cut::reorder,
    data::positions,
    surface::{Surface, area, with_area},
};
use glam::Vec3;
use meshopt::{SimplifyOptions, optimize_vertex_cache, simplify_with_update};

/// A level must have at most this share of the triangles of the level before.
pub(super) const MAX_LEFT: f32 = 0.8;

/// How much farther a level may lie from the full mesh so that it keeps its area.
const MAX_GROWN: f32 = 1.5;

/// A surface that becomes coarser.
pub(super) struct Collapse {
    /// The vertices of the full surface, moved by the levels so far.
    mesh: MeshData,
    /// The triangles of the last level.
    indices: Vec<u32>,
    full: Surface,
    /// Area of the full surface.
    area: f32,
    /// The largest error of a level so far.
    error: f32,
}

impl Collapse {
    /// Some triangles of a mesh whose equal vertices are merged.
    pub fn new(mesh: MeshData, indices: Vec<u32>) -> Result<Self, MeshletError> {
        let points = positions(&mesh.attributes).ok_or(MeshletError::NoPositions)?;
        Ok(Self {
            full: Surface::new(&points, &indices),
            area: area(&points, &indices),
            error: 0.0,
            mesh,
            indices,
        })
    }

    /// Number of triangles of the last level.
    pub fn triangles(&self) -> usize {
        self.indices.len() / 3
    }

    /// The last level, before its area is restored; `None` if there are no triangles.
    pub fn last(&self) -> Option<MeshData> {
        (!self.indices.is_empty()).then(|| compact(&self.mesh, &self.indices))
    }

    /// The next level, with about `target` triangles, and its error: how far its surface lies from
    /// the full one. `None` if there is no coarser one. Progress is reported, from 0 to 1.
    pub fn collapse(
        &mut self,
        target: usize,
        mut report: impl FnMut(f32),
    ) -> Result<Option<(MeshData, f32)>, MeshletError> {
        if self.indices.is_empty() {
            return Ok(None);
        }
        let Some(coarser) = coarser(&mut self.mesh, &self.indices, target) else {
            return Ok(None);
        };
        self.indices = coarser;
        report(0.3);
        let moved = positions(&self.mesh.attributes).ok_or(MeshletError::NoPositions)?;
        let distance = |points: &[Vec3]| self.full.distance(&Surface::new(points, &self.indices));
        let grown = with_area(self.area, &moved, &self.indices);
        let plain = distance(&moved);
        report(0.6);
        let of_grown = distance(&grown);
        let (data, error) = if of_grown <= plain * MAX_GROWN {
            let mut grown_mesh = self.mesh.clone();
            set_attribute(&mut grown_mesh, POSITION, bytemuck::cast_slice(&grown));
            (compact(&grown_mesh, &self.indices), of_grown)
        } else {
            (compact(&self.mesh, &self.indices), plain)
        };
        self.error = self.error.max(error);
        Ok(Some((data, self.error)))
    }
}

fn set_attribute(mesh: &mut MeshData, id: u64, bytes: &[u8]) {
    let found = mesh
        .attributes
        .iter_mut()
        .find(|attribute| attribute.id == id);
    if let Some(attribute) = found {
        attribute.bytes = bytes.to_vec();
    }
}

/// [`VertexAttribute::id`] of normals, same as Bevy's `Mesh::ATTRIBUTE_NORMAL`.
const NORMAL: u64 = 1;

/// How much a normal counts against a position, in extents of the mesh.
const NORMAL_WEIGHT: f32 = 0.1;

/// The indices of a coarser form of some triangles of a mesh, with about `target` triangles; `None`
/// if there is none. Its vertices are moved to the places that fit the surface best.
fn coarser(mesh: &mut MeshData, indices: &[u32], target: usize) -> Option<Vec<u32>> {
    let of = |id: u64| {
        let is_vec3 = |one: &VertexAttribute| one.stride == 12 && one.format == POSITION_FORMAT;
        let found = mesh.attributes.iter().find(|one| one.id == id);
        found
            .filter(|one| is_vec3(one))
            .map(|one| one.bytes.clone())
    };
    let (old_points, old_normals) = (of(POSITION)?, of(NORMAL));
    // Without seams first: they are seen.
    for seams in [SimplifyOptions::None, SimplifyOptions::Permissive] {
        let mut points: Vec<[f32; 3]> = bytemuck::pod_collect_to_vec(&old_points);
        let mut normals: Vec<f32> = match &old_normals {
            Some(normals) => bytemuck::pod_collect_to_vec(normals),
            None => vec![0.0; points.len() * 3],
        };
        let mut found = indices.to_vec();
        let weights = [NORMAL_WEIGHT; 3];
        let weights = &weights[..if old_normals.is_some() { 3 } else { 0 }];
        let stride = 12;
        let (target, any) = (target * 3, f32::MAX);
        let count = simplify_with_update(
            &mut found,
            &mut points,
            &mut normals,
            weights,
            stride,
            None,
            target,
            any,
            seams,
            None,
        );
        found.truncate(count);
        if count == 0 || count as f32 > indices.len() as f32 * MAX_LEFT {
            continue;
        }
        for normal in normals.chunks_exact_mut(3) {
            let unit = Vec3::from_slice(normal).normalize_or_zero();
            unit.write_to_slice(normal);
        }
        set_attribute(mesh, POSITION, bytemuck::cast_slice(&points));
        if old_normals.is_some() {
            set_attribute(mesh, NORMAL, bytemuck::cast_slice(&normals));
        }
        return Some(found);
    }
    None
}

/// The triangles of some indices with the vertices that they need, in the order of the GPU's vertex
/// cache.
fn compact(mesh: &MeshData, indices: &[u32]) -> MeshData {
    let vertex_count = mesh.vertex_count as usize;
    let mut indices = optimize_vertex_cache(indices, vertex_count);
    // Vertices in the order of their first use. (`optimize_vertex_fetch_remap` of meshopt 0.7 cuts
    // off the places of vertices behind the number of used ones.)
    let mut places = vec![u32::MAX; vertex_count];
    let mut count = 0;
    for index in &mut indices {
        let place = &mut places[*index as usize];
        if *place == u32::MAX {
            *place = count;
            count += 1;
        }
        *index = *place;
    }
    MeshData {
        vertex_count: count,
        attributes: mesh
            .attributes
            .iter()
            .map(|attribute| reorder(attribute, &places, count as usize))
            .collect(),
        indices: Some(indices),
    }
}
