//! The rows of a batch whose rows share views: the GPU fills them.

use super::{
    frame_number::Changed,
    tables::{FrameTables, TablePlace},
};
use crate::cull::{
    CullError, Gpu,
    gpu::{
        binding::{Access, Bind},
        buffer::{Growable, Table, TableWrite},
        guard::guarded,
        kernel::KernelJob,
        limits::dispatch_2d,
        program::Program,
        version::Version,
    },
    layout::{ChunkView, RowSource},
    plan::BatchPlan,
    shaders::kernels,
};
use core::num::NonZeroU64;
use std::sync::Arc;
use wgpu::{BindGroup, BindingResource, Buffer, BufferBinding, BufferUsages, ComputePass, Device};

/// Number of threads of a workgroup of `fill_rows`.
const THREADS: u32 = 64;

/// A buffer that the kernel binds; its number in the shader.
#[derive(Clone, Copy)]
enum Resource {
    Sources = 0,
    ViewsOfRows = 1,
    Views = 2,
    Chunks = 3,
    Rows = 4,
}

/// The kernel.
pub(in crate::cull) struct RowFiller(Program<Resource>);

impl RowFiller {
    /// Compiles the kernel.
    ///
    /// # Errors
    /// [`CullError::Pipeline`].
    pub fn new(device: &Device, checks: bool) -> Result<Self, CullError> {
        let bind = |resource: Resource, access| Bind::at(resource as u32, resource, access);
        let job = KernelJob::on_all_tiers("fill_rows", &kernels::FILL_ROWS, checks);
        let binds = [
            bind(Resource::Sources, Access::Read),
            bind(Resource::ViewsOfRows, Access::Read),
            bind(Resource::Views, Access::Read),
            bind(Resource::Chunks, Access::Read),
            bind(Resource::Rows, Access::Write),
        ];
        Program::build(device, &job, binds.into_iter()).map(Self)
    }
}

/// The rows of a batch.
pub(in crate::cull) struct FilledRows {
    sources: Table,
    views_of_rows: Table,
    /// The frame in which `views_of_rows` was written.
    written_in: u64,
    rows: Growable,
    /// What the bind group was made for.
    bound: Option<BoundInputs>,
    bind_group: Option<BindGroup>,
    filler: Arc<RowFiller>,
}

/// Places of what the kernel reads.
#[derive(Clone, Copy, PartialEq)]
struct BoundInputs {
    tables: Version,
    views: TablePlace,
    /// Number of rows.
    rows: usize,
}

impl FilledRows {
    /// Unguarded.
    pub fn new(device: &Device, filler: Arc<RowFiller>) -> Self {
        let rows = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
        Self {
            sources: Table::new(device, "gpu_culling row sources", BufferUsages::STORAGE),
            views_of_rows: Table::new(device, "gpu_culling views of rows", BufferUsages::STORAGE),
            written_in: 0,
            rows: Growable::new(device, "gpu_culling rows", rows),
            bound: None,
            bind_group: None,
            filler,
        }
    }

    /// The rows.
    pub fn buffer(&self) -> &Buffer {
        &self.rows.buffer
    }

    /// Label and size in bytes of each buffer.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [&self.sources.gpu, &self.views_of_rows.gpu, &self.rows];
        all.into_iter()
            .map(|array| (array.label, array.buffer.size()))
    }

    /// Uploads what changed of the rows' sources and views, and binds the batch's chunks and the
    /// frame's views. Returns the number of bytes uploaded, and whether the buffer of rows was
    /// replaced.
    ///
    /// # Errors
    /// [`CullError::Gpu`].
    pub(super) fn prepare(
        &mut self,
        gpu: Gpu<'_>,
        (plan, changed, now): (&BatchPlan, Changed<'_>, u64),
        chunks: (&Buffer, TableWrite),
        (tables, views): (&mut FrameTables, TablePlace),
    ) -> Result<(u64, bool), CullError> {
        let rows = plan.sources.len();
        let written = match changed {
            _ if self.bound.is_none() => self.sources.write(gpu, &plan.sources)?,
            Changed::Nothing => TableWrite::default(),
            Changed::Some(mends) => (self.sources).write_some(gpu, &plan.sources, &mends.rows)?,
            Changed::All => self.sources.write(gpu, &plan.sources)?,
        };
        let follows = plan.mends.follow && self.written_in + 1 == now;
        let written_views = match follows && self.bound.is_some() {
            true => (self.views_of_rows).write_some(gpu, &plan.views_of_rows, &plan.mends.views)?,
            false => self.views_of_rows.write(gpu, &plan.views_of_rows)?,
        };
        self.written_in = now;
        let bytes = (rows * size_of::<ChunkView>()) as u64;
        let replaced = self.rows.reserve(gpu.device, bytes)?;
        let bound = BoundInputs {
            tables: tables.version(),
            views,
            rows,
        };
        let (chunks, written_chunks) = chunks;
        let replaces = [written, written_views, written_chunks].map(|write| write.replaced);
        let is_stale = replaces.contains(&true) || replaced;
        if is_stale || self.bound != Some(bound) || self.bind_group.is_none() {
            let sources = binding_of(&self.sources, rows * size_of::<RowSource>());
            let views_of_rows = binding_of(&self.views_of_rows, rows * size_of::<u32>());
            let bind_group = guarded(gpu.device, "bind groups of rows", || {
                self.filler.0.bind(gpu.device, |resource| match resource {
                    Resource::Sources => BindingResource::Buffer(sources.clone()),
                    Resource::ViewsOfRows => BindingResource::Buffer(views_of_rows.clone()),
                    Resource::Views => BindingResource::Buffer(tables.binding(views)),
                    Resource::Chunks => chunks.as_entire_binding(),
                    Resource::Rows => self.rows.buffer.as_entire_binding(),
                })
            })?;
            (self.bound, self.bind_group) = (Some(bound), Some(bind_group));
        }
        Ok((written.bytes + written_views.bytes, replaced))
    }

    /// Fills the rows.
    pub fn record(&self, pass: &mut ComputePass<'_>, max_width: u32) -> u32 {
        let (Some(bound), Some(bind_group)) = (self.bound, &self.bind_group) else {
            return 0;
        };
        let (x, y) = dispatch_2d((bound.rows as u32).div_ceil(THREADS), max_width);
        pass.set_pipeline(self.filler.0.pipeline());
        pass.set_bind_group(0, bind_group, &[]);
        pass.dispatch_workgroups(x, y, 1);
        1
    }
}

/// The first bytes of a table as a binding.
fn binding_of(table: &Table, bytes: usize) -> BufferBinding<'_> {
    BufferBinding {
        buffer: &table.gpu.buffer,
        offset: 0,
        size: NonZeroU64::new(bytes as u64),
    }
}
