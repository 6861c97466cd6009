//! A check of the survivors on the GPU against the CPU twins, per view and id.
//!
//! For tests, demos and bug reports: it waits for the GPU, and copies whole sets. The survivors of
//! an unordered compaction are sorted first.

mod compare;
mod verifier;

pub(super) use compare::verify_survivors;
pub use verifier::{Verdict, Verifier};
