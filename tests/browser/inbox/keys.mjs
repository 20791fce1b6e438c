// The single keys: j k a e d x n / ? and Esc. A key presses a button, and what does not count for a hand does not count for
// a key.

import assert from "node:assert/strict";

import { checked, eventually, scenario } from "../lib/harness.mjs";
import { card, comeIn, elsewhere, notice, sent, waiting } from "../lib/inbox.mjs";

await scenario(async ({ url, person }) => {
  const ann = await elsewhere(url, "ann");
  await ann.start(Array.from({ length: 6 }, (_, n) => `delete_file {"path": "${n}.log"}`).join("\n"));
  const bob = await comeIn(await person("bob"));
  const { page } = bob;
  const decisions = sent(bob);
  const press = (key) => page.keyboard.press(key);
  /** Waits until what has moved counts: the buttons of the call that has the focus, and keys after a pause. */
  const settle = async () => {
    await page.waitForTimeout(900);
    await page.waitForFunction(() => !document.activeElement.closest("article")?.querySelector("[aria-disabled=true]"));
  };
  /** The call that has the focus. */
  const here = () => page.evaluate(() => document.activeElement.closest("article")?.innerText.match(/\d\.log|[a-z]+\.log/)?.[0] ?? null);
  await waiting(bob, 6);
  await page.evaluate(() => document.activeElement.blur());

  await press("?");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  const keys = await page.locator("#keys kbd").allInnerTexts();
  assert.deepEqual(keys.filter((it) => it.length === 1).sort(), ["/", "?", "A", "D", "a", "d", "e", "g", "j", "k", "n", "v", "x"]);
  await press("a");
  await press("Escape");
  await page.getByRole("heading", { name: "Keys" }).waitFor({ state: "hidden" });
  checked("? shows the keys, and no key decides behind it");

  await press("j");
  const first = await here();
  await press("j");
  const second = await here();
  await press("j");
  const third = await here();
  assert.equal(new Set([first, second, third]).size, 3, `${first} ${second} ${third}`);
  // At one moment, however slow this machine is.
  const atOnce = (keys) => page.evaluate((keys) => {
    for (const key of keys) dispatchEvent(new KeyboardEvent("keydown", { key }));
  }, keys);
  await atOnce(["k", "a", "a"]);
  assert.equal(await here(), second);
  checked("j and k move");

  await page.waitForTimeout(300);
  assert.equal(decisions.length, 0, "the call has the focus for less than 0.6 s");
  await settle();
  // The same key again, at the moment at which the next call gets the focus.
  await page.evaluate(() => {
    const again = () => dispatchEvent(new KeyboardEvent("keydown", { key: "a" }));
    document.addEventListener("focusin", again, { once: true });
  });
  await press("a");
  await notice(bob, "delete_file: approved.").waitFor();
  assert.equal(decisions.length, 1);
  const after = await here();
  assert.ok(after && after !== second, "the focus moves to the next call");
  await page.waitForTimeout(300);
  assert.equal(decisions.length, 1, "which was not there before");
  checked("a approves the call that has stood still, and not the one that slides in");

  await settle();
  await atOnce([..."not any way"]);
  await page.waitForTimeout(300);
  assert.equal(decisions.length, 1);
  checked("a letter within what is typed is no approval");

  await settle();
  await press("e");
  const field = page.getByLabel("What will run instead");
  await field.waitFor();
  await page.waitForTimeout(100);
  await field.fill('{"path": "a-j-k-d-x.log"}');
  await field.press("End");
  await field.press("d");
  assert.equal(await field.inputValue(), '{"path": "a-j-k-d-x.log"}d', "letters are typed");
  await field.fill('{"path": "edited.log"}');
  await press("Escape");
  await settle();
  await press("a");
  await page.waitForTimeout(300);
  assert.equal(decisions.length, 1, "while an edit is open there is no other approval");
  await settle();
  await page.getByRole("button", { name: "Approve these arguments" }).click();
  await eventually("the edit is approved", async () => assert.equal(decisions.length, 2));
  assert.equal(decisions[1].args, '{"path": "edited.log"}');
  checked("e changes the arguments, and in a field keys are letters");

  await settle();
  await press("j");
  await settle();
  await press("d");
  await page.getByLabel("What the agent is told").waitFor();
  await page.keyboard.type("no, and why");
  assert.equal(decisions.length, 2, "d opens the message, and denies nothing by itself");
  await settle();
  await page.getByRole("button", { name: "Deny", exact: true }).click();
  await eventually("it is denied", async () => assert.equal(decisions[2]?.message, "no, and why"));

  await ann.start('send_report {"to": "new"}');
  await page.getByRole("button", { name: "1 new: show" }).waitFor();
  await press("n");
  await card(bob, "send_report").waitFor();
  checked("n shows what is new");

  await press("k");
  await press("x");
  await press("k");
  await press("x");
  const bulk = page.locator("#bulk");
  assert.match(await bulk.innerText(), /2 selected/);
  await press("a");
  await bulk.getByText("Approve 2 calls?").waitFor();
  await press("Escape");
  await bulk.getByText("2 selected").waitFor();
  await press("Escape");
  await bulk.waitFor({ state: "hidden" });
  assert.equal(decisions.length, 3, "Esc decides nothing");
  await press("x");
  await press("j");
  await press("x");
  await press("d");
  await bulk.getByText("Deny 2 calls?").waitFor();
  await page.keyboard.type("x a d");
  assert.equal(await bulk.getByLabel("What the agents are told").inputValue(), "x a d");
  await settle();
  await bulk.getByRole("button", { name: "Deny these 2" }).click();
  await notice(bob, "2 denied.").waitFor();
  checked("x selects, a and d are about those selected, and Esc takes one step back");

  await press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "q");
  await page.keyboard.type("report");
  await page.getByText(/of \d+ pending calls match/).waitFor();
  checked("/ searches");
  bob.quiet();
});
