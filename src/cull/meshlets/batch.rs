//! The GPU side of a batch's meshlet stages.

use super::{
    items::{ItemBatch, ItemKernels, Needs},
    kernels::{Form, Resource},
    layout::{
        CELL_TILE, CELL_WORDS, MESHLET_TILE, MeshletRow, MeshletSizes, MeshletSpan, MeshletTotals,
        result_offset,
    },
    pipelines::Pipelines,
    readback::RowMeaning,
};
use crate::cull::{
    BatchVersion, CullError, Gpu, Version,
    gpu::{
        buffer::{Growable, Table},
        guard::guarded,
    },
    layout::DrawCommand,
    run::inputs::PyramidBuffers,
};
use wgpu::{BindGroup, Buffer, BufferUsages, Device};

/// Buffers of other owners that the kernels read.
pub(super) struct Inputs<'a> {
    pub batch_args: &'a Buffer,
    pub survivors: &'a Buffer,
    pub instances: &'a Buffer,
    pub scales: &'a Buffer,
    pub meshlets: &'a Buffer,
    /// The depth that a late list is compared with.
    pub pyramid: Option<PyramidBuffers<'a>>,
    /// Versions of the culler's buffers and of the table of meshlets.
    pub version: (BatchVersion, Version),
}

/// What bind groups are made for.
#[derive(Clone, Copy, PartialEq)]
struct BoundInputs {
    form: Form,
    inputs: (BatchVersion, Version),
    pyramid: Option<Version>,
}

/// Capacities of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BatchCapacities {
    pub cells: u32,
    pub survivors: u32,
}

/// The buffers and bind groups of a batch, kept from frame to frame.
pub(super) struct MeshletBatch {
    sizes: Table,
    rows: Table,
    spans: Growable,
    words: Growable,
    counts: Growable,
    partials: Growable,
    survivors: Growable,
    draws: Growable,
    results: Growable,
    source_count: Growable,
    pub capacities: BatchCapacities,
    /// Bumped when `survivors` is replaced: draws must bind it again.
    pub version: Version,
    bind_groups: Vec<Option<BindGroup>>,
    /// `None` if its survivors are expanded by a division.
    pub items: Option<ItemBatch>,
    /// What the expansion was refused for: it is tried again when that changes.
    refused: Option<Needs>,
    /// What the bind groups were made for.
    bound: Option<BoundInputs>,
    /// The tables of the current frame.
    pub row_table: Vec<MeshletRow>,
    /// What the results of the rows mean.
    pub meanings: Vec<RowMeaning>,
    /// Number of work items if every instance survived.
    pub max_items: u64,
    /// Frame in which the batch was last used.
    pub last_used: u64,
}

impl MeshletBatch {
    pub fn new(device: &Device) -> Result<Self, CullError> {
        guarded(device, "buffers of meshlets", || Self::unguarded(device))
    }

    fn unguarded(device: &Device) -> Self {
        let storage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
        let drawn = storage | BufferUsages::INDIRECT;
        let new = |label, usage| Growable::new(device, label, usage);
        Self {
            sizes: Table::new(device, "gpu_culling meshlet sizes", BufferUsages::UNIFORM),
            rows: Table::new(device, "gpu_culling meshlet rows", BufferUsages::STORAGE),
            spans: new("gpu_culling meshlet spans", storage),
            words: new("gpu_culling meshlet words", storage),
            counts: new("gpu_culling meshlet counts", storage),
            partials: new("gpu_culling meshlet partials", storage),
            survivors: new("gpu_culling meshlet survivors", storage),
            draws: new("gpu_culling meshlet draws", drawn),
            results: new("gpu_culling meshlet results", drawn),
            source_count: new("gpu_culling meshlet source count", storage),
            capacities: BatchCapacities::default(),
            version: Version::new(),
            bind_groups: Vec::new(),
            items: None,
            refused: None,
            bound: None,
            row_table: Vec::new(),
            meanings: Vec::new(),
            max_items: 0,
            last_used: 0,
        }
    }

    pub fn survivors(&self) -> &Buffer {
        &self.survivors.buffer
    }

    pub fn draws(&self) -> &Buffer {
        &self.draws.buffer
    }

    pub fn results(&self) -> &Buffer {
        &self.results.buffer
    }

    #[cfg(feature = "testing")]
    pub fn spans(&self) -> &Buffer {
        &self.spans.buffer
    }

    /// Words, counts and partials.
    #[cfg(feature = "testing")]
    pub fn scratch(&self) -> [&Buffer; 3] {
        [&self.words, &self.counts, &self.partials].map(|array| &array.buffer)
    }

    pub fn bind_groups(&self) -> &[Option<BindGroup>] {
        &self.bind_groups
    }

    pub fn sizes(&self) -> MeshletSizes {
        MeshletSizes {
            row_count: self.row_table.len() as u32,
            cell_capacity: self.capacities.cells,
            survivor_capacity: self.capacities.survivors,
            pad_a: 0,
        }
    }

    /// Number of commands of all rows: per row, one that draws whole meshes, and one per meshlet.
    pub fn draw_count(&self) -> u32 {
        let last = self.row_table.last();
        last.map_or(0, |row| row.first_draw + row.meshlet_count + 1)
    }

