import { useChat } from '@ai-sdk/react';
import { useMemo, useRef, useState } from 'react';
import { flushSync } from 'react-dom';

import { again } from './again';
import type { Answer, Held } from './AskCard';
import { waiting, type Call, type ChatMessage, type Grant, type JsonObject } from './approval';
import { Composer } from './Composer';
import { useEffect } from './effect';
import { forgetAnswers, keepAnswer, keepResult, result, withAnswers } from './answers';
import { Message } from './Message';
import { Empty, Failed, Notice, Unsent } from './notices';
import { halt, isConflict, problem, sender } from './server';
import { whenAnswered } from './send';
import { useAttention } from './useAttention';
import { useElsewhere } from './useElsewhere';
import { usePinned } from './usePinned';
import { WaitBar } from './WaitBar';

type Props = { id: string; initial: ChatMessage[]; fresh: boolean; onSaid: (text: string) => void };

/** One conversation, from its history to the next message. */
export function Conversation({ id, initial, fresh, onSaid }: Props) {
  const [edits] = useState(() => new Map<string, JsonObject>());
  const [notice, setNotice] = useState<string>();
  const [idle, setIdle] = useState(false);
  const [grants] = useState(() => new Map<string, Grant>());
  const to = useMemo(() => sender(edits, grants, () => setIdle(true)), [edits, grants]);
  const [answers] = useState(whenAnswered);
  const [stopped, setStopped] = useState(false);
  const [draft, setDraft] = useState({ text: '' });
  const input = useRef<HTMLTextAreaElement>(null);
  const [all, setAll] = useState<'approve' | 'deny'>();
  const [apart, setApart] = useState<ReadonlySet<string>>(new Set());
  const [held, setHeld] = useState<ReadonlyMap<string, Held>>(new Map());
  const [begun] = useState(() => withAnswers(id, initial, edits, grants));
  const [restored, setRestored] = useState(begun.given > 0);
  const chat = useChat<ChatMessage>({
    id,
    messages: begun.messages,
    transport: to.transport,
    resume: !fresh,
    throttle: 40,
    sendAutomaticallyWhen: it => answers.goOut(it.messages as ChatMessage[]),
    onFinish: ({ isError }) => isError || elsewhere.tell(),
    onError: error => {
      if (!isConflict(error)) return;
      setNotice(`${problem(error)} The conversation was loaded again.`);
      void back(chat.messages.at(-1));
    },
  });
  const { messages, status, error } = chat;
  const busy = status === 'submitted' || status === 'streaming';
  const open = busy ? [] : waiting(messages);
  const elsewhere = useElsewhere(chat, open.length > 0, found => {
    const fresh = withAnswers(id, found, edits, grants);
    setRestored(fresh.given > 0);
    return fresh.messages;
  });
  // A response may have ended between the history and the look for it.
  const unanswered = idle && !busy && !error && messages.at(-1)?.role === 'user';
  useEffect(() => void (unanswered && elsewhere.refresh()), [unanswered]);
  const page = usePinned(messages.length > 0);
  const announced = useAttention(open, busy, input, page);

  /** Shows the server's messages. A message that the server did not accept can be sent again. */
  const back = async (said: ChatMessage | undefined) => {
    const text = said?.role === 'user' ? said.parts.map(part => (part.type === 'text' ? part.text : '')).join('') : '';
    if (text && (await elsewhere.refresh(said?.id))) return;
    if (await elsewhere.refresh()) setDraft({ text });
  };
  const send = (text: string) => {
    setNotice(undefined);
    setStopped(false);
    setIdle(false);
    setRestored(false);
    onSaid(text);
    void chat.sendMessage({ text });
  };
  const answer = (call: Call, given: Answer) => {
    const ask = call.part.approval?.id ?? call.ask?.approvalId;
    if (!ask) return;
    setNotice(undefined);
    if (given.approved && given.edited) edits.set(ask, given.edited);
    else edits.delete(ask);
    if (given.approved && given.grant) grants.set(ask, given.grant);
    else grants.delete(ask);
    const reason = given.approved ? undefined : given.reason;
    keepAnswer(id, ask, call, given);
    setRestored(false);
    answers.given();
    void chat.addToolApprovalResponse({ id: ask, approved: given.approved, ...(reason && { reason }) });
  };
  const give = ({ name: tool, part: { toolCallId } }: Call, text: string | undefined) => {
    keepResult(id, toolCallId, text ?? null);
    setRestored(false);
    answers.given();
    void chat.addToolOutput({ tool: tool as never, toolCallId, ...(result(text ?? null) as { state: 'output-available'; output: never }) });
  };
  const hold = ({ part: { toolCallId } }: Call, why: Held | undefined) => {
    setHeld(now => {
      const next = new Map(now);
      if (why) next.set(toolCallId, why);
      else next.delete(toolCallId);
      return next;
    });
  };
  const split = (equal: readonly Call[]) => {
    const ask = equal[0]?.ask;
    if (!ask?.group) return;
    const group = ask.group;
    flushSync(() => setApart(now => new Set([...now, group])));
    page.current?.querySelector<HTMLElement>(`[data-ask="${CSS.escape(ask.approvalId)}"]`)?.focus({ preventScroll: true });
  };
  const answerAgain = () => {
    forgetAnswers(id);
    setRestored(false);
    void elsewhere.refresh();
  };
  const stop = () => {
    setStopped(true);
    void halt(id);
    void chat.stop();
  };
  const goOn = () => {
    setStopped(false);
    setRestored(false);
    void chat.sendMessage();
  };
  return (
    <main className="conversation" onKeyDown={event => event.key === 'Escape' && busy && stop()}>
      <div className="scroll" ref={page}>
        <div className="messages">
          {messages.length === 0 && !busy ? <Empty onPick={send} /> : <h1 className="sr-only">Conversation</h1>}
          {messages.map((message, n) => (
            <Message
              key={message.id}
              message={message}
              last={n === messages.length - 1}
              busy={busy && n === messages.length - 1}
              edits={edits}
              answer={answer}
              give={give}
              hold={hold}
              apart={apart}
              split={split}
              all={setAll}
            />
          ))}
          {busy && messages.at(-1)?.role === 'user' ? <p className="thinking">The assistant is at work</p> : null}
          {(stopped && !busy) || unanswered ? (
            <Notice text={stopped ? 'Stopped.' : 'There is no answer yet.'} action="Continue" onAction={goOn} />
          ) : null}
          {restored && !busy && !error && open.length === 0 ? <Unsent onSend={goOn} onAgain={answerAgain} /> : null}
          {notice ? <Notice text={notice} action="Close" onAction={() => setNotice(undefined)} /> : null}
          {error && !isConflict(error) ? <Failed text={problem(error)} onAgain={() => void again(chat, to, elsewhere.refresh)} onReload={() => void elsewhere.refresh()} /> : null}
        </div>
      </div>
      <footer>
        <WaitBar open={open} apart={apart} held={held} all={all} onAll={setAll} onAnswerAll={(calls, given) => calls.forEach(call => answer(call, given))} />
        <Composer input={input} draft={draft} busy={busy} waits={open.length} onSend={send} onStop={stop} />
      </footer>
      <p className="sr-only" role="status" aria-live="polite">
        {announced}
      </p>
    </main>
  );
}
