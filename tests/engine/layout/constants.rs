//! Constants of the shaders are the host's.

use super::{parse, u32_of};
use bevy_gpu_culling::cull::{
    layout::{expand::*, *},
    shaders,
};

#[test]
fn constants_are_the_same_on_both_sides() {
    compare_constants(
        shaders::LAYOUT,
        &[
            ("BLOCK", BLOCK),
            ("BLOCK_THREADS", BLOCK_THREADS),
            ("BLOCK_ITEMS", BLOCK_ITEMS),
            ("BLOCK_WORDS", BLOCK_WORDS),
            ("SCAN_TILE", SCAN_TILE),
            ("CLASSIFY_THREADS", CLASSIFY_THREADS),
            ("ORDER_TILE", ORDER_TILE),
            ("ORDER_THREADS", ORDER_THREADS),
            ("RINGS", RINGS),
            ("FAR_FIRST_TILE", FAR_FIRST_TILE),
            ("FAR_FIRST_THREADS", FAR_FIRST_THREADS),
            ("DIGITS", DIGITS),
            ("BLOCKS_PER_WORKGROUP", BLOCKS_PER_WORKGROUP),
            ("COUNTS_PER_WORKGROUP", COUNTS_PER_WORKGROUP),
            ("SCAN_THREADS", SCAN_THREADS),
            ("MAX_STRIP_BLOCKS", MAX_STRIP_BLOCKS),
            ("MAX_STRIP_WORDS", MAX_STRIP_WORDS),
            ("MAX_STRIP_TURNS", MAX_STRIP_TURNS),
            ("MAX_TILES", MAX_TILES),
            ("PYRAMID_THREADS", PYRAMID_THREADS),
            ("PYRAMID_TILE", PYRAMID_TILE),
            ("MAX_PYRAMID_LEVELS", MAX_PYRAMID_LEVELS),
            ("VISIBLE", VISIBLE),
            ("COVERS_NO_SAMPLE", COVERS_NO_SAMPLE),
            ("HIDDEN", HIDDEN),
            ("CHUNK_HAS_SCALE", CHUNK_HAS_SCALE),
            ("CHUNK_OFF_CENTER", CHUNK_OFF_CENTER),
            ("CHUNK_NON_UNIFORM_SCALE", CHUNK_NON_UNIFORM_SCALE),
            ("CHUNK_IS_THINNED", CHUNK_IS_THINNED),
            ("VIEW_INDEXED", VIEW_INDEXED),
            ("ROW_IS_NEAR_FIRST", ROW_IS_NEAR_FIRST),
            ("NOT_INDEXED", NOT_INDEXED),
            ("BOUND_IS_LOOSE", BOUND_IS_LOOSE),
            ("BAND_BY_DISTANCE", BAND_BY_DISTANCE),
            ("BAND_BY_SIZE", BAND_BY_SIZE),
            ("BAND_OF_ORIGINS", BAND_OF_ORIGINS),
            ("BAND_OF_CENTERS", BAND_OF_CENTERS),
            ("BAND_IS_THINNED", BAND_IS_THINNED),
            ("BAND_THINS_BY_SIZE", BAND_THINS_BY_SIZE),
            ("FOOTPRINT_BITS", FOOTPRINT_BITS),
            ("NEAR_DIVISOR", NEAR_DIVISOR),
            ("OCCLUSION_IS_CUT", OCCLUSION_IS_CUT),
            ("OCCLUSION_IS_FROZEN", OCCLUSION_IS_FROZEN),
            ("OCCLUSION_IS_NEW", OCCLUSION_IS_NEW),
            ("RECORD_WORDS", RECORD_WORDS),
        ],
    );
    compare_constants(
        shaders::SCATTER_LAYOUT,
        &[
            ("SCATTER_SIDE", SCATTER_SIDE),
            ("SCATTER_STEPS", SCATTER_STEPS),
            ("SCATTER_THREADS", SCATTER_THREADS),
            ("SCATTER_ITEMS", SCATTER_ITEMS),
            ("SCATTER_TURNS", SCATTER_TURNS),
            ("SCATTER_HAS_DENSITY", SCATTER_HAS_DENSITY),
            ("SCATTER_HAS_HEIGHT", SCATTER_HAS_HEIGHT),
            ("SCATTER_HAS_EXCLUSION", SCATTER_HAS_EXCLUSION),
        ],
    );
    // A workgroup has a candidate per cell of a tile, and a tile as many as a block has instances.
    assert_eq!(SCATTER_THREADS * SCATTER_ITEMS, BLOCK);
    assert_eq!(SCATTER_SIDE * SCATTER_SIDE, BLOCK);
    compare_constants(
        shaders::EXPAND_LAYOUT,
        &[
            ("EXPAND_THREADS", EXPAND_THREADS),
            ("EXPAND_TILE", EXPAND_TILE),
            ("EXPAND_SPINE_RUN", EXPAND_SPINE_RUN),
            ("EXPAND_CHUNK", EXPAND_CHUNK),
            ("EXPAND_SPAN", EXPAND_SPAN),
            ("EXPAND_BUCKETS", EXPAND_BUCKETS),
            ("EXPAND_MAX_ITEMS", EXPAND_MAX_ITEMS),
            ("EXPAND_KNOWN", EXPAND_KNOWN),
            ("EXPAND_TOO_MANY_ITEMS", EXPAND_TOO_MANY_ITEMS),
            ("EXPAND_TOO_MANY_THREADS", EXPAND_TOO_MANY_THREADS),
            ("EXPAND_NO_ROOM", EXPAND_NO_ROOM),
        ],
    );
}

/// Compares every constant of the module with the host's value.
fn compare_constants(source: &str, constants: &[(&str, u32)]) {
    let module = parse(source);
    for (name, host) in constants {
        assert_eq!(u32_of(&module, name), *host, "{name}");
    }
    assert_eq!(
        module.constants.len(),
        constants.len(),
        "a constant is not compared"
    );
}

#[test]
fn the_step_of_a_quaternion_is_the_same_on_both_sides() {
    let module = parse(shaders::INSTANCE);
    let (_, step) = module
        .constants
        .iter()
        .find(|(_, c)| c.name.as_deref() == Some("QUAT_STEP"))
        .unwrap();
    let value = &module.global_expressions[step.init];
    let naga::Expression::Literal(naga::Literal::F32(wgsl)) = value else {
        panic!("{value:?}")
    };
    assert_eq!(*wgsl, bevy_gpu_culling::instance::PackedQuat::STEP);
}
