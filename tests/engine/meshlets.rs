//! Compares the meshlet stages on the GPU with their twins: random scenes, all edge cases, both
//! tiers.

mod check;
mod expansions;
mod late;

use crate::common::{self, Scene, gpu, options, random_scene, rng};
use bevy_gpu_culling::{
    cull::{
        CoarserLevel, CullRequest, CullView, Culler, CullingTier, DrawShape, ErrorRange, Gpu,
        LodEye, PlainPasses, SetId,
        meshlets::{
            MeshletCuller, MeshletExpansion, MeshletMeshId, MeshletOptions, MeshletRequest,
            MeshletStage, SeenFaces,
        },
    },
    meshlet::{Meshlet, NormalCone},
};
use check::{Seen, compare};
use glam::camera::rh::{proj::directx, view};
use glam::{DVec3, Quat, Vec3};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use wgpu::Device;

const TIERS: [CullingTier; 2] = [CullingTier::Subgroup, CullingTier::Workgroup];

/// A mesh of one level ([`random_run`]).
fn random_meshlets(rng: &mut ChaCha8Rng, count: usize) -> Levels {
    vec![random_run(rng, count, 0)]
}

/// The meshlets of each level of a mesh, the full mesh first.
type Levels = Vec<Vec<Meshlet>>;

/// The end of a run of meshlets in their index buffer.
fn end_of(run: &[Meshlet]) -> u32 {
    let last = run.last();
    last.map_or(0, |last| last.first_index + last.triangle_count * 3)
}

/// Meshlets on a ball of radius 2, with narrow and wide cones.
fn random_run(rng: &mut ChaCha8Rng, count: usize, mut first_index: u32) -> Vec<Meshlet> {
    (0..count)
        .map(|_| {
            let turn = Quat::from_euler(
                glam::EulerRot::XYZ,
                rng.random_range(-3.0..3.0),
                rng.random_range(-3.0..3.0),
                0.0,
            );
            let out = turn * Vec3::Z;
            let tilt = Quat::from_axis_angle(turn * Vec3::X, rng.random_range(0.0..1.5));
            let meshlet = Meshlet {
                center: out * rng.random_range(0.0..2.0),
                radius: rng.random_range(0.0..1.0),
                cone: NormalCone::around(out, [DVec3::from(tilt * out), out.as_dvec3()]),
                first_index,
                triangle_count: rng.random_range(1..=124),
            };
            first_index += meshlet.triangle_count * 3;
            meshlet
        })
        .collect()
}

/// A scene in which most requests draw meshes of meshlets.
struct MeshletScene {
    scene: Scene,
    meshes: Vec<Levels>,
    requests: Vec<MeshletRequest>,
}

fn meshlet_scene(rng: &mut ChaCha8Rng, lengths: &[usize], counts: &[usize]) -> MeshletScene {
    let mut scene = random_scene(rng, lengths);
    let mut meshes: Vec<_> = counts
        .iter()
        .map(|count| random_meshlets(rng, *count))
        .collect();
    // Its own stream: the rest of the scene does not depend on levels.
    let mut lods = rng.clone();
    lods.set_stream(3);
    for levels in &mut meshes {
        for _ in 0..lods.random_range(0..5) {
            let finer = levels.last().unwrap();
            let (count, end) = (finer.len().div_ceil(2), end_of(finer));
            levels.push(random_run(&mut lods, count, end));
        }
    }
    let mut requests = Vec::new();
    for (index, request) in scene.frame.requests.iter_mut().enumerate() {
        let mesh = index % meshes.len();
        request.sphere.radius = 3.0;
        // Meshlets do not grow with their instances.
        request.thin_below = 0.0;
        // Levels that begin near enough for some survivors.
        let shape = request.shape;
        let level = |error| CoarserLevel::new(shape, error);
        if lods.random() {
            request.coarser = Some([0.05, 0.5, 5.0].map(level).into());
        }
        set_levels(request, &meshes[mesh], 300 + index as u32);
        let mut face = || match rng.random_range(0..4) {
            0 => SeenFaces::Both,
            1 => SeenFaces::Back,
            _ => SeenFaces::Front,
        };
        let faces = request.views.iter().map(|_| face()).collect();
        requests.push(MeshletRequest {
            request: index,
            mesh: MeshletMeshId(mesh as u64),
            faces,
            draws_visible: Vec::new(),
        });
    }
    MeshletScene {
        scene,
        meshes,
        requests,
    }
}

