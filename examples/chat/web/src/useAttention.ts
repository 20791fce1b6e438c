import { useRef, useState, type RefObject } from 'react';

import { inGroups, type Call } from './approval';
import { headline } from './args';
import { useEffect } from './effect';
import { hand } from './arming';

/** A person who typed within this time keeps the focus. */
const TYPING_MS = 1000;

/**
 * Announces pending calls, and focuses the first one, unless the person is writing. When a card is answered, the next one gets
 * the focus, and after the last one the message box.
 */
export function useAttention(
  open: readonly Call[],
  busy: boolean,
  input: RefObject<HTMLTextAreaElement | null>,
  page: RefObject<HTMLElement | null>,
): string {
  const [announced, setAnnounced] = useState('');
  const typed = useRef(0);
  const before = useRef<string[]>([]);
  const ids = open.map(call => call.part.toolCallId);
  const key = ids.join(' ');

  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      // a message that was sent is no longer being written
      if (event.key === 'Enter') typed.current = 0;
      else if (event.key.length === 1) typed.current = Date.now();
    };
    document.addEventListener('keydown', key, true);
    return () => document.removeEventListener('keydown', key, true);
  }, []);

  useEffect(() => {
    document.title = open.length > 0 ? `(${open.length}) Countersign` : 'Countersign';
  }, [open.length]);

  useEffect(() => {
    const known = before.current;
    before.current = ids;
    const fresh = open.filter(call => !known.includes(call.part.toolCallId));
    if (fresh.length > 0) {
      const name = ({ ask, name, part }: Call) => ask?.headline || headline(name, part.input);
      const names = inGroups(fresh)
        .flatMap(equal => equal.slice(0, 1).map(call => name(call) + (equal.length > 1 ? `, ${equal.length} times` : '')))
        .join('; ');
      setAnnounced(`${open.length === 1 ? 'A call waits' : `${open.length} calls wait`} for your answer: ${names}`);
    } else if (busy) {
      setAnnounced('');
    } else if (known.length > 0 && ids.length === 0) {
      setAnnounced('No call is pending any more.');
    }
    const answered = known.some(id => !ids.includes(id));
    if (fresh.length > 0 || (answered && ids.length > 0)) {
      if (isFree(input.current, answered || Date.now() - typed.current > TYPING_MS)) {
        show(page.current);
      }
    } else if (answered && document.activeElement === document.body) {
      input.current?.focus();
    }
    // the calls themselves are new objects each time
  }, [key, busy]);
  return announced;
}

/** Gives the first card the focus, and shows it from its top. */
function show(page: HTMLElement | null) {
  const card = page?.querySelector<HTMLElement>('.ask');
  if (!page || !card) return;
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: card.offsetHeight > page.clientHeight ? 'start' : 'nearest' });
  // the page is where it was put, and not at its end any more
  page.dispatchEvent(new Event('scroll'));
  hand.unsettle();
}

/** Whether the focus is on no control. */
function isFree(input: HTMLTextAreaElement | null, idle: boolean): boolean {
  const at = document.activeElement;
  if (!at || at === document.body) return true;
  return at === input && input.value === '' && idle;
}
