// The history: decisions with their dates, deciders, reasons and outcomes, and the way to the run.

import { BASE, save } from "./server.js";
import { deciders, el, span, time } from "./element.js";
import { previews } from "./previews.js";
import { showRun } from "./run.js";

const $ = (id) => document.getElementById(id);
const DAY = 86_400_000;

/** The state of a decided ask: a word and its style. */
function standing(ask) {
  const approved = ask.decision && ask.decision.verdict !== "deny";
  switch (ask.state) {
    case "pending": return ["pending", "warn"];
    case "decided": return approved ? ["approved", "warn"] : ["denied", "bad"];
    case "claimed": return ["running", "warn"];
    case "executed": if (ask.outcome?.as_approved === false) return ["ran with other arguments", "bad"];
      return ask.outcome?.word === "returned" ? ["ran", "good"] : ["failed", "bad"];
    case "unknown": return ["may have run", "bad"];
    case "released": return ["asked again", "warn"];
    case "closed": if (ask.outcome?.word === "ran_unapproved") return ["ran without approval", "bad"];
      return approved ? ["did not run", "bad"] : ["denied", "bad"];
    case "cancelled": return ["withdrawn", ""];
    default: return [ask.state, ""];
  }
}

/** @param host `api`, `me` */
export function past(host) {
  let next = null;
  let shown = 0;
  // The entries on the page: an entry that says the same after a refresh stays as it is, with what a person has opened in it.
  let entries = new Map();

  function item(ask) {
    const [word, look] = standing(ask);
    const { decision } = ask;
    const told = [];
    const line = (...children) => told.push(el("p", { class: "told" }, ...children));
    if (decision) line(`${decision.past} ${deciders(decision.by)}, ${time(decision.at)}`, decision.message ? [": ", el("q", {}, decision.message)] : null);
    else if (ask.withdrawn_by) line(`withdrawn by ${ask.withdrawn_by}, ${time(ask.changed_at)}`);
    else if (ask.state === "expired") line(`expired without a decision, ${time(ask.expires_at)}`);
    if (ask.state === "decided" && word === "approved") line("approved, not run yet");
    if (ask.outcome?.word === "ran_unapproved") line("The agent ran it although no one had approved it, ", time(ask.changed_at), ask.outcome.as_asked === false ? ", and not as it was asked about" : null);
    if (ask.outcome?.text !== undefined) line("The agent was told: ", el("q", {}, ask.outcome.text));
    const why = ask.view.questions.map((it) => `${it.asked_by}: ${it.reason}`).join(" · ");
    if (why) line("Asked by ", why);
    const shown = ask.view.previews;
    if (shown.length > 0) told.push(el("details", { class: "told" }, el("summary", {}, "What it would do, as it was shown"), previews(shown)));
    const run = el("button", { type: "button", class: "link", on: { click: () => showRun(ask.run, host, item) } }, "Run");
    line(`${ask.agent ? `Agent ${ask.agent} · ` : ""}${ask.wanted_by ? `wanted by ${ask.wanted_by} · ` : ""}asked ${time(ask.parked_at)} · `, run);
    const asked = ask.ran && el("span", { class: "told text" }, "asked for ", ask.view.headline);
    return el("li", { "data-ask": ask.id }, el("span", { class: `chip ${look}` }, word),
      el("span", { class: "text" }, (ask.ran ?? ask.view).headline), asked, told);
  }

  function query() {
    const wanted = new URLSearchParams();
    const put = (name, value) => value !== "" && !Number.isNaN(value) && wanted.set(name, value);
    const day = (id, more) => ($(id).value ? new Date(`${$(id).value}T00:00`).getTime() + more : "");
    put("q", $("past-q").value.trim());
    put("who", $("past-who").value.trim());
    put("answer", $("past-answer").value);
    put("from", day("past-from", 0));
    put("to", day("past-to", DAY));
    return wanted;
  }

  async function look() {
    const wanted = query();
    wanted.set("limit", Math.min(500, Math.max(50, shown)));
    const reply = await host.api(`/api/history?${wanted}`);
    if (reply.status !== 200) return reply;
    const before = entries;
    entries = new Map();
    const now = reply.body.asks.map((ask) => entry(ask, before));
    for (const it of [...$("history").children]) if (!now.includes(it)) it.remove();
    now.forEach((it, place) => {
      const there = $("history").children[place];
      if (there !== it) $("history").insertBefore(it, there ?? null);
    });
    took(reply.body);
    return reply;
  }

  function entry(ask, before) {
    const said = JSON.stringify(ask);
    const old = before?.get(ask.id);
    const it = old?.said === said ? old.it : item(ask);
    entries.set(ask.id, { said, it });
    return it;
  }

  function took({ next: place, matches, older }) {
    next = place;
    shown = $("history").childElementCount;
    $("no-history").hidden = shown > 0;
    $("past-more").hidden = next === null;
    $("past-more").textContent = `Show more (${matches - shown} not shown${older ? ", and older ones in the export" : ""})`;
  }

  async function more() {
    const wanted = query();
    wanted.set("after", next);
    const { status, body } = await host.api(`/api/history?${wanted}`);
    if (status !== 200) return;
    $("history").append(...body.asks.map((ask) => entry(ask)));
    took(body);
  }

  async function count() {
    const { status, body } = await host.api("/api/numbers?days=7");
    if (status !== 200) return;
    const tile = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
    const took = (at) => (at === null ? "–" : span(at));
    $("numbers").replaceChildren(
      tile("Pending", String(body.waiting)),
      tile("Oldest", took(body.oldest_ms)),
      tile("Decided, 7 d", String(body.decided)),
      tile("Decision, p50", took(body.p50_ms)),
      tile("Decision, p95", took(body.p95_ms)),
      tile("Denied", body.denied_per_mille === null ? "–" : `${(body.denied_per_mille / 10).toFixed(1)} %`),
      tile("Expired", String(body.expired)));
  }

  async function verify() {
    $("audited").textContent = "Verifying …";
    const { status, body } = await host.api("/api/verify", {});
    if (status !== 200) $("audited").textContent = body?.message ?? "The server cannot be reached.";
    else if (body.ok) $("audited").textContent = `The log is intact: ${body.entries} entries of ${body.runs} runs match the store.${unapproved(body)}`;
    else $("audited").textContent = `The log is broken in run ${body.run}${body.seq === null ? "" : ` at entry ${body.seq}`}: ${body.problem}`;
  }

  const unapproved = ({ ran_unapproved: calls }) => (calls > 0 ? ` It has ${calls === 1 ? "one call" : `${calls} calls`} that ran without approval.` : "");

  let timer;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(look, 250);
  };
  $("past-tools").addEventListener("submit", (event) => event.preventDefault());
  $("past-tools").addEventListener("input", soon);
  $("past-more").addEventListener("click", more);
  $("verify").addEventListener("click", verify);
  $("export").href = `${BASE}/api/export`;
  $("export").addEventListener("click", (event) => {
    if (!host.bySecret()) return;
    event.preventDefault();
    save("/api/export", "countersign.jsonl").then((saved) => {
      if (!saved) $("audited").textContent = "The log cannot be loaded.";
    });
  });
  return { look: async () => { await Promise.all([look(), count()]); }, item };
}
