// The inbox: the principal, the pending calls and the history, kept up to date.

import { arming } from "./arming.js";
import { MANY } from "./bulk.js";
import { drafts } from "./drafts.js";
import { deciders, el, time } from "./element.js";
import { keys } from "./keys.js";
import { decided, list } from "./list.js";
import { past } from "./past.js";
import * as place from "./place.js";
import { pulse } from "./pulse.js";
import { BASE, VERSION, exchange, request } from "./server.js";

const $ = (id) => document.getElementById(id);
let me = null;
let ahead = 0;
let source = null;
/** The reasons why no decision is possible: the server cannot be reached, or its store cannot. */
const away = { server: false, store: false };

const early = () => {
  $("early").textContent = "";
  $("early").textContent = "That was less than a second after the page had changed there, and did not count. Press again.";
};
const hand = arming(".card button, .bulk button", early);

const cards = list({
  api,
  decide,
  say,
  kept,
  me: () => me,
  now: () => Date.now() + ahead,
  drafts: () => drafts(me),
  unsettle: hand.unsettle,
  early,
  whole: async (id) => {
    const { status, body } = await api(`/api/asks/${id}`);
    return status === 200 ? body : null;
  },
});

/** Sends a request. The page shows that the server cannot be reached, has another version, or that the login has expired. */
async function api(path, body) {
  const reply = await request(path, body);
  isAway("server", reply.status === 0);
  if (reply.status === 401) showLogin(reply.body?.message);
  if (reply.status === 412) otherVersion();
  return reply;
}

/** The server has another version: the page reloads itself, but only once, as servers of both versions may be running. */
function otherVersion() {
  $("other").hidden = false;
  const tried = "inbox-loaded-again";
  try {
    if (sessionStorage.getItem(tried) === VERSION) return;
    sessionStorage.setItem(tried, VERSION);
    location.reload();
  } catch {
    // A browser without storage has a button.
  }
}

function isAway(what, so) {
  away[what] = so;
  const any = away.server || away.store;
  $("away").hidden = !any;
  $("live").classList.toggle("off", any);
  $("live").textContent = any ? "Offline" : me && "Live";
}

