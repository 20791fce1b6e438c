// A scenario plays people in front of real browsers, and prints its checks. It is run by node with the address of the
// server (and of others over the same store); the exit status is 0 when every check has passed.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { createInterface } from "node:readline";

/** Where a browser may be. */
const BROWSERS = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** The time limit for the appearance of a text on a page. */
export const PATIENCE = 20_000;

/** Prints a check that has passed. */
export function checked(what) {
  console.log(`  checked: ${what}`);
}

/** Repeats a check until it passes or the time is over. */
export async function eventually(what, check) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    try {
      await check();
      return checked(what);
    } catch (error) {
      if (Date.now() > end) throw new Error(`${what}: ${error.message}`, { cause: error });
      await new Promise((done) => setTimeout(done, 100));
    }
  }
}

let lines = null;

/** Asks the test around this scenario for an action that only the test can do: `restart`, `stop`, `start`. */
export async function host(word) {
  lines ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  console.log(`@${word}`);
  const { value } = await lines.next();
  assert.equal(value, "done", `the test did not ${word}`);
}

async function launch() {
  const executablePath = BROWSERS.find((path) => path && existsSync(path));
  assert.ok(executablePath, "the browser tests need Chromium: .ci/browser installs it");
  const { chromium } = await import("playwright-core");
  return chromium.launch({ executablePath, args: FLAGS });
}

/** A person with a browser of their own: nothing is shared but the server. */
export class Person {
  constructor(name, context, page, url) {
    Object.assign(this, { name, context, page, url, problems: [] });
    page.setDefaultTimeout(PATIENCE);
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) this.problems.push(message.text());
    });
    page.on("pageerror", (error) => this.problems.push(`uncaught: ${error.message}`));
    page.on("dialog", (dialog) => {
      this.problems.push(`dialog: ${dialog.message()}`);
      dialog.dismiss().catch(() => {});
    });
  }

  /** Checks that the console is empty, but for messages about responses that the scenario provokes. */
  quiet(...expected) {
    const left = this.problems.filter((problem) => !expected.some((it) => it.test(problem)));
    assert.deepEqual(left, [], `${this.name}'s console`);
  }
}

/** Plays a scenario; `play` gets a way to make people and the addresses. */
export async function scenario(play) {
  const name = basename(process.argv[1], ".mjs");
  const [url, ...others] = process.argv.slice(2);
  console.log(name);
  let browser = null;
  const people = [];
  try {
    browser = await launch();
    console.log(`  browser: ${browser.browserType().name()} ${browser.version()}`);
    const person = async (name, at = url, options = {}) => {
      // Of a width at which calls are cards, one below the other.
      const context = await browser.newContext({ locale: "en-GB", viewport: { width: 1000, height: 720 }, ...options });
      const one = new Person(name, context, await context.newPage(), at);
      people.push(one);
      return one;
    };
    await play({ url, others, person });
    console.log("  all checks passed");
    process.exitCode = 0;
  } catch (error) {
    console.log(`  FAILED: ${error.stack}`);
    for (const { name, page, problems } of people) {
      const text = await page.locator("body").innerText().catch(() => "(closed)");
      // A line that begins with `@` would be a request to the test.
      console.log(`--- what ${name} saw:\n${text.replace(/^@/gm, " @")}\n--- ${name}'s console:\n${problems.join("\n")}`);
    }
    process.exitCode = 1;
  } finally {
    await browser?.close();
    process.stdin.destroy();
  }
}
