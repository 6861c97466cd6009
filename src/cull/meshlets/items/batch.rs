//! The expansion of one batch.

use super::{COUNTS, ItemKernels, needs::Needs};
use crate::cull::{
    CullError, Expander, Expansion, Gpu, Version,
    expand::{ExpandInput, SourceCount},
    gpu::guard::guarded,
    meshlets::kernels::Resource,
};
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, Buffer, ComputePass, Device,
};

/// The buffers and bind groups of a batch's expansion.
pub(in super::super) struct ItemBatch {
    expander: Expander,
    /// The kernels that it was made for.
    version: Version,
    /// What the expansion's passes bind as group 1; empty before [`Self::bind`].
    groups: Option<[BindGroup; 2]>,
}

impl ItemBatch {
    /// # Errors
    /// [`CullError::Gpu`].
    pub fn new(device: &Device, kernels: &ItemKernels) -> Result<Self, CullError> {
        guarded(device, "buffers of meshlets", || Self {
            expander: kernels.expander.with_same_kernels(device),
            version: kernels.version,
            groups: None,
        })
    }

    /// Whether it runs these kernels.
    pub fn is_of(&self, kernels: &ItemKernels) -> bool {
        self.version == kernels.version
    }

    /// The expansion that runs.
    pub fn expansion(&self) -> Expansion {
        self.expander.expansion()
    }

    /// Size of the buffers on the GPU, in bytes.
    pub fn bytes(&self) -> u64 {
        self.expander.gpu_bytes()
    }

    /// Makes room for all survivors that there can be; `source_count` will hold how many there are.
    ///
    /// # Errors
    /// [`CullError::TooManyThreads`], [`CullError::ExpansionTooLarge`], [`CullError::Gpu`]: the
    /// batch is to be divided.
    pub fn prepare(
        &mut self,
        gpu: Gpu<'_>,
        needs: Needs,
        source_count: &Buffer,
    ) -> Result<(), CullError> {
        needs.check()?;
        self.expander.reserve(needs.entries);
        let input = ExpandInput {
            counts: None,
            sources: SourceCount::Buffer {
                buffer: source_count,
                offset: 0,
                max: needs.sources,
            },
        };
        self.expander.prepare(gpu.device, gpu.queue, &input)
    }

    /// Whether [`Self::bind`] is due, whatever became of the buffers.
    pub fn is_unbound(&self) -> bool {
        self.groups.is_none()
    }

    /// Makes the bind groups, unguarded, over what `buffer` gives for each resource.
    pub fn bind<'a>(
        &mut self,
        device: &Device,
        kernels: &ItemKernels,
        buffer: impl Fn(Resource) -> &'a Buffer + Copy,
    ) {
        let group = |layout: &BindGroupLayout, resources: &[(Resource, _)]| {
            let entry = |(resource, _): &(Resource, _)| BindGroupEntry {
                binding: *resource as u32,
                resource: buffer(*resource).as_entire_binding(),
            };
            device.create_bind_group(&BindGroupDescriptor {
                label: Some("gpu_culling meshlet items"),
                layout,
                entries: &resources.iter().map(entry).collect::<Vec<_>>(),
            })
        };
        let votes = group(&kernels.votes, &kernels.vote_resources);
        self.groups = Some([group(&kernels.counts, COUNTS), votes]);
    }

    /// Records pass 1: what the expansion needs to find the survivor of an item.
    pub fn record_sources(&self, pass: &mut ComputePass<'_>) {
        if let Some([counts, _]) = &self.groups {
            self.expander.record_sources(pass, Some(counts));
        }
    }

    /// Records pass 2: the vote.
    pub fn record_items(&self, pass: &mut ComputePass<'_>) {
        if let Some([_, votes]) = &self.groups {
            self.expander.record_items(pass, Some(votes));
        }
    }
}
