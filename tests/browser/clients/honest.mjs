// Conversations of honest clients.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

import { isTool } from './rules.mjs';
import { User } from './user.mjs';

const A = 'delete_file({"path":"a.txt"})';
const B = 'delete_file({"path":"b.txt"})';

/** A user with a client of this version. */
function user({ sdk, base }, options) {
  return new User(sdk, base, options);
}

function saw(who, ...texts) {
  for (const text of texts) assert.ok(who.text.includes(text), `the model saw “${text}”: ${who.text}`);
}

export const honest = {
  async text(at) {
    const who = user(at);
    await who.say('text');
    assert.equal(who.text, 'Hello from the model.');
    await who.check({ requests: 1 });
    assert.deepEqual(await at.ran(), []);
  },

  async allow(at) {
    const who = user(at);
    await who.say('allow');
    assert.deepEqual(who.states, ['read_file output-available']);
    saw(who, 'read_file({"path":"a.txt"}) ok');
    await who.check({ requests: 1 });
    assert.deepEqual(await at.ran(), ['read_file({"path":"a.txt"})']);
  },

  async approve(at) {
    const who = user(at);
    await who.say('ask');
    assert.deepEqual(await at.ran(), []);
    await who.approve();
    assert.deepEqual(who.states, ['delete_file output-available']);
    assert.deepEqual(who.calls[0].output, { deleted: 'a.txt' });
    saw(who, `model saw: ${A} ok`);
    await who.check({ requests: 2 });
    assert.deepEqual(await at.ran(), [A]);
  },

  async 'approve, sent by hand'(at) {
    const who = user(at, { auto: 'never' });
    await who.say('ask');
    await who.approve();
    assert.deepEqual(await at.ran(), [], 'the answer was not sent yet');
    await who.again();
    await who.check({ requests: 2 });
    assert.deepEqual(await at.ran(), [A]);
  },

  async 'deny with a reason'(at) {
    const who = user(at);
    await who.say('ask');
    await who.deny(undefined, 'too risky');
    assert.deepEqual(who.states, ['delete_file output-denied']);
    saw(who, 'denied', 'too risky');
    await who.check({ requests: 2 });
    assert.deepEqual(await at.ran(), []);
  },

  async 'deny without a reason'(at) {
    const who = user(at);
    await who.say('ask');
    await who.deny();
    assert.deepEqual(who.states, ['delete_file output-denied']);
    saw(who, 'denied');
    await who.check({ requests: 2 });
    assert.deepEqual(await at.ran(), []);
  },

  async 'two, one of them denied'(at) {
    const who = user(at);
    await who.say('two');
    await who.approve(who.asked('a.txt'));
    assert.equal(who.exchanges.length, 1, 'half of the answers are not sent');
    await who.deny(who.asked('b.txt'), 'keep b');
    assert.deepEqual(who.states, ['delete_file output-available', 'delete_file output-denied']);
    saw(who, `${A} ok`, 'keep b');
    await who.check({ requests: 2 });
    assert.deepEqual(await at.ran(), [A]);
  },

  async 'two, answered from the last'(at) {
    const who = user(at);
    await who.say('two');
    await who.approve(who.asked('b.txt'));
    await who.approve(who.asked('a.txt'));
    assert.deepEqual(who.states, ['delete_file output-available', 'delete_file output-available']);
    assert.ok(who.text.indexOf(A) < who.text.indexOf(B), 'the results are in the order of the calls');
    await who.check({ requests: 2 });
    assert.deepEqual((await at.ran()).sort(), [A, B]);
  },

  async sequential(at) {
    const who = user(at);
    await who.say('sequential');
    await who.approve(who.asked('a.txt'));
    assert.deepEqual(await at.ran(), [A]);
    await who.approve(who.asked('b.txt'));
    await who.check({ requests: 3 });
    assert.deepEqual(await at.ran(), [A, B]);
    assert.equal(who.chat.messages.length, 2, 'it is all one message of the assistant');
  },

  async external(at) {
    const who = user(at);
    await who.say('external');
    await who.give('get_location', { output: { lat: 52.5 } });
    assert.deepEqual(who.states, ['get_location output-available']);
    saw(who, 'get_location({}) ok {"lat":52.5}');
    await who.check({ requests: 2 });
    assert.deepEqual(await at.ran(), []);
  },

  async 'external, with an error'(at) {
    const who = user(at);
    await who.say('external');
    await who.give('get_location', { state: 'output-error', errorText: 'no gps' });
    saw(who, 'no gps');
    await who.check({ requests: 2 });
  },

  async mixed(at) {
    const who = user(at);
    await who.say('mixed');
    assert.deepEqual(await at.ran(), ['read_file({"path":"a.txt"})']);
    await who.give('get_location', { output: 'Berlin' });
    assert.equal(who.exchanges.length, 1);
    await who.approve();
    assert.deepEqual(who.states, ['read_file output-available', 'delete_file output-available', 'get_location output-available']);
    saw(who, `${A} ok`, 'Berlin');
    await who.check({ requests: 2 });
    assert.deepEqual(await at.ran(), ['read_file({"path":"a.txt"})', A]);
  },

  async 'denied by policy'(at) {
    const who = user(at);
    await who.say('deny-policy');
    assert.deepEqual(who.waiting(), []);
    assert.equal(who.calls.length, 1);
    saw(who, 'wiping disks is forbidden');
    await who.check({ requests: 1 });
    assert.deepEqual(await at.ran(), []);
  },

  async 'a tool that fails'(at) {
    const who = user(at);
    await who.say('tool-error');
    await who.approve();
    assert.deepEqual(who.states, ['explode output-error']);
    assert.match(who.calls[0].errorText, /kaboom/);
    saw(who, 'kaboom');
    await who.check({ requests: 2 });
    assert.deepEqual(await at.ran(), ['explode({})']);
  },

  async 'bad input'(at) {
    const who = user(at);
    await who.say('bad-input');
    assert.deepEqual(who.states, ['delete_file output-error'], 'no person is asked about a call that cannot run');
    saw(who, 'error');
    await who.check({ requests: 1 });
    assert.deepEqual(await at.ran(), []);
  },

  async 'a model that fails'(at) {
    const who = user(at);
    await who.say('stream-error');
    assert.equal(who.chat.status, 'error');
    assert.match(who.chat.error.message, /model exploded/);
    assert.equal(who.text, 'partial');
    await who.check({ requests: 1, mayFail: true });
  },

  async 'two turns'(at) {
    const who = user(at);
    await who.say('ask');
    await who.approve();
    await who.say('ask');
    await who.deny(undefined, 'once is enough');
    saw(who, 'once is enough');
    assert.equal(who.chat.messages.length, 4);
    await who.check({ requests: 4 });
    assert.deepEqual(await at.ran(), [A]);
  },

  async 'an edit'(at) {
    const who = user(at);
    await who.say('ask');
    who.edits[who.asked().approval.id] = { path: 'b.txt' };
    await who.approve();
    assert.deepEqual(who.calls[0].output, { deleted: 'b.txt' });
    await who.check({ requests: 2 });
    assert.deepEqual(await at.ran(), [B]);
  },

  async 'what is shown beside a request'(at) {
    const who = user(at);
    await who.say('ask');
    const shown = () => who.chat.messages.at(-1).parts.filter(part => part.type === 'data-approval');
    const [{ id, data }] = shown();
    assert.equal(shown().length, 1);
    assert.equal(id, who.asked().approval.id);
    assert.equal(data.approvalId, id);
    assert.equal(data.toolCallId, who.asked().toolCallId);
    assert.equal(data.status, 'pending');
    assert.deepEqual(data.input, { path: 'a.txt' });
    assert.deepEqual(JSON.parse(data.canonical), data.input);
    assert.match(data.headline, /delete_file.*a\.txt/);
    assert.match(data.questions.map(it => it.reason).join(), /deleting is permanent/);
    await who.approve();
    assert.deepEqual(shown().map(part => part.data.status), ['approved']);
    await who.check();
  },

  async 'a sub-agent that asks'(at) {
    const who = user(at);
    await who.say('sub-agent');
    assert.equal(who.waiting().length, 1, 'the call of the sub-agent waits');
    await who.approve(who.asked('b.txt'));
    assert.deepEqual(who.states.toSorted(), ['cleaner output-available', 'delete_file output-available']);
    saw(who, 'cleaner(');
    await who.check({ requests: 2 });
    assert.deepEqual(await at.ran(), [B]);
  },

  async 'a sub-agent that asks beside a call that waits'(at) {
    const who = user(at);
    await who.say('sub-agents');
    await who.approve(who.asked('a.txt'));
    assert.equal(who.exchanges.length, 1, 'half of the answers are not sent');
    await who.deny(who.asked('b.txt'), 'keep b');
    // A client looks at the last step only: what the agent above asks stands there too, and its first part says so.
    const settled = who.states.filter(state => state !== 'delete_file output-error').toSorted();
    assert.deepEqual(settled, ['cleaner output-available', 'delete_file output-available', 'delete_file output-denied']);
    await who.check({ requests: 2 });
    assert.deepEqual(await at.ran(), [A]);
  },

  async 'a message instead of an answer'(at) {
    const who = user(at);
    await who.say('ask');
    await who.say('text');
    assert.equal(who.text, 'Hello from the model.');
    await who.check({ requests: 2 });
    assert.deepEqual(await at.ran(), []);
  },

  async 'an answer that is late'(at) {
    const who = user(at, { auto: 'never' });
    await who.say('ask');
    const old = who.asked();
    await who.say('text');
    await who.answer(old, true);
    await who.again();
    assert.deepEqual(await at.ran(), []);
    assert.equal(who.chat.messages.filter(message => message.role === 'user').length, 2);
  },

  async 'nothing to resume'(at) {
    const who = user(at);
    await who.say('text');
    const before = JSON.stringify(who.chat.messages);
    await who.chat.resumeStream();
    assert.equal(who.exchanges.at(-1).status, 204);
    assert.equal(JSON.stringify(who.chat.messages), before);
    await who.check();
  },

  async 'a running stream is resumed'(at) {
    const first = user(at);
    void first.chat.sendMessage({ text: 'slow' });
    await resumes(at, first);
  },

  async 'a stream that continues after an answer is resumed from the beginning of its message'(at) {
    const first = user(at);
    await first.say('slow-ask');
    await first.answer(first.asked(), true);
    await resumes(at, first);
    assert.deepEqual(first.states, ['delete_file output-available']);
    assert.deepEqual(await at.ran(), [A]);
  },

  async 'a reload while a call waits, from what the page stored'(at) {
    const before = user(at);
    await before.say('ask');
    const who = before.reloaded();
    await who.approve();
    await who.check({ requests: 1 });
    assert.deepEqual(await at.ran(), [A]);
  },

  async 'a reload while a call waits, from what the server stored'(at) {
    const before = user(at);
    await before.say('two');
    const who = user(at, { id: before.id, messages: await before.stored() });
    await who.chat.resumeStream();
    assert.deepEqual(who.states, before.states);
    await who.deny(who.asked('a.txt'), 'keep a');
    await who.approve(who.asked('b.txt'));
    await who.check({ requests: 1 });
    assert.deepEqual(await at.ran(), [B]);
    const after = user(at, { id: before.id, messages: await before.stored() });
    assert.deepEqual(after.states, who.states);
    assert.equal(after.text, who.text);
    await after.check();
  },

  async 'a response that is lost, and an honest second try'(at) {
    await lost(at, 'all');
  },

  async 'a connection that breaks at once, and an honest second try'(at) {
    await lost(at, 'body');
  },
};

