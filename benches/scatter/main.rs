//! The GPU time of a scatter: tiles of a set, filled with what grows there.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks by printing"
)]

#[path = "../common/mod.rs"]
mod common;

use anyhow::{Context, Result, ensure};
use bevy_gpu_culling::{
    cull::{
        Channels, Compaction, Culler, CullerOptions, CullingTier, SetId, WrittenSize,
        layout::{
            BLOCK, SCATTER_HAS_DENSITY, SCATTER_HAS_EXCLUSION, SCATTER_HAS_HEIGHT, ScatterLayer,
            ScatterTile,
        },
        reference::{ScatterMap, ScatterMaps, scatter},
        scatter::{ScatterFill, ScatterKernel, ScatterTextures, counts_buffer, scatter_turns},
    },
    instance::ScaleKind,
};
use clap::Parser;
use common::{Gpu, buffer, stats::Times};
use core::f32::consts::TAU;
use glam::{IVec2, UVec2};
use serde::Serialize;
use wgpu::{BufferUsages, TextureFormat, util::DeviceExt};

/// Measures how long the GPU takes to fill tiles.
#[derive(Parser)]
#[command(name = "scatter", version)]
struct Args {
    /// Numbers of candidates, rounded up to whole tiles [default: 64k,1M,4M; 64k in software]
    #[arg(long, value_delimiter = ',', value_parser = common::parse_count)]
    count: Vec<u32>,
    /// Timed runs of each case
    #[arg(long, default_value_t = 21)]
    runs: usize,
    /// Prints one JSON object per line instead of the table
    #[arg(long)]
    json: bool,
    /// Set by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// What decides where something grows.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Case {
    /// Every candidate grows.
    Everywhere,
    /// Candidates that are too near to others do not.
    Apart,
    /// The same, with a map of heights, one of densities and one of what is excluded, and plants
    /// that lean with the slope.
    Maps,
}

/// What a case has shown.
#[derive(Serialize)]
struct Row {
    case: Case,
    candidates: u32,
    grown: u64,
    /// Median of the fill, in microseconds.
    us: f64,
    /// A write of as many zeros as instances and scales take, in microseconds.
    clear_us: f64,
    adapter: String,
}

/// Side of the maps in texels.
const MAP: u32 = 1024;
const SET: SetId = SetId(0);

fn main() {
    let args = Args::parse();
    common::main(args.bench, || run(&args));
}

fn run(args: &Args) -> Result<()> {
    ensure!(args.runs > 0, "--runs of 0 measures nothing");
    let gpu = Gpu::new()?;
    if gpu.is_software() {
        eprintln!("This adapter is software: its times say nothing about a GPU.");
    }
    let counts = match (&*args.count, gpu.is_software()) {
        ([], true) => &[1 << 16][..],
        ([], false) => &[1 << 16, 1 << 20, 1 << 22],
        (given, _) => given,
    };
    if !args.json {
        println!("{}", gpu.name());
        println!("| case | candidates | grown | us | clear, us |");
        println!("| --- | --: | --: | --: | --: |");
    }
    for &count in counts {
        for case in [Case::Everywhere, Case::Apart, Case::Maps] {
            let row = measure(&gpu, case, count, args.runs)?;
            if args.json {
                println!("{}", serde_json::to_string(&row)?);
                continue;
            }
            println!(
                "| {:?} | {} | {} | {:.1} | {:.1} |",
                row.case, row.candidates, row.grown, row.us, row.clear_us
            );
        }
    }
    Ok(())
}

/// The layer of a case over a square of tiles around the origin.
fn layer(case: Case, side: u32) -> ScatterLayer {
    // The maps cover all tiles.
    let len = (side * 32 * 256).max(2);
    let shift = len.ilog2();
    let factor = (1u64 << (32 + shift)) / u64::from(len);
    let factor = u32::try_from(factor).unwrap_or(u32::MAX);
    let first = -(side as i32 / 2) * 32 * 256;
    let plain = ScatterLayer {
        step: 1.0 / 256.0,
        seed: 7,
        jitter: 256,
        first_x: first,
        first_z: first,
        len_x: len,
        len_z: len,
        factor_x: factor,
        factor_z: factor,
        shift_x: shift,
        shift_z: shift,
        density: 1 << 15,
        height_shift: 8,
        height_step: 0.001,
        max_height: u32::MAX,
        max_slope: u32::MAX,
        min_scale: 1 << 15,
        scale_step: 1.0 / 65_536.0,
        ..ScatterLayer::default()
    };
    match case {
        Case::Everywhere => plain,
        Case::Apart => ScatterLayer {
            min_apart: 128 * 128,
            ..plain
        },
        Case::Maps => ScatterLayer {
            min_apart: 128 * 128,
            flags: SCATTER_HAS_DENSITY | SCATTER_HAS_HEIGHT | SCATTER_HAS_EXCLUSION,
            gradient_x: 0.001,
            gradient_z: 0.001,
            align: 0.001,
            ..plain
        },
    }
}

