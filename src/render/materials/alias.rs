//! The material alias: a set's prepared material under a private id, with our pipelines and draw functions.
//!
//! Bevy's specialise and queue systems look a mesh entity's material up by its asset id and take pipeline and
//! draw function from what they find. So a set's entity is given an id of ours, under which lies a copy of the
//! prepared material that differs in just those two; every phase that Bevy has then comes along.

use super::{
    pipeline::{specialize_set, specialize_set_prepass},
    settled::{Able, Settled, SettledMaterial},
    shader_imports::{InstancedShaders, VertexStage},
};
use crate::render::{
    bindings::storage_buffers_with,
    cpu_times::{CpuClock, CpuStage},
    culler::GpuCuller,
    draw::{DrawSet, DrawSetDepthOnly, DrawSetPrepass},
    expanded::can_write,
};
use bevy::{
    asset::{UntypedAssetId, uuid::Uuid},
    core_pipeline::{
        core_3d::{AlphaMask3d, Opaque3d, Transparent3d},
        deferred::{AlphaMask3dDeferred, Opaque3dDeferred},
        prepass::{AlphaMask3dPrepass, Opaque3dPrepass},
    },
    ecs::system::SystemParam,
    material::MaterialProperties,
    pbr::{wireframe::RenderWireframeInstances, *},
    platform::collections::{HashMap, HashSet, hash_map::Entry},
    prelude::*,
    render::{
        camera::DirtySpecializations,
        erased_render_asset::ErasedRenderAssets,
        render_phase::DrawFunctions,
        sync_world::{MainEntity, MainEntityHashMap, MainEntityHashSet},
    },
};
use std::sync::Arc;

/// Private ids count up from here.
const FIRST_ALIAS: u128 = 0x6770_755f_6375_6c6c_696e_6700_0000_0000;

/// The aliases in use.
#[derive(Resource, Default)]
pub(in crate::render) struct MaterialAliases {
    /// By the material's own id, and how it is drawn.
    aliases: HashMap<(UntypedAssetId, DrawnBy), Alias>,
    /// The material's own id, by the alias's.
    originals: HashMap<UntypedAssetId, UntypedAssetId>,
    /// Entities that have an alias, to take it back.
    entities: MainEntityHashMap<Aliased>,
    made: u128,
    /// Materials of which the log says why sets with them are not drawn.
    told: HashSet<(UntypedAssetId, DrawnBy)>,
    /// Entities that are drawn by Bevy's own vertex stages.
    pub expanded: MainEntityHashSet,
    /// Counts runs.
    run: u64,
    /// Materials of sets, by their own id: many sets share few of them.
    met: AllMet,
    /// Entities with a lightmap in the last run.
    lightmapped: MainEntityHashSet,
    /// What the last run has found.
    settled: Settled,
}

/// An entity with an alias.
struct Aliased {
    /// The alias's id.
    alias: UntypedAssetId,
    /// Its material's own id.
    original: UntypedAssetId,
    /// The last run that met it.
    run: u64,
}

/// How a set's material is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum DrawnBy {
    /// A vertex stage that reads instances.
    Instances,
    /// Bevy's own pipelines, from a `MeshUniform` for each survivor.
    Expanded,
    /// Not at all: a shader is not loaded yet.
    Loading,
    /// Not at all: nobody could write the uniforms that its vertex stage wants.
    Refused,
    /// Not at all: its vertex stages want to be drawn in two ways.
    Mixed,
    /// Not at all: with ours, its vertex stage has more storage buffers than the device binds.
    Crowded,
    /// Not at all: the device draws no sets, or not this one.
    Off,
}

impl DrawnBy {
    /// How many ways there are.
    const COUNT: usize = Self::Off as usize + 1;

    fn new((vertex, buffers): (VertexStage, u32), asked: bool, able: Able) -> Self {
        let can_write = able.can_write;
        match vertex {
            _ if !able.is_on => Self::Off,
            VertexStage::Loading => Self::Loading,
            VertexStage::Mixed => Self::Mixed,
            VertexStage::Foreign if can_write => Self::Expanded,
            VertexStage::Foreign => Self::Refused,
            VertexStage::Default if asked && can_write => Self::Expanded,
            _ if buffers > able.vertex_buffers => Self::Crowded,
            VertexStage::Default | VertexStage::Instanced => Self::Instances,
        }
    }
}

struct Alias {
    id: UntypedAssetId,
    /// What it was copied from: a changed material has new properties or another binding.
    properties: Arc<MaterialProperties>,
    binding: (u32, u32),
}

