//! The GPU side of a batch: tables, words, prefixes, survivors and commands.

use super::{
    arena::SurvivorArena,
    frame_number::{Changed, FrameNumber},
    inputs::{BatchInputs, SharedInputs},
    rows::FilledRows,
    tables::{FrameTables, TablePlace},
};
use crate::cull::{
    Compaction, CullError,
    compaction::Resource,
    gpu::{
        Gpu,
        buffer::{Growable, Table, TableWrite},
        guard::guarded,
        version::Version,
    },
    layout::{Batch, DrawCommand, FarFirstJob, Totals, args_offset},
    pipelines::Pipelines,
    plan::BatchPlan,
    reference,
    store::Page,
};
use bytemuck::Zeroable;
use wgpu::{BindGroup, Buffer, BufferUsages, ComputePass, Device};

/// The buffers and bind groups of a batch, kept from frame to frame.
pub(crate) struct GpuBatch {
    uniform: Table,
    chunks: Table,
    /// The rows, if the plan shares their planes.
    rows: Option<FilledRows>,
    /// In the order of [`Resource::SCRATCH`].
    scratch: [Growable; Resource::SCRATCH.len()],
    arena: SurvivorArena,
    args: Growable,
    /// Bumped when the arena or `args` is replaced: draws must bind them again.
    pub version: Version,
    /// The bind groups of each pass; empty if they are stale.
    bind_groups: Vec<Vec<BindGroup>>,
    /// What the bind groups were made for.
    bound_inputs: Option<BoundInputs>,
    /// The compaction that the bind groups were made for.
    bound_compaction: Compaction,
    /// What the tables and buffers were made for; the rows are compared separately.
    made_for: Option<TableInputs>,
    /// The sibling commands in the buffer of commands, and the number of rows before them.
    siblings: Vec<DrawCommand>,
    rows_before_siblings: u32,
    /// The commands of the `Cpu` tier, which are drawn directly.
    pub cpu_args: Vec<DrawCommand>,
    /// The frame in which the batch was last used.
    pub last_used: u64,
}

/// Places and versions of what a batch reads.
#[derive(Clone, Copy, PartialEq)]
struct BoundInputs {
    tables: Version,
    /// `None` if the GPU fills the rows.
    chunk_views: Option<TablePlace>,
    occlusion: TablePlace,
    pages: Version,
    history: Version,
    pyramid: Option<Version>,
}

