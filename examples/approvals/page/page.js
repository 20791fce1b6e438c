// The inbox: who decides, what is open and what was decided, kept up to date.

import { drafts } from "./drafts.js";
import { el, names, time } from "./element.js";
import { decided, list } from "./list.js";
import { pulse } from "./pulse.js";
import { arming } from "./arming.js";

const $ = (id) => document.getElementById(id);
let me = null;
let ahead = 0;
let source = null;
/** Why no decision is possible here: the server is not reached, or it does not reach its store. */
const away = { server: false, store: false };

const hand = arming(".card button", () => {
  $("early").textContent = "";
  $("early").textContent = "That was less than a second after the page had changed there, and did not count. Press again.";
});

const cards = list({
  api,
  decide,
  kept,
  me: () => me,
  now: () => Date.now() + ahead,
  drafts: () => drafts(me),
  unsettle: hand.unsettle,
  whole: async (id) => {
    const { status, body } = await api(`/api/asks/${id}`);
    return status === 200 ? body : null;
  },
});

/** Asks the server. A server that is away, or a login that is over, shows in the page. */
async function api(path, body) {
  const post = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    const reply = await fetch(path, body === undefined ? { signal: AbortSignal.timeout(20000) } : post);
    const json = await reply.json();
    isAway("server", false);
    if (reply.status === 401) showLogin();
    return { status: reply.status, body: json };
  } catch {
    isAway("server", true);
    return { status: 0, body: null };
  }
}

function isAway(what, so) {
  away[what] = so;
  const any = away.server || away.store;
  $("away").hidden = !any;
  $("live").classList.toggle("off", any);
  $("live").textContent = any ? "Offline" : me && "Live";
}

/** Says something above the inbox. What has to be read stays until it is dismissed, and then `seen` is called. */
function say(kind, words, seen) {
  const notice = el("div", { class: `notice ${kind}`, role: kind === "good" ? "status" : "alert", "data-kept": Boolean(seen) }, el("div", {}, words));
  const remove = () => {
    // What was below it has not been under the hand before.
    hand.unsettle(notice.getBoundingClientRect());
    notice.remove();
  };
  const dismiss = () => {
    remove();
    seen?.();
  };
  notice.append(el("button", { type: "button", class: "quiet", on: { click: dismiss } }, "Dismiss"));
  $("notices").prepend(notice);
  const passing = [...$("notices").querySelectorAll(".notice:not([data-kept])")];
  for (const old of passing.slice(4)) old.remove();
  if (kind === "good") setTimeout(remove, 8000);
}

/** Says how a request was decided that was being answered here. What was written about it stays until that is dismissed. */
function kept(key, tool, why) {
  const mine = drafts(me);
  const draft = mine.get(key);
  const written = draft?.text && [el("p", {}, "What you had written:"), el("pre", { class: "text" }, draft.text)];
  say("warn", [el("p", {}, el("strong", {}, tool), `: ${why}`), written], written ? () => mine.drop(key) : undefined);
}

/** Looks for what was written about requests that were decided meanwhile. */
async function keptBefore() {
  for (const { key, draft } of drafts(me).all()) {
    if (cards.has(key)) continue;
    const { status, body } = await api(`/api/asks/${draft.id}`);
    if (status === 404 || (status === 200 && !draft.text)) drafts(me).drop(key);
    else if (status === 200 && body.state !== "pending") kept(key, draft.tool, `${decided(body)}.`);
  }
}

/**
 * Sends an answer for each request of a card, bound to its own fingerprint. Gives a problem to show beside what was typed;
 * everything else is said above.
 */
async function decide(it, answer) {
  const { tool } = it.ask().view;
  const told = new Map();
  let problem = null;
  for (const { id, fingerprint } of [...it.members()]) {
    const { status, body: reply } = await api(`/api/asks/${id}/decision`, { ...answer, fingerprint, by: me });
    if (status === 200 && reply.result === "recorded") {
      drafts(me).drop(it.key);
      it.close();
      say("good", `${tool}: your approval counts, ${reply.approvals} of ${reply.needed}.`);
    } else if (status === 200) {
      const word = answer.verdict === "deny" ? "denied" : "approved";
      told.set(word, (told.get(word) ?? 0) + 1);
      drafts(me).drop(it.key);
      cards.settled(it, id);
    } else if (status === 409) {
      const { by, past, at } = reply.winner;
      kept(it.key, tool, `already decided by ${names(by)}: ${past}, ${time(at)}. Your click changed nothing.`);
      cards.settled(it, id);
    } else if (status === 410) {
      kept(it.key, tool, reply.message);
      cards.settled(it, id);
    } else if (status === 0) {
      problem = "The server cannot be reached. Nobody knows yet whether this was decided: look again when it is back.";
      break;
    } else {
      problem = reply.message;
      break;
    }
  }
  for (const [word, many] of told) say("good", `${tool}: ${many > 1 ? `${many} ` : ""}${word}.`);
  if (away.server) return problem;
  refresh();
  return problem;
}

