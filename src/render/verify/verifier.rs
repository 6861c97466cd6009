//! The request for a check, and its verdicts.

use crate::{
    cull::SetId,
    instance::{InstanceSet, PackedInstance},
};
use bevy::{platform::collections::HashMap, prelude::*};
use std::sync::{Arc, Mutex};

/// What a check found in one view of one set.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Entity of the set in the main world.
    pub entity: Entity,
    /// Camera or light in the main world.
    pub view: Entity,
    /// `camera`, or the shadow pass's name.
    pub name: String,
    /// Number of instances tested.
    pub tested: u32,
    /// Number of survivors on the GPU.
    pub visible: u32,
    /// Number of instances about which GPU and twin differ, because they lie within 1e-4 of a
    /// border, so that rounding decides.
    pub borderline: u32,
    /// What is wrong; `None` if the lists are equal, except for borderline instances.
    pub error: Option<String>,
}

/// Asks the render world to check the next frame: [`request`](Self::request), run a frame,
/// [`take`](Self::take).
#[derive(Resource, Clone, Default)]
pub struct Verifier(pub(super) Arc<Mutex<State>>);

/// A check, from its request to its verdicts.
#[derive(Default)]
pub(super) struct State {
    pub is_requested: bool,
    /// The copied sets. `None` if only the GPU has the instances: they are read when the frame is
    /// done.
    pub sets: HashMap<SetId, Option<Copied>>,
    pub verdicts: Option<Vec<Verdict>>,
}

/// A copy of a set.
pub(super) struct Copied {
    pub instances: Vec<PackedInstance>,
    /// [`ScaleKind::floats`](crate::instance::ScaleKind::floats) numbers per instance.
    pub scales: Vec<f32>,
}

impl Verifier {
    /// Requests a check of the next frame that is rendered.
    pub fn request(&self) {
        if let Ok(mut state) = self.0.lock() {
            *state = State {
                is_requested: true,
                ..State::default()
            };
        }
    }

    /// The verdicts, one per set and view; `None` until the check has run.
    #[must_use]
    pub fn take(&self) -> Option<Vec<Verdict>> {
        self.0.lock().ok()?.verdicts.take()
    }

    /// Whether a check is requested.
    pub(in crate::render) fn is_requested(&self) -> bool {
        self.0.lock().is_ok_and(|state| state.is_requested)
    }

    /// Keeps a copy of the first `arrived` instances of a set for the check. Instances that are
    /// only on the GPU are read back later.
    pub(in crate::render) fn keep(&self, id: SetId, set: &InstanceSet, arrived: usize) {
        if let Ok(mut state) = self.0.lock() {
            let is_here = set.written().is_none() && !set.is_released();
            let copied = is_here.then(|| Copied {
                instances: set.packed()[..arrived].to_vec(),
                scales: set.scale_floats()[..arrived * set.scale_kind().floats()].to_vec(),
            });
            state.sets.insert(id, copied);
        }
    }
}
