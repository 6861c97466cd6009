//! The GPU side of a batch's far-first sort.

use super::kernels::{Kernel, Kernels, ROUNDS, Resource, SortPass};
use crate::cull::{
    CullError, Gpu, Version,
    gpu::{
        binding::{strided, uniform_at},
        buffer::{Growable, Table},
        guard::guarded,
    },
    layout::{DIGITS, FAR_FIRST_TILE, FarFirstJob, FarFirstRound, FarFirstSpan},
    policy::PERSISTENT_WORKGROUPS,
    store::PageBuffers,
};
use wgpu::{BindGroup, BindingResource, Buffer, BufferUsages, Device};

/// Size of the head of the spans, in bytes: the number of tiles, and padding.
const SPANS_HEAD: u64 = 16;

/// Buffers of other owners that the kernels bind.
pub(super) struct Inputs<'a> {
    pub args: &'a Buffer,
    pub survivors: &'a Buffer,
    /// Number of ids that the arena holds.
    pub survivor_capacity: u32,
    pub page: PageBuffers<'a>,
    /// Versions of the batch's buffers and of the pages.
    pub versions: (Version, Version),
}

/// The maximum numbers of a frame, which set the sizes of buffers and dispatches.
#[derive(Clone, Copy, Default)]
struct Limits {
    jobs: u64,
    /// Rows with several tiles. They come first.
    large: u64,
    keys: u64,
    tiles: u64,
}

impl Limits {
    fn of(jobs: &[FarFirstJob], survivor_capacity: u32) -> Self {
        let survivors = |job: &FarFirstJob| u64::from(job.max_survivors);
        let tiles = |job: &FarFirstJob| u64::from(job.max_survivors.div_ceil(FAR_FIRST_TILE));
        let all: u64 = jobs.iter().map(survivors).sum();
        let keys = all.min(u64::from(survivor_capacity));
        // All tiles of a row except its last one are full.
        let full = keys / u64::from(FAR_FIRST_TILE) + jobs.len() as u64;
        Self {
            jobs: jobs.len() as u64,
            large: jobs.iter().take_while(|job| tiles(job) > 1).count() as u64,
            keys,
            tiles: jobs.iter().map(tiles).sum::<u64>().min(full),
        }
    }
}

/// The buffers and bind groups of a batch, kept from frame to frame.
pub(super) struct SortBatch {
    rounds: Table,
    jobs: Table,
    spans: Growable,
    /// Keys and ids, and what a round makes of them.
    keys: [Growable; 2],
    ids: [Growable; 2],
    counts: Growable,
    totals: Growable,
    max: Limits,
    bind_groups: Vec<BindGroup>,
    /// Versions that the bind groups were made for.
    bound: Option<(Version, Version)>,
    /// Frame in which the batch was last used.
    pub last_used: u64,
}

impl SortBatch {
    pub fn new(device: &Device) -> Result<Self, CullError> {
        guarded(device, "buffers of the far-first sort", || {
            let new = |label| Growable::new(device, label, BufferUsages::STORAGE);
            let rounds = "gpu_culling far-first rounds";
            let jobs = "gpu_culling far-first jobs";
            Self {
                rounds: Table::new(device, rounds, BufferUsages::UNIFORM),
                jobs: Table::new(device, jobs, BufferUsages::STORAGE),
                spans: new("gpu_culling far-first spans"),
                keys: [(); 2].map(|()| new("gpu_culling far-first keys")),
                ids: [(); 2].map(|()| new("gpu_culling far-first ids")),
                counts: new("gpu_culling far-first counts"),
                totals: new("gpu_culling far-first totals"),
                max: Limits::default(),
                bind_groups: Vec::new(),
                bound: None,
                last_used: 0,
            }
        })
    }

