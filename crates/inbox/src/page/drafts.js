// The drafts of a person: they survive a reload of the page, a restart of the server, and the decision of another
// person (rule S5). They are stored in this browser only.

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
        // A browser without storage has no drafts.
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
