import { expect, test } from 'vitest';

import { calls, inGroups, readApproval, stage, unsent, waiting, type ChatMessage, type ToolPart } from '../src/approval';

const ask = (more: object = {}) => ({
  approvalId: 'ask-1',
  toolCallId: 'call-1',
  toolName: 'delete_file',
  path: 'root/delete_file',
  input: { path: 'a.txt' },
  canonical: '{"path":"a.txt"}',
  headline: 'delete_file(path: "a.txt")',
  questions: [{ askedBy: 'Changes', reason: 'delete a.txt?' }],
  previews: [],
  title: 'An agent wants to call `delete_file(path: "a.txt")`',
  repeated: [],
  offers: [],
  origins: [],
  status: 'pending',
  ...more,
});

const part = (state: string, more: object = {}) =>
  ({ type: 'tool-delete_file', toolCallId: 'call-1', state, input: { path: 'a.txt' }, ...more }) as ToolPart;

const message = (parts: object[]) => ({ id: 'm', role: 'assistant', parts }) as ChatMessage;
const data = (more: object = {}) => ({ type: 'data-approval', id: 'ask-1', data: ask(more) });
const requested = part('approval-requested', { approval: { id: 'ask-1' } });
const now = { last: true, busy: false };

test('other data is not read as an approval', () => {
  for (const odd of [null, 'x', [], {}, ask({ status: 'yes' }), ask({ toolCallId: 7 })]) expect(readApproval(odd)).toBeUndefined();
  expect(readApproval(ask())).toEqual(ask());
  expect(readApproval(ask({ questions: 'x', input: [], ranInput: 'x' }))).toMatchObject({ questions: [] });
  expect(readApproval(ask({ input: [] }))).not.toHaveProperty('input');
});

test('a preview is read as far as it is one', () => {
  const diff = { author: 'Changes', title: 'a.txt', change: 'changed', pinned: true, lines: ['-one', '+two'], numbers: [1, 1], cells: [], cut: 0 };
  expect(readApproval(ask({ previews: [diff] }))?.previews).toEqual([diff]);
  expect(readApproval(ask({ previews: [null, 'x', { change: 'gone', lines: 7, cells: ['x', ['a']] }] }))?.previews).toEqual([
    { author: '', title: '', pinned: false, lines: [], numbers: [], cells: [[], ['a']], cut: 0 },
  ]);
  expect(readApproval(ask({ previews: 'x' }))?.previews).toEqual([]);
});

test('an offer is read as a whole, or not at all', () => {
  const offer = { fingerprint: 'f', pattern: 0, seconds: 3600, says: 'exactly such calls', rule: '{}', also: ['pay(20)'] };
  expect(readApproval(ask({ offers: [offer] }))?.offers).toEqual([offer]);
  expect(readApproval(ask({ offers: [null, 'x', { ...offer, pattern: '0' }, { ...offer, rule: '' }, { ...offer, seconds: undefined }] }))?.offers).toEqual([]);
  expect(readApproval(ask({ offers: 'x', grant: { id: 'g1', until: 7 } }))).toMatchObject({ offers: [], grant: { id: 'g1' } });
});

test('equal calls with a preview that was cut are answered one by one', () => {
  const two = (cut: number) => {
    const previews = [{ title: 'a.txt', lines: ['+one'], cut }];
    const parts = ['call-1', 'call-2'].flatMap(toolCallId => [
      { ...requested, toolCallId },
      { type: 'data-approval', id: toolCallId, data: ask({ toolCallId, group: 'g', previews }) },
    ]);
    return inGroups(waiting([message(parts)])).map(group => group.length);
  };
  expect(two(0)).toEqual([2]);
  expect(two(3)).toEqual([1, 1]);
});

test('a call waits while its question is open, in the last message only', () => {
  expect(stage(requested, readApproval(ask()), now)).toBe('waiting');
  expect(stage(requested, undefined, now)).toBe('waiting');
  expect(stage(requested, readApproval(ask()), { last: false, busy: false })).toBe('withdrawn');
});

test('the server decides the state: another person has answered, or the ask has expired', () => {
  const at = (status: string) => stage(requested, readApproval(ask({ status })), now);
  expect(at('denied')).toBe('denied');
  expect(at('expired')).toBe('expired');
  expect(at('superseded')).toBe('withdrawn');
  expect(at('cancelled')).toBe('withdrawn');
  expect(at('approved')).toBe('answered');
  const own = part('approval-responded', { approval: { id: 'ask-1', approved: true } });
  expect(stage(own, readApproval(ask({ status: 'denied' })), now)).toBe('denied');
});

