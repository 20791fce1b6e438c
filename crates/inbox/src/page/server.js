// Requests to the server, below the path that the page was loaded from.

const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";

/** The path of the inbox, without a slash at its end. */
export const BASE = meta("inbox-base");
/** The version of this page. A server of another version refuses the decisions of this page. */
export const VERSION = meta("inbox-version");

/** The half of a session that is in this browser's storage for this origin. The other half is a cookie. */
const SESSION = `countersign-session ${BASE}`;
let session = null;
try {
  session = localStorage.getItem(SESSION);
} catch {
  // A browser without storage is logged in until the page is left.
}

/** Exchanges the secret of the inbox for a session. Returns the problem; null when there is none. */
export async function exchange(secret) {
  const { status, body } = await request("/api/session", { secret });
  if (status !== 200) return body?.message ?? "The server cannot be reached.";
  session = body.session;
  try {
    localStorage.setItem(SESSION, session);
  } catch {
    // It holds for this page.
  }
  return null;
}

/** Saves what a path gives as a file, where a plain link would not be answered. Returns whether it was. */
export async function save(path, name) {
  if (!session) return false;
  try {
    const reply = await fetch(BASE + path, { headers: { "Countersign-Session": session } });
    if (!reply.ok) return false;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await reply.blob());
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    return true;
  } catch {
    return false;
  }
}

/** Sends a request. Returns the status and the JSON of the response; the status is 0 when there is none. */
export async function request(path, body) {
  const mine = session ? { "Countersign-Session": session } : {};
  const headers = { "Content-Type": "application/json", "Countersign-Page": VERSION, ...mine };
  const options = body === undefined ? { headers: mine, signal: AbortSignal.timeout(20000) } : { method: "POST", headers, body: JSON.stringify(body) };
  try {
    const reply = await fetch(BASE + path, options);
    return { status: reply.status, body: await reply.json() };
  } catch {
    return { status: 0, body: null };
  }
}
