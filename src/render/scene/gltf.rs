//! Instances in glTF files: nodes with the extension `EXT_mesh_gpu_instancing` become sets.
//!
//! <https://github.com/KhronosGroup/glTF/tree/main/extensions/2.0/Vendor/EXT_mesh_gpu_instancing>.
//!
//! 1. `accessor`: values of the file's accessors.
//! 2. `node`: the sets of a node.

mod accessor;
mod node;

use crate::{
    instance::InstanceSet,
    render::{components::GpuInstances, offset::InstanceOffset},
};
use bevy::{
    asset::LoadContext,
    camera::primitives::Aabb,
    gltf::{
        GltfLoaderSettings, GltfMaterial,
        extensions::{ErasedGltfExtensionHandler, GltfExtensionHandler, GltfExtensionHandlers},
    },
    math::Affine3A,
    mesh::MeshVertexAttribute,
    platform::collections::HashMap,
    prelude::*,
    render::render_resource::Face,
    tasks::{ConditionalSendFuture, block_on},
};
use node::{NAME, NodeSets, read_sets};

/// On an entity of a loaded scene: the set of its node, and the transform of the mesh in the node.
/// In the app's world they become [`GpuInstances`], whose required components a scene cannot hold,
/// and [`InstanceOffset`].
#[derive(Component, Reflect, Clone, Debug)]
#[reflect(Component, Clone)]
pub(super) struct NodeInstances {
    set: Handle<InstanceSet>,
    offset: InstanceOffset,
}

/// Present if [`Instancing`] was installed.
#[derive(Resource)]
struct Installed;

/// Adds what gives the entities of scenes their sets.
pub(super) fn build(app: &mut App) {
    app.register_type::<NodeInstances>().add_observer(give_set);
    install(app);
}

/// Has glTF files loaded with their instances, if the app loads glTF files.
pub(in crate::render) fn install(app: &mut App) {
    if app.world().contains_resource::<Installed>() {
        return;
    }
    if let Some(handlers) = app.world().get_resource::<GltfExtensionHandlers>() {
        let handler = Box::new(Instancing::default());
        block_on(handlers.0.write()).push(handler);
        app.insert_resource(Installed);
    }
}

/// The marker goes, so what the app does with the entity and its clones is not undone.
fn give_set(added: On<Add<NodeInstances>>, nodes: Query<&NodeInstances>, mut commands: Commands) {
    if let Ok(NodeInstances { set, offset }) = nodes.get(added.entity) {
        let mut entity = commands.entity(added.entity);
        entity.try_insert((GpuInstances(set.clone()), *offset));
        entity.try_remove::<NodeInstances>();
    }
}

/// Reads the instances of a file while it is loaded. The loader has a copy per file.
#[derive(Clone, Default)]
struct Instancing {
    /// The sets of nodes by their index; `None` until the file's buffers are there.
    sets: Option<HashMap<usize, Handles>>,
    /// Materials by their label, as Bevy made them.
    materials: HashMap<String, StandardMaterial>,
    /// The same for mirrored meshes.
    mirrored: HashMap<String, Handle<StandardMaterial>>,
    /// The labels of the materials of entities in the scene that is being loaded.
    labels: HashMap<Entity, String>,
}

/// The sets of a node: see [`NodeSets`].
#[derive(Clone)]
struct Handles {
    plain: Option<Handle<InstanceSet>>,
    mirrored: Option<Handle<InstanceSet>>,
}

impl GltfExtensionHandler for Instancing {
    fn dyn_clone(&self) -> Box<dyn ErasedGltfExtensionHandler> {
        Box::new(self.clone())
    }

    fn on_root(
        &mut self,
        load_context: &mut LoadContext<'_>,
        _: &gltf::Gltf,
        _: &GltfLoaderSettings,
    ) {
        self.note_material(load_context, &GltfAssetLabel::DefaultMaterial.to_string());
    }

    fn on_material(
        &mut self,
        load_context: &mut LoadContext<'_>,
        _: &gltf::Material,
        _: Handle<GltfMaterial>,
        _: &GltfMaterial,
        label: &str,
    ) {
        self.note_material(load_context, label);
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
            let sets = sets_of(load_context, file, buffers);
            // Here and not in the scene: what a scene adds cannot be loaded by a path.
            for label in mirrored_labels(file, &sets) {
                self.mirror_material(load_context, &label);
            }
            self.sets = Some(sets);
        }
        async {}
    }

    fn on_spawn_mesh_and_material(
        &mut self,
        _: &mut LoadContext<'_>,
        _: &gltf::Primitive,
        _: &gltf::Mesh,
        _: &gltf::Material,
        entity: &mut EntityWorldMut,
        label: &str,
    ) {
        self.labels.insert(entity.id(), label.to_owned());
    }

    fn on_gltf_node(
        &mut self,
        load_context: &mut LoadContext<'_>,
        node: &gltf::Node,
        entity: &mut EntityWorldMut,
    ) {
        let sets = self.sets.as_ref().and_then(|sets| sets.get(&node.index()));
        let (Some(sets), Some(children)) = (sets.cloned(), entity.get::<Children>()) else {
            return;
        };
        let (parent, children) = (entity.id(), children.to_vec());
        entity.world_scope(|world| {
            for child in children {
                // Other children are nodes.
                let Ok(mut entity) = world.get_entity_mut(child) else {
                    continue;
                };
                if !entity.contains::<Mesh3d>() {
                    continue;
                }
                // The loader may rotate a mesh in its node. The instances are in the node's space.
                let place = entity.get::<Transform>().copied().unwrap_or_default();
                let place = place.compute_affine();
                // The box is the mesh's.
                entity.insert(Transform::IDENTITY).remove::<Aabb>();
                let mirrored = match &sets {
                    Handles {
                        plain: Some(set),
                        mirrored,
                    } => {
                        let twin = mirrored.as_ref().map(|set| {
                            let twin = entity.clone_and_spawn();
                            (twin, set)
                        });
                        entity.insert(NodeInstances {
                            set: set.clone(),
                            offset: place.into(),
                        });
                        twin
                    }
                    Handles { mirrored, .. } => mirrored.as_ref().map(|set| (child, set)),
                };
                if let Some((twin, set)) = mirrored {
                    let mirror = Affine3A::from_scale(Vec3::new(-1.0, 1.0, 1.0));
                    let instances = NodeInstances {
                        set: set.clone(),
                        offset: (mirror * place).into(),
                    };
                    let material = self.mirrored_material(load_context, child);
                    let mut twin = world.entity_mut(twin);
                    twin.insert((instances, ChildOf(parent)));
                    if let Some(material) = material
                        && twin.contains::<MeshMaterial3d<StandardMaterial>>()
                    {
                        twin.insert(MeshMaterial3d(material));
                    }
                }
            }
        });
    }
}

