//! Compares the host's structs with the shaders' by reflection: names, offsets, sizes and
//! constants.

mod constants;
mod valid;

use bevy_gpu_culling::{
    cull::{
        Compaction, CullingTier,
        layout::{expand::*, *},
        meshlets::MeshletStage,
        shaders,
    },
    instance::PackedInstance,
};
use core::mem::offset_of;
use naga::{Module, TypeInner};

fn parse(source: &str) -> Module {
    naga::front::wgsl::parse_str(source)
        .unwrap_or_else(|error| panic!("{}", error.emit_to_string(source)))
}

/// The fields (name and offset) and the size of a WGSL struct.
fn wgsl_struct(module: &Module, name: &str) -> (Vec<(String, u32)>, u32) {
    let (_, ty) = module
        .types
        .iter()
        .find(|(_, ty)| ty.name.as_deref() == Some(name))
        .unwrap();
    let TypeInner::Struct { members, span } = &ty.inner else {
        panic!("{name} is no struct")
    };
    (
        members
            .iter()
            .map(|member| (member.name.clone().unwrap(), member.offset))
            .collect(),
        *span,
    )
}

/// Asserts that a struct has the same fields at the same offsets on both sides.
macro_rules! same {
    ($module:expr, $ty:ident { $($field:ident),+ $(,)? }) => {{
        let host = vec![$((stringify!($field).to_owned(), offset_of!($ty, $field) as u32)),+];
        let (wgsl, span) = wgsl_struct($module, stringify!($ty));
        assert_eq!(wgsl, host, "fields of {}", stringify!($ty));
        assert_eq!(span as usize, size_of::<$ty>(), "size of {}", stringify!($ty));
    }};
}

#[test]
fn structs_are_the_same_on_both_sides() {
    let module = &parse(shaders::LAYOUT);
    same!(module, PackedInstance { position, rotation });
    same!(
        module,
        Batch {
            block_count,
            dispatch_width,
            count_len,
            chunk_count,
            row_count,
            survivor_capacity,
            is_scanned,
            strip_count,
            strip_blocks,
            is_near_first,
            order_tile_count,
            unit_words,
            occluded_rows,
            occluded_cells,
            pad_a,
            pad_b,
        }
    );
    same!(
        module,
        Chunk {
            world_x,
            world_y,
            world_z,
            local_x,
            inverse_scale,
            local_y,
            world_scale,
            local_z,
            first_strip,
            sphere,
            first_instance,
            instance_count,
            first_block,
            block_count,
            first_row,
            row_count,
            first_count,
            flags,
            first_order_tile,
            first_bound,
            pad_a,
            pad_b,
        }
    );
    same!(
        module,
        ViewPlanes {
            left,
            right,
            top,
            bottom,
            near,
            far,
            reach,
            pairs,
            order,
            band,
        }
    );
    same!(
        module,
        DistanceBand {
            eye,
            flags,
            low,
            high,
            start,
            end,
            thin,
            pad_a,
            pad_b,
            pad_c,
        }
    );
    same!(
        module,
        ViewOrder {
            eye,
            first_step,
            is_near_first,
            is_far_first,
            pad,
        }
    );
    same!(module, Rank { first_word, place });
    same!(
        module,
        PlanePairs {
            x,
            y,
            depth,
            slopes,
            low,
            high,
            is_paired,
            pad,
        }
    );
    same!(
        module,
        ChunkView {
            planes,
            element_count,
            first_element,
            base_vertex,
            flags,
            first_count,
            block_count,
            first_sibling,
            sibling_count,
        }
    );
    same!(
        module,
        DrawCommand {
            element_count,
            instance_count,
            first_element,
            base_vertex_or_first_instance,
            first_instance
        }
    );
    same!(
        module,
        Totals {
            survivors,
            overflow,
            draw_count,
            needed,
            crossed,
            in_frustum,
            too_small
        }
    );
    same!(
        module,
        Bound {
            center,
            radius,
            max_scale,
            gaps,
            halves,
            min_scale,
            words
        }
    );
    same!(
        module,
        BoundJob {
            first_instance,
            first_bound,
            block_count,
            end,
            scale_floats,
            pad_a,
            pad_b,
            pad_c,
        }
    );
    same!(
        module,
        FarFirstJob {
            axis,
            row,
            center,
            flags,
            max_survivors,
            is_indexed,
            pad_a,
            pad_b,
        }
    );
    same!(
        module,
        FarFirstSpan {
            first_survivor,
            len,
            first_key,
            first_tile
        }
    );
    same!(
        module,
        FarFirstRound {
            job_count,
            large_count,
            key_capacity,
            shift,
            is_last,
            pad_a,
            pad_b,
            pad_c,
        }
    );
    same!(
        module,
        Projection {
            x,
            y,
            z,
            w,
            gram_x,
            gram_y,
            gram_z,
            gram_sum,
            gram_difference,
            samples,
            diagonal_samples,
            unit,
            margin,
            slope,
            has_diagonals,
        }
    );
    same!(
        module,
        PyramidLevel {
            first,
            width,
            height,
            pad,
        }
    );
    same!(
        module,
        DepthPyramid {
            first_x,
            first_y,
            width,
            height,
            level_count,
            samples,
            pad_a,
            pad_b,
            levels,
        }
    );
    same!(
        module,
        OcclusionRow {
            sphere,
            first_instance,
            instance_count,
            chunk_flags,
            block_count,
            first_cell,
            first_count,
            first_visible,
            first_record,
            near_pixels,
            flags,
            first_bound,
            projection,
        }
    );
    same!(
        module,
        RowSource {
            element_count,
            first_element,
            base_vertex,
            flags,
            first_sibling,
            sibling_count,
            band_flags,
            low,
            high,
            start,
            end,
            thin,
            first_step,
            chunk,
        }
    );
    same!(
        module,
        ViewSource {
            planes,
            reach,
            pairs,
            eye,
            depth_offset,
            depth_steps,
            is_near_first,
            pad_a,
            lod_eye,
            pad_b,
        }
    );
    let structs = module
        .types
        .iter()
        .filter(|(_, ty)| matches!(ty.inner, TypeInner::Struct { .. }))
        .count();
    assert_eq!(structs, 22, "a struct of layout.wesl is not compared");
}

