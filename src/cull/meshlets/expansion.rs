//! The choice of how survivors are expanded to meshlets.

use crate::cull::Expansion;

/// How survivors are expanded to (survivor, meshlet) pairs. All ways draw the same; they differ in
/// speed and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "bevy", derive(bevy::reflect::Reflect))]
#[non_exhaustive]
pub enum MeshletExpansion {
    /// The fastest in frames: [`Self::Division`], with levels of detail and without
    /// (`docs/internals/meshlets.md`).
    #[default]
    Auto,
    /// Row by row (a row is one view of a set at one level of detail): all survivors of a row have
    /// the same number of meshlets, so a division finds the survivor and the meshlet of a thread.
    Division,
    /// The survivors of all rows of a page together, each with the number of its meshlets. It needs
    /// 9 storage buffers per shader stage, and 10 for what is late in a view that hides; a device
    /// with fewer takes [`Self::Division`].
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

    /// The expansion; `None` for the division.
    pub(super) const fn choose(self) -> Option<Expansion> {
        match self {
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
    fn the_division_stays_unless_it_is_asked_otherwise() {
        assert_eq!(MeshletExpansion::default().choose(), None);
        assert_eq!(MeshletExpansion::Division.choose(), None);
        for expansion in Expansion::ALL {
            let by = MeshletExpansion::By(*expansion);
            assert_eq!(by.choose(), Some(*expansion));
        }
    }
}
