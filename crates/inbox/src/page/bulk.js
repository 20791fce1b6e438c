// Many calls at once: each is decided by its own fingerprint, and a call whose text was not opened is never approved
// together with others (rule S4).

import { el, worded } from "./element.js";

/** How many decisions are sent in one request. */
const AT_ONCE = 200;
/** More calls than these are approved together only once their number is typed. */
export const CONFIRM = 10;
/** The draft of a denial of many, among those of single calls. */
export const MANY = "selection";

/** @param host `api`, `drafts`, `chosen` gives the chosen cards, `drop` unselects all, `done` takes the results, `me` */
export function bulk(host) {
  const root = document.getElementById("bulk");
  let open = null;

  const asks = (cards) => cards.flatMap((it) => it.members());
  const button = (label, look, click) => el("button", { type: "button", class: look, on: { click } }, label);

  /** The chosen cards that may be approved now, and the reasons why the others may not. */
  function sorted(cards) {
    const ready = cards.filter((it) => it.canApprove());
    const unseen = cards.filter((it) => !it.canApprove() && it.isUnseen());
    const cut = cards.filter((it) => it.isCut());
    return { ready, unseen, cut, never: cards.length - ready.length - unseen.length - cut.length };
  }

  function skipped({ unseen, cut, never }) {
    const why = [];
    if (unseen.length > 0) why.push(`${unseen.length} of which not all was shown`);
    if (cut.length > 0) why.push(`${cut.length} with a preview that is too long to be shown whole`);
    if (never > 0) why.push(`${never} that you may not approve`);
    return why.length > 0 ? `Skipped: ${why.join(", ")}.` : "";
  }

  function show() {
    const cards = host.chosen();
    root.hidden = cards.length === 0;
    if (root.hidden) return close();
    if (open) return open();
    const parts = sorted(cards);
    const { ready, unseen } = parts;
    const yes = button(`Approve ${asks(ready).length}`, "primary", () => askYes());
    yes.disabled = ready.length === 0;
    root.replaceChildren(
      el("p", { role: "status" }, el("strong", {}, `${asks(cards).length} selected`), " ", el("span", { class: "soft" }, skipped(parts))),
      el("div", { class: "row" }, unseen.length > 0 && button(`Open ${unseen.length}`, "", () => unseen.forEach((it) => it.show())), yes, button("Deny …", "danger", () => askNo()), button("Drop selection", "quiet", host.drop)));
  }

  function close() {
    open = null;
  }

  const back = () => button("Back", "", () => {
    close();
    show();
  });
  const lines = (cards) => el("ul", { class: "listed", tabindex: "0", "aria-label": "These calls" }, cards.map((it) => el("li", {}, el("span", { class: "text", dir: "ltr" }, worded(it.line())),
    it.reasons() && el("span", { class: "soft" }, it.reasons()))));

  function askYes() {
    const chosen = sorted(host.chosen());
    const { ready } = chosen;
    if (ready.length === 0) return;
    open = askYes;
    const many = asks(ready).length;
    const typed = el("input", { id: "bulk-many", inputmode: "numeric", autocomplete: "off", size: "6" });
    const act = button(`Approve these ${many}`, "primary", () => send(ready, {}, "approved"));
    const check = () => (act.disabled = many > CONFIRM && typed.value.trim() !== String(many));
    typed.addEventListener("input", check);
    check();
    root.replaceChildren(
      el("p", {}, el("strong", {}, `Approve ${many} calls?`), " ", skipped(chosen)), lines(ready),
      many > CONFIRM && el("label", { for: "bulk-many" }, `Type ${many} to confirm`), many > CONFIRM && typed,
      el("div", { class: "row" }, act, back()));
    for (const child of [...root.childNodes]) if (child.nodeType === Node.TEXT_NODE) child.remove();
    if (many > CONFIRM) typed.focus();
    // Only what is listed here is approved, also when others change meanwhile.
    open = () => {};
  }

  function askNo() {
    const cards = host.chosen();
    const many = asks(cards).length;
    const message = el("textarea", { id: "bulk-message", rows: "2", maxlength: "4000" });
    root.replaceChildren(
      el("p", {}, el("strong", {}, `Deny ${many} ${many === 1 ? "call" : "calls"}?`)), lines(cards),
      el("label", { for: "bulk-message" }, "What the agents are told, word for word"), message,
      el("div", { class: "row" }, button(`Deny these ${many}`, "danger", () => send(cards, { message: message.value }, "denied")), back()));
    message.value = host.drafts().get(MANY)?.text ?? "";
    message.addEventListener("input", () => host.drafts().put(MANY, { id: "", tool: "", kind: "deny", text: message.value }));
    message.focus();
    open = () => {};
  }

  let busy = false;
  async function send(cards, more, word) {
    if (busy) return;
    busy = true;
    root.setAttribute("aria-busy", "true");
    const verdict = word === "denied" ? "deny" : "approve";
    const of = new Map(cards.flatMap((it) => it.members().map(({ id, fingerprint }) => [id, { it, fingerprint }])));
    const all = [...of].map(([id, { fingerprint }]) => ({ id, verdict, fingerprint, ...more }));
    for (let at = 0; at < all.length; at += AT_ONCE) {
      const { status, body } = await host.api("/api/decisions", { decisions: all.slice(at, at + AT_ONCE), by: host.me() });
      const results = status === 200 ? body.results.map((result) => ({ ...result, it: of.get(result.id)?.it })) : null;
      host.done(results, word, body?.message);
      if (!results) break;
      if (word === "denied") host.drafts().drop(MANY);
    }
    busy = false;
    root.removeAttribute("aria-busy");
    close();
    host.drop();
  }

  return { show, askYes, askNo, isOpen: () => open !== null, back: () => { close(); show(); } };
}
