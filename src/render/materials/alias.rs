//! The material alias: a set's prepared material under a private id, with our pipelines and draw
//! functions.
//!
//! Bevy's specialize and queue systems look up a mesh entity's material by its asset id, and take
//! pipeline and draw function from it. So a set's entity gets a private id, under which lies a copy
//! of the prepared material that differs only in these two. Sets are thereby in every phase that
//! Bevy has.
//!
//! This file is long because aliases are counted as they are given: each is dropped with its
//! last entity.

use super::{
    draw_mode::{DeviceSupport, DrawMode, EntityNeeds},
    properties::{PhaseFunctions, alias_properties, is_blended},
    reshown::ReshownSets,
    settled::{SettledMaterial, StableInputs, is_same_binding},
    shader_imports::{InstancedShaders, VertexStage},
    used::UsedAlias,
};
use crate::render::{
    bindings::storage_buffers_with,
    cpu_times::{CpuClock, CpuStage},
    culler::GpuCuller,
    expanded::can_expand,
    extract::SetLists,
    told::Told,
};
use bevy::{
    asset::{UntypedAssetId, uuid::Uuid},
    ecs::system::SystemParam,
    material::MaterialProperties,
    pbr::{PreparedMaterial, RenderMaterialInstances, wireframe::RenderWireframeInstances},
    platform::collections::HashMap,
    prelude::*,
    render::{
        camera::DirtySpecializations,
        erased_render_asset::ErasedRenderAssets,
        material_bind_groups::{MaterialBindingId, RenderMaterialBindings},
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
    entities: MainEntityHashMap<EntityAlias>,
    /// Number of aliases made so far.
    alias_count: u128,
    /// Materials of which the log says why sets with them are not drawn.
    told: Told<AliasKey>,
    /// Entities that are drawn from a `MeshUniform` per survivor.
    pub expanded: MainEntityHashSet,
    /// Entities whose instances fade.
    pub fading: MainEntityHashSet,
    /// Entities whose material is blended or transmissive.
    pub blended: MainEntityHashSet,
    /// The entities that the last run looked at, because they were new, or their material was.
    pub visited: MainEntityHashSet,
    /// Number of runs so far.
    run: u64,
    /// The materials that have aliases. Many sets share few materials.
    known: HashMap<UntypedAssetId, KnownMaterial>,
    /// Aliases that lost their last entity.
    unused: Vec<AliasKey>,
    /// What the device could do in the last run.
    able: DeviceSupport,
    /// What the last run found.
    settled: MainEntityHashMap<SettledMaterial>,
    /// Those whose material was not prepared.
    waiting: Vec<MainEntity>,
    /// [`SetLists::listed_in`](crate::render::extract::SetLists) of the last run; `None` if it met
    /// wireframes.
    listed_in: Option<u64>,
    /// The number of the extraction before the last run.
    extracted_in: u64,
}

/// A material and how it is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct AliasKey {
    /// The material's own id.
    original: UntypedAssetId,
    drawn: DrawMode,
}

/// An alias, and what it was copied from: a changed material has other properties or another
/// binding.
struct Alias {
    id: UntypedAssetId,
    properties: Arc<MaterialProperties>,
    binding: MaterialBindingId,
    /// Number of entities that have it.
    users: usize,
    /// The run that made the copy.
    made_in: u64,
}

/// An entity with an alias.
struct EntityAlias {
    key: AliasKey,
    /// The alias's id.
    alias: UntypedAssetId,
    /// Whether the entity has the material at present. If not, it keeps the id only.
    is_used: bool,
}

/// What runs found out about a material.
struct KnownMaterial {
    /// The properties that `vertex` was read from: a changed material has others.
    properties: Arc<MaterialProperties>,
    vertex: VertexStage,
    /// Number of storage buffers of the vertex stage, with ours.
    buffers: u32,
    /// Number of its aliases.
    aliases: usize,
}