/// Gives a request and its levels the shapes of a mesh and its levels. If the request has more
/// levels than the mesh, the others have no meshlets.
fn set_levels(request: &mut CullRequest, mesh: &Levels, first_index: u32) {
    let shape = |run: &[Meshlet]| {
        let first = run.first().map_or(0, |first| first.first_index);
        DrawShape::Indexed {
            index_count: end_of(run) - first,
            first_index: first_index + first,
            base_vertex: -5,
        }
    };
    request.shape = shape(&mesh[0]);
    let Some(coarser) = &request.coarser else {
        return;
    };
    let mut coarser = coarser.to_vec();
    for (level, run) in coarser.iter_mut().zip(&mesh[1..]) {
        level.shape = shape(run);
    }
    request.coarser = Some(coarser.into());
}

/// Adds a request of the first set, with a mesh of its own.
fn add_request(scene: &mut MeshletScene) {
    let second = CullRequest {
        key: 1,
        set: SetId(0),
        ..scene.scene.frame.requests[0].clone()
    };
    scene.scene.frame.requests.push(second);
    scene.meshes.push(random_meshlets(&mut rng(1), 90));
    scene.requests.push(MeshletRequest {
        request: 1,
        mesh: MeshletMeshId(1),
        faces: vec![SeenFaces::Front; 2],
        draws_visible: Vec::new(),
    });
}

/// Views see levels from where the first entity is.
fn see_levels(scene: &mut MeshletScene) {
    let frame = &mut scene.scene.frame;
    let eye = LodEye {
        position: frame.requests[0].world_from_local.translation.into(),
        is_orthographic: false,
        resolution: 10.0,
        min_resolution: f32::INFINITY,
        pixels: 0.0,
        fades: false,
    };
    for view in &mut frame.views {
        *view = view.with_lods_of(eye);
    }
}

struct Run {
    culler: Culler,
    meshlets: MeshletCuller,
}

fn cullers(device: &Device, tier: CullingTier, room: MeshletOptions) -> Run {
    let (culler, _) = Culler::new(device, options(tier, true)).unwrap();
    let meshlets = MeshletCuller::new(device, tier, room).unwrap().unwrap();
    Run { culler, meshlets }
}

/// Options with so few workgroups that each has much work. Survivors are expanded by the division;
/// `expansions` has the other ways.
fn checked() -> MeshletOptions {
    MeshletOptions {
        shader_checks: true,
        workgroups: 5,
        expansion: MeshletExpansion::Division,
        ..MeshletOptions::default()
    }
}

impl Run {
    /// Uploads what a scene draws: sets and meshes.
    fn upload(&mut self, gpu: Gpu<'_>, scene: &MeshletScene) {
        common::upload(&mut self.culler, gpu, &scene.scene);
        for (id, levels) in (0..).zip(&scene.meshes) {
            let levels: Vec<_> = levels.iter().map(Vec::as_slice).collect();
            let id = MeshletMeshId(id);
            self.meshlets.insert_mesh(id, &levels).unwrap();
        }
    }

    fn frame(&mut self, gpu: Gpu<'_>, scene: &MeshletScene) {
        let Gpu { device, queue } = gpu;
        self.upload(gpu, scene);
        let frame = &scene.scene.frame;
        self.culler.prepare(gpu, frame);
        self.meshlets
            .prepare(gpu, &self.culler, frame, &scene.requests);
        let mut encoder = device.create_command_encoder(&Default::default());
        let recorded = self.culler.prepared().unwrap().record_with(
            gpu,
            &mut encoder,
            &mut PlainPasses,
            &mut [&mut self.meshlets],
        );
        queue.submit([encoder.finish()]);
        self.culler.finish(recorded);
        self.meshlets.finish();
    }

    fn check(&self, gpu: Gpu<'_>, scene: &MeshletScene) -> Result<Seen, String> {
        compare((&self.culler, &self.meshlets), gpu, &scene.scene)
    }
}

#[test]
fn random_scenes_are_the_twins_on_both_tiers() {
    let gpu = gpu();
    let mut seen = Seen::default();
    for tier in TIERS {
        let mut run = cullers(gpu.device, tier, checked());
        for seed in 0..12 {
            let mut rng = rng(seed);
            let lengths: Vec<_> = (0..rng.random_range(1..4))
                .map(|_| rng.random_range(0..1500))
                .collect();
            let counts = [rng.random_range(1..40), rng.random_range(1..200)];
            let scene = meshlet_scene(&mut rng, &lengths, &counts);
            run.frame(gpu, &scene);
            seen += run
                .check(gpu, &scene)
                .unwrap_or_else(|error| panic!("{tier}, seed {seed}: {error}"));
        }
    }
    let some = seen.tested / 20;
    assert!(
        seen.visible > some && seen.outside > some && seen.facing_away > some,
        "{seen:?}"
    );
    assert!(seen.borderline < seen.tested / 10_000, "{seen:?}");
    assert!(seen.coarser > some, "{seen:?}");
}

