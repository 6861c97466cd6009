//! Which compactions a device can run.

use super::Compaction;
use crate::cull::{CullError, CullingTier};
use wgpu::Features;

impl Compaction {
    /// Whether it can run on `tier` of a device with `features`; otherwise an error that names what
    /// is missing.
    ///
    /// # Errors
    /// [`CullError::CompactionUnsupported`] with the missing feature, or the tier that it needs.
    pub fn check(self, tier: CullingTier, features: Features) -> Result<(), CullError> {
        if !self.strategy().needs_subgroups || tier != CullingTier::Workgroup {
            return Ok(());
        }
        let missing = if features.contains(Features::SUBGROUP) {
            format!(
                "the tier \"{}\", but the tier is \"{tier}\"",
                CullingTier::Subgroup
            )
        } else {
            "the feature SUBGROUP, which this adapter lacks".into()
        };
        Err(CullError::CompactionUnsupported {
            compaction: self.name(),
            missing,
        })
    }

    /// The compactions that run on `tier` of a device with `features`.
    pub fn supported(tier: CullingTier, features: Features) -> impl Iterator<Item = Self> {
        Self::ALL
            .iter()
            .copied()
            .filter(move |compaction| compaction.check(tier, features).is_ok())
    }
}

#[cfg(all(test, feature = "study"))]
mod tests {
    use super::*;

    #[test]
    fn what_needs_ballots_names_the_feature_or_the_tier() {
        let check = |tier, features| {
            Compaction::BallotScan
                .check(tier, features)
                .map_err(|error| error.to_string())
        };
        assert_eq!(check(CullingTier::Subgroup, Features::SUBGROUP), Ok(()));
        assert_eq!(check(CullingTier::Cpu, Features::empty()), Ok(()));
        let error = check(CullingTier::Workgroup, Features::empty())
            .err()
            .unwrap_or_default();
        assert!(
            error.contains("ballot-scan") && error.contains("SUBGROUP"),
            "{error}"
        );
        let error = check(CullingTier::Workgroup, Features::SUBGROUP)
            .err()
            .unwrap_or_default();
        assert!(error.contains("needs the tier \"subgroup\""), "{error}");
        assert_eq!(
            Compaction::supported(CullingTier::Workgroup, Features::empty()).count(),
            6
        );
    }
}
