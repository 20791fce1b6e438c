// The cards on the screen. A card keeps its place until it is decided, or until the person asks for the new ones: new
// requests are counted, and never inserted by themselves (rule S3).

import { STILL_MS } from "./arming.js";
import { bulk } from "./bulk.js";
import { card } from "./card.js";
import { deciders, el, time } from "./element.js";

/** How many entries are shown at first, and how many more at a time. */
const PAGE = 50;
/** How many entries the server gives at most. */
const MOST = 500;
/** The number of entries from which on they are shown as rows, unless the person has chosen. */
const ROWS = 25;
/** The fields by which the list is narrowed. */
const FILTERS = ["tool", "agent", "requester", "run"];
const ALL = { tool: "All tools", agent: "All agents", requester: "All requesters", run: "All runs" };

/** @param host the functions that cards need, and `api`, `say`, `unsettle`, `early` */
export function list(host) {
  const $ = (id) => document.getElementById(id);
  const root = $("cards");
  const cards = new Map();
  /** Requests that are known to be decided, in case the next response of the server is older. */
  const gone = new Set();
  /** The groups that are shown one by one. */
  const apart = new Set();
  let total = 0;
  let matches = 0;
  let newer = 0;
  let latest = null;
  let next = null;
  /** The last layout of the whole list: one that began earlier is outdated, and ends with this one. */
  let laying = null;
  /** Which cards that layout replaces. Until its response is there they stay, so the list is never empty in between. */
  let stale = null;

  /** The search, filters and order of the page, for the server. */
  function wanted() {
    const query = new URLSearchParams();
    if ($("q").value.trim()) query.set("q", $("q").value.trim());
    for (const name of FILTERS) if ($(name).value !== "*" && $(name).value !== "") query.set(name, $(name).value.slice(1));
    if ($("sort").value !== "due") query.set("sort", $("sort").value);
    if ($("by-run").checked) query.set("group", "run");
    return query;
  }

  async function page(limit, more = {}) {
    const query = wanted();
    query.set("limit", Math.min(limit, MOST));
    for (const [name, value] of Object.entries(more)) if (value !== null) query.set(name, value);
    const reply = await host.api(`/api/asks?${query}`);
    if (reply.status === 200) offer(reply.body.filters);
    return reply;
  }

  /** The values that the filters can have. A value that is chosen stays, also when it has no call any more. */
  function offer(filters) {
    for (const name of filters ? FILTERS : []) {
      const select = $(name);
      if (select === document.activeElement) continue;
      const chosen = select.value;
      const { values } = filters[name];
      const options = values.map(({ value, label, count: many }) => el("option", { value: `=${value}` }, `${label || "(unknown)"} (${many})`));
      if (chosen && chosen !== "*" && !values.some(({ value }) => `=${value}` === chosen)) options.push(el("option", { value: chosen }, `${chosen.slice(1)} (0)`));
      select.replaceChildren(el("option", { value: "*" }, ALL[name]), ...options);
      select.value = chosen || "*";
      select.hidden = values.length < 2 && select.value === "*";
    }
  }

  /** The list is beside the call in a wide window, and behind it in a narrow one: then one call is open at a time. */
  const wide = matchMedia("(min-width: 1100px)");
  const small = matchMedia("(max-width: 40rem)");
  const isAlone = () => wide.matches || small.matches;
  /** Whether calls are shown as rows, which open on demand. */
  const isCompact = () => isAlone() || $("compact").checked;
  /** Folds the others, where one call is open at a time. */
  const alone = (it) => {
    for (const other of isAlone() ? cards.values() : []) if (other !== it && other.isUnfolded()) other.unfold(false);
  };
  /** Opens a call, where the list is beside it. */
  const begin = () => {
    if (!wide.matches && !(small.matches && cards.size === 1)) return;
    const all = [...cards.values()];
    if (!all.some((it) => it.isUnfolded())) [...root.querySelectorAll("article")].map(cardOf).find(Boolean)?.unfold(true);
  };
  const close = (it) => {
    it.unfold(false);
    it.title.querySelector("button")?.focus({ preventScroll: true });
  };
  for (const query of [wide, small]) query.addEventListener("change", () => cards.size > 0 && renew());
  for (const event of ["scroll", "resize"]) addEventListener(event, () => cards.forEach((it) => it.look()), { capture: true, passive: true });
  /** The person's choice, stored in this browser. */
  const density = {
    get: () => { try { return localStorage.getItem("inbox-compact"); } catch { return null; } },
    put: (value) => { try { localStorage.setItem("inbox-compact", value); } catch { /* It is chosen again next time. */ } },
  };
  /** The fingerprints of calls whose whole text was opened. */
  const opened = new Set();

  /** The entries of a response, without those that were decided since. */
  function entries(body) {
    return body.asks.flatMap((ask) => {
      const open = [{ id: ask.id, fingerprint: ask.fingerprint }, ...ask.same].filter((one) => !gone.has(one.id));
      if (apart.has(ask.key)) return open.map((one) => ({ ...ask, ...one, key: one.id, group: ask.key, same: [] }));
      return open.length > 0 ? [{ ...ask, ...open[0], same: open.slice(1) }] : [];
    });
  }

  /** The requests that cannot be decided, below the cards, so that no button moves when one is found. */
  function refuse(found) {
    const ids = found.map(({ id }) => id).join();
    if ($("refused").dataset.ids === ids) return;
    $("refused").dataset.ids = ids;
    $("refused").replaceChildren(...found.map(({ id, why }) =>
      el("div", { class: "notice bad" }, el("p", {}, el("strong", {}, `Request ${id} cannot be decided. `), why))));
    $("refused").hidden = found.length === 0;
  }

  const shown = (which = () => true) => [...cards.values()].filter(which).reduce((sum, it) => sum + it.members().length, 0);

  function count() {
    const fresh = Math.max(0, newer - shown((it) => latest !== null && it.ask().parked_at > latest));
    const rest = Math.max(0, matches - shown() - fresh);
    $("count").textContent = total || "";
    document.title = total ? `(${total}) Approvals` : "Approvals";
    $("beside").hidden = !wide.matches || cards.size === 0 || [...cards.values()].some((it) => it.isUnfolded());
    $("empty").hidden = cards.size > 0 || total > 0 || !$("refused").hidden;
    const narrowed = [...wanted().keys()].some((name) => !["sort", "group"].includes(name));
    // An empty inbox has nothing to search. A field stays while a person is in it.
    $("tools").hidden = !$("empty").hidden && !narrowed && !$("tools").contains(document.activeElement);
    $("reset").hidden = !narrowed;
    $("matches").hidden = !narrowed;
    $("matches").textContent = `${matches} of ${total} pending calls match.`;
    $("new").hidden = fresh === 0;
    $("new").textContent = `${fresh} new: show`;
    $("more").hidden = rest === 0;
    $("more").textContent = `Show more (${rest} not shown)`;
  }

  function add(ask) {
    const it = card(ask, { ...host, split, opened, chose, alone, close, rows: isCompact() });
    cards.set(ask.key, it);
    root.append(it.root);
    return it;
  }

  /** Removes the placeholders of decided cards. */
  function tidy() {
    for (const place of root.querySelectorAll(".gone")) place.remove();
  }

  /** Shows everything again in the order of the server, on request or because nothing was shown. */
  function layOut() {
    const mine = page(stale ? PAGE : Math.max(PAGE, cards.size)).then((reply) => (mine === laying ? laidOut(reply) : (laying ?? reply)));
    laying = mine;
    return mine;
  }

  function laidOut(reply) {
    if (reply.status !== 200) return reply;
    const open = root.querySelector(".row-card.unfolded")?.dataset.ask;
    for (const it of stale ? [...cards.values()].filter(stale) : []) {
      cards.delete(it.key);
      it.root.remove();
    }
    if (stale) chose();
    stale = null;
    if (density.get() === null) $("compact").checked = reply.body.entries > ROWS;
    tidy();
    const found = entries(reply.body);
    const first = [];
    for (const ask of found) {
      let it = cards.get(ask.key);
      if (it && !it.isUsed() && ask.same.length + 1 > it.members().length) {
        it.root.remove();
        it = null;
      }
      if (it) it.update(ask);
      else first.push((it = add(ask)));
      root.append(it.root);
    }
    // Entries beyond the loaded ones are not shown.
    for (const it of cards.values()) if (!found.some((ask) => ask.key === it.key)) root.append(it.root);
    ({ total, matches, latest, next } = reply.body);
    newer = 0;
    headings();
    refuse(reply.body.refused);
    // A call that was open beside the list, or in place of it, stays open.
    if (open && isAlone()) cardOf(root.querySelector(`[data-ask="${CSS.escape(open)}"]`))?.unfold(true);
    count();
    begin();
    host.unsettle();
    return { ...reply, first };
  }

  async function showNew() {
    const { first } = await layOut();
    (first?.[0]?.title ?? $("waiting")).focus();
    host.unsettle();
  }

  /** Shows the ask with this id: opened, and with the focus. Returns null, or the server's answer about one that is not pending. */
  async function find(id) {
    // A list that is being replaced would take the ask away again.
    if (stale) await laying;
    const has = () => [...cards.values()].find((it) => it.members().some((one) => one.id === id));
    if (!has()) {
      const reply = await host.api(`/api/asks/${encodeURIComponent(id)}`);
      if (reply.status !== 200 || reply.body.state !== "pending") return reply;
      for (const name of FILTERS) $(name).value = "*";
      $("q").value = id;
      await layOut();
    }
    const it = has();
    if (!it) return { status: 0, body: null };
    await it.show();
    it.root.scrollIntoView({ block: "start" });
    (it.title.querySelector("button") ?? it.title).focus({ preventScroll: true });
    return null;
  }

  async function showMore() {
    const reply = await page(2 * PAGE, { after: next });
    if (reply.status !== 200) return;
    next = reply.body.next;
    const first = entries(reply.body).filter((ask) => !cards.has(ask.key)).map(add);
    headings();
    count();
    first[0]?.title.focus({ preventScroll: true });
  }

  /** Reads the list again, and updates the shown cards in their places. */
  async function look() {
    if (cards.size === 0 || stale) return layOut();
    const reply = await page(1, { since: latest });
    if (reply.status !== 200) return reply;
    ({ total, matches, newer } = reply.body);
    refuse(reply.body.refused);
    // A request that is being decided here shows its own result.
    const still = [...cards.values()].filter((it) => !it.isBusy());
    const known = still.flatMap((it) => it.members().map(({ id }) => [id, it.changedAt(id)]));
    for (let at = 0; at < known.length; at += MOST) {
      const part = known.slice(at, at + MOST);
      const { status, body } = await host.api("/api/states", { asks: Object.fromEntries(part) });
      if (status !== 200) break;
      for (const ask of body.changed) changed(ask);
    }
    count();
    return cards.size === 0 && total > 0 ? layOut() : reply;
  }

  /** An ask has changed: it has a new vote, was decided, or was changed outside of the ledger. */
  function changed(ask) {
    const it = [...cards.values()].find((it) => !it.isBusy() && it.members().some(({ id }) => id === ask.id));
    if (!it) return;
    if (ask.state === "pending") return void it.update({ ...ask, key: it.key, same: it.members().slice(1) });
    const refused = ask.error === "changed";
    if (!refused) gone.add(ask.id);
    const wasUsed = it.isUsed();
    if (!it.without(ask.id)) return void it.update(it.ask());
    const why = refused ? "it was changed outside of the ledger, and cannot be decided" : decided(ask);
    if (wasUsed) host.kept(it.key, it.name, `${why}, while you were looking at it.`);
    bury(it, why);
  }

  /** Replaces a card that another person has decided by a placeholder, as the next card would slide under the pointer. */
  function bury(it, why) {
    const { top, height } = it.root.getBoundingClientRect();
    const focused = it.root.contains(document.activeElement);
    cards.delete(it.key);
    if (top >= window.innerHeight) return void it.root.remove();
    const clear = el("button", { type: "button", class: "quiet", on: { click: () => {
      tidy();
      $("waiting").focus();
    } } }, "Clear");
    const place = el("div", { class: "gone", tabindex: "-1" }, el("p", {}, el("strong", {}, it.name), `: ${why}.`), clear);
    it.root.replaceWith(place);
    place.style.minHeight = `${height}px`;
    if (focused) place.focus({ preventScroll: true });
    chose();
  }

  /** Removes a card that was decided here, and focuses the next one. */
  function remove(it) {
    const focused = it.root.contains(document.activeElement);
    tidy();
    const next = beside(it.root, 1) ?? beside(it.root, -1);
    cards.delete(it.key);
    it.root.remove();
    headings();
    if (isAlone() && it.isUnfolded() && next) cardOf(next)?.unfold(true);
    if (focused) (next?.querySelector("h3 button, h3") ?? $("waiting")).focus();
    host.unsettle();
    chose();
    count();
  }

  /** One request of a card is decided here. */
  function settled(it, id, isQuiet = false) {
    if (isQuiet) host.drafts().drop(it.key);
    gone.add(id);
    total = Math.max(0, total - 1);
    // Otherwise one more would seem to be left out until the server is asked again, and be loaded.
    matches = Math.max(0, matches - 1);
    if (it.without(id)) remove(it);
    else it.update(it.ask());
    count();
  }

  /** Shows equal calls one by one, each at once behind the one before. */
  function split(it) {
    apart.add(it.key);
    let place = it.root;
    const ask = it.ask();
    cards.delete(it.key);
    for (const one of it.members()) {
      const made = add({ ...ask, ...one, key: one.id, same: [] });
      place.after(made.root);
      place = made.root;
    }
    const next = beside(it.root, 1);
    it.root.remove();
    next?.querySelector("h3")?.focus({ preventScroll: true });
    count();
  }

  function clear() {
    for (const it of cards.values()) it.root.remove();
    cards.clear();
    tidy();
    [total, matches, newer, latest, next] = [0, 0, 0, null, null];
    [laying, stale] = [null, null];
    refuse([]);
    count();
  }

  /** The next card, or the one before. */
  function beside(from, step) {
    let at = from;
    do at = step > 0 ? at.nextElementSibling : at.previousElementSibling;
    while (at && at.tagName !== "ARTICLE");
    return at;
  }

  /** A line above the calls of each run, where they are kept together. */
  function headings() {
    for (const old of root.querySelectorAll(".of-run")) old.remove();
    if (!$("by-run").checked) return;
    let run = null;
    const all = [...root.querySelectorAll("article")].map((article) => cardOf(article)).filter(Boolean);
    for (const it of all) {
      const of = it.ask();
      if (of.run === run) continue;
      run = of.run;
      const mine = all.filter((other) => other.ask().run === of.run);
      const choose = el("button", { type: "button", class: "quiet", on: { click: () => {
        for (const other of mine) other.choose(true);
        chose();
      } } }, `Select ${mine.length}`);
      it.root.before(el("h3", { class: "of-run" }, el("span", {}, `Run ${of.run}`), el("span", { class: "soft" }, of.wanted_by ? `wanted by ${of.wanted_by}` : ""), choose));
    }
  }

  const cardOf = (article) => [...cards.values()].find((it) => it.root === article);

  // Many at once.
  const many = bulk({
    api: host.api,
    me: host.me,
    drafts: host.drafts,
    chosen: () => [...cards.values()].filter((it) => it.isChosen()),
    drop: () => {
      for (const it of cards.values()) it.choose(false);
      chose();
    },
    done(results, word, problem) {
      if (!results) {
        host.say("bad", problem ?? "The server cannot be reached. It is not known which of them were decided: look again when the server is back.");
        return;
      }
      const counts = new Map();
      const also = (what) => counts.set(what, (counts.get(what) ?? 0) + 1);
      for (const { it, id, result, error, message, winner } of results) {
        if (result === "won" || error === "already_decided" || error === "expired" || error === "cancelled") {
          also(result ? `${word}` : winner ? `already decided ${deciders(winner.by)}` : message);
          if (it) settled(it, id, true);
        } else {
          also(result === "recorded" ? "recorded, others have to agree" : message);
        }
      }
      for (const [what, how] of counts) host.say(what === word || what.startsWith("recorded") ? "good" : "warn", `${how} ${what.replace(/\.$/, "")}.`);
      look();
    },
  });
  const chose = () => many.show();

  /** The call that keys are for. */
  let current = null;
  let currentSince = 0;
  const turnTo = (article) => {
    if (article !== current) currentSince = performance.now();
    current = article;
  };
  root.addEventListener("focusin", (event) => turnTo(event.target.closest?.("article") ?? current));

  const keys = {
    bulk: many,
    chosen: () => [...cards.values()].some((it) => it.isChosen()),
    drop: () => {
      for (const it of cards.values()) it.choose(false);
      chose();
    },
    move(step) {
      const at = current?.isConnected ? beside(current, step) : root.querySelector("article");
      if (!at) return;
      turnTo(at);
      if (isAlone()) cardOf(at)?.unfold(true);
      at.querySelector("h3 button, h3").focus({ preventScroll: true });
      at.scrollIntoView({ block: "nearest" });
    },
    /** Selects all that are shown, for an answer to all of them, which is confirmed. */
    all() {
      for (const it of cards.values()) it.choose(true);
      chose();
      return cards.size > 0;
    },
    press(name) {
      if (!current?.isConnected) return;
      // A key is for another call than a moment ago: as a button that has just appeared, it does not count yet.
      if (name === "yes" && performance.now() < currentSince + STILL_MS) return void host.early();
      cardOf(current)?.press(name);
    },
    toggle() {
      const it = current?.isConnected && cardOf(current);
      if (!it) return;
      it.choose(!it.isChosen());
      chose();
    },
    fresh: () => $("new").hidden || showNew(),
  };

  /** Replaces the cards, but for those that are being answered: the filters are others, or calls become rows or cards. */
  function renew() {
    stale = (it) => !it.isOpen() && !it.isBusy();
    return layOut();
  }
  let timer;
  $("tools").addEventListener("submit", (event) => event.preventDefault());
  $("tools").addEventListener("input", (event) => {
    if (event.target === $("compact")) density.put(String(isCompact()));
    clearTimeout(timer);
    timer = setTimeout(renew, event.target === $("q") ? 200 : 0);
  });
  $("reset").addEventListener("click", () => {
    $("q").value = "";
    for (const name of FILTERS) $(name).value = "*";
    renew();
  });
  if (density.get() !== null) $("compact").checked = density.get() === "true";

  $("new").addEventListener("click", showNew);
  $("more").addEventListener("click", showMore);
  new IntersectionObserver((seen) => {
    if (isCompact() && seen.some((it) => it.isIntersecting) && !$("more").hidden && next !== null) showMore();
  }, { rootMargin: "600px" }).observe($("more"));
  return { look, find, settled, clear, chose, keys, has: (key) => cards.has(key), tick: () => cards.forEach((it) => it.tick()) };
}

/** How a request was decided, in words. */
export function decided({ decision, state }) {
  return decision ? `decided ${deciders(decision.by)}: ${decision.past}, ${time(decision.at)}` : `it is ${state ?? "gone"}`;
}
