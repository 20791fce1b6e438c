// Elided text has to be opened before its call can be approved, also in a proposal.

import assert from "node:assert/strict";

import { checked, scenario } from "../lib/harness.mjs";
import { button, card, change, comeIn, decided, deny, elsewhere, notice, readWhole, waiting } from "../lib/inbox.mjs";

const HIDDEN = "and the rest to DE99";
const long = (n) => `${`Invoice ${n}. `.repeat(300)}${HIDDEN}${" Thank you.".repeat(300)}`;

await scenario(async ({ url, person }) => {
  const ann = await elsewhere(url, "ann");
  const [bob, carol] = [await comeIn(await person("bob")), await comeIn(await person("carol"))];
  await ann.start(`transfer ${JSON.stringify({ amount_eur: 1, to: "DE02", reference: long(1) })}`);
  for (const person of [bob, carol]) await waiting(person, 1);
  const it = card(bob, "transfer");
  const yes = button(it, /^Approve transfer/);
  assert.ok(!(await it.innerText()).includes(HIDDEN), "it is left out at first");
  assert.ok(await yes.isDisabled());
  await button(it, "Show everything").click();
  await it.getByText(HIDDEN).waitFor();
  assert.ok(!(await it.innerText()).includes("characters left out"));
  assert.ok(await yes.isDisabled(), "its last row was not in sight");
  await readWhole(it);
  await yes.click();
  await notice(bob, "your approval counts, 1 of 2").waitFor();
  checked("a call is approved when everything of it is shown");
  await deny(carol, "transfer", "");
  checked("a call is denied unseen");
  for (const person of [bob, carol]) await waiting(person, 0);

  await ann.start('transfer {"amount_eur": 1, "to": "DE02"}');
  for (const person of [bob, carol]) await waiting(person, 1);
  const edit = await change(bob, "transfer");
  await edit.field.fill(JSON.stringify({ amount_eur: 2, to: "DE02", reference: long(2) }));
  await edit.approve.click();
  const proposal = card(carol, "transfer").locator(".proposal");
  await proposal.filter({ hasText: "bob approved with changes" }).waitFor();
  const too = button(proposal, "Approve these arguments too");
  assert.ok(await too.isDisabled());
  await button(proposal, "Show everything").click();
  await proposal.getByText(HIDDEN).waitFor();
  await too.click();
  await decided(carol, "ran", "approved with changes by bob and carol", "transferred 2 EUR");
  checked("the proposal of another person has to be opened, too");
  bob.quiet();
  carol.quiet();
});
