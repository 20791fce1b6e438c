// The rules that every response keeps, also where clients would tolerate more: form, schema, order.
import { chunks } from './wire.mjs';

export const isTool = part => part.type === 'dynamic-tool' || part.type.startsWith('tool-');
export const toolName = part => (part.type === 'dynamic-tool' ? part.toolName : part.type.slice(5));

const HEADERS = {
  'content-type': /^text\/event-stream/,
  'cache-control': /no-cache/,
  'x-vercel-ai-ui-message-stream': /^v1$/,
  'x-accel-buffering': /^no$/,
};
const OUTCOME = /^tool-output-(available|error|denied)$/;
const MAY_BE_NULL = new Set(['input', 'output', 'data']);

/** What is wrong with a response, as texts. */
export async function check(exchange, sdk, { mayFail = false } = {}) {
  if (exchange.status === 204 && exchange.method === 'GET') return [];
  if (exchange.status !== 200) return [`status ${exchange.status}: ${exchange.text.slice(0, 200)}`];
  const wrong = [];
  for (const [name, wanted] of Object.entries(HEADERS)) {
    if (!wanted.test(exchange.headers[name] ?? '')) wrong.push(`the header ${name} is ${exchange.headers[name]}`);
  }
  const { found, wrong: form } = chunks(exchange.text);
  wrong.push(...form);
  for (const chunk of found) {
    const refused = await sdk.refuses(chunk);
    if (refused) wrong.push(`${sdk.version} refuses ${JSON.stringify(chunk)}: ${refused}`);
    for (const [name, value] of Object.entries(chunk)) {
      if (value === null && !MAY_BE_NULL.has(name)) wrong.push(`${chunk.type}.${name} is null`);
    }
  }
  wrong.push(...new Order(exchange, mayFail).follow(found));
  return wrong.map(it => `${exchange.method} ${new URL(exchange.url).pathname}: ${it}`);
}

/** Follows the chunks of one response, from the message that it continues. */
class Order {
  constructor({ body, method }, mayFail) {
    this.wrong = [];
    this.mayFail = mayFail;
    this.replay = method === 'GET';
    const named = body?.messages?.find(message => message.id === body.messageId && message.role === 'assistant');
    const last = body?.messages?.at(-1);
    this.continued = named ?? (last?.role === 'assistant' ? last : undefined);
    this.calls = new Map();
    this.approvals = new Map();
    this.automatic = new Map();
    this.owed = new Map();
    for (const part of this.continued?.parts.filter(isTool) ?? []) {
      this.calls.set(part.toolCallId, part.state);
      if (part.approval) this.approvals.set(part.approval.id, part.toolCallId);
      if (part.state === 'approval-responded') this.owed.set(part.toolCallId, part.approval.approved);
    }
    this.texts = new Set();
    this.step = false;
    this.stepped = false;
  }

  follow(found) {
    let failed = false;
    let finished = 0;
    found.forEach((chunk, n) => {
      this.at = `chunk ${n} (${chunk.type})`;
      if (n === 0) this.must(chunk.type === 'start', 'the first is start');
      else this.must(chunk.type !== 'start', 'start comes once');
      this.must(finished === 0, 'nothing follows finish');
      if (chunk.type === 'finish') finished++;
      if (chunk.type === 'error') failed = true;
      this.one(chunk);
    });
    this.at = 'at the end';
    if (failed) {
      this.must(this.mayFail, 'there is no error chunk');
      return this.wrong;
    }
    this.must(finished === 1, 'finish came');
    this.must(!this.step, 'the last step is closed');
    this.must(this.texts.size === 0, 'all texts are closed');
    this.must(this.owed.size === 0, `every answered call has an outcome; missing: ${[...this.owed.keys()]}`);
    return this.wrong;
  }

  must(so, what) {
    if (!so) this.wrong.push(`${this.at}: not so: ${what}`);
  }

