//! Twins of `shaders/meshlets/*.wesl`.

mod items;

pub use items::{items_of, row_of_source, vote_item};

use crate::{
    cull::{
        layout::meshlets::{
            CELL_TILE, CELL_WORDS, GpuMeshlet, ITEM_MESHLETS, MESHLET_TILE, MeshletResult,
            MeshletRow, MeshletSizes, MeshletSpan, MeshletTotals,
        },
        layout::{DepthPyramid, DrawCommand, ROUNDING},
        reference::{
            Placed,
            footprint::is_hidden,
            is_visible, min_distance,
            vote::{load_scale, rotate},
        },
    },
    instance::PackedInstance,
    meshlet::NormalCone,
};
use glam::{Vec3, Vec3Swizzles, Vec4, Vec4Swizzles};

/// The result of testing one meshlet of one survivor in one view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeshletVote {
    /// It is drawn.
    Visible,
    /// Its sphere is outside the view.
    Outside,
    /// All its triangles face away.
    FacesAway,
    /// The depth of the view hides it.
    Hidden,
}

/// The depth that late lists are compared with: the texels of a pyramid, and its shape.
pub type Depth<'a> = Option<(&'a [f32], &'a DepthPyramid)>;

/// A survivor in its set's space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survivor {
    /// Position.
    pub position: Vec3,
    /// Scale along the axes of the mesh.
    pub scale: Vec3,
    /// Rotation, as the shader decodes it.
    pub rotation: Vec4,
}

/// Reads a survivor by its id.
#[must_use]
pub fn load_survivor(
    chunk_flags: u32,
    instances: &[PackedInstance],
    scales: &[f32],
    id: u32,
) -> Survivor {
    let instance = &instances[id as usize];
    Survivor {
        position: instance.position(),
        scale: load_scale(chunk_flags, scales, id as usize),
        rotation: instance.rotation().into(),
    }
}

/// A meshlet's sphere in the set's space.
#[must_use]
pub fn place_sphere(survivor: &Survivor, sphere: Vec4) -> Vec4 {
    let center = rotate(survivor.rotation, sphere.xyz() * survivor.scale) + survivor.position;
    center.extend(sphere.w * survivor.scale.max_element())
}

/// The eye in the survivor's mesh, because cones are as they were built there: an affine transform
/// keeps which side of a triangle the eye is on. Times the product of the scales, so that nothing
/// is divided by them: a flat survivor sees the eye from far away.
#[must_use]
pub fn eye_in_mesh(survivor: &Survivor, eye: Vec4) -> Vec4 {
    let q = survivor.rotation;
    let inverse = (-q.xyz()).extend(q.w);
    let largest = survivor.scale.max_element();
    // Relative to the largest scale, so that products stay in range.
    let part = survivor.scale / if largest > 0.0 { largest } else { 1.0 };
    let turned = rotate(inverse, eye.xyz() - eye.w * survivor.position);
    let flat = part.yzx() * part.zxy();
    (turned * flat).extend(eye.w * part.x * part.y * part.z * largest)
}

/// Distance of the eye behind all triangles of a cone, in the units of `eye`. Above 0, the eye sees
/// only backs.
#[must_use]
pub fn distance_behind(eye: Vec4, axis: Vec3, cutoff: f32, sphere: Vec4) -> f32 {
    if cutoff >= 1.0 {
        return f32::NEG_INFINITY;
    }
    let to_eye = eye.xyz() - eye.w * sphere.xyz();
    -axis.dot(to_eye) - (cutoff * to_eye.length() + eye.w.abs() * sphere.w + ROUNDING)
}

/// A meshlet's sphere, for the test of instances.
fn placed(sphere: Vec4) -> Placed {
    Placed {
        sphere,
        origin: sphere.truncate(),
        index: 0,
    }
}

/// Tests one meshlet of one survivor of a row. `depth` is the depth of a late list.
#[must_use]
pub fn vote_meshlet(
    row: &MeshletRow,
    depth: Depth<'_>,
    survivor: &Survivor,
    meshlet: &GpuMeshlet,
) -> MeshletVote {
    let cone = NormalCone::from_bits(meshlet.cone);
    let sphere = place_sphere(survivor, meshlet.sphere);
    let eye = eye_in_mesh(survivor, row.eye);
    let is_behind = |(texels, shape)| is_hidden(texels, shape, &row.projection, sphere);
    if !is_visible(&row.chunk, &row.planes, placed(sphere)) {
        MeshletVote::Outside
    } else if distance_behind(eye, cone.axis(), cone.cutoff(), meshlet.sphere) > 0.0 {
        MeshletVote::FacesAway
    } else if depth.is_some_and(is_behind) {
        MeshletVote::Hidden
    } else {
        MeshletVote::Visible
    }
}

