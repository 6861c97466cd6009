#![no_main]

libfuzzer_sys::fuzz_target!(|payload: &[u8]| bevy_gpu_culling_fuzz::meshlets(payload));
