//! The alias that an entity has: what is compared to see whether its material is as before.

use bevy::asset::UntypedAssetId;

/// The copy of a material with which an entity is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::render) struct UsedAlias {
    pub(super) id: UntypedAssetId,
    /// The run that made the copy.
    pub(super) made_in: u64,
}
