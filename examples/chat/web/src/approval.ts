// The data of a call that a person is asked about: a `data-approval` part beside the AI SDK's own
// `tool-approval-request`, replaced under the same id when the question is answered.
import type { DynamicToolUIPart, ToolUIPart, UIMessage } from 'ai';
import { getToolName, isToolUIPart } from 'ai';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };
export type Question = { askedBy: string; reason: string };

/** Where an argument comes from, in words; a warning where it stands only in text of strangers. */
export type Origin = { field: string; text: string; warning: boolean };

/** What a call would change, or is about (rule S7): the difference of two texts, a text, or a table. */
export type Preview = {
  author: string;
  title: string;
  change?: 'created' | 'deleted' | 'changed' | 'unchanged';
  /** Whether the call is asked about again if this changes. */
  pinned: boolean;
  /** Each begins with `+`, `-`, a space, or `@` for a remark. */
  lines: string[];
  /** The number of each line in the new text, or in the old one where it is removed. */
  numbers: (number | undefined)[];
  /** The rows of a table; the first names the columns. */
  cells: string[][];
  /** The number of lines that are not stored. */
  cut: number;
};

/** A grant that can be made with an approval: for later calls, which are not asked about then (rule G3). */
export type Offer = {
  fingerprint: string;
  pattern: number;
  /** For how long it holds. Sentence and rule are for this time. */
  seconds: number;
  /** The grant as a sentence, as the rule, and with examples of other calls that it would approve. */
  says: string;
  rule: string;
  also: string[];
};
/** The offer that a person has chosen, as it was shown. */
export type Grant = { fingerprint: string; pattern: number; seconds: number };

const STATUSES = ['pending', 'approved', 'denied', 'edited', 'expired', 'superseded', 'cancelled'] as const;
export type Status = (typeof STATUSES)[number];

export type Approval = {
  approvalId: string;
  toolCallId: string;
  toolName: string;
  path: string;
  /** Missing where no person was asked: then they are the part's. */
  input?: JsonObject;
  canonical: string;
  headline: string;
  /** Who wants what, in people's words, with values between backticks. */
  title: string;
  /** The arguments that a preview shows. */
  repeated: string[];
  questions: Question[];
  previews: Preview[];
  offers: Offer[];
  /** The grant that was made with the approval, or why none was. */
  grant?: { id?: string; problem?: string };
  /** The same for equal calls of one response. */
  group?: string;
  changed?: string;
  /** How often a person has denied the same call in this run, and their last words. */
  deniedBefore?: string;
  /** Where each argument comes from, warnings first. */
  origins: Origin[];
  status: Status;
  by?: string;
  reason?: string;
  ranInput?: JsonObject;
};

export type ChatMessage = UIMessage<unknown, { approval: Approval }>;
export type ToolPart = ToolUIPart | DynamicToolUIPart;

/** The state of a call, for the person who looks at it. */
export type Stage =
  | 'preparing'
  | 'running'
  | 'paused'
  | 'waiting'
  | 'yours'
  | 'answered'
  | 'done'
  | 'failed'
  | 'denied'
  | 'refused'
  | 'again'
  | 'expired'
  | 'withdrawn'
  | 'cut';

export type Call = {
  part: ToolPart;
  name: string;
  /** The agents it is under, as in `root/cleaner/`; empty for the agent that is talked to. */
  agents: string;
  ask?: Approval;
  /** The arguments that run in place of those that were asked about. */
  edited?: JsonObject;
  stage: Stage;
};

/** Tools without a body on the server: the person at the page gives the result. */
const CLIENT_TOOLS = new Set(['get_location']);

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function question(value: unknown): Question[] {
  return isObject(value) ? [{ askedBy: text(value.askedBy) ?? '', reason: text(value.reason) ?? '' }] : [];
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(it => (typeof it === 'string' ? it : JSON.stringify(it))) : [];
}

function origin(value: unknown): Origin[] {
  if (!isObject(value)) return [];
  return [{ field: text(value.field) ?? '', text: text(value.text) ?? '', warning: value.warning === true }];
}

