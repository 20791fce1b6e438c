// Nothing moves under the pointer: new requests are only counted, decided ones leave a placeholder, and a control that
// has just appeared, moved or got the focus does not count, nor do the keys and clicks from before. The page's clock
// stands still where that is checked, so that nothing depends on how fast this machine is.

import assert from "node:assert/strict";

import { checked, eventually, scenario } from "../lib/harness.mjs";
import { button, card, comeIn, decided, elsewhere, middle, notice, sent, waiting } from "../lib/inbox.mjs";

await scenario(async ({ url, person }) => {
  const ann = await elsewhere(url, "ann");
  await ann.start('delete_file {"path": "old.log"}');
  const bob = await person("bob");
  const { page } = bob;
  await page.clock.install();
  await comeIn(bob);
  await waiting(bob, 1);
  const decisions = sent(bob);
  const old = button(card(bob, "delete_file", "old.log"), /^Approve /);
  await old.hover();
  await page.clock.runFor(1000);
  const place = await middle(old);

  await ann.start('delete_file {"path": "PRODUCTION.db"}');
  const fresh = page.getByRole("button", { name: "1 new: show" });
  await fresh.waitFor();
  assert.equal(await page.title(), "(2) Approvals");
  assert.equal(await page.locator("article").count(), 1);
  assert.deepEqual(await middle(old), place);
  checked("a new request is counted, and nothing on the screen moves");

  await page.clock.pauseAt(await page.evaluate(() => Date.now() + 1000));
  await fresh.click();
  const yes = button(card(bob, "delete_file", "PRODUCTION.db"), /^Approve /);
  await yes.waitFor();
  await yes.scrollIntoViewIfNeeded();
  assert.equal(await yes.getAttribute("aria-disabled"), "true");
  const [x, y] = await middle(yes);
  await page.mouse.click(x, y);
  await page.mouse.down();
  await page.clock.runFor(700);
  await page.mouse.up();
  checked("a click on a control that has just appeared does not count, nor one that began before");
  await page.clock.runFor(1000);
  await yes.evaluate((it) => (it.blur(), it.focus()));
  await page.keyboard.press("Enter");
  await page.keyboard.press("Space");
  await page.keyboard.down("Enter");
  await page.clock.runFor(700);
  await page.keyboard.down("Enter");
  await page.keyboard.up("Enter");
  assert.deepEqual(decisions, []);
  assert.equal((await ann.asks()).length, 2);
  checked("a key does not count on a control that has just got the focus, nor one that is held down");
  await page.keyboard.press("Enter");
  await notice(bob, "delete_file: approved.").waitFor();
  assert.equal(decisions.length, 1);
  await decided(bob, "ran", "PRODUCTION.db");
  await page.clock.resume();

  // Others decide what stands above.
  await ann.start('restart_server {"host": "db-1"}\nsend_report {"to": "c"}');
  await waiting(bob, 3);
  const last = button(card(bob, "send_report"), /^Approve /);
  await last.scrollIntoViewIfNeeded();
  const before = await middle(last);
  const carol = await elsewhere(url, "carol");
  assert.equal((await carol.decide("delete_file", { verdict: "deny", message: "no" })).status, 200);
  await page.getByText(/delete_file: decided by carol: denied, /).waitFor();
  assert.equal(await page.locator("article").count(), 2);
  assert.deepEqual(await middle(last), before);
  checked("a request that another person has decided leaves a placeholder");

  // A notice that goes away uncovers what was below it.
  await page.getByRole("button", { name: "Clear" }).click();
  await last.click();
  await notice(bob, "send_report: approved.").waitFor();
  await eventually("the rest is there", async () => assert.equal(await page.locator("article").count(), 1));
  bob.quiet();
});
