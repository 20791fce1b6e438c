// A denial with a message, which the agent is told word for word.

import { scenario } from "../lib/harness.mjs";
import { comeIn, decided, deny, elsewhere, notice, waiting } from "../lib/inbox.mjs";

await scenario(async ({ url, person }) => {
  await (await elsewhere(url, "ann")).start('delete_file {"path": "a.log"}');
  const bob = await comeIn(await person("bob"));
  await waiting(bob, 1);
  await deny(bob, "delete_file", 'Not today: "a.log" <b>stays</b>.\nAsk again on Monday — 日本 ✓');
  await notice(bob, "delete_file: denied.").waitFor();
  await decided(bob, "denied", "denied by bob", "<b>stays</b>");
  await waiting(bob, 0);
  bob.quiet();
});