/**
 * A second page comes while the first one is being told something, and is told the same: the message from its start, as
 * a resumed stream has to be. Older clients add it to what they have, so theirs begins after what the user has said.
 */
async function resumes(at, first) {
  const begun = () => first.chat.messages.at(-1)?.role === 'assistant' && first.text;
  while (!begun()) await sleep(5);
  const messages = await first.stored();
  if (!at.sdk.replaces && messages.at(-1).role === 'assistant') messages.pop();
  const second = user(at, { id: first.id, messages });
  await second.chat.resumeStream();
  assert.equal(second.exchanges[0].status, 200, 'the stream was running');
  await first.settled();
  assert.equal(second.text, first.text);
  assert.deepEqual(second.states, first.states);
  await second.check();
  await first.check();
}

async function lost(at, how) {
  const who = user(at, { lose: (_, n) => n === 1 && how });
  await who.say('ask');
  await who.approve();
  assert.equal(who.chat.status, 'error');
  await who.again();
  assert.deepEqual(who.states, ['delete_file output-available']);
  saw(who, `model saw: ${A} ok`);
  assert.equal(who.chat.messages.at(-1).parts.filter(isTool).length, 1);
  who.errors.length = 0;
  await who.check({ requests: 3 });
  assert.deepEqual(await at.ran(), [A]);
}
