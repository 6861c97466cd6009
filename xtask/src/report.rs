//! The demo's `--json` line, and what CI asks of it.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The part of the demo's report that CI looks at.
#[derive(Debug, Deserialize)]
pub struct Report {
    tier: String,
    views: Vec<View>,
}

#[derive(Debug, Deserialize)]
struct View {
    name: String,
    visible: u64,
    verified: Option<bool>,
}

impl Report {
    /// Reads the report from the last line of the demo's output.
    pub fn from_output(stdout: &str) -> Result<Self> {
        let line = stdout
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .context("the demo printed nothing")?;
        serde_json::from_str(line)
            .with_context(|| format!("the demo's last line is no report: {line}"))
    }

    /// Holds when the demo ran on the tier asked for, saw something, and every view's survivors
    /// equal the CPU twin's.
    pub fn check(&self, tier: &str) -> Result<()> {
        // Some tiers may add to their name, such as the size of a subgroup.
        ensure!(
            self.tier.to_lowercase().starts_with(tier),
            "asked for tier {tier}, the demo ran on {}",
            self.tier
        );
        ensure!(
            !self.views.is_empty(),
            "tier {tier}: the report has no views"
        );
        for view in &self.views {
            let name = &view.name;
            match view.verified {
                Some(true) => {}
                Some(false) => anyhow::bail!("tier {tier}: view {name} differs from the CPU twin"),
                None => anyhow::bail!("tier {tier}: view {name} was not verified"),
            }
        }
        ensure!(
            self.views.iter().any(|view| view.visible > 0),
            "tier {tier}: nothing is visible in any view"
        );
        Ok(())
    }

    /// Holds when both reports count the same survivors in the same views.
    pub fn same_visible(&self, other: &Self) -> Result<()> {
        let (ours, theirs) = (self.visible(), other.visible());
        ensure!(
            ours == theirs,
            "visible counts differ: {} has {ours:?}, {} has {theirs:?}",
            self.tier,
            other.tier
        );
        Ok(())
    }

    fn visible(&self) -> Vec<(&str, u64)> {
        self.views
            .iter()
            .map(|view| (view.name.as_str(), view.visible))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(tier: &str, views: &[(&str, u64, &str)]) -> Report {
        let views: Vec<_> = views
            .iter()
            .map(|(name, visible, verified)| {
                format!(
                    r#"{{"name":"{name}","tested":9,"visible":{visible},"verified":{verified}}}"#
                )
            })
            .collect();
        let json = format!(
            r#"{{"adapter":"llvmpipe","backend":"vulkan","tier":"{tier}","gpu_ms":{{"vote":0.1}},"views":[{}]}}"#,
            views.join(",")
        );
        Report::from_output(&format!("a table\n  of numbers\n{json}\n\n"))
            .expect("the sample is a report")
    }

    #[test]
    fn a_verified_report_passes() {
        let subgroup = report(
            "Subgroup (8)",
            &[("camera", 7, "true"), ("light", 0, "true")],
        );
        assert!(subgroup.check("subgroup").is_ok());
        let cpu = report("cpu", &[("camera", 7, "true"), ("light", 0, "true")]);
        assert!(cpu.same_visible(&subgroup).is_ok());
    }

    #[test]
    fn each_way_to_be_wrong_is_named() {
        let failure = |report: Report| report.check("cpu").expect_err("must fail").to_string();
        assert!(
            failure(report("workgroup", &[("camera", 7, "true")])).contains("ran on workgroup")
        );
        assert!(failure(report("cpu", &[])).contains("no views"));
        assert!(failure(report("cpu", &[("camera", 7, "false")])).contains("camera differs"));
        assert!(failure(report("cpu", &[("camera", 7, "null")])).contains("not verified"));
        assert!(failure(report("cpu", &[("camera", 0, "true")])).contains("nothing is visible"));
    }

    #[test]
    fn other_counts_or_views_are_a_difference() {
        let reference = report("cpu", &[("camera", 7, "true")]);
        for other in [
            report("subgroup", &[("camera", 8, "true")]),
            report("subgroup", &[("light", 7, "true")]),
            report("subgroup", &[("camera", 7, "true"), ("light", 0, "true")]),
        ] {
            assert!(reference.same_visible(&other).is_err());
        }
    }

    #[test]
    fn output_without_a_report_is_an_error() {
        assert!(Report::from_output("\n\n").is_err());
        let error = Report::from_output("fine so far\nthe end")
            .expect_err("must fail")
            .to_string();
        assert!(error.contains("the end"), "{error}");
    }
}
