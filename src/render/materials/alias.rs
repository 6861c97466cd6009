//! The material alias: a set's prepared material under a private id, with our pipelines and draw
//! functions.
//!
//! Bevy's specialize and queue systems look up a mesh entity's material by its asset id, and take
//! pipeline and draw function from it. So a set's entity gets a private id, under which lies a copy
//! of the prepared material that differs only in these two. Sets are thereby in every phase that
//! Bevy has.

use super::{
    drawn_by::{Able, Asked, DrawnBy},
    properties::{PhaseFunctions, alias_properties, is_blended},
    settled::{Settled, SettledEntity, SettledMaterial, is_same_binding},
    shader_imports::{InstancedShaders, VertexStage},
};
use crate::render::{
    bindings::storage_buffers_with,
    cpu_times::{CpuClock, CpuStage},
    culler::GpuCuller,
    expanded::can_expand,
    told::Told,
};
use bevy::{
    asset::{UntypedAssetId, uuid::Uuid},
    ecs::system::SystemParam,
    material::MaterialProperties,
    pbr::{
        MaterialBindingId, PreparedMaterial, RenderMaterialBindings, RenderMaterialInstances,
        wireframe::RenderWireframeInstances,
    },
    platform::collections::{HashMap, hash_map::Entry},
    prelude::*,
    render::{
        camera::DirtySpecializations,
        erased_render_asset::ErasedRenderAssets,
        sync_world::{MainEntity, MainEntityHashMap, MainEntityHashSet},
    },
};
use std::sync::Arc;

/// Private ids count up from here.
const FIRST_ALIAS: u128 = 0x6770_755f_6375_6c6c_696e_6700_0000_0000;

/// The aliases in use.
#[derive(Resource, Default)]
pub(in crate::render) struct MaterialAliases {
    aliases: HashMap<AliasKey, Alias>,
    /// The material's own id, by the alias's.
    originals: HashMap<UntypedAssetId, UntypedAssetId>,
    /// Entities that have an alias.
    entities: MainEntityHashMap<Aliased>,
    /// Number of aliases made so far.
    made: u128,
    /// Materials of which the log says why sets with them are not drawn.
    told: Told<AliasKey>,
    /// Entities that are drawn from a `MeshUniform` per survivor.
    pub expanded: MainEntityHashSet,
    /// Entities whose instances fade.
    pub fading: MainEntityHashSet,
    /// Entities whose material is blended or transmissive.
    pub blended: MainEntityHashSet,
    /// Number of runs so far.
    run: u64,
    /// The materials of sets.
    known: KnownMaterials,
    /// Entities with a lightmap in the last run.
    lightmapped: MainEntityHashSet,
    /// What the last run found.
    settled: Settled,
}

/// A material and how it is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct AliasKey {
    /// The material's own id.
    original: UntypedAssetId,
    drawn: DrawnBy,
}

/// An alias, and what it was copied from: a changed material has other properties or another
/// binding.
struct Alias {
    id: UntypedAssetId,
    properties: Arc<MaterialProperties>,
    binding: MaterialBindingId,
}

/// An entity with an alias.
struct Aliased {
    /// The alias's id.
    alias: UntypedAssetId,
    /// The material's own id.
    original: UntypedAssetId,
    /// The last run that met the entity.
    run: u64,
    /// Whether sets with the material are drawn.
    is_drawn: bool,
}

/// What runs found out about a material. Many sets share few materials.
struct KnownMaterial {
    /// The last run that met the material.
    run: u64,
    /// The properties that `vertex` was read from: a changed material has others.
    properties: Arc<MaterialProperties>,
    vertex: VertexStage,
    /// Number of storage buffers of the vertex stage, with ours.
    buffers: u32,
    /// The material's aliases in that run, by [`DrawnBy`].
    aliases: [Option<AliasId>; DrawnBy::COUNT],
}

/// The id of an alias.
#[derive(Clone, Copy)]
struct AliasId {
    id: UntypedAssetId,
    /// Whether this run has made the alias.
    is_new: bool,
}

/// Materials by their own id.
type KnownMaterials = HashMap<UntypedAssetId, KnownMaterial>;

