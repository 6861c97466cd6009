//! The draw functions of sets: Bevy's, with our mesh bind group and our draw call.

use super::near_levels::DrawnLevels;
use crate::{
    cull::{Culler, CullingTier, DrawList, DrawSource, IndirectDraws, layout::DrawCommand},
    render::{
        batch_sets::{BatchSets, Role},
        cpu_times::{CpuClock, CpuStage},
        culler::GpuCuller,
        draw_slots::DrawSlots,
        expanded::ExpandedUniforms,
        meshlets::GpuMeshlets,
        occlusion::DrawnLists,
        set_draws::{Drawn, EntityDraws, PartDraw, SetDraws},
        set_meshes::MeshBuffers,
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
    SkipFollowers,
    SetItemPipeline,
    SetMeshViewBindGroup<0>,
    SetMeshViewBindingArrayBindGroup<1>,
    SetMaterialBindGroup<MATERIAL_BIND_GROUP_INDEX>,
    DrawSurvivors<2>,
);
/// Prepasses and shadow maps whose fragment stage needs the material.
pub(in crate::render) type DrawSetPrepass = (
    SkipFollowers,
    SetItemPipeline,
    SetPrepassViewBindGroup<0>,
    SetPrepassViewEmptyBindGroup<1>,
    SetMaterialBindGroup<3>,
    DrawSurvivors<2>,
);
/// Prepasses and shadow maps that write depth only.
pub(in crate::render) type DrawSetDepthOnly = (
    SkipFollowers,
    SetItemPipeline,
    SetPrepassViewBindGroup<0>,
    SetPrepassViewEmptyBindGroup<1>,
    SetPrepassEmptyMaterialBindGroup<3>,
    DrawSurvivors<2>,
);

/// What decides what an item of a batch set draws.
type BatchRoles = (
    SRes<SetDraws>,
    SRes<BatchSets>,
    SRes<DrawnLists>,
    SRes<DrawnLevels>,
);

/// Leaves out the items of followers, before anything is bound for them: their leader draws them.
pub(in crate::render) struct SkipFollowers;

impl<P: PhaseItem> RenderCommand<P> for SkipFollowers {
    type Param = (BatchRoles, SRes<CpuClock>);
    type ViewQuery = Read<ExtractedView>;
    type ItemQuery = ();

    fn render<'w>(
        item: &P,
        view: ROQueryItem<'w, '_, Self::ViewQuery>,
        _: Option<()>,
        ((draws, batch_sets, lists, levels), clock): SystemParamItem<'w, '_, Self::Param>,
        _: &mut TrackedRenderPass<'w>,
    ) -> RenderCommandResult {
        let _timer = clock.into_inner().start(CpuStage::Draw);
        let key = view.retained_view_entity;
        let place = draws.place_in_frame(item.main_entity());
        let role = place.and_then(|place| {
            let drawn = draws.drawn.get(place)?;
            let (_, role) = role_of(
                (place, drawn),
                &key,
                (&draws, &batch_sets),
                (&lists, &levels),
            )?;
            Some(role)
        });
        match role {
            Some(Role::Follower) => RenderCommandResult::Skip,
            _ => RenderCommandResult::Success,
        }
    }
}

/// The index of a view in the frame, and what the item of an entity with a place in the frame
/// draws in it; `None` if the entity is in no batch set, or if the draws of the view are not joined
/// at present.
fn role_of(
    (place, drawn): (usize, &Drawn),
    key: &RetainedViewEntity,
    (draws, batch_sets): (&SetDraws, &BatchSets),
    (lists, levels): (&DrawnLists, &DrawnLevels),
) -> Option<(usize, Role)> {
    drawn.member?;
    // Late and visible lists of what may be hidden have commands that are not gathered, and what is
    // never hidden is never late.
    let is_gathered = match lists.of(key) {
        DrawList::Kept | DrawList::Early => true,
        DrawList::Visible => !drawn.may_be_hidden,
        DrawList::Late => false,
    };
    if !is_gathered || levels.divide(key) {
        return None;
    }
    let view = index_of_view(&draws.views, key)? as usize;
    Some((view, batch_sets.role(view, place)))
}

/// Binds a set at group `I` and draws its survivors in the view, with one draw per page. With
/// `ONLY_EXPANDED` it draws only sets with one `MeshUniform` per survivor, for Bevy's own
/// pipelines.
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
        (gpu, draws, expanded, meshlets, (lists, levels), (batch_sets, slots), clock): SystemParamItem<
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
        let Some(culler) = &gpu.into_inner().culler else {
            return RenderCommandResult::Skip;
        };
        let Some(EntityDraws { place, drawn, mesh }) = draws.find(item.main_entity()) else {
            return RenderCommandResult::Skip;
        };
        bind_mesh(pass, mesh);
        // The levels of detail have several meshes.
        let mut bound = mesh.bound();
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
        let list = lists.of(&key);
        let batch_sets = batch_sets.into_inner();
        match role_of((place, drawn), &key, (draws, batch_sets), (&lists, &levels)) {
            None | Some((_, Role::Alone)) => {}
            Some((_, Role::Follower)) => return RenderCommandResult::Success,
            Some((view, Role::Leader(set))) => {
                for (draw, commands) in batch_sets.draws(view, set) {
                    let Some(bind_group) = draws.bind_group(draw.batch) else {
                        continue;
                    };
                    let offsets = [mesh.metadata, slots.table_selector(draw.table)];
                    pass.set_bind_group(I, bind_group, &offsets);
                    draw_indirect(pass, draws, &commands, true);
                }
                return RenderCommandResult::Success;
            }
        }
        let parts = draws.parts(culler, drawn, key, list);
        let parts = parts.filter(|draw| levels.take(&key, drawn, draw.part.level));
        let mut parts = parts.peekable();
        while let Some(draw) = parts.next() {
            let offsets = [draw.mesh.metadata, DrawSlots::selector_of(draw.slot)];
            pass.set_bind_group(I, draw.bind_group, &offsets);
            if bound != draw.mesh.bound() {
                bind_mesh(pass, draw.mesh);
                bound = draw.mesh.bound();
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
                is_next && next.mesh.bound() == bound && meshlets.draw(culler, next.part).is_none()
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
        RenderCommandResult::Success
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
