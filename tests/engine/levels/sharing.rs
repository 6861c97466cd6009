//! Requests of one set that share out its levels.

use super::{EYE, TIERS, counts_of, request, row_of, shape, survivors, with};
use crate::common::{Scene, gpu, random_scene, rng, run};
use bevy_gpu_culling::cull::{Compaction, CullFrame, CullRequest, Culler, ErrorRange, LodEye};
use rand::RngExt;
use std::collections::HashSet;

/// Two requests of one set that share out the levels at an error.
fn sharing(mut near: CullRequest, error: f32, fade: f32) -> Vec<CullRequest> {
    near.fade = fade;
    let coarser = near.coarser.as_ref().map_or(0, |coarser| coarser.len());
    let far = CullRequest {
        key: near.key + 1000,
        shape: shape(6),
        coarser: None,
        errors: ErrorRange {
            start: Some(error),
            end: None,
            levels_before: 1 + coarser as u32,
        },
        ..near.clone()
    };
    near.errors.end = Some(error);
    vec![near, far]
}

/// One request ends at the error at which the other starts. While an instance fades, both draw it,
/// but never three levels. A view that does not fade has the farther request alone.
#[test]
fn requests_share_out_levels_by_error() {
    let gpu = gpu();
    let (mut small, mut short) = (EYE, EYE);
    small.min_resolution = 1400.0;
    short.fades = false;
    // Levels begin at 1000 times their error. An eye that sees no sphere that is smaller at 700
    // keeps instances up to there.
    for (errors, error, fade, eye, expected) in [
        (&[][..], 0.5, 0.0, EYE, vec![500, 1500]),
        (&[], 0.5, 0.2, EYE, vec![600, 1500]),
        (&[], 0.5, 0.2, short, vec![500, 1500]),
        (&[], 0.5, 0.2, small, vec![600, 200]),
        (&[], 0.0, 0.2, EYE, vec![0, 2000]),
        (&[], f32::INFINITY, 0.2, EYE, vec![2000, 0]),
        (&[0.1, 0.3], 0.5, 0.0, EYE, vec![100, 200, 200, 1500]),
        (&[0.1, 0.3], 0.5, 0.2, EYE, vec![120, 260, 300, 1500]),
        // The first coarser level fades until the next one ends, and no longer.
        (&[0.1, 0.45], 0.5, 0.2, EYE, vec![120, 400, 150, 1500]),
        // A level beyond the end is drawn nowhere.
        (&[0.1, 0.9], 0.5, 0.0, EYE, vec![100, 400, 0, 1500]),
    ] {
        for tier in TIERS {
            let (mut culler, _) = Culler::new(gpu.device, with(Compaction::Auto, tier)).unwrap();
            let mut scene = row_of(2000, request(errors, 1), eye);
            scene.frame.requests = sharing(request(errors, 1), error, fade);
            let counts = counts_of(&mut culler, gpu, &scene);
            assert_eq!(counts, expected, "{tier}: {errors:?}, {error}, {fade}");
        }
    }
    // A view that cannot tell levels apart draws the first request in full.
    for resolution in [f32::INFINITY, 0.0, f32::NAN] {
        let eye = LodEye { resolution, ..EYE };
        let mut scene = row_of(2000, request(&[], 1), eye);
        scene.frame.requests = sharing(request(&[0.1], 1), 0.5, 0.2);
        for tier in TIERS {
            let (mut culler, _) = Culler::new(gpu.device, with(Compaction::Auto, tier)).unwrap();
            assert_eq!(counts_of(&mut culler, gpu, &scene), [2000, 0, 0], "{tier}");
        }
    }
}

/// With any compaction and in any random scene, exactly one of two requests draws what one request
/// draws alone.
#[test]
fn each_survivor_is_in_one_of_two_requests() {
    let gpu = gpu();
    let mut rng = rng(0x10e);
    let (mut near, mut far) = (0, 0);
    for case in 0..4 {
        let lengths = [10f32.powf(rng.random_range(2.0..4.2)) as usize, 700];
        let mut plain = random_scene(&mut rng, &lengths);
        plain.frame.views.truncate(8);
        let mut requests = Vec::new();
        for request in &mut plain.frame.requests {
            let coarser: Vec<f32> = (0..case).map(|k| 0.003 * 2f32.powi(k)).collect();
            request.coarser = self::request(&coarser, 0).coarser;
            (request.fade, request.errors) = (0.0, ErrorRange::default());
            requests.extend(sharing(request.clone(), 0.03, 0.0));
            (request.coarser, request.shape) = (None, shape(36));
        }
        let shared = Scene {
            sets: plain.sets.clone(),
            frame: CullFrame {
                requests,
                ..plain.frame.clone()
            },
        };
        for tier in TIERS {
            for compaction in Compaction::supported(tier, gpu.device.features()) {
                let (mut culler, _) = Culler::new(gpu.device, with(compaction, tier)).unwrap();
                let mut read = |scene: &Scene| {
                    run(&mut culler, gpu, scene);
                    let mut all = Vec::new();
                    for (index, request) in scene.frame.requests.iter().enumerate() {
                        for view in 0..request.views.len() {
                            all.push((request.key, survivors(&culler, gpu, scene, index, view)));
                        }
                    }
                    all
                };
                let (whole, parts) = (read(&plain), read(&shared));
                let of = |key| parts.iter().filter(move |part| part.0 == key);
                for request in &plain.frame.requests {
                    let whole = whole.iter().filter(|part| part.0 == request.key);
                    let pairs = of(request.key).zip(of(request.key + 1000));
                    for ((_, whole), ((_, first), (_, second))) in whole.zip(pairs) {
                        let name = format!("case {case}, {compaction} on {tier}");
                        let all: HashSet<u32> = first.iter().chain(second).copied().collect();
                        assert_eq!(all.len(), first.len() + second.len(), "{name}: in both");
                        let of_whole: HashSet<u32> = whole.iter().copied().collect();
                        let differ = of_whole.symmetric_difference(&all).count();
                        assert!(differ * 1000 <= whole.len(), "{name}: {differ} differ");
                        (near, far) = (near + first.len(), far + second.len());
                    }
                }
            }
        }
    }
    assert!(near > 1000 && far > 1000, "{near} near, {far} far");
}
