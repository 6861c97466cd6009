//! The sets of a node with `EXT_mesh_gpu_instancing`.

use super::accessor::Values;
use crate::instance::{InstanceError, InstanceSet, InstanceTransform};
use bevy::prelude::*;
use gltf::{Document, Node, json::accessor::Type};

/// The extension.
pub(super) const NAME: &str = "EXT_mesh_gpu_instancing";
/// The extension's attribute whose values become tags.
const ID: &str = "_ID";
/// Words of data per instance behind the tag.
const MAX_WORDS: usize = 3;

/// The instances of a node.
pub(super) struct NodeSets {
    /// Those that do not mirror the mesh.
    pub plain: Option<InstanceSet>,
    /// Those that do, for a mesh that is mirrored along x before.
    pub mirrored: Option<InstanceSet>,
    /// Attributes that are not in the sets, and why.
    pub left_out: Vec<String>,
}

/// Reads the instances of a node.
pub(super) fn read_sets(
    file: &Document,
    node: &Node,
    buffers: &[Vec<u8>],
) -> Result<NodeSets, String> {
    let root = file.as_json();
    // The wrapper's own method panics if the file was not validated and has no such skin.
    if (root.nodes.get(node.index())).is_some_and(|node| node.skin.is_some()) {
        return Err("the node has a skin, which instances of a file cannot play. Spawn the scene with BakeAnimation".to_owned());
    }
    let extension = node.extension_value(NAME);
    let attributes = extension.and_then(|extension| extension.get("attributes")?.as_object());
    let attributes = attributes.ok_or("it has no attributes")?;
    let read = |index: &gltf::json::Value| {
        let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
        let index = index.ok_or("is not an accessor's index")?;
        Values::new(root, buffers, index)
    };
    let named = |name: &str| {
        let values = attributes.get(name).map(read).transpose();
        values.map_err(|problem| format!("{name} {problem}"))
    };
    let places = [
        ("TRANSLATION", named("TRANSLATION")?),
        ("ROTATION", named("ROTATION")?),
        ("SCALE", named("SCALE")?),
    ];
    let counts: Vec<_> = (places.iter())
        .flat_map(|(_, values)| values)
        .map(Values::len)
        .collect();
    let Some(&count) = counts.first() else {
        return Err("it has no TRANSLATION, ROTATION or SCALE".to_owned());
    };
    if counts.iter().any(|other| *other != count) {
        return Err(format!(
            "its accessors have {counts:?} values, and must have the same number"
        ));
    }
    let (instances, is_mirrored) = read_instances(&places, count)?;
    // This also finds what is wrong with an instance, and names it by its number in the file.
    let all = InstanceSet::from_transforms(instances.iter().copied())
        .map_err(|error| error.to_string())?;
    let mut data = Data::numbers(count);
    for (name, index) in attributes {
        if places.iter().all(|(known, _)| known != name)
            && let Err(problem) = read(index).and_then(|values| data.add(name, &values))
        {
            data.left_out.push(format!("{name} {problem}"));
        }
    }
    let sort = |set: Result<InstanceSet, InstanceError>| {
        set.map(InstanceSet::sorted)
            .map_err(|error| error.to_string())
    };
    let part = |mirrored: bool| {
        let part: Vec<_> = (0..count)
            .filter(|at| is_mirrored[*at] == mirrored)
            .collect();
        let set = InstanceSet::from_transforms(part.iter().map(|at| instances[*at]))
            .and_then(|set| data.give(set, part.into_iter()));
        sort(set).map(|set| (!set.is_empty()).then_some(set))
    };
    let (plain, mirrored) = if is_mirrored.contains(&true) {
        (part(false)?, part(true)?)
    } else {
        (Some(sort(data.give(all, 0..count))?), None)
    };
    Ok(NodeSets {
        plain,
        mirrored,
        left_out: data.left_out,
    })
}

