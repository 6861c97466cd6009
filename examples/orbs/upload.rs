//! How fast a field streams to the GPU, compared with a plain buffer that is written the same way.

use crate::{
    offscreen::Uploads,
    report::{Upload, median, rounded},
};
use bevy::{
    prelude::*,
    render::{
        RenderApp,
        render_resource::PollType,
        renderer::{RenderDevice, RenderQueue},
    },
};
use std::time::Instant;
use wgpu::{BufferDescriptor, BufferUsages};

/// The largest size of the plain buffer, in bytes.
const PLAIN: u64 = 1 << 30;

/// Follows the progress of all sets.
#[derive(Default)]
pub struct Watch {
    uploads: Uploads,
    /// The time of each frame, and the instances that had arrived after it.
    frames: Vec<(f64, u64)>,
}

impl Watch {
    /// Whether every set has arrived.
    pub fn is_complete(&mut self, world: &mut World) -> bool {
        self.uploads.are_complete(world)
    }

    /// Records a frame.
    pub fn note(&mut self, milliseconds: f64) {
        self.frames.push((milliseconds, self.uploads.arrived()));
    }

    /// The report on a field of `bytes` bytes.
    pub fn report(&self, bytes: u64, plain_gb_s: f64) -> Upload {
        // A message comes one frame after its upload, so the frame of the last message does not
        // count.
        let all = self.frames.last().map_or(0, |(_, arrived)| *arrived);
        let streaming = self.frames.iter().take_while(|(_, arrived)| *arrived < all);
        let times: Vec<f64> = streaming.map(|(time, _)| *time).collect();
        let ms: f64 = times.iter().sum();
        Upload {
            bytes,
            frames: times.len(),
            ms: rounded(ms, 100.0),
            frame_ms: times.iter().map(|time| rounded(*time, 100.0)).collect(),
            frame_ms_max: rounded(times.iter().copied().fold(0.0, f64::max), 100.0),
            frame_ms_median: rounded(median(times).unwrap_or(0.0), 100.0),
            gb_s: rounded(bytes as f64 / ms.max(1e-6) / 1e6, 100.0),
            plain_gb_s: rounded(plain_gb_s, 100.0),
        }
    }
}

/// The rate, in GB per second, of a plain buffer that is written in slices. The GPU finishes each
/// slice before the next, as it does with frames.
pub fn plain_rate(app: &App, bytes: u64, slice: u64) -> f64 {
    let world = app.world();
    let device = world.resource::<RenderDevice>();
    let queue = app.sub_app(RenderApp).world().resource::<RenderQueue>();
    let size = bytes.min(PLAIN).min(device.limits().max_buffer_size) / 4 * 4;
    let slice = slice.min(size).max(4) / 4 * 4;
    let buffer = device.create_buffer(&BufferDescriptor {
        label: Some("plain"),
        size: size.max(4),
        usage: BufferUsages::STORAGE | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    // No zeros, because the system may map all pages of zeros to one.
    let data: Vec<u32> = (0..slice / 4).map(|i| i as u32).collect();
    let write_all = || {
        let start = Instant::now();
        for at in (0..size).step_by(slice as usize) {
            let len = slice.min(size - at) as usize;
            queue.write_buffer(&buffer, at, &bytemuck::cast_slice(&data)[..len]);
            queue.submit([]);
            if let Err(error) = device.poll(PollType::wait_indefinitely()) {
                warn!("the GPU did not finish a copy: {error}");
            }
        }
        size as f64 / start.elapsed().as_secs_f64() / 1e9
    };
    // The first write includes the driver's allocation.
    write_all();
    write_all()
}
