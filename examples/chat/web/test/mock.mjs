// A small server that speaks the wire of the chat example from scripts, to work on the page without the real one:
//   npm run build && npm run mock -- [--port 8080] [--state FILE] [--conflict]
import { readFileSync, writeFileSync, existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import { extname, join, normalize } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { SCRIPTS } from './scripts.mjs';

const { values: options } = parseArgs({
  options: { port: { type: 'string', default: '8080' }, state: { type: 'string' }, conflict: { type: 'boolean', default: false } },
});
const DIST = fileURLToPath(new URL('../dist/', import.meta.url));
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'";
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const SSE = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'x-vercel-ai-ui-message-stream': 'v1',
  'x-accel-buffering': 'no',
};

// ---- state ----

let ids = Date.now();
let chats = load();

function load() {
  return new Map(options.state && existsSync(options.state) ? JSON.parse(readFileSync(options.state, 'utf8')) : []);
}

function save() {
  const plain = [...chats].map(([id, chat]) => [id, { ...chat, live: undefined }]);
  if (options.state) writeFileSync(options.state, JSON.stringify(plain));
}

const isTool = part => part.type === 'dynamic-tool' || part.type.startsWith('tool-');
const last = chat => chat.messages.at(-1);

/** What a chunk makes of a message, as the client does it. */
function apply(message, chunk) {
  const part = message.parts.findLast(it => isTool(it) && it.toolCallId === chunk.toolCallId);
  if (chunk.type === 'start-step') message.parts.push({ type: 'step-start' });
  if (chunk.type === 'text-start') message.parts.push({ type: 'text', text: '', state: 'streaming' });
  if (chunk.type === 'text-delta') message.parts.at(-1).text += chunk.delta;
  if (chunk.type === 'text-end') message.parts.at(-1).state = 'done';
  if (chunk.type === 'tool-input-available') {
    const { toolCallId, toolName, input } = chunk;
    const type = chunk.dynamic ? { type: 'dynamic-tool', toolName } : { type: `tool-${toolName}` };
    message.parts.push({ ...type, toolCallId, state: 'input-available', input });
  }
  if (chunk.type === 'tool-approval-request') Object.assign(part, { state: 'approval-requested', approval: { id: chunk.approvalId } });
  if (chunk.type === 'tool-output-available') Object.assign(part, { state: 'output-available', output: chunk.output });
  if (chunk.type === 'tool-output-error') Object.assign(part, { state: 'output-error', errorText: chunk.errorText });
  if (chunk.type === 'tool-output-denied') part.state = 'output-denied';
  if (chunk.type === 'data-approval') {
    const known = message.parts.find(it => it.type === chunk.type && it.id === chunk.id);
    if (known) known.data = chunk.data;
    else message.parts.push({ type: chunk.type, id: chunk.id, data: chunk.data });
  }
}

// ---- one response ----

/** Sends chunks to all listeners, and remembers them. */
function emitter(chat) {
  const live = { log: [], listeners: new Set(), stopped: false };
  chat.live = live;
  return chunk => {
    if (live.stopped) return;
    apply(last(chat), chunk);
    live.log.push(chunk);
    for (const listener of live.listeners) listener(chunk);
  };
}

function hidden(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\u{e0000}-\u{e007f}]/gu, c => `\\u{${c.codePointAt(0).toString(16)}}`);
}

function asked(call, approvalId, toolCallId, more) {
  const canonical = hidden(JSON.stringify(call.input));
  const args = Object.entries(call.input).map(([name, value]) => `${name}: ${hidden(JSON.stringify(value))}`);
  const data = {
    approvalId,
    toolCallId,
    toolName: call.tool,
    path: call.path ?? `root/${call.tool}`,
    input: call.input,
    canonical,
    headline: `${call.tool}(${args.join(', ')})`,
    questions: call.questions ?? [],
    ...more,
  };
  return { type: 'data-approval', id: approvalId || toolCallId, data };
}

async function say(chat, emit, text) {
  const id = `text-${++ids}`;
  emit({ type: 'text-start', id });
  for (const word of text.split(/(?<= )/)) {
    await sleep(chat.script === 'slow' ? 100 : 8);
    if (chat.live.stopped) return;
    emit({ type: 'text-delta', id, delta: word });
  }
  emit({ type: 'text-end', id });
}

/** One turn of the model. Pending calls are left in `chat.waiting`. */
async function turn(chat, emit) {
  const items = SCRIPTS[chat.script]?.[chat.step++];
  if (!items) return false;
  emit({ type: 'start-step' });
  for (const item of items) {
    if (chat.live.stopped) return false;
    if (item === 'ECHO') await say(chat, emit, `The model saw: ${chat.outcomes.join('; ')}`);
    else if (typeof item === 'string') await say(chat, emit, item);
    else await make(chat, emit, item);
  }
  emit({ type: 'finish-step' });
  if (chat.parent && chat.waiting.length === 0) return true;
  return chat.waiting.length === 0;
}

