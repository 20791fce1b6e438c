// How soon the page of the inbox at an address can be used: `node benches/support/inbox.mjs URL`, by Chromium and the
// packages that `.ci/browser` installs.

import { chromium } from "../../tests/browser/node_modules/playwright-core/index.mjs";

const [url] = process.argv.slice(2);
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage();

/** Runs it, and gives how many milliseconds it took. */
const timed = async (run) => {
  const start = performance.now();
  await run();
  return performance.now() - start;
};

const shown = [];
for (let n = 0; n < 5; n += 1) {
  shown.push(await timed(async () => {
    await page.goto(url);
    await page.locator("article").first().waitFor();
  }));
}
shown.sort((a, b) => a - b);
const search = await timed(async () => {
  await page.locator("#q").fill("37.log");
  await page.getByText(/of [\d\s,.]+ pending calls match/).waitFor();
});
await page.locator("#reset").click();
await page.locator("article").nth(20).waitFor();
await page.evaluate(() => document.activeElement.blur());
const key = await timed(async () => {
  await page.keyboard.press("j");
  await page.waitForFunction(() => document.activeElement.closest("article"));
});
const ms = (time) => `${time.toFixed(0)} ms`;
console.log(`first call after ${ms(shown[2])} (median of 5), search ${ms(search)}, a key ${ms(key)}`);
await browser.close();
