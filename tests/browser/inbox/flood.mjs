// The flood of one person hides no other request, every request can be reached, and equal calls are answered together.

import assert from "node:assert/strict";

import { checked, eventually, scenario } from "../lib/harness.mjs";
import { button, card, comeIn, elsewhere, notice, sent, waiting } from "../lib/inbox.mjs";

const FLOOD = 110;

await scenario(async ({ url, person }) => {
  const [ann, mallory] = [await elsewhere(url, "ann"), await elsewhere(url, "mallory")];
  await mallory.start(Array.from({ length: FLOOD }, (_, n) => `delete_file {"path": "flood-${n}"}`).join("\n"));
  await ann.start('transfer {"amount_eur": 9, "to": "DE02"}');
  await mallory.start('restart_server {"host": "db-9"}');
  const bob = await comeIn(await person("bob"));
  await card(bob, "transfer").waitFor();
  const tools = await bob.page.locator("article h3").allInnerTexts();
  assert.equal(tools[0], "restart_server", "requests with a deadline come first");
  assert.ok(tools.indexOf("transfer") <= 10, `ann's request stands among the first: ${tools}`);
  assert.equal(await bob.page.title(), `(${FLOOD + 2}) Approvals`);
  assert.equal(await bob.page.locator("#count").innerText(), String(FLOOD + 2));
  checked("a request is not hidden behind the flood of another person, and all are counted");

  const more = bob.page.getByRole("button", { name: /^Show more/ });
  while (await more.isVisible()) {
    const before = await bob.page.locator("article").count();
    // Compact rows also load when the button scrolls into view, so that it may be gone before the click.
    await more.click({ timeout: 2000 }).catch(() => {});
    await eventually("there are more", async () => assert.ok(await bob.page.locator("article").count() > before));
  }
  assert.equal(await bob.page.locator("article").count(), FLOOD + 2);
  const ids = await bob.page.locator("article").evaluateAll((all) => all.map((it) => it.dataset.ask));
  assert.equal(new Set(ids).size, FLOOD + 2);
  checked("every request can be reached");

  // A folded call has a form that no one sees. To measure those of a long list takes longer than to show it.
  const measured = await bob.page.evaluate(async () => {
    const measure = Element.prototype.getBoundingClientRect;
    const seen = { shown: 0, hidden: 0 };
    Element.prototype.getBoundingClientRect = function () {
      seen[this.closest("[hidden]") ? "hidden" : "shown"] += 1;
      return measure.call(this);
    };
    document.querySelector("article:not(.unfolded) .fold").click();
    await new Promise((done) => setTimeout(done, 700));
    Element.prototype.getBoundingClientRect = measure;
    return seen;
  });
  assert.ok(measured.shown > 0, "the controls that are shown are watched");
  assert.equal(measured.hidden, 0, "what is folded is measured");
  checked("a call of a long list opens without a look at all the folded ones");

  // The response to a search may take a while: until then the list stays, and the last search is the one that counts.
  const { page } = bob;
  await page.evaluate(() => {
    const list = document.getElementById("cards");
    window.fewest = Infinity;
    new MutationObserver(() => (window.fewest = Math.min(window.fewest, list.querySelectorAll("article").length))).observe(list, { childList: true });
  });
  let answer;
  const slow = new Promise((done) => (answer = done));
  await page.route(/\/api\/asks\?.*q=flood/, async (route) => {
    await slow;
    await route.continue();
  });
  const first = page.waitForRequest(/q=flood/);
  const outdated = page.waitForResponse(/q=flood/);
  await page.getByLabel("Search", { exact: true }).fill("flood");
  await first;
  assert.equal(await page.locator("article").count(), FLOOD + 2, "the list stays while the server searches");
  await page.getByLabel("Search", { exact: true }).fill("restart_server");
  await eventually("the search has one result", async () => assert.equal(await page.locator("article").count(), 1));
  answer();
  await outdated;
  await page.waitForTimeout(300);
  assert.equal(await page.locator("article h3").innerText(), "restart_server", "an outdated response is not shown");
  assert.equal(await page.evaluate(() => window.fewest), 1, "the list was never empty in between");

  // A search while the server is away is made when it is back.
  await page.route(/\/api\/asks\?/, (route) => route.abort());
  const failed = page.waitForEvent("requestfailed", (request) => /q=transfer/.test(request.url()));
  await page.getByLabel("Search", { exact: true }).fill("transfer");
  await failed;
  assert.equal(await page.locator("article h3").innerText(), "restart_server", "the list stays");
  await page.unrouteAll({ behavior: "wait" });
  await mallory.start('delete_file {"path": "one-more"}');
  await eventually("the list is narrowed", async () => assert.equal(await page.locator("article h3").innerText(), "transfer"));
  checked("a search empties no list, and the last one counts");

  const carol = await comeIn(await person("carol"));
  const decisions = sent(carol);
  await (await elsewhere(url, "dora")).start(Array(5).fill('send_report {"to": "all"}').join("\n"));
  await carol.page.getByRole("button", { name: /new: show/ }).or(card(carol, "send_report")).first().waitFor();
  await eventually("five are one", async () => {
    const fresh = carol.page.locator("#new");
    if (await fresh.isVisible()) await fresh.click({ timeout: 1000 });
    await card(carol, "send_report", "5 equal calls").waitFor({ timeout: 1000 });
  });
  await carol.page.getByLabel("Compact").uncheck();
  const one = card(carol, "send_report");
  await button(one, "Show one by one").waitFor();
  assert.equal(await one.count(), 1);
  await button(one, "Show one by one").click();
  await eventually("they are five again", async () => assert.equal(await one.count(), 5));
  await button(one.first(), /^Deny /).click();
  await button(one.first(), /^Deny$/).click();
  await notice(carol, "send_report: denied.").waitFor();
  assert.equal(decisions.length, 1, "one of them is denied");

  await carol.page.reload();
  await card(carol, "send_report", "4 equal calls").waitFor();
  await button(one, /^Approve all 4 send_report/).click();
  await notice(carol, "send_report: 4 approved.").waitFor();
  assert.equal(new Set(decisions.map((it) => it.fingerprint)).size, 5, "each is bound to its own fingerprint");
  checked("equal calls of a run are answered together, or one by one");
  bob.quiet(/ERR_FAILED/);
  carol.quiet();
});
