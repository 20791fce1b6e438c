// The conversation around a call: the messages of its run.

import { el } from "./element.js";

const WHO = { user: "Person", agent: "Agent", system: "Instructions" };

/** The parts of a conversation, or why there are none. */
export function conversation(told) {
  if (!told) return el("p", { class: "soft" }, "There is no conversation of this run in the store.");
  if (told.why) return el("p", { class: "soft" }, told.why);
  const parts = told.parts.map((part) => {
    const who = part.from === "call" ? "Agent calls" : part.from === "tool" ? `${part.tool} ${part.how}` : WHO[part.from];
    return el("li", { class: `said ${part.from}` }, el("span", { class: "who" }, who), el("span", { class: "text" }, part.text));
  });
  return el("div", {}, told.left_out > 0 && el("p", { class: "soft" }, `${told.left_out} earlier parts are not shown.`), el("ol", { class: "talk" }, parts));
}

/** Shows a run: its conversation and its calls. */
export async function showRun(run, host, item) {
  const dialog = document.getElementById("run-dialog");
  const close = el("form", { method: "dialog" }, el("button", { class: "primary" }, "Close"));
  dialog.replaceChildren(el("h2", { id: "run-title" }, `Run ${run}`), el("p", { class: "soft" }, "Loading …"), close);
  dialog.showModal();
  const { status, body } = await host.api(`/api/runs/${encodeURIComponent(run)}`);
  const inside = status === 200
    ? [conversation(body.conversation), el("h3", {}, "Its calls"), el("ol", { class: "history" }, body.asks.map(item))]
    : [el("p", { class: "problem" }, body?.message ?? "The server cannot be reached.")];
  dialog.replaceChildren(el("h2", { id: "run-title" }, `Run ${run}`), ...inside, close);
}