async function make(chat, emit, call) {
  const toolCallId = `call-${++ids}`;
  const dynamic = call.path ? { dynamic: true } : {};
  emit({ type: 'tool-input-available', toolCallId, toolName: call.tool, input: call.asked ?? call.input, ...dynamic });
  await sleep(15);
  if (call.policy === 'allow') settle(chat, emit, call, toolCallId);
  if (call.policy === 'agent') chat.parent = { call, toolCallId };
  if (call.policy === 'deny') {
    emit(asked(call, '', toolCallId, { status: 'denied', reason: call.reason, questions: undefined, input: undefined, canonical: undefined }));
    emit({ type: 'tool-output-error', toolCallId, errorText: call.reason });
    chat.outcomes.push(`${call.tool} denied ${call.reason}`);
  }
  if (call.policy === 'page') chat.waiting.push({ call, toolCallId });
  if (call.policy === 'ask') ask(chat, emit, call, toolCallId);
}

function ask(chat, emit, call, toolCallId, changed) {
  const approvalId = `ask-${++ids}`;
  if (changed) emit({ type: 'tool-input-available', toolCallId, toolName: call.tool, input: call.input });
  emit({ type: 'tool-approval-request', toolCallId, approvalId });
  emit(asked(call, approvalId, toolCallId, { status: 'pending', ...(changed && { changed }) }));
  chat.waiting.push({ call, toolCallId, approvalId });
}

function settle(chat, emit, call, toolCallId, input = call.input) {
  if (call.error) emit({ type: 'tool-output-error', toolCallId, errorText: call.error });
  else emit({ type: 'tool-output-available', toolCallId, output: call.result });
  chat.outcomes.push(`${call.tool}(${JSON.stringify(input)}) ${call.error ? `error ${call.error}` : 'ok'}`);
}

/** The outcomes of the pending calls, by the answers in the posted message. */
function answered(chat, emit, parts, overrides) {
  const again = [];
  for (const { call, toolCallId, approvalId } of chat.waiting) {
    const part = parts.find(it => it.toolCallId === toolCallId);
    const known = last(chat).parts.find(it => it.toolCallId === toolCallId);
    if (!approvalId) {
      Object.assign(known, part);
      chat.outcomes.push(`${call.tool} ${part.state === 'output-error' ? `error ${part.errorText}` : `ok ${JSON.stringify(part.output)}`}`);
      continue;
    }
    const { approved, reason } = part.approval;
    known.approval = { id: approvalId, approved, ...(reason && { reason }) };
    const ranInput = approved ? overrides[approvalId] : undefined;
    const status = ranInput ? 'edited' : approved ? 'approved' : 'denied';
    emit(asked(call, approvalId, toolCallId, { status, by: 'you', ...(reason && { reason }), ...(ranInput && { ranInput }) }));
    if (ranInput && call.again) again.push({ call: { ...call, input: ranInput, again: false }, toolCallId: `${toolCallId}#2` });
    if (ranInput && call.again) emit({ type: 'tool-output-error', toolCallId, errorText: 'Asked again below: the path is another one.' });
    else if (approved) settle(chat, emit, call, toolCallId, ranInput);
    else {
      emit({ type: 'tool-output-denied', toolCallId });
      chat.outcomes.push(`${call.tool} denied ${reason ?? ''}`);
    }
  }
  chat.waiting = [];
  if (again.length > 0) {
    emit({ type: 'start-step' });
    for (const { call, toolCallId } of again) ask(chat, emit, call, toolCallId, 'the path is another one');
    emit({ type: 'finish-step' });
  }
  if (chat.parent) settle(chat, emit, chat.parent.call, chat.parent.toolCallId);
  chat.parent = undefined;
}

async function run(chat, emit, before) {
  emit({ type: 'start', messageId: last(chat).id });
  before?.();
  for (;;) {
    if (chat.waiting.length > 0) break;
    const goOn = await turn(chat, emit);
    if (chat.parent && chat.waiting.length === 0 && !chat.live.stopped) continue;
    if (!goOn) break;
  }
  emit({ type: 'finish', finishReason: chat.waiting.length > 0 ? 'tool-calls' : 'stop' });
  chat.stopped = chat.live.stopped;
  chat.past.push(...chat.live.log);
  for (const listener of chat.live.listeners) listener();
  chat.live = undefined;
  save();
}

// ---- HTTP ----

