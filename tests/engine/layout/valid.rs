//! Every kernel is valid WGSL of its tier.

use super::parse;
use bevy_gpu_culling::cull::{Compaction, CullingTier, Expansion, meshlets::MeshletStage};

#[test]
fn every_kernel_validates_without_subgroups_on_the_workgroup_tier() {
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    for (tier, capabilities) in [
        (CullingTier::Workgroup, Capabilities::empty()),
        (CullingTier::Subgroup, Capabilities::SUBGROUP),
    ] {
        let none = wgpu::Features::empty();
        let compactions = Compaction::supported(tier, none)
            .flat_map(|compaction| compaction.sources(tier))
            .map(|kernel| (kernel, capabilities));
        let int64 = Capabilities::SHADER_INT64 | Capabilities::SHADER_INT64_ATOMIC_ALL_OPS;
        let expansions = Expansion::ALL.iter().flat_map(|expansion| {
            let more = match expansion.check(none) {
                Ok(()) => Capabilities::empty(),
                Err(_) => int64,
            };
            let kernels = expansion.sources(tier).into_iter();
            kernels.map(move |kernel| (kernel, capabilities | more))
        });
        let stages = MeshletStage::ALL.into_iter();
        let meshlets = stages.flat_map(|stage| {
            let kernels = stage.sources(tier).into_iter();
            kernels.map(move |source| ((stage.name(), source.to_owned()), capabilities))
        });
        for ((kernel, source), capabilities) in compactions.chain(expansions).chain(meshlets) {
            let module = parse(&source);
            let mut validator = Validator::new(ValidationFlags::all(), capabilities);
            validator.subgroup_stages(naga::valid::ShaderStages::COMPUTE);
            validator.subgroup_operations(naga::valid::SubgroupOperationSet::all());
            validator.validate(&module).unwrap_or_else(|error| {
                panic!("{kernel} on {tier}: {}", error.emit_to_string(&source))
            });
            assert!(
                !source.contains('#'),
                "the engine's WGSL has no preprocessor"
            );
        }
    }
}