impl Instancing {
    /// Keeps the material that Bevy has just made.
    fn note_material(&mut self, load_context: &LoadContext<'_>, label: &str) {
        let material = load_context.get_labeled(format!("{label}/std"));
        let material = material.and_then(|material| material.get::<StandardMaterial>());
        if let Some(material) = material {
            self.materials.insert(label.to_owned(), material.clone());
        }
    }

    /// The material of an entity for a mirrored mesh, whose triangles are wound the other way.
    /// `None` if the material draws both sides.
    fn mirrored_material(
        &mut self,
        load_context: &mut LoadContext<'_>,
        entity: Entity,
    ) -> Option<Handle<StandardMaterial>> {
        let label = self.labels.get(&entity)?.clone();
        // In a node that mirrors, the mesh's own material is the one that Bevy has mirrored.
        match label.strip_suffix(" (inverted)") {
            Some(plain) if self.materials.contains_key(plain) => {
                Some(load_context.get_label_handle(format!("{plain}/std")))
            }
            _ => self.mirror_material(load_context, &label),
        }
    }

    /// The mirrored material of a label, which is made once.
    fn mirror_material(
        &mut self,
        load_context: &mut LoadContext<'_>,
        label: &str,
    ) -> Option<Handle<StandardMaterial>> {
        if let Some(known) = self.mirrored.get(label) {
            return Some(known.clone());
        }
        let material = self.materials.get(label)?;
        let cull_mode = match material.cull_mode? {
            Face::Front => Face::Back,
            Face::Back => Face::Front,
        };
        let mirrored = StandardMaterial {
            cull_mode: Some(cull_mode),
            ..material.clone()
        };
        let own = format!("{label} (mirrored instances)/std");
        let handle = load_context.add_labeled_asset(own, mirrored);
        self.mirrored.insert(label.to_owned(), handle.clone());
        Some(handle)
    }
}

/// The labels of the materials of meshes with mirrored instances, as Bevy writes them.
fn mirrored_labels(file: &gltf::Document, sets: &HashMap<usize, Handles>) -> Vec<String> {
    let nodes = file.nodes().filter(|node| {
        let sets = sets.get(&node.index());
        sets.is_some_and(|sets| sets.mirrored.is_some())
    });
    nodes
        .filter_map(|node| node.mesh())
        .flat_map(|mesh| mesh.primitives())
        .map(|primitive| match primitive.material().index() {
            None => GltfAssetLabel::DefaultMaterial.to_string(),
            Some(index) => GltfAssetLabel::Material {
                index,
                is_scale_inverted: false,
            }
            .to_string(),
        })
        .collect()
}

/// The sets of a file's nodes.
fn sets_of(
    load_context: &mut LoadContext<'_>,
    file: &gltf::Document,
    buffers: &[Vec<u8>],
) -> HashMap<usize, Handles> {
    let mut handles = HashMap::default();
    for node in file.nodes() {
        if node.extension_value(NAME).is_none() {
            continue;
        }
        let (index, path) = (node.index(), load_context.path().to_string());
        let name = node.name().unwrap_or("without a name");
        let NodeSets {
            plain,
            mirrored,
            left_out,
        } = match read_sets(file, &node, buffers) {
            Ok(sets) => sets,
            Err(problem) => {
                error!(
                    "{path}: the instances of node {index} ({name}) are not drawn, its mesh is drawn once: {NAME}: \
                     {problem}"
                );
                continue;
            }
        };
        for problem in left_out {
            warn!(
                "{path}: data of the instances of node {index} ({name}) is left out: {NAME}: {problem}"
            );
        }
        let mut add = |set: Option<InstanceSet>, name: &str| {
            let label = format!("Node{index}/{name}");
            set.map(|set| load_context.add_labeled_asset(label, set))
        };
        let sets = Handles {
            plain: add(plain, "Instances"),
            mirrored: add(mirrored, "MirroredInstances"),
        };
        handles.insert(index, sets);
    }
    handles
}