/// The instances without mirroring, and which of them are for a mesh that is mirrored along x
/// before.
fn read_instances(
    [translations, rotations, scales]: &[(&str, Option<Values>); 3],
    count: usize,
) -> Result<(Vec<InstanceTransform>, Vec<bool>), String> {
    let vectors = |(name, values): &(&str, Option<Values>)| match values {
        None => Ok(None),
        Some(values) => (values.numbers::<3>(Type::Vec3, false))
            .map(Some)
            .map_err(|problem| format!("{name} {problem}")),
    };
    let (translations, scales) = (vectors(translations)?, vectors(scales)?);
    let rotations = match rotations {
        (_, None) => None,
        (name, Some(values)) => Some(
            (values.numbers::<4>(Type::Vec4, true))
                .map_err(|problem| format!("{name} {problem}"))?,
        ),
    };
    let instance = |at: usize| {
        let vector = |values: &Option<Vec<[f32; 3]>>| {
            values.as_ref().map(|values| Vec3::from_array(values[at]))
        };
        let rotation = rotations.as_ref().map(|values| {
            let rotation = Quat::from_array(values[at]);
            match rotation.length() {
                // Integers are normalized only up to rounding.
                length if length > 0.0 => rotation / length,
                // No direction is an error of the set.
                _ => rotation,
            }
        });
        let identity = InstanceTransform::IDENTITY;
        let mut instance = InstanceTransform {
            translation: vector(&translations).unwrap_or(identity.translation),
            rotation: rotation.unwrap_or(identity.rotation),
            scale: vector(&scales).unwrap_or(identity.scale),
        };
        let is_mirrored = instance.is_mirrored();
        instance = instance.folded();
        instance.scale = instance.scale.abs();
        (instance, is_mirrored)
    };
    Ok((0..count).map(instance).unzip())
}

/// The data of all instances, in the order of the file.
struct Data {
    /// The words of each instance: the tag, then `words` others.
    tags: Vec<u32>,
    words: usize,
    others: Vec<[u32; MAX_WORDS]>,
    left_out: Vec<String>,
}

impl Data {
    /// Tags that are the instances' numbers in the file.
    fn numbers(count: usize) -> Self {
        Self {
            tags: (0..count as u32).collect(),
            words: 0,
            others: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Adds an attribute.
    fn add(&mut self, name: &str, values: &Values) -> Result<(), String> {
        let count = self.tags.len();
        if values.len() != count {
            return Err(format!(
                "has {} values, and must have one per instance ({count})",
                values.len()
            ));
        }
        if name == ID {
            self.tags = values.whole_numbers().ok_or_else(|| {
                format!("has {values}, and must have Scalar of whole numbers that are not negative")
            })?;
            return Ok(());
        }
        let (first, words) = (self.words, values.words());
        if first + words > MAX_WORDS {
            return Err(format!(
                "needs {} bytes per instance, of which {} are left",
                words * 4,
                (MAX_WORDS - first) * 4
            ));
        }
        self.others.resize(count, [0; MAX_WORDS]);
        for (own, value) in self.others.iter_mut().zip(values.iter()) {
            let bytes = bytemuck::cast_slice_mut::<u32, u8>(&mut own[first..first + words]);
            bytes[..value.len()].copy_from_slice(value);
            // Words are little-endian, like all numbers in the file.
            for word in &mut own[first..first + words] {
                *word = u32::from_le(*word);
            }
        }
        self.words += words;
        Ok(())
    }

    /// Gives a set the data of these instances.
    fn give(
        &self,
        set: InstanceSet,
        instances: impl Iterator<Item = usize>,
    ) -> Result<InstanceSet, InstanceError> {
        fn rows<const N: usize>(
            data: &Data,
            instances: impl Iterator<Item = usize>,
        ) -> Vec<[u32; N]> {
            let word = |at: usize, word: usize| match word.checked_sub(1) {
                None => data.tags[at],
                Some(word) => data.others[at][word],
            };
            let rows = instances.map(|at| core::array::from_fn(|index| word(at, index)));
            rows.collect()
        }
        match self.words {
            0 => set.with_data(rows::<1>(self, instances)),
            1 => set.with_data(rows::<2>(self, instances)),
            2 => set.with_data(rows::<3>(self, instances)),
            _ => set.with_data(rows::<4>(self, instances)),
        }
    }
}

#[cfg(test)]
mod tests;
