// What the page asks the server for, beside what the AI SDK's transport does.
import { APICallError, DefaultChatTransport } from 'ai';

import { unsent, type ChatMessage, type JsonObject } from './approval';

const API = '/api/chat';

/** Sends messages as the AI SDK does, and with the answers the arguments that a person has edited. */
export function transport(edits: ReadonlyMap<string, JsonObject>) {
  return new DefaultChatTransport<ChatMessage>({
    api: API,
    prepareSendMessagesRequest: ({ id, messages, trigger, messageId, body }) => {
      const overrideArgs = unsent(edits, messages);
      const edited = Object.keys(overrideArgs).length > 0 && { overrideArgs };
      return { body: { ...body, id, messages, trigger, messageId, ...edited } };
    },
  });
}

/** The conversation as the server has it; none yet is an empty one. */
export async function history(id: string): Promise<ChatMessage[]> {
  const response = await fetch(`${API}/${encodeURIComponent(id)}/messages`, { headers: { accept: 'application/json' } });
  if (response.status === 404) return [];
  const body = await response.text();
  if (!response.ok) throw new Error(plain(body) || `The server answered with ${response.status}.`);
  const { messages } = JSON.parse(body) as { messages?: ChatMessage[] };
  return messages ?? [];
}

/** Stops the run itself. To close the stream is not enough: the server goes on, for a page that is reloaded. */
export async function halt(id: string): Promise<void> {
  await fetch(`${API}/${encodeURIComponent(id)}/stream`, { method: 'DELETE' }).catch(() => undefined);
}

/** The message in an answer of the server: `{"error": "…"}` or a text. */
function plain(body: string): string {
  try {
    const { error } = JSON.parse(body) as { error?: unknown };
    return typeof error === 'string' ? error : body;
  } catch {
    return body;
  }
}

/** What went wrong, in words. */
export function problem(error: Error): string {
  if (APICallError.isInstance(error)) return plain(error.message);
  return error instanceof TypeError ? 'The connection to the server was lost.' : plain(error.message);
}

/** Whether the server refuses because somebody else was first. */
export function isConflict(error: Error | undefined): boolean {
  return APICallError.isInstance(error) && error.statusCode === 409;
}