    /// Size of the buffers on the GPU, in bytes.
    pub fn bytes(&self) -> u64 {
        let arrays = [
            &self.sizes.gpu,
            &self.rows.gpu,
            &self.spans,
            &self.words,
            &self.counts,
            &self.partials,
            &self.survivors,
            &self.draws,
            &self.results,
            &self.source_count,
        ];
        let items = self.items.as_ref().map_or(0, ItemBatch::bytes);
        items + arrays.map(|array| array.buffer.size()).iter().sum::<u64>()
    }

    /// Makes room for an expansion with these kernels, or for the division without any.
    ///
    /// # Errors
    /// Why the survivors are expanded by the division instead; once, until it succeeds or another
    /// expansion is tried.
    pub fn prepare_items(
        &mut self,
        gpu: Gpu<'_>,
        kernels: Option<&ItemKernels>,
        inputs: &Inputs<'_>,
    ) -> Result<(), CullError> {
        let items = self.items.take();
        let Some(kernels) = kernels else {
            self.refused = None;
            return Ok(());
        };
        let places = inputs.survivors.size() / 4;
        let needs = Needs::of(
            kernels.expansion(),
            &self.row_table,
            self.capacities.cells,
            places,
        );
        if self.refused == Some(needs) {
            return Ok(());
        }
        let prepared = match items.filter(|items| items.is_of(kernels)) {
            Some(items) => Ok(items),
            None => ItemBatch::new(gpu.device, kernels),
        }
        .and_then(|mut items| {
            items.prepare(gpu, needs, &self.source_count.buffer)?;
            Ok(items)
        });
        match prepared {
            Ok(items) => {
                (self.items, self.refused) = (Some(items), None);
                Ok(())
            }
            Err(error) => {
                let before = self.refused.replace(needs);
                match before.is_some_and(|before| before.expansion == needs.expansion) {
                    true => Ok(()),
                    false => Err(error),
                }
            }
        }
    }

    /// Uploads the tables and makes room. The batch is tested as `form` says. Returns the number of
    /// bytes uploaded. After an error, the batch must be dropped.
    pub fn prepare(
        &mut self,
        gpu: Gpu<'_>,
        pipelines: &Pipelines,
        kernels: Option<&ItemKernels>,
        form: Form,
        inputs: &Inputs<'_>,
    ) -> Result<u64, CullError> {
        let rows = self.row_table.len() as u64;
        let cells = u64::from(self.capacities.cells);
        let written = [
            self.sizes.write(gpu, &[self.sizes()])?,
            self.rows.write(gpu, &self.row_table)?,
        ];
        let spans = size_of::<MeshletTotals>() as u64 + rows * size_of::<MeshletSpan>() as u64;
        let draws = u64::from(self.draw_count()) * size_of::<DrawCommand>() as u64;
        let mut replaced = written.iter().any(|written| written.replaced);
        for (array, bytes) in [
            (&mut self.spans, spans),
            (&mut self.words, cells * u64::from(CELL_WORDS) * 4),
            (&mut self.counts, (cells + 1) * 4),
            (&mut self.partials, (cells / u64::from(CELL_TILE) + 1) * 4),
            (&mut self.draws, draws),
            (&mut self.results, result_offset(rows as u32)),
        ] {
            replaced |= array.reserve(gpu.device, bytes)?;
        }
        if self
            .survivors
            .reserve(gpu.device, u64::from(self.capacities.survivors) * 4)?
        {
            self.version.bump();
            replaced = true;
        }
        let is_unbound = self.items.as_ref().is_some_and(ItemBatch::is_unbound);
        let bound = Some(BoundInputs {
            form,
            inputs: inputs.version,
            pyramid: inputs.pyramid.map(|pyramid| pyramid.version),
        });
        if replaced || is_unbound || self.bound != bound {
            self.bound = bound;
            // Only a batch of a late list binds the pyramid.
            let pyramid = inputs.pyramid.as_ref();
            let buffer = |resource| match resource {
                Resource::Sizes => &self.sizes.gpu.buffer,
                Resource::Rows => &self.rows.gpu.buffer,
                Resource::BatchArgs => inputs.batch_args,
                Resource::Instances => inputs.instances,
                Resource::Scales => inputs.scales,
                Resource::Survivors => inputs.survivors,
                Resource::Spans => &self.spans.buffer,
                Resource::Meshlets => inputs.meshlets,
                Resource::Words => &self.words.buffer,
                Resource::Counts => &self.counts.buffer,
                Resource::Partials => &self.partials.buffer,
                Resource::MeshletSurvivors => &self.survivors.buffer,
                Resource::Draws => &self.draws.buffer,
                Resource::Results => &self.results.buffer,
                Resource::SourceCount => &self.source_count.buffer,
                Resource::Pyramid => pyramid.map_or(inputs.scales, |pyramid| pyramid.depths),
                Resource::PyramidShape => pyramid.map_or(inputs.scales, |pyramid| pyramid.shape),
            };
            self.bind_groups = guarded(gpu.device, "bind groups of meshlets", || {
                if let (Some(items), Some(kernels)) = (&mut self.items, kernels) {
                    items.bind(gpu.device, kernels, buffer);
                }
                pipelines.bind(gpu.device, form, buffer)
            })?;
        }
        Ok(written.iter().map(|written| written.bytes).sum())
    }
}

/// Number of cells that a batch needs if every instance survives.
pub(super) fn max_cells(rows: &[MeshletRow]) -> u64 {
    let cells = |row: &MeshletRow| {
        let tiles = row.chunk.instance_count.div_ceil(MESHLET_TILE);
        u64::from(tiles) * u64::from(row.meshlet_count)
    };
    rows.iter().map(cells).sum()
}
