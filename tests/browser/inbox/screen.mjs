// The first screen of a phone says who wants what and why, shows the beginning of the change or of the arguments, and has the
// buttons; Approve counts once the last row was in sight. A wide window has the list beside the call.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

import { checked, eventually, scenario } from "../lib/harness.mjs";
import { button, comeIn, notice, press, readWhole, waiting } from "../lib/inbox.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** What each call has to say on the first screen, and whether its text is longer than that. */
const CALLS = [
  { id: "git push", title: "Claude Code wants to run git push origin main in ", reason: "Asks", first: '"git push origin main"', isLong: false },
  { id: "npm test", title: "Claude Code wants to run npm test 2>&1 | tail -20 in ", reason: "Asks", first: '"npm test 2>&1 | tail -20"', isLong: false },
  { id: "main.rs", title: "Claude Code wants to edit src/main.rs in ", reason: "Asks", first: "let value_20 = compute(20);", isLong: true },
  { id: "new.rs", title: "Claude Code wants to create src/new.rs in ", reason: "Asks", first: "pub fn f_0", isLong: true },
  { id: "create_issue", title: "Claude Code wants to call create_issue(", reason: "Asks", first: '"acme"', isLong: true },
  { id: "transfer", title: "An agent wants to call transfer: 120 EUR to DE89 3704 0044 0532 0130 00", reason: "moves money", first: "120", isLong: false },
];

const article = (person, id) => person.page.locator("article").filter({ hasText: id });

/** No violation of WCAG 2.2 AA that a program can find. */
async function accessible(person, state) {
  const { page } = person;
  const found = await page.evaluate(async () => {
    const only = { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] };
    const { violations } = await window.axe.run(document, { runOnly: only });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
  });
  assert.deepEqual(found, [], `${state}, for everyone`);
  checked(`${state}: no violation of WCAG 2.2 AA`);
}

/** A person whose page has axe. */
async function watched(person, name, options) {
  const one = await person(name, undefined, options);
  await one.context.addInitScript({ path: AXE });
  return comeIn(one);
}

