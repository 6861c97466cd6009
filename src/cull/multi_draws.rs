//! Multi-draws: the commands of many rows next to each other, so that one call draws them.
//!
//! A batch has its commands chunk after chunk, and of each chunk view after view. The draws of one
//! view lie far apart. This stage copies them, in the order that the caller wants.

use crate::cull::{
    BatchVersion, CullError, Culler, CullingTier, DrawPart, DrawSource, Follower, Gpu,
    IndirectDraws, PassRecorder,
    gpu::{
        binding::{Access, Bind},
        buffer::{Growable, Table},
        guard::guarded,
        kernel::KernelJob,
        program::Program,
        version::Version,
    },
    layout::DrawCommand,
    shaders::kernels,
};
use core::{num::NonZeroU64, ops::Range};
use wgpu::{
    BindGroup, BindingResource, Buffer, BufferBinding, BufferUsages, CommandEncoder, Device,
};

/// Number of threads of a workgroup of `gather_draws`.
const THREADS: u32 = 64;
/// The commands of a batch begin at a multiple of this number, which keeps bindings aligned.
const ALIGNMENT: usize = 64;

/// The commands of a batch that are wanted, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedDraws {
    /// Index of the batch in the frame.
    pub batch: usize,
    /// Indices of commands of the batch ([`Culler::command_of`]).
    pub commands: Vec<u32>,
}

/// A buffer that the kernel binds; its number in the shader.
#[derive(Clone, Copy)]
enum Slot {
    Wanted = 0,
    Args = 1,
    Gathered = 2,
}

/// The multi-draws of a frame.
pub struct MultiDraws {
    program: Program<Slot>,
    /// The wanted commands of all batches.
    wanted: Table,
    gathered: Growable,
    /// The numbers from 0 on, as counts of multi-draws.
    counts: Table,
    /// Number of commands of the longest batch that `counts` serves.
    longest: usize,
    batches: Vec<Batch>,
    /// Changes with the buffers and with what is wanted.
    version: Version,
}

/// The commands of a batch.
struct Batch {
    /// Index of the batch in the frame.
    index: usize,
    /// Place of its first command in the buffers.
    first: usize,
    len: usize,
    bound: Option<(Version, BatchVersion)>,
    bind_group: Option<BindGroup>,
}

impl Batch {
    /// Its part of a buffer of elements with this size.
    fn part<'a>(&self, buffer: &'a Buffer, bytes: usize) -> BindingResource<'a> {
        BindingResource::Buffer(BufferBinding {
            buffer,
            offset: (self.first * bytes) as u64,
            size: NonZeroU64::new((self.len.next_multiple_of(ALIGNMENT) * bytes) as u64),
        })
    }
}

impl MultiDraws {
    /// Compiles the kernel.
    ///
    /// # Errors
    /// [`CullError`]: the device refuses the kernel or a buffer.
    pub fn new(device: &Device) -> Result<Self, CullError> {
        let bind = |slot: Slot, access| Bind {
            number: slot as u32,
            slot,
            access,
        };
        let job = KernelJob {
            tier: CullingTier::Workgroup,
            label: "gather_draws",
            source: kernels::GATHER_DRAWS.on(CullingTier::Workgroup).to_owned(),
            entry: "gather_draws",
            checks: true,
        };
        let binds = [
            bind(Slot::Wanted, Access::Read),
            bind(Slot::Args, Access::Read),
            bind(Slot::Gathered, Access::Write),
        ];
        let program = Program::build(device, &job, binds.into_iter())?;
        guarded(device, "buffers of multi-draws", || {
            let commands = BufferUsages::STORAGE | BufferUsages::INDIRECT | BufferUsages::COPY_SRC;
            Self {
                program,
                wanted: Table::new(device, "gpu_culling wanted draws", BufferUsages::STORAGE),
                gathered: Growable::new(device, "gpu_culling multi-draws", commands),
                counts: Table::new(
                    device,
                    "gpu_culling multi-draw counts",
                    BufferUsages::INDIRECT,
                ),
                longest: 0,
                batches: Vec::new(),
                version: Version::new(),
            }
        })
    }

