//! Checks the survivors on the GPU against the CPU twins, view by view and id by id.
//!
//! Those of an unordered compaction are compared as sets.
//!
//! For tests, demos and bug reports: it waits for the GPU and copies whole sets.

mod compare;
mod verifier;

pub(super) use compare::verify_survivors;
pub use verifier::{Verdict, Verifier};
