// Nothing moves under the pointer, nothing is approved unseen, and no answer or draft is lost. The page's clock stands
// still where time matters, so that nothing depends on how fast this machine is.
import assert from 'node:assert/strict';

import { until } from './page.mjs';
import { LONG, ONE, PROMPTS, TWO } from './prompts.mjs';

export const careful = {
  async 'what has just moved does not count, nor what was pressed before'({ visit }) {
    await visit.context.clock.install();
    const chat = await visit.open();
    await chat.say(PROMPTS.two);
    await chat.waits(2);
    await chat.ready();
    const [first, second] = TWO.map(text => chat.button(/^Approve/, chat.ask(text)));
    await chat.settles(first);
    const { clock, keyboard, mouse } = chat.page;
    await clock.pauseAt(await chat.page.evaluate(() => Date.now() + 2000));
    await chat.clickAt(first);
    await clock.runFor(200);
    assert.equal(await chat.ask().count(), 1);
    assert.equal(await second.getAttribute('aria-disabled'), 'true');
    await chat.clickAt(second);
    await mouse.down();
    await clock.runFor(700);
    await mouse.up();
    await second.evaluate(it => (it.blur(), it.focus()));
    await keyboard.press('Enter');
    await chat.ask().focus();
    await keyboard.press('a');
    await clock.runFor(200);
    assert.equal(chat.posts.length, 1, 'nothing was answered');
    await clock.runFor(2000);
    await chat.clickAt(second);
    await clock.resume();
    await chat.settled(ONE.tool, 'Approved, done', 1);
    await chat.ready();
    assert.equal(chat.posts.length, 2);
  },

  async 'a text that is left out has to be opened, also where all are approved'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.long);
    await chat.waits(2);
    const card = chat.page.locator(`article.call[data-tool="${LONG.tool}"]`);
    const yes = chat.button(/^Approve/, card);
    assert.ok(!(await card.innerText()).includes(LONG.hidden));
    assert.ok(await yes.isDisabled());
    await card.focus();
    await until('keys count', async () => (await card.getAttribute('aria-keyshortcuts')) !== null);
    await chat.page.keyboard.press('a');
    assert.match(await chat.page.locator('.wait-bar').innerText(), /1 with text that is not shown yet/);
    await chat.button('Approve 1 of 2').click();
    await chat.waits(1);
    assert.equal(chat.posts.length, 1);
    await chat.button('Show everything', card).click();
    await card.locator('.args').getByText(LONG.hidden).waitFor();
    assert.ok(await yes.isDisabled(), 'its last row was not in sight');
    await chat.readWhole(card);
    await yes.click();
    await chat.settled(LONG.tool, 'Approved, done');
    await chat.ready();
    assert.equal(chat.posts.length, 2);
  },

  async 'while an edit is open, nothing else answers its call'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.two);
    await chat.waits(2);
    const card = chat.ask(TWO[0]);
    await chat.button(/^Edit/, card).click();
    assert.deepEqual(await card.getByRole('button').allInnerTexts(), ['Approve as edited', 'Cancel']);
    await card.focus();
    await until('keys count', async () => (await card.getAttribute('aria-keyshortcuts')) !== null);
    await chat.page.keyboard.press('a');
    await chat.button('Approve 1 of 2').click();
    await chat.waits(1);
    assert.equal(chat.posts.length, 1);
    await card.getByRole('textbox').fill('{"path": "c.txt"}');
    await chat.button('Approve as edited', card).click();
    await until('both are out', async () => chat.posts.length === 2);
    assert.deepEqual(Object.values(chat.posts[1].overrideArgs), [{ path: 'c.txt' }]);
    await chat.ready();
  },

  async 'answers that are given and not sent are still given after a reload'({ visit }) {
    visit.allow(/status of 503/);
    const chat = await visit.open();
    await chat.say(PROMPTS.two);
    await chat.waits(2);
    await chat.ready();
    await chat.edit(chat.ask(TWO[0]), { path: 'c.txt' });
    await chat.waits(1);
    await chat.page.reload();
    await chat.waits(1);
    await chat.settled(ONE.tool, 'Edited');
    const refuse = route => route.fulfill({ status: 503, contentType: 'application/json', body: '{"error": "Not now."}' });
    await chat.page.route('**/api/chat', refuse);
    await chat.deny(chat.ask(TWO[1]), 'keep b');
    await chat.sees(/Not now/);
    await chat.page.unroute('**/api/chat');
    await chat.page.reload();
    await chat.sees(/Your answers have not been sent/);
    const before = chat.posts.length;
    await chat.button('Send them').click();
    await until('they are out', async () => chat.posts.length === before + 1);
    assert.deepEqual(Object.values(chat.posts.at(-1).overrideArgs), [{ path: 'c.txt' }]);
    const card = await chat.settled(ONE.tool, 'Denied', 1);
    assert.match(await card.innerText(), /keep b/);
    await chat.ready();
    await chat.page.reload();
    await chat.settled(ONE.tool, 'Denied', 1);
    assert.equal(await chat.page.getByText('Your answers have not been sent').count(), 0);
  },

  async 'answers that were not sent can be given anew'({ visit }) {
    visit.allow(/status of 503/);
    const chat = await visit.open();
    await chat.say(PROMPTS.one);
    await chat.waits(1);
    await chat.page.route('**/api/chat', route => route.fulfill({ status: 503, contentType: 'application/json', body: '{"error": "Not now."}' }));
    await chat.approve();
    await chat.sees(/Not now/);
    await chat.page.unroute('**/api/chat');
    await chat.page.reload();
    await chat.button('Answer again').click();
    await chat.waits(1);
    await chat.deny(chat.ask());
    await chat.settled(ONE.tool, 'Denied');
    await chat.ready();
  },

  async 'what is half written stays when the page or the server is restarted, and when another window answers'({ visit, restart }) {
    visit.allow(/ERR_CONNECTION|ERR_EMPTY_RESPONSE/);
    const chat = await visit.open();
    await chat.say(PROMPTS.two);
    await chat.waits(2);
    await chat.ready();
    await chat.button(/^Edit/, chat.ask(TWO[0])).click();
    const text = chat.ask(TWO[0]).getByRole('textbox');
    await text.fill('{"path": "c.t');
    await chat.button(/^Deny/, chat.ask(TWO[1])).click();
    const why = chat.ask(TWO[1]).getByRole('textbox');
    await why.fill('we still ne');
    await chat.page.reload();
    await chat.waits(2);
    assert.equal(await text.inputValue(), '{"path": "c.t');
    await restart();
    await chat.page.reload();
    await chat.waits(2);
    assert.equal(await why.inputValue(), 'we still ne');

    const another = await visit.open(chat.page.url());
    await another.waits(2);
    for (const card of TWO) await another.button('Cancel', another.ask(card)).click();
    await why.fill('we still need it');
    await another.button('Approve all 2').click();
    await another.settled(ONE.tool, 'Approved, done', 1);
    await another.ready();
    await chat.settled(ONE.tool, 'Approved, done', 1);
    await chat.sees(/What you had written when this was answered elsewhere/);
    await chat.sees('we still need it');
    await chat.page.reload();
    await chat.sees('we still need it');
    await chat.button('Dismiss').click();
    await until('it is gone', async () => (await chat.page.getByText('we still need it').count()) === 0);
  },

  async 'a call that was denied before says so'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.insist);
    await chat.waits(1);
    assert.doesNotMatch(await chat.ask().innerText(), /denied/);
    for (const said of [/The same call was denied once before: we need it/, /The same call was denied twice before: we need it/]) {
      const posts = chat.posts.length;
      await chat.deny(chat.ask(), 'we need it');
      await until('it is out', async () => chat.posts.length === posts + 1);
      await chat.ready();
      await chat.waits(1);
      assert.match(await chat.ask().innerText(), said);
    }
  },

  async 'a server that is gone or hangs is said to be lost'({ visit, host }) {
    visit.allow(/ERR_CONNECTION|ERR_EMPTY_RESPONSE/);
    const chat = await visit.open();
    const lost = chat.page.getByRole('alert').filter({ hasText: 'The server cannot be reached.' });
    await host('pause');
    await lost.waitFor();
    await host('continue');
    await lost.waitFor({ state: 'hidden' });
    await chat.page.route('**/api/alive', route => route.abort('connectionrefused'));
    await lost.waitFor();
    await chat.page.unroute('**/api/alive');
    await lost.waitFor({ state: 'hidden' });
  },
};