    /// Takes the commands that are wanted of a frame, and of those after it with the same plan.
    /// Returns the number of bytes uploaded.
    ///
    /// # Errors
    /// [`CullError::Gpu`]: the device refuses a buffer. There are then no multi-draws.
    pub fn plan(&mut self, gpu: Gpu<'_>, wanted: &[WantedDraws]) -> Result<u64, CullError> {
        self.batches.clear();
        self.version.bump();
        let mut all = Vec::new();
        let mut batches = Vec::with_capacity(wanted.len());
        for draws in wanted.iter().filter(|draws| !draws.commands.is_empty()) {
            batches.push(Batch {
                index: draws.batch,
                first: all.len(),
                len: draws.commands.len(),
                bound: None,
                bind_group: None,
            });
            all.extend_from_slice(&draws.commands);
            // What is too many copies the first command.
            all.resize(all.len().next_multiple_of(ALIGNMENT), 0);
        }
        if batches.is_empty() {
            return Ok(0);
        }
        let mut bytes = self.wanted.write(gpu, &all)?.bytes;
        let size = (all.len() * size_of::<DrawCommand>()) as u64;
        self.gathered.reserve(gpu.device, size)?;
        let longest = batches.iter().map(|batch| batch.len).max().unwrap_or(0);
        if longest > self.longest || self.longest == 0 {
            let longest = longest.next_power_of_two();
            let counts: Vec<u32> = (0..=longest as u32).collect();
            bytes += self.counts.write(gpu, &counts)?.bytes;
            self.longest = longest;
        }
        self.batches = batches;
        Ok(bytes)
    }

    /// Binds what the kernel copies. Call it in each frame, after [`Culler::prepare`].
    ///
    /// # Errors
    /// [`CullError::Gpu`]: the device refuses a bind group. The draws of its batch are then wrong.
    pub fn prepare(&mut self, device: &Device, culler: &Culler) -> Result<(), CullError> {
        for batch in &mut self.batches {
            let version = culler.batch_version(batch.index);
            let bound = version.map(|version| (self.version, version));
            if batch.bound == bound && batch.bind_group.is_some() {
                continue;
            }
            (batch.bound, batch.bind_group) = (None, None);
            let first = DrawPart {
                batch: batch.index,
                ..DrawPart::default()
            };
            let Some(DrawSource::Indirect(IndirectDraws { buffer: args, .. })) =
                culler.draw_source(&first)
            else {
                continue;
            };
            let (wanted, gathered) = (&self.wanted.gpu.buffer, &self.gathered.buffer);
            let bind_group = guarded(device, "bind groups of multi-draws", || {
                self.program.bind(device, |slot| match slot {
                    Slot::Wanted => batch.part(wanted, size_of::<u32>()),
                    Slot::Args => args.as_entire_binding(),
                    Slot::Gathered => batch.part(gathered, size_of::<DrawCommand>()),
                })
            })?;
            (batch.bound, batch.bind_group) = (bound, Some(bind_group));
        }
        Ok(())
    }

    /// Some of the commands of a batch as one draw; `None` if they are not gathered.
    #[must_use]
    pub fn source(&self, batch: usize, commands: &Range<u32>) -> Option<IndirectDraws<'_>> {
        let batch = self.batches.iter().find(|known| known.index == batch)?;
        batch.bind_group.as_ref()?;
        let max = commands.end.checked_sub(commands.start)?;
        if max == 0 || commands.end as usize > batch.len {
            return None;
        }
        let first = batch.first as u64 + u64::from(commands.start);
        Some(IndirectDraws {
            buffer: &self.gathered.buffer,
            offset: first * size_of::<DrawCommand>() as u64,
            count: (&self.counts.gpu.buffer, u64::from(max) * 4),
            max,
        })
    }

    /// Bytes that it holds on the GPU.
    #[must_use]
    pub fn gpu_bytes(&self) -> u64 {
        let tables = [&self.wanted.gpu, &self.counts.gpu, &self.gathered];
        tables.iter().map(|table| table.buffer.size()).sum()
    }
}

impl Follower for MultiDraws {
    fn has_work(&self) -> bool {
        self.batches.iter().any(|batch| batch.bind_group.is_some())
    }

    fn record(
        &mut self,
        _: &Culler,
        _: &Device,
        encoder: &mut CommandEncoder,
        passes: &mut dyn PassRecorder,
    ) {
        passes.pass(encoder, "gpu_culling/gather_draws", &mut |pass| {
            pass.set_pipeline(self.program.pipeline());
            for batch in &self.batches {
                if let Some(bind_group) = &batch.bind_group {
                    pass.set_bind_group(0, bind_group, &[]);
                    pass.dispatch_workgroups((batch.len as u32).div_ceil(THREADS), 1, 1);
                }
            }
        });
    }
}
