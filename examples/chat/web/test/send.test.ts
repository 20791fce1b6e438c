import { expect, test } from 'vitest';

import type { ChatMessage } from '../src/approval';
import { whenAnswered } from '../src/send';

const part = (id: string, state: string, approved?: boolean) => ({
  type: 'tool-delete_file',
  toolCallId: id,
  state,
  input: {},
  ...(state.startsWith('approval') && { approval: { id: `ask-${id}`, approved } }),
});
const chat = (...parts: object[]) => [{ id: 'm', role: 'assistant', parts }] as ChatMessage[];

test('answers go out together, and once', () => {
  const answers = whenAnswered();
  answers.given();
  expect(answers.goOut(chat(part('1', 'approval-responded', true), part('2', 'approval-requested')))).toBe(false);
  answers.given();
  const all = chat(part('1', 'approval-responded', true), part('2', 'approval-responded', false));
  expect(answers.goOut(all)).toBe(true);
  expect(answers.goOut(all)).toBe(false);
});

test('a message without a new answer is not sent', () => {
  expect(whenAnswered().goOut(chat(part('1', 'approval-responded', true)))).toBe(false);
  expect(whenAnswered().goOut(chat(part('1', 'output-available')))).toBe(false);
});

test('an agent whose calls wait holds nothing up', () => {
  const answers = whenAnswered();
  answers.given();
  expect(answers.goOut(chat(part('1', 'input-streaming'), part('2', 'approval-responded', true)))).toBe(true);
});

test('a result that the page gives goes out with the other answers', () => {
  const location = { type: 'tool-get_location', toolCallId: '3', input: {} };
  const answers = whenAnswered();
  answers.given();
  expect(answers.goOut(chat(part('1', 'approval-responded', true), { ...location, state: 'input-available' }))).toBe(false);
  answers.given();
  expect(answers.goOut(chat({ ...location, state: 'output-available', output: 'Berlin' }))).toBe(true);
});
