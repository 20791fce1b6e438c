// Nothing moves under the pointer (rule S3): a control that appears, moves, changes or gets the focus does nothing for
// 600 ms, and a key or a pointer that went down before that does not count.

/** How long a control has stood still before it counts, in milliseconds. */
export const STILL_MS = 600;
/** How often to look for what has moved without a change of the document, such as a field that is resized. */
const LOOK_MS = 150;
/** How many times as long as a look the pause after it is, at least. */
const RARER = 10;
/** Smaller differences are no movement, in CSS pixels. */
const STILL_PX = 1;
/** The attributes that may move or uncover a control. */
const ATTRIBUTES = ['class', 'disabled', 'hidden', 'inert', 'open', 'style'];

/**
 * Watches all controls that match the selector, now and later. One that does not count yet has `aria-disabled`.
 *
 * @param {string} selector
 * @param {(control: Element) => void} [early] is called for each control that was used too early
 * @returns {{ unsettle: (area?: DOMRect) => void }} `unsettle` is for a page that has scrolled by itself, or has uncovered an
 *   area: the controls there have to stand still anew
 */
export function arming(selector, early = () => {}) {
  /** @type {WeakMap<Element, Place>} */
  const places = new WeakMap();
  /** @type {WeakMap<Element, number>} when it begins to count */
  const counting = new WeakMap();
  /** @type {WeakMap<Element, number>} */
  const timers = new WeakMap();
  /** @type {Element | null} where a pointer went down and counted */
  let pressed = null;
  /** @type {Element | null} where a key went down and did not count */
  let refused = null;
  let pointing = false;

  /** @param {Element} control */
  const reset = (control) => {
    counting.set(control, performance.now() + STILL_MS);
    control.setAttribute('aria-disabled', 'true');
    clearTimeout(timers.get(control));
    timers.set(control, setTimeout(() => control.removeAttribute('aria-disabled'), STILL_MS));
  };
  const measure = () => {
    const known = new Map();
    // All is measured before anything is marked, so that the page is laid out once and not for each control.
    const moved = [];
    for (const control of document.querySelectorAll(selector)) {
      // What is hidden has no place: a long list has a folded form for each of its calls.
      if (control.closest('[hidden]')) {
        places.delete(control);
        continue;
      }
      const [before, now] = [places.get(control), place(control, known)];
      places.set(control, now);
      if (!before || differ(before, now)) moved.push(control);
    }
    moved.forEach(reset);
  };
  const unsettle = (/** @type {DOMRect | undefined} */ area) => {
    for (const control of document.querySelectorAll(selector)) {
      if (!area || overlap(area, control.getBoundingClientRect())) reset(control);
    }
  };
  /** @param {Element} control */
  const counts = (control) => {
    measure();
    // What is hidden stands still, too, and is no answer.
    if (!control.checkVisibility()) return false;
    return performance.now() >= (counting.get(control) ?? Infinity);
  };
  /** @param {EventTarget | null} target */
  const control = (target) => (target instanceof Element ? target.closest(selector) : null);
  /** @param {Event} event @param {Element} at */
  const refuse = (event, at) => {
    event.preventDefault();
    event.stopImmediatePropagation();
    early(at);
  };

  new MutationObserver(measure).observe(document.documentElement, {
    subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ATTRIBUTES,
  });
  // Of a long list the looks are rarer, so that they never take most of the time; a click looks for itself.
  const watch = () => {
    const begun = performance.now();
    if (!document.hidden) measure();
    setTimeout(watch, Math.max(LOOK_MS, RARER * (performance.now() - begun)));
  };
  // What was scrolled is measured at once, so that it is not taken for a movement together with a later change.
  addEventListener('scroll', measure, { capture: true, passive: true });
  addEventListener('resize', measure);
  // The click that brings a window back is not for what it hits.
  addEventListener('focus', (event) => event.target === window && unsettle());
  document.addEventListener('visibilitychange', () => unsettle());

  addEventListener('pointerdown', (event) => {
    const at = control(event.target);
    pointing = true;
    refused = null;
    pressed = at && counts(at) ? at : null;
  }, true);
  for (const over of ['pointerup', 'pointercancel']) addEventListener(over, () => (pointing = false), true);
  addEventListener('focusin', (event) => {
    const at = control(event.target);
    // A pointer that goes down brings the focus along, and is judged by itself.
    if (at && !pointing) reset(at);
  }, true);
  addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    const at = control(event.target);
    refused = null;
    if (at && (event.repeat || !counts(at))) {
      refused = at;
      refuse(event, at);
    } else if (!at && event.key === 'Enter' && event.repeat && event.target instanceof HTMLInputElement && event.target.form?.querySelector(selector)) {
      // A key that is held down would send the form.
      event.preventDefault();
    }
  }, true);
  addEventListener('click', (event) => {
    const at = control(event.target);
    if (!at) return;
    // Without a pointer it comes from a key, from the form around it, or from an assistive technology.
    const meant = event.detail === 0 ? refused !== at : pressed === at;
    pressed = refused = null;
    if (!meant || !counts(at)) refuse(event, at);
  }, true);
  addEventListener('submit', (event) => {
    const at = event.submitter ?? (event.target instanceof Element ? event.target.querySelector(selector) : null);
    if (at?.matches(selector) && !counts(at)) refuse(event, at);
  }, true);
  watch();
  return { unsettle };
}

/**
 * @typedef {{ top: number, left: number, width: number, height: number, scrolled: number, tall: number, said: string }} Place
 */

/**
 * Where a control is, and what it says.
 * @param {Element} control
 * @param {Map<Element | null, { scrolled: number, tall: number }>} known
 * @returns {Place}
 */
function place(control, known) {
  const { top, left, width, height } = control.getBoundingClientRect();
  const off = control.matches(':disabled') || control.closest('[inert]') ? 'off' : 'on';
  const said = `${off} ${control.getAttribute('aria-label') ?? ''} ${control.textContent}`;
  return { top, left, width, height, said, ...around(control.parentElement, known) };
}

/**
 * How far everything around is scrolled, and how tall it is.
 * @param {Element | null} element
 * @param {Map<Element | null, { scrolled: number, tall: number }>} known
 * @returns {{ scrolled: number, tall: number }}
 */
function around(element, known) {
  let found = known.get(element);
  if (found) return found;
  found = { scrolled: 0, tall: 0 };
  if (element) {
    const outer = around(element.parentElement, known);
    found = { scrolled: outer.scrolled + element.scrollTop, tall: outer.tall + element.scrollHeight };
  }
  known.set(element, found);
  return found;
}

/**
 * Whether a control has moved in the window, has another size, or says something else. Scrolling is no movement; where the
 * page has become longer or shorter meanwhile, it may not have been the hand that scrolled.
 * @param {Place} a
 * @param {Place} b
 */
function differ(a, b) {
  const off = (/** @type {number} */ x, /** @type {number} */ y) => Math.abs(x - y) > STILL_PX;
  if (a.said !== b.said || off(a.width, b.width) || off(a.height, b.height) || off(a.left, b.left)) return true;
  if (!off(a.top, b.top)) return false;
  return off(a.top + a.scrolled, b.top + b.scrolled) || off(a.tall, b.tall);
}

/** @param {DOMRect} a @param {DOMRect} b */
function overlap(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}
