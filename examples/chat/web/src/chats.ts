// The conversations of this browser: their ids and titles. What was said is on the server.

import { forgetAnswers } from './answers';

export type Chat = { id: string; title: string; at: number };

const KEY = 'countersign-chats';
const MOST = 30;

function isChat(value: unknown): value is Chat {
  const chat = value as Partial<Chat> | null;
  return typeof chat?.id === 'string' && typeof chat.title === 'string' && typeof chat.at === 'number';
}

/** The newest first. */
export function recent(): Chat[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(stored) ? stored.filter(isChat).sort((a, b) => b.at - a.at) : [];
  } catch {
    return []; // a browser without storage has no list
  }
}

/** Puts a conversation first; a title it has is kept. */
export function remember(id: string, title: string): Chat[] {
  const known = recent().find(chat => chat.id === id);
  const chat = { id, title: known?.title ?? title.slice(0, 80), at: Date.now() };
  return store([chat, ...recent().filter(it => it.id !== id)].slice(0, MOST));
}

export function forget(id: string): Chat[] {
  forgetAnswers(id);
  return store(recent().filter(chat => chat.id !== id));
}

function store(chats: Chat[]): Chat[] {
  try {
    localStorage.setItem(KEY, JSON.stringify(chats));
  } catch {
    // the list is a convenience
  }
  return chats;
}

/** Who knows the id can read the conversation, so it cannot be guessed. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
}

/** The conversation in the address: `#id`. */
export function addressed(): string | undefined {
  const id = location.hash.slice(1);
  return /^[\w-]{1,100}$/.test(id) ? id : undefined;
}
