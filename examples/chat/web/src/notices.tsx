import { SUGGESTIONS } from './suggestions';
import { Visible } from './Visible';

export function Empty({ onPick }: { onPick: (text: string) => void }) {
  return (
    <section className="empty">
      <h1>What was approved is what runs.</h1>
      <p>
        An assistant with file tools. It reads on its own; what changes something waits here until you have seen exactly
        what would run.
      </p>
      <ul aria-label="Suggestions">
        {SUGGESTIONS.map(({ text, about }) => (
          <li key={text}>
            <button type="button" onClick={() => onPick(text)}>
              <strong>{text}</strong>
              <span>{about}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Failed(props: { text: string; onAgain: () => void; onReload: () => void }) {
  return (
    <div className="banner failed" role="alert">
      <p>
        <strong>That did not work.</strong> <Visible text={props.text} kind="prose" />
      </p>
      <div className="actions">
        <button type="button" className="primary" onClick={props.onAgain}>
          Try again
        </button>
        <button type="button" onClick={props.onReload}>
          Reload the conversation
        </button>
      </div>
    </div>
  );
}

export function Notice({ text, action, onAction }: { text: string; action: string; onAction: () => void }) {
  return (
    <div className="banner" role="status">
      <p>
        <Visible text={text} kind="prose" />
      </p>
      <button type="button" onClick={onAction}>
        {action}
      </button>
    </div>
  );
}

/** Answers that were given before the page was loaded again, and have not gone out. */
export function Unsent({ onSend, onAgain }: { onSend: () => void; onAgain: () => void }) {
  return (
    <div className="banner" role="status">
      <p>Your answers have not been sent.</p>
      <div className="actions">
        <button type="button" className="primary" onClick={onSend}>
          Send them
        </button>
        <button type="button" onClick={onAgain}>
          Answer again
        </button>
      </div>
    </div>
  );
}
