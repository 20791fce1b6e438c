// The drafts of a person about calls: they survive a reload of the page, a restart of the server, and that a call is
// answered elsewhere (rule S5). They are stored in this browser only.

export type Draft = { kind: 'edit' | 'deny'; text: string };

const name = (ask: string) => `countersign-draft ${ask}`;

export function getDraft(ask: string | undefined): Draft | undefined {
  try {
    const draft = JSON.parse((ask && localStorage.getItem(name(ask))) || 'null') as Partial<Draft> | null;
    return draft && (draft.kind === 'edit' || draft.kind === 'deny') && typeof draft.text === 'string' ? (draft as Draft) : undefined;
  } catch {
    return undefined;
  }
}

export function setDraft(ask: string | undefined, draft: Draft | undefined) {
  if (!ask) return;
  try {
    if (draft) localStorage.setItem(name(ask), JSON.stringify(draft));
    else localStorage.removeItem(name(ask));
  } catch {
    // a browser without storage keeps no drafts
  }
}