function preview(value: unknown): Preview[] {
  if (!isObject(value)) return [];
  const change = (['created', 'deleted', 'changed', 'unchanged'] as const).find(it => it === value.change);
  return [
    {
      author: text(value.author) ?? '',
      title: text(value.title) ?? '',
      ...(change && { change }),
      pinned: value.pinned === true,
      lines: texts(value.lines),
      numbers: Array.isArray(value.numbers) ? value.numbers.map(it => (typeof it === 'number' ? it : undefined)) : [],
      cells: Array.isArray(value.cells) ? value.cells.map(texts) : [],
      cut: typeof value.cut === 'number' ? value.cut : 0,
    },
  ];
}

function offer(value: unknown): Offer[] {
  if (!isObject(value) || typeof value.pattern !== 'number' || typeof value.seconds !== 'number') return [];
  const { pattern, seconds } = value;
  const [fingerprint, says, rule] = [text(value.fingerprint), text(value.says), text(value.rule)];
  return fingerprint && says && rule ? [{ fingerprint, pattern, seconds, says, rule, also: texts(value.also) }] : [];
}

/** Whether a part of a preview is stored nowhere, so that it cannot be seen: such a call is approved only by itself. */
export function hasCut(call: Call): boolean {
  return (call.ask?.previews ?? []).some(preview => preview.cut > 0);
}

/** Reads a `data-approval`; any other value is no approval. */
export function readApproval(data: unknown): Approval | undefined {
  if (!isObject(data)) return undefined;
  const status = STATUSES.find(known => known === data.status);
  const toolCallId = text(data.toolCallId);
  if (!status || !toolCallId) return undefined;
  const toolName = text(data.toolName) ?? '';
  return {
    approvalId: text(data.approvalId) ?? '',
    toolCallId,
    toolName,
    path: text(data.path) ?? toolName,
    canonical: text(data.canonical) ?? '',
    headline: text(data.headline) ?? '',
    title: text(data.title) ?? '',
    repeated: texts(data.repeated),
    questions: Array.isArray(data.questions) ? data.questions.flatMap(question) : [],
    previews: Array.isArray(data.previews) ? data.previews.flatMap(preview) : [],
    origins: Array.isArray(data.origins) ? data.origins.flatMap(origin) : [],
    offers: Array.isArray(data.offers) ? data.offers.flatMap(offer) : [],
    status,
    ...(isObject(data.input) && { input: data.input }),
    ...(text(data.group) && { group: text(data.group) }),
    ...(text(data.changed) && { changed: text(data.changed) }),
    ...(text(data.deniedBefore) && { deniedBefore: text(data.deniedBefore) }),
    ...(text(data.by) && { by: text(data.by) }),
    ...(text(data.reason) && { reason: text(data.reason) }),
    ...(isObject(data.ranInput) && { ranInput: data.ranInput }),
    ...(isObject(data.grant) && { grant: { id: text(data.grant.id), problem: text(data.grant.problem) } }),
  };
}

/** The approvals of a message. The last about a call is the one that counts. */
function approvals(message: ChatMessage): Map<string, Approval> {
  const found = new Map<string, Approval>();
  for (const part of message.parts) {
    const ask = part.type === 'data-approval' ? readApproval(part.data) : undefined;
    if (ask) found.set(ask.toolCallId, ask);
  }
  return found;
}

const CLOSED: Partial<Record<Status, Stage>> = {
  denied: 'denied',
  expired: 'expired',
  superseded: 'withdrawn',
  cancelled: 'withdrawn',
};

function errorStage(part: ToolPart, ask: Approval | undefined): Stage {
  const closed = ask && CLOSED[ask.status];
  // A call that a policy denies was not asked about: there is no request beside it.
  if (closed === 'denied' && !ask?.approvalId && !part.approval) return 'refused';
  return closed ?? 'failed';
}