/// Bevy's materials, in which the aliases are filed.
#[derive(SystemParam)]
pub(in crate::render) struct Materials<'w> {
    instances: ResMut<'w, RenderMaterialInstances>,
    prepared: ResMut<'w, ErasedRenderAssets<PreparedMaterial>>,
    bindings: ResMut<'w, RenderMaterialBindings>,
    dirty: ResMut<'w, DirtySpecializations>,
}

/// Gives every entity with a set an alias of its material, and takes it back when the set is gone.
/// Entities for which nothing has changed are left alone.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn alias_materials(
    culling: Res<GpuCuller>,
    mut reshown: ResMut<ReshownSets>,
    shaders: Res<InstancedShaders>,
    mut aliases: ResMut<MaterialAliases>,
    mut bevys: Materials,
    wireframes: Option<Res<RenderWireframeInstances>>,
    functions: PhaseFunctions,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Materials);
    let aliases = &mut *aliases;
    aliases.visited.clear();
    let reshown = reshown.take();
    let (lists, now) = (&culling.extraction.lists, culling.extraction.frame);
    let is_next = core::mem::replace(&mut aliases.extracted_in, now) + 1 == now;
    if lists.entities.is_empty() && aliases.settled.is_empty() && aliases.entities.is_empty() {
        return;
    }
    let able = DeviceSupport {
        is_on: culling.culler.is_some(),
        can_expand: can_expand(culling.culler.as_ref()),
        vertex_buffers: culling.vertex_buffers,
    };
    // Bevy's wireframes, too, read one MeshUniform per instance.
    let asked = |entity: &MainEntity| {
        let wired = wireframes.as_ref();
        let is_wired = wired.is_some_and(|wired| wired.contains_key(entity));
        EntityNeeds {
            expanded: is_wired || lists.asks_expanded.contains(entity),
            fading: lists.fading.contains(entity),
            lightmap: lists.lightmapped.contains(entity),
        }
    };
    let all_change = shaders.is_changed() || aliases.able != able;
    if shaders.is_changed() {
        // A shader that was loaded or changed may read instances.
        for known in aliases.known.values_mut() {
            known.vertex = shaders.vertex_stage(&known.properties);
        }
    }
    aliases.able = able;
    aliases.run += 1;
    let has_wireframes = wireframes.as_ref().is_some_and(|wired| !wired.is_empty());
    let listed_in = (!has_wireframes).then_some(lists.listed_in);
    let stays = StableInputs {
        asked: is_next && listed_in.is_some() && aliases.listed_in == listed_in,
        materials: !bevys.prepared.is_changed(),
    };
    aliases.listed_in = listed_in;
    let is_known = !all_change && stays.asked && stays.materials;
    let entities = match is_known {
        true => aliases.changed(&reshown, lists, &bevys.dirty),
        false => aliases.start_again(lists),
    };
    for entity in entities {
        let asked_as_before = stays.asked && !lists.changed_entities.contains(&entity);
        let (instances, prepared) = (&bevys.instances, &bevys.prepared);
        let stays = StableInputs {
            asked: asked_as_before,
            ..stays
        };
        let holds = |known: &SettledMaterial| {
            known.holds(entity, stays, || asked(&entity), instances, prepared)
        };
        if !all_change && aliases.settled.get(&entity).is_some_and(holds) {
            continue;
        }
        let asked = asked(&entity);
        let found = aliases.visit(entity, asked, &shaders, &mut bevys, &functions);
        if matches!(found, SettledMaterial::Waits) {
            aliases.waiting.push(entity);
        }
        aliases.settled.insert(entity, found);
    }
    if stays.asked {
        let gone = lists.changed_entities.iter();
        for entity in gone.filter(|entity| !lists.entities.contains(*entity)) {
            aliases.give_back(*entity, &mut bevys);
        }
    } else {
        aliases.give_all_back(lists, &mut bevys);
    }
    aliases.sweep(&mut bevys);
}

impl MaterialAliases {
    /// Starts to look at all entities: the list, what they ask for or some material is another one.
    /// Returns them.
    fn start_again(&mut self, lists: &SetLists) -> Vec<MainEntity> {
        let entities = &lists.entities;
        self.settled.retain(|entity, _| entities.contains(entity));
        self.waiting.clear();
        entities.iter().copied().collect()
    }

