// The inbox: fetches what waits and what was decided, keeps it up to date, and sends decisions.

import { card, el, names, time } from "./card.js";

const $ = (id) => document.getElementById(id);
const cards = new Map();
/** Asks that are known to be decided, however old the next answer of the server is. */
const gone = new Set();
let me = null;
let ahead = 0;
let source = null;

/** What cards need of the page. */
const host = {
  me: () => me,
  now: () => Date.now() + ahead,
  args: async (id) => (await api(`/api/asks/${id}`)).body?.args ?? null,
  decide,
};

/** Asks the server. A server that is away, or a login that is over, shows in the page. */
async function api(path, body) {
  const post = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    const reply = await fetch(path, body === undefined ? {} : post);
    const json = await reply.json();
    isAway(false);
    if (reply.status === 401) showLogin();
    return { status: reply.status, body: json };
  } catch {
    isAway(true);
    return { status: 0, body: null };
  }
}

function isAway(away) {
  $("away").hidden = !away;
  $("live").classList.toggle("off", away);
  $("live").textContent = away ? "Offline" : me && "Live";
}

/** Says something above the inbox. What has to be read stays until it is dismissed. */
function say(kind, ...words) {
  const notice = el("div", { class: `notice ${kind}`, role: kind === "good" ? "status" : "alert" }, el("p", {}, words));
  notice.append(el("button", { type: "button", class: "quiet", on: { click: () => notice.remove() } }, "Dismiss"));
  $("notices").prepend(notice);
  while ($("notices").children.length > 4) $("notices").lastElementChild.remove();
  if (kind === "good") setTimeout(() => notice.remove(), 8000);
}

/** Sends a decision. Gives a problem to show beside what was typed; everything else is said above. */
async function decide(ask, body) {
  const { status, body: reply } = await api(`/api/asks/${ask.id}/decision`, { ...body, by: me });
  const { tool } = ask.view;
  if (status === 200 && reply.result === "recorded") {
    say("good", `${tool}: your approval counts, ${reply.approvals} of ${reply.needed}.`);
  } else if (status === 200) {
    say("good", `${tool}: ${body.verdict === "deny" ? "denied" : "approved"}.`);
    remove(ask.id);
  } else if (status === 409) {
    const { by, past, at } = reply.winner;
    say("warn", el("strong", {}, tool), `: already decided by ${names(by)}: ${past}, ${time(at)}. Your click changed nothing.`);
    remove(ask.id);
  } else if (status === 410) {
    say("warn", el("strong", {}, tool), `: ${reply.message}`);
    remove(ask.id);
  } else if (status === 0) {
    return "The server cannot be reached. Nobody knows yet whether this was decided: look again when it is back.";
  } else {
    if (reply.error === "somebody_else") refresh();
    return reply.message;
  }
  refresh();
  return null;
}

/** Takes a card away, and the focus to the next one. */
function remove(id) {
  const it = cards.get(id);
  gone.add(id);
  if (!it) return;
  cards.delete(id);
  const next = it.root.nextElementSibling ?? it.root.previousElementSibling;
  const focused = it.root.contains(document.activeElement);
  it.root.remove();
  if (focused) (next?.querySelector("h3") ?? $("waiting")).focus();
  count();
}

function count() {
  $("count").textContent = cards.size || "";
  $("empty").hidden = cards.size > 0;
  document.title = cards.size ? `(${cards.size}) Approvals` : "Approvals";
}

function showWaiting(asks) {
  const open = new Map(asks.filter((ask) => !gone.has(ask.id)).map((ask) => [ask.id, ask]));
  for (const [id, it] of cards) {
    // What is just being decided here says itself what came of it.
    if (open.has(id) || it.root.hasAttribute("aria-busy")) continue;
    // Somebody may be in the middle of it.
    if (it.root.contains(document.activeElement) || it.root.querySelector(".more:not([hidden])")) tellWhy(id, it);
    remove(id);
  }
  let place = null;
  for (const ask of open.values()) {
    let it = cards.get(ask.id);
    if (it) it.update(ask);
    else cards.set(ask.id, it = card(ask, host));
    const next = place ? place.nextElementSibling : $("cards").firstElementChild;
    if (next !== it.root) $("cards").insertBefore(it.root, next);
    place = it.root;
  }
  count();
}

/** What was being looked at is decided: by whom? */
async function tellWhy(id, it) {
  const { body } = await api(`/api/asks/${id}`);
  const decision = body?.decision;
  const why = decision ? `decided by ${names(decision.by)}: ${decision.past}, ${time(decision.at)}` : `it is ${body?.state ?? "gone"}`;
  say("warn", el("strong", {}, it.title.textContent), `: ${why}, while you were looking at it.`);
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
    const [waiting, history] = await Promise.all([api("/api/asks"), api("/api/history")]);
    if (me && waiting.status === 200 && waiting.body.me !== me) {
      // In another tab: this one shows whom it decides as.
      me = waiting.body.me;
      $("name").textContent = me;
      say("warn", `You are ${me} now: somebody has logged in beside this page.`);
    }
    if (me && waiting.status === 200 && history.status === 200) {
      ahead = waiting.body.now - Date.now();
      showWaiting(waiting.body.asks);
      $("more").hidden = waiting.body.asks.length < waiting.body.most;
      $("history").replaceChildren(...history.body.asks.map(historyItem));
      $("no-history").hidden = history.body.asks.length > 0;
    } else if (waiting.status >= 500) {
      isAway(true);
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
  for (const id of [...cards.keys()]) {
    cards.get(id).root.remove();
    cards.delete(id);
  }
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
  isAway(false);
  listen();
  await refresh();
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
setInterval(() => cards.forEach((it) => it.tick()), 1000);
// Should ever an event get lost, and while the server is away.
setInterval(() => me && refresh(), 10000);
document.addEventListener("visibilitychange", () => !document.hidden && me && refresh());
setInterval(() => {
  if (!me || $("away").hidden) return;
  refresh();
  if (source?.readyState === EventSource.CLOSED) listen();
}, 2000);
begin();
