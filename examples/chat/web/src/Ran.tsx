import { isToolUIPart } from 'ai';
import { useState } from 'react';

import type { Call, ChatMessage } from './approval';
import { CallCard, isOpened } from './CallCard';
import { Visible } from './Visible';

/** So many calls that ran, one after the other, are one row. */
const MANY = 4;

/** The calls that have run and stand in one row, each with all of its row. Text between calls ends a row. */
export function stretches(parts: ChatMessage['parts'], found: ReadonlyMap<string, Call>): Map<Call, Call[]> {
  const out = new Map<Call, Call[]>();
  let row: Call[] = [];
  const end = () => {
    if (row.length >= MANY) for (const call of row) out.set(call, row);
    row = [];
  };
  for (const part of parts) {
    const call = isToolUIPart(part) ? found.get(part.toolCallId) : undefined;
    if (call?.stage === 'done') row.push(call);
    else if (call || ((part.type === 'text' || part.type === 'reasoning') && part.text)) end();
  }
  end();
  return out;
}

/** How often each tool is among them, most often first. */
function tools(calls: readonly Call[]): [string, number][] {
  const found = new Map<string, number>();
  for (const { agents, name } of calls) found.set(agents + name, (found.get(agents + name) ?? 0) + 1);
  return [...found].sort(([, a], [, b]) => b - a);
}

/** Calls that ran, as one line; behind it each of them. */
export function Ran({ calls }: { calls: readonly Call[] }) {
  const approved = calls.filter(call => call.part.approval?.approved).length;
  // A call that a person was reading when it became a part of the row stays in view.
  const [open, setOpen] = useState(() => calls.some(isOpened));
  return (
    <details className="ran" open={open} onToggle={event => event.target === event.currentTarget && setOpen(event.currentTarget.open)}>
      <summary>
        <span className="dot" aria-hidden="true" />
        <span className="line">
          <strong>{calls.length} calls ran</strong>{' '}
          {tools(calls).map(([name, times]) => (
            <span key={name} className="tally">
              <code>
                <Visible text={name} />
              </code>
              {times > 1 ? ` ×${times} ` : ' '}
            </span>
          ))}
        </span>
        <span className="state">{approved > 0 ? `${approved} approved` : 'Done'}</span>
      </summary>
      <div className="rows">
        {calls.map(call => (
          <CallCard key={call.part.toolCallId} call={call} />
        ))}
      </div>
    </details>
  );
}
