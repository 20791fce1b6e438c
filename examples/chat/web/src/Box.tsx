import type { ReactNode } from 'react';

/** A box that scrolls when its text is longer; its last child marks the end of the text (`seen.ts`). */
export function Box({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className="box" role="group" aria-label={label}>
      {children}
      <i className="end" aria-hidden="true" />
    </div>
  );
}
