// Answers that were given and are not sent yet, as they go out together (rule S5): kept in this browser, and given again to
// the same calls when the page is loaded again or takes over what the server has.
import { getToolName, isToolUIPart } from 'ai';

import { isObject, readApproval, type Call, type ChatMessage, type Grant, type JsonObject } from './approval';

type Given = { approved: boolean; reason?: string; edited?: JsonObject; grant?: Grant; about: string };
type Told = { told: string | null };
type Kept = Record<string, Given | Told>;

const name = (chat: string) => `countersign-answers ${chat}`;

function read(chat: string): Kept {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(name(chat)) ?? '{}');
    return isObject(kept) ? (kept as Kept) : {};
  } catch {
    return {};
  }
}

function write(chat: string, kept: Kept) {
  try {
    if (Object.keys(kept).length > 0) localStorage.setItem(name(chat), JSON.stringify(kept));
    else localStorage.removeItem(name(chat));
  } catch {
    // a browser without storage loses them when it reloads
  }
}

/** Keeps the answer to a question, with what it was shown about. */
export function keepAnswer(chat: string, id: string, call: Call, given: Omit<Given, 'about'>) {
  write(chat, { ...read(chat), [id]: { ...given, about: call.ask?.canonical ?? '' } });
}

/** Keeps what a person has told in a tool's place; `null` when they refuse to. */
export function keepResult(chat: string, toolCallId: string, told: string | null) {
  write(chat, { ...read(chat), [toolCallId]: { told } });
}

export function forgetAnswers(chat: string) {
  write(chat, {});
}

/** What a person told, as a tool's result. */
export function result(told: string | null) {
  if (told === null) return { state: 'output-error', errorText: 'The user does not share it.' } as const;
  return { state: 'output-available', output: { place: told } } as const;
}

/**
 * The messages of the server with the answers that it does not have yet. An answer to a call that is answered there, or is
 * asked about anew, is forgotten. `edits` gets the edited arguments, and `grants` the grants.
 */
export function withAnswers(chat: string, messages: ChatMessage[], edits: Map<string, JsonObject>, grants: Map<string, Grant>): { messages: ChatMessage[]; given: number } {
  const kept = read(chat);
  const last = messages.at(-1);
  if (Object.keys(kept).length === 0 || last?.role !== 'assistant') return { messages, given: 0 };
  const asks = last.parts.flatMap(part => (part.type === 'data-approval' ? [readApproval(part.data)] : []));
  const used: Kept = {};
  const parts = last.parts.map(part => {
    if (!isToolUIPart(part)) return part;
    const id = part.state === 'approval-requested' ? part.approval.id : part.toolCallId;
    const answer = kept[id];
    if (answer && 'told' in answer && part.state === 'input-available' && getToolName(part) === 'get_location') {
      used[id] = answer;
      return { ...part, ...result(answer.told) };
    }
    if (!answer || 'told' in answer || part.state !== 'approval-requested') return part;
    const ask = asks.findLast(it => it?.toolCallId === part.toolCallId);
    if (ask?.status !== 'pending' || ask.canonical !== answer.about) return part;
    used[id] = answer;
    const { approved, reason, edited, grant } = answer;
    if (approved && edited) edits.set(id, edited);
    if (approved && grant) grants.set(id, grant);
    return { ...part, state: 'approval-responded', approval: { ...part.approval, approved, ...(reason && { reason }) } };
  });
  write(chat, used);
  const given = Object.keys(used).length;
  return { messages: given > 0 ? [...messages.slice(0, -1), { ...last, parts: parts as ChatMessage['parts'] }] : messages, given };
}
