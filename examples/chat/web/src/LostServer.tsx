import { useState } from 'react';

import { pulse } from '../../../../crates/inbox/src/page/pulse.js';
import { useEffect } from './effect';

/** Says that the server is lost, for as long as it is. It lies over the page, so that nothing moves. */
export function LostServer() {
  const [lost, setLost] = useState(false);
  useEffect(() => pulse('/api/alive', there => setLost(!there)), []);
  if (!lost) return null;
  return (
    <div className="lost" role="alert">
      <strong>The server cannot be reached.</strong> What you see may be old. Answers go out when it is back and you send them.
    </div>
  );
}
