//! Passes that run once per doubling of a reach, for `hillis-steele`. Each step reads what the step
//! before wrote, so the two buffers swap. Later passes read what the last step wrote.
//!
//! ```text
//! step            0         1         2         after 3 steps
//! reach           1         2         4
//! reads          Front     Back      Front      Back
//! writes         Back      Front     Back
//! ```

use crate::cull::{
    CullError, Gpu,
    compaction::passes::{Dispatch, Pass, Resource},
    gpu::{
        binding::{UNIFORM_STRIDE, strided, uniform_at},
        guard::guarded,
        program::Program,
    },
    layout::BLOCK,
    plan::BatchPlan,
};
use wgpu::{
    BindGroup, BindingResource, Buffer, BufferBinding, BufferDescriptor, BufferUsages, Device,
};

/// Steps until a reach of 32 bits covers everything.
const STEPS: usize = 32;

/// Steps of [`Dispatch::Doubling`] over `votes` votes.
pub(super) fn doublings(votes: u64) -> usize {
    votes.max(1).next_power_of_two().trailing_zeros() as usize
}

/// How often a pass runs per batch, and on which of the two buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Steps {
    /// Once. Every pass of the product.
    #[default]
    One,
    /// Once per doubling.
    Doubling,
    /// Once, on what the last step wrote.
    AfterDoubling,
}

impl Steps {
    /// The steps of a pass that comes after one with steps `before`.
    pub fn after(before: Self, pass: &Pass) -> Self {
        match (pass.dispatch, before) {
            (Dispatch::Doubling, _) => Self::Doubling,
            (_, Self::One) => Self::One,
            _ => Self::AfterDoubling,
        }
    }

    /// Bind groups of a pass: one per step, over buffers for `votes` votes.
    pub fn bind_groups(self, votes: u64) -> usize {
        match self {
            Self::One => 1,
            Self::Doubling => doublings(votes).min(STEPS),
            // One per buffer: the last step may write either.
            Self::AfterDoubling => 2,
        }
    }

    /// The part of `groups` that a batch runs.
    pub fn of_batch<'a>(self, groups: &'a [BindGroup], plan: &BatchPlan) -> &'a [BindGroup] {
        let steps = || doublings(u64::from(plan.batch.count_len) * u64::from(BLOCK));
        match self {
            Self::One => groups,
            Self::Doubling => &groups[..steps().min(groups.len())],
            Self::AfterDoubling => &groups[steps() % 2..=steps() % 2],
        }
    }
}

/// The buffer that a step, counted from 0, has in place of `resource`.
fn swapped(resource: Resource, step: usize) -> Resource {
    match resource {
        Resource::Front if step % 2 == 1 => Resource::Back,
        Resource::Back if step % 2 == 1 => Resource::Front,
        resource => resource,
    }
}

/// The passes of a strategy that double their reach, and those that follow them.
#[derive(Default)]
pub(crate) struct Doubling {
    /// The steps of the last pass that was added.
    last: Steps,
    /// `None` if no pass doubles its reach.
    reaches: Option<Reaches>,
}

impl Doubling {
    /// The steps of the strategy's next pass.
    pub fn steps_of(&mut self, device: &Device, pass: &Pass) -> Result<Steps, CullError> {
        self.last = Steps::after(self.last, pass);
        if self.last == Steps::Doubling && self.reaches.is_none() {
            let reaches = guarded(device, Reaches::LABEL, || Reaches::new(device))?;
            self.reaches = Some(reaches);
        }
        Ok(self.last)
    }

    /// Bind groups of a pass, over what `buffer` gives for a resource: one per step.
    pub fn bind<'a>(
        &'a self,
        gpu: Gpu<'_>,
        steps: Steps,
        program: &Program<Resource>,
        buffer: &impl Fn(Resource) -> BufferBinding<'a>,
    ) -> Vec<BindGroup> {
        let Some(reaches) = &self.reaches else {
            return Vec::new();
        };
        if steps == Steps::Doubling {
            reaches.upload(gpu);
        }
        let votes = buffer(Resource::Front).buffer.size() / 4;
        let bind = |step| {
            program.bind(gpu.device, |resource| match resource {
                Resource::Step => reaches.binding(step),
                resource => BindingResource::Buffer(buffer(swapped(resource, step))),
            })
        };
        (0..steps.bind_groups(votes)).map(bind).collect()
    }
}

/// The reach of each step, [`UNIFORM_STRIDE`] bytes apart.
struct Reaches(Buffer);

impl Reaches {
    const LABEL: &str = "gpu_culling steps";

    /// Not mapped at its creation: wgpu panics if a buffer that it could not make is mapped.
    fn new(device: &Device) -> Self {
        Self(device.create_buffer(&BufferDescriptor {
            label: Some(Self::LABEL),
            size: STEPS as u64 * UNIFORM_STRIDE,
            usage: BufferUsages::UNIFORM | BufferUsages::COPY_DST,
            mapped_at_creation: false,
        }))
    }

    /// Uploads reaches 1, 2, 4 and so on.
    fn upload(&self, gpu: Gpu<'_>) {
        let reaches = strided((0..STEPS).map(|step| [1u32 << step, 0, 0, 0]));
        gpu.queue.write_buffer(&self.0, 0, &reaches);
    }

    /// The reach of a step, for a uniform binding.
    fn binding(&self, step: usize) -> BindingResource<'_> {
        uniform_at::<[u32; 4]>(&self.0, step as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doublings_reach_all_votes() {
        for (votes, steps) in [
            (0, 0),
            (1, 0),
            (2, 1),
            (3, 2),
            (1024, 10),
            (1025, 11),
            (1 << 31, 31),
        ] {
            assert_eq!(doublings(votes), steps, "{votes}");
        }
    }
}