/** Where a decided ask stands: a word, and how it looks. */
function standing(ask) {
  const approved = ask.decision && ask.decision.verdict !== "deny";
  switch (ask.state) {
    case "decided": return approved ? ["approved", "warn"] : ["denied", "bad"];
    case "claimed": return ["running", "warn"];
    case "executed": return ask.outcome?.word === "returned" ? ["ran", "good"] : ["failed", "bad"];
    case "unknown": return ["may have run", "bad"];
    case "released": return ["asked again", "warn"];
    case "closed": return approved ? ["did not run", "bad"] : ["denied", "bad"];
    case "cancelled": return ["withdrawn", ""];
    default: return [ask.state, ""];
  }
}

function historyItem(ask) {
  const [word, look] = standing(ask);
  const { decision } = ask;
  const told = [];
  if (decision) told.push(el("p", { class: "told" }, `${decision.past} by ${names(decision.by)}, ${time(decision.at)}`,
    decision.message ? [": ", el("q", {}, decision.message)] : null));
  else if (ask.withdrawn_by) told.push(el("p", { class: "told" }, `withdrawn by ${ask.withdrawn_by}, ${time(ask.changed_at)}`));
  else if (ask.state === "expired") told.push(el("p", { class: "told" }, `nobody decided until ${time(ask.expires_at)}`));
  if (ask.state === "decided" && word === "approved") told.push(el("p", { class: "told" }, "waits for a worker"));
  if (ask.outcome) told.push(el("p", { class: "told" }, "The agent was told: ", el("q", {}, ask.outcome.text)));
  const asked = ask.ran && el("span", { class: "told text" }, "asked for ", ask.view.headline);
  return el("li", { "data-ask": ask.id }, el("span", { class: `chip ${look}` }, word),
    el("span", { class: "text" }, (ask.ran ?? ask.view).headline), asked, told);
}

let refreshing = null;
let again = false;

/** Looks at everything anew. Of many calls at once, one more follows. */
function refresh() {
  if (refreshing) {
    again = true;
    return refreshing;
  }
  refreshing = (async () => {
    const [waiting, history] = await Promise.all([cards.look(), api("/api/history")]);
    if (me && waiting.status === 200 && waiting.body.me !== me) {
      // In another tab: this one shows whom it decides as.
      me = waiting.body.me;
      $("name").textContent = me;
      say("warn", `You are ${me} now: somebody has logged in beside this page.`);
    }
    if (me && waiting.status === 200 && history.status === 200) {
      ahead = waiting.body.now - Date.now();
      isAway("store", false);
      $("history").replaceChildren(...history.body.asks.map(historyItem));
      $("no-history").hidden = history.body.asks.length > 0;
    } else if (waiting.status >= 500) {
      isAway("store", true);
    }
  })().finally(() => {
    refreshing = null;
    if (again) {
      again = false;
      refresh();
    }
  });
  return refreshing;
}

/** Listens for changes. The browser reconnects by itself, and what was missed is looked at then. */
function listen() {
  source?.close();
  source = new EventSource("/api/changes");
  source.onopen = refresh;
  source.onmessage = refresh;
  source.onerror = refresh;
}

function showLogin() {
  me = null;
  source?.close();
  cards.clear();
  $("notices").replaceChildren();
  $("me").hidden = $("inbox").hidden = true;
  $("live").textContent = "";
  $("login").hidden = false;
  $("login-name").focus();
}

async function login(name) {
  const { status, body } = await api("/api/login", { name });
  $("login-problem").textContent = status === 200 ? "" : body?.message ?? "The server cannot be reached.";
  if (status === 200) begin();
}

async function begin() {
  const { status, body } = await api("/api/me");
  if (status !== 200) return void setTimeout(begin, 2000);
  if (!body.name) return showLogin();
  me = body.name;
  $("name").textContent = me;
  $("prompt").value ||= body.prompt;
  $("login").hidden = true;
  $("me").hidden = $("inbox").hidden = false;
  isAway("server", false);
  listen();
  await refresh();
  await keptBefore();
}

async function start(prompt) {
  const { status, body } = await api("/api/runs", prompt === undefined ? {} : { prompt });
  const fine = status === 201;
  $("demo-problem").textContent = fine ? "" : body?.message ?? "The server cannot be reached.";
  if (fine && !body.waits) say("good", "The run is over, and has asked nobody.");
  if (fine) refresh();
}

$("login-form").addEventListener("submit", (event) => {
  event.preventDefault();
  login($("login-name").value.trim());
});
for (const name of ["ann", "bob", "carol"]) {
  $("picks").append(el("button", { type: "button", on: { click: () => login(name) } }, name));
}
$("logout").addEventListener("click", async () => {
  await api("/api/logout", {});
  showLogin();
});
$("start").addEventListener("click", () => start());
$("demo-form").addEventListener("submit", (event) => {
  event.preventDefault();
  start($("prompt").value);
});
setInterval(cards.tick, 1000);
// Should ever an event get lost.
setInterval(() => me && refresh(), 10000);
document.addEventListener("visibilitychange", () => !document.hidden && me && refresh());
pulse("/api/alive", (there) => {
  const back = there && away.server;
  isAway("server", !there);
  if (!me || !(back || away.store)) return;
  refresh();
  if (source?.readyState === EventSource.CLOSED) listen();
});
begin();
