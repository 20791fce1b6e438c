import { inGroups, type Call } from './approval';
import type { Held } from './AskCard';
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

type WaitProps = { open: readonly Call[]; apart: ReadonlySet<string>; held: ReadonlyMap<string, Held>; onApproveAll: (calls: Call[]) => void };

/** How much waits, when it is more than one card. What is not shown whole, or is being answered, is left out of "all". */
export function WaitBar({ open, apart, held, onApproveAll }: WaitProps) {
  const asks = open.filter(call => call.stage === 'waiting');
  if (inGroups(asks, apart).length < 2) return null;
  const ready = asks.filter(call => !held.has(call.part.toolCallId));
  const unseen = asks.filter(call => held.get(call.part.toolCallId) === 'unseen').length;
  const answering = asks.length - ready.length - unseen;
  const left = [unseen > 0 && `${unseen} with text that is not shown yet`, answering > 0 && `${answering} that you are answering`].filter(Boolean);
  return (
    <div className="wait-bar">
      <span>
        {asks.length} calls wait for you. They go on together, when all are answered.
        {left.length > 0 ? ` Left out of “all”: ${left.join(', ')}.` : null}
      </span>
      <button type="button" disabled={ready.length === 0} onClick={() => onApproveAll(ready)}>
        {ready.length === asks.length ? `Approve all ${asks.length}` : `Approve ${ready.length} of ${asks.length}`}
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
