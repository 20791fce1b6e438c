// A second try after an error.
import { isToolUIPart } from 'ai';

import type { ChatMessage } from './approval';
import { isLost, type Sender } from './server';

type Chat = {
  messages: ChatMessage[];
  error: Error | undefined;
  sendMessage: () => Promise<void>;
  regenerate: () => Promise<void>;
};

/** Does again what has failed, and never what may have worked: the server is asked first where its answer was lost. */
export async function again(chat: Chat, to: Sender, refresh: (known?: string) => Promise<boolean>): Promise<void> {
  const last = chat.messages.at(-1);
  if (to.last() !== 'sent' || !last) return void (await refresh());
  const calls = last.parts.filter(isToolUIPart);
  // An answer can be given twice: the outcome is recorded.
  if (calls.some(part => part.state === 'approval-responded')) return chat.sendMessage();
  if (chat.error && isLost(chat.error) && (await refresh(last.role === 'user' ? last.id : undefined))) return;
  // A model that failed after some calls continues from there; a text alone is written anew.
  if (last.role === 'assistant' && calls.length === 0) return chat.regenerate();
  return chat.sendMessage();
}
