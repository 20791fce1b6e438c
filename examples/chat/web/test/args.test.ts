import { expect, test } from 'vitest';

import { fromEdit, headline, isRounded, same, saidBy, toEdit } from '../src/args';

test('an edit is an object of JSON, and nothing else', () => {
  expect(fromEdit('{"path": "a.txt"}')).toEqual({ input: { path: 'a.txt' } });
  for (const text of ['', '{', '[]', 'null', '"a"', '7', '{"a": 1,}']) expect(fromEdit(text)).toHaveProperty('problem');
});

test('an edit that a browser would round is refused', () => {
  expect(fromEdit('{"amount": 12345678901234567890}')).toHaveProperty('problem');
  expect(fromEdit('{"a": [{"b": 9007199254740993}]}')).toHaveProperty('problem');
  expect(fromEdit('{"amount": 9007199254740991}')).toHaveProperty('input');
  expect(isRounded({ a: [1, { b: -(2 ** 60) }] })).toBe(true);
});

test('an unchanged edit reads as the same arguments', () => {
  const input = { path: 'a\u202e', list: [1, null, { deep: true }], 'odd name': '' };
  expect(fromEdit(toEdit(input))).toEqual({ input });
});

test('arguments are equal in any order of their names', () => {
  expect(same({ a: 1, b: [1, { c: 2 }] }, { b: [1, { c: 2 }], a: 1 })).toBe(true);
  expect(same({ a: 1 }, { a: 1, b: undefined })).toBe(false);
  expect(same({ a: [1, 2] }, { a: [2, 1] })).toBe(false);
  expect(same({ a: 1 }, { a: '1' })).toBe(false);
  expect(same({}, [])).toBe(false);
});

test('a headline is one line, escaped, and says how much it leaves out', () => {
  expect(headline('delete_file', { path: 'a.txt' })).toBe('delete_file(path: "a.txt")');
  expect(headline('write', { text: 'a\nb\u202e' })).toBe('write(text: "a\\nb⟨U+202E⟩")');
  expect(headline('write', { text: 'x'.repeat(100) })).toMatch(/… \(42 more\)\)$/);
  expect(headline('now', {})).toBe('now()');
  expect(headline('odd', 'no object')).toBe('odd()');
});

test('arguments stand below a headline that does not show all of them as they are', () => {
  expect(saidBy('delete_file(path: "a.txt")', { path: 'a.txt' })).toBe(true);
  expect(saidBy('now()', {})).toBe(true);
  expect(saidBy('write(path: "a", \\{1 more})', { path: 'a', text: 'b' })).toBe(false);
  expect(saidBy('login(token: ••••)', { token: 'secret' })).toBe(false);
  expect(saidBy('write(text: "a\\nb")', { text: 'a\nb' })).toBe(false);
  expect(saidBy('open(path: "a\u202e")', { path: 'a\u202e' })).toBe(false);
  expect(saidBy('run(options: {"force":true})', { options: { force: true } })).toBe(false);
});