#[test]
fn structs_of_the_meshlet_stages_are_the_same_on_both_sides() {
    use bevy_gpu_culling::cull::layout::meshlets::*;
    let [vote, args] = [MeshletStage::Vote, MeshletStage::Args];
    let vote = &parse(vote.sources(CullingTier::Subgroup)[0]);
    let module = &parse(args.sources(CullingTier::Subgroup)[0]);
    same!(
        module,
        GpuMeshlet {
            sphere,
            cone,
            first_index,
            index_count,
            pad_a
        }
    );
    same!(
        module,
        MeshletSizes {
            row_count,
            cell_capacity,
            survivor_capacity,
            pad_a
        }
    );
    same!(
        module,
        MeshletRow {
            planes,
            chunk,
            eye,
            projection,
            draw_row,
            first_meshlet,
            meshlet_count,
            first_draw,
            first_index,
            base_vertex,
            pad_a,
            pad_b,
        }
    );
    same!(
        module,
        MeshletSpan {
            first_item,
            first_cell,
            tile_count,
            survivor_count,
            first_survivor,
            outside,
            first_source,
            hidden,
        }
    );
    same!(
        module,
        MeshletTotals {
            item_count,
            cell_count,
            needed_cells,
            needed_survivors,
            source_count
        }
    );
    same!(
        module,
        MeshletResult {
            draw_count,
            survivor_count,
            visible,
            outside,
            triangles,
            triangles_high,
            whole,
            hidden,
        }
    );
    // The vote declares a span again, with an atomic field.
    assert_eq!(
        wgsl_struct(vote, "VoteSpan"),
        wgsl_struct(module, "MeshletSpan")
    );
    assert_eq!(
        wgsl_struct(module, "MeshletResults").0[1].1 as u64,
        result_offset(0)
    );
    for (module, name, host) in [
        (vote, "MESHLET_TILE", MESHLET_TILE),
        (vote, "CELL_WORDS", CELL_WORDS),
        (vote, "ITEM_MESHLETS", ITEM_MESHLETS),
        (module, "CELL_TILE", CELL_TILE),
        (module, "ROW_THREADS", ROW_THREADS),
    ] {
        assert_eq!(u32_of(module, name), host, "{name}");
    }
    // The vote's WGSL contains this product as a literal.
    assert_eq!(ITEM_MESHLETS * CELL_WORDS, 32);
}

#[test]
fn the_argument_buffer_starts_with_the_totals() {
    let module = {
        let passes = Compaction::VoteScanCompact.sources(CullingTier::Subgroup);
        let (_, compact) = passes.into_iter().next_back().unwrap();
        parse(&compact)
    };
    let (fields, _) = wgsl_struct(&module, "Args");
    assert_eq!(
        fields,
        [
            ("totals".to_owned(), 0),
            ("draws".to_owned(), args_offset(0) as u32)
        ]
    );
    assert_eq!(
        args_offset(2) - args_offset(1),
        size_of::<wgpu::util::DrawIndexedIndirectArgs>() as u64
    );
    assert_eq!(DRAW_COUNT_OFFSET as usize, offset_of!(Totals, draw_count));
}

