import { expect, test } from 'vitest';

import { fitsLine, fromEdit, headline, isRounded, same, toEdit } from '../src/args';

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

test('what is edited comes back as it was', () => {
  const input = { path: 'a\u202e', list: [1, null, { deep: true }], 'odd name': '' };
  expect(fromEdit(toEdit(input))).toEqual({ input });
});

test('arguments are the same whatever the order of their names', () => {
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

test('only short and simple arguments are left to the headline', () => {
  expect(fitsLine({ path: 'a.txt' })).toBe(true);
  expect(fitsLine({ text: 'a\nb' })).toBe(false);
  expect(fitsLine({ path: 'x'.repeat(60) })).toBe(false);
  expect(fitsLine({ options: { force: true } })).toBe(false);
  expect(fitsLine({ a: 1, b: 2, c: 3 })).toBe(false);
});
