//! The GPU's side of a batch: tables, words, prefixes, survivors and commands.

use crate::cull::{
    Compaction, CullError,
    compaction::{Arena, Resource},
    guard::{buffer_size, guarded},
    layout::{BLOCK, DrawArgs, args_offset},
    pages::{Page, first_generation},
    pipelines::Pipelines,
    plan::BatchPlan,
    reference,
};
use bytemuck::{NoUninit, Zeroable};
use wgpu::{BindGroup, Buffer, BufferDescriptor, BufferUsages, Device, Queue};

/// A buffer that is replaced by a larger one when needed.
pub(crate) struct Growable {
    pub buffer: Buffer,
    label: &'static str,
    usage: BufferUsages,
}

impl Growable {
    /// Small, and unguarded: whoever makes many makes them [`guarded`].
    pub fn new(device: &Device, label: &'static str, usage: BufferUsages) -> Self {
        // Never of size zero: an empty binding is an error.
        Self {
            buffer: create(device, label, usage, 256),
            label,
            usage,
        }
    }

    /// Room for `bytes`; true if the buffer was replaced (its contents are then gone). On an error the old one stays.
    pub fn reserve(&mut self, device: &Device, bytes: u64) -> Result<bool, CullError> {
        if bytes <= self.buffer.size() {
            return Ok(false);
        }
        let size = buffer_size(bytes, &device.limits());
        self.buffer = guarded(device, self.label, || {
            create(device, self.label, self.usage, size)
        })?;
        Ok(true)
    }

    /// Gives the room back.
    fn shrink(&mut self, device: &Device) {
        let small = guarded(device, self.label, || {
            Self::new(device, self.label, self.usage)
        });
        if let Ok(small) = small {
            *self = small;
        }
    }
}

fn create(device: &Device, label: &str, usage: BufferUsages, size: u64) -> Buffer {
    device.create_buffer(&BufferDescriptor {
        label: Some(label),
        size,
        usage,
        mapped_at_creation: false,
    })
}

/// A table that is uploaded when it differs from what the GPU has.
pub(crate) struct Table {
    pub gpu: Growable,
    bytes: Vec<u8>,
}

impl Table {
    pub fn new(device: &Device, label: &'static str, usage: BufferUsages) -> Self {
        Self {
            gpu: Growable::new(device, label, usage | BufferUsages::COPY_DST),
            bytes: Vec::new(),
        }
    }

    /// Bytes uploaded, and whether the buffer was replaced. On an error nothing is uploaded.
    pub fn write<T: NoUninit>(
        &mut self,
        device: &Device,
        queue: &Queue,
        table: &[T],
    ) -> Result<(u64, bool), CullError> {
        let bytes: &[u8] = bytemuck::cast_slice(table);
        let replaced = self.gpu.reserve(device, bytes.len() as u64)?;
        if !replaced && self.bytes == bytes {
            return Ok((0, false));
        }
        queue.write_buffer(&self.gpu.buffer, 0, bytes);
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        Ok((bytes.len() as u64, replaced))
    }
}

/// The buffers of a page that passes read.
pub(crate) struct PageBuffers<'a> {
    pub instances: &'a Buffer,
    /// Something else where no set of the page has scales.
    pub scales: &'a Buffer,
    /// Something else where the compaction has no use for them.
    pub bounds: &'a Buffer,
    /// Changes when one of them is replaced.
    pub generation: u64,
}

/// Ids that an arena must hold so that nothing can be lost.
pub(crate) fn most_ids(plan: &BatchPlan, compaction: Compaction) -> u64 {
    match compaction.strategy().arena {
        Arena::Dense => plan.most_survivors,
        Arena::Regions => u64::from(plan.batch.count_len) * u64::from(BLOCK),
    }
}

/// What the GPU holds for a batch; kept from frame to frame.
pub(crate) struct GpuBatch {
    uniform: Table,
    chunks: Table,
    rows: Table,
    row_draws: Table,
    /// In the order of [`Resource::SCRATCH`].
    scratch: [Growable; Resource::SCRATCH.len()],
    survivors: Growable,
    args: Growable,
    /// Ids that the arena holds.
    pub survivor_capacity: u32,
    /// Ids that the arena must hold so that nothing can be lost.
    pub most: u64,
    /// The device has no room for a larger arena.
    pub is_at_limit: bool,
    /// Changes when `survivors` or `args` is replaced: draws must bind anew.
    pub generation: u64,
    /// Those of each pass; empty when they must be made anew.
    bind_groups: Vec<Vec<BindGroup>>,
    /// Generation of the pages that the bind groups were made for.
    bound_pages: u64,
    /// Compaction that they were made for.
    bound_compaction: Compaction,
    /// Plan, capacity and compaction that the tables, but for the rows, and the sizes of scratch and commands are of.
    tables_of: Option<(u64, u32, Compaction)>,
    /// The `Cpu` tier's commands, drawn directly.
    pub cpu_args: Vec<DrawArgs>,
    /// Frame in which the batch was last used.
    pub last_used: u64,
}

