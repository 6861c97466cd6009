//! The request for a check, and its verdicts.

use crate::{
    cull::SetId,
    instance::{InstanceSet, PackedInstance},
};
use bevy::{platform::collections::HashMap, prelude::*};
use std::sync::{Arc, Mutex};

/// What the check found in one view of one set.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Entity of the set in the main world.
    pub entity: Entity,
    /// Camera or light in the main world.
    pub view: Entity,
    /// `camera`, or the shadow pass's name.
    pub name: String,
    /// Instances tested.
    pub tested: u32,
    /// Survivors on the GPU.
    pub visible: u32,
    /// Survivors that differ from the twin's but lie within 1e-4 of a border, where rounding decides.
    pub borderline: u32,
    /// What is wrong; `None` when the lists are equal, borderline instances apart.
    pub error: Option<String>,
}

/// Asks the render world for a check of the next frame: [`request`](Self::request), run a frame, [`take`](Self::take).
#[derive(Resource, Clone, Default)]
pub struct Verifier(pub(super) Arc<Mutex<State>>);

#[derive(Default)]
pub(super) struct State {
    pub requested: bool,
    /// None where the GPU writes the instances: they are read when the frame is done.
    pub sets: HashMap<SetId, Option<Copied>>,
    pub verdicts: Option<Vec<Verdict>>,
}

pub(super) struct Copied {
    pub instances: Vec<PackedInstance>,
    pub scales: Vec<f32>,
}

impl Verifier {
    /// Checks the next frame that is rendered.
    pub fn request(&self) {
        if let Ok(mut state) = self.0.lock() {
            *state = State {
                requested: true,
                ..State::default()
            };
        }
    }

    /// The verdicts, once they are there: one for each set and view.
    #[must_use]
    pub fn take(&self) -> Option<Vec<Verdict>> {
        self.0.lock().ok()?.verdicts.take()
    }

    /// Whether a check is asked for.
    pub(in crate::render) fn is_requested(&self) -> bool {
        self.0.lock().is_ok_and(|state| state.requested)
    }

    /// Keeps a copy of the first `arrived` instances of a set for the check. What is on the GPU only is read back.
    pub(in crate::render) fn keep(&self, id: SetId, set: &InstanceSet, arrived: usize) {
        if let Ok(mut state) = self.0.lock() {
            let is_here = set.written().is_none() && !set.is_released();
            let copied = is_here.then(|| Copied {
                instances: set.packed()[..arrived].to_vec(),
                scales: set
                    .scales()
                    .map_or(&[][..], |scales| &scales[..arrived])
                    .to_vec(),
            });
            state.sets.insert(id, copied);
        }
    }
}