/// One view that keeps everything, and one camera in the middle.
fn fixed_scene(instances: usize, meshlets: usize) -> MeshletScene {
    let mut rng = rng(instances as u64 * 1000 + meshlets as u64);
    let mut scene = meshlet_scene(&mut rng, &[instances], &[meshlets]);
    // Tests count all instances.
    scene.scene.sets[0].show_all();
    let view = view::look_at_mat4(Vec3::ZERO, Vec3::X, Vec3::Y);
    let clip = directx::perspective_infinite_reverse(1.2, 1.3, 0.1) * view;
    let everything = CullView::EVERYTHING;
    scene.scene.frame.views = vec![everything, CullView::from_clip_from_world(&clip)];
    scene.scene.frame.requests[0].views = vec![0, 1];
    scene.scene.frame.requests[0].coarser = None;
    scene.scene.frame.requests[0].errors = ErrorRange::default();
    scene.requests[0].faces = vec![SeenFaces::Both, SeenFaces::Front];
    scene
}

#[test]
fn every_edge_of_tiles_words_groups_and_scans_is_the_twins() {
    let gpu = gpu();
    for tier in TIERS {
        let mut run = cullers(gpu.device, tier, checked());
        // Sizes around a word, a tile and a block.
        for instances in [
            0, 1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1023, 1025,
        ] {
            // Around a group and a workgroup of args, and with the tiles around a tile of the scan.
            for meshlets in [1, 7, 8, 9, 127, 128, 129, 257] {
                let scene = fixed_scene(instances, meshlets);
                run.frame(gpu, &scene);
                let seen = run.check(gpu, &scene);
                let seen = seen.unwrap_or_else(|e| panic!("{tier}, {instances} x {meshlets}: {e}"));
                // The first view keeps everything.
                assert!(seen.visible >= (instances * meshlets) as u64);
            }
        }
    }
}

/// More cells than one round of the spine processes, and more ids than fit at first.
#[test]
fn many_meshlets_are_the_twins() {
    let gpu = gpu();
    // With few workgroups, each would loop more often than lavapipe allows (65,535 times).
    let room = MeshletOptions {
        workgroups: MeshletOptions::default().workgroups,
        ..checked()
    };
    for tier in TIERS {
        let mut run = cullers(gpu.device, tier, room);
        let scene = fixed_scene(1500, 6000);
        run.frame(gpu, &scene);
        let seen = run.check(gpu, &scene).unwrap();
        assert!(seen.whole > 0 && seen.tested > 8_000_000, "{seen:?}");
    }
}

/// Rows without room are drawn whole, until it has grown.
fn rows_find_room(tier: CullingTier, expansion: MeshletExpansion) {
    let gpu = gpu();
    let device = gpu.device;
    for (cells, survivors) in [(40, 1 << 20), (1 << 16, 500), (1, 1)] {
        let room = MeshletOptions {
            cell_capacity: cells,
            survivor_capacity: survivors,
            expansion,
            ..checked()
        };
        let mut run = cullers(device, tier, room);
        let scene = meshlet_scene(&mut rng(5), &[900, 300, 700], &[30, 50]);
        run.frame(gpu, &scene);
        let first = run.check(gpu, &scene).unwrap();
        assert!(first.whole > 0, "{first:?}");
        let mut last = first;
        for _ in 0..6 {
            device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
            run.frame(gpu, &scene);
            last = run.check(gpu, &scene).unwrap();
        }
        assert_eq!(last.whole, 0, "{expansion}, {cells} {survivors} {last:?}");
    }
}

#[test]
fn rows_without_room_are_drawn_whole_until_it_has_grown() {
    for tier in TIERS {
        rows_find_room(tier, MeshletExpansion::Division);
    }
}