/// What runs have found out about a material.
struct Met {
    /// The last run that met it.
    run: u64,
    /// What `vertex` is known of: a changed material has new properties.
    properties: Arc<MaterialProperties>,
    vertex: VertexStage,
    /// Storage buffers of its vertex stage, with ours.
    buffers: u32,
    /// Its aliases in that run, by [`DrawnBy`], and whether they were made anew.
    aliases: [Option<(UntypedAssetId, bool)>; DrawnBy::COUNT],
}

type AllMet = HashMap<UntypedAssetId, Met>;

/// The phases' draw functions.
#[derive(SystemParam)]
pub(in crate::render) struct PhaseFunctions<'w> {
    opaque: Res<'w, DrawFunctions<Opaque3d>>,
    mask: Res<'w, DrawFunctions<AlphaMask3d>>,
    transmissive: Res<'w, DrawFunctions<Transmissive3d>>,
    transparent: Res<'w, DrawFunctions<Transparent3d>>,
    prepass: Res<'w, DrawFunctions<Opaque3dPrepass>>,
    prepass_mask: Res<'w, DrawFunctions<AlphaMask3dPrepass>>,
    deferred: Res<'w, DrawFunctions<Opaque3dDeferred>>,
    deferred_mask: Res<'w, DrawFunctions<AlphaMask3dDeferred>>,
    shadow: Res<'w, DrawFunctions<Shadow>>,
}

/// Gives every entity with a set an alias of its material, and takes it back when it has no set any more.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn alias_materials(
    gpu: Res<GpuCuller>,
    shaders: Res<InstancedShaders>,
    mut aliases: ResMut<MaterialAliases>,
    mut instances: ResMut<RenderMaterialInstances>,
    mut materials: ResMut<ErasedRenderAssets<PreparedMaterial>>,
    mut bindings: ResMut<RenderMaterialBindings>,
    mut dirty: ResMut<DirtySpecializations>,
    wireframes: Option<Res<RenderWireframeInstances>>,
    functions: PhaseFunctions,
    clock: Res<CpuClock>,
) {
    let _running = clock.start(CpuStage::Materials);
    if gpu.entities.is_empty() && aliases.entities.is_empty() {
        return;
    }
    let aliases = &mut *aliases;
    let able = Able {
        is_on: gpu.culler.is_some(),
        can_write: can_write(gpu.culler.as_ref()),
        vertex_buffers: gpu.vertex_buffers,
    };
    // Bevy's wireframes, too, read a MeshUniform for each instance.
    let asked = |entity: &MainEntity| {
        let wired = wireframes.as_ref();
        wired.is_some_and(|wired| wired.contains_key(entity)) || gpu.asks_expanded.contains(entity)
    };
    let settled = &aliases.settled;
    if !shaders.is_changed()
        && aliases.lightmapped == gpu.lightmapped
        && settled.holds(&gpu.entities, able, asked, &instances, &materials)
    {
        return;
    }
    aliases.settled.entities.clear();
    aliases.settled.able = able;
    aliases.lightmapped.clone_from(&gpu.lightmapped);
    aliases.run += 1;
    let run = aliases.run;
    aliases.expanded.clear();
    let mut all_met = core::mem::take(&mut aliases.met);
    if shaders.is_changed() {
        // A shader that was loaded later, or has changed, may read instances.
        all_met.clear();
    }
    let mut count = 0;
    for entity in &gpu.entities {
        let Some(instance) = instances.instances.get_mut(entity) else {
            aliases.settled.entities.push((*entity, None));
            continue;
        };
        let original = match aliases.entities.get(entity) {
            Some(known) if known.alias == instance.asset_id => known.original,
            _ => *aliases
                .originals
                .get(&instance.asset_id)
                .unwrap_or(&instance.asset_id),
        };
        let met = match all_met.entry(original) {
            Entry::Occupied(met) if met.get().run == run => met.into_mut(),
            entry => {
                let Some(material) = materials.get(original) else {
                    continue;
                };
                let known = match &entry {
                    Entry::Occupied(met) => Some(met.get()),
                    Entry::Vacant(_) => None,
                };
                // A material has many shaders to ask for.
                let vertex = known
                    .filter(|met| Arc::ptr_eq(&met.properties, &material.properties))
                    .map_or_else(
                        || shaders.vertex_stage(&material.properties),
                        |met| met.vertex,
                    );
                entry
                    .insert(Met {
                        run,
                        buffers: storage_buffers_with(&material.properties),
                        properties: material.properties.clone(),
                        vertex,
                        aliases: [None; DrawnBy::COUNT],
                    })
                    .into_mut()
            }
        };
        let asked = asked(entity);
        let drawn = match gpu.lightmapped.contains(entity) {
            true => DrawnBy::Off,
            false => DrawnBy::new((met.vertex, met.buffers), asked, able),
        };
        if drawn == DrawnBy::Expanded {
            aliases.expanded.insert(*entity);
        }
        let alias = &mut met.aliases[drawn as usize];
        let Some(material) = materials.get(original) else {
            continue;
        };
        let (properties, binding) = (material.properties.clone(), material.binding);
        let (id, is_new) = match *alias {
            Some(known) => known,
            None => *alias.insert(aliases.id_of(
                (original, drawn),
                &properties,
                binding,
                &mut materials,
                &mut bindings,
                &functions,
            )),
        };
        if instance.asset_id != id || is_new {
            instance.asset_id = id;
            dirty.changed_renderables.insert(*entity);
        }
        count += 1;
        let known = SettledMaterial {
            alias: id,
            original,
            properties,
            binding,
            asked,
        };
        aliases.settled.entities.push((*entity, Some(known)));
        let aliased = Aliased {
            alias: id,
            original,
            run,
        };
        aliases.entities.insert(*entity, aliased);
    }
    // All that have an alias were met: none has lost its set.
    if count < aliases.entities.len() {
        aliases.give_back(&gpu, &mut instances, &mut dirty);
    }
    all_met.retain(|_, met| met.run == run);
    aliases.sweep(&all_met, &mut materials, &mut bindings);
    aliases.met = all_met;
}

