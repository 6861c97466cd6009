//! What article 3 concluded on its adapter, and what this one says.

use crate::case::{Address, Case, Operation};
use serde::Serialize;

/// A measured case.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    #[serde(flatten)]
    pub case: Case,
    /// Median.
    pub us: f64,
    /// From the tenth to the ninetieth hundredth of the runs, as a share of the median.
    pub spread: f64,
    /// Invocations a second, in thousands of millions.
    pub g_per_s: f64,
    /// The counters were right after every run.
    pub verified: bool,
}

/// A conclusion of the article.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    pub article: &'static str,
    /// What was compared here, with the ratio.
    pub here: String,
    pub agrees: bool,
}

/// Median of a case, if it was measured.
fn us(
    all: &[Measured],
    address: Address,
    operation: Operation,
    reduced: bool,
    used: bool,
) -> Option<f64> {
    let case = Case {
        address,
        operation,
        reduced,
        used,
    };
    all.iter()
        .find(|measured| measured.case == case)
        .map(|measured| measured.us)
}

/// The conclusions that can be drawn from what was measured.
pub fn judge(all: &[Measured]) -> Vec<Claim> {
    use Address::{Lane, One, Subgroup, Workgroup};
    use Operation::{Add, CompareExchange, Exchange, Max, Or, Store};
    let at = |address, operation, reduced, used| us(all, address, operation, reduced, used);
    let mut claims = Vec::new();
    let mut claim = |article, ratio: Option<f64>, what: &str, agrees: &dyn Fn(f64) -> bool| {
        if let Some(ratio) = ratio {
            let here = format!("{what}: {ratio:.2} times");
            claims.push(Claim {
                article,
                here,
                agrees: agrees(ratio),
            });
        }
    };
    let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    let naive = at(One, Add, false, false);
    let ballot = at(One, Add, true, false);

    claim(
        "Giving each lane an address of its own is 10 to 30 times slower than one address for all.",
        ratio(at(Lane, Add, false, false), naive),
        "an address a lane takes, against one address",
        &|ratio| ratio >= 2.0,
    );
    let spread = [
        at(Subgroup, Add, false, false),
        at(Workgroup, Add, false, false),
    ];
    claim(
        "Spreading the counter over subgroups or groups buys a few percent at best.",
        ratio(naive, spread.into_iter().flatten().reduce(f64::min)),
        "one address takes, against the better of an address a subgroup and a workgroup",
        &|ratio| ratio <= 1.1,
    );
    claim(
        "The compiler reduces an atomicAdd to one address by itself: a ballot by hand changes little.",
        ratio(naive, ballot),
        "without a ballot it takes, against with one",
        &|ratio| (0.75..=1.33).contains(&ratio),
    );
    claim(
        "The naive atomicAdd is twice as fast as a plain store to the same address.",
        ratio(at(One, Store, false, false), naive),
        "the store takes, against the atomicAdd",
        &|ratio| ratio >= 1.5,
    );
    claim(
        "A store by one elected lane is 2 to 10 % faster than the naive atomicAdd.",
        ratio(naive, at(One, Store, true, false)),
        "the atomicAdd takes, against the elected store",
        &|ratio| (1.0..=1.25).contains(&ratio),
    );
    let others = [Max, Or, Exchange, CompareExchange];
    let least = |reduced| {
        let times = others.map(|operation| at(One, operation, reduced, false));
        times.into_iter().flatten().reduce(f64::min)
    };
    claim(
        "Max, Or, Exchange and compare-exchange are 40 times slower than atomicAdd: only Add is reduced.",
        ratio(least(false), naive),
        "the fastest of the four takes, against atomicAdd",
        &|ratio| ratio >= 2.0,
    );
    claim(
        "With a ballot by hand the others are as fast as atomicAdd.",
        ratio(least(true), ballot),
        "the fastest of the four with a ballot takes, against atomicAdd with one",
        &|ratio| (0.75..=1.33).contains(&ratio),
    );
    claim(
        "The reduction is for an atomicAdd whose result is not used (the article's guess).",
        ratio(at(One, Add, false, true), naive),
        "with the result used it takes, against without",
        &|ratio| ratio >= 1.5,
    );
    claims
}

/// What to do on this adapter, in a sentence.
pub fn advice(all: &[Measured]) -> String {
    let used = |reduced| us(all, Address::One, Operation::Add, reduced, true);
    match (used(false), used(true)) {
        (Some(naive), Some(ballot)) if ballot < naive * 0.9 => format!(
            "To append (the result is used), reduce by a ballot: {:.1} times faster here than one atomicAdd an invocation.",
            naive / ballot
        ),
        (Some(naive), Some(ballot)) => format!(
            "To append (the result is used), a ballot buys nothing here: it takes {:.2} times what one atomicAdd an invocation takes.",
            ballot / naive
        ),
        _ => "Without subgroups there is no ballot to compare with.".into(),
    }
}
