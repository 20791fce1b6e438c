/** What a new conversation offers. */
export const SUGGESTIONS: readonly { text: string; about: string }[] = [
  { text: 'clean up', about: 'reads the folder, asks before it deletes' },
  { text: 'change todo.txt', about: 'a change, shown as a difference' },
  { text: 'delete a.txt and b.txt', about: 'two calls, answered together' },
  { text: 'read .env', about: 'a call that no person may approve' },
  { text: 'where am i', about: 'a question only you can answer' },
  { text: 'write something hostile', about: 'arguments that try to fool you' },
];
