//! Compares the survivors of a run with the twin's.

use super::{Gpu, buffer};
use anyhow::{Result, bail};
use bevy_gpu_culling::cull::layout::args_offset;
use core::ops::AddAssign;
use wgpu::{Buffer, BufferUsages, CommandEncoder, ComputePipeline, util::DeviceExt};

/// A digest of the twin's survivors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Number of survivors.
    pub survivors: u32,
    hash_a: u32,
    hash_b: u32,
}

impl Expected {
    /// Adds the survivor `id`.
    pub fn add(&mut self, id: u32) {
        self.survivors += 1;
        self.hash_a = self.hash_a.wrapping_add(hash(id));
        self.hash_b = self.hash_b.wrapping_add(hash(id ^ 0x9e37_79b9));
    }
}

impl AddAssign for Expected {
    fn add_assign(&mut self, other: Self) {
        self.survivors += other.survivors;
        self.hash_a = self.hash_a.wrapping_add(other.hash_a);
        self.hash_b = self.hash_b.wrapping_add(other.hash_b);
    }
}

/// Twin of `hash` in `digest.wgsl`.
fn hash(value: u32) -> u32 {
    let state = value.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (word >> 22) ^ word
}

/// Computes digests of results on the GPU, so that the ids need not be read back.
pub struct Verifier {
    pipeline: ComputePipeline,
    digest: Buffer,
    spoil: bool,
}

impl Verifier {
    pub fn new(gpu: &Gpu, spoil: bool) -> Self {
        let wgsl = include_str!("digest.wgsl").to_owned();
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        Self {
            pipeline: gpu.pipeline("digest", wgsl, "digest_survivors"),
            digest: buffer(&gpu.device, "digest", 20, usage),
            spoil,
        }
    }

    /// The digest. It is read after the work that [`Self::add`] recorded.
    pub fn digest(&self) -> &Buffer {
        &self.digest
    }

    /// Starts a new digest.
    pub fn clear(&self, encoder: &mut CommandEncoder) {
        encoder.clear_buffer(&self.digest, 0, None);
    }

    /// Adds the survivors of one row of a batch. `args` and `survivors` are the batch's buffers,
    /// `first` is added to the row's ids, and `several` says whether the batch has other rows.
    pub fn add(
        &self,
        gpu: &Gpu,
        encoder: &mut CommandEncoder,
        (args, survivors): (&Buffer, &Buffer),
        first: u32,
        (row, several): (u32, bool),
    ) {
        let command = (args_offset(row) / 4) as u32;
        let page = [first, u32::from(self.spoil), command, u32::from(several)];
        let page = gpu
            .device
            .create_buffer_init(&wgpu::util::BufferInitDescriptor {
                label: Some("digest page"),
                contents: bytemuck::cast_slice(&page),
                usage: BufferUsages::UNIFORM,
            });
        let group = gpu.bind(&self.pipeline, &[&page, args, survivors, &self.digest]);
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(256, 1, 1);
    }

    /// Compares the digest `words` from the GPU with the twin's. `in_order` says whether the ids of
    /// each row must be in instance order.
    pub fn check(&self, in_order: bool, words: &[u32], expected: &Expected) -> Result<()> {
        let [survivors, hash_a, hash_b, descents, overflow] = *words else {
            bail!("a digest of {} words, expected 5", words.len());
        };
        let seen = Expected {
            survivors,
            hash_a,
            hash_b,
        };
        if survivors != expected.survivors {
            bail!(
                "{survivors} survivors, but the twin keeps {}",
                expected.survivors
            );
        }
        if seen != *expected {
            bail!(
                "the number of survivors ({survivors}) is the same as the twin's, but the ids differ"
            );
        }
        if overflow != 0 {
            bail!("the totals disagree with the command by {overflow}");
        }
        if in_order && descents != 0 {
            bail!("{descents} survivors are out of instance order");
        }
        Ok(())
    }
}
