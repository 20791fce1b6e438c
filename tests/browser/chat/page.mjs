// A page of the chat example in Chromium, and the errors that are watched for while it runs.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const PATIENCE_MS = 15_000;

const BROWSERS = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export function launch() {
  const executablePath = BROWSERS.find(path => path && existsSync(path));
  assert.ok(executablePath, 'the scenarios need Chromium: install it, or set CHROMIUM to its path');
  return chromium.launch({ executablePath, args: FLAGS });
}

/** Repeats a check until it passes. */
export async function until(what, check) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    if (await check()) return;
    assert.ok(Date.now() < end, `it did not come to this: ${what}`);
    await sleep(30);
  }
}

/** One browser profile with pages, and everything that must not happen in them. */
export class Visit {
  static async start(browser, base, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1100, height: 800 }, ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    return new Visit(context, base);
  }

  constructor(context, base) {
    this.context = context;
    this.base = base;
    this.wrong = [];
    this.allowed = [];
  }

  /** Opens a page: an empty conversation, or the one at this address. */
  async open(address = this.base) {
    const page = await this.context.newPage();
    const chat = new ChatPage(page);
    const wrong = text => this.allowed.some(pattern => pattern.test(text)) || this.wrong.push(text);
    page.on('console', message => ['error', 'warning'].includes(message.type()) && wrong(`console ${message.type()}: ${message.text()}`));
    page.on('pageerror', error => wrong(`uncaught: ${error}`));
    page.on('dialog', dialog => {
      wrong(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('request', request => {
      const url = new URL(request.url());
      if (!['data:', 'blob:'].includes(url.protocol) && url.origin !== new URL(this.base).origin) wrong(`a request to ${url.origin}`);
      if (request.method() === 'POST' && url.pathname === '/api/chat') chat.posts.push(request.postDataJSON());
    });
    await page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', it => console.error(`policy: ${it.violatedDirective} ${it.blockedURI}`));
    });
    await page.goto(address);
    await chat.box.waitFor();
    return chat;
  }

  /** What the server refuses on purpose, the browser calls an error. */
  allow(pattern) {
    this.allowed.push(pattern);
  }

  async end() {
    await this.context.close();
    assert.deepEqual(this.wrong, [], 'something happened that must not');
  }
}

/** The actions of a person, and the content of the page. */
export class ChatPage {
  posts = [];

  constructor(page) {
    this.page = page;
    this.box = page.getByRole('textbox', { name: 'Message' });
    this.asks = page.locator('article.call');
    this.answers = page.getByRole('region', { name: 'Assistant', exact: true });
  }

  async say(text) {
    await this.box.fill(text);
    await this.box.press('Enter');
  }

  /** The pending cards, by their text. */
  ask(text) {
    return text ? this.asks.filter({ hasText: text }) : this.asks;
  }

  async waits(count) {
    await until(`${count} calls wait`, async () => (await this.asks.count()) === count);
  }

  /** The settled calls of a tool. */
  call(tool) {
    return this.page.locator(`details.call[data-tool="${tool}"]`);
  }

  async settled(tool, state, at = 0) {
    const card = this.call(tool).nth(at);
    await until(`${tool} is “${state}”`, async () => (await card.count()) === 1 && (await card.locator('.state').innerText()) === state);
    return card;
  }

  /** Until the server has said all, so that a message can be written. */
  async ready() {
    await until('the assistant is done', async () => (await this.page.getByRole('button', { name: 'Stop' }).count()) === 0);
  }

  async sees(text) {
    await this.page.getByText(text).last().waitFor();
  }

  button(name, within = this.page) {
    return within.getByRole('button', { name });
  }

  /** Scrolls each text of a call to its last row, as its approval wants it. */
  async readWhole(card) {
    for (const end of await card.locator('.box > .end').all()) {
      if (await end.evaluate(mark => mark.checkVisibility())) await end.evaluate(mark => mark.scrollIntoView({ block: 'end' }));
    }
  }

  async approve(card = this.asks.first()) {
    await this.readWhole(card);
    await this.button(/^Approve/, card).click();
  }

  async deny(card, reason) {
    await this.button(/^Deny/, card).click();
    if (reason) await card.getByLabel(/Why not/).fill(reason);
    await this.button('Deny this call', card).click();
  }

  async edit(card, args) {
    await this.button(/^Edit/, card).click();
    await card.getByRole('textbox').fill(JSON.stringify(args));
    await this.button('Approve as edited', card).click();
  }

  /** Until what is at this place counts. */
  async settles(button) {
    await until('it counts', async () => (await button.getAttribute('aria-disabled')) === null);
  }

  /** Clicks at the place of an element, on any control that is there at the time of the click. */
  async clickAt(locator) {
    const { x, y, width, height } = await locator.boundingBox();
    await this.page.mouse.click(x + width / 2, y + height / 2);
  }

  text() {
    return this.page.locator('.messages').innerText();
  }
}
