//! Compares all results of the meshlet stages with the twins. Votes may differ within the
//! tolerance, everything else must be equal.

use crate::common::{Scene, equal, page_copy};
use bevy_gpu_culling::cull::{
    Culler, DrawPart, Gpu,
    layout::{
        DrawCommand,
        meshlets::{CELL_WORDS, GpuMeshlet, MESHLET_TILE},
    },
    meshlets::{MeshletBatchData, MeshletCuller},
    reference::{
        Depth, MeshletVote, load_survivor, meshlet_args, meshlet_compact, meshlet_expand,
        meshlet_scan, nearest_border, vote_meshlet,
    },
};
use core::ops::{AddAssign, Range};

/// Counts of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    pub tested: u64,
    pub visible: u64,
    pub outside: u64,
    pub facing_away: u64,
    pub hidden: u64,
    /// Of all that were tested, meshlets of coarser levels.
    pub coarser: u64,
    /// Rows that are drawn whole.
    pub whole: u64,
    /// Votes that differ from the twin and lie within the tolerance of a border.
    pub borderline: u64,
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.tested += other.tested;
        self.visible += other.visible;
        self.outside += other.outside;
        self.facing_away += other.facing_away;
        self.hidden += other.hidden;
        self.coarser += other.coarser;
        self.whole += other.whole;
        self.borderline += other.borderline;
    }
}

/// Compares all lists but the late ones.
pub fn compare(
    cullers: (&Culler, &MeshletCuller),
    gpu: Gpu<'_>,
    scene: &Scene,
) -> Result<Seen, String> {
    let batches = 0..cullers.0.plan().batches.len();
    compare_batches(cullers, gpu, scene, (batches, None))
}

/// Compares some batches of the culler, with the depth that they are compared with.
pub fn compare_batches(
    (culler, meshlets): (&Culler, &MeshletCuller),
    gpu: Gpu<'_>,
    scene: &Scene,
    (batches, depth): (Range<usize>, Depth<'_>),
) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let table = meshlets.meshlets();
    for index in batches {
        let Some(version) = culler.batch_version(index) else {
            continue;
        };
        if meshlets.survivors(index).is_none() {
            continue;
        }
        let failed = |error: bevy_gpu_culling::cull::CullError| error.to_string();
        let data = meshlets.read_batch(gpu, index).map_err(failed)?;
        let (draws, survivors) = MeshletCuller::read_inputs(gpu, culler, index).map_err(failed)?;
        let mut spans = vec![Default::default(); data.spans.len()];
        let mut totals = Default::default();
        meshlet_expand(&data.sizes, &data.rows, &draws, &mut totals, &mut spans);
        equal("totals", &[data.totals], &[totals])?;
        let (instances, scales) = page_copy(culler, scene, version.key.page);
        for (r, span) in spans.iter_mut().enumerate() {
            let gpu_span = data.spans[r];
            (span.outside, span.hidden) = (gpu_span.outside, gpu_span.hidden);
            equal("spans", &[gpu_span], &[*span])?;
            let before = seen;
            compare_votes(
                (&data, depth),
                r,
                (&instances, &scales),
                &survivors,
                &table,
                &mut seen,
            )?;
            for (what, found, expected) in [
                ("outside", gpu_span.outside, seen.outside - before.outside),
                ("hidden", gpu_span.hidden, seen.hidden - before.hidden),
            ] {
                if u64::from(found).abs_diff(expected) > seen.borderline {
                    return Err(format!("row {r}: {found} {what}, {expected} in the twin"));
                }
            }
            let draw_row = data.rows[r].draw_row;
            let is_coarser = |part: &&DrawPart| (part.batch, part.row) == (index, draw_row);
            let part = culler.plan().draws.iter().find(is_coarser);
            if part.is_some_and(|part| part.level > 0) {
                seen.coarser += seen.tested - before.tested;
            }
            check_run(&data, r, &draws[draw_row as usize])?;
        }
        compare_rest(&data, &draws, &survivors, &table)?;
        seen.whole += data
            .results
            .iter()
            .map(|result| u64::from(result.whole))
            .sum::<u64>();
    }
    Ok(seen)
}

