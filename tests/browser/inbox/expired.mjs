// A deadline that passes: on a live page, and on one without events.

import assert from "node:assert/strict";

import { eventually, scenario } from "../lib/harness.mjs";
import { approve, card, comeIn, decided, elsewhere, freeze, notice, waiting } from "../lib/inbox.mjs";

await scenario(async ({ url, person }) => {
  const ann = await elsewhere(url, "ann");
  const [bob, carol] = [await comeIn(await person("bob")), await comeIn(await person("carol"))];
  await ann.start('restart_server {"host": "db-2"}');
  for (const viewer of [bob, carol]) await waiting(viewer, 1);
  await freeze(carol);
  await waiting(bob, 0);
  await decided(bob, "expired", "expired without a decision");
  await eventually("the page counts down by itself", async () => {
    assert.match(await card(carol, "restart_server").innerText(), /time is over/);
  });
  await approve(carol, "restart_server");
  await notice(carol, "Too late: its time is over. It does not run.").waitFor();
  await waiting(carol, 0);
  bob.quiet();
  carol.quiet(/status of 410/);
});
