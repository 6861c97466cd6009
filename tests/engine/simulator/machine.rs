//! A machine that runs compute kernels as naga reads them, at any subgroup size from 1 to 128, with
//! any order of workgroups.
//!
//! A kernel becomes a list of steps (`lower`, `statements`, `expressions`, `operators`). The lanes
//! of a subgroup take each step together (`subgroup`, `memory`). A scheduler says which subgroup
//! runs next (`schedule`).
//! The machine is stricter than a GPU. It refuses what WGSL leaves undefined and a GPU may forgive:
//! an index beyond an array, and barriers and subgroup operations that not all lanes reach.
//!
//! It does not model weak memory: what one invocation writes, all others see at once.

mod arithmetic;
pub mod dispatch;
mod expressions;
pub mod lower;
mod memory;
mod operators;
pub mod program;
pub mod schedule;
mod shape;
mod statements;
mod subgroup;
