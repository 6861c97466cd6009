// Around the 32 instances of a visibility word, in 4 bytes beside the block's bound: the centre as three signed steps
// of radius / 127 from the block's centre, the radius in the same steps, rounded up. The twin is
// `reference::classify::word_code`.

const WORD_STEPS: f32 = 127.0;

fn word_steps(code: u32) -> vec4<u32> {
    return vec4<u32>(code, code >> 8u, code >> 16u, code >> 24u) & vec4<u32>(255u);
}

fn word_centre(centre: vec3<f32>, step: f32, steps: vec3<u32>) -> vec3<f32> {
    return centre + (vec3<f32>(steps) - 128.0) * step;
}
