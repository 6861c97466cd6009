//! The scatter on the GPU against its twin: random layers, maps and tiles, and a set that keeps what
//! is not filled again.

use crate::common::{gpu, options, rng, triangles_of};
use bevy_gpu_culling::{
    cull::{
        Channels, Compaction, CullError, CullFrame, CullRequest, CullView, Culler, CullerOptions,
        CullingTier, Gpu, SetId, WrittenSize,
        layout::{
            BLOCK, SCATTER_HAS_DENSITY, SCATTER_HAS_EXCLUSION, SCATTER_HAS_HEIGHT, SCATTER_TURNS,
            ScatterLayer, ScatterTile,
        },
        reference::{Plant, ScatterMap, ScatterMaps, scatter, texel_value},
        scatter::{ScatterFill, ScatterKernel, ScatterTextures, counts_buffer, scatter_turns},
    },
    instance::{PackedInstance, PackedQuat, ScaleKind},
};
use core::f32::consts::TAU;
use glam::{IVec2, UVec2};
use proptest::{prelude::*, test_runner::FileFailurePersistence};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use wgpu::{Buffer, TextureFormat, TextureView, util::DeviceExt};

const SET: SetId = SetId(0);

/// Options of a culler with this compaction.
fn with(compaction: Compaction) -> CullerOptions {
    CullerOptions {
        compaction,
        ..options(CullingTier::Workgroup, true)
    }
}

/// A map on both sides.
struct Map {
    size: UVec2,
    values: Vec<u16>,
    view: TextureView,
}

impl Map {
    /// A random map of 8 bits, or of floats, of which some are no fractions.
    fn random(gpu: Gpu<'_>, rng: &mut ChaCha8Rng) -> Self {
        let size = UVec2::new(rng.random_range(1..40), rng.random_range(1..40));
        let texels = (size.x * size.y) as usize;
        if rng.random() {
            let bytes: Vec<u8> = (0..texels).map(|_| rng.random()).collect();
            let values = bytes.iter().map(|byte| u16::from(*byte) * 257).collect();
            return Self::new(gpu, size, TextureFormat::R8Unorm, &bytes, values);
        }
        let odd = [f32::NAN, -1.0, 3.0, f32::INFINITY, 1e-30, -f32::INFINITY];
        let value = |rng: &mut ChaCha8Rng| match rng.random_range(0..50) {
            0 => odd[rng.random_range(0..odd.len())],
            _ => rng.random(),
        };
        let floats: Vec<f32> = (0..texels).map(|_| value(rng)).collect();
        let values = floats.iter().map(|value| texel_value(*value)).collect();
        let bytes = bytemuck::cast_slice(&floats);
        Self::new(gpu, size, TextureFormat::R32Float, bytes, values)
    }

    /// A map of one texel, which is 1.
    fn white(gpu: Gpu<'_>) -> Self {
        let format = TextureFormat::R8Unorm;
        Self::new(gpu, UVec2::ONE, format, &[255], vec![65_535])
    }

    fn new(
        gpu: Gpu<'_>,
        size: UVec2,
        format: TextureFormat,
        bytes: &[u8],
        values: Vec<u16>,
    ) -> Self {
        let descriptor = wgpu::TextureDescriptor {
            label: None,
            size: wgpu::Extent3d {
                width: size.x,
                height: size.y,
                depth_or_array_layers: 1,
            },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format,
            usage: wgpu::TextureUsages::TEXTURE_BINDING,
            view_formats: &[],
        };
        let order = wgpu::util::TextureDataOrder::LayerMajor;
        let texture = (gpu.device).create_texture_with_data(gpu.queue, &descriptor, order, bytes);
        Self {
            size,
            values,
            view: texture.create_view(&Default::default()),
        }
    }

    fn twin(&self) -> ScatterMap<'_> {
        ScatterMap {
            size: self.size,
            values: &self.values,
        }
    }
}

/// A layer and its maps.
struct Land {
    layer: ScatterLayer,
    maps: [Option<Map>; 3],
}

