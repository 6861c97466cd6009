//! The previous frame's instances: copies within the pages, for motion vectors.
//!
//! A set with [`Channels::previous`](crate::cull::Channels) has twice the room: behind each region
//! lies room of the same size for the previous frame. A buffer cannot be copied onto itself, so
//! copies go through a staging buffer.

use super::{
    pages::Pages,
    region::{Run, runs},
    residents::Set,
};
use crate::cull::{CullError, gpu::guard::guarded};
use core::ops::Range;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, CommandEncoder, Device};

/// Largest staging buffer, in bytes. Larger copies are made in turns.
const STAGING: u64 = 16 << 20;

/// Size of an instance and of one number of its scale, in bytes.
const INSTANCE: u64 = 16;
const SCALE_NUMBER: u64 = 4;

/// A copy that is not recorded yet.
pub(super) struct PendingCopy {
    from: Buffer,
    from_at: u64,
    to: Buffer,
    to_at: u64,
    bytes: u64,
}

/// The staging buffer, and the copies and the old room of moved sets.
#[derive(Default)]
pub(super) struct PreviousCopies {
    staging: Option<Buffer>,
    /// From the old regions of moved sets to the new ones.
    pub moves: Vec<PendingCopy>,
    /// Moved sets. Their old room is given back after the copies are submitted.
    pub retired: Vec<Set>,
}

impl PreviousCopies {
    /// Size of the staging buffer, in bytes.
    pub fn bytes(&self) -> u64 {
        self.staging.as_ref().map_or(0, Buffer::size)
    }

    /// Notes that `old` became `new`: the instances of `old` are the previous ones of `new`.
    pub fn move_set(&mut self, pages: &Pages, old: Set, new: &Set) {
        let both = 0..old.len.min(new.len) as usize;
        for Run { region, at, part } in runs(&old.regions, both) {
            for run in runs(&new.regions, part.clone()) {
                let (to, to_part) = (run.region, run.part);
                let Some((from_page, to_page)) = pages.page(region.page).zip(pages.page(to.page))
                else {
                    continue;
                };
                let from_at = (at + to_part.start - part.start) as u64;
                let to_at = (run.at + to.capacity as usize) as u64;
                let copy = |from: &Buffer, to: &Buffer, stride: u64| PendingCopy {
                    from: from.clone(),
                    from_at: from_at * stride,
                    to: to.clone(),
                    to_at: to_at * stride,
                    bytes: to_part.len() as u64 * stride,
                };
                self.moves
                    .push(copy(&from_page.instances, &to_page.instances, INSTANCE));
                // If scales change their kind, the caller uploads the previous ones.
                let floats = old.channels.scale.floats();
                if old.channels.scale == new.channels.scale
                    && let (Some(from), Some(to)) = (&from_page.scales, &to_page.scales)
                {
                    let stride = SCALE_NUMBER * floats as u64;
                    self.moves.push(copy(from, to, stride));
                }
            }
        }
        self.retired.push(old);
    }

    /// Records the copies.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; then nothing is copied.
    pub fn record(
        &mut self,
        device: &Device,
        encoder: &mut CommandEncoder,
        copies: &[PendingCopy],
    ) -> Result<(), CullError> {
        let total: u64 = copies.iter().map(|copy| copy.bytes).sum();
        if total == 0 {
            return Ok(());
        }
        let size = total.next_power_of_two().min(STAGING);
        let staging = match &self.staging {
            Some(staging) if staging.size() >= size => staging.clone(),
            _ => guarded(device, "gpu_culling previous", || {
                device.create_buffer(&BufferDescriptor {
                    label: Some("gpu_culling previous"),
                    size,
                    usage: BufferUsages::COPY_SRC | BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                })
            })?,
        };
        // In turns that each fill the staging buffer: first all copies in, then all out.
        let mut turn: Vec<(&PendingCopy, Range<u64>)> = Vec::new();
        let mut room = staging.size();
        for copy in copies {
            let mut done = 0;
            while done < copy.bytes {
                let part = (copy.bytes - done).min(room);
                turn.push((copy, done..done + part));
                done += part;
                room -= part;
                if room == 0 {
                    take_turn(encoder, &staging, &turn);
                    turn.clear();
                    room = staging.size();
                }
            }
        }
        take_turn(encoder, &staging, &turn);
        self.staging = Some(staging);
        Ok(())
    }
}

fn take_turn(encoder: &mut CommandEncoder, staging: &Buffer, turn: &[(&PendingCopy, Range<u64>)]) {
    let mut at = 0;
    for (copy, part) in turn {
        let bytes = part.end - part.start;
        encoder.copy_buffer_to_buffer(&copy.from, copy.from_at + part.start, staging, at, bytes);
        at += bytes;
    }
    at = 0;
    for (copy, part) in turn {
        let bytes = part.end - part.start;
        encoder.copy_buffer_to_buffer(staging, at, &copy.to, copy.to_at + part.start, bytes);
        at += bytes;
    }
}

/// The copies that keep `range` of a set: from its instances to its previous ones.
pub(super) fn copies<'a>(
    pages: &'a Pages,
    set: &'a Set,
    range: Range<usize>,
) -> impl Iterator<Item = PendingCopy> + 'a {
    let range = range.start..range.end.min(set.len as usize);
    runs(&set.regions, range).flat_map(move |Run { region, at, part }| {
        let page = pages.page(region.page);
        let instances = page.map(|page| (&page.instances, INSTANCE));
        let scales = page
            .and_then(|page| page.scales.as_ref())
            .map(|scales| (scales, SCALE_NUMBER * set.channels.scale.floats() as u64))
            .filter(|(_, stride)| *stride > 0);
        let behind = u64::from(region.capacity);
        instances
            .into_iter()
            .chain(scales)
            .map(move |(buffer, stride)| PendingCopy {
                from: buffer.clone(),
                from_at: at as u64 * stride,
                to: buffer.clone(),
                to_at: (at as u64 + behind) * stride,
                bytes: part.len() as u64 * stride,
            })
    })
}