#[test]
fn structs_of_the_expansions_are_the_same_on_both_sides() {
    let module = &parse(shaders::EXPAND_LAYOUT);
    same!(
        module,
        ExpandParams {
            source_capacity,
            source_word,
            entry_capacity,
            workgroups,
            prefix_at,
            partials_at,
            sums_at,
            entries_at,
        }
    );
    same!(
        module,
        ExpandState {
            sources,
            items,
            needed,
            status,
            chunks,
            width,
            pad_a,
            pad_b,
            buckets,
            dispatches,
        }
    );
    same!(
        module,
        ExpandBucket {
            first_entry,
            entry_count,
            first_chunk,
            lanes
        }
    );
    same!(
        module,
        ExpandSlice {
            bucket,
            pad_a,
            pad_b,
            pad_c
        }
    );
    let is_struct = |ty: &&naga::Type| matches!(ty.inner, TypeInner::Struct { .. });
    let structs = module.types.iter().map(|(_, ty)| ty).filter(is_struct);
    assert_eq!(
        structs.count(),
        4,
        "a struct of expand/layout.wesl is not compared"
    );
    assert_eq!(dispatch_offset(1) - dispatch_offset(0), 16);
}

#[test]
fn structs_of_the_scatter_are_the_same_on_both_sides() {
    let module = &parse(shaders::SCATTER_LAYOUT);
    same!(
        module,
        ScatterLayer {
            step,
            seed,
            jitter,
            min_apart,
            first_x,
            first_z,
            len_x,
            len_z,
            factor_x,
            factor_z,
            shift_x,
            shift_z,
            flags,
            density,
            height_first,
            height_shift,
            height_step,
            min_height,
            max_height,
            gradient_x,
            gradient_z,
            min_slope,
            max_slope,
            align,
            min_scale,
            scale_step,
            pad_a,
            pad_b,
        }
    );
    same!(
        module,
        ScatterTile {
            x,
            z,
            slot,
            live,
            is_wanted,
        }
    );
    same!(
        module,
        ScatterTurn {
            half_sin,
            half_cos,
            rotation,
        }
    );
    let is_struct = |ty: &&naga::Type| matches!(ty.inner, TypeInner::Struct { .. });
    let structs = module.types.iter().map(|(_, ty)| ty).filter(is_struct);
    assert_eq!(structs.count(), 3);
}

/// The value of a constant of the module.
fn u32_of(module: &Module, name: &str) -> u32 {
    let mut constants = module.constants.iter();
    let (_, constant) = constants
        .find(|(_, constant)| constant.name.as_deref() == Some(name))
        .unwrap();
    let value = &module.global_expressions[constant.init];
    let naga::Expression::Literal(naga::Literal::U32(value)) = value else {
        panic!("{name}: {value:?}")
    };
    *value
}

/// Bevy resolves the imports of draw shaders. Without them, and after the code that decodes
/// instances, the rest is plain WGSL.
#[test]
fn the_draw_slot_is_the_same_on_both_sides() {
    let draw = include_str!("../../shaders/draw/instance.wesl");
    let plain: String = draw
        .lines()
        .filter(|line| !line.starts_with("import "))
        .flat_map(|line| [line, "\n"])
        .collect();
    let (decode, encode) = (shaders::INSTANCE, shaders::INSTANCE_PACK);
    // What it imports from Bevy.
    let bevys = "
        struct View {
            lod_view_world_position: vec3<f32>,
            viewport: vec4<f32>,
            clip_from_view: mat4x4<f32>,
            clip_from_world: mat4x4<f32>,
        }
        @group(0) @binding(0) var<uniform> view: View;
        fn get_world_from_local(index: u32) -> mat4x4<f32> { return mat4x4<f32>(); }
        fn get_previous_world_from_local(index: u32) -> mat4x4<f32> { return mat4x4<f32>(); }
    ";
    let thin = shaders::THIN;
    let module = &parse(&format!("{decode}{encode}{thin}{bevys}{plain}"));
    same!(module, PackedInstance { position, rotation });
    let (fields, span) = wgsl_struct(module, "DrawSlot");
    let expected = [
        ("mesh_uniform", 0),
        ("flags", 176),
        ("region_first", 180),
        ("set_first", 184),
        ("previous_offset", 188),
        ("errors", 192),
        ("distances", 208),
        ("center", 224),
        ("radius", 236),
        ("thin", 240),
        ("wind", 256),
        ("animation", 288),
        ("instance_from_mesh", 304),
        ("previous_instance_from_mesh", 352),
        ("instance_from_mesh_normals", 400),
        ("pad", 448),
    ];
    assert_eq!(
        fields,
        expected.map(|(name, offset)| (name.to_owned(), offset))
    );
    assert_eq!(span, 512);
    let (fields, _) = wgsl_struct(module, "DrawSlots");
    let expected = [
        ("mask", 0),
        ("first", 4),
        ("pad_a", 8),
        ("pad_b", 12),
        ("of_granule", 16),
        // `WINDOW_SLOTS` in `src/render/draw_slots/room.rs`.
        ("slots", 65 * 512),
    ];
    assert_eq!(
        fields,
        expected.map(|(name, offset)| (name.to_owned(), offset))
    );
    assert_eq!(u32_of(module, "GRANULE"), GRANULE);
}
