//! Names of assets in the log.

use bevy::{asset::UntypedAssetId, prelude::*};
use core::fmt;

/// Number of entities that a message names: a page may have a hundred thousand small sets.
const MAX_NAMED: usize = 8;

/// "12v0, 13v0", or the first few of many.
pub(super) fn entity_names(entities: &[Entity]) -> String {
    if entities.is_empty() {
        return "entities that are gone".into();
    }
    let named = entities.iter().take(MAX_NAMED).map(Entity::to_string);
    let named = named.collect::<Vec<_>>().join(", ");
    match entities.len().saturating_sub(MAX_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Names assets by their path, if they were loaded from a file.
pub(super) struct AssetNames<'a>(pub Option<&'a AssetServer>);

/// The name of an asset: its path or its id.
pub(super) struct AssetName {
    path: Option<String>,
    id: UntypedAssetId,
    kind: &'static str,
}

impl AssetNames<'_> {
    /// The name of an asset.
    pub fn of<A: Asset>(&self, id: AssetId<A>) -> AssetName {
        let path = self.0.and_then(|server| server.get_path(id));
        AssetName {
            path: path.map(|path| path.to_string()),
            id: id.untyped(),
            kind: A::short_type_path(),
        }
    }
}

impl fmt::Display for AssetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, self.id) {
            (Some(path), _) => write!(f, "the {} \"{path}\"", self.kind),
            (None, UntypedAssetId::Index { index, .. }) => {
                write!(f, "the {} {index:?}", self.kind)
            }
            (None, UntypedAssetId::Uuid { uuid, .. }) => write!(f, "the {} {uuid}", self.kind),
        }
    }
}
