// A user with a real client: sends messages, answers asks, and checks the outcome.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import { check, checkHistory, isTool, toolName } from './rules.mjs';
import { recorder } from './wire.mjs';

const QUIET_MS = 50;
const PATIENCE_MS = 15_000;
const MOST_REQUESTS = 12;

export const newId = () => `chat-${randomBytes(8).toString('hex')}`;

export class User {
  /**
   * `auto`: when the client sends by itself: `either` (as the documentation says), `approvals`, `tools` or `never`.
   * `lose`: breaks a response, see `recorder`. `edits`: arguments that go with the answers, by approval.
   */
  constructor(sdk, base, { id = newId(), messages = [], auto = 'either', lose } = {}) {
    this.sdk = sdk;
    this.base = base;
    this.id = id;
    this.wire = recorder({ lose });
    this.errors = [];
    this.edits = {};
    const { ai } = sdk;
    const answered = auto === 'either' || auto === 'approvals' ? ai.lastAssistantMessageIsCompleteWithApprovalResponses : () => false;
    const given = auto === 'either' || auto === 'tools' ? ai.lastAssistantMessageIsCompleteWithToolCalls : () => false;
    this.chat = new sdk.Chat({
      id,
      messages,
      transport: new ai.DefaultChatTransport({
        api: `${base}/api/chat`,
        fetch: this.wire.fetch,
        body: () => (Object.keys(this.edits).length > 0 ? { overrideArgs: this.edits } : {}),
      }),
      onError: error => this.errors.push(error),
      sendAutomaticallyWhen: it => this.wire.exchanges.length < MOST_REQUESTS && (answered(it) || given(it)),
    });
  }

  async settled() {
    const end = Date.now() + PATIENCE_MS;
    for (let quiet = 0; quiet < QUIET_MS; quiet += 10) {
      assert.ok(Date.now() < end, `it does not come to rest: ${this.chat.status}`);
      await sleep(10);
      if (this.wire.busy() || !['ready', 'error'].includes(this.chat.status)) quiet = 0;
    }
    assert.ok(this.wire.exchanges.length < MOST_REQUESTS, 'the client sends on and on');
  }

  async say(text) {
    void this.chat.sendMessage({ text }).catch(error => this.errors.push(error));
    await this.settled();
  }

  /** Sends what is there, as a button "try again" does. */
  async again() {
    void this.chat.sendMessage().catch(error => this.errors.push(error));
    await this.settled();
  }

  get calls() {
    return this.chat.messages.flatMap(message => message.parts.filter(isTool));
  }

  get states() {
    return this.calls.map(part => `${toolName(part)} ${part.state}`);
  }

  get text() {
    return this.chat.messages.at(-1)?.parts.filter(part => part.type === 'text').map(part => part.text).join('') ?? '';
  }

  get exchanges() {
    return this.wire.exchanges;
  }

  waiting() {
    return this.calls.filter(part => part.state === 'approval-requested');
  }

  /** The call with this input that waits. */
  asked(path) {
    const found = this.waiting().filter(part => path === undefined || part.input.path === path);
    assert.equal(found.length, 1, `one call waits${path ? ` about ${path}` : ''}; there are ${JSON.stringify(this.states)}`);
    return found[0];
  }

  async answer(part, approved, reason) {
    await this.chat.addToolApprovalResponse({ id: part.approval.id, approved, ...(reason && { reason }) });
  }

  async approve(part = this.asked()) {
    await this.answer(part, true);
    await this.settled();
  }

  async deny(part = this.asked(), reason) {
    await this.answer(part, false, reason);
    await this.settled();
  }

  async give(tool, result) {
    const part = this.calls.find(it => toolName(it) === tool && it.state === 'input-available');
    assert.ok(part, `${tool} waits for the client; there are ${JSON.stringify(this.states)}`);
    await this.chat.addToolOutput({ tool, toolCallId: part.toolCallId, ...result });
    await this.settled();
  }

  /** Another client with what this one has stored: a page that was reloaded. */
  reloaded(options = {}) {
    return new User(this.sdk, this.base, { id: this.id, messages: JSON.parse(JSON.stringify(this.chat.messages)), ...options });
  }

  /** The conversation as the server has it. */
  async stored() {
    const response = await fetch(`${this.base}/api/chat/${this.id}/messages`);
    assert.equal(response.status, 200, 'the server has the conversation');
    return (await response.json()).messages;
  }

  /** Everything that has to be so at the end of an honest conversation. */
  async check({ mayFail = false, requests } = {}) {
    await this.settled();
    const posts = this.exchanges.filter(exchange => exchange.method === 'POST');
    if (requests !== undefined) assert.equal(posts.length, requests, 'how many requests there were');
    const wrong = [];
    for (const exchange of this.exchanges.filter(it => !it.lost)) {
      await exchange.read;
      wrong.push(...(await check(exchange, this.sdk, { mayFail })));
    }
    wrong.push(...(await checkHistory(this.chat.messages, this.sdk)));
    const kept = await this.stored();
    wrong.push(...(await checkHistory(kept, this.sdk)).map(it => `at the server: ${it}`), ...differences(this.chat.messages, kept));
    if (!mayFail) {
      wrong.push(...this.errors.map(error => `the client reports ${error.message}`));
      if (this.chat.status !== 'ready') wrong.push(`the client is left ${this.chat.status}`);
    }
    assert.deepEqual(wrong, []);
  }
}

/** Where the server's copy differs from the client's. What was withdrawn only the server knows. */
function differences(client, server) {
  const calls = client.slice(0, -1).flatMap(message => message.parts.filter(isTool));
  const withdrawn = new Set(calls.filter(part => part.state === 'approval-requested').map(part => part.toolCallId));
  const state = part => `${toolName(part)} ${withdrawn.has(part.toolCallId) ? 'withdrawn' : part.state}`;
  const text = parts => parts.filter(part => part.type === 'text').map(part => part.text).join('');
  const told = messages => JSON.stringify(messages.map(({ role, parts }) => [role, text(parts), parts.filter(isTool).map(state)]));
  const [ours, theirs] = [told(client), told(server)];
  return ours === theirs ? [] : [`the client has ${ours}, and the server ${theirs}`];
}
