import { useState } from 'react';

import { inGroups, type Call } from './approval';
import type { Answer, Held } from './AskCard';
import { useEffect } from './effect';

/** More than so many calls are denied at once only after a second click (rule S8). */
const MANY = 10;

/** What is left out of "all", and why. */
const WHY: readonly (readonly [Held, string])[] = [
  ['unseen', 'with text that is not shown yet'],
  ['cut', 'with a preview that is too long to be shown whole'],
  ['open', 'that you are answering'],
];

type Props = {
  open: readonly Call[];
  apart: ReadonlySet<string>;
  held: ReadonlyMap<string, Held>;
  /** The answer to all that are left that a key has chosen. It is asked about in any case. */
  all: 'approve' | 'deny' | undefined;
  onAll: (verb: 'approve' | 'deny' | undefined) => void;
  onAnswerAll: (calls: readonly Call[], answer: Answer) => void;
};

/** How much waits, when it is more than one card. What was not seen whole is denied with the others, but not approved. */
export function WaitBar({ open, apart, held, all, onAll, onAnswerAll }: Props) {
  const [asked, setAsked] = useState<string>();
  const asks = open.filter(call => call.stage === 'waiting');
  // What a key has chosen is not about calls that come later.
  useEffect(() => {
    if (asks.length === 0 && all) onAll(undefined);
  }, [asks.length, all]);
  if (asks.length === 0 || (!all && inGroups(asks, apart).length < 2)) return null;
  const why = (call: Call) => held.get(call.part.toolCallId);
  const ready = asks.filter(call => !why(call));
  const denied = asks.filter(call => why(call) !== 'open');
  const left = WHY.flatMap(([kind, words]) => {
    const count = asks.filter(call => why(call) === kind).length;
    return count > 0 ? [`${count} ${words}`] : [];
  });
  const label = (verb: string, some: readonly Call[]) => (some.length === asks.length ? `${verb} all ${asks.length}` : `${verb} ${some.length} of ${asks.length}`);
  const close = () => {
    setAsked(undefined);
    onAll(undefined);
  };
  const deny = () => {
    close();
    onAnswerAll(denied, { approved: false });
  };
  const approve = () => {
    close();
    onAnswerAll(ready, { approved: true });
  };
  // A question about other calls than these is not answered by a yes.
  const these = denied.map(call => call.part.toolCallId).join(' ');
  // Each form has a key of its own, so that its first button is a new one and takes the focus.
  if (all === 'approve') {
    return (
      <div key="approve" className="wait-bar" role="alertdialog" aria-label="Approve all?" onKeyDown={event => event.key === 'Escape' && close()}>
        <span>
          <strong>Approve {ready.length === 1 ? '1 call' : `${ready.length} calls`}?</strong> {left.length > 0 ? `Left out: ${left.join(', ')}.` : null}
        </span>
        <div className="actions">
          <button type="button" className="primary" disabled={ready.length === 0} onClick={approve}>
            Yes, approve {ready.length === 1 ? '1 call' : `${ready.length} calls`}
          </button>
          <button type="button" autoFocus onClick={close}>
            Keep them
          </button>
        </div>
      </div>
    );
  }
  if (all === 'deny' || (asked !== undefined && asked === these)) {
    return (
      <div key="deny" className="wait-bar" role="alertdialog" aria-label="Deny all?" onKeyDown={event => event.key === 'Escape' && close()}>
        <span>
          <strong>Deny {denied.length === 1 ? '1 call' : `${denied.length} calls`}?</strong> None of them runs, and the assistant is told so.
        </span>
        <div className="actions">
          <button type="button" className="deny filled" onClick={deny}>
            Yes, deny {denied.length === 1 ? '1 call' : `${denied.length} calls`}
          </button>
          <button type="button" autoFocus onClick={close}>
            Keep them
          </button>
        </div>
      </div>
    );
  }
  return (
    <div className="wait-bar">
      <span>
        {asks.length} calls wait for you. They run when all are answered.
        {left.length > 0 ? ` Left out of “approve all”: ${left.join(', ')}.` : null}
      </span>
      <div className="actions">
        <button type="button" disabled={ready.length === 0} onClick={() => onAnswerAll(ready, { approved: true })}>
          {label('Approve', ready)}
        </button>
        <button type="button" className="deny" disabled={denied.length === 0} onClick={() => (denied.length > MANY ? setAsked(these) : deny())}>
          {label('Deny', denied)}
        </button>
      </div>
    </div>
  );
}
