//! The addressing schemes and operations that the study compares.

use serde::Serialize;

/// The counter that an invocation increments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Address {
    /// One counter for all invocations.
    One,
    /// One counter per lane number. Within a subgroup, all addresses differ.
    Lane,
    /// One counter per subgroup.
    Subgroup,
    /// One counter per workgroup.
    Workgroup,
}

/// The operation on the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    Add,
    Max,
    Or,
    Exchange,
    CompareExchange,
    /// A plain store without an atomic operation, as the control.
    Store,
}

/// One scheme that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Case {
    pub address: Address,
    pub operation: Operation,
    /// Whether a ballot elects one lane that acts for the whole subgroup.
    pub reduced: bool,
    /// Whether the returned value is used.
    pub used: bool,
}

/// Threads per workgroup.
pub const THREADS: u32 = 128;

impl Case {
    /// All cases that make sense. Lanes with separate addresses have nothing to reduce, and a store
    /// returns nothing.
    pub fn all(subgroups: bool) -> Vec<Self> {
        use Address::{Lane, One, Subgroup, Workgroup};
        use Operation::{Add, CompareExchange, Exchange, Max, Or, Store};
        let mut cases = Vec::new();
        for address in [One, Lane, Subgroup, Workgroup] {
            for operation in [Add, Max, Or, Exchange, CompareExchange, Store] {
                for reduced in [false, true] {
                    for used in [false, true] {
                        let senseless =
                            (reduced && address == Lane) || (used && operation == Store);
                        let possible =
                            subgroups || !(reduced || matches!(address, Lane | Subgroup));
                        if !senseless && possible {
                            cases.push(Self {
                                address,
                                operation,
                                reduced,
                                used,
                            });
                        }
                    }
                }
            }
        }
        cases
    }

    /// The kernel's WGSL. Without subgroups it uses only the builtins that every adapter has.
    pub fn wgsl(&self, subgroups: bool) -> String {
        let target = match self.address {
            Address::One => "0u",
            Address::Lane => "lane",
            Address::Subgroup => "group * (128u / size) + subgroup",
            Address::Workgroup => "group",
        };
        let operand = if self.reduced { "count" } else { "1u" };
        let act = match self.operation {
            Operation::Add => format!("old = atomicAdd(&cells[cell], {operand});"),
            Operation::Max => "old = atomicMax(&cells[cell], 1u);".into(),
            Operation::Or => "old = atomicOr(&cells[cell], 1u);".into(),
            Operation::Exchange => "old = atomicExchange(&cells[cell], 1u);".into(),
            Operation::CompareExchange => {
                "old = atomicCompareExchangeWeak(&cells[cell], 0u, 1u).old_value;".into()
            }
            Operation::Store => "plain[cell] = 1u;".into(),
        };
        let count = if self.reduced {
            // Every lane is active, so the ballot of `true` has one bit per lane.
            format!(
                "let bits = countOneBits(subgroupBallot(true));\n    \
                 let count = bits.x + bits.y + bits.z + bits.w;\n    \
                 if (lane == 0u) {{ {act} }}"
            )
        } else {
            act
        };
        let mut wgsl = include_str!("bump.wgsl")
            .replace("TARGET", target)
            .replace("COUNT", &count)
            .replace(
                "USE",
                if self.used {
                    "if (old == 0xfffffff0u) { kept[0] = thread; }"
                } else {
                    ""
                },
            )
            .replace(
                "SUBGROUP_BUILTINS",
                if subgroups {
                    "@builtin(subgroup_id) subgroup: u32,\n    \
                     @builtin(subgroup_invocation_id) lane: u32,\n    \
                     @builtin(subgroup_size) size: u32,"
                } else {
                    ""
                },
            );
        if self.operation == Operation::Store {
            wgsl = wgsl.replace("cells: array<atomic<u32>>", "plain: array<u32>");
        }
        wgsl
    }

    /// Why the counters are not what the case must leave behind, or `None` if they are right.
    pub fn refuse(&self, cells: &[u32], invocations: u64, subgroup_size: u32) -> Option<String> {
        let touched = cells.iter().filter(|cell| **cell != 0).count() as u64;
        let size = u64::from(subgroup_size.max(1));
        let expected = match self.address {
            Address::One => 1,
            Address::Lane => size,
            Address::Subgroup => invocations / size,
            Address::Workgroup => invocations / u64::from(THREADS),
        };
        if touched != expected {
            return Some(format!("{touched} counters changed, expected {expected}"));
        }
        let sum: u64 = cells.iter().map(|cell| u64::from(*cell)).sum();
        let sum_expected = if self.operation == Operation::Add {
            invocations
        } else {
            expected
        };
        (sum != sum_expected)
            .then(|| format!("the counters add up to {sum}, expected {sum_expected}"))
    }
}
