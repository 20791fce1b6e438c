// Requests to the server, below the path that the page was loaded from.

const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";

/** The path of the inbox, without a slash at its end. */
export const BASE = meta("inbox-base");
/** The version of this page. A server of another version refuses the decisions of this page. */
export const VERSION = meta("inbox-version");

/** Sends a request. Returns the status and the JSON of the response; the status is 0 when there is none. */
export async function request(path, body) {
  const headers = { "Content-Type": "application/json", "Countersign-Page": VERSION };
  const options = body === undefined ? { signal: AbortSignal.timeout(20000) } : { method: "POST", headers, body: JSON.stringify(body) };
  try {
    const reply = await fetch(BASE + path, options);
    return { status: reply.status, body: await reply.json() };
  } catch {
    return { status: 0, body: null };
  }
}