impl MaterialAliases {
    /// The alias of a material, and whether it was made anew.
    fn id_of(
        &mut self,
        (original, drawn): (UntypedAssetId, DrawnBy),
        properties: &Arc<MaterialProperties>,
        binding: MaterialBindingId,
        materials: &mut ErasedRenderAssets<PreparedMaterial>,
        bindings: &mut RenderMaterialBindings,
        functions: &PhaseFunctions,
    ) -> (UntypedAssetId, bool) {
        let place = (binding.group.0, binding.slot.0);
        let known = self.aliases.get(&(original, drawn));
        if let Some(alias) = known
            && Arc::ptr_eq(&alias.properties, properties)
            && alias.binding == place
        {
            return (alias.id, false);
        }
        let id = known.map(|alias| alias.id).unwrap_or_else(|| {
            self.made += 1;
            UntypedAssetId::Uuid {
                type_id: original.type_id(),
                uuid: Uuid::from_u128(FIRST_ALIAS + self.made),
            }
        });
        if self.told.insert((original, drawn)) {
            tell(original, drawn);
        }
        let copy = Arc::new(alias_properties(properties, drawn, functions));
        materials.insert(
            id,
            PreparedMaterial {
                binding,
                properties: copy,
            },
        );
        bindings.insert(id, binding);
        self.originals.insert(id, original);
        self.aliases.insert(
            (original, drawn),
            Alias {
                id,
                properties: properties.clone(),
                binding: place,
            },
        );
        (id, true)
    }

    /// Entities that have lost their set get their own material back.
    fn give_back(
        &mut self,
        gpu: &GpuCuller,
        instances: &mut RenderMaterialInstances,
        dirty: &mut DirtySpecializations,
    ) {
        // Without a material for the moment, but still with a set: those keep it.
        let still: MainEntityHashSet = gpu.entities.iter().copied().collect();
        let run = self.run;
        let lost = self
            .entities
            .extract_if(|entity, aliased| aliased.run != run && !still.contains(entity));
        for (entity, Aliased { original, .. }) in lost {
            if let Some(instance) = instances.instances.get_mut(&entity)
                && self.originals.contains_key(&instance.asset_id)
            {
                instance.asset_id = original;
                dirty.changed_renderables.insert(entity);
            }
        }
    }

    /// Drops the aliases of materials that no set uses.
    fn sweep(
        &mut self,
        met: &AllMet,
        materials: &mut ErasedRenderAssets<PreparedMaterial>,
        bindings: &mut RenderMaterialBindings,
    ) {
        let originals = &mut self.originals;
        self.aliases.retain(|(original, drawn), alias| {
            let met = met.get(original);
            let keep = met.is_some_and(|met| met.aliases[*drawn as usize].is_some());
            if !keep {
                materials.remove(alias.id);
                bindings.remove(&alias.id);
                originals.remove(&alias.id);
            }
            keep
        });
    }
}

