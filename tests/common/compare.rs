//! The comparison of a batch on the GPU with the twins.

use super::{Scene, page_copy};
use bevy_gpu_culling::{
    cull::{
        BatchData, CoarserLevel, CullRequest, Culler, CullingTier, DrawPart, DrawShape, Gpu, SetId,
        layout::{BLOCK, BLOCK_WORDS, Bound, ChunkView, FarFirstJob, GRANULE, SCAN_TILE, Totals},
        plan::BatchPlan,
        reference,
    },
    instance::PackedInstance,
};
use std::sync::Arc;

/// Counts of a comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub tested: u64,
    pub visible: u64,
    /// Instances that differ from the twin and lie within 1e-4 of a border.
    pub borderline: u64,
}

/// Compares everything that the GPU wrote with the twins. Words may differ within the tolerance,
/// everything else must be equal.
pub fn compare(culler: &Culler, gpu: Gpu<'_>, scene: &Scene) -> Result<Seen, String> {
    let mut seen = Seen::default();
    for (index, plan) in culler.plan().batches.iter().enumerate() {
        let data = culler
            .read_batch(gpu, index)
            .map_err(|error| error.to_string())?;
        let (instances, scales) = page_copy(culler, scene, plan.page);
        if culler.tier() != CullingTier::Cpu {
            compare_words(plan, &data, &instances, &scales, &mut seen)?;
            let bounds = page_bounds(culler, gpu, scene, plan.page)?;
            compare_rest(plan, &data, &bounds, (&instances, &scales))?;
        }
    }
    Ok(seen)
}

fn compare_words(
    plan: &BatchPlan,
    data: &BatchData,
    instances: &[PackedInstance],
    scales: &[f32],
    seen: &mut Seen,
) -> Result<(), String> {
    let mut words = vec![0; plan.word_len() as usize];
    reference::vote(
        &plan.batch,
        &plan.chunks,
        &plan.chunk_views,
        instances,
        scales,
        &mut words,
    );
    for chunk in &plan.chunks {
        for r in 0..chunk.row_count {
            seen.tested += u64::from(chunk.instance_count);
            let row = &plan.chunk_views[(chunk.first_row + r) as usize].planes;
            let first = ((chunk.first_count + r * chunk.block_count) * BLOCK_WORDS) as usize;
            let range = first..first + (chunk.block_count * BLOCK_WORDS) as usize;
            for (w, (gpu, twin)) in data.words[range.clone()]
                .iter()
                .zip(&words[range])
                .enumerate()
            {
                seen.visible += u64::from(gpu.count_ones());
                let mut differ = gpu ^ twin;
                while differ != 0 {
                    let i = w as u32 * 32 + differ.trailing_zeros();
                    differ &= differ - 1;
                    if i >= chunk.instance_count {
                        return Err(format!(
                            "instance {i} of {} is visible",
                            chunk.instance_count
                        ));
                    }
                    let sphere = reference::load_sphere(chunk, instances, scales, i);
                    let distance = reference::min_distance(chunk, row, sphere);
                    if distance.is_nan() || distance.abs() > 1e-4 {
                        return Err(format!(
                            "row {r}, instance {i}: {distance} from the border, GPU says {}",
                            distance <= 0.0
                        ));
                    }
                    seen.borderline += 1;
                }
            }
        }
    }
    Ok(())
}

/// Applies the twins of scan, compact and args to the GPU's words and compares the results.
fn compare_rest(
    plan: &BatchPlan,
    data: &BatchData,
    bounds: &[Bound],
    (instances, scales): (&[PackedInstance], &[f32]),
) -> Result<(), String> {
    let capacity = data.totals.survivors - data.totals.overflow;
    let mut batch = plan.batch;
    batch.survivor_capacity = if data.totals.overflow > 0 {
        capacity
    } else {
        u32::MAX
    };
    let mut counts = vec![0; batch.count_len as usize];
    reference::count(&batch, &data.words, &mut counts);
    equal("counts", &data.counts, &counts)?;
    let first_words = order(plan, bounds);
    if batch.is_near_first != 0 {
        let ranks = data.ranks.iter().take(first_words.len());
        let found: Vec<_> = ranks.map(|rank| rank.first_word).collect();
        equal("first words", &found, &first_words)?;
    }
    let places = reference::scan(&batch, &data.words, &first_words);
    if batch.is_scanned != 0 {
        let tiles = places.chunks(SCAN_TILE as usize);
        let in_tile = |tile: &[u32]| tile.iter().map(|place| place - tile[0]).collect::<Vec<_>>();
        let prefixes: Vec<_> = tiles.clone().flat_map(in_tile).collect();
        let found: Vec<_> = data.ranks.iter().map(|rank| rank.place).collect();
        equal("places", &found, &prefixes)?;
        let ends = tiles.clone().skip(1).map(|tile| tile[0]);
        let ends = ends.chain(places.last().copied());
        let totals: Vec<_> = ends.zip(tiles).map(|(end, tile)| end - tile[0]).collect();
        equal("tiles", &data.tiles, &totals)?;
    }
    equal(
        "survivors of all rows",
        &[data.totals.survivors],
        &places[places.len() - 1..],
    )?;
    let mut survivors = vec![0; capacity as usize];
    let tables = (&*plan.chunks, &*first_words);
    reference::compact(&batch, tables, &data.words, &places, &mut survivors);
    let mut totals = Totals::default();
    let mut draws = vec![Default::default(); plan.chunk_views.len()];
    draws.extend_from_slice(&plan.siblings);
    reference::write_args(
        &batch,
        &plan.chunk_views,
        &places,
        (&mut totals, &mut draws),
    );
    let jobs = FarFirstJob::of_batch(&plan.chunks, &plan.chunk_views);
    reference::far_first(&jobs, &draws, &mut survivors, instances, scales);
    equal("survivors", &data.survivors, &survivors)?;
    equal("totals", &[data.totals], &[totals])?;
    equal("draws", &data.draws, &draws)
}

