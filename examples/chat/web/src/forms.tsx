import { useId, useRef, useState, type KeyboardEvent } from 'react';

import { Args } from './Args';
import { fromEdit, same, toEdit } from './args';
import type { Grant, JsonObject, Offer } from './approval';
import { useEffect } from './effect';
import { Line, Visible } from './Visible';

function onEscape(close: () => void) {
  return (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    close();
  };
}

/** A form that opens is seen as a whole, its buttons too. */
function useSeen() {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    form.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return form;
}

/** Why not; it may stay empty. */
export function DenyForm(props: { times: number; draft: string; onDraft: (text: string) => void; onDeny: (reason: string) => void; onCancel: () => void }) {
  const { times, draft, onDraft, onDeny, onCancel } = props;
  const [reason, setReason] = useState(draft);
  const id = useId();
  return (
    <form
      ref={useSeen()}
      className="answer"
      onKeyDown={onEscape(onCancel)}
      onSubmit={event => {
        event.preventDefault();
        onDeny(reason.trim());
      }}
    >
      <label htmlFor={id}>Why not? The assistant reads it.</label>
      <input id={id} value={reason} onChange={event => (setReason(event.target.value), onDraft(event.target.value))} placeholder="optional" autoComplete="off" autoFocus={!draft} />
      <div className="actions">
        <button type="submit" className="deny filled">
          {times > 1 ? `Deny all ${times} calls` : 'Deny this call'}
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}

/** The arguments as JSON, with what would run below them. */
export function EditForm(props: {
  name: string;
  times: number;
  input: JsonObject;
  draft: string;
  onDraft: (text: string) => void;
  onEdit: (input: JsonObject) => void;
  onCancel: () => void;
}) {
  const [text, setText] = useState(() => props.draft || toEdit(props.input));
  const id = useId();
  const read = fromEdit(text);
  const changed = 'input' in read && !same(read.input, props.input);
  return (
    <form
      ref={useSeen()}
      className="answer"
      onKeyDown={onEscape(props.onCancel)}
      onSubmit={event => {
        event.preventDefault();
        if (changed) props.onEdit(read.input);
      }}
    >
      <label htmlFor={id}>Arguments of {props.name}, as JSON</label>
      <textarea
        id={id}
        value={text}
        rows={Math.min(14, text.split('\n').length + 1)}
        onChange={event => (setText(event.target.value), props.onDraft(event.target.value))}
        onKeyDown={event => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && event.currentTarget.form?.requestSubmit()}
        spellCheck={false}
        autoComplete="off"
        autoFocus={!props.draft}
        aria-invalid={'problem' in read}
        aria-describedby={`${id}state`}
      />
      <div id={`${id}state`} aria-live="polite">
        {'problem' in read ? <p className="problem">{read.problem}</p> : null}
        {'input' in read && !changed ? <p className="note">Nothing is changed yet.</p> : null}
      </div>
      {changed ? <Args label="Will run with exactly these arguments" input={read.input} before={props.input} /> : null}
      <div className="actions">
        <button type="submit" className="primary" disabled={!changed}>
          {props.times > 1 ? `Approve all ${props.times} as edited` : 'Approve as edited'}
        </button>
        <button type="button" onClick={props.onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}

/** The grants that can be made with the approval: each as a sentence, and the chosen one as the rule, with examples. */
export function GrantForm({ offers, onGrant, onCancel }: { offers: readonly Offer[]; onGrant: (grant: Grant) => void; onCancel: () => void }) {
  const [at, setAt] = useState(0);
  const [id, form] = [useId(), useSeen()];
  const offer = offers[at];
  if (!offer) return null;
  return (
    <form
      ref={form}
      className="answer"
      onKeyDown={onEscape(onCancel)}
      onSubmit={event => {
        event.preventDefault();
        onGrant({ fingerprint: offer.fingerprint, pattern: offer.pattern, seconds: offer.seconds });
      }}
    >
      <label htmlFor={id}>Later calls that are approved without a question</label>
      <select id={id} value={at} onChange={event => setAt(Number(event.target.value))} aria-describedby={`${id}rule`} autoFocus>
        {offers.map((choice, n) => (
          <option key={n} value={n}>
            {choice.says}
          </option>
        ))}
      </select>
      <div id={`${id}rule`}>
        <p>
          <Line text={offer.says} />
        </p>
        {offer.also.length > 0 ? (
          <p className="note">
            would also allow: <Line text={offer.also.join('; ')} />
          </p>
        ) : null}
        <pre tabIndex={0}>
          <Visible text={offer.rule} />
        </pre>
      </div>
      <div className="actions">
        <button type="submit" className="primary">
          Approve, and grant this
        </button>
        <button type="button" onClick={onCancel}>
          Back
        </button>
      </div>
    </form>
  );
}

/** A call that is answered here and not by the server: the result is what the person writes. */
export function GiveForm({ onGive, onRefuse }: { onGive: (text: string) => void; onRefuse: () => void }) {
  const [text, setText] = useState('');
  const id = useId();
  return (
    <form
      className="answer"
      onSubmit={event => {
        event.preventDefault();
        if (text.trim()) onGive(text.trim());
      }}
    >
      <label htmlFor={id}>Where are you?</label>
      <input id={id} value={text} onChange={event => setText(event.target.value)} placeholder="a city, say" autoComplete="off" />
      <div className="actions">
        <button type="submit" className="primary" disabled={!text.trim()}>
          Share
        </button>
        <button type="button" onClick={onRefuse}>
          Do not share
        </button>
      </div>
    </form>
  );
}
