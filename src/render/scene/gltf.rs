//! Instances in glTF files: nodes with the extension `EXT_mesh_gpu_instancing` become sets.
//!
//! <https://github.com/KhronosGroup/glTF/tree/main/extensions/2.0/Vendor/EXT_mesh_gpu_instancing>.

use crate::{
    instance::InstanceSet,
    render::{components::GpuInstances, offset::InstanceOffset},
};
use bevy::{
    asset::LoadContext,
    camera::primitives::Aabb,
    gltf::extensions::{ErasedGltfExtensionHandler, GltfExtensionHandler, GltfExtensionHandlers},
    mesh::MeshVertexAttribute,
    platform::collections::HashMap,
    prelude::*,
    tasks::{ConditionalSendFuture, block_on},
};
use gltf::{
    Accessor, Document,
    accessor::{DataType, Dimensions, Item, Iter},
};

/// The extension.
const NAME: &str = "EXT_mesh_gpu_instancing";

/// On an entity of a loaded scene: the set of its node. In the app's world it becomes
/// [`GpuInstances`], whose required components a scene cannot hold.
#[derive(Component, Reflect, Clone, Debug)]
#[reflect(Component, Clone)]
pub(super) struct NodeInstances(Handle<InstanceSet>);

/// Has glTF files loaded with their instances.
pub(super) fn build(app: &mut App) {
    app.register_type::<NodeInstances>().add_observer(give_set);
    if let Some(handlers) = app.world().get_resource::<GltfExtensionHandlers>() {
        let handler = Box::new(Instancing::default());
        block_on(handlers.0.write()).push(handler);
    }
}

fn give_set(
    added: On<Add, NodeInstances>,
    nodes: Query<(&NodeInstances, &Transform)>,
    mut commands: Commands,
) {
    let Ok((NodeInstances(set), transform)) = nodes.get(added.entity) else {
        return;
    };
    // The loader may rotate a mesh in its node. The instances are in the node's space.
    let set = (
        GpuInstances(set.clone()),
        InstanceOffset::from(*transform),
        Transform::IDENTITY,
    );
    // The box is the mesh's.
    let mut entity = commands.entity(added.entity);
    entity.try_insert(set).try_remove::<Aabb>();
}

/// Reads the instances of a file while it is loaded. The loader has a copy per file.
#[derive(Clone, Default)]
struct Instancing {
    /// The sets of nodes by their index; `None` until the file's buffers are there.
    sets: Option<HashMap<usize, Handle<InstanceSet>>>,
}

impl GltfExtensionHandler for Instancing {
    fn dyn_clone(&self) -> Box<dyn ErasedGltfExtensionHandler> {
        Box::new(self.clone())
    }

    // The only hook that has the buffers. It is called per primitive.
    fn on_gltf_primitive(
        &mut self,
        load_context: &mut LoadContext<'_>,
        file: &gltf::Gltf,
        _: &gltf::Mesh,
        _: &gltf::Primitive,
        buffers: &[Vec<u8>],
        _: &HashMap<Box<str>, MeshVertexAttribute>,
        _: bool,
        _: bool,
        _: &mut Option<Mesh>,
    ) -> impl ConditionalSendFuture<Output = ()> {
        if self.sets.is_none() {
            self.sets = Some(sets_of(load_context, file, buffers));
        }
        async {}
    }

    fn on_gltf_node(
        &mut self,
        _: &mut LoadContext<'_>,
        node: &gltf::Node,
        entity: &mut EntityWorldMut,
    ) {
        let set = self.sets.as_ref().and_then(|sets| sets.get(&node.index()));
        let (Some(set), Some(children)) = (set, entity.get::<Children>()) else {
            return;
        };
        let children = children.to_vec();
        entity.world_scope(|world| {
            for child in children {
                // Other children are nodes.
                if let Ok(mut child) = world.get_entity_mut(child)
                    && child.contains::<Mesh3d>()
                {
                    child.insert(NodeInstances(set.clone()));
                }
            }
        });
    }
}

/// The sets of a file's nodes.
fn sets_of(
    load_context: &mut LoadContext<'_>,
    file: &Document,
    buffers: &[Vec<u8>],
) -> HashMap<usize, Handle<InstanceSet>> {
    let mut sets = HashMap::default();
    for node in file.nodes() {
        if node.extension_value(NAME).is_none() {
            continue;
        }
        match read_set(file, &node, buffers) {
            Ok(set) => {
                let label = format!("Node{}/Instances", node.index());
                sets.insert(node.index(), load_context.add_labeled_asset(label, set));
            }
            Err(problem) => error!(
                "{}: the instances of node {} ({}) are not drawn, its mesh is drawn once: {NAME}: {problem}",
                load_context.path(),
                node.index(),
                node.name().unwrap_or("without a name"),
            ),
        }
    }
    sets
}

