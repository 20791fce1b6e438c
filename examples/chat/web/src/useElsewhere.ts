import { useRef } from 'react';

import type { ChatMessage } from './approval';
import { useEffect } from './effect';
import { history } from './server';

type Chat = {
  id: string;
  status: string;
  messages: ChatMessage[];
  setMessages: (messages: ChatMessage[]) => void;
  clearError: () => void;
  resumeStream: () => Promise<void>;
};

/** Another page, or another person, may have answered: what the server has is what counts. */
export function useElsewhere(chat: Chat, waits: boolean, answered: (messages: ChatMessage[]) => ChatMessage[]) {
  const latest = useRef({ chat, waits });
  latest.current = { chat, waits };
  const channel = useRef<BroadcastChannel>(undefined);

  /** Takes over what the server has, if it has the message `known`, and says whether it did. */
  const refresh = async (known?: string): Promise<boolean> => {
    const { chat } = latest.current;
    const found = await history(chat.id).catch(() => undefined);
    const now = latest.current.chat;
    if (!found || now.status === 'submitted' || now.status === 'streaming') return false;
    if (known !== undefined && !found.some(message => message.id === known)) return false;
    const fresh = answered(found);
    if (JSON.stringify(fresh) !== JSON.stringify(now.messages)) now.setMessages(fresh);
    now.clearError();
    await now.resumeStream();
    return true;
  };

  useEffect(() => {
    const look = () => {
      const { chat, waits } = latest.current;
      if (document.visibilityState === 'visible' && waits && chat.status === 'ready') void refresh();
    };
    const pages = new BroadcastChannel(`countersign-${chat.id}`);
    pages.onmessage = look;
    channel.current = pages;
    document.addEventListener('visibilitychange', look);
    window.addEventListener('focus', look);
    return () => {
      pages.close();
      document.removeEventListener('visibilitychange', look);
      window.removeEventListener('focus', look);
    };
  }, [chat.id]);

  return { refresh, tell: () => channel.current?.postMessage('changed') };
}
