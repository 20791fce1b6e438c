// An error of the page itself is shown above the page, which stays: a page never goes blank.

/** How many errors are counted before the rest is only counted. */
const MOST = 99;
let many = 0;

/** @param {unknown} what */
function show(what) {
  const at = document.getElementById("crash");
  if (!at) return;
  many = Math.min(MOST, many + 1);
  const text = what instanceof Error ? what.message : String(what ?? "unknown");
  document.getElementById("crash-text").textContent = `${text.slice(0, 300)}${many > 1 ? ` (and ${many - 1} before)` : ""}`;
  at.hidden = false;
}

addEventListener("error", (event) => show(event.error ?? event.message));
addEventListener("unhandledrejection", (event) => show(event.reason));
document.getElementById("crash-reload")?.addEventListener("click", () => location.reload());
