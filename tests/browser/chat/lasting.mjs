// Pages that are closed, reloaded, opened twice, and a server that is restarted.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

import { until } from './page.mjs';
import { FORBIDDEN, ONE, PROMPTS, SLOW } from './prompts.mjs';

export const lasting = {
  async 'a page that is reloaded in the middle of a stream resumes it'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.slow);
    await chat.sees(SLOW.early);
    await chat.page.reload();
    await chat.sees(SLOW.early);
    assert.ok(!(await chat.text()).includes(SLOW.end), 'the stream was over before the page was back');
    assert.equal(await chat.page.getByRole('region', { name: 'You' }).count(), 1, 'what was said is there');
    await chat.sees(SLOW.end);
    await chat.ready();
    assert.equal((await chat.text()).split(SLOW.early).length, 2, 'the text is there once');
    assert.equal(await chat.answers.count(), 1);
    assert.equal(chat.posts.length, 1);
  },

  async 'Esc stops the assistant, on the server too'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.slow);
    await chat.sees(SLOW.early);
    await chat.page.keyboard.press('Escape');
    await chat.ready();
    const stopped = await chat.answers.innerText();
    await sleep(700);
    assert.equal(await chat.answers.innerText(), stopped);
    await chat.button('Continue').waitFor();
    await chat.page.reload();
    await chat.sees(SLOW.early);
    await chat.ready();
    assert.ok(!(await chat.text()).includes(SLOW.end), 'the server has not continued');
    await chat.say(PROMPTS.forbidden);
    await chat.settled(FORBIDDEN.tool, 'Denied by policy');
  },

  async 'a call still waits after a reload, and in another window'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.one);
    await chat.waits(1);
    const before = await chat.ask().locator('.will-run').innerText();
    await chat.page.reload();
    await chat.waits(1);
    assert.equal(await chat.ask().locator('.will-run').innerText(), before);
    const address = chat.page.url();
    await chat.page.close();
    const other = await visit.open(address);
    await other.waits(1);
    await other.approve();
    await other.settled(ONE.tool, 'Approved, done');
    await other.ready();
    await other.page.reload();
    await other.settled(ONE.tool, 'Approved, done');
    assert.equal(await other.answers.count(), 1);
  },

  async 'a call still waits after the server was restarted'({ visit, restart }) {
    visit.allow(/ERR_CONNECTION|ERR_EMPTY_RESPONSE/);
    const chat = await visit.open();
    await chat.say(PROMPTS.one);
    await chat.waits(1);
    await chat.ready();
    await restart();
    await chat.approve();
    await chat.settled(ONE.tool, 'Approved, done');
    await chat.ready();

    await chat.say(PROMPTS.one);
    await chat.waits(1);
    await chat.ready();
    await restart();
    await chat.page.reload();
    await chat.waits(1);
    await chat.deny(chat.ask(), 'no');
    await chat.settled(ONE.tool, 'Denied', 1);
    await chat.ready();
  },

  async 'two windows show the same answer'({ visit }) {
    const one = await visit.open();
    await one.say(PROMPTS.one);
    await one.waits(1);
    const two = await visit.open(one.page.url());
    await two.waits(1);
    await one.approve();
    await one.settled(ONE.tool, 'Approved, done');
    await one.ready();
    await two.settled(ONE.tool, 'Approved, done');
    assert.equal(two.posts.length, 0, 'it was told');
  },

  async 'of two windows that answer at once one wins, and the other shows it'({ visit }) {
    visit.allow(/status of 409/);
    const one = await visit.open();
    await one.say(PROMPTS.one);
    await one.waits(1);
    const two = await visit.open(one.page.url());
    await two.waits(1);
    const together = barrier(2);
    for (const { page } of [one, two]) {
      await page.route('**/api/chat', async route => {
        await together();
        await route.continue();
      });
    }
    await one.approve();
    await two.deny(two.ask(), 'no');
    const state = chat => chat.call(ONE.tool).first().locator('.state').innerText();
    await until('both are settled', async () => {
      await Promise.all([one.ready(), two.ready()]);
      const states = (await Promise.all([one, two].map(async chat => ((await chat.ask().count()) === 0 ? state(chat) : '')))).sort();
      return states[0] === states[1] && ['Approved, done', 'Denied'].includes(states[0]);
    });
    await one.page.reload();
    assert.equal(await state(one), await state(two));
  },

  async 'an error says what is wrong, and can be tried again'({ visit }) {
    visit.allow(/status of 503/);
    const chat = await visit.open();
    const refuse = route => route.fulfill({ status: 503, contentType: 'application/json', body: '{"error": "The model is away."}' });
    await chat.page.route('**/api/chat', refuse);
    await chat.say(PROMPTS.one);
    await until('the error is shown', async () => (await chat.page.getByRole('alert').innerText()).includes('The model is away.'));
    await chat.page.unroute('**/api/chat');
    await chat.button('Try again').click();
    await chat.waits(1);
    assert.equal(await chat.page.getByRole('alert').count(), 0);

    await chat.page.route('**/api/chat', refuse);
    await chat.approve();
    await chat.page.getByRole('alert').waitFor();
    await chat.page.unroute('**/api/chat');
    await chat.button('Try again').click();
    await chat.settled(ONE.tool, 'Approved, done');
    await chat.ready();
  },

  async 'a message that the server does not take now is not lost'({ visit }) {
    visit.allow(/status of 409/);
    const one = await visit.open();
    await one.say(PROMPTS.slow);
    await one.sees(SLOW.early);
    const two = await visit.open();
    await two.page.route('**/api/chat', route => route.fulfill({ status: 409, contentType: 'application/json', body: '{"error": "Wait for its end."}' }));
    await two.page.goto(one.page.url());
    await two.page.reload();
    await two.sees(SLOW.end);
    await two.ready();
    await two.say('something else');
    await two.sees(/Wait for its end/);
    await until('it can be sent again', async () => (await two.box.inputValue()) === 'something else');
    assert.equal(await two.page.getByRole('region', { name: 'You' }).count(), 1);
    assert.equal(await two.page.getByRole('alert').count(), 0);
  },

  async 'an answer whose response was lost is given again, and runs once'({ visit }) {
    visit.allow(/ERR_FAILED/);
    const chat = await visit.open();
    await chat.say(PROMPTS.one);
    await chat.waits(1);
    await chat.page.route('**/api/chat', async route => {
      await route.fetch();
      await route.abort();
    });
    await chat.approve();
    await chat.page.getByRole('alert').waitFor();
    await chat.page.unroute('**/api/chat');
    await chat.button('Try again').click();
    await chat.settled(ONE.tool, 'Approved, done');
    await chat.ready();
    assert.equal(await chat.call(ONE.tool).count(), 1);
  },

  async 'conversations are listed, opened and forgotten'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.forbidden);
    await chat.settled(FORBIDDEN.tool, 'Denied by policy');
    await chat.ready();
    await chat.button('New chat').click();
    await until('it is empty', async () => (await chat.answers.count()) === 0);
    await chat.say(PROMPTS.one);
    await chat.waits(1);
    const list = chat.page.getByRole('navigation', { name: 'Conversations' });
    await list.getByRole('link', { name: PROMPTS.forbidden }).click();
    await chat.settled(FORBIDDEN.tool, 'Denied by policy');
    await chat.waits(0);
    await list.getByRole('link', { name: PROMPTS.one }).click();
    await chat.waits(1);
    await chat.button(`Forget ${PROMPTS.forbidden}`, list).click();
    assert.equal(await list.getByRole('link').count(), 1);
  },
};

/** Gives a function that comes back when it was called so many times. */
function barrier(count) {
  let open;
  const opened = new Promise(resolve => (open = resolve));
  return () => {
    if (--count === 0) open();
    return opened;
  };
}
