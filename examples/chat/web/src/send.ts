// When answers go out.
import { isToolUIPart, lastAssistantMessageIsCompleteWithToolCalls as allGiven } from 'ai';

import { waiting, type ChatMessage } from './approval';

/**
 * All answers of a response go out in one request, when the last one is given. The AI SDK's own conditions look at the
 * last step alone, in which an agent whose calls wait would have to have its result; and they would send again and again
 * if an answer were left without an outcome. Here each request needs a new answer since the last one.
 */
export function whenAnswered() {
  let fresh = false;
  return {
    given() {
      fresh = true;
    },
    goOut(messages: ChatMessage[]): boolean {
      if (!fresh || waiting(messages).length > 0) return false;
      const parts = messages.at(-1)?.parts.filter(isToolUIPart) ?? [];
      if (!parts.some(part => part.state === 'approval-responded') && !allGiven({ messages })) return false;
      fresh = false;
      return true;
    },
  };
}
