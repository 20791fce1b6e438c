// Answers to calls: one by one, together, with a reason, with edited arguments, and none at all.
import assert from 'node:assert/strict';

import { CLEAN_UP, EXPLODE, FORBIDDEN, LOCATION, ONE, PROMPTS, SUB_AGENT, TWO } from './prompts.mjs';
import { until } from './page.mjs';

export const answering = {
  async 'a call is shown as it will run, and runs once when it is approved'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.one);
    await chat.waits(1);
    const card = chat.ask();
    assert.match(await card.locator('.will-run').innerText(), new RegExp(escaped(ONE.headline)));
    assert.match(await card.getByRole('list', { name: 'Why you are asked' }).innerText(), new RegExp(ONE.question));
    assert.equal(chat.posts.length, 1, 'nothing is sent before the first answer');
    await chat.approve();
    await chat.settled(ONE.tool, 'Approved, done');
    await chat.ready();
    assert.equal(chat.posts.length, 2);
    assert.equal(chat.posts[1].overrideArgs, undefined);
    assert.equal(await chat.answers.count(), 1, 'the response continues in the same message');
  },

  async 'a denial runs nothing, and its reason is shown'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.one);
    await chat.waits(1);
    await chat.deny(chat.ask(), 'not on a Friday');
    const card = await chat.settled(ONE.tool, 'Denied');
    assert.match(await card.innerText(), /It did not run.*not on a Friday/s);
    await chat.ready();
    assert.equal(chat.posts.length, 2);
  },

  async 'an edit runs as it was written, and both are shown'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.one);
    await chat.waits(1);
    await chat.edit(chat.ask(), ONE.edited);
    // The stack may have a question about the new arguments.
    const states = ['Edited, done', 'Asked again'];
    const card = chat.call(ONE.tool).first();
    await until('the edit is taken', async () => (await card.count()) === 1 && states.includes(await card.locator('.state').innerText()));
    await chat.ready();
    const text = await card.locator('summary').innerText();
    assert.ok(text.includes(ONE.ran), text);
    assert.ok(text.includes(`The model asked for ${ONE.headline}`), text);
    assert.deepEqual(Object.values(chat.posts[1].overrideArgs), [ONE.edited]);
    if ((await card.locator('.state').innerText()) === 'Edited, done') return;

    await chat.waits(1);
    assert.match(await chat.ask().innerText(), /Asked again: /);
    assert.ok((await chat.ask().locator('.will-run').innerText()).includes(ONE.ran));
    await chat.approve();
    const second = await chat.settled(ONE.tool, 'Approved, done', 1);
    assert.ok((await second.innerText()).includes(ONE.ran));
    await chat.ready();
    assert.equal(chat.posts.length, 3);
    assert.equal(chat.posts[2].overrideArgs, undefined, 'an edit goes out once');
  },

  async 'an edit that is no object of JSON cannot be sent'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.one);
    await chat.waits(1);
    const card = chat.ask();
    await chat.button(/^Edit/, card).click();
    const send = chat.button('Approve as edited', card);
    assert.ok(await send.isDisabled(), 'nothing is changed yet');
    for (const text of ['{"path": ', '["a.txt"]', 'null', '{"path": 12345678901234567890}']) {
      await card.getByRole('textbox').fill(text);
      assert.ok(await send.isDisabled(), text);
      await card.getByRole('textbox').press('Control+Enter');
    }
    await chat.button('Cancel', card).click();
    assert.equal(chat.posts.length, 1);
    await chat.approve();
    await chat.settled(ONE.tool, 'Approved, done');
  },

  async 'two calls are answered one by one, and go out together'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.two);
    await chat.waits(2);
    await chat.deny(chat.ask(TWO[1]), 'keep b');
    await chat.waits(1);
    assert.equal(chat.posts.length, 1, 'half of the answers are not sent');
    await chat.approve(chat.ask(TWO[0]));
    await chat.settled(ONE.tool, 'Approved, done', 0);
    await chat.settled(ONE.tool, 'Denied', 1);
    await chat.ready();
    assert.equal(chat.posts.length, 2);
  },

  async 'all can be approved at once'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.two);
    await chat.waits(2);
    await chat.button('Approve all 2').click();
    await chat.settled(ONE.tool, 'Approved, done', 0);
    await chat.settled(ONE.tool, 'Approved, done', 1);
    await chat.ready();
    assert.equal(chat.posts.length, 2);
  },

  async 'equal calls are one card, and its answer is given to each of them'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.moveThrice);
    await chat.waits(1);
    await chat.ready();
    const card = chat.ask();
    assert.match(await card.innerText(), /The same call 3 times/);
    assert.match(await card.locator('.will-run').innerText(), /move_file\(from: "a.txt", to: "away.txt"\)/);
    assert.equal(await chat.page.title(), '(3) Countersign');
    assert.equal(await chat.page.locator('.wait-bar').count(), 0, 'there is one set of buttons');
    await chat.page.reload();
    await chat.waits(1);
    await chat.button('Approve all 3', card).click();
    await until('the answers are out', async () => chat.posts.length === 2);
    await chat.ready();
    assert.equal(given(chat.posts[1]).size, 3, 'each by its own approval');
    const states = await chat.call('move_file').locator('.state').allInnerTexts();
    assert.deepEqual(states.sort(), ['Approved, done', 'Failed', 'Failed'], 'all three have run');
  },

  async 'equal calls are denied and edited together, too'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.thrice);
    await chat.waits(1);
    await chat.button(/^Deny all 3/, chat.ask()).click();
    await chat.ask().getByLabel(/Why not/).fill('once is enough');
    await chat.button('Deny all 3 calls').click();
    for (const at of [0, 1, 2]) assert.match(await (await chat.settled(ONE.tool, 'Denied', at)).innerText(), /once is enough/);
    await chat.ready();

    await chat.say(PROMPTS.thrice);
    await chat.waits(1);
    await chat.button(/^Edit all 3/, chat.ask()).click();
    await chat.ask().getByRole('textbox').fill(JSON.stringify(ONE.edited));
    await chat.button('Approve all 3 as edited').click();
    await until('the answers are out', async () => chat.posts.length === 4);
    assert.deepEqual(Object.values(chat.posts[3].overrideArgs), [ONE.edited, ONE.edited, ONE.edited]);
    await chat.ready();
  },

  async 'equal calls can be answered one by one'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.thrice);
    await chat.waits(1);
    await chat.button('Answer one by one', chat.ask()).click();
    await chat.waits(3);
    assert.ok(await chat.ask().first().evaluate(it => it === document.activeElement), 'the focus stays');
    await chat.approve(chat.ask().first());
    await chat.waits(2);
    await chat.deny(chat.ask().last(), 'not the third');
    await chat.waits(1);
    assert.equal(chat.posts.length, 1);
    await chat.deny(chat.ask().first(), 'not the second');
    await chat.settled(ONE.tool, 'Approved, done', 0);
    for (const [at, why] of [[1, /not the second/], [2, /not the third/]]) {
      assert.match(await (await chat.settled(ONE.tool, 'Denied', at)).innerText(), why);
    }
    await chat.ready();
    assert.equal(chat.posts.length, 2);
  },

  async 'a call that a policy denies is never asked about'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.forbidden);
    const card = await chat.settled(FORBIDDEN.tool, 'Denied by policy');
    assert.match(await card.innerText(), new RegExp(FORBIDDEN.reason));
    await chat.ready();
    await chat.waits(0);
    assert.equal(chat.posts.length, 1);
  },

  async 'a tool that fails says so'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.explode);
    await chat.waits(1);
    await chat.approve();
    const card = await chat.settled(EXPLODE.tool, 'Failed');
    assert.match(await card.innerText(), new RegExp(EXPLODE.error));
    await chat.ready();
    assert.equal(chat.posts.length, 2);
  },

  async 'a call without a body on the server is answered by the page'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.location);
    await chat.waits(1);
    await chat.ask().getByRole('textbox').fill('Berlin');
    await chat.button(/^Share/, chat.ask()).click();
    await chat.settled(LOCATION.tool, 'Done');
    await chat.ready();
    assert.equal(chat.posts.length, 2);
    await chat.sees(/Berlin/);

    await chat.say(PROMPTS.location);
    await chat.waits(1);
    await chat.button('Do not share', chat.ask()).click();
    await chat.settled(LOCATION.tool, 'Failed', 1);
    await chat.ready();
  },

  async 'a call of a sub-agent is shown below its agents, and continues there'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.subAgent);
    await chat.waits(1);
    assert.equal(await chat.ask().locator('h3').innerText(), SUB_AGENT.path);
    await chat.settled(SUB_AGENT.agent, 'Waits too');
    await chat.approve();
    await chat.settled(ONE.tool, 'Approved, done');
    await chat.settled(SUB_AGENT.agent, 'Done');
    await chat.ready();
    assert.equal(chat.posts.length, 2);
  },

  async 'a whole task: reads run, a secret is denied, changes wait'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.cleanUp);
    await until('something waits', async () => (await chat.ask().count()) > 1);
    const named = chat.page.locator('.headline').filter({ hasText: CLEAN_UP.secret });
    const secret = chat.page.locator('details.call').filter({ has: named }).first();
    assert.equal(await secret.locator('.state').innerText(), 'Denied by policy');
    for (let round = 0; (await chat.ask().count()) > 0; round++) {
      assert.ok(round < 5, 'it asks on and on');
      await chat.deny(chat.ask().first(), 'this one stays');
      for (let rest = await chat.ask().count(); rest > 0; rest--) await chat.approve();
      await until('the answers are out', async () => chat.posts.length > round + 1);
      await chat.ready();
    }
    assert.ok((await chat.page.getByText('Approved, done').count()) > 0);
    assert.match(await chat.text(), /this one stays/);
  },

  async 'a message instead of an answer withdraws the pending calls'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.one);
    await chat.waits(1);
    await chat.say(PROMPTS.forbidden);
    await chat.settled(ONE.tool, 'Withdrawn');
    await chat.settled(FORBIDDEN.tool, 'Denied by policy');
    await chat.ready();
    await chat.waits(0);
  },
};

/** The approvals that a request answers. */
function given(post) {
  const found = new Set();
  JSON.stringify(post, (_, value) => {
    if (value?.state === 'approval-responded') found.add(value.approval.id);
    return value;
  });
  return found;
}

function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