impl GpuBatch {
    pub fn new(device: &Device) -> Result<Self, CullError> {
        guarded(device, "buffers of the culling", || Self::unguarded(device))
    }

    fn unguarded(device: &Device) -> Self {
        let storage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
        let written = storage | BufferUsages::COPY_DST;
        Self {
            uniform: Table::new(device, "gpu_culling batch", BufferUsages::UNIFORM),
            chunks: Table::new(device, "gpu_culling chunks", BufferUsages::STORAGE),
            rows: Table::new(device, "gpu_culling rows", BufferUsages::STORAGE),
            row_draws: Table::new(device, "gpu_culling row draws", BufferUsages::STORAGE),
            scratch: [
                Growable::new(device, "gpu_culling words", storage),
                Growable::new(device, "gpu_culling counts", storage),
                Growable::new(device, "gpu_culling partials", storage),
                Growable::new(device, "gpu_culling lists", storage),
                Growable::new(device, "gpu_culling look back", storage),
                Growable::new(device, "gpu_culling row counts", storage),
                Growable::new(device, "gpu_culling votes", storage),
                Growable::new(device, "gpu_culling sums", storage),
            ],
            survivors: Growable::new(device, "gpu_culling survivors", written),
            args: Growable::new(device, "gpu_culling args", written | BufferUsages::INDIRECT),
            survivor_capacity: 0,
            most: 0,
            is_at_limit: false,
            generation: first_generation(),
            bind_groups: Vec::new(),
            bound_pages: 0,
            bound_compaction: Compaction::Auto,
            tables_of: None,
            cpu_args: Vec::new(),
            last_used: 0,
        }
    }

    pub fn survivors(&self) -> &Buffer {
        &self.survivors.buffer
    }

    pub fn args(&self) -> &Buffer {
        &self.args.buffer
    }

    /// A buffer of [`Resource::SCRATCH`]; of the least size if the compaction has no use for it.
    pub fn scratch(&self, slot: Resource) -> Option<&Buffer> {
        let at = Resource::SCRATCH.iter().position(|other| *other == slot)?;
        Some(&self.scratch[at].buffer)
    }

    /// Bind groups of each pass of the compaction.
    pub fn bind_groups(&self) -> &[Vec<BindGroup>] {
        &self.bind_groups
    }