impl Land {
    fn random(gpu: Gpu<'_>, rng: &mut ChaCha8Rng) -> Self {
        let maps = [(); 3].map(|()| rng.random_bool(0.7).then(|| Map::random(gpu, rng)));
        let flags = [
            SCATTER_HAS_DENSITY,
            SCATTER_HAS_HEIGHT,
            SCATTER_HAS_EXCLUSION,
        ];
        let flags = flags.iter().zip(&maps).filter(|(_, map)| map.is_some());
        // Around the origin, and so small that some tiles are outside.
        let len = [(); 2].map(|()| rng.random_range(2..90_000u32));
        let shift = len.map(u32::ilog2);
        let factor = [0, 1].map(|axis| {
            let factor = (1u64 << (32 + shift[axis])) / u64::from(len[axis]);
            u32::try_from(factor).unwrap_or(u32::MAX)
        });
        let layer = ScatterLayer {
            step: rng.random_range(0.001..0.1),
            seed: rng.random(),
            jitter: rng.random_range(0..=256),
            min_apart: match rng.random_bool(0.5) {
                true => 0,
                false => rng.random_range(0..=65_536),
            },
            first_x: rng.random_range(-25_000..-5_000),
            first_z: rng.random_range(-25_000..-5_000),
            len_x: len[0],
            len_z: len[1],
            factor_x: factor[0],
            factor_z: factor[1],
            shift_x: shift[0],
            shift_z: shift[1],
            flags: flags.map(|(flag, _)| flag).sum(),
            density: rng.random_range(0..=1 << 15),
            height_first: rng.random_range(-1000..1000),
            height_shift: rng.random_range(0..9),
            height_step: rng.random_range(0.0001..0.1),
            min_height: rng.random_range(0..1 << 21),
            max_height: rng.random_range(3 << 22..1 << 24),
            gradient_x: rng.random_range(0.0..0.01),
            gradient_z: rng.random_range(0.0..0.01),
            min_slope: rng.random_range(0..1_000),
            max_slope: match rng.random_bool(0.5) {
                true => u32::MAX,
                false => rng.random_range(1_000..1 << 31),
            },
            align: match rng.random_bool(0.5) {
                true => 0.0,
                false => rng.random_range(0.0..0.001),
            },
            min_scale: rng.random_range(0..=1 << 16),
            scale_step: rng.random_range(0.0..0.001),
            ..ScatterLayer::default()
        };
        Self { layer, maps }
    }

    fn twin(&self, tile: IVec2) -> Vec<Plant> {
        let [density, height, exclusion] =
            self.maps.each_ref().map(|map| map.as_ref().map(Map::twin));
        let maps = ScatterMaps {
            density,
            height,
            exclusion,
        };
        scatter(&self.layer, &scatter_turns(TAU), &maps, tile)
    }
}

/// A set of tiles.
struct Field {
    culler: Culler,
    kernel: ScatterKernel,
    live: Buffer,
    slots: u32,
}

impl Field {
    fn new(gpu: Gpu<'_>, slots: u32, options: CullerOptions) -> Self {
        let mut culler = Culler::new(gpu.device, options).unwrap().0;
        let size = WrittenSize {
            capacity: slots * BLOCK,
            active: slots * BLOCK,
            channels: Channels {
                scale: ScaleKind::Uniform,
                ..Channels::default()
            },
            classify: true,
            noted: true,
        };
        culler.store_mut().reserve_written(gpu, SET, size).unwrap();
        Self {
            culler,
            kernel: ScatterKernel::new(gpu.device, None, true).unwrap(),
            live: counts_buffer(gpu.device, slots).unwrap(),
            slots,
        }
    }