#[test]
fn counters_arrive_and_add_up() {
    let gpu = gpu();
    let device = gpu.device;
    let mut run = cullers(device, TIERS[0], checked());
    let scene = fixed_scene(700, 33);
    run.frame(gpu, &scene);
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let counts = run.meshlets.take_counts().unwrap();
    let seen = run.check(gpu, &scene).unwrap();
    let sum = |of: fn(&bevy_gpu_culling::cull::meshlets::MeshletRowCount) -> u64| {
        counts.rows.iter().map(of).sum::<u64>()
    };
    assert_eq!(counts.rows.len(), 2);
    assert_eq!(sum(|row| row.tested), seen.tested);
    assert_eq!(sum(|row| row.visible), seen.visible);
    assert_eq!(sum(|row| row.outside), seen.outside);
    assert_eq!(sum(|row| row.facing_away), seen.facing_away);
    assert!(seen.facing_away > 0 && seen.outside > 0);
    let all = &counts.rows[0];
    assert_eq!(all.triangles, all.whole_triangles);
    assert!(counts.rows[1].triangles < counts.rows[1].whole_triangles);
    assert!(run.meshlets.take_counts().is_none());
}

#[test]
fn frames_without_meshlets_do_nothing() {
    let gpu = gpu();
    let mut run = cullers(gpu.device, TIERS[0], checked());
    let mut scene = fixed_scene(100, 4);
    // A mesh that was never registered, then a mesh without indices, then a request that does not
    // exist.
    scene.requests[0].mesh = MeshletMeshId(9);
    run.frame(gpu, &scene);
    assert!(!run.meshlets.has_gpu_work());
    scene.requests[0].mesh = MeshletMeshId(0);
    scene.scene.frame.requests[0].shape = DrawShape::NonIndexed {
        vertex_count: 9,
        first_vertex: 0,
    };
    run.frame(gpu, &scene);
    assert!(!run.meshlets.has_gpu_work());
    scene.requests[0].request = 7;
    run.frame(gpu, &scene);
    let part = run.culler.draw_parts(0, 0)[0];
    assert!(run.meshlets.draw(&run.culler, &part).is_none() && !run.meshlets.has_gpu_work());
    assert!(
        MeshletCuller::new(gpu.device, CullingTier::Cpu, checked())
            .unwrap()
            .is_none()
    );
}

/// Of each view, each survivor is drawn by the meshlets of one level, and by all of them if the
/// view keeps everything. Levels that the mesh does not have are drawn whole.
#[test]
fn each_level_is_drawn_by_its_own_meshlets() {
    let gpu = gpu();
    let device = gpu.device;
    for tier in TIERS {
        let mut run = cullers(device, tier, checked());
        let mut scene = fixed_scene(700, 33);
        let mut rng = rng(3);
        let full = &mut scene.meshes[0];
        full.truncate(1);
        for count in [9, 1] {
            full.push(random_run(&mut rng, count, end_of(full.last().unwrap())));
        }
        let request = &mut scene.scene.frame.requests[0];
        // The distances of instances are 0 to about 100; the last level has no meshlets.
        let level = |error| CoarserLevel {
            shape: request.shape,
            error,
            sphere: None,
        };
        request.coarser = Some([2.0, 4.0, 6.0].map(level).into());
        request.errors = ErrorRange::default();
        set_levels(request, &scene.meshes[0], 300);
        see_levels(&mut scene);
        run.frame(gpu, &scene);
        let seen = run.check(gpu, &scene).unwrap();
        assert!(seen.coarser > 0, "{seen:?}");
        device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        let counts = run.meshlets.take_counts().unwrap();
        let counted = run.culler.take_counts(device).unwrap();
        for view in [0, 1] {
            let rows = counts.rows.iter().filter(|row| row.view == view);
            let mut meshlets_of_level = [0; 3];
            for row in rows {
                let level = &scene.meshes[0][row.level as usize];
                assert_eq!(row.tested, row.survivors * level.len() as u64);
                let triangles: u64 = level.iter().map(|m| u64::from(m.triangle_count)).sum();
                assert_eq!(row.whole_triangles, row.survivors * triangles);
                if view == 0 {
                    assert_eq!(row.triangles, row.whole_triangles);
                }
                meshlets_of_level[row.level as usize] += row.survivors;
            }
            let mut kept = [0; 4];
            for row in counted.rows.iter().filter(|row| row.view == view) {
                kept[row.level as usize] += u64::from(row.visible);
            }
            assert_eq!(kept[..3], meshlets_of_level);
            if view == 0 {
                assert!(kept.iter().all(|kept| *kept > 20), "{kept:?}");
                assert_eq!(kept.iter().sum::<u64>(), 700);
            }
        }
        let parts = run.culler.draw_parts(0, 0).iter();
        for part in parts {
            let parted = run.meshlets.draw(&run.culler, part).is_some();
            assert_eq!(parted, part.level < 3, "level {}", part.level);
        }
    }
}