/// The set of a node.
fn read_set(
    file: &Document,
    node: &gltf::Node,
    buffers: &[Vec<u8>],
) -> Result<InstanceSet, String> {
    if node.skin().is_some() {
        return Err("the node has a skin, which a set cannot pose. Bake the pose".to_owned());
    }
    let extension = node.extension_value(NAME);
    let attributes = extension.and_then(|extension| extension.get("attributes")?.as_object());
    let attributes = attributes.ok_or("it has no attributes")?;
    let accessor = |name: &str| {
        let Some(index) = attributes.get(name) else {
            return Ok(None);
        };
        let found = index
            .as_u64()
            .and_then(|index| file.accessors().nth(usize::try_from(index).ok()?));
        found
            .map(Some)
            .ok_or_else(|| format!("{name} is accessor {index}, which the file does not have"))
    };
    let [translations, rotations, scales] = [
        accessor("TRANSLATION")?,
        accessor("ROTATION")?,
        accessor("SCALE")?,
    ];
    let all = [&translations, &rotations, &scales].into_iter().flatten();
    let counts: Vec<_> = all.map(Accessor::count).collect();
    let Some(&count) = counts.first() else {
        return Err("it has no TRANSLATION, ROTATION or SCALE".to_owned());
    };
    if counts.iter().any(|other| *other != count) {
        return Err(format!(
            "its accessors have {counts:?} values, and must have the same number"
        ));
    }
    let vectors = |name: &str, accessor: Option<Accessor>, default: Vec3| match accessor {
        None => Ok(vec![default; count]),
        Some(accessor) => {
            let values = read::<[f32; 3]>(name, &accessor, Dimensions::Vec3, buffers)?;
            Ok::<_, String>(values.into_iter().map(Vec3::from).collect())
        }
    };
    let translations = vectors("TRANSLATION", translations, Vec3::ZERO)?;
    let scales = vectors("SCALE", scales, Vec3::ONE)?;
    let rotations = match rotations {
        None => vec![Quat::IDENTITY; count],
        Some(accessor) => read_rotations(&accessor, buffers)?,
    };
    let transforms = (translations.iter().zip(&rotations).zip(&scales)).map(
        |((translation, rotation), scale)| Transform {
            translation: *translation,
            rotation: *rotation,
            scale: *scale,
        },
    );
    let set = InstanceSet::from_transforms(transforms).map_err(|error| error.to_string())?;
    Ok(set.sorted())
}

/// Rotations: four floats, or four normalized integers.
fn read_rotations(accessor: &Accessor, buffers: &[Vec<u8>]) -> Result<Vec<Quat>, String> {
    let (name, four) = ("ROTATION", Dimensions::Vec4);
    let values: Vec<[f32; 4]> = match accessor.data_type() {
        DataType::I8 => read::<[i8; 4]>(name, accessor, four, buffers)?
            .into_iter()
            .map(|value| value.map(|code| (f32::from(code) / 127.0).max(-1.0)))
            .collect(),
        DataType::I16 => read::<[i16; 4]>(name, accessor, four, buffers)?
            .into_iter()
            .map(|value| value.map(|code| (f32::from(code) / 32767.0).max(-1.0)))
            .collect(),
        _ => read(name, accessor, four, buffers)?,
    };
    // Integers are normalized only up to rounding. No direction is an error of the set.
    let rotations = values.into_iter().map(|value| {
        let rotation = Quat::from_array(value);
        match rotation.length() {
            length if length > 0.0 => rotation / length,
            _ => rotation,
        }
    });
    Ok(rotations.collect())
}

/// The values of an accessor.
fn read<T: Item>(
    name: &str,
    accessor: &Accessor,
    dimensions: Dimensions,
    buffers: &[Vec<u8>],
) -> Result<Vec<T>, String> {
    let is_float = accessor.data_type() == DataType::F32;
    if accessor.dimensions() != dimensions
        || accessor.size() != size_of::<T>()
        || !(is_float || accessor.normalized())
    {
        return Err(format!(
            "{name} has {}values of {:?} {:?}. TRANSLATION and SCALE must be Vec3 of F32, and ROTATION a Vec4 of F32, or \
             of normalized I8 or I16",
            if accessor.normalized() {
                "normalized "
            } else {
                ""
            },
            accessor.dimensions(),
            accessor.data_type(),
        ));
    }
    let is_empty =
        accessor.count() == 0 || accessor.sparse().is_some_and(|sparse| sparse.count() == 0);
    let is_tight = accessor
        .view()
        .and_then(|view| view.stride())
        .is_some_and(|stride| stride < size_of::<T>());
    let values = match is_empty || is_tight {
        // The reader subtracts from these numbers.
        true => None,
        false => Iter::<T>::new(accessor.clone(), |buffer| {
            buffers.get(buffer.index()).map(Vec::as_slice)
        }),
    };
    let values: Vec<T> = values.into_iter().flatten().collect();
    if values.len() == accessor.count() && !is_empty {
        Ok(values)
    } else {
        Err(format!(
            "{name} has {} values, of which its buffer holds {}",
            accessor.count(),
            values.len()
        ))
    }
}
