// Elements, and how times are written. Text from the server is only ever put into text nodes.

/** An element with attributes and children; a text stays a text. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, what] of Object.entries(value)) made.addEventListener(event, what);
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** A line of the server with its values between backticks, which no value has. */
export const worded = (line) => line.split("`").map((part, n) => (n % 2 === 1 ? el("code", { dir: "ltr" }, part) : part));

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** `12:03`; with the day when it was another one. */
export function time(at) {
  const then = new Date(at);
  return (then.toDateString() === new Date().toDateString() ? clock : day).format(then);
}

/** How long ago, roughly. */
export function ago(milliseconds) {
  const minutes = Math.floor(milliseconds / 60000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  return minutes < 1440 ? `${Math.floor(minutes / 60)} h ago` : `${Math.floor(minutes / 1440)} d ago`;
}

export const names = (by) => by.join(" and ");

/** Who decided, with the word before: `by ann and bob`, or the line of a grant, which has it already. */
export const deciders = (by) => (by[0]?.startsWith("by grant ") ? by[0] : `by ${names(by)}`);

/** How long, roughly: `4 s`, `12 min`, `3.5 h`, `2 d`. */
export function span(milliseconds) {
  const seconds = milliseconds / 1000;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86400)} d`;
}
