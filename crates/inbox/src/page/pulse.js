// Checks that the server responds: a page says within two seconds that it has lost the server, also when connections
// hang.

/** How long after an answer the server is asked again, in milliseconds. */
const PAUSE_MS = 700;
/** How long an answer may take. */
const PATIENCE_MS = 1100;

/**
 * Polls the server while the page is visible.
 *
 * @param {string} path answers with any success, at once
 * @param {(there: boolean) => void} tell is called after every try
 * @returns {() => void} ends it
 */
export function pulse(path, tell) {
  let over = false;
  /** @type {number | undefined} */
  let timer;
  const look = async () => {
    clearTimeout(timer);
    if (!document.hidden) {
      const there = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE_MS) }).then((reply) => reply.ok, () => false);
      if (!over && !document.hidden) tell(there);
    }
    if (!over) timer = setTimeout(look, PAUSE_MS);
  };
  look();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}
