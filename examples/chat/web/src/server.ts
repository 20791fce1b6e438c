// Requests of the page besides those of the AI SDK's transport.
import { APICallError, DefaultChatTransport } from 'ai';

import { unsent, type ChatMessage, type Grant, type JsonObject } from './approval';

const API = '/api/chat';

export type Sender = { transport: DefaultChatTransport<ChatMessage>; last: () => 'none' | 'sent' | 'resumed' };

/**
 * Sends messages as the AI SDK does, and with the answers the arguments that a person has edited and the grants that they
 * make. `onIdle` is told that there is no response to resume.
 */
export function sender(edits: ReadonlyMap<string, JsonObject>, grants: ReadonlyMap<string, Grant>, onIdle: () => void): Sender {
  let last: ReturnType<Sender['last']> = 'none';
  const transport = new DefaultChatTransport<ChatMessage>({
    api: API,
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (response.status === 204) onIdle();
      return response;
    },
    prepareSendMessagesRequest: ({ id, messages, trigger, messageId, body }) => {
      last = 'sent';
      const overrideArgs = unsent(edits, messages);
      const edited = Object.keys(overrideArgs).length > 0 && { overrideArgs };
      const approvalGrants = unsent(grants, messages);
      const granted = Object.keys(approvalGrants).length > 0 && { approvalGrants };
      return { body: { ...body, id, messages, trigger, messageId, ...edited, ...granted } };
    },
    prepareReconnectToStreamRequest: () => {
      last = 'resumed';
      return {};
    },
  });
  return { transport, last: () => last };
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

/** Stops the run itself. Closing the stream is not enough: the server continues the run, for a page that is reloaded. */
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
  return isLost(error) ? 'The connection to the server was lost.' : plain(error.message);
}

/** Whether the server's answer did not arrive, or not whole: its effect is not known here. */
export function isLost(error: Error): boolean {
  return error instanceof TypeError;
}

/** Whether the server refuses because another answer was first. */
export function isConflict(error: Error | undefined): boolean {
  return APICallError.isInstance(error) && error.statusCode === 409;
}
