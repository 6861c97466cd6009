//! Which tiers a device can run.

use crate::cull::{CullError, CullingTier};
use wgpu::{Features, Limits};

/// Number of lanes in the smallest subgroup that the kernels support. With fewer lanes, a turn of a
/// strip takes no word, and the loop over its words never ends.
const MIN_SUBGROUP: u32 = 4;

impl CullingTier {
    /// The most capable tier that `features` and `limits` allow, with the reason if it is not
    /// [`Self::Subgroup`].
    #[must_use]
    pub fn supported(features: Features, limits: &Limits) -> (Self, Option<String>) {
        match Self::Workgroup.check(features, limits) {
            Err(error) => (Self::Cpu, Some(error.to_string())),
            Ok(()) => match Self::Subgroup.check(features, limits) {
                Err(error) => (Self::Workgroup, Some(error.to_string())),
                Ok(()) => (Self::Subgroup, None),
            },
        }
    }

    /// Checks that this tier can run.
    ///
    /// # Errors
    /// [`CullError::TierUnsupported`] names the missing feature or limit.
    pub fn check(self, features: Features, limits: &Limits) -> Result<(), CullError> {
        let missing = |what: String| {
            Err(CullError::TierUnsupported {
                tier: self,
                missing: what,
            })
        };
        if self == Self::Cpu {
            return Ok(());
        }
        if !features.contains(Features::INDIRECT_FIRST_INSTANCE) {
            return missing("the feature INDIRECT_FIRST_INSTANCE".into());
        }
        for (what, has, needs) in [
            (
                "max_compute_invocations_per_workgroup",
                limits.max_compute_invocations_per_workgroup,
                256,
            ),
            (
                "max_compute_workgroup_size_x",
                limits.max_compute_workgroup_size_x,
                256,
            ),
            (
                "max_storage_buffers_per_shader_stage",
                limits.max_storage_buffers_per_shader_stage,
                8,
            ),
            (
                "max_compute_workgroups_per_dimension",
                limits.max_compute_workgroups_per_dimension,
                65_535,
            ),
        ] {
            if has < needs {
                return missing(format!("{what} of {needs} (it is {has})"));
            }
        }
        if self == Self::Subgroup && !features.contains(Features::SUBGROUP) {
            return missing("the feature SUBGROUP".into());
        }
        Ok(())
    }

    /// Checks that this tier can run if a subgroup may have as few lanes as `min`
    /// ([`wgpu::AdapterInfo::subgroup_min_size`]).
    ///
    /// # Errors
    /// [`CullError::TierUnsupported`] names the limit.
    pub fn check_subgroup_size(self, min: u32) -> Result<(), CullError> {
        if self != Self::Subgroup || min >= MIN_SUBGROUP {
            return Ok(());
        }
        Err(CullError::TierUnsupported {
            tier: self,
            missing: format!("subgroup_min_size of {MIN_SUBGROUP} (it is {min})"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> (Features, Limits) {
        (CullingTier::wanted_features(), Limits::default())
    }

    #[test]
    fn the_best_tier_needs_no_reason() {
        let (features, limits) = full();
        assert_eq!(
            CullingTier::supported(features, &limits),
            (CullingTier::Subgroup, None)
        );
    }

    #[test]
    fn a_missing_feature_gives_the_next_tier_and_is_named() {
        let (features, limits) = full();
        let (tier, reason) = CullingTier::supported(features - Features::SUBGROUP, &limits);
        assert_eq!(tier, CullingTier::Workgroup);
        assert!(reason.is_some_and(|text| text.contains("SUBGROUP")));
        let (tier, reason) =
            CullingTier::supported(features - Features::INDIRECT_FIRST_INSTANCE, &limits);
        assert_eq!(tier, CullingTier::Cpu);
        assert!(reason.is_some_and(|text| text.contains("INDIRECT_FIRST_INSTANCE")));
    }

    #[test]
    fn a_small_limit_gives_the_cpu_tier_and_is_named() {
        let (features, mut limits) = full();
        limits.max_compute_invocations_per_workgroup = 128;
        let (tier, reason) = CullingTier::supported(features, &limits);
        assert_eq!(tier, CullingTier::Cpu);
        let reason = reason.unwrap_or_default();
        assert!(
            reason.contains("max_compute_invocations_per_workgroup of 256 (it is 128)"),
            "{reason}"
        );
    }

    #[test]
    fn subgroups_below_four_lanes_are_refused_and_named() {
        for min in [0, 1, 2, 3] {
            let error = CullingTier::Subgroup.check_subgroup_size(min);
            let text = error.err().map(|error| error.to_string());
            let text = text.unwrap_or_default();
            assert!(
                text.contains("subgroup_min_size of 4") && text.contains(&format!("it is {min}")),
                "{min}: {text:?}"
            );
            assert_eq!(CullingTier::Workgroup.check_subgroup_size(min), Ok(()));
            assert_eq!(CullingTier::Cpu.check_subgroup_size(min), Ok(()));
        }
        for min in [4, 8, 32, 128] {
            assert_eq!(CullingTier::Subgroup.check_subgroup_size(min), Ok(()));
        }
    }
}