function post(body, res) {
  const chat = chats.get(body.id) ?? { id: body.id, messages: [], waiting: [], past: [], answers: {} };
  const message = body.messages?.at(-1);
  if (!message) return fail(res, 400, 'no messages');
  chats.set(body.id, chat);
  if (chat.live) return fail(res, 409, 'The assistant is still at work.');
  if (message.role === 'user') {
    const script = message.parts.find(part => part.type === 'text')?.text;
    Object.assign(chat, { script, step: 0, waiting: [], outcomes: [], past: [], answers: {}, parent: undefined });
    if (!SCRIPTS[script]) return fail(res, 422, `I do not know what to do with “${script}”.`);
    if (last(chat)?.role === 'assistant' || chat.messages.length === 0) chat.messages.push(message);
    chat.messages.push({ id: `msg-${++ids}`, role: 'assistant', parts: [] });
    follow(chat, res, emitter(chat));
    return;
  }
  const responded = message.parts.filter(part => isTool(part) && (part.state === 'approval-responded' || part.state.startsWith('output')));
  const open = chat.waiting.filter(it => !responded.some(part => part.toolCallId === it.toolCallId));
  const known = responded.find(part => part.state === 'approval-responded' && chat.answers[part.approval.id] !== undefined);
  if (known && options.conflict) return fail(res, 409, 'Another answer was given before.');
  if (known) return again(chat, res, chat.answers[known.approval.id]);
  if (chat.stopped) return follow(chat, res, emitter(chat));
  if (open.length > 0 || chat.waiting.length === 0) return fail(res, 400, 'Not all calls are answered.');
  for (const { approvalId } of chat.waiting) chat.answers[approvalId] = chat.past.length;
  const emit = emitter(chat);
  follow(chat, res, emit, () => answered(chat, emit, message.parts, body.overrideArgs ?? {}));
}

function follow(chat, res, emit, before) {
  res.writeHead(200, SSE);
  listen(chat, res);
  void run(chat, emit, before);
}

function listen(chat, res) {
  const send = chunk => (chunk ? res.write(`data: ${JSON.stringify(chunk)}\n\n`) : res.end('data: [DONE]\n\n'));
  chat.live.listeners.add(send);
  res.on('close', () => chat.live?.listeners.delete(send));
}

/** The outcome of an answer that was given before. */
function again(chat, res, from) {
  res.writeHead(200, SSE);
  for (const chunk of chat.past.slice(from)) res.write(`data: ${JSON.stringify(chunk)}\n\n`);
  res.end('data: [DONE]\n\n');
}

/** The whole message from its start, as a resumed stream has to be. */
function resume(chat, res) {
  if (!chat?.live) return res.writeHead(204).end();
  const log = [...chat.past, ...chat.live.log];
  const middle = new Set(['start', 'finish']);
  const settled = id => log.some(chunk => chunk.toolCallId === id && chunk.type.startsWith('tool-output'));
  res.writeHead(200, SSE);
  log.forEach((chunk, n) => {
    if (n > 0 && middle.has(chunk.type)) return;
    if (chunk.type === 'tool-approval-request' && settled(chunk.toolCallId)) return;
    res.write(`data: ${JSON.stringify(chunk)}\n\n`);
  });
  listen(chat, res);
}

function halt(chat, res) {
  if (chat?.live) chat.live.stopped = true;
  res.writeHead(204).end();
}

function fail(res, status, error) {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
}

async function page(url, res) {
  const name = normalize(url.pathname === '/' ? '/index.html' : url.pathname);
  const body = await readFile(join(DIST, name)).catch(() => undefined);
  if (!body) return res.writeHead(404).end();
  res.writeHead(200, { 'content-type': TYPES[extname(name)] ?? 'application/octet-stream', 'content-security-policy': CSP });
  res.end(body);
}

async function handle(req, res) {
  const url = new URL(req.url, 'http://mock');
  const [, id, what] = url.pathname.match(/^\/api\/chat\/([^/]+)\/(stream|messages)$/) ?? [];
  const chat = chats.get(id);
  if (url.pathname === '/api/alive') return void res.writeHead(204).end();
  if (req.method === 'POST' && url.pathname === '/api/chat') {
    let text = '';
    for await (const piece of req) text += piece;
    return post(JSON.parse(text), res);
  }
  if (req.method === 'POST' && url.pathname === '/restart') {
    chats = load();
    return res.writeHead(204).end();
  }
  if (what === 'stream') return req.method === 'DELETE' ? halt(chat, res) : resume(chat, res);
  if (what === 'messages' && !chat) return fail(res, 404, 'There is no such conversation.');
  if (what === 'messages') return res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ messages: chat.messages }));
  return page(url, res);
}

const server = http.createServer((req, res) => {
  handle(req, res).catch(error => (res.headersSent ? res.end() : fail(res, 500, String(error.message))));
});
server.listen(Number(options.port), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