    /// The entities with sets that may have another material than in the last run, or may ask for
    /// something else.
    fn changed(
        &mut self,
        reshown: &[MainEntity],
        lists: &SetLists,
        dirty: &DirtySpecializations,
    ) -> Vec<MainEntity> {
        let mut entities = core::mem::take(&mut self.waiting);
        let dirty = (dirty.changed_renderables.iter()).chain(&dirty.removed_renderables);
        let others = reshown.iter().chain(dirty).chain(&lists.changed_entities);
        entities.extend(others);
        entities.retain(|entity| lists.entities.contains(entity));
        entities.sort_unstable();
        entities.dedup();
        entities
    }

    /// Whether the entity has a material that draws its set.
    pub fn can_draw(&self, entity: MainEntity) -> bool {
        let aliased = self.entities.get(&entity);
        aliased.is_some_and(|aliased| aliased.is_used && aliased.key.drawn.is_drawn())
    }

    /// The alias with which an entity is drawn; `None` if it has no material at present.
    pub fn used_by(&self, entity: MainEntity) -> Option<UsedAlias> {
        let aliased = self.entities.get(&entity).filter(|known| known.is_used)?;
        let alias = self.aliases.get(&aliased.key)?;
        Some(UsedAlias {
            id: alias.id,
            made_in: alias.made_in,
        })
    }

    /// Gives an entity the alias of its material.
    fn visit(
        &mut self,
        entity: MainEntity,
        asked: EntityNeeds,
        shaders: &InstancedShaders,
        bevys: &mut Materials,
        functions: &PhaseFunctions,
    ) -> SettledMaterial {
        self.visited.insert(entity);
        let Some(instance) = bevys.instances.instances.get(&entity) else {
            self.leave(entity);
            return SettledMaterial::None;
        };
        let asset_id = instance.asset_id;
        let original = self.original_of(entity, asset_id);
        let Some(material) = bevys.prepared.get(original) else {
            self.leave(entity);
            return SettledMaterial::Waits;
        };
        let (properties, binding) = (material.properties.clone(), material.binding);
        let (vertex, buffers) = self.meet(original, &properties, shaders);
        let drawn = DrawMode::new(vertex, buffers, asked, self.able);
        for (set, is_in) in [
            (&mut self.expanded, drawn == DrawMode::Expanded),
            (&mut self.fading, drawn == DrawMode::Fading),
            (&mut self.blended, is_blended(&properties)),
        ] {
            if is_in {
                set.insert(entity);
            } else {
                set.remove(&entity);
            }
        }
        let key = AliasKey { original, drawn };
        let alias = self.id_of(key, &properties, binding, bevys, functions);
        let is_new = self.use_alias(entity, key, alias);
        if asset_id != alias || is_new {
            if let Some(instance) = bevys.instances.instances.get_mut(&entity) {
                instance.asset_id = alias;
            }
            bevys.dirty.changed_renderables.insert(entity);
        }
        SettledMaterial::Aliased {
            alias,
            original,
            properties,
            binding,
            asked,
        }
    }

    /// Notes that an entity has no material at present. If it has an alias's id, it keeps that.
    fn leave(&mut self, entity: MainEntity) {
        for set in [&mut self.expanded, &mut self.fading, &mut self.blended] {
            set.remove(&entity);
        }
        if let Some(aliased) = self.entities.get_mut(&entity)
            && core::mem::take(&mut aliased.is_used)
        {
            let key = aliased.key;
            self.release(key);
        }
    }

    /// Notes that an entity has an alias. Returns whether this run has made the alias.
    fn use_alias(&mut self, entity: MainEntity, key: AliasKey, alias: UntypedAssetId) -> bool {
        let aliased = EntityAlias {
            key,
            alias,
            is_used: true,
        };
        let before = self.entities.insert(entity, aliased);
        let before = before.filter(|before| before.is_used);
        let Some(alias) = self.aliases.get_mut(&key) else {
            return false;
        };
        let is_new = alias.made_in == self.run;
        if before.as_ref().is_some_and(|before| before.key == key) {
            return is_new;
        }
        alias.users += 1;
        if let Some(before) = before {
            self.release(before.key);
        }
        is_new
    }

