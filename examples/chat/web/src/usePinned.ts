import { useRef } from 'react';

import { useEffect, useLayoutEffect } from './effect';

/** Keeps a page that grows at its end, until somebody scrolls up. */
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
  // whatever was drawn may have made it longer
  useLayoutEffect(() => {
    const box = page.current;
    if (on && box && pinned.current) box.scrollTop = box.scrollHeight;
  });
  return page;
}
