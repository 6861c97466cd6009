//! Twin of `shaders/meshlets/vote_items.wesl`.

use super::{Depth, MeshletVote, load_survivor, vote_meshlet};
use crate::{
    cull::layout::meshlets::{CELL_WORDS, GpuMeshlet, MESHLET_TILE, MeshletRow, MeshletSpan},
    instance::PackedInstance,
};

/// The row of a source: the last one whose first source is not after it.
#[must_use]
pub fn row_of_source(spans: &[MeshletSpan], source: u32) -> usize {
    let end = spans.partition_point(|span| span.first_source <= source);
    end.saturating_sub(1)
}

/// Number of meshlets of a source, which is a survivor, counted over all rows.
#[must_use]
pub fn items_of(meshlet_rows: &[MeshletRow], spans: &[MeshletSpan], source: u32) -> u32 {
    meshlet_rows[row_of_source(spans, source)].meshlet_count
}

/// Tests one meshlet of one survivor: sets its bit if it is visible, or counts it if it is outside
/// the view or hidden.
pub fn vote_item(
    (meshlet_rows, depth): (&[MeshletRow], Depth<'_>),
    (instances, scales): (&[PackedInstance], &[f32]),
    survivors: &[u32],
    spans: &mut [MeshletSpan],
    meshlets: &[GpuMeshlet],
    words: &mut [u32],
    (source, item): (u32, u32),
) {
    let r = row_of_source(spans, source);
    let (row, span) = (&meshlet_rows[r], &mut spans[r]);
    let i = source - span.first_source;
    let id = survivors[(span.first_survivor + i) as usize];
    let survivor = load_survivor(row.chunk.flags, instances, scales, id);
    let meshlet = &meshlets[(row.first_meshlet + item) as usize];
    match vote_meshlet(row, depth, &survivor, meshlet) {
        MeshletVote::Visible => {
            let cell = span.first_cell + item * span.tile_count + i / MESHLET_TILE;
            let word = cell * CELL_WORDS + i % MESHLET_TILE / 32;
            words[word as usize] |= 1 << (i % 32);
        }
        MeshletVote::Outside => span.outside += 1,
        MeshletVote::FacesAway => {}
        MeshletVote::Hidden => span.hidden += 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cull::{
            layout::DrawCommand,
            layout::meshlets::{MeshletSizes, MeshletTotals},
            reference::{
                expand::{
                    expand_scan, expand_spine, item_list, lanes_one_bucket, lanes_po2_buckets,
                    list_items, one_bucket, one_bucket_items, plan_buckets, po2_bucket_items,
                    po2_buckets, search_items,
                },
                meshlet_expand, meshlet_vote,
            },
        },
        meshlet::NormalCone,
    };
    use glam::{DVec3, Quat, Vec3, Vec4};
    use proptest::prelude::*;

    /// Meshlets of each kind of vote in a view that keeps every sphere with a radius, from an eye
    /// at (0, 0, 9).
    fn meshlets(kinds: &[u8]) -> Vec<GpuMeshlet> {
        let cone = |normal: DVec3| NormalCone::around(normal.as_vec3(), [normal]).to_bits();
        let meshlet = |kind: &u8| GpuMeshlet {
            sphere: Vec3::ZERO.extend(f32::from(kind % 3)),
            cone: cone(if kind.is_multiple_of(2) {
                DVec3::Z
            } else {
                -DVec3::Z
            }),
            ..GpuMeshlet::default()
        };
        kinds.iter().map(meshlet).collect()
    }

    proptest! {
        /// Whatever the order of the items, the bits are the ones of the vote of whole rows.
        #[test]
        fn items_in_any_order_are_the_votes_of_whole_rows(
            rows in proptest::collection::vec((0..300u32, 1..40u32), 1..9),
            kinds in proptest::collection::vec(any::<u8>(), 40),
            capacity in prop_oneof![Just(u32::MAX), 0..200u32],
        ) {
            let table = meshlets(&kinds);
            let turned = |i: u32| Quat::from_rotation_x(i as f32);
            let instances: Vec<_> = (0..300)
                .map(|i| PackedInstance::new(Vec3::ZERO, turned(i)))
                .collect();
            let mut draws = Vec::new();
            let mut survivors: Vec<u32> = Vec::new();
            let mut meshlet_rows = Vec::new();
            for (instance_count, meshlet_count) in &rows {
                meshlet_rows.push(MeshletRow {
                    eye: Vec4::new(0.0, 0.0, 9.0, 1.0),
                    draw_row: draws.len() as u32,
                    meshlet_count: *meshlet_count,
                    ..MeshletRow::default()
                });
                draws.push(DrawCommand {
                    instance_count: *instance_count,
                    first_instance: survivors.len() as u32,
                    ..DrawCommand::default()
                });
                survivors.extend((0..*instance_count).rev());
            }
            let sizes = MeshletSizes {
                row_count: rows.len() as u32,
                cell_capacity: capacity,
                ..MeshletSizes::default()
            };
            let mut totals = MeshletTotals::default();
            let mut spans = vec![MeshletSpan::default(); rows.len()];
            meshlet_expand(&sizes, &meshlet_rows, &draws, &mut totals, &mut spans);
            let cells = totals.cell_count as usize;
            let inputs = (&instances[..], &[][..]);

            let mut by_rows = spans.clone();
            let mut words = vec![0; cells * CELL_WORDS as usize];
            meshlet_vote(
                &sizes, (&meshlet_rows, None), inputs, &survivors, &mut by_rows, &table, &mut words,
            );

            let numbers: Vec<_> = (0..totals.source_count)
                .map(|source| items_of(&meshlet_rows, &spans, source))
                .collect();
            let (prefixes, mut partials) = expand_scan(&numbers, |items| items);
            let total = expand_spine(&mut partials);
            let list = item_list(&numbers, &prefixes, &partials, u32::MAX);
            let po2 = po2_buckets(&numbers);
            let (po2_plan, _) = plan_buckets(&po2.firsts, total, u32::MAX, lanes_po2_buckets);
            let one = one_bucket(&numbers);
            let (one_plan, _) = plan_buckets(&one.firsts, total, u32::MAX, lanes_one_bucket);
            for expansion in 0..4 {
                let mut by_items = spans.clone();
                let mut item_words = vec![0; words.len()];
                let vote = |source, item| vote_item(
                    (&meshlet_rows, None), inputs, &survivors, &mut by_items, &table, &mut item_words,
                    (source, item),
                );
                match expansion {
                    0 => list_items(&list, vote),
                    1 => search_items(&prefixes, &partials, total, vote),
                    2 => po2_bucket_items(&po2.entries, &po2_plan, &numbers, vote),
                    _ => one_bucket_items(&one.entries, &one_plan, &numbers, vote),
                }
                prop_assert_eq!(&item_words, &words);
                prop_assert_eq!(&by_items, &by_rows);
            }
        }
    }

    #[test]
    fn rows_without_survivors_have_no_source() {
        let span = |first_source| MeshletSpan {
            first_source,
            ..MeshletSpan::default()
        };
        let spans = [0, 0, 3, 3, 3, 5].map(span);
        let rows: Vec<_> = (0..6).map(|source| row_of_source(&spans, source)).collect();
        assert_eq!(rows, [1, 1, 1, 4, 4, 5]);
    }
}
