// What is shown: hostile text as text, to a keyboard, and on a phone.
import assert from 'node:assert/strict';

import { until } from './page.mjs';
import { HOSTILE, ONE, PROMPTS } from './prompts.mjs';

const focused = page => page.evaluate(() => document.activeElement?.textContent ?? '');

export const showing = {
  async 'hostile text stays text'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.hostile);
    await chat.waits(1);
    const text = await chat.ask().innerText();
    for (const shown of HOSTILE.shown) assert.ok(text.includes(shown), `${shown} is not shown in ${text}`);
    await chat.button(/^Edit/, chat.ask()).click();
    await chat.button('Cancel', chat.ask()).click();
    await chat.approve();
    await chat.settled(HOSTILE.tool, 'Approved, done');
    await chat.ready();
    for (const call of await chat.page.locator('details.call').all()) await call.locator('summary').first().click();
    await chat.page.reload();
    await chat.settled(HOSTILE.tool, 'Approved, done');
    const made = 'iframe, object, embed, b, svg, style, link[href^="javascript"], [onerror], [onload], img:not([src="/icon.svg"]), body script, .messages a';
    assert.equal(await chat.page.locator(made).count(), 0, 'an element was made of it');
    const raw = await chat.page.locator('.messages').evaluate(it => it.textContent ?? '');
    assert.doesNotMatch(raw, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]/, 'an invisible character got through');
  },

  async 'hostile text: Markdown of a model is drawn, and nothing in it runs, loads or hides where it leads'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.markdown);
    await chat.sees('What I found');
    await chat.ready();
    const prose = chat.answers.locator('.prose');
    assert.equal(await prose.getByRole('row').count(), 3);
    assert.equal(await prose.locator('strong').innerText(), 'two');
    const made = 'img, iframe, b, script, svg, object, embed, style, link, form, [onclick], [srcset]';
    assert.equal(await prose.locator(made).count(), 0, 'an element was made of it');
    for (const shown of ['<script>', '<iframe src="https://evil.example">', 'U+202E', 'this and here.']) assert.ok((await prose.innerText()).includes(shown), shown);
    const links = await prose.locator('.link').evaluateAll(all => all.map(it => [it.querySelector('a').innerText, it.querySelector('.host').innerText, it.querySelector('a').rel]));
    const rel = 'noopener noreferrer nofollow';
    assert.deepEqual(links, [
      ['the manual', 'docs.example.com', rel],
      ['your bank', 'evil.example', rel],
      ['Image: a chart', 'evil.example', rel],
    ]);
    assert.equal(await prose.locator('a').count(), links.length);
  },

  async 'everything works with the keyboard alone'({ visit }) {
    const chat = await visit.open();
    const { keyboard } = chat.page;
    const armed = () => until('a card has the focus', () => chat.page.evaluate(() => !!document.activeElement?.getAttribute('aria-keyshortcuts')));
    for (let steps = 0; !(await chat.box.evaluate(it => it === document.activeElement)); steps++) {
      assert.ok(steps < 20, 'the message box is not reached');
      await keyboard.press('Tab');
    }
    await keyboard.type(PROMPTS.two);
    await keyboard.press('Enter');
    await armed();
    assert.equal(await chat.page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), 'solid');

    await keyboard.press('d');
    await keyboard.type('keep it');
    await keyboard.press('Escape');
    await armed();
    await keyboard.press('d');
    await keyboard.type('keep it');
    await chat.settles(chat.button('Deny this call'));
    await keyboard.press('Enter');
    await chat.waits(1);
    await armed();
    await keyboard.press('e');
    await keyboard.press('Control+A');
    await keyboard.type('{"path": "c.txt"}');
    await chat.settles(chat.button('Approve as edited'));
    await keyboard.press('Control+Enter');
    await until('both are out', async () => chat.posts.length === 2);
    await chat.ready();
    assert.deepEqual(Object.values(chat.posts[1].overrideArgs), [{ path: 'c.txt' }]);
    await chat.settled(ONE.tool, 'Denied', 0);
    for (let again = await chat.ask().count(); again > 0; again = await chat.ask().count()) {
      await armed();
      await keyboard.press('a');
      await chat.waits(again - 1);
      await chat.ready();
    }

    await until('the message box has the focus', () => chat.box.evaluate(it => it === document.activeElement));
    await keyboard.type(PROMPTS.one);
    await keyboard.press('Enter');
    await armed();
    const reached = [];
    for (let steps = 0; steps < 4; steps++) {
      await keyboard.press('Tab');
      reached.push(await focused(chat.page));
      assert.notEqual(await chat.page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), 'none');
    }
    for (const name of [/^Approve/, /^Edit/, /^Deny/]) assert.ok(reached.some(text => name.test(text)), `${name} in ${reached}`);
    await chat.ask().focus();
    await armed();
    await keyboard.press('a');
    await until('it has run', async () => (await chat.call(ONE.tool).last().locator('.state').innerText()) === 'Approved, done');
    await chat.ready();
  },

  async 'a person who is writing keeps the focus, and the call is announced'({ visit }) {
    const chat = await visit.open();
    let answer;
    const typed = new Promise(resolve => (answer = resolve));
    await chat.page.route('**/api/chat', async route => {
      await typed;
      await route.continue();
    });
    await chat.say(PROMPTS.one);
    await chat.box.pressSequentially('already the next ta');
    answer();
    await chat.waits(1);
    await until('it is announced', async () => /A call waits/.test(await chat.page.getByRole('status').first().innerText()));
    await chat.page.keyboard.type('sk');
    assert.equal(await chat.box.inputValue(), 'already the next task');
    await chat.waits(1);
    assert.equal(chat.posts.length, 1);
  },

  async 'a text that is written into a card by mistake answers nothing'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.one);
    await chat.waits(1);
    await chat.ask().focus();
    await chat.page.keyboard.type('yes and add a date, a day and a deed', { delay: 40 });
    await chat.waits(1);
    assert.equal(await chat.ask().getByRole('textbox').count(), 0, 'a form was opened');
    assert.equal(chat.posts.length, 1);
  },

  async 'it fits on a phone'({ visit, phone }) {
    const chat = await phone.open();
    await chat.say(PROMPTS.hostile);
    await chat.waits(1);
    const fits = () => chat.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector('.scroll').scrollWidth <= innerWidth);
    assert.ok(await fits());
    await chat.approve();
    await chat.settled(HOSTILE.tool, 'Approved, done');
    await chat.ready();
    for (const call of await chat.page.locator('details.call').all()) await call.locator('summary').first().click();
    assert.ok(await fits());
  },
};
