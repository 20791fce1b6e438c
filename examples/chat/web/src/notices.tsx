import type { Call } from './approval';
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

/** How much waits, when it is more than one card. */
export function WaitBar({ open, onApproveAll }: { open: readonly Call[]; onApproveAll: (calls: Call[]) => void }) {
  const asks = open.filter(call => call.stage === 'waiting');
  if (asks.length < 2) return null;
  return (
    <div className="wait-bar">
      <span>{asks.length} calls wait for you. They go on together, when all are answered.</span>
      <button type="button" onClick={() => onApproveAll(asks)}>
        Approve all {asks.length}
      </button>
    </div>
  );
}
