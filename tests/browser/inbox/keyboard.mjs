// Every control by keyboard, with names for screen readers; also at the width of a phone.

import assert from "node:assert/strict";

import { checked, scenario } from "../lib/harness.mjs";
import { decided, elsewhere, notice, settled, waiting } from "../lib/inbox.mjs";

/** Tabs until what has the focus has a name like this. */
async function tabTo(person, name) {
  const seen = [];
  for (let step = 0; step < 60; step += 1) {
    await person.page.keyboard.press("Tab");
    const focused = await person.page.evaluate(() => {
      const it = document.activeElement;
      return it.getAttribute("aria-label") ?? it.labels?.[0]?.textContent ?? it.textContent;
    });
    if (name.test(focused)) return settled(person);
    seen.push(focused.slice(0, 40));
  }
  throw new Error(`${name} cannot be reached: ${seen.join(" | ")}`);
}

await scenario(async ({ url, person }) => {
  await (await elsewhere(url, "ann")).start('delete_file {"path": "a.log"}\ndelete_file {"path": "b.log"}\nsend_report {"to": "c"}');
  const bob = await person("bob", url, { viewport: { width: 360, height: 720 } });
  const { page } = bob;
  await page.goto(url);
  await page.getByLabel("Your name").waitFor();
  await page.keyboard.type("bob");
  await page.keyboard.press("Enter");
  await waiting(bob, 3);

  // A list of rows, and one call for each screen.
  await tabTo(bob, /^delete_file$/);
  await page.keyboard.press("Enter");
  await tabTo(bob, /^Approve delete_file\(path: "a.log"\)/);
  await page.keyboard.press("Enter");
  await notice(bob, "delete_file: approved.").waitFor();
  const focus = await page.evaluate(() => document.activeElement.closest("article, section")?.tagName);
  assert.ok(focus, "the focus is not lost with the card");
  checked("approved with Tab and Enter, and the focus moved to the next card");
  const list = page.getByRole("button", { name: "All calls" });
  if (await list.isVisible()) await list.click();
  await decided(bob, "ran", "a.log");

  await page.keyboard.press("Control+Home");
  await page.evaluate(() => document.activeElement.blur());
  if (!(await page.locator("article.unfolded").count())) {
    await tabTo(bob, /^delete_file$/);
    await page.keyboard.press("Enter");
  }
  await tabTo(bob, /^Deny delete_file\(path: "b.log"\)/);
  await page.keyboard.press("Space");
  await page.keyboard.type("not this one");
  await tabTo(bob, /^Deny$/);
  await page.keyboard.press("Enter");
  if (await list.isVisible()) await list.click();
  await decided(bob, "denied", "b.log", "not this one");
  checked("denied with the keyboard, the message typed where the focus went by itself");

  const unnamed = await page.evaluate(() => [...document.querySelectorAll("button, input, textarea, summary")]
    .filter((it) => !(it.getAttribute("aria-label") ?? it.labels?.[0]?.textContent ?? it.textContent).trim()).length);
  assert.equal(unnamed, 0);
  checked("every control has a name");
  for (const width of [320, 360, 800]) {
    await page.setViewportSize({ width, height: 700 });
    const [wide, inside] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    assert.ok(wide <= inside, `${wide} is wider than ${inside}`);
  }
  checked("nothing is wider than a phone");
  bob.quiet();
});