/// Margin by which the test of the meshlet could change: the least distance from a border of the
/// view (in the set's or the world's units) and from the border of the cone, or NaN.
#[must_use]
pub fn nearest_border(row: &MeshletRow, survivor: &Survivor, meshlet: &GpuMeshlet) -> f32 {
    let cone = NormalCone::from_bits(meshlet.cone);
    let sphere = place_sphere(survivor, meshlet.sphere);
    let eye = eye_in_mesh(survivor, row.eye);
    let view = min_distance(&row.chunk, &row.planes, placed(sphere));
    let behind = distance_behind(eye, cone.axis(), cone.cutoff(), meshlet.sphere);
    if view.is_nan() || behind.is_nan() {
        return f32::NAN;
    }
    view.abs().min(behind.abs())
}

/// Computes what the survivors of each row expand to; `draws` has the number of survivors.
pub fn meshlet_expand(
    sizes: &MeshletSizes,
    meshlet_rows: &[MeshletRow],
    draws: &[DrawCommand],
    totals: &mut MeshletTotals,
    spans: &mut [MeshletSpan],
) {
    let (mut cells, mut items, mut sources) = (0u64, 0u64, 0u64);
    *totals = MeshletTotals::default();
    for (row, span) in meshlet_rows[..sizes.row_count as usize].iter().zip(spans) {
        let draw = &draws[row.draw_row as usize];
        let tile_count = draw.instance_count.div_ceil(MESHLET_TILE);
        *span = MeshletSpan {
            first_item: clamp(items),
            first_cell: clamp(cells),
            tile_count,
            survivor_count: draw.instance_count,
            first_survivor: draw.first_instance,
            first_source: clamp(sources),
            ..MeshletSpan::default()
        };
        let groups = row.meshlet_count.div_ceil(ITEM_MESHLETS);
        items += u64::from(tile_count) * u64::from(groups);
        cells += u64::from(tile_count) * u64::from(row.meshlet_count);
        sources += u64::from(draw.instance_count);
        if cells <= u64::from(sizes.cell_capacity) {
            (totals.cell_count, totals.item_count) = (clamp(cells), clamp(items));
            totals.source_count = clamp(sources);
        } else {
            span.tile_count = 0;
        }
        if span.tile_count == 0 {
            span.first_cell = 0;
        }
    }
    totals.needed_cells = clamp(cells);
}

fn clamp(sum: u64) -> u32 {
    sum.min(u64::from(u32::MAX)) as u32
}