/// The inputs of a batch's tables (except its rows) and of the sizes of its buffers.
#[derive(Clone, Copy, PartialEq)]
struct TableInputs {
    /// The frame in which the plan or the compaction last changed, or a set moved.
    mended_in: u64,
    survivor_capacity: u32,
    compaction: Compaction,
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
            rows: None,
            scratch: [
                Growable::new(device, "gpu_culling words", storage),
                Growable::new(device, "gpu_culling counts", storage),
                Growable::new(device, "gpu_culling ranks", storage),
                Growable::new(device, "gpu_culling rings", storage),
                Growable::new(device, "gpu_culling lists", storage),
                Growable::new(device, "gpu_culling look back", storage),
                #[cfg(feature = "study")]
                Growable::new(device, "gpu_culling row counts", storage),
                #[cfg(feature = "study")]
                Growable::new(device, "gpu_culling votes", storage),
                #[cfg(feature = "study")]
                Growable::new(device, "gpu_culling sums", storage),
            ],
            arena: SurvivorArena::new(device),
            args: Growable::new(device, "gpu_culling args", written | BufferUsages::INDIRECT),
            version: Version::new(),
            bind_groups: Vec::new(),
            bound_inputs: None,
            bound_compaction: Compaction::Auto,
            made_for: None,
            siblings: Vec::new(),
            rows_before_siblings: 0,
            cpu_args: Vec::new(),
            last_used: 0,
        }
    }

    pub fn survivors(&self) -> &Buffer {
        self.arena.buffer()
    }

    pub fn args(&self) -> &Buffer {
        &self.args.buffer
    }

    /// A buffer of [`Resource::SCRATCH`]; the smallest one if the compaction does not bind it.
    pub fn scratch(&self, slot: Resource) -> Option<&Buffer> {
        let at = Resource::SCRATCH.iter().position(|other| *other == slot)?;
        Some(&self.scratch[at].buffer)
    }

    /// The rows that the GPU fills; `None` if they have their own planes.
    #[cfg(feature = "testing")]
    pub fn filled_rows(&self) -> Option<&Buffer> {
        self.rows.as_ref().map(FilledRows::buffer)
    }

    /// Fills the rows, if the plan shares their planes. Returns the number of dispatches.
    pub fn fill_rows(&self, pass: &mut ComputePass<'_>, max_width: u32) -> u32 {
        let rows = self.rows.as_ref();
        rows.map_or(0, |rows| rows.record(pass, max_width))
    }

    /// The bind groups of each pass of the compaction.
    pub fn bind_groups(&self) -> &[Vec<BindGroup>] {
        &self.bind_groups
    }

    /// Label and size in bytes of each buffer.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let tables = [&self.uniform, &self.chunks].map(|table| &table.gpu);
        let arrays = self.scratch.iter().chain([self.arena.array(), &self.args]);
        let all = tables.into_iter().chain(arrays);
        let all = all.map(|array| (array.label, array.buffer.size()));
        all.chain(self.rows.iter().flat_map(FilledRows::sizes))
    }

    /// Number of ids that the arena holds.
    pub fn survivor_capacity(&self) -> u32 {
        self.arena.capacity
    }

    /// Whether the arena may soon be too small, after a frame that needed this many ids.
    pub fn may_overflow(&self, needed: u32) -> bool {
        self.arena.may_overflow(needed)
    }

    /// Changes the size of the arena. `change` returns whether it was replaced.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn resize_arena(
        &mut self,
        change: impl FnOnce(&mut SurvivorArena) -> Result<bool, CullError>,
    ) -> Result<(), CullError> {
        if change(&mut self.arena)? {
            self.version.bump();
            self.bind_groups.clear();
        }
        Ok(())
    }

    /// Adds the rows to the frame's tables, uploads the other tables if they changed, and makes
    /// room for what the passes write. In frames with the same [`FrameNumber::mended_in`], only the
    /// rows can have changed. Returns the number of bytes uploaded.
    ///
    /// # Errors
    /// [`CullError::Gpu`]. The batch must then be dropped.
    pub fn prepare(
        &mut self,
        gpu: Gpu<'_>,
        pipelines: &Pipelines,
        plan: &BatchPlan,
        frame: FrameNumber,
        tables: &mut FrameTables,
        inputs: &BatchInputs<'_>,
    ) -> Result<u64, CullError> {
        let mut bytes = 0;
        let mut replaced = false;
        let made_for = self.made_for.map(|made| made.mended_in);
        let changed = Changed::since(made_for, frame, &plan.mends);
        let chunks = match changed {
            Changed::Nothing => TableWrite::default(),
            Changed::Some(mends) => (self.chunks).write_some(gpu, &plan.chunks, &mends.chunks)?,
            Changed::All => self.chunks.write(gpu, &plan.chunks)?,
        };
        bytes += chunks.bytes;
        replaced |= chunks.replaced;
        let chunk_views = match inputs.shared.filter(|_| !plan.sources.is_empty()) {
            Some(SharedInputs { filler, views }) => {
                let rows = match &mut self.rows {
                    Some(rows) => rows,
                    rows => rows.insert(guarded(gpu.device, "buffers of rows", || {
                        FilledRows::new(gpu.device, filler.clone())
                    })?),
                };
                let chunks = (&self.chunks.gpu.buffer, chunks);
                let (written, is_replaced) =
                    rows.prepare(gpu, (plan, changed, frame.now), chunks, (tables, views))?;
                bytes += written;
                replaced |= is_replaced;
                None
            }
            None => {
                self.rows = None;
                Some(tables.push(&plan.chunk_views)?)
            }
        };
        let bound = BoundInputs {
            tables: tables.version(),
            chunk_views,
            occlusion: tables.push_both(&plan.occlusion, plan.projections(inputs.projections))?,
            pages: inputs.pages_version,
            history: inputs.history_version,
            pyramid: inputs.pyramid.map(|pyramid| pyramid.version),
        };
        let made_for = Some(TableInputs {
            mended_in: frame.mended_in,
            survivor_capacity: self.arena.capacity,
            compaction: pipelines.compaction,
        });
        if self.made_for != made_for {
            self.made_for = made_for;
            let batch = [sizes_of(plan, self.arena.capacity)];
            let written = self.uniform.write(gpu, &batch)?;
            bytes += written.bytes;
            replaced |= written.replaced;
            for slot in pipelines.scratch() {
                if let Some(at) = Resource::SCRATCH.iter().position(|other| *other == slot) {
                    replaced |= self.scratch[at].reserve(gpu.device, slot.scratch_bytes(plan))?;
                }
            }
            let commands = args_offset(plan.command_count());
            if self.args.reserve(gpu.device, commands)? {
                self.version.bump();
                replaced = true;
                self.siblings.clear();
            }
            let rows = plan.batch.row_count;
            if self.rows_before_siblings != rows || self.siblings != plan.siblings {
                // The passes write only the survivors of these commands.
                let siblings: &[u8] = bytemuck::cast_slice(&plan.siblings);
                if !siblings.is_empty() {
                    gpu.queue
                        .write_buffer(self.args(), args_offset(rows), siblings);
                }
                bytes += siblings.len() as u64;
                (self.rows_before_siblings, self.siblings) = (rows, plan.siblings.clone());
            }
        }
        if self.bound_compaction != pipelines.compaction {
            // Buffers that both compactions bind stay: `Auto` may go back and forth.
            let unused = |slot: &Resource| !pipelines.scratch().any(|used| used == *slot);
            for (scratch, slot) in self.scratch.iter_mut().zip(Resource::SCRATCH) {
                if unused(&slot) {
                    scratch.shrink(gpu.device);
                }
            }
            self.bound_compaction = pipelines.compaction;
            replaced = true;
        }
        if replaced || self.bound_inputs != Some(bound) || self.bind_groups.is_empty() {
            self.bound_inputs = Some(bound);
            self.bind_groups = guarded(gpu.device, "bind groups of the culling", || {
                pipelines.bind(gpu, |slot| match slot {
                    Resource::ChunkViews => match (bound.chunk_views, &self.rows) {
                        (Some(place), _) => tables.binding(place),
                        (None, Some(rows)) => rows.buffer().as_entire_buffer_binding(),
                        (None, None) => self.args().as_entire_buffer_binding(),
                    },
                    Resource::Occlusion => tables.binding(bound.occlusion),
                    slot => self.buffer(slot, inputs).as_entire_buffer_binding(),
                })
            })?;
        }
        Ok(bytes)
    }

    /// What a pass binds, except the frame's tables.
    fn buffer<'a>(&'a self, slot: Resource, inputs: &BatchInputs<'a>) -> &'a Buffer {
        let page = &inputs.page;
        match slot {
            // If no row may be hidden, the passes that bind these do not run.
            Resource::History => inputs.history.unwrap_or(self.args()),
            Resource::Pyramid => inputs.pyramid.map_or(self.args(), |pyramid| pyramid.depths),
            Resource::PyramidShape => inputs
                .pyramid
                .map_or(&self.uniform.gpu.buffer, |pyramid| pyramid.shape),
            Resource::Batch => &self.uniform.gpu.buffer,
            Resource::Chunks => &self.chunks.gpu.buffer,
            Resource::Instances => page.instances,
            Resource::Scales => page.scales,
            Resource::Bounds => page.bounds,
            Resource::Survivors => self.survivors(),
            Resource::Args => self.args(),
            scratch => self.scratch(scratch).unwrap_or(page.scales),
        }
    }

    /// The frame of the `Cpu` tier: runs the twins of the stages, then uploads survivors and
    /// commands. Returns the totals and the number of bytes uploaded.
    ///
    /// # Errors
    /// [`CullError::Gpu`]. The batch must then be dropped.
    pub fn cull_on_cpu(
        &mut self,
        gpu: Gpu<'_>,
        plan: &BatchPlan,
        page: &Page,
    ) -> Result<(Totals, u64), CullError> {
        let batch = &sizes_of(plan, self.arena.capacity);
        let mut words = vec![0; plan.word_len() as usize];
        let mut totals = Totals::zeroed();
        self.cpu_args.clear();
        self.cpu_args
            .resize(batch.row_count as usize, DrawCommand::zeroed());
        self.cpu_args.extend_from_slice(&plan.siblings);
        self.siblings.clear();
        let mut first_words = Vec::new();
        if let Some(cpu) = &page.cpu {
            reference::vote(
                batch,
                &plan.chunks,
                &plan.chunk_views,
                &cpu.instances,
                &cpu.scales,
                &mut words,
            );
            first_words = reference::order(batch, &plan.chunks, &plan.chunk_views, |instances| {
                let scales = cpu.scales_of(instances.clone());
                reference::bound(&cpu.instances[instances], scales)
            });
        }
        let places = reference::scan(batch, &words, &first_words);
        let all = places[batch.rank_count() as usize];
        let mut survivors = vec![0u32; all.min(batch.survivor_capacity) as usize];
        let tables = (&*plan.chunks, &*first_words);
        reference::compact(batch, tables, &words, &places, &mut survivors);
        reference::write_args(
            batch,
            &plan.chunk_views,
            &places,
            (&mut totals, &mut self.cpu_args),
        );
        if let Some(cpu) = &page.cpu {
            reference::far_first(
                &FarFirstJob::of_batch(&plan.chunks, &plan.chunk_views),
                &self.cpu_args,
                &mut survivors,
                &cpu.instances,
                &cpu.scales,
            );
        }

        let commands = args_offset(plan.command_count());
        if self.args.reserve(gpu.device, commands)? {
            self.version.bump();
        }
        let (ids, args) = (self.survivors(), self.args());
        gpu.queue
            .write_buffer(ids, 0, bytemuck::cast_slice(&survivors));
        gpu.queue.write_buffer(args, 0, bytemuck::bytes_of(&totals));
        gpu.queue
            .write_buffer(args, args_offset(0), bytemuck::cast_slice(&self.cpu_args));
        Ok((totals, (survivors.len() * 4) as u64 + commands))
    }
}

/// The sizes of a batch, with the capacity of its arena.
fn sizes_of(plan: &BatchPlan, survivor_capacity: u32) -> Batch {
    Batch {
        survivor_capacity,
        ..plan.batch
    }
}
