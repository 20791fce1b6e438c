// Two people have to agree on the same arguments, and neither is the requester.

import assert from "node:assert/strict";

import { checked, eventually, scenario } from "../lib/harness.mjs";
import { approve, button, card, change, comeIn, decided, deny, notice, startRun, waiting } from "../lib/inbox.mjs";

const transfer = (reference) => `transfer {"amount_eur": 100, "to": "DE02", "reference": "${reference}"}`;

async function start(ann, reference) {
  await startRun(ann, transfer(reference));
  await waiting(ann, 1);
}

async function progress(person, text) {
  await eventually(`${person.name} sees: ${text}`, async () => {
    const shown = await card(person, "transfer").innerText();
    assert.ok(shown.includes(text), shown);
  });
}

await scenario(async ({ person }) => {
  const [ann, bob, carol] = [await person("ann"), await person("bob"), await person("carol")];
  for (const person of [ann, bob, carol]) await comeIn(person);

  await start(ann, "first");
  await progress(ann, "0 of 2 approvals");
  await progress(ann, "You asked for this: others have to approve it.");
  assert.ok(await button(card(ann, "transfer"), /^Approve /).isDisabled());
  const order = await card(ann, "transfer").evaluate((it) =>
    [...it.querySelectorAll(".runs, .quorum, .details, .actions")].map((part) => part.className.split(" ").at(-1)));
  assert.deepEqual(order, ["runs", "quorum", "details", "actions"], "the votes stand above Details, and the buttons are the last");
  checked("the parts have the order of every surface");
  await approve(bob, "transfer");
  await notice(bob, "your approval counts, 1 of 2").waitFor();
  for (const person of [ann, bob, carol]) await progress(person, "1 of 2 approvals");
  await progress(carol, "bob approved");
  await progress(bob, "You have approved. Others have to agree.");
  assert.ok(await button(card(bob, "transfer"), /^Approve /).isDisabled(), "no person counts twice");
  await approve(carol, "transfer");
  await decided(ann, "ran", "approved by bob and carol", "transferred 100 EUR to DE02");

  await start(ann, "second");
  const edit = await change(bob, "transfer");
  await edit.field.fill('{"amount_eur": 50, "to": "DE02"}');
  await edit.approve.click();
  await progress(carol, "bob approved with changes");
  await progress(carol, "50");
  checked("an edit is a proposal, and others see it");
  await button(card(carol, "transfer"), "Approve these arguments too").click();
  await decided(ann, "ran", "approved with changes by bob and carol", "transferred 50 EUR to DE02");

  await start(ann, "third");
  await approve(bob, "transfer");
  await progress(carol, "1 of 2 approvals");
  await deny(carol, "transfer", "No budget.");
  await decided(ann, "denied", "denied by carol", "No budget.");
  for (const person of [ann, bob, carol]) await waiting(person, 0);
  for (const person of [ann, bob, carol]) person.quiet();
});
