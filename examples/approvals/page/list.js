// The cards on the screen. Each stays where it is until it is decided, or until the person at the page wants to see what is
// new: what comes meanwhile is counted, and nothing is put between (rule S3).

import { card } from "./card.js";
import { el, names, time } from "./element.js";

/** How many entries are shown at first, and how many more at a time. */
const PAGE = 50;
/** How many entries the server gives at most. */
const MOST = 500;

/** @param host what cards need, and `api`, `say`, `unsettle` */
export function list(host) {
  const $ = (id) => document.getElementById(id);
  const root = $("cards");
  const cards = new Map();
  /** Requests that are known to be decided, however old the next answer of the server is. */
  const gone = new Set();
  /** The groups that are shown one by one. */
  const apart = new Set();
  let total = 0;
  let newer = 0;
  let latest = null;
  let next = null;

  const page = (limit, more = "") => host.api(`/api/asks?limit=${Math.min(limit, MOST)}${more}`);

  /** The entries of an answer, without what is decided since. */
  function entries(body) {
    return body.asks.flatMap((ask) => {
      const open = [{ id: ask.id, fingerprint: ask.fingerprint }, ...ask.same].filter((one) => !gone.has(one.id));
      if (apart.has(ask.key)) return open.map((one) => ({ ...ask, ...one, key: one.id, group: ask.key, same: [] }));
      return open.length > 0 ? [{ ...ask, ...open[0], same: open.slice(1) }] : [];
    });
  }

  /** What nobody can decide, below the cards: nothing that can be pressed moves when one is found. */
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
    const rest = Math.max(0, total - shown() - fresh);
    $("count").textContent = total || "";
    document.title = total ? `(${total}) Approvals` : "Approvals";
    $("empty").hidden = cards.size > 0 || total > 0 || !$("refused").hidden;
    $("new").hidden = fresh === 0;
    $("new").textContent = `${fresh} new: show`;
    $("more").hidden = rest === 0;
    $("more").textContent = `Show more (${rest} not shown)`;
  }

  function add(ask) {
    const it = card(ask, { ...host, split });
    cards.set(ask.key, it);
    root.append(it.root);
    return it;
  }

  /** Takes what decided cards have left in their places. */
  function tidy() {
    for (const place of root.querySelectorAll(".gone")) place.remove();
  }

  /** Shows everything anew in the order of the server, because it was asked for or because nothing was shown. */
  async function layOut() {
    const reply = await page(Math.max(PAGE, cards.size));
    if (reply.status !== 200) return reply;
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
    // What is further behind stays behind.
    for (const it of cards.values()) if (!found.some((ask) => ask.key === it.key)) root.append(it.root);
    ({ total, latest, next } = reply.body);
    newer = 0;
    refuse(reply.body.refused);
    count();
    host.unsettle();
    return { ...reply, first };
  }

  async function showNew() {
    const { first } = await layOut();
    (first?.[0]?.title ?? $("waiting")).focus();
    host.unsettle();
  }

  async function showMore() {
    const reply = await page(PAGE, next === null ? "" : `&after=${encodeURIComponent(next)}`);
    if (reply.status !== 200) return;
    next = reply.body.next;
    const first = entries(reply.body).filter((ask) => !cards.has(ask.key)).map(add);
    count();
    first[0]?.title.focus({ preventScroll: true });
  }

  /** Looks at everything anew: what is shown is brought up to date where it stands. */
  async function look() {
    if (cards.size === 0) return layOut();
    const reply = await page(Math.max(PAGE, cards.size), latest === null ? "" : `&since=${latest}`);
    if (reply.status !== 200) return reply;
    ({ total, newer } = reply.body);
    refuse(reply.body.refused);
    const found = new Map(entries(reply.body).map((ask) => [ask.key, ask]));
    for (const it of [...cards.values()]) {
      // What is just being decided here says itself what came of it.
      if (it.isBusy()) continue;
      if (found.has(it.key)) it.update(found.get(it.key));
      else await ask(it);
    }
    count();
    return cards.size === 0 && total > 0 ? layOut() : reply;
  }

  /** A card that is not in the answer: it is further behind, decided, or refused. */
  async function ask(it) {
    const [{ id }] = it.members();
    const { status, body } = await host.api(`/api/asks/${id}`);
    const changed = body?.error === "changed";
    if (status !== 200 && !changed) return;
    if (body.state === "pending") return void it.update({ ...body, key: it.key, same: it.members().slice(1) });
    if (!changed) gone.add(id);
    const wasUsed = it.isUsed();
    if (!it.without(id)) return;
    const why = changed ? "it was changed outside of the ledger, and cannot be decided" : decided(body);
    if (wasUsed) host.kept(it.key, it.title.textContent, `${why}, while you were looking at it.`);
    bury(it, why);
  }

  /** In the place of a card that others have decided something else would slide under the pointer: the place stays. */
  function bury(it, why) {
    const { top, height } = it.root.getBoundingClientRect();
    const focused = it.root.contains(document.activeElement);
    cards.delete(it.key);
    if (top >= window.innerHeight) return void it.root.remove();
    const clear = el("button", { type: "button", class: "quiet", on: { click: () => {
      tidy();
      $("waiting").focus();
    } } }, "Clear");
    const place = el("div", { class: "gone", tabindex: "-1" }, el("p", {}, el("strong", {}, it.title.textContent), `: ${why}.`), clear);
    it.root.replaceWith(place);
    place.style.minHeight = `${height}px`;
    if (focused) place.focus({ preventScroll: true });
  }

  /** Takes away a card that was decided here, and the focus to the next one. */
  function remove(it) {
    const focused = it.root.contains(document.activeElement);
    tidy();
    const next = it.root.nextElementSibling ?? it.root.previousElementSibling;
    cards.delete(it.key);
    it.root.remove();
    if (focused) (next?.querySelector("h3") ?? $("waiting")).focus();
    host.unsettle();
    count();
  }

  /** One request of a card is decided here. */
  function settled(it, id) {
    gone.add(id);
    total = Math.max(0, total - 1);
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
    const next = it.root.nextElementSibling;
    it.root.remove();
    next?.querySelector("h3")?.focus({ preventScroll: true });
    count();
  }

  function clear() {
    for (const it of cards.values()) it.root.remove();
    cards.clear();
    tidy();
    [total, newer, latest, next] = [0, 0, null, null];
    refuse([]);
    count();
  }

  $("new").addEventListener("click", showNew);
  $("more").addEventListener("click", showMore);
  return { look, settled, clear, has: (key) => cards.has(key), tick: () => cards.forEach((it) => it.tick()) };
}

/** How a request was decided, in words. */
export function decided({ decision, state }) {
  return decision ? `decided by ${names(decision.by)}: ${decision.past}, ${time(decision.at)}` : `it is ${state ?? "gone"}`;
}
