//! What is known of the sets without a look at each of them.

/// What is known of the sets without a look at each of them: that each change since some frame was
/// noted.
#[derive(Default)]
pub(in crate::render) struct FrameNotes {
    /// Each change of a set since this extraction was noted. What was looked at since then has not
    /// changed, unless a note says so.
    pub complete_since: u64,
    /// The last extraction whose changes were noted.
    extracted_in: u64,
    /// Places of sets whose slots have another transform than in the frame before: the next frame
    /// looks at them again, for the motion vectors. Bevy's list of written instances does not name
    /// a set whose [`InstanceOffset`](crate::render::InstanceOffset) stops.
    pub moving: Vec<usize>,
    /// How often it had changed what materials say of hiding
    /// ([`DrawnFaces::changes`](crate::render::materials::DrawnFaces)).
    pub faces: u64,
    /// Whether some set shares its instances with an impostor.
    pub has_impostors: bool,
}

impl FrameNotes {
    /// Starts to note the changes of an extraction. Returns whether no extraction was missed.
    pub fn start(&mut self, extracted_in: u64) -> bool {
        let is_next = core::mem::replace(&mut self.extracted_in, extracted_in) + 1 == extracted_in;
        if !is_next {
            self.complete_since = extracted_in;
        }
        is_next
    }
}
