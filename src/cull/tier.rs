//! The capabilities of the adapter, determined once.

use wgpu::Features;

/// How the culling is computed. All tiers give the same survivors in the same order.
///
/// The tiers are ordered by what they need: the least demanding first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "bevy", derive(bevy::reflect::Reflect))]
pub enum CullingTier {
    /// The CPU runs the twins of the stages and uploads a survivor list. Works everywhere and needs
    /// no compute.
    Cpu,
    /// Compute shaders that use workgroup memory, without subgroup operations.
    Workgroup,
    /// Compute shaders that use ballots and subgroup prefix sums, at any subgroup size from 4 to
    /// 128.
    Subgroup,
}

impl CullingTier {
    /// All tiers, the most capable one first.
    pub const ALL: [Self; 3] = [Self::Subgroup, Self::Workgroup, Self::Cpu];

    /// Optional features that the engine uses. Request those that the adapter has.
    #[must_use]
    pub fn wanted_features() -> Features {
        Features::SUBGROUP | Features::INDIRECT_FIRST_INSTANCE
    }
}

impl core::fmt::Display for CullingTier {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Subgroup => "subgroup",
            Self::Workgroup => "workgroup",
            Self::Cpu => "cpu",
        })
    }
}

impl core::str::FromStr for CullingTier {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|tier| tier.to_string() == name)
            .ok_or_else(|| format!("unknown tier \"{name}\": use subgroup, workgroup or cpu"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_back_and_an_unknown_one_lists_them() {
        for tier in CullingTier::ALL {
            assert_eq!(tier.to_string().parse(), Ok(tier));
        }
        let error = "warp".parse::<CullingTier>();
        assert!(error.is_err_and(|text| text.contains("warp") && text.contains("workgroup")));
    }

    #[test]
    fn tiers_are_ordered() {
        assert!(
            CullingTier::Subgroup > CullingTier::Workgroup
                && CullingTier::Workgroup > CullingTier::Cpu
        );
    }
}
