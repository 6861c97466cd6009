//! A plain read of a buffer. It measures the memory's bandwidth, and it evicts everything else from
//! a cache.

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

    /// A buffer of unrelated data: `mib` MiB, or as much as one binding holds.
    pub fn filler(gpu: &Gpu, mib: u64) -> Buffer {
        let size = (mib << 20).min(gpu.binding_limit());
        buffer(&gpu.device, "filler", size, BufferUsages::STORAGE)
    }

    /// Reads the whole buffer.
    pub fn record(&self, gpu: &Gpu, page: &Buffer, pass: &mut ComputePass<'_>) {
        self.record_first(gpu, page, page.size() / 16, pass);
    }

    /// Reads the first `count` units of 16 bytes.
    pub fn record_first(&self, gpu: &Gpu, page: &Buffer, count: u64, pass: &mut ComputePass<'_>) {
        let group = gpu.bind(&self.pipeline, &[page, &self.kept]);
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &group, &[]);
        let (x, y) = groups(count.div_ceil(1024));
        pass.dispatch_workgroups(x, y, 1);
    }
}
