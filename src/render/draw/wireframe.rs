//! Bevy's wireframes on sets.
//!
//! Bevy's `WireframePlugin` queues an entity with `Wireframe` into a separate phase, which would
//! draw a set's mesh once, at the entity. The phase's items of sets get our draw function, which
//! draws the `MeshUniform`s of the survivors.

use super::functions::DrawSurvivors;
use crate::render::{culler::GpuCuller, materials::MaterialAliases};
use bevy::{
    log::warn_once,
    pbr::{
        RenderMeshInstances, SetMeshViewBindGroup, SetMeshViewBindingArrayBindGroup,
        wireframe::{DrawWireframe3dThin, SetWireframe3dThinImmediates, Wireframe3d},
    },
    prelude::*,
    render::render_phase::{
        BinnedRenderPhaseType, DrawFunctions, RenderCommandState, SetItemPipeline,
        ViewBinnedRenderPhases,
    },
};

/// Bevy's `DrawWireframe3dThin` for sets.
type DrawSetWireframe = (
    SetItemPipeline,
    SetMeshViewBindGroup<0>,
    SetMeshViewBindingArrayBindGroup<1>,
    SetWireframe3dThinImmediates,
    DrawSurvivors<2, true>,
);

/// Registers the draw function if the app has wireframes. Their plugin adds the phase in `finish`.
pub(in crate::render) fn register_wireframes(world: &mut World) {
    let known = world.get_resource::<DrawFunctions<Wireframe3d>>();
    // The renderer starts again after a lost device: the function may be registered already.
    if known.is_none_or(|known| known.read().get_id::<DrawSetWireframe>().is_some()) {
        return;
    }
    let function = RenderCommandState::<Wireframe3d, DrawSetWireframe>::new(world);
    let functions = world.resource::<DrawFunctions<Wireframe3d>>();
    functions.write().add_with::<DrawSetWireframe, _>(function);
}

/// Gives queued wireframes of sets our draw function, and removes those that cannot be drawn.
pub(in crate::render) fn redirect_wireframes(
    culling: Res<GpuCuller>,
    aliases: Res<MaterialAliases>,
    instances: Res<RenderMeshInstances>,
    functions: Option<Res<DrawFunctions<Wireframe3d>>>,
    phases: Option<ResMut<ViewBinnedRenderPhases<Wireframe3d>>>,
) {
    let (Some(functions), Some(mut phases)) = (functions, phases) else {
        return;
    };
    let with_sets = &culling.extraction.lists.entities;
    if with_sets.is_empty() {
        return;
    }
    let functions = functions.read();
    let Some(ours) = functions.get_id::<DrawSetWireframe>() else {
        return;
    };
    let thin = functions.id::<DrawWireframe3dThin>();
    let has_phase = phases
        .values()
        .any(|phase| !phase.unbatchable_meshes.is_empty());
    if !has_phase {
        return;
    }
    for phase in phases.values_mut() {
        let mut found = Vec::new();
        for ((set_key, bin_key), entities) in &phase.unbatchable_meshes {
            if set_key.draw_function == ours {
                continue;
            }
            for (main, entity) in &entities.entities {
                if with_sets.contains(main) {
                    found.push((set_key.clone(), bin_key.clone(), *entity, *main));
                }
            }
        }
        for (mut set_key, bin_key, entity, main) in found {
            phase.remove(main);
            let mesh = instances.render_mesh_queue_data(main);
            let is_drawn = set_key.draw_function == thin && aliases.expanded.contains(&main);
            match mesh {
                Some(mesh) if is_drawn => {
                    set_key.draw_function = ours;
                    phase.add(
                        set_key,
                        bin_key,
                        (entity, main),
                        mesh.current_uniform_index,
                        BinnedRenderPhaseType::UnbatchableMesh,
                    );
                }
                _ => warn_once!(
                    "Wireframe on {} is not drawn: a set has one only with lines of width 1 in the topology \
                     `Triangles`, a material without a vertex shader that imports bevy_gpu_culling, and a tier \
                     above \"cpu\"",
                    main.id()
                ),
            }
        }
    }
}