/** Shows a notice above the inbox. One with `seen` stays until it is dismissed, and `seen` is called then. */
function say(kind, words, seen) {
  const notice = el("div", { class: `notice ${kind}`, role: kind === "good" ? "status" : "alert", "data-kept": Boolean(seen) }, el("div", {}, words));
  const remove = () => {
    // The controls below it have moved.
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

/** Says how a request was decided that was being answered here. A draft stays visible until the notice is dismissed. */
function kept(key, tool, why) {
  const mine = drafts(me);
  const draft = mine.get(key);
  const written = draft?.text && [el("p", {}, "What you had written:"), el("pre", { class: "text" }, draft.text)];
  say("warn", [el("p", {}, el("strong", {}, tool), `: ${why}`), written], written ? () => mine.drop(key) : undefined);
}

/** Finds the drafts about requests that were decided meanwhile. */
async function keptBefore() {
  for (const { key, draft } of drafts(me).all()) {
    if (key === MANY || cards.has(key)) continue;
    const { status, body } = await api(`/api/asks/${draft.id}`);
    if (status === 404 || (status === 200 && !draft.text)) drafts(me).drop(key);
    else if (status === 200 && body.state !== "pending") kept(key, draft.tool, `${decided(body)}.`);
  }
}

/**
 * Sends an answer for each request of a card, bound to its own fingerprint. Returns a problem to show beside the field;
 * all other results are notices.
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
      kept(it.key, tool, `already decided ${deciders(by)}: ${past}, ${time(at)}. Your click changed nothing.`);
      cards.settled(it, id);
    } else if (status === 410) {
      kept(it.key, tool, reply.message);
      cards.settled(it, id);
    } else if (status === 0) {
      problem = "The server cannot be reached. It is not known whether this was decided: look again when the server is back.";
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

const history = past({ api, bySecret: () => bySecret });
let view = "pending";

function show(which) {
  view = which;
  for (const [id, name] of [["inbox", "pending"], ["past", "past"]]) $(id).hidden = view !== name;
  for (const name of ["pending", "past"]) $(`tab-${name}`).setAttribute("aria-pressed", String(view === name));
  $("bulk").hidden = true;
  hand.unsettle();
  if (view === "pending") cards.chose();
  refresh();
}

let refreshing = null;
let again = false;

/** Reads everything again. Of several calls during one reading, one causes another reading. */
function refresh() {
  if (refreshing) {
    again = true;
    return refreshing;
  }
  refreshing = (async () => {
    const [waiting] = await Promise.all([cards.look(), view === "past" && history.look()]);
    if (me && waiting.status === 200 && waiting.body.me !== me) {
      // Another tab has logged in: this one shows the new name.
      me = waiting.body.me;
      $("name").textContent = me;
      say("warn", `You are now logged in as ${me}, by a login outside of this page.`);
    }
    if (me && waiting.status === 200) {
      ahead = waiting.body.now - Date.now();
      isAway("store", false);
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

/** Listens for changes. The browser reconnects by itself, and the page then reads the changes that it has missed. */
function listen() {
  source?.close();
  source = new EventSource(`${BASE}/api/changes`);
  source.onopen = refresh;
  source.onmessage = refresh;
  source.onerror = refresh;
}

let login = null;
/** Whether one logs in here, with the secret of the inbox. */
let bySecret = false;

/** The login has expired: drafts stay in this browser. */
function showLogin(why) {
  me = null;
  source?.close();
  cards.clear();
  $("notices").replaceChildren();
  $("bulk").hidden = $("me").hidden = $("inbox").hidden = $("past").hidden = $("tabs").hidden = true;
  $("live").textContent = "";
  $("login-why").textContent = why ?? "";
  $("login-form").hidden = !bySecret;
  $("login-link").hidden = !login;
  if (login) $("login-link").href = login;
  $("login").hidden = false;
}

/** Logs in with the secret. One that is wrong, such as in a link from another person, leaves a session as it is. */
async function enter(secret) {
  const problem = await exchange(secret);
  await begin();
  if (!problem) return;
  if (me) say("bad", problem);
  else $("login-why").textContent = problem;
}

/** Shows the ask that the address names. */
async function showAsk() {
  const id = place.ask();
  if (id === null || !me) return;
  if (view !== "pending") show("pending");
  const other = await cards.find(id);
  if (other === null) return;
  const why = other.body?.state ? `${decided(other.body)}.` : (other.body?.message ?? "The server cannot be reached.");
  say("warn", `The request of this address: ${why}`);
}

async function begin() {
  const { status, body } = await api("/api/me");
  if (status === 0 || status >= 500) return void setTimeout(begin, 2000);
  $("loading").hidden = true;
  if (status !== 200) return showLogin(body?.message);
  ({ login, secret: bySecret } = body);
  if (!body.name) {
    showLogin(bySecret ? "Open the address that the inbox has shown, or enter its secret." : "");
    if (login) location.assign(login);
    return;
  }
  me = body.name;
  $("name").textContent = me;
  $("name-note").textContent = body.note ?? "";
  $("links").replaceChildren(...body.links.map(({ label, url }) => el("a", { href: url }, label)),
    ...(body.logout ? [el("a", { href: body.logout }, "Log out")] : []));
  $("audit").hidden = !body.audits;
  $("login").hidden = true;
  $("login-why").textContent = "";
  $("me").hidden = $("tabs").hidden = false;
  isAway("server", false);
  if (body.version !== VERSION) otherVersion();
  else sessionStorage.removeItem("inbox-loaded-again");
  listen();
  show(view);
  await refresh();
  await keptBefore();
  await showAsk();
}

$("tab-pending").addEventListener("click", () => show("pending"));
$("tab-past").addEventListener("click", () => show("past"));
$("other-reload").addEventListener("click", () => location.reload());
$("login-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = $("login-secret");
  enter(field.value.trim());
  field.value = "";
});
addEventListener("hashchange", () => {
  const secret = place.secret();
  if (secret === null) showAsk();
  else enter(secret);
});
keys({
  ...cards.keys,
  /** A list behind another view takes no keys. */
  isShown: () => !$("inbox").hidden,
  search: () => $(view === "past" ? "past-q" : "q").focus(),
});
setInterval(cards.tick, 1000);
// In case an event is lost.
setInterval(() => me && refresh(), 10000);
document.addEventListener("visibilitychange", () => !document.hidden && me && refresh());
pulse(`${BASE}/api/alive`, (there) => {
  const back = there && away.server;
  isAway("server", !there);
  if (!me || !(back || away.store)) return;
  refresh();
  if (source?.readyState === EventSource.CLOSED) listen();
});
const given = place.secret();
if (given === null) begin();
else enter(given);