    /// Fills slots with tiles, or empties them.
    fn fill(&mut self, gpu: Gpu<'_>, land: &Land, slots: &[(u32, Option<IVec2>)]) {
        let [density, height, exclusion] = land
            .maps
            .each_ref()
            .map(|map| map.as_ref().map(|map| &map.view));
        let maps = ScatterTextures {
            density,
            height,
            exclusion,
        };
        let turns = scatter_turns(TAU);
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        for region in self.culler.store().written_regions(SET) {
            let first = region.first / BLOCK;
            let of_region = first..first + region.capacity / BLOCK;
            let tiles: Vec<_> = slots
                .iter()
                .filter(|(slot, _)| of_region.contains(slot))
                .map(|(slot, tile)| ScatterTile {
                    x: tile.unwrap_or_default().x,
                    z: tile.unwrap_or_default().y,
                    slot: slot - first,
                    live: *slot,
                    is_wanted: u32::from(tile.is_some()),
                })
                .collect();
            let fill = ScatterFill {
                layer: &land.layer,
                turns: &turns,
                maps,
                region: &region,
                live: &self.live,
                tiles: &tiles,
            };
            if let Some(fill) = self.kernel.prepare(gpu, fill).unwrap() {
                let mut pass = encoder.begin_compute_pass(&Default::default());
                self.kernel.record(&mut pass, &fill);
            }
        }
        for (slot, _) in slots {
            let range = slot * BLOCK..(slot + 1) * BLOCK;
            self.culler.store_mut().note_written(SET, range);
        }
        gpu.queue.submit([encoder.finish()]);
    }

    /// The instances of each slot with their scales, without those that are hidden.
    fn read(&self, gpu: Gpu<'_>) -> Vec<Vec<(PackedInstance, f32)>> {
        let (instances, scales) = self.culler.store().read_instances(gpu, SET).unwrap();
        assert_eq!(instances.len() as u32, self.slots * BLOCK);
        let all: Vec<_> = instances.into_iter().zip(scales).collect();
        let blocks = all.chunks(BLOCK as usize).map(|block| {
            let lives = |(instance, _): &&(PackedInstance, f32)| instance.position[0].is_finite();
            let front = block.iter().take_while(lives).count();
            assert_eq!(
                block.iter().filter(lives).count(),
                front,
                "a hidden one is in front"
            );
            block[..front].to_vec()
        });
        blocks.collect()
    }

    /// Culls the set by a view that keeps everything. Returns the survivors.
    fn survivors(&mut self, gpu: Gpu<'_>) -> u32 {
        let request = CullRequest {
            views: vec![0],
            ..triangles_of(0)
        };
        let frame = CullFrame {
            views: vec![CullView::EVERYTHING],
            requests: vec![request],
            ..CullFrame::default()
        };
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        let recorded = self.culler.prepare(gpu, &frame).record(gpu, &mut encoder);
        gpu.queue.submit([encoder.finish()]);
        self.culler.finish(recorded);
        gpu.device
            .poll(wgpu::PollType::wait_indefinitely())
            .unwrap();
        let counts = self.culler.take_counts(gpu.device).unwrap();
        counts.rows.iter().map(|row| row.visible).sum()
    }
}

/// How many rotations are not the twin's, of those that lean.
#[derive(Default)]
struct Leaning {
    all: u32,
    differ: u32,
}

impl Leaning {
    fn compare(&mut self, land: &Land, twin: &[Plant], found: &[(PackedInstance, f32)]) {
        assert_eq!(found.len(), twin.len(), "{:?}", land.layer);
        for (plant, (instance, scale)) in twin.iter().zip(found) {
            let bits = |position: [f32; 3]| position.map(f32::to_bits);
            assert_eq!(
                (bits(instance.position), scale.to_bits()),
                (bits(plant.instance.position), plant.scale.to_bits()),
                "{:?}: {instance:?}, {plant:?}",
                land.layer
            );
            let (ours, twins) = (instance.rotation, plant.instance.rotation);
            if land.layer.align == 0.0 {
                assert_eq!(ours, twins);
                continue;
            }
            self.all += 1;
            if ours != twins {
                self.differ += 1;
                // Two codes of one rotation.
                let apart = ours.decode().angle_between(twins.decode());
                assert!(apart <= 2.0 * PackedQuat::MAX_ERROR_RADIANS, "{apart}");
            }
        }
    }
}