/// Bevy's materials, in which the aliases are filed.
#[derive(SystemParam)]
pub(in crate::render) struct Materials<'w> {
    instances: ResMut<'w, RenderMaterialInstances>,
    prepared: ResMut<'w, ErasedRenderAssets<PreparedMaterial>>,
    bindings: ResMut<'w, RenderMaterialBindings>,
    dirty: ResMut<'w, DirtySpecializations>,
}

/// Gives every entity with a set an alias of its material, and takes it back when the set is gone.
pub(in crate::render) fn alias_materials(
    gpu: Res<GpuCuller>,
    shaders: Res<InstancedShaders>,
    mut aliases: ResMut<MaterialAliases>,
    mut bevys: Materials,
    wireframes: Option<Res<RenderWireframeInstances>>,
    functions: PhaseFunctions,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Materials);
    if gpu.entities.is_empty() && aliases.entities.is_empty() {
        return;
    }
    let aliases = &mut *aliases;
    let able = Able {
        is_on: gpu.culler.is_some(),
        can_expand: can_expand(gpu.culler.as_ref()),
        vertex_buffers: gpu.vertex_buffers,
    };
    // Bevy's wireframes, too, read one MeshUniform per instance.
    let asked = |entity: &MainEntity| {
        let wired = wireframes.as_ref();
        let is_wired = wired.is_some_and(|wired| wired.contains_key(entity));
        Asked {
            expanded: is_wired || gpu.asks_expanded.contains(entity),
            fading: gpu.fading.contains(entity),
        }
    };
    let settled = &aliases.settled;
    let (instances, prepared) = (&bevys.instances, &bevys.prepared);
    if !shaders.is_changed()
        && aliases.lightmapped == gpu.lightmapped
        && settled.holds(&gpu.entities, able, asked, instances, prepared)
    {
        return;
    }
    aliases.settled.entities.clear();
    aliases.settled.able = able;
    aliases.lightmapped.clone_from(&gpu.lightmapped);
    aliases.run += 1;
    aliases.expanded.clear();
    aliases.blended.clear();
    aliases.fading.clear();
    let mut all_known = core::mem::take(&mut aliases.known);
    if shaders.is_changed() {
        // A shader that was loaded or changed may read instances.
        all_known.clear();
    }
    let mut count = 0;
    for entity in &gpu.entities {
        let Some(instance) = bevys.instances.instances.get(entity) else {
            aliases.settled.entities.push(SettledEntity {
                entity: *entity,
                material: None,
            });
            continue;
        };
        let asset_id = instance.asset_id;
        let original = aliases.original_of(entity, asset_id);
        let Some(material) = bevys.prepared.get(original) else {
            continue;
        };
        let (properties, binding) = (material.properties.clone(), material.binding);
        let known = meet(&mut all_known, aliases.run, original, &properties, &shaders);
        let asked = asked(entity);
        let drawn = match gpu.lightmapped.contains(entity) {
            true => DrawnBy::Off,
            false => DrawnBy::new(known.vertex, known.buffers, asked, able),
        };
        match drawn {
            DrawnBy::Expanded => aliases.expanded.insert(*entity),
            DrawnBy::Fading => aliases.fading.insert(*entity),
            _ => false,
        };
        if is_blended(&properties) {
            aliases.blended.insert(*entity);
        }
        let key = AliasKey { original, drawn };
        let AliasId { id: alias, is_new } =
            *known.aliases[drawn as usize].get_or_insert_with(|| {
                aliases.id_of(key, &properties, binding, &mut bevys, &functions)
            });
        if asset_id != alias || is_new {
            if let Some(instance) = bevys.instances.instances.get_mut(entity) {
                instance.asset_id = alias;
            }
            bevys.dirty.changed_renderables.insert(*entity);
        }
        count += 1;
        aliases.settled.entities.push(SettledEntity {
            entity: *entity,
            material: Some(SettledMaterial {
                alias,
                original,
                properties,
                binding,
                asked,
            }),
        });
        let aliased = Aliased {
            alias,
            original,
            run: aliases.run,
            is_drawn: drawn.is_drawn(),
        };
        aliases.entities.insert(*entity, aliased);
    }
    // Otherwise every aliased entity was visited, so none lost its set.
    if count < aliases.entities.len() {
        aliases.give_back(&gpu, &mut bevys);
    }
    all_known.retain(|_, known| known.run == aliases.run);
    aliases.sweep(&all_known, &mut bevys);
    aliases.known = all_known;
}