/** The state of a call; `last` says whether it is in the last message, `busy` whether the server is working on that. */
export function stage(part: ToolPart, ask: Approval | undefined, { last, busy }: { last: boolean; busy: boolean }): Stage {
  switch (part.state) {
    case 'input-streaming':
      return last && busy ? 'preparing' : 'cut';
    case 'input-available':
      if (last && CLIENT_TOOLS.has(getToolName(part))) return 'yours';
      return last && busy ? 'running' : 'cut';
    case 'approval-requested':
      if (ask && ask.status !== 'pending') return CLOSED[ask.status] ?? (busy ? 'running' : 'answered');
      return last ? 'waiting' : 'withdrawn';
    case 'approval-responded':
      if (ask && CLOSED[ask.status]) return CLOSED[ask.status] ?? 'answered';
      if (!part.approval.approved) return busy ? 'denied' : 'answered';
      return last && busy ? 'running' : 'answered';
    case 'output-available':
      return part.preliminary ? 'running' : 'done';
    case 'output-error':
      return errorStage(part, ask);
    case 'output-denied':
      return (ask && CLOSED[ask.status]) ?? 'denied';
  }
}

function agents(path: string): string {
  const above = path.slice(0, path.lastIndexOf('/') + 1);
  return above.split('/').length > 2 ? above : '';
}

/** The edited arguments of a call: what the server says has run, or what a person has just written. */
function edited(part: ToolPart, ask: Approval | undefined, edits: ReadonlyMap<string, JsonObject>): JsonObject | undefined {
  if (ask && ask.status !== 'pending') return ask.status === 'edited' ? ask.ranInput : undefined;
  return part.approval?.approved ? edits.get(part.approval.id) : undefined;
}

/** The calls of a message by the id of the call; `edits` are those that the server may not have yet. */
export function calls(
  message: ChatMessage,
  where: { last: boolean; busy: boolean },
  edits: ReadonlyMap<string, JsonObject> = new Map(),
): Map<string, Call> {
  const asks = approvals(message);
  const found = new Map<string, Call>();
  for (const part of message.parts.filter(isToolUIPart)) {
    const ask = asks.get(part.toolCallId);
    const name = getToolName(part);
    const path = ask?.path ?? name;
    found.set(part.toolCallId, { part, name, agents: agents(path), ask, edited: edited(part, ask, edits), stage: stage(part, ask, where) });
  }
  // A call that is asked about again has a part of its own, named after this one.
  for (const call of found.values()) {
    const id = call.part.toolCallId;
    if ([...asks.values()].some(ask => ask.changed && ask.toolCallId.startsWith(`${id}#`))) call.stage = 'again';
  }
  // A sub-agent has no result before the calls that it waits for are answered.
  const all = [...found.values()];
  if (all.some(call => call.stage === 'waiting' || call.stage === 'answered')) {
    for (const call of all) if (call.stage === 'cut') call.stage = 'paused';
  }
  return found;
}

/** The calls that a person is asked about, and those whose result a person gives, in order. */
export function waiting(messages: readonly ChatMessage[]): Call[] {
  const message = messages.at(-1);
  if (message?.role !== 'assistant') return [];
  const all = [...calls(message, { last: true, busy: false }).values()];
  return all.filter(call => call.stage === 'waiting' || call.stage === 'yours');
}

/**
 * Pending calls, with equal ones grouped (rule D11), in the order of the first of each. Those whose group is in `apart`,
 * and those with a preview that was cut, are shown one by one.
 */
export function inGroups(open: Iterable<Call>, apart: ReadonlySet<string> = new Set()): Call[][] {
  const found = new Map<string, Call[]>();
  for (const call of open) {
    const group = call.stage === 'waiting' && call.ask?.status === 'pending' ? call.ask.group : undefined;
    const key = group && !apart.has(group) && !hasCut(call) ? `group ${group}` : `call ${call.part.toolCallId}`;
    const calls = found.get(key);
    if (calls) calls.push(call);
    else found.set(key, [call]);
  }
  return [...found.values()];
}

/** The edits, or grants, that go with the approvals of this message: only for calls whose answer the server does not have yet. */
export function unsent<T>(edits: ReadonlyMap<string, T>, messages: readonly ChatMessage[]): Record<string, T> {
  const out: Record<string, T> = {};
  for (const part of messages.flatMap(message => message.parts).filter(isToolUIPart)) {
    if (part.state !== 'approval-responded' || !part.approval.approved) continue;
    const edit = edits.get(part.approval.id);
    if (edit) out[part.approval.id] = edit;
  }
  return out;
}
