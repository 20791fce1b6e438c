import { useId, useRef, useState, type KeyboardEvent } from 'react';

import { Args } from './Args';
import { headline, isCut, isRounded, same, saidBy } from './args';
import { hasCut, type Call, type Grant, type JsonObject } from './approval';
import { WaitingHead } from './CallCard';
import { getDraft, setDraft } from './drafts';
import { useEffect } from './effect';
import { DenyForm, EditForm, GrantForm } from './forms';
import { isFolded, Previews } from './Previews';
import { useThrough } from './seen';
import { Line, Visible } from './Visible';

export type Answer = { approved: true; edited?: JsonObject; grant?: Grant } | { approved: false; reason?: string };

/** A key counts after this long without one, as a person who was typing when the card got the focus did not mean the card. */
const QUIET_MS = 600;

/** Why a call is not approved together with others: it is being answered, or something of it is not shown or not stored. */
export type Held = 'open' | 'unseen' | 'cut';

type Props = {
  call: Call;
  /** The number of equal calls that are answered here, each by its own approval. */
  times: number;
  onAnswer: (answer: Answer) => void;
  onHeld: (held: Held | undefined) => void;
  onApart: () => void;
  /** Asks about all that are left. */
  onAll: (verb: 'approve' | 'deny') => void;
};

/** A pending call, or several equal ones: the call, its questions, and the answers. */
export function AskCard({ call, times, onAnswer: answered, onHeld, onApart, onAll }: Props) {
  const ref = call.ask?.approvalId || call.part.approval?.id;
  const [draft, setBegun] = useState(() => getDraft(ref));
  const [open, setOpen] = useState<'edit' | 'deny' | 'grant' | undefined>(draft?.kind);
  const [seen, setSeen] = useState(false);
  const [armed, setArmed] = useState(false);
  const card = useRef<HTMLElement>(null);
  const timer = useRef<number>(undefined);
  const id = useId();
  const { ask, part } = call;
  const input = ask?.input ?? (part.input as JsonObject);
  const editable = !isRounded(input);
  const previews = ask?.previews ?? [];
  const offers = times > 1 ? [] : (ask?.offers ?? []);
  // Of a number that would be rounded only the server's text is shown, and that as a whole.
  const cut = !seen && ((editable && isCut(input, ask?.repeated)) || previews.some(isFolded));
  const through = useThrough(card, seen);
  const unseen = cut || !through;
  const all = times > 1 ? ` all ${times}` : '';
  const held = open ? 'open' : cut ? 'unseen' : hasCut(call) ? 'cut' : unseen ? 'unseen' : undefined;
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    onHeld(held);
    return () => onHeld(undefined);
  }, [held]);

  const onAnswer = (answer: Answer) => {
    setDraft(ref, undefined);
    answered(answer);
  };
  const keep = (kind: 'edit' | 'deny') => (text: string) => setDraft(ref, { kind, text });
  const close = () => {
    setDraft(ref, undefined);
    setBegun(undefined);
    setOpen(undefined);
    card.current?.focus();
  };
  const arm = (on: boolean) => {
    clearTimeout(timer.current);
    setArmed(false);
    if (on) timer.current = window.setTimeout(() => setArmed(true), QUIET_MS);
  };
  const keys = (event: KeyboardEvent) => {
    if (event.target !== card.current || event.ctrlKey || event.metaKey || event.altKey || event.key.length > 1) return;
    const known = armed && !event.repeat && !open;
    if (known && event.key === 'a' && !unseen) onAnswer({ approved: true });
    else if (known && event.key === 'd') setOpen('deny');
    else if (known && event.key === 'g' && !unseen && offers.length > 0) setOpen('grant');
    else if (known && event.key === 'v' && cut) setSeen(true);
    else if (known && (event.key === 'A' || event.key === 'D')) onAll(event.key === 'A' ? 'approve' : 'deny');
    else if (known && event.key === 'e' && editable) setOpen('edit');
    else return arm(true);
    event.preventDefault();
  };

  return (
    <article
      ref={card}
      className="call ask"
      data-stage="waiting"
      data-tool={call.name}
      data-ask={ask?.approvalId ?? part.approval?.id}
      data-times={times}
      tabIndex={0}
      aria-labelledby={`${id}name ${id}state`}
      aria-keyshortcuts={armed ? 'a d e g v Shift+A Shift+D' : undefined}
      onKeyDown={keys}
      onFocus={event => event.target === card.current && arm(true)}
      onBlur={event => event.target === card.current && arm(false)}
    >
      <WaitingHead call={call} id={id} />
      <p className="will-run">
        {open === 'edit' ? <span className="label">Before your edit</span> : null}
        {ask?.title ? (
          <Line text={ask.title} />
        ) : (
          <code>
            <Visible text={ask?.headline || headline(call.name, input)} />
          </code>
        )}
      </p>
      {times > 1 ? (
        <p className="many">
          <span>
            <strong>The same call {times} times.</strong> One answer is given to each of them.
          </span>
          {open ? null : (
            <button type="button" onClick={onApart}>
              Answer one by one
            </button>
          )}
        </p>
      ) : null}
      {ask?.changed ? (
        <p className="changed">
          Asked again: <Line text={ask.changed} />
        </p>
      ) : null}
      {ask?.deniedBefore ? (
        <p className="changed">
          The same call was <Line text={ask.deniedBefore} />
        </p>
      ) : null}
      {ask?.origins.map(it => (
        <p key={it.field} className={it.warning ? 'changed' : 'from'}>
          <b>{it.field}</b> <Line text={it.text} />
        </p>
      ))}
      <Questions call={call} />
      {open === 'edit' ? null : <Previews previews={previews} onOpen={cut ? () => setSeen(true) : undefined} />}
      {open === 'edit' ? null : <Exactly call={call} input={input} onOpen={cut ? () => setSeen(true) : undefined} />}
      {open === 'edit' ? <EditForm name={call.name} times={times} input={input} draft={draft?.kind === 'edit' ? draft.text : ''} onDraft={keep('edit')} onCancel={close} onEdit={edited => onAnswer({ approved: true, edited })} /> : null}
      {open === 'deny' ? <DenyForm times={times} draft={draft?.kind === 'deny' ? draft.text : ''} onDraft={keep('deny')} onCancel={close} onDeny={reason => onAnswer({ approved: false, ...(reason && { reason }) })} /> : null}
      {open === 'grant' ? <GrantForm offers={offers} onCancel={close} onGrant={grant => onAnswer({ approved: true, grant })} /> : null}
      {open ? null : (
        <div className="actions">
          <button type="button" className="primary" disabled={unseen} title={unseen ? 'Some of it is not shown yet' : undefined} onClick={() => onAnswer({ approved: true })}>
            Approve{all} <kbd>a</kbd>
          </button>
          <button type="button" onClick={() => setOpen('edit')} disabled={!editable} title={editable ? undefined : 'A browser would round a number in it'}>
            Edit{all} <kbd>e</kbd>
          </button>
          {offers.length > 0 ? (
            <button type="button" disabled={unseen} title={unseen ? 'Some of it is not shown yet' : undefined} onClick={() => setOpen('grant')}>
              Always … <kbd>g</kbd>
            </button>
          ) : null}
          <button type="button" className="deny" onClick={() => setOpen('deny')}>
            Deny{all} <kbd>d</kbd>
          </button>
          {unseen && !cut ? <span className="note">Scroll to the end of the text.</span> : null}
        </div>
      )}
    </article>
  );
}