    /// Notes that an entity has lost an alias.
    fn release(&mut self, key: AliasKey) {
        if let Some(alias) = self.aliases.get_mut(&key) {
            alias.users -= 1;
            if alias.users == 0 {
                self.unused.push(key);
            }
        }
    }

    /// What is known of a material: its vertex stage, and the number of that stage's storage
    /// buffers.
    fn meet(
        &mut self,
        original: UntypedAssetId,
        properties: &Arc<MaterialProperties>,
        shaders: &InstancedShaders,
    ) -> (VertexStage, u32) {
        let read = || KnownMaterial {
            properties: properties.clone(),
            vertex: shaders.vertex_stage(properties),
            buffers: storage_buffers_with(properties),
            aliases: 0,
        };
        let known = self.known.entry(original).or_insert_with(read);
        // The stages of an unchanged material need not be looked up again.
        if !Arc::ptr_eq(&known.properties, properties) {
            let aliases = known.aliases;
            *known = KnownMaterial { aliases, ..read() };
        }
        (known.vertex, known.buffers)
    }

    /// The material's own id of an entity with this asset id, which may be an alias.
    fn original_of(&self, entity: MainEntity, id: UntypedAssetId) -> UntypedAssetId {
        match self.entities.get(&entity) {
            Some(known) if known.alias == id => known.key.original,
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
    ) -> UntypedAssetId {
        let known = self.aliases.get(&key);
        if let Some(alias) = known
            && Arc::ptr_eq(&alias.properties, properties)
            && is_same_binding(alias.binding, binding)
        {
            return alias.id;
        }
        let users = known.map_or(0, |alias| alias.users);
        let id = known.map(|alias| alias.id).unwrap_or_else(|| {
            self.alias_count += 1;
            UntypedAssetId::Uuid {
                type_id: key.original.type_id(),
                uuid: Uuid::from_u128(FIRST_ALIAS + self.alias_count),
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
            users,
            made_in: self.run,
        };
        if self.aliases.insert(key, alias).is_none()
            && let Some(known) = self.known.get_mut(&key.original)
        {
            known.aliases += 1;
        }
        id
    }

    /// Gives all entities that lost their set their own material again. Entities that still have a
    /// set, but no material at present, keep their alias.
    fn give_all_back(&mut self, lists: &SetLists, bevys: &mut Materials) {
        let all = self.entities.keys().copied();
        let lost: Vec<_> = all
            .filter(|entity| !lists.entities.contains(entity))
            .collect();
        for entity in lost {
            self.give_back(entity, bevys);
        }
    }

    /// Gives an entity that lost its set its own material again.
    fn give_back(&mut self, entity: MainEntity, bevys: &mut Materials) {
        self.settled.remove(&entity);
        self.leave(entity);
        let Some(EntityAlias { key, alias, .. }) = self.entities.remove(&entity) else {
            return;
        };
        if let Some(instance) = bevys.instances.instances.get_mut(&entity)
            && instance.asset_id == alias
        {
            instance.asset_id = key.original;
        }
        // Bevy keeps the pipelines of entities that are hidden.
        bevys.dirty.changed_renderables.insert(entity);
    }

    /// Drops the aliases that no entity has.
    fn sweep(&mut self, bevys: &mut Materials) {
        for key in core::mem::take(&mut self.unused) {
            let Some(alias) = self.aliases.get(&key).filter(|alias| alias.users == 0) else {
                continue;
            };
            bevys.prepared.remove(alias.id);
            bevys.bindings.remove(&alias.id);
            self.originals.remove(&alias.id);
            self.aliases.remove(&key);
            if let Some(known) = self.known.get_mut(&key.original) {
                known.aliases -= 1;
                if known.aliases == 0 {
                    self.known.remove(&key.original);
                }
            }
        }
    }
}
