//! The draw functions of sets: Bevy's, with our mesh bind group and our draw call.

use super::near_levels::DrawnLevels;
use crate::{
    cull::{Culler, CullingTier, DrawList, DrawSource, IndirectDraws, layout::DrawCommand},
    render::{
        batch_sets::BatchSets,
        cpu_times::{CpuClock, CpuStage},
        culler::GpuCuller,
        draw_slots::DrawSlots,
        expanded::ExpandedUniforms,
        meshlets::GpuMeshlets,
        occlusion::DrawnLists,
        set_draws::{Drawn, EntityDraws, PartDraw, SetDraws},
        set_meshes::{BoundMesh, MeshBuffers},
        views::index_of_view,
    },
};
use bevy::{
    ecs::{
        query::ROQueryItem,
        system::{
            SystemParamItem,
            lifetimeless::{Read, SRes},
        },
    },
    pbr::{
        MATERIAL_BIND_GROUP_INDEX, SetMaterialBindGroup, SetMeshViewBindGroup,
        SetMeshViewBindingArrayBindGroup, SetPrepassEmptyMaterialBindGroup,
        SetPrepassViewBindGroup, SetPrepassViewEmptyBindGroup,
    },
    render::{
        render_phase::{
            PhaseItem, RenderCommand, RenderCommandResult, SetItemPipeline, TrackedRenderPass,
        },
        view::{ExtractedView, RetainedViewEntity},
    },
};
use core::sync::atomic::Ordering;

/// Main passes.
pub(in crate::render) type DrawSet = (
    SetItemPipeline,
    SetMeshViewBindGroup<0>,
    SetMeshViewBindingArrayBindGroup<1>,
    SetMaterialBindGroup<MATERIAL_BIND_GROUP_INDEX>,
    DrawSurvivors<2>,
);
/// Prepasses and shadow maps whose fragment stage needs the material.
pub(in crate::render) type DrawSetPrepass = (
    SetItemPipeline,
    SetPrepassViewBindGroup<0>,
    SetPrepassViewEmptyBindGroup<1>,
    SetMaterialBindGroup<3>,
    DrawSurvivors<2>,
);
/// Prepasses and shadow maps that write depth only.
pub(in crate::render) type DrawSetDepthOnly = (
    SetItemPipeline,
    SetPrepassViewBindGroup<0>,
    SetPrepassViewEmptyBindGroup<1>,
    SetPrepassEmptyMaterialBindGroup<3>,
    DrawSurvivors<2>,
);

/// Binds a set at group `I` and draws its survivors in the view, with one draw per page. The leader
/// of a batch set draws all members. With `ONLY_EXPANDED`, only sets with one `MeshUniform` per
/// survivor are drawn, for Bevy's own pipelines.
pub(in crate::render) struct DrawSurvivors<const I: usize, const ONLY_EXPANDED: bool = false>;

impl<P: PhaseItem, const I: usize, const ONLY_EXPANDED: bool> RenderCommand<P>
    for DrawSurvivors<I, ONLY_EXPANDED>
{
    type Param = (
        SRes<GpuCuller>,
        SRes<SetDraws>,
        SRes<ExpandedUniforms>,
        SRes<GpuMeshlets>,
        (SRes<DrawnLists>, SRes<DrawnLevels>),
        (SRes<BatchSets>, SRes<DrawSlots>),
        SRes<CpuClock>,
    );
    type ViewQuery = Read<ExtractedView>;
    type ItemQuery = ();

    fn render<'w>(
        item: &P,
        view: ROQueryItem<'w, '_, Self::ViewQuery>,
        _: Option<()>,
        (culling, draws, expanded, meshlets, (lists, levels), (batch_sets, slots), clock): SystemParamItem<
            'w,
            '_,
            Self::Param,
        >,
        pass: &mut TrackedRenderPass<'w>,
    ) -> RenderCommandResult {
        let _timer = clock.into_inner().start(CpuStage::Draw);
        let draws = draws.into_inner();
        let expanded = expanded.into_inner();
        let meshlets = meshlets.into_inner();
        let Some(culler) = &culling.into_inner().culler else {
            return RenderCommandResult::Skip;
        };
        let Some(EntityDraws { place, drawn, mesh }) = draws.find(item.main_entity()) else {
            return RenderCommandResult::Skip;
        };
        bind_mesh(pass, mesh);
        let indexed = mesh.indices.is_some();
        if draws.is_expanded(item.main_entity()) {
            let Some(bind_group) = expanded.mesh_bind_group() else {
                return RenderCommandResult::Skip;
            };
            pass.set_bind_group(I, bind_group, &[]);
            for command in expanded.commands(item.main_entity(), view.retained_view_entity) {
                draw_indirect(pass, draws, &command, indexed);
            }
            return RenderCommandResult::Success;
        }
        if ONLY_EXPANDED {
            return RenderCommandResult::Skip;
        }
        let key = view.retained_view_entity;
        let view_draws = ViewDraws {
            culler,
            draws,
            meshlets,
            key,
            list: lists.of(&key),
            levels: levels.into_inner(),
        };
        let batch_sets = batch_sets.into_inner();
        let set = index_of_view(&draws.views, &key)
            .and_then(|view| Some((view as usize, batch_sets.set_of(view as usize, place)?)));
        let mut bound = mesh.bound();
        let Some((view, set)) = set else {
            view_draws.draw::<I>(drawn, &mut bound, pass);
            return RenderCommandResult::Success;
        };
        // A multi-draw has all levels, but this pass draws a part of them.
        if view_draws.levels.divide(&key) {
            let members = batch_sets.members(view, set).iter();
            for member in members.filter(|member| draws.sees(view, **member)) {
                view_draws.draw::<I>(&draws.drawn[*member], &mut bound, pass);
            }
            return RenderCommandResult::Success;
        }
        for (draw, commands) in batch_sets.draws(view, set, view_draws.list) {
            let Some(bind_group) = draws.bind_group(draw.batch) else {
                continue;
            };
            let offsets = [mesh.metadata, slots.table_selector(draw.table)];
            pass.set_bind_group(I, bind_group, &offsets);
            draw_indirect(pass, draws, &commands, true);
        }
        RenderCommandResult::Success
    }
}