#[test]
fn random_tiles_are_those_of_the_twin() {
    let gpu = gpu();
    let mut rng = rng(311);
    let mut field = Field::new(gpu, 7, with(Compaction::Classify));
    let (mut leaning, mut plants, mut full) = (Leaning::default(), 0, 0);
    for _ in 0..60 {
        let land = Land::random(gpu, &mut rng);
        let far = [2, 2, 3, 3, 3, 100_000][rng.random_range(0..6)];
        let mut tile = |_| IVec2::new(rng.random_range(-far..far), rng.random_range(-2..2));
        let tiles: [_; 7] = core::array::from_fn(&mut tile);
        let slots: Vec<_> = (0..7)
            .map(|slot| (slot, Some(tiles[slot as usize])))
            .collect();
        field.fill(gpu, &land, &slots);
        for (tile, found) in tiles.iter().zip(field.read(gpu)) {
            let twin = land.twin(*tile);
            leaning.compare(&land, &twin, &found);
            plants += twin.len();
            full += usize::from(twin.len() == BLOCK as usize);
        }
    }
    println!("{plants} plants, {full} full tiles");
    assert!(plants > 10_000, "{plants}");
    assert!(
        leaning.all > 1_000 && leaning.differ * 50 < leaning.all,
        "{} of {}",
        leaning.differ,
        leaning.all
    );
}

/// Every cell grows, or none; a tile at the end of the world; an area of two steps.
#[test]
fn edges_are_those_of_the_twin() {
    let gpu = gpu();
    let mut field = Field::new(gpu, 2, with(Compaction::Classify));
    let plain = ScatterLayer {
        step: 1.0 / 256.0,
        jitter: 256,
        density: 1 << 15,
        shift_x: 1,
        shift_z: 1,
        max_height: u32::MAX,
        max_slope: u32::MAX,
        min_scale: 1 << 16,
        scale_step: 1.0 / 65_536.0,
        ..ScatterLayer::default()
    };
    let with_map = |flags: u32, layer: ScatterLayer| Land {
        layer: ScatterLayer { flags, ..layer },
        maps: [(); 3].map(|()| Some(Map::white(gpu))),
    };
    let area = |first: i32, len: u32| ScatterLayer {
        first_x: first,
        first_z: first,
        len_x: len,
        len_z: len,
        factor_x: u32::MAX,
        factor_z: u32::MAX,
        shift_x: len.ilog2(),
        shift_z: len.ilog2(),
        ..plain
    };
    let block = BLOCK as usize;
    let ends = [IVec2::ZERO, IVec2::new((1 << 17) - 1, 1 - (1 << 17))];
    for (land, expected) in [
        (with_map(0, plain), [block, block]),
        (
            with_map(
                0,
                ScatterLayer {
                    density: 0,
                    ..plain
                },
            ),
            [0, 0],
        ),
        (
            with_map(
                0,
                ScatterLayer {
                    jitter: 0,
                    min_apart: 65_536,
                    ..plain
                },
            ),
            [block, block],
        ),
        (
            with_map(SCATTER_HAS_DENSITY, area(-(1 << 30), 1 << 31)),
            [block, block],
        ),
        (with_map(SCATTER_HAS_DENSITY, area(0, 1 << 13)), [block, 0]),
        (with_map(SCATTER_HAS_EXCLUSION, area(0, 1 << 13)), [0, 0]),
        (with_map(SCATTER_HAS_HEIGHT, area(0, 1 << 13)), [block, 0]),
        (with_map(SCATTER_HAS_DENSITY, area(0, 2)), [0, 0]),
    ] {
        let slots = [(0, Some(ends[0])), (1, Some(ends[1]))];
        field.fill(gpu, &land, &slots);
        let found = field.read(gpu);
        for (tile, found) in ends.iter().zip(&found) {
            Leaning::default().compare(&land, &land.twin(*tile), found);
        }
        let lens = [found[0].len(), found[1].len()];
        assert_eq!(lens, expected, "{:?}", land.layer);
    }
}

