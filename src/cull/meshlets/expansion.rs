//! The choice of how survivors are expanded to meshlets.

use crate::cull::Expansion;

/// The expansion of meshlets that have levels of detail. It is the fastest of the expansions when
/// these run alone (`docs/internals/expansion.md`). In a frame, it is not measured yet.
const EXPANSION_WITH_LEVELS: Expansion = Expansion::OneBucket;

/// How survivors are expanded to (survivor, meshlet) pairs. All ways draw the same; they differ in
/// speed and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "bevy", derive(bevy::reflect::Reflect))]
#[non_exhaustive]
pub enum MeshletExpansion {
    /// [`Expansion::OneBucket`] for the sets of a page if one of them has levels of detail: then
    /// the number of meshlets differs from survivor to survivor. Otherwise [`Self::Division`].
    #[default]
    Auto,
    /// Row by row (a row is one view of a set at one level of detail): all survivors of a row have
    /// the same number of meshlets, so a division finds the survivor and the meshlet of a thread.
    Division,
    /// The survivors of all rows of a page together, each with the number of its meshlets. It needs
    /// 9 storage buffers per shader stage; a device with fewer takes [`Self::Division`].
    By(Expansion),
}

impl MeshletExpansion {
    /// All ways.
    pub fn all() -> impl Iterator<Item = Self> {
        let expansions = Expansion::ALL.iter().map(|expansion| Self::By(*expansion));
        [Self::Auto, Self::Division].into_iter().chain(expansions)
    }

    /// The name on command lines and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Division => "division",
            Self::By(expansion) => expansion.name(),
        }
    }

    /// The expansion of a batch whose meshes have levels of detail or not; `None` for the division.
    pub(super) const fn choose(self, has_levels: bool) -> Option<Expansion> {
        match self {
            Self::Auto if has_levels => Some(EXPANSION_WITH_LEVELS),
            Self::Auto | Self::Division => None,
            Self::By(expansion) => Some(expansion),
        }
    }
}

impl core::fmt::Display for MeshletExpansion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

impl core::str::FromStr for MeshletExpansion {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::all().find(|way| way.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::all().map(Self::name).collect();
            format!("unknown expansion \"{name}\": use {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_back_and_an_unknown_one_lists_them() {
        for way in MeshletExpansion::all() {
            assert_eq!(way.to_string().parse(), Ok(way));
        }
        let error = "tree".parse::<MeshletExpansion>();
        let named = |text: String| {
            ["tree", "auto", "division", "one-bucket"].map(|name| text.contains(name))
        };
        assert_eq!(error.map_err(named), Err([true; 4]));
    }

    #[test]
    fn the_division_stays_unless_there_are_levels_or_it_is_asked_otherwise() {
        let chosen = |way: MeshletExpansion| [false, true].map(|levels| way.choose(levels));
        assert_eq!(
            chosen(MeshletExpansion::default()),
            [None, Some(Expansion::OneBucket)]
        );
        assert_eq!(chosen(MeshletExpansion::Division), [None, None]);
        for expansion in Expansion::ALL {
            let by = MeshletExpansion::By(*expansion);
            assert_eq!(chosen(by), [Some(*expansion); 2]);
        }
    }
}
