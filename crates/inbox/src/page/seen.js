// What has been on the screen (rule S11): a text that is longer than its box counts as read once its last row was in
// sight, and so does a call below which its buttons stay in sight.

/** A box that scrolls when its text is longer. Its last child marks the end of the text. */
export function box(el, label, ...children) {
  return el("div", { class: "box", role: "group", "aria-label": label }, children, el("i", { class: "end", "aria-hidden": "true" }));
}

const overflows = (it) => it.scrollHeight > it.clientHeight + 1;

/** Whether the lower edge of an element is within the window, and within all that scrolls around it, and above `foot`. */
function inSight(element, foot) {
  if (!element.checkVisibility()) return false;
  const { bottom } = element.getBoundingClientRect();
  let top = 0;
  let low = Math.min(window.innerHeight, foot?.getBoundingClientRect().top ?? Infinity);
  for (let up = element.parentElement; up; up = up.parentElement) {
    const { overflowY, position } = getComputedStyle(up);
    if (overflowY !== "visible") {
      const around = up.getBoundingClientRect();
      top = Math.max(top, around.top);
      low = Math.min(low, around.bottom);
    }
    // What is around a pane that is fixed to the window does not clip it.
    if (position === "fixed") break;
  }
  return bottom > top && bottom <= low + 1;
}

/**
 * The ends within a card that have not been in sight. `look` says whether all were; `foot` gives the buttons if they stay in
 * sight, so that the end of the call has to be seen, too.
 */
export function ends(root, foot) {
  const seen = new WeakSet();
  return {
    /** Text that is shown anew has not been in sight. */
    forget(within) {
      for (const end of within.querySelectorAll(".end")) seen.delete(end);
    },
    look() {
      // Of what is not shown, such as the list behind another view, nothing is in sight.
      if (document.hidden || !root.checkVisibility()) return false;
      const below = foot();
      let all = true;
      for (const end of root.querySelectorAll(".end")) {
        const around = end.closest(".box");
        if (around) {
          const scrolls = overflows(around);
          // A box that scrolls is reached by the keyboard.
          if (scrolls !== around.hasAttribute("tabindex")) scrolls ? around.setAttribute("tabindex", "0") : around.removeAttribute("tabindex");
          if (!scrolls || !around.checkVisibility()) continue;
        } else if (!below) continue;
        if (!seen.has(end) && inSight(end, below)) seen.add(end);
        all &&= seen.has(end);
      }
      return all;
    },
  };
}
