//! Runs an expansion and compares all its results with the twin.

use crate::common::{equal, gpu, instance, kernel};
use bevy_gpu_culling::cull::{
    CullError, CullingTier, Expander, Expansion,
    expand::{ExpandCode, ExpandInput, ExpandReport, ExpanderOptions, SourceCount},
    layout::expand::*,
    reference::expand as twin,
};
use wgpu::{BindGroup, BindGroupLayout, Buffer, Device, Queue};

/// Marks each item. A mark for an item that does not exist is an error.
const BODY: &str = "
struct TestMarks { errors: atomic<u32>, done: atomic<u32>, marks: array<atomic<u32>> }
// The first item of each source, and the end.
@group(1) @binding(0) var<storage, read> test_firsts: array<u32>;
@group(1) @binding(1) var<storage, read_write> test_marks: TestMarks;
fn expand_item(source: u32, item: u32) {
    if (source + 1u >= arrayLength(&test_firsts)) {
        atomicAdd(&test_marks.errors, 1u);
        return;
    }
    let first = test_firsts[source];
    if (item >= test_firsts[source + 1u] - first) {
        atomicAdd(&test_marks.errors, 1u);
        return;
    }
    atomicAdd(&test_marks.marks[first + item], 1u);
}
fn expand_done() {
    atomicAdd(&test_marks.done, 1u);
}
";

pub struct Gpu {
    pub device: Device,
    pub queue: Queue,
    layout: BindGroupLayout,
}

impl Gpu {
    pub fn new() -> Self {
        let gpu = gpu();
        Self::on(gpu.device.clone(), gpu.queue.clone())
    }

