// The color of an instance, which its tag holds: for fragment stages of materials.
#define_import_path bevy_gpu_culling::tint

#import bevy_pbr::mesh_functions

#ifdef PREPASS_PIPELINE
#import bevy_pbr::prepass_io::VertexOutput
#else
#import bevy_pbr::forward_io::VertexOutput
#endif

// The linear color that a tag holds. The tag is the complement of red, green, blue and alpha, with
// red in the lowest 8 bits, and red, green and blue in sRGB. So tag 0 is white.
fn color_of_tag(tag: u32) -> vec4<f32> {
    let color = unpack4x8unorm(~tag);
    let high = pow((color.rgb + 0.055) / 1.055, vec3(2.4));
    return vec4(select(high, color.rgb / 12.92, color.rgb <= vec3(0.04045)), color.a);
}

// What the vertex stages of sets and meshes pass on: Bevy's VertexOutput, location by location,
// and the instance. In the fragment stages, VERTEX_COLORS is always defined; MESH_COLORS says
// whether the mesh has them.
#ifdef PREPASS_PIPELINE
struct TintedFragment {
    @builtin(position) position: vec4<f32>,
#ifdef VERTEX_UVS_A
    @location(0) uv: vec2<f32>,
#endif
#ifdef VERTEX_UVS_B
    @location(1) uv_b: vec2<f32>,
#endif
#ifdef NORMAL_PREPASS_OR_DEFERRED_PREPASS
    @location(2) world_normal: vec3<f32>,
#ifdef VERTEX_TANGENTS
    @location(3) world_tangent: vec4<f32>,
#endif
#endif
    @location(4) world_position: vec4<f32>,
#ifdef MOTION_VECTOR_PREPASS
    @location(5) previous_world_position: vec4<f32>,
#endif
#ifdef UNCLIPPED_DEPTH_ORTHO_EMULATION
    @location(6) unclipped_depth: f32,
#endif
#ifdef VERTEX_OUTPUT_INSTANCE_INDEX
    @location(7) @interpolate(flat) instance_index: u32,
#endif
#ifdef MESH_COLORS
    @location(8) color: vec4<f32>,
#endif
#ifdef VISIBILITY_RANGE_DITHER
    @location(9) @interpolate(flat) visibility_range_dither: i32,
#endif
#ifdef GPU_INSTANCES
    @location(14) @interpolate(flat) instance: vec2<u32>,
#endif
}
#else
struct TintedFragment {
    @builtin(position) position: vec4<f32>,
    @location(0) world_position: vec4<f32>,
    @location(1) world_normal: vec3<f32>,
#ifdef VERTEX_UVS_A
    @location(2) uv: vec2<f32>,
#endif
#ifdef VERTEX_UVS_B
    @location(3) uv_b: vec2<f32>,
#endif
#ifdef VERTEX_TANGENTS
    @location(4) world_tangent: vec4<f32>,
#endif
#ifdef MESH_COLORS
    @location(5) color: vec4<f32>,
#endif
#ifdef VERTEX_OUTPUT_INSTANCE_INDEX
    @location(6) @interpolate(flat) instance_index: u32,
#endif
#ifdef VISIBILITY_RANGE_DITHER
    @location(7) @interpolate(flat) visibility_range_dither: i32,
#endif
#ifdef GPU_INSTANCES
    @location(14) @interpolate(flat) instance: vec2<u32>,
#endif
}
#endif

// The instance's color. On a mesh, or in a set with `InstanceMeshUniforms`, Bevy has the tag.
fn tint_of(in: TintedFragment) -> vec4<f32> {
#ifdef GPU_INSTANCES
    return color_of_tag(in.instance.x);
#else ifdef VERTEX_OUTPUT_INSTANCE_INDEX
    return color_of_tag(mesh_functions::get_tag(in.instance_index));
#else
    return vec4(1.0);
#endif
}

// Bevy's own input, with the tint as the vertex color: Bevy multiplies the base color by it before
// anything depends on that.
fn tinted(in: TintedFragment) -> VertexOutput {
    var out: VertexOutput;
    out.position = in.position;
    out.world_position = in.world_position;
#ifdef VERTEX_UVS_A
    out.uv = in.uv;
#endif
#ifdef VERTEX_UVS_B
    out.uv_b = in.uv_b;
#endif
#ifdef PREPASS_PIPELINE
#ifdef NORMAL_PREPASS_OR_DEFERRED_PREPASS
    out.world_normal = in.world_normal;
#ifdef VERTEX_TANGENTS
    out.world_tangent = in.world_tangent;
#endif
#endif
#ifdef MOTION_VECTOR_PREPASS
    out.previous_world_position = in.previous_world_position;
#endif
#ifdef UNCLIPPED_DEPTH_ORTHO_EMULATION
    out.unclipped_depth = in.unclipped_depth;
#endif
#else
    out.world_normal = in.world_normal;
#ifdef VERTEX_TANGENTS
    out.world_tangent = in.world_tangent;
#endif
#endif
#ifdef VERTEX_OUTPUT_INSTANCE_INDEX
    out.instance_index = in.instance_index;
#endif
#ifdef VISIBILITY_RANGE_DITHER
    out.visibility_range_dither = in.visibility_range_dither;
#endif
#ifdef VERTEX_COLORS
    out.color = tint_of(in);
#ifdef MESH_COLORS
    out.color *= in.color;
#endif
#endif
    return out;
}