/// Two entities with one set and two meshes, then other meshes in other frames.
#[test]
fn meshes_come_and_go() {
    let gpu = gpu();
    let mut run = cullers(gpu.device, TIERS[0], checked());
    let mut scene = fixed_scene(500, 20);
    add_request(&mut scene);
    for meshlets in [90, 3, 300] {
        scene.meshes[1] = random_meshlets(&mut rng(2), meshlets);
        set_levels(&mut scene.scene.frame.requests[1], &scene.meshes[1], 300);
        run.frame(gpu, &scene);
        run.check(gpu, &scene).unwrap();
    }
    run.meshlets.remove_mesh(MeshletMeshId(0));
    scene.requests.remove(0);
    scene.meshes[0] = vec![vec![]];
    run.frame(gpu, &scene);
    run.check(gpu, &scene).unwrap();
}

/// The comparison detects every broken kernel, so it can fail.
#[test]
fn a_broken_kernel_is_seen() {
    let gpu = gpu();
    for (stage, from, to) in [
        (MeshletStage::Expand, "+ MESHLET_TILE - 1u", ""),
        (MeshletStage::Expand, "atomicMax(&source_end, end.z);", ""),
        (
            MeshletStage::Expand,
            "span.first_source = end.z - needs.z",
            "span.first_source = end.z",
        ),
        (
            MeshletStage::Expand,
            "span.first_item = end.y - needs.y",
            "span.first_item = end.y",
        ),
        (MeshletStage::Vote, "cutoff * length(to_eye) + ", ""),
        (
            MeshletStage::Vote,
            "inside & !faces_away",
            "inside | !faces_away",
        ),
        (MeshletStage::Vote, "sphere.w * largest);", "sphere.w);"),
        (
            MeshletStage::Vote,
            "rotate(inverse, eye.xyz - eye.w * survivor.position)",
            "eye.xyz - eye.w * survivor.position",
        ),
        (
            MeshletStage::Vote,
            "turned * (part.yzx * part.zxy)",
            "turned",
        ),
        (
            MeshletStage::Vote,
            "atomicStore(&item_words[thread], 0u);",
            "",
        ),
        (
            MeshletStage::Vote,
            "survives & found.outside",
            "found.outside",
        ),
        (MeshletStage::Scan, "inclusive - count", "inclusive"),
        (
            MeshletStage::Scan,
            "carry + inclusive - total",
            "inclusive - total",
        ),
        (MeshletStage::Compact, "(bit - 1u)", "bit"),
        (MeshletStage::Compact, " + before.z", ""),
        (
            MeshletStage::Args,
            "first_index + meshlet.first_index",
            "meshlet.first_index",
        ),
        (
            MeshletStage::Args,
            "first_draw + 1u + draw_count + rank",
            "first_draw + 1u + rank",
        ),
        (
            MeshletStage::Args,
            "meshlet.index_count / 3u",
            "meshlet.index_count",
        ),
    ] {
        let (culler, _) = Culler::new(gpu.device, options(TIERS[0], true)).unwrap();
        let edit = move |of: MeshletStage, source: String| {
            // The second step of the scan is a part of the scan's file.
            if of == stage && (of != MeshletStage::Scan || source.contains(from)) {
                assert!(source.contains(from), "{stage:?} has no {from:?}");
                source.replace(from, to)
            } else {
                source
            }
        };
        let meshlets = MeshletCuller::with_sources(gpu.device, TIERS[0], checked(), edit);
        let meshlets = meshlets.unwrap().unwrap();
        let mut run = Run { culler, meshlets };
        let mut seen = false;
        let mut scenes =
            (0..12).map(|seed| meshlet_scene(&mut rng(seed), &[1200, 700], &[150, 20]));
        while let Some(scene) = (!seen).then(|| scenes.next()).flatten() {
            run.frame(gpu, &scene);
            seen = run.check(gpu, &scene).is_err();
        }
        if !seen && stage == MeshletStage::Scan {
            let scene = fixed_scene(1500, 6000);
            run.frame(gpu, &scene);
            seen = run.check(gpu, &scene).is_err();
        }
        assert!(seen, "{stage:?}: {from:?} -> {to:?} is not seen");
    }
}