test('a denial by policy is told apart from a failure and from a person’s no', () => {
  const error = part('output-error', { errorText: 'no' });
  const policy = readApproval(ask({ approvalId: '', status: 'denied' }));
  expect(stage(error, policy, now)).toBe('refused');
  expect(stage(error, undefined, now)).toBe('failed');
  expect(stage(error, readApproval(ask({ status: 'approved' })), now)).toBe('failed');
  expect(stage(part('output-denied', { approval: { id: 'ask-1', approved: false } }), undefined, now)).toBe('denied');
});

test('the page answers only the calls it knows, and a sub-agent waits for its calls', () => {
  const location = { type: 'tool-get_location', toolCallId: 'call-2', state: 'input-available', input: {} };
  const cleaner = { type: 'tool-cleaner', toolCallId: 'call-3', state: 'input-available', input: {} };
  expect([...calls(message([location, cleaner]), now).values()].map(call => call.stage)).toEqual(['yours', 'cut']);
  const both = calls(message([cleaner, { type: 'step-start' }, requested, data({ path: 'root/cleaner/delete_file' })]), now);
  expect([...both.values()].map(call => [call.agents, call.stage])).toEqual([
    ['', 'paused'],
    ['root/cleaner/', 'waiting'],
  ]);
  expect(waiting([message([location, requested])])).toHaveLength(2);
});

test('an edit goes out with its answer, and only with that', () => {
  const edits = new Map([['ask-1', { path: 'b.txt' }]]);
  const answered = (approved: boolean) => message([part('approval-responded', { approval: { id: 'ask-1', approved } })]);
  expect(unsent(edits, [answered(true)])).toEqual({ 'ask-1': { path: 'b.txt' } });
  expect(unsent(edits, [answered(false)])).toEqual({});
  expect(unsent(edits, [message([requested])])).toEqual({});
  expect(unsent(edits, [message([part('output-available', { output: 1, approval: { id: 'ask-1', approved: true } })])])).toEqual({});
});

test('an edit is shown from the moment it is written, and then as the server says it ran', () => {
  const edits = new Map([['ask-1', { path: 'b.txt' }]]);
  const edited = (...parts: object[]) => [...calls(message(parts), now, edits).values()].map(call => call.edited);
  const own = part('approval-responded', { approval: { id: 'ask-1', approved: true } });
  expect(edited(own, data())).toEqual([{ path: 'b.txt' }]);
  expect(edited(requested, data())).toEqual([undefined]);
  const done = part('output-available', { output: 1, approval: { id: 'ask-1', approved: true } });
  expect(edited(done, data({ status: 'edited', ranInput: { path: 'c.txt' } }))).toEqual([{ path: 'c.txt' }]);
  expect(edited(done, data({ status: 'approved' }))).toEqual([undefined]);
});

test('a call that is asked about again says so, and is no failure', () => {
  const first = part('output-error', { errorText: 'Asked again below.', approval: { id: 'ask-1', approved: true } });
  const second = part('approval-requested', { toolCallId: 'call-1#2', approval: { id: 'ask-2' } });
  const again = { type: 'data-approval', id: 'ask-2', data: ask({ approvalId: 'ask-2', toolCallId: 'call-1#2', changed: 'other arguments' }) };
  const found = calls(message([first, data({ status: 'edited', ranInput: { path: 'b.txt' } }), second, again]), now);
  expect([...found.values()].map(call => call.stage)).toEqual(['again', 'waiting']);
});

test('equal pending calls are one group, and each keeps its own approval', () => {
  const waits = (n: number, group?: string) => [
    part('approval-requested', { toolCallId: `call-${n}`, approval: { id: `ask-${n}` } }),
    { type: 'data-approval', id: `ask-${n}`, data: ask({ approvalId: `ask-${n}`, toolCallId: `call-${n}`, group }) },
  ];
  const shown = (parts: object[], apart?: Set<string>) =>
    inGroups(calls(message(parts), now).values(), apart).map(equal => equal.map(call => call.ask?.approvalId));
  const parts = [...waits(1, 'x'), ...waits(2, 'y'), ...waits(3, 'x'), ...waits(4), ...waits(5), ...waits(6, 'x')];
  expect(shown(parts)).toEqual([['ask-1', 'ask-3', 'ask-6'], ['ask-2'], ['ask-4'], ['ask-5']]);
  expect(shown(parts, new Set(['x']))).toEqual([['ask-1'], ['ask-2'], ['ask-3'], ['ask-4'], ['ask-5'], ['ask-6']]);
});

test('an answered call is not in the group of pending calls', () => {
  const one = part('approval-responded', { approval: { id: 'ask-1', approved: true } });
  const two = part('approval-requested', { toolCallId: 'call-2', approval: { id: 'ask-2' } });
  const parts = [one, data({ group: 'x' }), two, { type: 'data-approval', id: 'ask-2', data: ask({ approvalId: 'ask-2', toolCallId: 'call-2', group: 'x' }) }];
  expect(inGroups(calls(message(parts), now).values()).map(equal => equal.length)).toEqual([1, 1]);
});