/// Writes the bits of all cells, and counts the meshlets that are outside the view or hidden.
pub fn meshlet_vote(
    sizes: &MeshletSizes,
    (meshlet_rows, depth): (&[MeshletRow], Depth<'_>),
    (instances, scales): (&[PackedInstance], &[f32]),
    survivors: &[u32],
    spans: &mut [MeshletSpan],
    meshlets: &[GpuMeshlet],
    words: &mut [u32],
) {
    for (row, span) in meshlet_rows[..sizes.row_count as usize].iter().zip(spans) {
        for tile in 0..span.tile_count {
            let first = tile * MESHLET_TILE;
            let end = span.survivor_count.min(first + MESHLET_TILE);
            for m in 0..row.meshlet_count {
                let meshlet = &meshlets[(row.first_meshlet + m) as usize];
                let cell = (span.first_cell + m * span.tile_count + tile) as usize;
                let bits = &mut words[cell * CELL_WORDS as usize..][..CELL_WORDS as usize];
                bits.fill(0);
                for i in first..end {
                    let id = survivors[(span.first_survivor + i) as usize];
                    let survivor = load_survivor(row.chunk.flags, instances, scales, id);
                    match vote_meshlet(row, depth, &survivor, meshlet) {
                        MeshletVote::Visible => {
                            bits[((i - first) / 32) as usize] |= 1 << (i % 32);
                        }
                        MeshletVote::Outside => span.outside += 1,
                        MeshletVote::FacesAway => {}
                        MeshletVote::Hidden => span.hidden += 1,
                    }
                }
            }
        }
    }
}

/// Counts the bits of each cell, and turns the counts into exclusive prefixes: of cells within
/// tiles, and of tiles.
pub fn meshlet_scan(cell_count: u32, words: &[u32], counts: &mut [u32], partials: &mut [u32]) {
    for (count, words) in counts.iter_mut().zip(words.chunks(CELL_WORDS as usize)) {
        *count = words.iter().map(|word| word.count_ones()).sum();
    }
    counts[cell_count as usize] = 0;
    let tiles = counts[..=cell_count as usize].chunks_mut(CELL_TILE as usize);
    let mut before = 0;
    for (tile, partial) in tiles.zip(partials) {
        *partial = before;
        let mut sum = 0;
        for count in tile {
            sum += core::mem::replace(count, sum);
        }
        before += sum;
    }
}

/// Number of ids before a cell.
#[must_use]
pub fn meshlet_place(counts: &[u32], partials: &[u32], cell: u32) -> u32 {
    counts[cell as usize] + partials[(cell / CELL_TILE) as usize]
}

/// Turns bits into ids, meshlet after meshlet; ids beyond the capacity are lost.
pub fn meshlet_compact(
    sizes: &MeshletSizes,
    meshlet_rows: &[MeshletRow],
    survivors: &[u32],
    spans: &[MeshletSpan],
    words: &[u32],
    (counts, partials): (&[u32], &[u32]),
    meshlet_survivors: &mut [u32],
) {
    for (row, span) in meshlet_rows[..sizes.row_count as usize].iter().zip(spans) {
        for m in 0..row.meshlet_count {
            for tile in 0..span.tile_count {
                let cell = span.first_cell + m * span.tile_count + tile;
                let mut place = meshlet_place(counts, partials, cell);
                for i in 0..MESHLET_TILE {
                    let word = words[(cell * CELL_WORDS + i / 32) as usize];
                    if word & 1 << (i % 32) != 0 {
                        if place < sizes.survivor_capacity {
                            let at = span.first_survivor + tile * MESHLET_TILE + i;
                            meshlet_survivors[place as usize] = survivors[at as usize];
                        }
                        place += 1;
                    }
                }
            }
        }
    }
}

/// Writes the commands and results of all rows. `batch_draws` are the commands of the batch's rows.
pub fn meshlet_args(
    sizes: &MeshletSizes,
    meshlet_rows: &[MeshletRow],
    batch_draws: &[DrawCommand],
    (totals, spans): (&MeshletTotals, &[MeshletSpan]),
    meshlets: &[GpuMeshlet],
    (counts, partials): (&[u32], &[u32]),
    (draws, total_results, results): (&mut [DrawCommand], &mut MeshletTotals, &mut [MeshletResult]),
) {
    let place = |cell| meshlet_place(counts, partials, cell);
    let rows = meshlet_rows[..sizes.row_count as usize].iter();
    for ((row, span), result) in rows.zip(spans).zip(results) {
        let cells = span.tile_count * row.meshlet_count;
        let whole = span.survivor_count > 0
            && (span.tile_count == 0 || place(span.first_cell + cells) > sizes.survivor_capacity);
        let row_draws = &mut draws[row.first_draw as usize..][..=row.meshlet_count as usize];
        row_draws.fill(DrawCommand::default());
        *result = MeshletResult {
            survivor_count: span.survivor_count,
            outside: span.outside,
            hidden: span.hidden,
            whole: u32::from(whole),
            ..MeshletResult::default()
        };
        let mut triangles = 0u64;
        if whole {
            row_draws[0] = batch_draws[row.draw_row as usize];
            triangles =
                u64::from(row_draws[0].instance_count) * u64::from(row_draws[0].element_count / 3);
        } else {
            for m in 0..row.meshlet_count {
                let meshlet = &meshlets[(row.first_meshlet + m) as usize];
                let cell = span.first_cell + m * span.tile_count;
                let first = place(cell);
                let instances = place(cell + span.tile_count) - first;
                if instances > 0 {
                    result.draw_count += 1;
                    result.visible += instances;
                    triangles += u64::from(instances) * u64::from(meshlet.index_count / 3);
                    row_draws[result.draw_count as usize] = DrawCommand {
                        element_count: meshlet.index_count,
                        instance_count: instances,
                        first_element: row.first_index + meshlet.first_index,
                        base_vertex_or_first_instance: row.base_vertex.cast_unsigned(),
                        first_instance: first,
                    };
                }
            }
        }
        (result.triangles, result.triangles_high) = (triangles as u32, (triangles >> 32) as u32);
    }
    *total_results = MeshletTotals {
        needed_survivors: place(totals.cell_count),
        ..*totals
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cull::CullView;
    use glam::camera::rh::{proj::directx, view};
    use glam::{Affine3A, Quat};

    /// Meshlets of a survivor 4 million units from the set's origin, which is brought to the
    /// camera.
    #[test]
    fn rounding_rejects_no_meshlet_that_faces_the_eye() {
        let far = Vec3::new(4e6, -3e6, 1e6);
        let world = Affine3A::from_translation(-far);
        let (mut kept, mut rejected) = (0, 0);
        // Very near, rounding leaves no meshlet that is surely turned away.
        for (step, away) in (0..2000).map(|step| (step, if step % 2 == 0 { 4.0 } else { 400.0 })) {
            let direction = |speed: f32| {
                let spread = |k: f32| ((step as f32 + k) * speed).sin();
                Vec3::new(spread(0.0), spread(0.3), spread(0.7))
            };
            let at = direction(12.9898) * away;
            let clip = directx::perspective_infinite_reverse(1.0, 1.5, 0.1)
                * view::look_at_mat4(at, Vec3::ZERO, Vec3::Y);
            let survivor = Survivor {
                position: far,
                scale: Vec3::ONE,
                rotation: Quat::IDENTITY.into(),
            };
            let eye = eye_in_mesh(
                &survivor,
                CullView::from_clip_from_world(&clip).eye_in(&world),
            );
            let (axis, cutoff) = (direction(7.233).normalize(), 0.3);
            let behind = distance_behind(eye, axis, cutoff, Vec4::ZERO);
            if -axis.dot(at) < cutoff * at.length() - 1e-5 {
                assert!(behind <= 0.0, "{axis} faces {at}");
                kept += 1;
            }
            rejected += usize::from(behind > 0.0);
        }
        assert!(kept > 500 && rejected > 100, "{kept} {rejected}");
    }
}
