//! A tool with previews of its own: a table of what it would pay, and a rate that changes by itself.

use countersign::decision::Preview;
use countersign::schemars::JsonSchema;
use countersign::toolset::{Tool, tool_fn};
use countersign::{RunContext, ToolError};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Month {
    month: String,
}

/// The invoices of a month: who is paid, and how much. No bank is behind this example.
fn invoices(month: &str) -> [[String; 3]; 3] {
    let paid = [("Ann\u{202e}", "1 200.00"), ("Ben & Sons", "80.50"), ("<b>Cleo</b>", "7.00")];
    paid.map(|(to, euros)| [to.to_owned(), euros.to_owned(), month.to_owned()])
}

/// The tool. Its calls always need an approval, and the preview shows the payees.
pub(crate) fn pay_invoices() -> Tool {
    tool_fn("pay_invoices", "Pays the invoices of a month", async |_: RunContext, args: Month| {
        Ok::<_, ToolError>(format!("paid {} invoices", invoices(&args.month).len()))
    })
    .requires_approval()
    .with_preview(async |_: RunContext, args: Month| {
        let rate = Preview::text("today's rate", "1 euro is 1.08 dollars\n").without_pin();
        let table = Preview::table("transfers", ["to", "euros", "month"], invoices(&args.month));
        Ok::<_, ToolError>(vec![table, rate])
    })
}
