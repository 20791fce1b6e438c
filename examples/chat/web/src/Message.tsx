import { isToolUIPart } from 'ai';
import type { ReactNode } from 'react';

import { AskCard, type Answer, type Held } from './AskCard';
import { calls, inGroups, type Call, type ChatMessage, type JsonObject } from './approval';
import { CallCard } from './CallCard';
import { GiveCard } from './GiveCard';
import { Ran, stretches } from './Ran';
import { Prose } from './Prose';
import { Visible } from './Visible';

export type Answers = {
  answer: (call: Call, answer: Answer) => void;
  give: (call: Call, text: string | undefined) => void;
  hold: (call: Call, held: Held | undefined) => void;
  /** Shows equal calls one by one. */
  split: (calls: readonly Call[]) => void;
  /** Asks about all that are left. */
  all: (verb: 'approve' | 'deny') => void;
};

type Props = Answers & {
  message: ChatMessage;
  last: boolean;
  busy: boolean;
  edits: ReadonlyMap<string, JsonObject>;
  apart: ReadonlySet<string>;
};

/** `equal` are the calls that are answered with this one, itself among them. */
function Card({ call, equal, answer, give, hold, split, all }: Answers & { call: Call; equal: readonly Call[] }) {
  if (call.stage === 'waiting') {
    return (
      <AskCard
        call={call}
        times={equal.length}
        onAnswer={given => equal.forEach(it => answer(it, given))}
        onHeld={held => equal.forEach(it => hold(it, held))}
        onApart={() => split(equal)}
        onAll={all}
      />
    );
  }
  if (call.stage === 'yours') {
    return <GiveCard call={call} onGive={text => give(call, text)} onRefuse={() => give(call, undefined)} />;
  }
  return <CallCard call={call} />;
}

/** One message: what was said, and the calls where they were made. */
export function Message({ message, last, busy, edits, apart, ...answers }: Props) {
  const found = calls(message, { last, busy }, edits);
  const rows = stretches(message.parts, found);
  const groups = new Map(inGroups(found.values(), apart).map(equal => [equal[0], equal]));
  const parts: ReactNode[] = [];
  message.parts.forEach((part, n) => {
    const call = isToolUIPart(part) ? found.get(part.toolCallId) : undefined;
    const equal = call && groups.get(call);
    // A card for several is another one than a card for one of them: what is held back or opened there is not taken over.
    const row = call && rows.get(call);
    if (row) {
      if (row[0] === call) parts.push(<Ran key={`ran ${call.part.toolCallId}`} calls={row} />);
    } else if (call && equal) parts.push(<Card key={`${call.part.toolCallId} ×${equal.length}`} call={call} equal={equal} {...answers} />);
    else if (part.type === 'text' && part.text && message.role === 'user') {
      parts.push(
        <p key={n} className="said">
          <Visible text={part.text} kind="prose" />
        </p>,
      );
    } else if (part.type === 'text' && part.text) parts.push(<Prose key={n} text={part.text} />);
    else if (part.type === 'reasoning' && part.text) {
      parts.push(
        <details key={n} className="more">
          <summary>What the model thought</summary>
          <Prose text={part.text} />
        </details>,
      );
    }
  });
  return (
    <section className={`message ${message.role}`} aria-label={message.role === 'user' ? 'You' : 'Assistant'}>
      {parts}
    </section>
  );
}
