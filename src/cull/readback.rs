//! Results on their way back: counters without waiting, whole buffers for tests and verification.

use crate::cull::{
    CullError,
    batch::GpuBatch,
    compaction::Resource,
    layout::{DrawArgs, Totals, args_offset},
    pipelines::Pipelines,
    plan::BatchPlan,
    staging::StagingRing,
};
use std::sync::Arc;
use wgpu::{
    Buffer, BufferDescriptor, BufferUsages, CommandEncoder, Device, MapMode, PollType, Queue,
};

/// Survivors of one row of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCount {
    /// [`CullRequest::key`](crate::cull::CullRequest::key).
    pub request: u64,
    /// Index of the view in the frame.
    pub view: u32,
    /// Instances that were tested.
    pub tested: u32,
    /// Instances that the view keeps.
    pub visible: u32,
}

/// Counters of one frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Number of the frame, counted by the culler.
    pub frame: u64,
    /// One for each chunk and view.
    pub rows: Vec<RowCount>,
    /// Survivors that found no room in the arena; the arena grows, so later frames have them.
    pub overflow: u64,
    /// Blocks of 1,024 instances, and how many of them some view crosses; none where the compaction did not
    /// classify them.
    pub crossed_blocks: Option<(u64, u64)>,
    /// Ids that the arena of each batch must hold, with its key (page, ordinal).
    pub(crate) batches: Vec<((usize, usize), u32)>,
}

impl FrameCounts {
    /// Instances tested and kept in view `view`, over all requests.
    #[must_use]
    pub fn view(&self, view: u32) -> (u64, u64) {
        let rows = self.rows.iter().filter(|row| row.view == view);
        rows.fold((0, 0), |(tested, visible), row| {
            (
                tested + u64::from(row.tested),
                visible + u64::from(row.visible),
            )
        })
    }
}

/// Which rows a batch has, remembered until its counters arrive.
#[derive(Clone)]
pub(crate) struct BatchRows {
    pub key: (usize, usize),
    /// Request key, view and instances of each row.
    pub rows: Arc<[(u64, u32, u32)]>,
    /// Blocks, if the compaction classifies them.
    pub blocks: Option<u32>,
}

impl BatchRows {
    /// Adds the batch's counters to `counts`.
    pub fn collect(&self, totals: &Totals, draws: &[DrawArgs], counts: &mut FrameCounts) {
        counts.overflow += u64::from(totals.overflow);
        counts.batches.push((self.key, totals.needed));
        if let Some(own) = self.blocks {
            let (blocks, crossed) = counts.crossed_blocks.get_or_insert_default();
            *blocks += u64::from(own);
            *crossed += u64::from(totals.crossed);
        }
        counts.rows.extend(
            self.rows
                .iter()
                .zip(draws)
                .map(|(&(request, view, tested), draw)| RowCount {
                    request,
                    view,
                    tested,
                    visible: draw.instance_count(),
                }),
        );
    }
}

/// Counters on their way back.
pub(crate) struct Readback {
    ring: StagingRing<Vec<BatchRows>>,
}

impl Readback {
    pub fn new() -> Self {
        Self {
            ring: StagingRing::new("gpu_culling counters"),
        }
    }

    /// Bytes of the staging buffers.
    pub fn bytes(&self) -> u64 {
        self.ring.bytes()
    }

    /// Copies the counters of `batches` (their argument buffers), unless all staging buffers are under way.
    pub fn record<'a>(
        &mut self,
        device: &Device,
        encoder: &mut CommandEncoder,
        frame: u64,
        batches: impl Iterator<Item = (&'a Buffer, BatchRows)>,
    ) {
        let (buffers, rows): (Vec<_>, Vec<_>) = batches.unzip();
        let bytes = |rows: &BatchRows| args_offset(rows.rows.len() as u32);
        let copies: Vec<_> = buffers.into_iter().zip(rows.iter().map(bytes)).collect();
        self.ring.record(device, encoder, frame, &copies, rows);
    }

    /// Asks for the buffers whose copies have been submitted.
    pub fn after_submit(&mut self) {
        self.ring.after_submit();
    }