    /// A device whose storage bindings have at most `bytes`.
    pub fn with_limit(bytes: u64) -> Self {
        let adapter = pollster::block_on(instance().request_adapter(&Default::default())).unwrap();
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            required_features: adapter.features() & CullingTier::wanted_features(),
            required_limits: wgpu::Limits {
                max_storage_buffer_binding_size: bytes,
                ..adapter.limits()
            },
            ..Default::default()
        }))
        .unwrap();
        device.on_uncaptured_error(std::sync::Arc::new(|error| panic!("wgpu: {error}")));
        Self::on(device, queue)
    }

    fn on(device: Device, queue: Queue) -> Self {
        let entry = |binding, read_only| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &[entry(0, true), entry(1, false)],
        });
        Self {
            device,
            queue,
            layout,
        }
    }

    pub fn options(&self, tier: CullingTier, expansion: Expansion) -> ExpanderOptions<'_> {
        let body = ExpandCode {
            wgsl: BODY,
            layout: Some(&self.layout),
        };
        ExpanderOptions {
            expansion,
            ..ExpanderOptions::new(tier, body)
        }
    }

    pub fn buffer(&self, words: &[u32]) -> Buffer {
        let some = if words.is_empty() { &[0][..] } else { words };
        kernel::buffer_of(&self.device, bytemuck::cast_slice(some))
    }

    pub fn read(&self, buffer: &Buffer) -> Vec<u32> {
        let gpu = bevy_gpu_culling::cull::Gpu::new(&self.device, &self.queue);
        kernel::read(gpu, buffer, 0, buffer.size() as usize / 4)
    }

    /// A buffer for the marks of the items of `counts`, and its bind group.
    pub fn marks(&self, counts: &[u32]) -> (Buffer, BindGroup) {
        let mut firsts = vec![0u32];
        for items in counts {
            firsts.push(firsts.last().unwrap().saturating_add(*items));
        }
        let items = *firsts.last().unwrap() as usize;
        // Too many items are never expanded, so any mark is an error.
        let room = if items > 1 << 26 { 0 } else { items };
        let firsts = self.buffer(&firsts);
        let marks = self.buffer(&vec![0; 2 + room.max(1)]);
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.layout,
            entries: &[
                wgpu::BindGroupEntry {
                    binding: 0,
                    resource: firsts.as_entire_binding(),
                },
                wgpu::BindGroupEntry {
                    binding: 1,
                    resource: marks.as_entire_binding(),
                },
            ],
        });
        (marks, group)
    }

    /// Runs both passes. Returns pass 1's report and the marks (errors, finished threads, items).
    pub fn expand(&self, expander: &Expander, counts: &[u32]) -> (ExpandReport, Vec<u32>) {
        let (marks, group) = self.marks(counts);
        (self.expand_into(expander, &group), self.read(&marks))
    }

    /// Runs both passes with `group` for the body. Returns pass 1's report.
    pub fn expand_into(&self, expander: &Expander, group: &BindGroup) -> ExpandReport {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            expander.record_sources(&mut pass, None);
            expander.record_items(&mut pass, Some(group));
        }
        self.queue.submit([encoder.finish()]);
        expander.read(&self.device, &self.queue).unwrap()
    }

    /// Prepares and expands, lets a list grow if it did not fit, and compares all results with the
    /// twin.
    pub fn check(&self, expander: &mut Expander, counts: &[u32]) -> Result<(), String> {
        self.prepare(expander, counts)?;
        self.check_prepared(expander, counts)
    }

    pub fn prepare(&self, expander: &mut Expander, counts: &[u32]) -> Result<(), String> {
        let buffer = self.buffer(counts);
        let input = ExpandInput {
            counts: Some(&buffer),
            sources: SourceCount::Known(counts.len() as u32),
        };
        let prepared = expander.prepare(&self.device, &self.queue, &input);
        prepared.map_err(|error| error.to_string())
    }

    pub fn check_prepared(&self, expander: &mut Expander, counts: &[u32]) -> Result<(), String> {
        self.check_items(expander, counts)?;
        self.compare_pass_1(expander, counts)
    }

    /// Compares only what the body saw: each item once.
    pub fn check_items(&self, expander: &mut Expander, counts: &[u32]) -> Result<(), String> {
        let (mut report, mut marks) = self.expand(expander, counts);
        let items = twin::sum_items(counts);
        let equal = |what: &str, gpu: u32, twin: u32| match gpu == twin {
            true => Ok(()),
            false => Err(format!("{what}: {gpu} on the GPU, {twin} in the twin")),
        };
        equal("sources", report.sources, counts.len() as u32)?;
        equal("items", report.items, items)?;
        if let Err(CullError::ExpansionOverflow { needed, capacity }) = report.check() {
            // Items that fit are expanded once, the others never.
            equal("errors of an overflow", marks[0], 0)?;
            let found = marks[2..].iter().filter(|mark| **mark == 1).count();
            let more = marks[2..].iter().filter(|mark| **mark > 1).count();
            equal("items twice in an overflow", more as u32, 0)?;
            if needed <= capacity || found >= items as usize || marks[2] != u32::from(items > 0) {
                return Err(format!("{found} of {items} items for {report:?}"));
            }
            if !expander.grow(&self.device, &self.queue, &report).unwrap() {
                return Err("an overflow, but no growth".into());
            }
            (report, marks) = self.expand(expander, counts);
        }
        report.check().map_err(|error| error.to_string())?;
        equal("errors", marks[0], 0)?;
        if marks[1] == 0 || !marks[1].is_multiple_of(EXPAND_CHUNK) {
            return Err(format!("{} threads were done", marks[1]));
        }
        let marks = &marks[2..2 + items as usize];
        if let Some(item) = marks.iter().position(|mark| *mark != 1) {
            return Err(format!("item {item} of {items}: {} times", marks[item]));
        }
        Ok(())
    }

    /// Compares the results of pass 1 word by word.
    fn compare_pass_1(&self, expander: &Expander, counts: &[u32]) -> Result<(), String> {
        let gpu = (&self.device, &self.queue);
        let params = expander.params();
        let read = |at, len| expander.read_arena(gpu.0, gpu.1, at, len).unwrap();
        let state = expander.read_state(gpu.0, gpu.1).unwrap();
        let items = twin::sum_items(counts);
        let weight = match expander.expansion() {
            Expansion::WorkgroupItems => twin::weight_of_groups,
            _ => |items| items,
        };
        let (prefixes, mut partials) = twin::expand_scan(counts, weight);
        let total = twin::expand_spine(&mut partials);
        let scanned = || {
            equal(
                "prefixes",
                &read(params.prefix_at, prefixes.len()),
                &prefixes,
            )?;
            equal(
                "partials",
                &read(params.partials_at, partials.len()),
                &partials,
            )
        };
        let chunks = |threads: u32| threads.div_ceil(EXPAND_CHUNK);
        match expander.expansion() {
            Expansion::FixedMax => {
                let (max, _) = twin::measure(counts);
                equal("width", &[state.width], &[max])?;
                equal(
                    "chunks",
                    &[state.chunks],
                    &[chunks(max * counts.len() as u32)],
                )
            }
            Expansion::ItemList | Expansion::WorkgroupItems => {
                scanned()?;
                let weights: Vec<_> = counts.iter().map(|items| weight(*items)).collect();
                let list = twin::item_list(&weights, &prefixes, &partials, u32::MAX);
                equal("needed", &[state.needed], &[total])?;
                equal(
                    "entries",
                    &read(params.entries_at, 2 * list.len()),
                    list.as_flattened(),
                )
            }
            Expansion::PrefixSearch => {
                scanned()?;
                equal("chunks", &[state.chunks], &[chunks(items)])
            }
            Expansion::WorkgroupSearch => {
                scanned()?;
                equal("chunks", &[state.chunks], &[items.div_ceil(EXPAND_SPAN)])
            }
            Expansion::PackedAtomic => {
                let sources = read(params.entries_at, counts.len());
                let mut tiles = Vec::new();
                let mut at = 0;
                while at < counts.len() {
                    let tile = sources[at] / EXPAND_TILE;
                    let left = counts.len().saturating_sub((tile * EXPAND_TILE) as usize);
                    tiles.push(tile);
                    at += left.clamp(1, EXPAND_TILE as usize);
                }
                let mut sorted = tiles.clone();
                sorted.sort_unstable();
                equal(
                    "tiles",
                    &sorted,
                    &(0..partials.len() as u32).collect::<Vec<_>>(),
                )?;
                let packed = twin::pack(counts, &tiles);
                equal("sources", &sources, &packed.sources)?;
                equal(
                    "prefixes",
                    &read(params.prefix_at, counts.len()),
                    &packed.prefixes,
                )
            }
            Expansion::Po2Buckets => {
                let entries = twin::po2_buckets(counts);
                let words: Vec<_> = entries
                    .entries
                    .iter()
                    .flat_map(|e| [e.word, e.mask])
                    .collect();
                equal("entries", &read(params.entries_at, words.len()), &words)?;
                let plan = twin::plan_buckets(
                    &entries.firsts,
                    items,
                    params.entry_capacity,
                    twin::lanes_po2_buckets,
                );
                compare_buckets(&state, &plan)
            }
            Expansion::OneBucket => {
                let entries = twin::one_bucket(counts);
                equal(
                    "entries",
                    &read(params.entries_at, entries.entries.len()),
                    &entries.entries,
                )?;
                let plan = twin::plan_buckets(
                    &entries.firsts,
                    items,
                    params.entry_capacity,
                    twin::lanes_one_bucket,
                );
                compare_buckets(&state, &plan)
            }
            other => Err(format!("{other} has no comparison")),
        }
    }
}

fn compare_buckets(
    state: &ExpandState,
    (buckets, chunks): &([ExpandBucket; EXPAND_BUCKETS as usize], u32),
) -> Result<(), String> {
    equal("buckets", &state.buckets, buckets)?;
    equal("chunks", &[state.chunks], &[*chunks])
}