    /// Label and size in bytes of each buffer.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let tables = [&self.rounds.gpu, &self.jobs.gpu, &self.spans];
        let arrays = self.keys.iter().chain(&self.ids);
        let all = tables.into_iter().chain(arrays);
        all.chain([&self.counts, &self.totals])
            .map(|array| (array.label, array.buffer.size()))
    }

    /// The bind group of each pass.
    pub fn bind_groups(&self) -> &[BindGroup] {
        &self.bind_groups
    }

    /// Workgroups of a kernel in x and y. Only the GPU knows how many tiles there are: workgroups
    /// stride over them, or find none.
    pub fn workgroups(&self, kernel: Kernel) -> (u32, u32) {
        let stride = u64::from(PERSISTENT_WORKGROUPS);
        match kernel {
            Kernel::Spans => (1, 1),
            Kernel::Scan => (DIGITS, self.max.large.min(u64::from(DIGITS)) as u32),
            _ => (self.max.tiles.min(stride) as u32, 1),
        }
    }

    /// Uploads the tables that changed, and makes room. Returns the number of bytes uploaded.
    ///
    /// # Errors
    /// [`CullError::Gpu`]. The batch must then be dropped.
    pub fn prepare(
        &mut self,
        gpu: Gpu<'_>,
        kernels: &Kernels,
        jobs: &[FarFirstJob],
        inputs: &Inputs<'_>,
    ) -> Result<u64, CullError> {
        let max = Limits::of(jobs, inputs.survivor_capacity);
        self.max = max;
        let written = [
            self.rounds.write(gpu, &round_bytes(max))?,
            self.jobs.write(gpu, jobs)?,
        ];
        let mut replaced = written.iter().any(|written| written.replaced);
        let [keys, back_keys] = &mut self.keys;
        let [ids, back_ids] = &mut self.ids;
        let span_bytes = SPANS_HEAD + max.jobs * size_of::<FarFirstSpan>() as u64;
        let digits = 4 * u64::from(DIGITS);
        for (array, bytes) in [
            (&mut self.spans, span_bytes),
            (keys, 4 * max.keys),
            (back_keys, 4 * max.keys),
            (ids, 4 * max.keys),
            (back_ids, 4 * max.keys),
            (&mut self.counts, digits * max.tiles),
            (&mut self.totals, digits * max.large),
        ] {
            replaced |= array.reserve(gpu.device, bytes)?;
        }
        if replaced || self.bound != Some(inputs.versions) {
            self.bound = Some(inputs.versions);
            self.bind_groups = guarded(gpu.device, "bind groups of the far-first sort", || {
                kernels.bind(gpu.device, |pass, resource| {
                    self.binding(pass, resource, inputs)
                })
            })?;
        }
        Ok(written.iter().map(|written| written.bytes).sum())
    }

    fn binding<'a>(
        &'a self,
        pass: &SortPass,
        resource: Resource,
        inputs: &Inputs<'a>,
    ) -> BindingResource<'a> {
        // The first round reads the keys that are made.
        let makes_keys = usize::from(pass.kernel == Kernel::Keys);
        let from = pass.round as usize % 2;
        let to = (from + 1 + makes_keys) % 2;
        let is_last = pass.round + 1 == ROUNDS;
        let buffer = match resource {
            Resource::Round => {
                let rounds = &self.rounds.gpu.buffer;
                return uniform_at::<FarFirstRound>(rounds, u64::from(pass.round));
            }
            Resource::Jobs => &self.jobs.gpu.buffer,
            Resource::Args => inputs.args,
            Resource::Spans => &self.spans.buffer,
            Resource::Survivors => inputs.survivors,
            Resource::Instances => inputs.page.instances,
            Resource::Scales => inputs.page.scales,
            Resource::KeysIn => &self.keys[from].buffer,
            Resource::IdsIn => &self.ids[from].buffer,
            Resource::KeysOut => &self.keys[to].buffer,
            Resource::IdsOut if is_last => inputs.survivors,
            Resource::IdsOut => &self.ids[to].buffer,
            Resource::Counts => &self.counts.buffer,
            Resource::Totals => &self.totals.buffer,
        };
        buffer.as_entire_binding()
    }
}

/// The table of the rounds.
fn round_bytes(max: Limits) -> Vec<u8> {
    strided((0..ROUNDS).map(|round| FarFirstRound {
        job_count: max.jobs as u32,
        large_count: max.large as u32,
        key_capacity: max.keys as u32,
        shift: 8 * round,
        is_last: u32::from(round + 1 == ROUNDS),
        ..FarFirstRound::default()
    }))
}