    /// The newest counters that have arrived since the last call.
    pub fn collect(&mut self) -> Option<FrameCounts> {
        let (frame, bytes, batches) = self.ring.collect()?;
        let mut counts = FrameCounts {
            frame,
            ..FrameCounts::default()
        };
        let mut left = &bytes[..];
        for batch in &batches {
            let (head, rest) = left.split_at(size_of::<Totals>());
            let (draws, rest) = rest.split_at(batch.rows.len() * size_of::<DrawArgs>());
            let totals: Totals = bytemuck::pod_read_unaligned(head);
            let draws: Vec<DrawArgs> = bytemuck::pod_collect_to_vec(draws);
            batch.collect(&totals, &draws, &mut counts);
            left = rest;
        }
        Some(counts)
    }
}

/// Everything that the stages wrote for one batch, read back with a wait: for tests and verification. What the
/// compaction does not have is empty.
#[derive(Clone, Debug, Default)]
pub struct BatchData {
    /// Visibility words.
    pub words: Vec<u32>,
    /// Survivors of each block and row; where [`Batch::is_scanned`](crate::cull::layout::Batch::is_scanned) is set
    /// their exclusive prefixes within tiles, and the closing entry.
    pub counts: Vec<u32>,
    /// Totals of the tiles, where it is set.
    pub partials: Vec<u32>,
    /// What the arena holds: survivor ids, counted from the start of the page. Rows lie where their commands say;
    /// between the regions of an unordered compaction there is nothing of meaning.
    pub survivors: Vec<u32>,
    /// Totals.
    pub totals: Totals,
    /// Indirect commands, one a row.
    pub draws: Vec<DrawArgs>,
}

/// Everything of one batch; without pipelines (the `Cpu` tier) only arena, totals and commands.
pub(crate) fn read_batch(
    (device, queue): (&Device, &Queue),
    gpu: &GpuBatch,
    plan: &BatchPlan,
    pipelines: Option<&Pipelines>,
) -> Result<BatchData, CullError> {
    let totals: Vec<Totals> = read_buffer(device, queue, gpu.args(), 0, 1)?;
    let totals = totals[0];
    let scratch = |slot: Resource| match gpu.scratch(slot) {
        Some(buffer)
            if pipelines
                .is_some_and(|pipelines| pipelines.scratch().any(|other| other == slot)) =>
        {
            read_buffer(
                device,
                queue,
                buffer,
                0,
                slot.scratch_bytes(plan) as usize / 4,
            )
        }
        _ => Ok(Vec::new()),
    };
    let mut counts = scratch(Resource::Counts)?;
    let mut partials = scratch(Resource::Partials)?;
    if plan.batch.is_scanned == 0 {
        counts.truncate(plan.batch.count_len as usize);
        partials.clear();
    }
    let stored = totals.needed.min(gpu.survivor_capacity) as usize;
    Ok(BatchData {
        words: scratch(Resource::Words)?,
        counts,
        partials,
        survivors: read_buffer(device, queue, gpu.survivors(), 0, stored)?,
        totals,
        draws: read_buffer(device, queue, gpu.args(), args_offset(0), plan.rows.len())?,
    })
}

/// Reads `len` values from the start of `source` and waits for them.
pub(crate) fn read_buffer<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(
    device: &Device,
    queue: &Queue,
    source: &Buffer,
    offset: u64,
    len: usize,
) -> Result<Vec<T>, CullError> {
    let bytes = (len * size_of::<T>()) as u64;
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let failed = |what: &dyn core::fmt::Display| CullError::Readback(what.to_string());
    let staging = device.create_buffer(&BufferDescriptor {
        label: Some("gpu_culling readback"),
        size: bytes,
        usage: BufferUsages::COPY_DST | BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(source, offset, &staging, 0, bytes);
    queue.submit([encoder.finish()]);
    let (send, receive) = std::sync::mpsc::channel();
    staging.map_async(MapMode::Read, .., move |result| {
        // The receiver is gone only if the wait below failed, which is reported there.
        let _ = send.send(result);
    });
    device
        .poll(PollType::wait_indefinitely())
        .map_err(|error| failed(&error))?;
    receive
        .recv()
        .map_err(|error| failed(&error))?
        .map_err(|error| failed(&error))?;
    let data = bytemuck::pod_collect_to_vec(&staging.get_mapped_range(..));
    Ok(data)
}
