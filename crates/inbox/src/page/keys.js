// The keyboard: `j k a A e d D g v x n / ?`. A key presses the button of the same name, so that a button that ignores clicks
// also ignores keys. `a` needs a pause before it, too: where another key was ignored, what is typed after it is no answer.

import { STILL_MS } from "./arming.js";

const typing = (it) => it instanceof HTMLElement && it.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");

/** @param host `isShown`, `current`, `move`, `press`, `toggle`, `drop`, `bulk`, `search`, `fresh` */
export function keys(host) {
  const dialog = document.getElementById("keys");
  /** When the last key was pressed outside of a field, and whether the present one came after a pause. */
  let last = -Infinity;
  let paused = true;
  document.getElementById("help").addEventListener("click", () => dialog.showModal());
  const does = {
    j: () => host.move(1),
    ArrowDown: () => host.move(1),
    k: () => host.move(-1),
    ArrowUp: () => host.move(-1),
    a: () => (host.chosen() ? host.bulk.askYes() : paused && host.press("yes")),
    A: () => paused && host.all() && host.bulk.askYes(),
    d: () => (host.chosen() ? host.bulk.askNo() : host.press("no")),
    D: () => paused && host.all() && host.bulk.askNo(),
    g: () => host.press("always"),
    v: () => host.press("all"),
    e: () => host.press("edit"),
    x: host.toggle,
    n: host.fresh,
    "/": host.search,
    "?": () => dialog.showModal(),
  };
  addEventListener("keydown", (event) => {
    // The key that makes a capital is none by itself: the letter comes after the pause that was before both.
    if (event.key === "Shift") return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      if (typing(event.target)) event.target.blur();
      else if (host.bulk.isOpen()) host.bulk.back();
      else host.drop();
      return;
    }
    const act = typing(event.target) ? undefined : does[event.key];
    if (!typing(event.target)) {
      paused = event.timeStamp - last >= STILL_MS;
      last = event.timeStamp;
    }
    if (!act || !(host.isShown() || event.key === "/" || event.key === "?")) return;
    // Arrows scroll a text that has the focus, and choose in a list of buttons.
    if (event.key.startsWith("Arrow") && !(event.target instanceof Element && event.target.closest("h3"))) return;
    event.preventDefault();
    // A key that is held down moves the selection, and decides nothing.
    if (!event.repeat || ["j", "k", "ArrowUp", "ArrowDown"].includes(event.key)) act();
  });
}
