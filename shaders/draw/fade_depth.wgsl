// Fragment stage of prepasses that write nothing but depth, for sets that fade. Bevy has none for
// opaque materials, and for masked ones its stage does not dither: depth would be written of
// pixels that the main pass leaves out.
#import bevy_pbr::pbr_functions

#ifdef FADES_MASKED
#import bevy_pbr::{pbr_prepass_functions, prepass_io}

@fragment
fn fragment(in: prepass_io::VertexOutput) {
    pbr_functions::visibility_range_dither(in.position, in.visibility_range_dither);
    pbr_prepass_functions::prepass_alpha_discard(in);
}
#else
struct FadedFragment {
    @builtin(position) position: vec4<f32>,
    @location(9) @interpolate(flat) visibility_range_dither: i32,
}

@fragment
fn fragment(in: FadedFragment) {
    pbr_functions::visibility_range_dither(in.position, in.visibility_range_dither);
}
#endif
