import { expect, test } from 'vitest';

import { spans } from '../src/text';

test('backticks make code within a line, and markup stays text', () => {
  expect(spans('run `ls -l` now')).toEqual([
    { code: false, text: 'run ' },
    { code: true, text: 'ls -l' },
    { code: false, text: ' now' },
  ]);
  expect(spans('<b>`')).toEqual([{ code: false, text: '<b>`' }]);
});