/// All commands of a row draw indices of its level.
fn check_run(data: &MeshletBatchData, r: usize, level: &DrawCommand) -> Result<(), String> {
    let row = &data.rows[r];
    let run = level.first_element..level.first_element + level.element_count;
    let first = row.first_draw as usize;
    for draw in &data.draws[first..=first + row.meshlet_count as usize] {
        let end = draw.first_element + draw.element_count;
        let fits = run.start <= draw.first_element && end <= run.end;
        if draw.instance_count > 0 && !fits {
            return Err(format!("row {r} draws {draw:?}, its level has {run:?}"));
        }
    }
    Ok(())
}

fn compare_votes(
    (data, depth): (&MeshletBatchData, Depth<'_>),
    r: usize,
    (instances, scales): (&[bevy_gpu_culling::instance::PackedInstance], &[f32]),
    survivors: &[u32],
    table: &[GpuMeshlet],
    seen: &mut Seen,
) -> Result<(), String> {
    let (row, span) = (&data.rows[r], &data.spans[r]);
    for i in 0..span.tile_count * MESHLET_TILE {
        let (tile, bit) = (i / MESHLET_TILE, i % MESHLET_TILE);
        for m in 0..row.meshlet_count {
            let cell = span.first_cell + m * span.tile_count + tile;
            let word = data.words[(cell * CELL_WORDS + bit / 32) as usize];
            let found = word & 1 << (bit % 32) != 0;
            if i >= span.survivor_count {
                if found {
                    return Err(format!("row {r}: survivor {i} does not exist"));
                }
                continue;
            }
            let id = survivors[(span.first_survivor + i) as usize];
            let survivor = load_survivor(row.chunk.flags, instances, scales, id);
            let meshlet = &table[(row.first_meshlet + m) as usize];
            let vote = vote_meshlet(row, depth, &survivor, meshlet);
            seen.tested += 1;
            match vote {
                MeshletVote::Visible => seen.visible += 1,
                MeshletVote::Outside => seen.outside += 1,
                MeshletVote::FacesAway => seen.facing_away += 1,
                MeshletVote::Hidden => seen.hidden += 1,
            }
            if found != (vote == MeshletVote::Visible) {
                let distance = nearest_border(row, &survivor, meshlet);
                // Rounding decides what a little larger or smaller sphere decides otherwise.
                let changes = depth.is_some()
                    && [0.9995, 1.0005].iter().any(|grown| {
                        let mut sphere = meshlet.sphere;
                        sphere.w *= grown;
                        let meshlet = GpuMeshlet { sphere, ..*meshlet };
                        let vote = vote_meshlet(row, depth, &survivor, &meshlet);
                        found == (vote == MeshletVote::Visible)
                    });
                if distance.is_nan() || (distance > 1e-4 && !changes) {
                    return Err(format!(
                        "row {r}, survivor {i} (id {id}), meshlet {m}: {vote:?}, {distance} from a border, the GPU says {found}"
                    ));
                }
                seen.borderline += 1;
            }
        }
    }
    Ok(())
}

/// Applies the twins of scan, compact and args to the GPU's words and compares the results.
fn compare_rest(
    data: &MeshletBatchData,
    batch_draws: &[DrawCommand],
    survivors: &[u32],
    table: &[GpuMeshlet],
) -> Result<(), String> {
    let cells = data.totals.cell_count;
    let mut counts = vec![0; cells as usize + 1];
    let mut partials = vec![0; data.partials.len()];
    meshlet_scan(cells, &data.words, &mut counts, &mut partials);
    equal("counts", &data.counts, &counts)?;
    equal("partials", &data.partials, &partials)?;
    let mut meshlet_survivors = vec![0; data.survivors.len()];
    let places = (&counts[..], &partials[..]);
    let (sizes, rows) = (&data.sizes, &data.rows);
    meshlet_compact(
        sizes,
        rows,
        survivors,
        &data.spans,
        &data.words,
        places,
        &mut meshlet_survivors,
    );
    equal("survivors", &data.survivors, &meshlet_survivors)?;
    let mut draws = vec![Default::default(); data.draws.len()];
    let mut results = vec![Default::default(); data.results.len()];
    let mut totals = Default::default();
    meshlet_args(
        sizes,
        rows,
        batch_draws,
        (&data.totals, &data.spans),
        table,
        places,
        (&mut draws, &mut totals, &mut results),
    );
    equal("draws", &data.draws, &draws)?;
    equal("results", &data.results, &results)?;
    equal("result totals", &[data.result_totals], &[totals])
}