/// Each shape of a request has a command, which draws it with the survivors of the request. `parts`
/// are draws of the request. Returns the number of commands of further shapes with survivors.
pub fn compare_shapes(
    culler: &Culler,
    gpu: Gpu<'_>,
    request: &CullRequest,
    parts: &[DrawPart],
) -> Result<u64, String> {
    let mut drawn = 0;
    let coarser = |levels: &Option<Arc<[CoarserLevel]>>, level: usize| {
        let level = levels.as_deref()?.get(level.checked_sub(1)?)?;
        Some(level.shape)
    };
    for part in parts {
        let first = coarser(&request.coarser, part.level).unwrap_or(request.shape);
        let further = request.more.iter();
        let further = further.map(|more| coarser(&more.coarser, part.level).unwrap_or(more.shape));
        let mut survivors = None;
        for (number, shape) in [first].into_iter().chain(further).enumerate() {
            let read = culler.read_command(gpu, part, number);
            let (command, indexed) = read.map_err(|error| error.to_string())?;
            let mesh = match shape {
                DrawShape::Indexed {
                    index_count,
                    first_index,
                    base_vertex,
                } => (true, index_count, first_index, base_vertex.cast_unsigned()),
                DrawShape::NonIndexed {
                    vertex_count,
                    first_vertex,
                } => (false, vertex_count, first_vertex, 0),
            };
            let base_vertex = match indexed {
                true => command.base_vertex_or_first_instance,
                false => 0,
            };
            let drawn_mesh = (
                indexed,
                command.element_count,
                command.first_element,
                base_vertex,
            );
            let of = (command.first_survivor(indexed), command.instance_count);
            if drawn_mesh != mesh || of != *survivors.get_or_insert(of) {
                return Err(format!(
                    "{part:?}, shape {number} of {}: {command:?} is no command for {shape:?} with \
                     the survivors {survivors:?} (first, number)",
                    1 + request.more.len()
                ));
            }
            drawn += u64::from(number > 0 && command.instance_count > 0);
        }
        let beyond = culler.shape_source(part, 1 + request.more.len());
        if beyond.is_some() {
            return Err(format!("{part:?} has a command too many"));
        }
    }
    Ok(drawn)
}

/// The bounds of a page's blocks, as they are on the GPU: each at the place of its first granule.
pub fn page_bounds(
    culler: &Culler,
    gpu: Gpu<'_>,
    scene: &Scene,
    page: usize,
) -> Result<Vec<Bound>, String> {
    let mut bounds = Vec::new();
    for id in 0..scene.sets.len() as u64 {
        let read = culler.store().read_bounds(gpu, SetId(id));
        let read = read.map_err(|error| error.to_string())?;
        let mut read = read.into_iter();
        for region in culler.store().set_regions(SetId(id)) {
            let blocks = region.capacity.div_ceil(BLOCK) as usize;
            let of_region: Vec<_> = read.by_ref().take(blocks).collect();
            if region.page == page {
                let places = (region.first / GRANULE..).step_by((BLOCK / GRANULE) as usize);
                for (place, bound) in places.zip(of_region) {
                    let place = place as usize;
                    bounds.resize(bounds.len().max(place + 1), Bound::default());
                    bounds[place] = bound;
                }
            }
        }
    }
    Ok(bounds)
}

/// What stands at each rank of a batch, by the twin.
pub fn order(plan: &BatchPlan, bounds: &[Bound]) -> Vec<u32> {
    reference::order(&plan.batch, &plan.chunks, &plan.chunk_views, |range| {
        bounds[range.start / GRANULE as usize]
    })
}

/// The place of an instance of a row among the instances of the row, if all survive, by what stands
/// at each rank.
pub fn position(plan: &BatchPlan, first_words: &[u32]) -> impl Fn(&ChunkView, u32) -> u32 {
    let batch = plan.batch;
    let mut places = vec![0; plan.word_len() as usize];
    for rank in 0..batch.rank_count() {
        let first_word = reference::first_word_at(&batch, first_words, rank);
        for k in 0..batch.unit_words {
            places[(first_word ^ k) as usize] = rank * batch.unit_words + k;
        }
    }
    move |view, i| {
        let first = view.first_count * BLOCK_WORDS;
        (places[(first + i / 32) as usize] - first) * 32 + i % 32
    }
}

/// The first difference between what a kernel made and what its twin did is an error.
pub fn equal<T: PartialEq + core::fmt::Debug>(
    what: &str,
    gpu: &[T],
    twin: &[T],
) -> Result<(), String> {
    match gpu.iter().zip(twin).position(|(a, b)| a != b) {
        Some(i) => Err(format!(
            "{what}[{i}]: {:?} on the GPU, {:?} in the twin",
            gpu[i], twin[i]
        )),
        None if gpu.len() != twin.len() => Err(format!(
            "{what}: {} on the GPU, {} in the twin",
            gpu.len(),
            twin.len()
        )),
        None => Ok(()),
    }
}
