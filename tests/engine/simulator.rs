//! Kernels on a simulated GPU: at subgroup sizes that no adapter at hand has, and with schedulers
//! that let workgroups starve.

mod batch;
mod kernels;
mod look_back;
mod machine;
mod scene;
mod small;
mod values;
