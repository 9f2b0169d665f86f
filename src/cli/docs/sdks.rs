//! How a case fares in the SDKs, where it was measured.

use std::fmt::Write as _;

use mcp_conformance::report::sdk::Sdk;

/// The paragraph about the SDKs with which every server violates a case; empty if there are none.
pub(super) fn paragraph(case: &str) -> String {
    let deviating: Vec<&Sdk> = Sdk::all().iter().filter(|sdk| sdk.deviates_from(case)).collect();
    if deviating.is_empty() {
        return String::new();
    }
    let mut text = "**In the SDKs.** Servers on these violate it whatever their author writes:\n\n".to_owned();
    for sdk in deviating {
        let Sdk { name, measured, remedy, .. } = sdk;
        let _ = writeln!(text, "- {name} (measured on {measured}). To get rid of it, {remedy}.");
        for upstream in sdk.causes_of(case) {
            let _ = writeln!(text, "  {upstream}");
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_is_named_with_what_to_do() {
        let text = paragraph("jsonrpc/params-array");
        assert!(text.contains("Python SDK") && text.contains("--accept sdk"), "{text}");
        assert_eq!(paragraph("stdio/no-such-case"), "");
    }
}