fn measure(gpu: &Gpu, case: Case, count: u32, runs: usize) -> Result<Row> {
    let engine = bevy_gpu_culling::cull::Gpu::new(&gpu.device, &gpu.queue);
    let side = f64::from(count.div_ceil(BLOCK)).sqrt().ceil() as u32;
    let tiles_wanted = side * side;
    let options = CullerOptions {
        tier: Some(CullingTier::Workgroup),
        compaction: Compaction::Classify,
        ..CullerOptions::default()
    };
    let (mut culler, _) = Culler::new(&gpu.device, options)?;
    let size = WrittenSize {
        capacity: tiles_wanted * BLOCK,
        active: tiles_wanted * BLOCK,
        channels: Channels {
            scale: ScaleKind::Uniform,
            ..Channels::default()
        },
        classify: true,
        noted: true,
    };
    culler.store_mut().reserve_written(engine, SET, size)?;
    let regions = culler.store().written_regions(SET);
    let [region] = &*regions else {
        anyhow::bail!("the set has several regions: measure fewer candidates");
    };
    let values: Vec<u16> = (0..MAP * MAP)
        .map(|at| (at.wrapping_mul(40_503) >> 7) as u16)
        .collect();
    let texture = gpu.device.create_texture_with_data(
        &gpu.queue,
        &wgpu::TextureDescriptor {
            label: Some("map"),
            size: wgpu::Extent3d {
                width: MAP,
                height: MAP,
                depth_or_array_layers: 1,
            },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: TextureFormat::R8Unorm,
            usage: wgpu::TextureUsages::TEXTURE_BINDING,
            view_formats: &[],
        },
        wgpu::util::TextureDataOrder::LayerMajor,
        &values
            .iter()
            .map(|value| (*value >> 8) as u8)
            .collect::<Vec<_>>(),
    );
    let view = texture.create_view(&Default::default());
    let map = matches!(case, Case::Maps).then_some(&view);
    let layer = layer(case, side);
    let turns = scatter_turns(TAU);
    let corner = -(side as i32 / 2);
    let tiles: Vec<_> = (0..tiles_wanted)
        .map(|tile| ScatterTile {
            x: corner + (tile % side) as i32,
            z: corner + (tile / side) as i32,
            slot: tile,
            live: tile,
            is_wanted: 1,
        })
        .collect();
    let kernel = ScatterKernel::new(&gpu.device, None, false)?;
    let live = counts_buffer(&gpu.device, tiles_wanted)?;
    let fill = ScatterFill {
        layer: &layer,
        turns: &turns,
        maps: ScatterTextures {
            density: map,
            height: map,
            exclusion: map,
        },
        region,
        live: &live,
        tiles: &tiles,
    };
    let pass = kernel.prepare(engine, fill)?;
    let pass = pass.context("nothing to fill")?;
    gpu.warm_up(|compute| kernel.record(compute, &pass))?;

    let bytes = u64::from(tiles_wanted * BLOCK) * 20;
    let usage = BufferUsages::COPY_DST | BufferUsages::STORAGE;
    let cleared = buffer(&gpu.device, "cleared", bytes, usage);
    let plain = gpu.pipeline(
        "clear",
        "@group(0) @binding(0) var<storage, read_write> words: array<vec4<u32>>;
         @compute @workgroup_size(256)
         fn clear(@builtin(global_invocation_id) id: vec3<u32>,
                  @builtin(num_workgroups) groups: vec3<u32>) {
             let at = id.y * groups.x * 256u + id.x;
             if at < arrayLength(&words) { words[at] = vec4<u32>(at); }
         }"
        .to_owned(),
        "clear",
    );
    let bound = gpu.bind(&plain, &[&cleared]);
    let (x, y) = common::groups((bytes / 16).div_ceil(256));

    let (mut filled, mut clear) = (Vec::new(), Vec::new());
    let mut grown = 0;
    for _ in 0..runs {
        let timed = |compute: &mut wgpu::ComputePass<'_>| kernel.record(compute, &pass);
        let (us, words) = gpu.run(|_| (), timed, |_| (), Some(&live))?;
        filled.push(us);
        grown = words.iter().map(|count| u64::from(*count)).sum();
        let timed = |compute: &mut wgpu::ComputePass<'_>| {
            compute.set_pipeline(&plain);
            compute.set_bind_group(0, &bound, &[]);
            compute.dispatch_workgroups(x, y, 1);
        };
        clear.push(gpu.run(|_| (), timed, |_| (), None)?.0);
    }
    // The twin of some tiles.
    let twin = ScatterMap {
        size: UVec2::splat(MAP),
        values: &values
            .iter()
            .map(|value| (value >> 8) * 257)
            .collect::<Vec<_>>(),
    };
    let maps = match case {
        Case::Maps => ScatterMaps {
            density: Some(twin),
            height: Some(twin),
            exclusion: Some(twin),
        },
        _ => ScatterMaps::default(),
    };
    let (_, words) = gpu.run(|_| (), |_| (), |_| (), Some(&live))?;
    for tile in tiles.iter().step_by(97) {
        let twin = scatter(&layer, &turns, &maps, IVec2::new(tile.x, tile.z)).len();
        let found = words[tile.live as usize];
        ensure!(
            found as usize == twin,
            "{case:?}: the GPU grows {found} in tile {tile:?}, the CPU twin {twin}"
        );
    }
    Ok(Row {
        case,
        candidates: tiles_wanted * BLOCK,
        grown,
        us: Times::of(filled).median,
        clear_us: Times::of(clear).median,
        adapter: gpu.name(),
    })
}