  one(chunk) {
    const { type } = chunk;
    if (type === 'start') this.start(chunk);
    else if (type === 'start-step' || type === 'finish-step') this.steps(type === 'start-step');
    else if (/^(text|reasoning)-/.test(type)) this.text(chunk);
    else if (type.startsWith('tool-input-')) this.input(chunk);
    else if (type === 'tool-approval-request') this.request(chunk);
    else if (type === 'tool-approval-response') this.response(chunk);
    else if (OUTCOME.test(type)) this.outcome(chunk);
  }

  start({ messageId }) {
    if (!this.continued || messageId === undefined) return;
    this.must(messageId === this.continued.id, `the message keeps its id ${this.continued.id}, not ${messageId}`);
  }

  steps(opens) {
    this.must(this.step !== opens, 'steps open and close in turn');
    this.step = opens;
    if (opens) this.stepped = true;
  }

  text({ type, id }) {
    const [kind, what] = type.split('-');
    const key = `${kind} ${id}`;
    this.must(this.step, 'the model speaks within a step');
    this.must(this.texts.has(key) === (what !== 'start'), 'a text is opened once, then written, then closed');
    if (what === 'start') this.texts.add(key);
    if (what === 'end') this.texts.delete(key);
  }

  input({ type, toolCallId }) {
    const known = this.calls.get(toolCallId);
    this.must(this.step, 'a call is made within a step');
    if (type === 'tool-input-delta') return this.must(known === 'input-streaming', 'the input was started');
    this.must(known === undefined || (known === 'input-streaming' && type !== 'tool-input-start'), `the call ${toolCallId} is announced once`);
    this.calls.set(toolCallId, { 'tool-input-start': 'input-streaming', 'tool-input-available': 'input-available' }[type] ?? 'output-error');
  }

  request({ toolCallId, approvalId }) {
    this.must(this.calls.get(toolCallId) === 'input-available', 'a call is asked about when its input is there');
    this.must(!this.approvals.has(approvalId), 'an approval has its own id');
    this.approvals.set(approvalId, toolCallId);
    this.calls.set(toolCallId, 'approval-requested');
  }

  /** What a policy answers by itself (AI SDK 7 only). */
  response({ approvalId, approved }) {
    const toolCallId = this.approvals.get(approvalId);
    this.must(this.calls.get(toolCallId) === 'approval-requested', 'an answer is to an open request');
    this.calls.set(toolCallId, 'approval-responded');
    this.automatic.set(toolCallId, approved);
  }

  outcome({ type, toolCallId, preliminary }) {
    const known = this.calls.get(toolCallId);
    const owed = this.owed.get(toolCallId);
    const answer = owed ?? this.automatic.get(toolCallId);
    this.must(['input-available', 'approval-responded'].includes(known), `an outcome is for an open call, and this is ${known}`);
    if (type === 'tool-output-denied') this.must(answer === false, 'denied is what was answered with no');
    if (type === 'tool-output-available') this.must(answer !== false, 'what was answered with no has no output');
    if (owed !== undefined) this.must(!this.stepped, 'the outcomes of answered calls come before the next step');
    if (preliminary) return;
    this.owed.delete(toolCallId);
    this.calls.set(toolCallId, type.slice('tool-'.length));
  }
}

/** What is wrong with a history that a server would store. */
export async function checkHistory(messages, sdk) {
  const wrong = [];
  const plain = JSON.parse(JSON.stringify(messages));
  await sdk.ai.validateUIMessages({ messages: plain }).catch(error => wrong.push(`the history is not valid: ${String(error.message).slice(0, 300)}`));
  try {
    await sdk.ai.convertToModelMessages(plain);
  } catch (error) {
    wrong.push(`the history cannot be converted: ${error.message}`);
  }
  const ids = plain.flatMap(message => message.parts.filter(isTool)).map(part => part.toolCallId);
  if (new Set(ids).size !== ids.length) wrong.push('a call is in the history twice');
  plain.forEach((message, n) => {
    if (n > 0 && message.role === 'assistant' && plain[n - 1].role === 'assistant') wrong.push('two messages of the assistant follow each other');
  });
  return wrong;
}
