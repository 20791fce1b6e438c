// A page without events, whose request was decided elsewhere: a click names the decider, and is no error.

import assert from "node:assert/strict";

import { checked, scenario } from "../lib/harness.mjs";
import { approve, card, change, comeIn, decided, elsewhere, freeze, notice, waiting } from "../lib/inbox.mjs";

await scenario(async ({ url, person }) => {
  const ann = await elsewhere(url, "ann");
  const bob = await elsewhere(url, "bob");
  const carol = await comeIn(await person("carol"));

  await ann.start('delete_file {"path": "a.log"}');
  await waiting(carol, 1);
  await freeze(carol);
  assert.equal((await bob.decide("delete_file", { verdict: "deny", message: "no" })).status, 200);
  assert.equal(await card(carol, "delete_file").count(), 1, "it still looks as if it waits");
  await approve(carol, "delete_file");
  const told = notice(carol, "already decided by bob: denied, ");
  await told.waitFor();
  assert.match(await told.innerText(), /denied, \d\d:\d\d\. Your click changed nothing\./);
  await waiting(carol, 0);
  checked("a late click gets the winner, the decision and its time, and the request disappears");
  carol.quiet(/status of 409/);

  // Live, in the middle of typing: the page says why the card goes.
  await carol.page.unrouteAll();
  await carol.page.reload();
  await ann.start('delete_file {"path": "b.log"}');
  const { field } = await change(carol, "delete_file");
  await field.fill('{"path": "half typ');
  await bob.decide("delete_file", { verdict: "approve" });
  await notice(carol, "delete_file: decided by bob: approved, ").waitFor();
  await decided(carol, "ran", "b.log", "approved by bob");
  carol.quiet(/status of 409/);
});
