//! A plain read of a buffer: what the memory allows, and what empties a cache of everything else.

use super::{Gpu, buffer, groups};
use wgpu::{Buffer, BufferUsages, ComputePass, ComputePipeline};

pub struct Reader {
    pipeline: ComputePipeline,
    kept: Buffer,
}

impl Reader {
    pub fn new(gpu: &Gpu) -> Self {
        Self {
            pipeline: gpu.pipeline("read", include_str!("read.wgsl").into(), "read_page"),
            kept: buffer(&gpu.device, "kept", 4, BufferUsages::STORAGE),
        }
    }

    /// Something else to read: `mib` of it, as far as one binding holds so much.
    pub fn filler(gpu: &Gpu, mib: u64) -> Buffer {
        let size = (mib << 20).min(gpu.binding_limit());
        buffer(&gpu.device, "filler", size, BufferUsages::STORAGE)
    }

    /// Reads all of it.
    pub fn record(&self, gpu: &Gpu, page: &Buffer, pass: &mut ComputePass<'_>) {
        self.record_first(gpu, page, page.size() / 16, pass);
    }

    /// Reads the first `count` times 16 bytes.
    pub fn record_first(&self, gpu: &Gpu, page: &Buffer, count: u64, pass: &mut ComputePass<'_>) {
        let group = gpu.bind(&self.pipeline, &[page, &self.kept]);
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &group, &[]);
        let (x, y) = groups(count.div_ceil(1024));
        pass.dispatch_workgroups(x, y, 1);
    }
}
