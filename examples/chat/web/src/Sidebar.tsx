import type { Chat } from './chats';
import { Visible } from './Visible';

type Props = { chats: Chat[]; current: string; onNew: () => void; onForget: (id: string) => void };

/** The conversations of this browser. On a phone it folds into a line. */
export function Sidebar({ chats, current, onNew, onForget }: Props) {
  return (
    <nav className="sidebar" aria-label="Conversations">
      <div className="brand">
        <img src="/icon.svg" alt="" width="26" height="26" />
        <span>Countersign</span>
        <button type="button" className="new" onClick={onNew}>
          New chat
        </button>
      </div>
      {chats.length > 0 ? (
        <ul>
          {chats.map(chat => (
            <li key={chat.id} className={chat.id === current ? 'current' : undefined}>
              <a href={`#${chat.id}`} aria-current={chat.id === current ? 'page' : undefined}>
                <Visible text={chat.title} kind="prose" />
              </a>
              <button type="button" aria-label={`Forget ${chat.title}`} title="Forget, in this browser" onClick={() => onForget(chat.id)}>
                ×
              </button>
            </li>
          ))}
        </ul>
      ) : (
        <p className="note">Your conversations in this browser are listed here.</p>
      )}
    </nav>
  );
}