function Questions({ call }: { call: Call }) {
  const questions = call.ask?.questions ?? [];
  if (questions.length === 0) return null;
  return (
    <ul className="questions" aria-label="Why you are asked">
      {questions.map(({ askedBy, reason }, n) => (
        <li key={n}>
          <span className="asker">
            <Line text={askedBy} />
          </span>
          <Line text={reason} />
        </li>
      ))}
    </ul>
  );
}

/** Every argument, whole, unless the line above says it all; where a number would be rounded, only the text that the server made of it. */
function Exactly({ call, input, onOpen }: { call: Call; input: JsonObject; onOpen?: () => void }) {
  const { ask, part } = call;
  const changed = !same(input, part.input);
  const line = ask?.headline || headline(call.name, input);
  return (
    <>
      {isRounded(input) || saidBy(line, input) ? null : <Args label="With exactly these arguments" input={input} before={changed ? part.input : undefined} onOpen={onOpen} repeated={ask?.repeated} />}
      {changed ? (
        <details className="more">
          <summary>The layers have changed what the model asked for</summary>
          <Args label="What the model asked for" input={part.input} />
        </details>
      ) : null}
      {ask?.canonical ? (
        <details className="more" open={isRounded(input)}>
          <summary>As one line of JSON</summary>
          <pre tabIndex={0}>
            <Visible text={ask.canonical} />
          </pre>
        </details>
      ) : null}
    </>
  );
}
