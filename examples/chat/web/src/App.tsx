import { useState } from 'react';

import type { ChatMessage } from './approval';
import { addressed, forget, newId, recent, remember } from './chats';
import { Conversation } from './Conversation';
import { useEffect } from './effect';
import { LostServer } from './LostServer';
import { history, problem } from './server';
import { Sidebar } from './Sidebar';

type Shown = { id: string; fresh: boolean; messages?: ChatMessage[]; problem?: string };

function start(): Shown {
  const id = addressed();
  return id ? { id, fresh: false } : { id: newId(), fresh: true, messages: [] };
}

/** The list of conversations, and the one that is open. */
export function App() {
  const [shown, setShown] = useState(start);
  const [chats, setChats] = useState(recent);

  useEffect(() => {
    const moved = () => setShown(now => (now.id === addressed() ? now : start()));
    window.addEventListener('hashchange', moved);
    return () => window.removeEventListener('hashchange', moved);
  }, []);

  useEffect(() => {
    if (shown.messages || shown.problem) return;
    let current = true;
    const settle = (found: Partial<Shown>) => current && setShown(now => ({ ...now, ...found }));
    history(shown.id).then(
      messages => settle({ messages }),
      (error: Error) => settle({ problem: problem(error) }),
    );
    return () => {
      current = false;
    };
  }, [shown]);

  const fresh = () => {
    window.history.pushState(null, '', location.pathname);
    setShown({ id: newId(), fresh: true, messages: [] });
  };
  const said = (text: string) => {
    if (location.hash !== `#${shown.id}`) window.history.replaceState(null, '', `#${shown.id}`);
    setChats(remember(shown.id, text));
  };
  const forgotten = (id: string) => {
    setChats(forget(id));
    if (id === shown.id) fresh();
  };

  return (
    <div className="app">
      <LostServer />
      <Sidebar chats={chats} current={shown.id} onNew={fresh} onForget={forgotten} />
      {shown.messages ? (
        <Conversation key={shown.id} id={shown.id} initial={shown.messages} fresh={shown.fresh} onSaid={said} />
      ) : (
        <main className="conversation loading">
          {shown.problem ? (
            <div className="banner failed" role="alert">
              <p>{shown.problem}</p>
              <button type="button" onClick={() => setShown({ id: shown.id, fresh: false })}>
                Try again
              </button>
            </div>
          ) : (
            <p className="thinking">Loading</p>
          )}
        </main>
      )}
    </div>
  );
}
