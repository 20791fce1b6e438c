// A call is approved once the last row of each of its texts was in sight (rule S11).
import { useRef, useState, type RefObject } from 'react';

import { ends } from '../../../../crates/inbox/src/page/seen.js';
import { useEffect } from './effect';

/** Whether the last rows within this card have been in sight. `shown` changes when its text is another one. */
export function useThrough(card: RefObject<HTMLElement | null>, shown: unknown): boolean {
  const [through, setThrough] = useState<unknown>();
  const rows = useRef<ReturnType<typeof ends>>(undefined);
  useEffect(() => {
    const element = card.current;
    if (!element) return undefined;
    rows.current ??= ends(element, () => null);
    const look = () => rows.current?.look() && setThrough(shown ?? true);
    look();
    const timer = window.setInterval(look, 500);
    for (const event of ['scroll', 'resize']) window.addEventListener(event, look, { capture: true, passive: true });
    return () => {
      window.clearInterval(timer);
      for (const event of ['scroll', 'resize']) window.removeEventListener(event, look, { capture: true });
    };
  }, [shown]);
  return through === (shown ?? true);
}