/// What is known of a material, in this run.
fn meet<'a>(
    all_known: &'a mut KnownMaterials,
    run: u64,
    original: UntypedAssetId,
    properties: &Arc<MaterialProperties>,
    shaders: &InstancedShaders,
) -> &'a mut KnownMaterial {
    let entry = all_known.entry(original);
    let before = match entry {
        Entry::Occupied(known) if known.get().run == run => return known.into_mut(),
        Entry::Occupied(ref known) => Some(known.get()),
        Entry::Vacant(_) => None,
    };
    // The stages of an unchanged material need not be looked up again.
    let vertex = before
        .filter(|known| Arc::ptr_eq(&known.properties, properties))
        .map_or_else(|| shaders.vertex_stage(properties), |known| known.vertex);
    let known = KnownMaterial {
        run,
        buffers: storage_buffers_with(properties),
        properties: properties.clone(),
        vertex,
        aliases: [None; DrawnBy::COUNT],
    };
    entry.insert(known).into_mut()
}

impl MaterialAliases {
    /// Whether the entity has a material that draws its set.
    pub fn can_draw(&self, entity: MainEntity) -> bool {
        let aliased = self.entities.get(&entity);
        aliased.is_some_and(|aliased| aliased.is_drawn && aliased.run == self.run)
    }

    /// The material's own id of an entity with this asset id, which may be an alias.
    fn original_of(&self, entity: &MainEntity, id: UntypedAssetId) -> UntypedAssetId {
        match self.entities.get(entity) {
            Some(known) if known.alias == id => known.original,
            _ => *self.originals.get(&id).unwrap_or(&id),
        }
    }

    /// The alias of a material. It is made unless there is one of the material as it is.
    fn id_of(
        &mut self,
        key: AliasKey,
        properties: &Arc<MaterialProperties>,
        binding: MaterialBindingId,
        bevys: &mut Materials,
        functions: &PhaseFunctions,
    ) -> AliasId {
        let known = self.aliases.get(&key);
        if let Some(alias) = known
            && Arc::ptr_eq(&alias.properties, properties)
            && is_same_binding(alias.binding, binding)
        {
            return AliasId {
                id: alias.id,
                is_new: false,
            };
        }
        let id = known.map(|alias| alias.id).unwrap_or_else(|| {
            self.made += 1;
            UntypedAssetId::Uuid {
                type_id: key.original.type_id(),
                uuid: Uuid::from_u128(FIRST_ALIAS + self.made),
            }
        });
        if self.told.is_new(key) {
            key.drawn.log(key.original);
        }
        let copy = Arc::new(alias_properties(properties, key.drawn, functions));
        let prepared = PreparedMaterial {
            binding,
            properties: copy,
        };
        bevys.prepared.insert(id, prepared);
        bevys.bindings.insert(id, binding);
        self.originals.insert(id, key.original);
        let alias = Alias {
            id,
            properties: properties.clone(),
            binding,
        };
        self.aliases.insert(key, alias);
        AliasId { id, is_new: true }
    }

    /// Gives entities that lost their set their own material again.
    fn give_back(&mut self, gpu: &GpuCuller, bevys: &mut Materials) {
        // Entities that still have a set, but no material at present, keep their alias.
        let still: MainEntityHashSet = gpu.entities.iter().copied().collect();
        let run = self.run;
        let lost = self
            .entities
            .extract_if(|entity, aliased| aliased.run != run && !still.contains(entity));
        for (entity, Aliased { original, .. }) in lost {
            if let Some(instance) = bevys.instances.instances.get_mut(&entity)
                && self.originals.contains_key(&instance.asset_id)
            {
                instance.asset_id = original;
                bevys.dirty.changed_renderables.insert(entity);
            }
        }
    }

    /// Drops the aliases that no set uses.
    fn sweep(&mut self, all_known: &KnownMaterials, bevys: &mut Materials) {
        let originals = &mut self.originals;
        self.aliases.retain(|key, alias| {
            let known = all_known.get(&key.original);
            let keep = known.is_some_and(|known| known.aliases[key.drawn as usize].is_some());
            if !keep {
                bevys.prepared.remove(alias.id);
                bevys.bindings.remove(&alias.id);
                originals.remove(&alias.id);
            }
            keep
        });
    }
}
