import { useRef, useState, type RefObject } from 'react';

import { useEffect } from './effect';

type Props = {
  input: RefObject<HTMLTextAreaElement | null>;
  /** The text that was written before, and not sent. */
  draft: { text: string };
  busy: boolean;
  waits: number;
  onSend: (text: string) => void;
  onStop: () => void;
};

/** Where the next message is written. */
export function Composer({ input, draft, busy, waits, onSend, onStop }: Props) {
  const [text, setText] = useState('');
  const composing = useRef(false);
  useEffect(() => {
    setText(now => now || draft.text);
  }, [draft]);
  useEffect(() => {
    const box = input.current;
    if (!box) return;
    box.rows = Math.min(8, text.split('\n').length);
  }, [input, text]);
  const send = () => {
    if (busy || !text.trim()) return;
    onSend(text.trim());
    setText('');
  };
  return (
    <form
      className="composer"
      onSubmit={event => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        ref={input}
        aria-label="Message"
        value={text}
        rows={1}
        placeholder={waits > 0 ? 'A new message withdraws the pending calls' : 'Write to the assistant'}
        onChange={event => setText(event.target.value)}
        onCompositionStart={() => (composing.current = true)}
        onCompositionEnd={() => (composing.current = false)}
        onKeyDown={event => {
          if (event.key !== 'Enter' || event.shiftKey || composing.current) return;
          event.preventDefault();
          send();
        }}
      />
      {busy ? (
        <button type="button" className="stop" onClick={onStop}>
          <span className="square" aria-hidden="true" /> Stop
        </button>
      ) : (
        <button type="submit" className="primary" disabled={!text.trim()}>
          Send
        </button>
      )}
    </form>
  );
}
