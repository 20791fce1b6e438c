// What a call would do is shown as a difference, a text or a table; what is folded has to be opened before an approval, what
// is not stored is approved by itself, and nothing of it becomes markup.

import assert from "node:assert/strict";

import { checked, scenario } from "../lib/harness.mjs";
import { button, card, change, comeIn, decided, notice, readWhole, waiting } from "../lib/inbox.mjs";

/** The lines of a difference: what they mean, and what they say. */
const lines = (figure) => figure.locator(".diff").evaluateAll((all) => all.map((it) => [it.className.replace("diff ", ""), it.querySelector(".text").textContent]));
const figure = (within, title) => within.getByRole("figure", { name: `Preview: ${title}` });

await scenario(async ({ person }) => {
  const bob = await comeIn(await person("bob"));
  await waiting(bob, 6);

  const diff = figure(card(bob, "edit_config"), "nginx.conf");
  assert.deepEqual(await lines(diff), [
    ["remark", "@@ -1,3 +1,3 @@"], ["removed", "worker_processes 2;"], ["added", "worker_processes 8;"],
    ["plain", "keepalive_timeout 65;"], ["plain", "gzip on;"],
  ]);
  const head = await diff.locator("figcaption").innerText();
  for (const part of ["Policy", "nginx.conf", "changed", "asks again if this changes"]) assert.ok(head.includes(part), `${part} in ${head}`);
  const ground = (kind) => diff.locator(`.${kind}`).first().evaluate((it) => getComputedStyle(it).backgroundColor);
  assert.equal(new Set([await ground("added"), await ground("removed"), await ground("plain")]).size, 3);
  assert.match(await diff.locator(".added").textContent(), /added: /);
  checked("a change is a coloured difference, which is said in words too, with who shows it");

  const table = figure(card(bob, "pay"), "transfers");
  const cells = await table.getByRole("row").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.deepEqual(cells, [["to", "euros"], ["Ann\\u{202e}", "1 200.00"], ["<b>Cleo</b>", "7.00"]]);
  assert.match(await figure(card(bob, "pay"), "today's rate").innerText(), /may change by itself[^]*1 euro is 1\.08 dollars/);
  checked("a table is a table, and what changes by itself says so");

  const nasty = card(bob, "nasty");
  assert.match(await figure(nasty, '<img src=x onerror="window.pwned=1">').innerText(), /<script>window\.pwned = 2<\/script>[^]*\\u\{202e\}gpj\.exe[^]*\\u\{1b\}\[2J/);
  const found = await bob.page.evaluate(() => ({ pwned: window.pwned, markup: document.querySelectorAll("figure :is(script, img, b)").length }));
  assert.deepEqual(found, { pwned: undefined, markup: 0 });
  checked("hostile text of a preview stays text");

  const long = card(bob, "long");
  assert.ok(await button(long, /^Approve long/).isDisabled(), "not all of it is shown");
  assert.match(await figure(long, "long.txt").innerText(), /\\\{\d+ lines left out\}/);
  await button(figure(long, "long.txt"), "Show everything").click();
  await figure(long, "long.txt").getByText("line 150", { exact: true }).waitFor();
  assert.ok(!(await figure(long, "long.txt").innerText()).includes("left out"));
  assert.ok(await button(long, /^Approve long/).isDisabled(), "its last row was not in sight");
  await readWhole(long);
  await button(long, /^Approve long/).click();
  await notice(bob, "long: approved.").waitFor();
  checked("a preview is opened before its call is approved");

  const cut = card(bob, "cut");
  assert.equal(await cut.count(), 2, "equal calls are not answered together");
  assert.match(await cut.first().innerText(), /101 more lines are too much to be stored/);
  for (const it of await cut.all()) await button(it, "Show everything").first().click();
  await cut.nth(1).getByText("line 1999", { exact: true }).waitFor();
  for (const it of await cut.all()) await it.getByRole("checkbox").check();
  const bulk = bob.page.locator("#bulk");
  assert.match(await bulk.innerText(), /Skipped: 2 with a preview that is too long to be shown whole/);
  assert.ok(await button(bulk, "Approve 0").isDisabled());
  await button(bulk, "Drop selection").click();
  await readWhole(cut.first());
  await button(cut.first(), /^Approve cut/).click();
  await notice(bob, "cut: approved.").waitFor();
  checked("what is not stored says so, and its call is approved by itself");

  const edit = await change(bob, "edit_config");
  await edit.field.waitFor();
  assert.equal(await diff.isVisible(), false, "it is not what would run any more");
  await button(edit.it, "Back").click();
  await diff.waitFor();
  await button(card(bob, "edit_config"), /^Approve edit_config/).click();
  await notice(bob, "edit_config: approved.").waitFor();
  await decided(bob, "approved", "edit_config");
  await button(bob.page.getByRole("navigation"), "Decided").click();
  const past = bob.page.locator("#history li").filter({ hasText: "edit_config" });
  await past.getByText("What it would do, as it was shown").click();
  assert.equal((await lines(figure(past, "nginx.conf"))).length, 5);
  checked("it can be read afterwards");

  const refreshed = bob.page.waitForResponse(/\/api\/history/);
  await button(bob.page.getByRole("navigation"), "Decided").click();
  await (await refreshed).finished();
  await bob.page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn))));
  assert.equal((await lines(figure(past, "nginx.conf"))).length, 5);
  checked("a refresh of the list closes nothing that a person has opened");

  for (const width of [320, 800]) {
    await bob.page.setViewportSize({ width, height: 700 });
    const [wide, inside] = await bob.page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    assert.ok(wide <= inside, `${wide} is wider than ${inside}`);
  }
  bob.quiet();
});