/// What is filled again is another, what is emptied is gone, and all else stays. The culling knows.
#[test]
fn tiles_that_are_not_filled_keep_what_grows_there() {
    let gpu = gpu();
    let mut rng = rng(17);
    for compaction in [Compaction::Classify, Compaction::VoteScanCompact] {
        let mut field = Field::new(gpu, 5, with(compaction));
        let thin = |seed: u32, density: u32| Land {
            layer: ScatterLayer {
                step: 1.0 / 256.0,
                seed,
                jitter: 256,
                density,
                shift_x: 1,
                shift_z: 1,
                min_scale: 1 << 15,
                scale_step: 1.0 / 65_536.0,
                ..ScatterLayer::default()
            },
            maps: [None, None, None],
        };
        let mut expected: [Vec<Plant>; 5] = Default::default();
        assert_eq!(field.survivors(gpu), 0);
        for round in 0..12 {
            let land = thin(round, rng.random_range(0..=1 << 15));
            let mut slots = Vec::new();
            for slot in 0..5 {
                let tile = IVec2::new(rng.random_range(-9..9), rng.random_range(-9..9));
                let (is_filled, is_wanted) = (rng.random_bool(0.5), rng.random_bool(0.8));
                slots.extend(is_filled.then_some((slot, is_wanted.then_some(tile))));
            }
            field.fill(gpu, &land, &slots);
            for (slot, tile) in slots {
                expected[slot as usize] = tile.map_or_else(Vec::new, |tile| land.twin(tile));
            }
            for (expected, found) in expected.iter().zip(field.read(gpu)) {
                Leaning::default().compare(&land, expected, &found);
            }
            let all: usize = expected.iter().map(Vec::len).sum();
            assert_eq!(
                field.survivors(gpu) as usize,
                all,
                "{compaction:?}, round {round}"
            );
        }
        // A frame that writes nothing computes no bounds.
        let _ = field.culler.take_work();
        field.survivors(gpu);
        assert_eq!(field.culler.take_work().bound_jobs, 0);
    }
}

/// The comparison sees a twin of another seed.
#[test]
fn another_seed_is_seen() {
    let gpu = gpu();
    let mut field = Field::new(gpu, 1, with(Compaction::Classify));
    let land = Land::random(gpu, &mut rng(5));
    let land = Land {
        layer: ScatterLayer {
            flags: 0,
            density: 1 << 15,
            ..land.layer
        },
        ..land
    };
    field.fill(gpu, &land, &[(0, Some(IVec2::ONE))]);
    let found = field.read(gpu).remove(0);
    let other = Land {
        layer: ScatterLayer {
            seed: land.layer.seed + 1,
            ..land.layer
        },
        ..land
    };
    let twin = other.twin(IVec2::ONE);
    let is_same = |(plant, (instance, _)): (&Plant, &(PackedInstance, f32))| {
        plant.instance.position == instance.position
    };
    let same = twin
        .iter()
        .zip(&found)
        .filter(|pair| is_same(*pair))
        .count();
    assert!(
        !found.is_empty() && same * 10 < found.len(),
        "{same} of {}",
        found.len()
    );
}

#[test]
fn fills_outside_the_set_are_refused() {
    let gpu = gpu();
    let field = Field::new(gpu, 2, with(Compaction::Classify));
    let region = &field.culler.store().written_regions(SET)[0];
    let turns = scatter_turns(TAU);
    let prepare = |slot: u32, live: u32, turns: usize, all: &[_]| {
        let tile = ScatterTile {
            slot,
            live,
            ..ScatterTile::default()
        };
        let fill = ScatterFill {
            layer: &ScatterLayer::default(),
            turns: &all[..turns],
            maps: ScatterTextures::default(),
            region,
            live: &field.live,
            tiles: &[tile],
        };
        field.kernel.prepare(gpu, fill).map(|fill| fill.is_some())
    };
    let all = SCATTER_TURNS as usize;
    assert_eq!(prepare(1, 1, all, &turns), Ok(true));
    for (slot, live, count) in [(2, 1, all), (1, 64, all), (0, 0, all - 1)] {
        let refused = prepare(slot, live, count, &turns);
        assert!(matches!(refused, Err(CullError::Gpu { .. })), "{refused:?}");
    }
}

