import { isToolUIPart } from 'ai';
import type { ReactNode } from 'react';

import { AskCard, type Answer, type Held } from './AskCard';
import { calls, type Call, type ChatMessage, type JsonObject } from './approval';
import { CallCard } from './CallCard';
import { GiveCard } from './GiveCard';
import { Prose } from './Prose';
import { Visible } from './Visible';

export type Answers = {
  answer: (call: Call, answer: Answer) => void;
  give: (call: Call, text: string | undefined) => void;
  hold: (call: Call, held: Held | undefined) => void;
};

type Props = Answers & { message: ChatMessage; last: boolean; busy: boolean; edits: ReadonlyMap<string, JsonObject> };

function Card({ call, answer, give, hold }: Answers & { call: Call }) {
  if (call.stage === 'waiting') return <AskCard call={call} onAnswer={it => answer(call, it)} onHeld={held => hold(call, held)} />;
  if (call.stage === 'yours') {
    return <GiveCard call={call} onGive={text => give(call, text)} onRefuse={() => give(call, undefined)} />;
  }
  return <CallCard call={call} />;
}

/** One message: what was said, and the calls where they were made. */
export function Message({ message, last, busy, edits, answer, give, hold }: Props) {
  const found = calls(message, { last, busy }, edits);
  const parts: ReactNode[] = [];
  message.parts.forEach((part, n) => {
    const call = isToolUIPart(part) ? found.get(part.toolCallId) : undefined;
    if (call) parts.push(<Card key={call.part.toolCallId} call={call} answer={answer} give={give} hold={hold} />);
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
