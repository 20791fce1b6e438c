// What a call would change, as a layer or tool shows it (rule S7): a difference, a text or a table. The server has made all of
// its text safe to show, and it is put into text nodes.

import { el, worded } from "./element.js";
import { box } from "./seen.js";

const CHANGES = { created: "new", deleted: "deleted", changed: "changed", unchanged: "stays as it is" };
const SIGNS = { added: ["+", "added: "], removed: ["-", "removed: "], remark: [" ", ""], plain: [" ", ""] };

function line({ sign, text, old, new: now }, differ) {
  const [mark, said] = SIGNS[sign] ?? SIGNS.plain;
  return el("span", { class: `diff ${sign}` },
    differ && el("span", { class: "number", "aria-hidden": "true" }, String(now ?? old ?? "")),
    differ && el("span", { class: "sign", "aria-hidden": "true" }, mark),
    el("span", {}, said && el("span", { class: "hear" }, said), el("span", { class: "text", dir: "ltr" }, text || " ")));
}

function lines(all, title) {
  if (all.length === 0) return null;
  const differ = all.some(({ sign }) => sign === "added" || sign === "removed");
  return box(el, `The lines of ${title}`, el("pre", {}, all.map((it) => line(it, differ))));
}

function table([heads, ...rows], rest, title) {
  const cell = (tag, more) => (text) => el(tag, more, el("span", { class: "text", dir: "ltr" }, text));
  return [
    box(el, `The rows of ${title}`, el("div", { class: "sheet" }, el("table", {},
      el("thead", {}, el("tr", {}, heads.map(cell("th", { scope: "col" })))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell("td", {})))))))),
    // The lines of a table repeat its rows; after them, a note names the missing ones.
    lines(rest, title),
  ];
}

function preview(it, show) {
  const head = el("figcaption", {},
    el("span", { class: "who" }, worded(it.author)),
    el("span", { class: "text title", dir: "ltr" }, it.title),
    it.change && el("span", { class: "chip", "data-change": it.change }, CHANGES[it.change] ?? it.change),
    el("span", { class: "soft" }, it.pinned ? "asks again if this changes" : "may change by itself"));
  const body = it.cells.length > 0 ? table(it.cells, it.lines.filter(({ sign }) => sign === "remark"), it.title) : lines(it.lines, it.title);
  const opener = it.left_out && show && el("p", { class: "cut" }, el("span", {}, "Some of it is left out: open it before you approve."),
    el("button", { type: "button", on: { click: () => show() } }, "Show everything"));
  const cut = it.cut > 0 && el("p", { class: "cut" },
    `${it.cut} more ${it.cut === 1 ? "line is" : "lines are"} too much to be stored, and cannot be shown. Approve this call only if you know them.`);
  return el("figure", { class: "preview", "aria-label": `Preview: ${it.title}` }, head, body, opener, cut);
}

/** The previews of a call. `show` opens what is left out of them; without it there is no way to. */
export function previews(all, show) {
  return all.map((it) => preview(it, show));
}