/// What apps may write as a rule.
const RULE: &str = "fn scatter_share(place: vec3<f32>, slope: vec2<f32>, share: f32) -> f32 {
    let wave = sin(place.x * 0.7) * 0.5 + 0.5; // hills
    if (slope.x > 0.3 || place.y < -1.0) { return 0.0; }
    return share * wave + f32(u32(place.z) % 3u) * 0.1;
}
";

/// Changes of a text: at some places, some characters go and others come.
fn changes() -> impl Strategy<Value = Vec<(usize, usize, String)>> {
    let pieces = [
        "",
        "}",
        "{",
        "(",
        ")",
        ";",
        "@",
        "/*",
        "//",
        "*/",
        "\"",
        "<",
        "vec3<f32>",
        "0x",
        "1e99",
        "return",
        "scatter",
        "@group(0) @binding(1)",
        "enable f16;",
        "const",
        "var<workgroup>",
        "\u{0}",
        "\u{202e}",
        "\n",
        "f64",
        "-",
        "i32",
        "%0",
        "struct",
        "fn f() {}",
        "import",
    ];
    let piece = prop_oneof![
        3 => prop::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,6}",
    ];
    prop::collection::vec((any::<usize>(), 0usize..12, piece), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(300),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(concat!(
            env!("CARGO_MANIFEST_DIR"), "/tests/hostile/seeds/scatter_rules.txt"
        )))),
        ..Default::default()
    })]

    /// Whatever the text of a rule is, it becomes a kernel or an error that names it.
    #[test]
    fn any_text_is_a_rule_or_an_error(changes in changes()) {
        let mut rule: Vec<char> = RULE.chars().collect();
        for (at, gone, come) in changes {
            let at = at % (rule.len() + 1);
            let end = (at + gone).min(rule.len());
            rule.splice(at..end, come.chars());
        }
        let rule: String = rule.into_iter().collect();
        match ScatterKernel::new(gpu().device, Some(&rule), true) {
            Ok(_) => {}
            Err(CullError::Pipeline { label, message, .. }) => {
                prop_assert!(label == "scatter" && !message.is_empty(), "{}", message);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}

/// A rule of the app decides after the maps, and an error in it is told.
#[test]
fn a_rule_decides_which_candidates_grow() {
    let gpu = gpu();
    let mut field = Field::new(gpu, 1, with(Compaction::Classify));
    let rule = "fn scatter_share(place: vec3<f32>, slope: vec2<f32>, share: f32) -> f32 {
        return select(0.0, share * 0.5, place.x < 8.0);
    }";
    let land = Land {
        layer: ScatterLayer {
            step: 1.0 / 256.0,
            jitter: 256,
            density: 1 << 15,
            shift_x: 1,
            shift_z: 1,
            scale_step: 1.0,
            ..ScatterLayer::default()
        },
        maps: [(); 3].map(|()| Some(Map::white(gpu))),
    };
    let tile = Some(IVec2::ZERO);
    field.fill(gpu, &land, &[(0, tile)]);
    assert_eq!(field.read(gpu)[0].len(), BLOCK as usize);
    field.kernel = ScatterKernel::new(gpu.device, Some(rule), true).unwrap();
    field.fill(gpu, &land, &[(0, tile)]);
    let found = field.read(gpu).remove(0);
    assert!(found.iter().all(|(instance, _)| instance.position[0] < 8.0));
    // Half of a quarter.
    assert!(found.len().abs_diff(128) < 40, "{}", found.len());
    let broken = ScatterKernel::new(gpu.device, Some("fn scatter_share() {}"), true);
    let error = broken.err().unwrap();
    assert!(matches!(error, CullError::Pipeline { .. }), "{error}");
}
