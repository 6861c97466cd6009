//! Whether a run kept what the twin keeps.

use super::{Gpu, buffer};
use anyhow::{Result, bail};
use bevy_gpu_culling::cull::Compaction;
use core::ops::AddAssign;
use wgpu::{Buffer, BufferUsages, CommandEncoder, ComputePipeline, util::DeviceExt};

/// What the survivors of the twin boil down to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Survivors.
    pub survivors: u32,
    hash_a: u32,
    hash_b: u32,
}

impl Expected {
    /// Adds a survivor.
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

/// Digests results on the GPU, so that the ids need not come back.
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

    /// The digest, to be read after what [`Self::record`] recorded.
    pub fn digest(&self) -> &Buffer {
        &self.digest
    }

    /// Starts a digest.
    pub fn clear(&self, encoder: &mut CommandEncoder) {
        encoder.clear_buffer(&self.digest, 0, None);
    }

    /// Adds the survivors of a row of a batch: `args` and `survivors` are the batch's, `first` is added to its ids, `several`
    /// says whether it has other rows.
    pub fn add(
        &self,
        gpu: &Gpu,
        encoder: &mut CommandEncoder,
        (args, survivors): (&Buffer, &Buffer),
        first: u32,
        (row, several): (u32, bool),
    ) {
        let page = [first, u32::from(self.spoil), row, u32::from(several)];
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

    /// Compares what was read with what the twin keeps.
    pub fn check(&self, compaction: Compaction, words: &[u32], expected: &Expected) -> Result<()> {
        let [survivors, hash_a, hash_b, descents, overflow] = *words else {
            bail!("a digest of {} words", words.len());
        };
        let seen = Expected {
            survivors,
            hash_a,
            hash_b,
        };
        if survivors != expected.survivors {
            bail!(
                "{survivors} survivors, the twin keeps {}",
                expected.survivors
            );
        }
        if seen != *expected {
            bail!("as many survivors as the twin keeps ({survivors}), but not the same");
        }
        if overflow != 0 {
            bail!("the totals disagree with the command by {overflow}");
        }
        if compaction.is_ordered() && descents != 0 {
            bail!("{descents} survivors are not in instance order");
        }
        Ok(())
    }
}
