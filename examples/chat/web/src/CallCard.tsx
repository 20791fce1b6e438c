import { useState, type ReactNode } from 'react';

import { Args, Result } from './Args';
import { headline, same } from './args';
import type { Call, Stage } from './approval';
import { getDraft, setDraft } from './drafts';
import { Previews } from './Previews';
import { Line, Visible } from './Visible';

const SAID: Record<Stage, string> = {
  preparing: 'Being written',
  running: 'Running',
  paused: 'Waits too',
  waiting: 'Waits for you',
  yours: 'Waits for you',
  answered: 'Answered',
  done: 'Done',
  failed: 'Failed',
  denied: 'Denied',
  refused: 'Denied by policy',
  again: 'Asked again',
  expired: 'Expired',
  withdrawn: 'Withdrawn',
  cut: 'No result',
};

/** The state in words. */
export function said({ stage, part, ask, edited }: Call): string {
  if (stage === 'answered') return edited ? 'Edited' : part.approval?.approved ? 'Approved' : 'Denied';
  if (stage === 'done' && edited) return 'Edited, done';
  if (stage === 'done' && (ask?.status === 'approved' || part.approval?.approved)) return 'Approved, done';
  return SAID[stage];
}

/** The name of the tool behind the agents it was called by. */
export function Name({ call }: { call: Call }) {
  return (
    <span className="name">
      {call.agents ? (
        <span className="agents">
          <Visible text={call.agents} />
        </span>
      ) : null}
      <Visible text={call.name} />
    </span>
  );
}

/** The head of a pending card; `id` labels the card. */
export function WaitingHead({ call, id }: { call: Call; id: string }) {
  return (
    <header>
      <span className="dot" aria-hidden="true" />
      <h3 id={`${id}name`}>
        <Name call={call} />
      </h3>
      <span className="state" id={`${id}state`}>
        Waits for you
      </span>
    </header>
  );
}

/** The outcome and its reason, in a line below the call; empty for a plain result. */
function remark({ stage, part, ask }: Call): ReactNode {
  const reason = ask?.reason ?? part.approval?.reason;
  switch (stage) {
    case 'failed':
      return <Line text={part.errorText ?? ''} />;
    case 'refused':
      return <Line text={reason ?? part.errorText ?? ''} />;
    case 'denied':
      return <Line text={['It did not run.', reason && `“${reason}”`, ask?.by && `(by ${ask.by})`].filter(Boolean).join(' ')} />;
    case 'answered':
      return part.approval?.approved ? 'Goes out with the other answers.' : reason ? <Line text={`“${reason}”`} /> : null;
    case 'again':
      return <Line text={part.errorText ?? ''} />;
    case 'expired':
      return 'No answer came in time. It did not run.';
    case 'withdrawn':
      return 'The conversation continued without an answer. It did not run.';
    case 'cut':
      return 'No result arrived here. It may have run.';
    default:
      return null;
  }
}

/** The beginning of the line about a grant that has approved a call. */
const BY_GRANT = 'by grant ';

/** What has to do with a grant: the one that approved the call, or the one that was made with its approval. */
function granted({ ask }: Call): string | undefined {
  if (ask?.by?.startsWith(BY_GRANT)) return `Approved ${ask.by}.`;
  if (ask?.grant?.id) return `Later calls like it are approved by grant ${ask.grant.id}.`;
  return ask?.grant?.problem;
}

/** The arguments that run, if they differ from the model's. */
function instead({ ask, part, edited }: Call): { now: unknown; by: string } | undefined {
  if (edited) return { now: edited, by: 'edited by a person' };
  if (ask?.input && !same(ask.input, part.input)) return { now: ask.input, by: 'changed on the way by a layer' };
  return undefined;
}

/** The opened calls; a call stays open when it is drawn in another place. */
const opened = new Set<string>();

export function isOpened({ part }: Call): boolean {
  return opened.has(part.toolCallId);
}

/** A settled call: one line, which opens to all of its details. */
export function CallCard({ call }: { call: Call }) {
  const { part, stage } = call;
  const [open, setOpen] = useState(() => isOpened(call));
  const toggled = (now: boolean) => {
    if (now) opened.add(part.toolCallId);
    else opened.delete(part.toolCallId);
    setOpen(now);
  };
  const line = remark(call);
  const grant = granted(call);
  const changed = instead(call);
  const shown = changed ? changed.now : part.input;
  const runs = ['answered', 'running', 'again', 'done', 'failed'].includes(stage);
  return (
    <>
    <details className="call" data-stage={stage} data-tool={call.name} open={open} onToggle={event => toggled(event.currentTarget.open)}>
      <summary>
        <span className="dot" aria-hidden="true" />
        <span className="line">
          <Name call={call} />
          <code className="headline">
            <Visible text={headline('', shown)} />
          </code>
        </span>
        <span className="state">{said(call)}</span>
        {changed && runs ? (
          <span className="remark">
            The model asked for <code>{headline(call.name, part.input)}</code>. This was {changed.by}.
          </span>
        ) : null}
        {line ? <span className="remark">{line}</span> : null}
        {grant ? (
          <span className="remark">
            <Line text={grant} />
          </span>
        ) : null}
      </summary>
      <div className="body">
        {call.ask?.by && stage !== 'denied' ? (
          <p className="note">
            Answered {call.ask.by.startsWith(BY_GRANT) ? '' : 'by '}
            <Visible text={call.ask.by} />
          </p>
        ) : null}
        <Previews previews={call.ask?.previews ?? []} />
        {changed ? <Args label="What the model asked for" input={part.input} /> : null}
        <Args
          label={changed ? (stage === 'done' || stage === 'failed' ? 'What ran' : runs ? 'What was approved' : 'What was shown') : 'Arguments'}
          input={shown}
          before={changed ? part.input : undefined}
        />
        {part.state === 'output-available' ? <Result label="Result" value={part.output} /> : null}
        {part.state === 'output-error' ? <Result label={stage === 'failed' ? 'Error' : 'What the model was told'} value={part.errorText} /> : null}
      </div>
    </details>
    <LeftDraft ask={call.ask?.approvalId} />
    </>
  );
}

/** The draft of a person when the call was answered elsewhere: it stays until it is dismissed. */
function LeftDraft({ ask }: { ask: string | undefined }) {
  const [draft, setLeft] = useState(() => getDraft(ask));
  if (!draft?.text) return null;
  const dismiss = () => {
    setDraft(ask, undefined);
    setLeft(undefined);
  };
  return (
    <div className="banner draft">
      <div>
        <p>What you had written when this was answered elsewhere:</p>
        <pre tabIndex={0}>{draft.text}</pre>
      </div>
      <button type="button" onClick={dismiss}>
        Dismiss
      </button>
    </div>
  );
}
