//! What was drawn in the frame before, by the place in the list of sets.

/// Indices in the lists of what is drawn.
#[derive(Default)]
pub(in crate::render) struct DrawnPlaces {
    now: Vec<Option<u32>>,
    /// Of the previous frame; empty if it had another list of sets.
    before: Vec<Option<u32>>,
    /// Names the list of sets.
    listed_in: Option<u64>,
}

impl DrawnPlaces {
    /// Starts a frame with the list of sets that `listed_in` names.
    pub fn start_frame(&mut self, listed_in: u64) {
        core::mem::swap(&mut self.now, &mut self.before);
        if self.listed_in.replace(listed_in) != Some(listed_in) {
            self.before.clear();
        }
        self.now.clear();
    }

    /// Forgets what was drawn.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether they are of the list of sets that `listed_in` names.
    pub fn are_of(&self, listed_in: u64) -> bool {
        self.listed_in == Some(listed_in)
    }

    /// Notes what the entity at a place draws.
    pub fn add(&mut self, place: usize, index: usize) {
        if self.now.len() <= place {
            self.now.resize(place + 1, None);
        }
        self.now[place] = Some(index as u32);
    }

    /// The entity at a place went.
    pub fn remove(&mut self, place: usize) {
        if let Some(now) = self.now.get_mut(place) {
            *now = None;
        }
    }

    /// What the entity at a place draws.
    pub fn now(&self, place: usize) -> Option<usize> {
        let index = *self.now.get(place)?;
        index.map(|index| index as usize)
    }

    /// What the entity at a place drew in the previous frame.
    pub fn before(&self, place: usize) -> Option<usize> {
        let index = *self.before.get(place)?;
        index.map(|index| index as usize)
    }
}
