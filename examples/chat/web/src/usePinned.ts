import { useEffect, useLayoutEffect, useRef } from 'react';

/** Keeps a page that grows at its end, until somebody scrolls up. */
export function usePinned(content: unknown) {
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
  useLayoutEffect(() => {
    const box = page.current;
    if (box && pinned.current) box.scrollTop = box.scrollHeight;
  }, [content]);
  return page;
}
