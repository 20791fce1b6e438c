import { useRef } from 'react';

import { useEffect, useLayoutEffect } from './effect';
import { hand } from './arming';

/** Keeps a page that grows at its end, until the person scrolls up. */
export function usePinned(on: boolean) {
  const page = useRef<HTMLDivElement>(null);
  const pinned = useRef(true);
  useEffect(() => {
    const box = page.current;
    if (!box) return;
    const scrolled = () => {
      pinned.current = box.scrollHeight - box.scrollTop - box.clientHeight < 80;
    };
    box.addEventListener('scroll', scrolled, { passive: true });
    return () => box.removeEventListener('scroll', scrolled);
  }, []);
  // each drawing may have made it longer
  useLayoutEffect(() => {
    const box = page.current;
    if (!on || !box || !pinned.current) return;
    const before = box.scrollTop;
    box.scrollTop = box.scrollHeight;
    if (box.scrollTop !== before) hand.unsettle();
  });
  return page;
}
