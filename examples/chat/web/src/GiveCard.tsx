import { useId } from 'react';

import type { Call } from './approval';
import { WaitingHead } from './CallCard';
import { GiveForm } from './forms';

/** A tool whose body is a person at this page. */
export function GiveCard({ call, onGive, onRefuse }: { call: Call; onGive: (text: string) => void; onRefuse: () => void }) {
  const id = useId();
  return (
    <article className="call ask" data-stage="yours" data-tool={call.name} tabIndex={0} aria-labelledby={`${id}name ${id}state`}>
      <WaitingHead call={call} id={id} />
      <p className="note">The assistant asks, and only you can tell. It goes to the assistant as you write it.</p>
      <GiveForm onGive={onGive} onRefuse={onRefuse} />
    </article>
  );
}
