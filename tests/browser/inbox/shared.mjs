// Two servers over one store: a decision at one of them appears at the other by itself.

import { scenario } from "../lib/harness.mjs";
import { approve, comeIn, decided, deny, startRun, waiting } from "../lib/inbox.mjs";

await scenario(async ({ url, others, person }) => {
  const ann = await comeIn(await person("ann", url));
  const bob = await comeIn(await person("bob", others[0]));
  await startRun(ann);
  await waiting(ann, 5);
  await waiting(bob, 5);
  await approve(bob, "delete_file", "session-cache");
  await waiting(ann, 4);
  await decided(ann, "ran", "approved by bob", "deleted tmp/session-cache");
  await deny(ann, "restart_server", "not now");
  await waiting(bob, 3);
  await decided(bob, "denied by ann", "not now");
  ann.quiet();
  bob.quiet();
});