await scenario(async ({ person }) => {
  for (const [name, colorScheme] of [["bob", "light"], ["carol", "dark"]]) {
    const phone = await watched(person, name, { viewport: { width: 380, height: 800 }, colorScheme });
    const { page } = phone;
    await waiting(phone, CALLS.length);
    await accessible(phone, `the list on a phone, ${colorScheme}`);
    for (const { id, title, reason, first, isLong } of CALLS) {
      const it = article(phone, id);
      await it.locator(".fold").click();
      const seen = (locator, what) => eventually(`${id}: ${what} is on the first screen`, async () => {
        const at = await locator.boundingBox();
        assert.ok(at && at.y >= 0 && at.y + Math.min(at.height, 20) <= 800, JSON.stringify(at));
      });
      const sentence = it.locator(".sentence");
      assert.ok((await sentence.innerText()).replace(/\s+/g, " ").startsWith(title), await sentence.innerText());
      await seen(sentence, "who wants what");
      await seen(it.locator(".why").getByText(reason).first(), "the reason");
      await seen(it.locator(".previews, .runs").getByText(first).first(), "the beginning");
      const [yes, no] = [button(it, /^Approve /), button(it, /^Deny /)];
      for (const one of [yes, no, button(it, /^Change /)]) await seen(one, "a button");
      const head = await it.locator(".inside-card").innerText();
      assert.doesNotMatch(head, /[0-9a-f]{16}|unverified|every_time|rule\.id|hook\./, "no digest, no name of a key");
      if (!isLong) await eventually(`${id}: all of it is on the first screen`, async () => assert.ok(await yes.isEnabled()));
      if (isLong) {
        assert.ok(await yes.isDisabled(), `${id}: Approve waits for the last row`);
        await it.getByText("Scroll to the end of the text.").waitFor();
        await yes.evaluate((button) => {
          window.states = [];
          const note = () => window.states.push(button.disabled ? "off" : button.ariaDisabled === "true" ? "shown, and does not count yet" : "counts");
          new MutationObserver(note).observe(button, { attributes: true });
        });
        await readWhole(it);
        await it.locator(".inside-card").evaluate((pane) => pane.scrollTo(0, pane.scrollHeight));
        await eventually(`${id}: Approve counts after the last row`, async () => assert.ok(await yes.isEnabled()));
        const states = await page.evaluate(() => window.states);
        assert.ok(states.includes("shown, and does not count yet"), "the 0.6 s begin at the last row");
      }
      await accessible(phone, `${id} on a phone, ${colorScheme}`);
      await button(it, "All calls").click();
      await it.locator(".inside-card").waitFor({ state: "hidden" });
    }
    const [wide, inside] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    assert.ok(wide <= inside, `${wide} is wider than ${inside}`);
    phone.quiet();
  }

  const dora = await watched(person, "dora", { viewport: { width: 1440, height: 900 } });
  const { page } = dora;
  await waiting(dora, CALLS.length);
  const open = page.locator("article.unfolded");
  await eventually("the first call is open beside the list", async () => assert.equal(await open.count(), 1));
  await accessible(dora, "list and call side by side");
  const [list, pane] = [await page.locator("#cards").boundingBox(), await open.locator(".inside-card").boundingBox()];
  assert.ok(list.x + list.width <= pane.x, `${JSON.stringify(list)} ${JSON.stringify(pane)}`);
  const before = await open.getAttribute("data-ask");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await eventually("j opens the next", async () => assert.notEqual(await open.getAttribute("data-ask"), before));
  assert.equal(await open.count(), 1, "one call is open");
  // WCAG 2.4.7: a person sees where the focus is.
  const mark = await page.evaluate(() => {
    const [it, row] = [document.activeElement, document.activeElement.closest("article")];
    const { outlineStyle, outlineWidth } = getComputedStyle(it);
    return { outlineStyle, outlineWidth, row: getComputedStyle(row).boxShadow, ground: getComputedStyle(row).backgroundColor };
  });
  assert.ok(mark.outlineStyle !== "none" && parseFloat(mark.outlineWidth) >= 2, JSON.stringify(mark));
  assert.notEqual(mark.row, "none", "and the row has a mark of its own");
  checked("the element with the focus has a mark that is seen");

  // A letter counts after a pause.
  await page.waitForTimeout(700);
  await page.keyboard.press("Shift+A");
  const bulk = page.locator("#bulk");
  await bulk.getByText(/^Approve \d+ calls\?/).waitFor();
  assert.match(await bulk.innerText(), /Skipped: \d+ of which not all was shown/);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.waitForTimeout(700);
  await page.keyboard.press("Shift+D");
  await bulk.getByText(`Deny ${CALLS.length} calls?`).waitFor();
  await accessible(dora, "many calls at once");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await bulk.waitFor({ state: "hidden" });
  checked("A and D name the number and ask, and decide nothing by themselves");

  // A list behind another view: nothing of it is in sight, and no key is for it.
  const eve = await watched(person, "eve", { viewport: { width: 1000, height: 720 } });
  await waiting(eve, CALLS.length);
  const edit = article(eve, "main.rs");
  await edit.locator(".choice").check();
  const selected = eve.page.locator("#bulk");
  await selected.getByText("Skipped: 1 of which not all was shown").waitFor();
  await eve.page.getByRole("button", { name: "Decided" }).click();
  await selected.waitFor({ state: "hidden" });
  await eve.page.evaluate(() => document.activeElement.blur());
  // The page looks once a second, and a letter counts after a pause.
  await eve.page.waitForTimeout(2000);
  await eve.page.keyboard.press("Shift+D");
  await eve.page.waitForTimeout(700);
  await eve.page.keyboard.press("Shift+A");
  await eve.page.getByRole("button", { name: /^Pending/ }).click();
  await selected.getByText("1 selected").waitFor();
  await selected.getByText("Skipped: 1 of which not all was shown").waitFor();
  assert.ok(await button(edit, /^Approve /).isDisabled(), "its last row was not in sight");
  checked("a list behind another view is neither seen nor selected");
  eve.quiet();

  const reading = await open.getAttribute("data-ask");
  for (const size of [{ width: 380, height: 800 }, { width: 1440, height: 900 }]) {
    const listed = page.waitForResponse(/\/api\/asks\?/);
    await page.setViewportSize(size);
    await listed;
    // The rows are made anew.
    await page.waitForTimeout(500);
    await eventually(`the call that is read stays open at ${size.width} px`, async () => {
      assert.equal(await open.count(), 1);
      assert.equal(await open.getAttribute("data-ask"), reading);
    });
  }

  const push = article(dora, "git push");
  await push.locator(".fold").click();
  await press(dora, button(push, /^Approve /));
  await notice(dora, "shell: approved.").waitFor();
  await eventually("the next call is open", async () => assert.equal(await open.count(), 1));
  dora.quiet();
});
