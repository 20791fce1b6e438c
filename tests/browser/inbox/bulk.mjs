// Many calls at once: selected, listed, confirmed; what arrives or changes meanwhile is not decided, and what was not shown
// is left out.

import assert from "node:assert/strict";

import { checked, eventually, scenario } from "../lib/harness.mjs";
import { button, card, comeIn, elsewhere, notice, sent, waiting } from "../lib/inbox.mjs";

const files = (from, to) => Array.from({ length: to - from }, (_, n) => `delete_file {"path": "${from + n}.log"}`).join("\n");

await scenario(async ({ url, person }) => {
  const ann = await elsewhere(url, "ann");
  await ann.start(files(0, 12));
  await ann.start('edit_config {"file": "nginx.conf", "text": "worker_processes 8;\\n"}');
  const bob = await comeIn(await person("bob"));
  const { page } = bob;
  const decisions = sent(bob);
  await waiting(bob, 13);
  await page.getByLabel("Compact").check();
  await eventually("they are rows", async () => assert.equal(await page.locator(".row-card").count(), 13));
  const choose = (text, tool = "delete_file") => card(bob, tool, text).getByRole("checkbox").check();
  const bulk = page.locator("#bulk");

  await choose("", "edit_config");
  assert.match(await bulk.innerText(), /1 selected Skipped: 1 of which not all was shown/);
  assert.ok(await button(bulk, "Approve 0").isDisabled(), "its row does not show the change");
  await button(bulk, "Open 1").click();
  await page.getByRole("figure", { name: "Preview: nginx.conf" }).waitFor();
  await button(bulk, "Approve 1").waitFor();
  checked("what a row does not say has to be opened");
  await button(bulk, "Drop selection").click();
  assert.ok(await bulk.isHidden());

  for (const n of [0, 1, 2]) await choose(`"${n}.log"`);
  await button(bulk, "Approve 3").click();
  await bulk.getByText("Approve 3 calls?").waitFor();
  assert.deepEqual(await bulk.locator("li .text").allInnerTexts(), [0, 1, 2].map((n) => `An agent wants to call delete_file(path: "${n}.log")`));
  assert.match(await bulk.locator("li").first().innerText(), /Policy: deletes a file for good/);
  // Meanwhile another call arrives, and one of the listed ones is denied by another person.
  await ann.start('delete_file {"path": "late.log"}');
  await page.getByRole("button", { name: "1 new: show" }).waitFor();
  const carol = await elsewhere(url, "carol");
  const other = (await carol.asks()).find((ask) => ask.view.headline.includes('"1.log"'));
  assert.equal((await carol.decide("", { verdict: "deny", message: "keep it" }, other)).status, 200);
  await page.locator(".gone").filter({ hasText: "decided by carol" }).waitFor();
  assert.equal(await bulk.locator("li").count(), 3, "what was listed stays listed");
  assert.equal(decisions.length, 0, "so far nothing is decided");
  await button(bulk, "Approve these 3").click();
  await notice(bob, "2 approved.").waitFor();
  const asked = decisions.flatMap((it) => it.decisions);
  assert.ok(asked.length <= 3 && asked.every(({ verdict, fingerprint }) => verdict === "approve" && /^[0-9a-f]{64}$/.test(fingerprint)));
  assert.equal(new Set(asked.map((it) => it.fingerprint)).size, asked.length, "each is bound to its own fingerprint");
  const left = (await ann.asks()).map((ask) => ask.view.headline);
  assert.ok(left.some((line) => line.includes('"late.log"')), "what came meanwhile is not decided");
  assert.equal(left.length, 11);
  checked("what is listed is approved, each by its own fingerprint, and nothing that came meanwhile");

  decisions.length = 0;
  await page.locator("#new").click();
  await waiting(bob, 11);
  for (const box of await page.locator("article").filter({ hasText: "delete_file" }).getByRole("checkbox").all()) await box.check();
  for (let n = 0; n < 2; n += 1) await choose("", "edit_config");
  await card(bob, "edit_config").getByRole("checkbox").uncheck();
  await eventually("ten are selected", async () => assert.match(await bulk.innerText(), /10 selected/));
  await ann.start(files(20, 22));
  await page.getByRole("button", { name: "2 new: show" }).click();
  await waiting(bob, 13);
  assert.match(await bulk.innerText(), /10 selected/, "what is new is not selected");
  for (const n of [20, 21]) await choose(`"${n}.log"`);
  await button(bulk, "Approve 12").click();
  const act = button(bulk, "Approve these 12");
  assert.ok(await act.isDisabled());
  await bulk.getByLabel("Type 12 to confirm").fill("11");
  assert.ok(await act.isDisabled(), "the number is not the one");
  await bulk.getByLabel("Type 12 to confirm").fill("12");
  await act.click();
  await notice(bob, "12 approved.").waitFor();
  await waiting(bob, 1);
  checked("more than ten are confirmed by their number");

  await ann.start(files(30, 33));
  await waiting(bob, 4);
  for (const n of [30, 32]) await choose(`"${n}.log"`);
  await button(bulk, "Deny …").click();
  await bulk.getByLabel("What the agents are told").fill("not these two");
  await button(bulk, "Deny these 2").click();
  await notice(bob, "2 denied.").waitFor();
  await waiting(bob, 2);
  const rest = (await ann.asks()).map((ask) => ask.view.headline);
  assert.ok(rest.some((line) => line.includes('"31.log"')) && rest.some((line) => line.includes("edit_config")), rest.join());
  checked("those that were selected are denied, with one message");
  bob.quiet();
});
