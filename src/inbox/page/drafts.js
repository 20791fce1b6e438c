// What a person has begun to write about a request: it stays when the page or the server is started again, and when another
// person decides first (rule S5). It stays in this browser.

const PREFIX = "approvals-draft";

/** @param {string} me */
export function drafts(me) {
  const name = (key) => `${PREFIX} ${me} ${key}`;
  const read = (item) => {
    try {
      const draft = JSON.parse(localStorage.getItem(item));
      return draft && ["edit", "deny"].includes(draft.kind) && typeof draft.text === "string" ? draft : null;
    } catch {
      return null;
    }
  };
  return {
    get: (key) => read(name(key)),
    /** @param {{ id: string, tool: string, kind: "edit" | "deny", text: string }} draft */
    put(key, draft) {
      try {
        localStorage.setItem(name(key), JSON.stringify(draft));
      } catch {
        // A browser without storage keeps no drafts.
      }
    },
    drop(key) {
      try {
        localStorage.removeItem(name(key));
      } catch {
        // It had none.
      }
    },
    /** All of them, with their keys. */
    all() {
      try {
        const items = Object.keys(localStorage).filter((item) => item.startsWith(name("")));
        return items.map((item) => ({ key: item.slice(name("").length), draft: read(item) })).filter((it) => it.draft);
      } catch {
        return [];
      }
    },
  };
}