    /// Label and bytes of each buffer.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let tables =
            [&self.uniform, &self.chunks, &self.rows, &self.row_draws].map(|table| &table.gpu);
        let arrays = self.scratch.iter().chain([&self.survivors, &self.args]);
        let all = tables.into_iter().chain(arrays);
        all.map(|array| (array.label, array.buffer.size()))
    }

    /// The arena holds `capacity` ids from now on; on an error as many as before.
    pub fn reserve_survivors(&mut self, device: &Device, capacity: u32) -> Result<(), CullError> {
        if self.survivors.reserve(device, u64::from(capacity) * 4)? {
            self.generation += 1;
            self.bind_groups.clear();
        }
        self.survivor_capacity = capacity;
        Ok(())
    }

    /// Uploads what changed of the tables and makes room for what the passes write; of the plan with the same number, for
    /// the same compaction, only the rows can have changed. Returns the bytes uploaded. After an error the batch is of no use.
    pub fn prepare(
        &mut self,
        (device, queue): (&Device, &Queue),
        pipelines: &Pipelines,
        (plan, number): (&BatchPlan, u64),
        page: &PageBuffers<'_>,
    ) -> Result<u64, CullError> {
        let (mut bytes, mut replaced) = self.rows.write(device, queue, &plan.rows)?;
        let tables_of = Some((number, self.survivor_capacity, pipelines.compaction));
        if self.tables_of != tables_of {
            self.tables_of = tables_of;
            let batch = [layout_batch(plan, self.survivor_capacity)];
            let written = [
                self.uniform.write(device, queue, &batch)?,
                self.chunks.write(device, queue, &plan.chunks)?,
                self.row_draws.write(device, queue, &plan.row_draws)?,
            ];
            bytes += written.iter().map(|(bytes, _)| bytes).sum::<u64>();
            replaced |= written.iter().any(|(_, replaced)| *replaced);
            for slot in pipelines.scratch() {
                if let Some(at) = Resource::SCRATCH.iter().position(|other| *other == slot) {
                    replaced |= self.scratch[at].reserve(device, slot.scratch_bytes(plan))?;
                }
            }
            if self
                .args
                .reserve(device, args_offset(plan.batch.row_count))?
            {
                self.generation += 1;
                replaced = true;
            }
        }
        if self.bound_compaction != pipelines.compaction {
            // What both have stays: `Auto` may go back and forth.
            let unused = |slot: &Resource| !pipelines.scratch().any(|used| used == *slot);
            for (scratch, slot) in self.scratch.iter_mut().zip(Resource::SCRATCH) {
                if unused(&slot) {
                    scratch.shrink(device);
                }
            }
            self.bound_compaction = pipelines.compaction;
            replaced = true;
        }
        if replaced || self.bound_pages != page.generation || self.bind_groups.is_empty() {
            self.bound_pages = page.generation;
            self.bind_groups = guarded(device, "bind groups of the culling", || {
                pipelines.bind((device, queue), |slot| self.buffer(slot, page))
            })?;
        }
        Ok(bytes)
    }

    fn buffer<'a>(&'a self, slot: Resource, page: &PageBuffers<'a>) -> &'a Buffer {
        match slot {
            Resource::Batch | Resource::Step => &self.uniform.gpu.buffer,
            Resource::Chunks => &self.chunks.gpu.buffer,
            Resource::Rows => &self.rows.gpu.buffer,
            Resource::RowDraws => &self.row_draws.gpu.buffer,
            Resource::Instances => page.instances,
            Resource::Scales => page.scales,
            Resource::Bounds => page.bounds,
            Resource::Survivors => self.survivors(),
            Resource::Args => self.args(),
            scratch => self.scratch(scratch).unwrap_or(page.scales),
        }
    }

    /// The frame of the `Cpu` tier: the twins of the stages, then survivors and commands are uploaded.
    /// Returns the bytes uploaded and the totals. After an error the batch is of no use.
    pub fn cull_on_cpu(
        &mut self,
        device: &Device,
        queue: &Queue,
        plan: &BatchPlan,
        page: &Page,
    ) -> Result<(u64, crate::cull::layout::Totals), CullError> {
        let batch = &layout_batch(plan, self.survivor_capacity);
        let mut words = vec![0; plan.word_len() as usize];
        let mut counts = vec![0; batch.count_len as usize];
        let mut totals = crate::cull::layout::Totals::zeroed();
        self.cpu_args.clear();
        self.cpu_args
            .resize(batch.row_count as usize, DrawArgs::zeroed());
        if let Some(cpu) = &page.cpu {
            reference::vote(
                batch,
                &plan.chunks,
                &plan.rows,
                &cpu.instances,
                &cpu.scales,
                &mut words,
            );
        }
        reference::count(batch, &words, &mut counts);
        let places = reference::scan(batch, &counts);
        let all = places[batch.count_len as usize];
        let mut survivors = vec![0u32; all.min(batch.survivor_capacity) as usize];
        reference::compact(batch, &plan.chunks, &words, &places, &mut survivors);
        reference::write_args(
            batch,
            &plan.row_draws,
            &places,
            (&mut totals, &mut self.cpu_args),
        );

        if self.args.reserve(device, args_offset(batch.row_count))? {
            self.generation += 1;
        }
        queue.write_buffer(self.survivors(), 0, bytemuck::cast_slice(&survivors));
        queue.write_buffer(self.args(), 0, bytemuck::bytes_of(&totals));
        queue.write_buffer(
            self.args(),
            args_offset(0),
            bytemuck::cast_slice(&self.cpu_args),
        );
        Ok((
            (survivors.len() * 4) as u64 + args_offset(batch.row_count),
            totals,
        ))
    }
}

fn layout_batch(plan: &BatchPlan, survivor_capacity: u32) -> crate::cull::layout::Batch {
    crate::cull::layout::Batch {
        survivor_capacity,
        ..plan.batch
    }
}