/// Says why sets with a material are not drawn.
fn tell(id: UntypedAssetId, drawn: DrawnBy) {
    match drawn {
        DrawnBy::Crowded => error!(
            "material {id:?}: its storage buffers and those of GpuInstances are more than this device binds in a vertex \
             stage: sets with it are not drawn; let its vertex stage see fewer (#[storage(.., visibility(fragment))])"
        ),
        DrawnBy::Mixed => error!(
            "material {id:?}: some of its vertex shaders (main pass, prepass, deferred) import \
             bevy_gpu_culling::draw_instance and some do not: sets with it are not drawn; import it in all of \
             them, or in none"
        ),
        DrawnBy::Refused => error!(
            "material {id:?} has a vertex shader of its own, which does not read GpuInstances, and the tier \
             \"cpu\" writes no MeshUniforms for it: sets with it are not drawn; import \
             bevy_gpu_culling::draw_instance in it, or use a fragment shader only"
        ),
        DrawnBy::Instances | DrawnBy::Expanded | DrawnBy::Loading | DrawnBy::Off => {}
    }
}

/// A copy of a material's properties with our draw functions, and with our specialisers or Bevy's. Without a way to
/// draw it there is no draw function, and nothing is drawn.
fn alias_properties(
    from: &MaterialProperties,
    drawn: DrawnBy,
    phases: &PhaseFunctions,
) -> MaterialProperties {
    let mut to = MaterialProperties {
        render_method: from.render_method,
        alpha_mode: from.alpha_mode,
        mesh_pipeline_key_bits: from.mesh_pipeline_key_bits,
        depth_bias: from.depth_bias,
        reads_view_transmission_texture: from.reads_view_transmission_texture,
        render_phase_type: from.render_phase_type,
        material_layout: from.material_layout.clone(),
        shaders: from.shaders.clone(),
        bindless: from.bindless,
        base_specialize: Some(specialize_set),
        prepass_specialize: Some(specialize_set_prepass),
        user_specialize: from.user_specialize,
        material_key: from.material_key.clone(),
        shadows_enabled: from.shadows_enabled,
        prepass_enabled: from.prepass_enabled,
        ..MaterialProperties::default()
    };
    if drawn == DrawnBy::Expanded {
        to.base_specialize = from.base_specialize;
        to.prepass_specialize = from.prepass_specialize;
    }
    let is_drawn = matches!(drawn, DrawnBy::Instances | DrawnBy::Expanded);
    if !is_drawn {
        // No pipeline either: a pipeline of the same key may be asked for once the shader is loaded.
        to.base_specialize = None;
        to.prepass_specialize = None;
        to.shadows_enabled = false;
        to.prepass_enabled = false;
        return to;
    }
    to.add_draw_function(
        MainPassOpaqueDrawFunction,
        phases.opaque.read().id::<DrawSet>(),
    );
    to.add_draw_function(
        MainPassAlphaMaskDrawFunction,
        phases.mask.read().id::<DrawSet>(),
    );
    to.add_draw_function(
        MainPassTransmissiveDrawFunction,
        phases.transmissive.read().id::<DrawSet>(),
    );
    to.add_draw_function(
        MainPassTransparentDrawFunction,
        phases.transparent.read().id::<DrawSet>(),
    );
    to.add_draw_function(
        PrepassOpaqueDrawFunction,
        phases.prepass.read().id::<DrawSetPrepass>(),
    );
    to.add_draw_function(
        PrepassOpaqueDepthOnlyDrawFunction,
        phases.prepass.read().id::<DrawSetDepthOnly>(),
    );
    to.add_draw_function(
        PrepassAlphaMaskDrawFunction,
        phases.prepass_mask.read().id::<DrawSetPrepass>(),
    );
    to.add_draw_function(
        DeferredOpaqueDrawFunction,
        phases.deferred.read().id::<DrawSetPrepass>(),
    );
    to.add_draw_function(
        DeferredAlphaMaskDrawFunction,
        phases.deferred_mask.read().id::<DrawSetPrepass>(),
    );
    to.add_draw_function(
        ShadowsDrawFunction,
        phases.shadow.read().id::<DrawSetPrepass>(),
    );
    to.add_draw_function(
        ShadowsDepthOnlyDrawFunction,
        phases.shadow.read().id::<DrawSetDepthOnly>(),
    );
    to
}
