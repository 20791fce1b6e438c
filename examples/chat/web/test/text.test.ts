import { expect, test } from 'vitest';

import { blocks, spans } from '../src/text';

test('a text is paragraphs and fenced code', () => {
  expect(blocks('one\ntwo\n\nthree\n```sh\nls\n\npwd\n```\nfour')).toEqual([
    { code: false, text: 'one\ntwo' },
    { code: false, text: 'three' },
    { code: true, text: 'ls\n\npwd' },
    { code: false, text: 'four' },
  ]);
});

test('a fence that still streams is code', () => {
  expect(blocks('look:\n```\nls')).toEqual([
    { code: false, text: 'look:' },
    { code: true, text: 'ls' },
  ]);
  expect(blocks('')).toEqual([]);
});

test('backticks make code within a line, and markup stays text', () => {
  expect(spans('run `ls -l` now')).toEqual([
    { code: false, text: 'run ' },
    { code: true, text: 'ls -l' },
    { code: false, text: ' now' },
  ]);
  expect(spans('<b>`')).toEqual([{ code: false, text: '<b>`' }]);
});