/// What the draws of a view take at present.
struct ViewDraws<'w> {
    culler: &'w Culler,
    draws: &'w SetDraws,
    meshlets: &'w GpuMeshlets,
    key: RetainedViewEntity,
    list: DrawList,
    levels: &'w DrawnLevels,
}

impl<'w> ViewDraws<'w> {
    /// Draws an entity's own survivors. `bound` is the mesh whose buffers are bound: levels of
    /// detail have several.
    fn draw<const I: usize>(
        &self,
        drawn: &'w Drawn,
        bound: &mut BoundMesh,
        pass: &mut TrackedRenderPass<'w>,
    ) {
        let &Self {
            culler,
            draws,
            meshlets,
            key,
            list,
            levels,
        } = self;
        let indexed = (draws.meshes.get(drawn.mesh)).is_some_and(|mesh| mesh.indices.is_some());
        let parts = draws.parts(culler, drawn, key, list);
        let parts = parts.filter(|draw| levels.take(&key, drawn, draw.part.level));
        let mut parts = parts.peekable();
        while let Some(draw) = parts.next() {
            let offsets = [draw.mesh.metadata, DrawSlots::selector_of(draw.slot)];
            pass.set_bind_group(I, draw.bind_group, &offsets);
            if *bound != draw.mesh.bound() {
                bind_mesh(pass, draw.mesh);
                *bound = draw.mesh.bound();
            }
            if let Some(parted) = meshlets.draw(culler, draw.part) {
                draw_indirect(pass, draws, &parted.commands.whole, true);
                pass.set_bind_group(I, parted.bind_group, &offsets);
                draw_indirect(pass, draws, &parted.commands.meshlets, true);
                continue;
            }
            // Levels whose commands are contiguous are one draw.
            let mut rows = 1;
            let joins = |next: &PartDraw<'_>, rows| {
                let is_next = next.slot == draw.slot && next.part.follows(draw.part, rows);
                is_next && next.mesh.bound() == *bound && meshlets.draw(culler, next.part).is_none()
            };
            if indexed && drawn.of.shape == 0 && culler.tier() != CullingTier::Cpu {
                while rows < Culler::MAX_ROWS_OF_A_DRAW
                    && parts.next_if(|next| joins(next, rows)).is_some()
                {
                    rows += 1;
                }
            }
            if rows > 1
                && let Some(commands) = culler.rows_source(draw.part, rows)
            {
                draw_indirect(pass, draws, &commands, indexed);
                continue;
            }
            match culler.shape_source(draw.part, drawn.of.shape) {
                Some(DrawSource::Indirect(command)) => {
                    draw_indirect(pass, draws, &command, indexed);
                }
                Some(DrawSource::Direct(args)) => draw_direct(pass, draws, args, indexed),
                None => {}
            }
        }
    }
}

fn bind_mesh<'w>(pass: &mut TrackedRenderPass<'w>, mesh: &'w MeshBuffers) {
    pass.set_vertex_buffer(0, mesh.vertices.slice(..));
    if let Some((indices, format)) = &mesh.indices {
        pass.set_index_buffer(indices.slice(..), *format);
    }
}

fn draw_indirect(
    pass: &mut TrackedRenderPass<'_>,
    draws: &SetDraws,
    commands: &IndirectDraws<'_>,
    indexed: bool,
) {
    draws.calls.fetch_add(1, Ordering::Relaxed);
    // The tracked pass takes Bevy's buffer type, the pass below it takes wgpu's.
    let pass = pass.wgpu_pass();
    let &IndirectDraws {
        buffer,
        offset,
        count: (counts, count_at),
        max,
    } = commands;
    // Bevy uses the `_count` form. A driver (lavapipe of Mesa 22.3) has been seen to keep its
    // count for a plain indirect draw that follows in the same pass.
    match (indexed, draws.counted) {
        (true, true) => {
            pass.multi_draw_indexed_indirect_count(buffer, offset, counts, count_at, max);
        }
        (true, false) if max == 1 => pass.draw_indexed_indirect(buffer, offset),
        (true, false) => pass.multi_draw_indexed_indirect(buffer, offset, max),
        (false, true) => pass.multi_draw_indirect_count(buffer, offset, counts, count_at, max),
        (false, false) if max == 1 => pass.draw_indirect(buffer, offset),
        (false, false) => pass.multi_draw_indirect(buffer, offset, max),
    }
}

fn draw_direct(
    pass: &mut TrackedRenderPass<'_>,
    draws: &SetDraws,
    args: DrawCommand,
    indexed: bool,
) {
    let first = args.first_survivor(indexed);
    let instances = first..first + args.instance_count;
    let elements = args.first_element..args.first_element + args.element_count;
    if instances.is_empty() {
        return;
    }
    draws.calls.fetch_add(1, Ordering::Relaxed);
    if indexed {
        pass.draw_indexed(
            elements,
            args.base_vertex_or_first_instance.cast_signed(),
            instances,
        );
    } else {
        pass.draw(elements, instances);
    }
}
