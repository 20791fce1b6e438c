// One call, one set of buttons; and drafts survive a reload, a restart, and the decision of another person.

import assert from "node:assert/strict";

import { checked, host, scenario } from "../lib/harness.mjs";
import { button, card, change, comeIn, decided, elsewhere, notice, sent, waiting } from "../lib/inbox.mjs";

await scenario(async ({ url, person }) => {
  const ann = await elsewhere(url, "ann");
  await ann.start('delete_file {"path": "a.log"}\ndelete_file {"path": "b.log"}\nsend_report {"to": "c"}');
  const bob = await comeIn(await person("bob"));
  await waiting(bob, 3);
  const decisions = sent(bob);
  const [a, b] = [card(bob, "delete_file", "a.log"), card(bob, "delete_file", "b.log")];
  const names = (it) => it.getByRole("button").allInnerTexts();

  const edit = await change(bob, "delete_file", "a.log");
  assert.deepEqual(await names(a), ["Approve these arguments", "Back"]);
  checked("while an edit is open, the only approval is of the edited arguments");
  await edit.field.fill('{"path": "a.old"');
  await button(b, /^Deny /).click();
  assert.deepEqual(await names(b), ["Deny", "Back"]);
  const why = b.getByLabel("What the agent is told");
  await why.fill("We still ne");

  const still = async (what) => {
    await waiting(bob, 3);
    assert.equal(await edit.field.inputValue(), '{"path": "a.old"', what);
    assert.equal(await why.inputValue(), "We still ne", what);
    assert.deepEqual(await names(a), ["Approve these arguments", "Back"], what);
    checked(`what is half written stays: ${what}`);
  };
  await bob.page.reload();
  await still("a reload");
  await host("restart");
  await bob.page.reload();
  await still("a restart");

  const carol = await elsewhere(url, "carol");
  assert.equal((await carol.decide("send_report", { verdict: "approve" })).status, 200);
  await waiting(bob, 2);
  assert.equal(await edit.field.inputValue(), '{"path": "a.old"');
  const about = (await carol.asks()).find((ask) => ask.view.args[0].lines[0] === '"b.log"');
  assert.equal((await carol.decide("delete_file", { verdict: "approve" }, about)).status, 200);
  await notice(bob, "delete_file: decided by carol: approved, ").waitFor();
  await notice(bob, "We still ne").waitFor();
  await bob.page.reload();
  await notice(bob, "We still ne").waitFor();
  checked("a draft about a request that another person has decided is shown until it is dismissed");
  await notice(bob, "We still ne").getByRole("button", { name: "Dismiss" }).click();
  await bob.page.reload();
  await waiting(bob, 1);
  assert.equal(await notice(bob, "We still ne").count(), 0);

  await edit.field.fill('{"path": "a.old"}');
  await edit.approve.click();
  await decided(bob, "ran", 'delete_file(path: "a.old")');
  assert.deepEqual(decisions.map((it) => it.args), ['{"path": "a.old"}']);
  await bob.page.reload();
  await waiting(bob, 0);
  assert.deepEqual(await bob.page.evaluate(() => Object.keys(localStorage)), [], "a sent text is no draft");
  bob.quiet(/ERR_CONNECTION|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|Failed to fetch/);
});
