// Many calls: denied at once, and executed ones as one row.
import assert from 'node:assert/strict';

import { until } from './page.mjs';
import { LONG, ONE, PROMPTS, TWO } from './prompts.mjs';

export const many = {
  async 'bulk: all are denied at once, and nothing runs'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.two);
    await chat.waits(2);
    await chat.button('Deny all 2').click();
    for (const at of [0, 1]) assert.match(await (await chat.settled(ONE.tool, 'Denied', at)).innerText(), /It did not run/);
    await chat.ready();
    assert.equal(chat.posts.length, 2);
  },

  async 'bulk: A and D are about all that are left, name their number and ask'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.two);
    await chat.waits(2);
    await chat.ready();
    const sure = chat.page.getByRole('alertdialog');
    const press = async key => {
      const card = chat.ask().first();
      await chat.page.evaluate(() => document.activeElement?.blur());
      await card.focus();
      await until('keys count', async () => (await card.getAttribute('aria-keyshortcuts')) !== null);
      await chat.page.keyboard.press(key);
      await sure.waitFor();
    };
    await press('Shift+A');
    assert.match(await sure.innerText(), /Approve 2 calls\?/);
    await chat.page.keyboard.press('Escape');
    await until('it is closed', async () => (await sure.count()) === 0);
    await press('Shift+D');
    assert.match(await sure.innerText(), /Deny 2 calls\?/);
    assert.equal(chat.posts.length, 1, 'a key alone answers nothing');
    await chat.button('Yes, deny 2 calls').click();
    await chat.settled(ONE.tool, 'Denied', 1);
    await chat.ready();
    assert.equal(chat.posts.length, 2);
  },

  async 'bulk: more than ten are denied only after a second click'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.dozen);
    await chat.waits(12);
    await chat.ready();
    await chat.button('Deny all 12').click();
    const sure = chat.page.getByRole('alertdialog');
    assert.match(await sure.innerText(), /Deny 12 calls\?/);
    assert.equal(await sure.getByRole('button', { name: 'Keep them' }).evaluate(it => it === document.activeElement), true, 'an Enter denies nothing');
    await chat.page.keyboard.press('Escape');
    await until('it is closed', async () => (await sure.count()) === 0);
    await chat.button('Deny all 12').click();
    await chat.button('Keep them').click();
    await chat.waits(12);
    assert.equal(chat.posts.length, 1);

    await chat.button('Deny all 12').click();
    await chat.settles(chat.button('Yes, deny 12 calls'));
    await chat.deny(chat.ask().first(), 'not this one');
    await chat.waits(11);
    assert.equal(await sure.count(), 0, 'the question was about other calls');
    assert.equal(chat.posts.length, 1);
    await chat.button('Deny all 11').click();
    await chat.button('Yes, deny 11 calls').click();
    await chat.settled(ONE.tool, 'Denied', 11);
    await chat.ready();
    assert.equal(chat.posts.length, 2);
    assert.equal(await chat.page.getByText('Approved, done').count(), 0);
  },

  async 'bulk: what was not seen whole is denied with the others, but what is being answered is not'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.long);
    await chat.waits(2);
    await chat.ready();
    assert.equal(await chat.button('Deny all 2').count(), 1);
    await chat.button(/^Edit/, chat.ask(TWO[0])).click();
    await chat.button('Deny 1 of 2').click();
    await chat.settled(LONG.tool, 'Denied');
    await chat.waits(1);
    assert.equal(chat.posts.length, 1);
    await chat.button('Cancel', chat.ask()).click();
    await chat.approve();
    await chat.settled(ONE.tool, 'Approved, done');
    await chat.ready();
  },

  async 'floods: calls that ran are one row, and each of them is behind it'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.reads);
    await chat.waits(1);
    const row = chat.page.locator('details.ran');
    assert.match(await row.locator('summary').first().innerText(), /8 calls ran\s+read_file ×8\s+Done/);
    assert.equal(await row.locator('details.call').first().isVisible(), false);
    await row.locator('summary').first().click();
    await until('they are shown', async () => (await row.locator('details.call:visible').count()) === 8);
    await chat.approve();
    await until('what was approved joins them', async () => /9 calls ran\s+read_file ×8\s+delete_file\s+1 approved/.test(await row.locator('summary').first().innerText()));
    assert.equal(await row.locator('details.call:visible').count(), 9, 'what was opened stays open');
    await chat.ready();

    await chat.say(PROMPTS.one);
    await chat.waits(1);
    await chat.deny(chat.ask());
    await chat.ready();
    assert.equal(await row.count(), 1, 'few are shown each by itself');
  },

  async 'floods: a call that a person reads stays in view when it becomes part of a row'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.some);
    await chat.waits(1);
    const read = chat.call('read_file').first();
    assert.equal(await chat.page.locator('details.ran').count(), 0);
    await read.locator('summary').click();
    await read.getByRole('region', { name: 'Result' }).waitFor();
    await chat.approve();
    await chat.settled(ONE.tool, 'Approved, done');
    await chat.ready();
    assert.equal(await chat.page.locator('details.ran').count(), 1);
    assert.ok(await read.getByRole('region', { name: 'Result' }).isVisible());
  },
};
