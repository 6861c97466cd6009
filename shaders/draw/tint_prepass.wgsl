// Fragment stage of `TintedMaterial` in shadow maps and in the prepasses of depth, normals and
// motion vectors: Bevy's pbr_prepass.wgsl, with the alpha of the instance's color.
#import bevy_pbr::{
    mesh_bindings::mesh,
    mesh_view_bindings::view,
    pbr_bindings,
    pbr_functions,
    pbr_prepass_functions::calculate_motion_vector,
    pbr_types,
    prepass_io,
}
#import bevy_render::bindless::{bindless_samplers_filtering, bindless_textures_2d}
#import bevy_gpu_culling::tint::{TintedFragment, tint_of}

#ifdef BINDLESS
#import bevy_pbr::pbr_bindings::material_indices
#endif

// As in Bevy's pbr_prepass_functions.wgsl.
const PREMULTIPLIED_ALPHA_CUTOFF: f32 = 0.05;

// Bevy's prepass_alpha_discard, with the tint.
fn discard_by_alpha(in: TintedFragment) {
#ifdef MAY_DISCARD
#ifdef BINDLESS
    let slot = mesh[in.instance_index].material_and_lightmap_bind_group_slot & 0xffffu;
    let base_color = pbr_bindings::material_array[material_indices[slot].material].base_color;
    let flags = pbr_bindings::material_array[material_indices[slot].material].flags;
    let alpha_cutoff = pbr_bindings::material_array[material_indices[slot].material].alpha_cutoff;
#else
    let base_color = pbr_bindings::material.base_color;
    let flags = pbr_bindings::material.flags;
    let alpha_cutoff = pbr_bindings::material.alpha_cutoff;
#endif
    var color = base_color * tint_of(in);

#ifdef VERTEX_UVS
#ifdef STANDARD_MATERIAL_BASE_COLOR_UV_B
    var uv = in.uv_b;
#else
    var uv = in.uv;
#endif
#ifdef BINDLESS
    let uv_transform = pbr_bindings::material_array[material_indices[slot].material].uv_transform;
#else
    let uv_transform = pbr_bindings::material.uv_transform;
#endif
    uv = (uv_transform * vec3(uv, 1.0)).xy;
    if (flags & pbr_types::STANDARD_MATERIAL_FLAGS_BASE_COLOR_TEXTURE_BIT) != 0u {
        color *= textureSampleBias(
#ifdef BINDLESS
            bindless_textures_2d[material_indices[slot].base_color_texture],
            bindless_samplers_filtering[material_indices[slot].base_color_sampler],
#else
            pbr_bindings::base_color_texture,
            pbr_bindings::base_color_sampler,
#endif
            uv,
            view.mip_bias
        );
    }
#endif

    let alpha_mode = flags & pbr_types::STANDARD_MATERIAL_FLAGS_ALPHA_MODE_RESERVED_BITS;
    if alpha_mode == pbr_types::STANDARD_MATERIAL_FLAGS_ALPHA_MODE_MASK {
        if color.a < alpha_cutoff {
            discard;
        }
    } else if (alpha_mode == pbr_types::STANDARD_MATERIAL_FLAGS_ALPHA_MODE_BLEND ||
            alpha_mode == pbr_types::STANDARD_MATERIAL_FLAGS_ALPHA_MODE_ADD ||
            alpha_mode == pbr_types::STANDARD_MATERIAL_FLAGS_ALPHA_MODE_ALPHA_TO_COVERAGE) {
        if color.a < PREMULTIPLIED_ALPHA_CUTOFF {
            discard;
        }
    } else if alpha_mode == pbr_types::STANDARD_MATERIAL_FLAGS_ALPHA_MODE_PREMULTIPLIED {
        if all(color < vec4(PREMULTIPLIED_ALPHA_CUTOFF)) {
            discard;
        }
    }
#endif
}

#ifdef PREPASS_FRAGMENT
@fragment
fn fragment(
    in: TintedFragment,
    @builtin(front_facing) is_front: bool,
) -> prepass_io::FragmentOutput {
#ifdef VISIBILITY_RANGE_DITHER
    pbr_functions::visibility_range_dither(in.position, in.visibility_range_dither);
#endif
    discard_by_alpha(in);

    var out: prepass_io::FragmentOutput;

#ifdef UNCLIPPED_DEPTH_ORTHO_EMULATION
    out.frag_depth = in.unclipped_depth;
#endif

#ifdef NORMAL_PREPASS
#ifdef BINDLESS
    let slot = mesh[in.instance_index].material_and_lightmap_bind_group_slot & 0xffffu;
    let flags = pbr_bindings::material_array[material_indices[slot].material].flags;
    let uv_transform = pbr_bindings::material_array[material_indices[slot].material].uv_transform;
#else
    let flags = pbr_bindings::material.flags;
    let uv_transform = pbr_bindings::material.uv_transform;
#endif
    var normal = in.world_normal;
    if (flags & pbr_types::STANDARD_MATERIAL_FLAGS_UNLIT_BIT) == 0u {
        let double_sided = (flags & pbr_types::STANDARD_MATERIAL_FLAGS_DOUBLE_SIDED_BIT) != 0u;
        normal = pbr_functions::prepare_world_normal(normal, double_sided, is_front);

#ifdef VERTEX_UVS
#ifdef VERTEX_TANGENTS
#ifdef STANDARD_MATERIAL_NORMAL_MAP
#ifdef STANDARD_MATERIAL_NORMAL_MAP_UV_B
        let uv = (uv_transform * vec3(in.uv_b, 1.0)).xy;
#else
        let uv = (uv_transform * vec3(in.uv, 1.0)).xy;
#endif
        let mapped = textureSampleBias(
#ifdef BINDLESS
            bindless_textures_2d[material_indices[slot].normal_map_texture],
            bindless_samplers_filtering[material_indices[slot].normal_map_sampler],
#else
            pbr_bindings::normal_map_texture,
            pbr_bindings::normal_map_sampler,
#endif
            uv,
            view.mip_bias
        ).rgb;
        let tbn = pbr_functions::calculate_tbn_mikktspace(normal, in.world_tangent);
        normal = pbr_functions::apply_normal_mapping(flags, tbn, double_sided, is_front, mapped);
#endif
#endif
#endif
    }
    out.normal = vec4(normal * 0.5 + vec3(0.5), 1.0);
#endif

#ifdef MOTION_VECTOR_PREPASS
    out.motion_vector = calculate_motion_vector(in.world_position, in.previous_world_position);
#endif
    return out;
}
#else
@fragment
fn fragment(in: TintedFragment) {
    // Bevy's stage does not dither here. Depth would be written of pixels that the main pass
    // leaves out.
#ifdef VISIBILITY_RANGE_DITHER
    pbr_functions::visibility_range_dither(in.position, in.visibility_range_dither);
#endif
    discard_by_alpha(in);
}
#endif
