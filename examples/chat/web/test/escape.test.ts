import { expect, test } from 'vitest';

import { escapeInvisible, pieces } from '../src/escape';

test('characters that cannot be seen are shown by their number', () => {
  expect(escapeInvisible('safe\u202egpj.exe')).toBe('safe⟨U+202E⟩gpj.exe');
  expect(escapeInvisible('zero\u200bwidth\ufeff')).toBe('zero⟨U+200B⟩width⟨U+FEFF⟩');
  expect(escapeInvisible('\u001b[31mred')).toBe('⟨U+001B⟩[31mred');
  expect(escapeInvisible('\u{e0041}\u2028\u00a0\u3164')).toBe('⟨U+E0041⟩⟨U+2028⟩⟨U+00A0⟩⟨U+3164⟩');
  expect(escapeInvisible('over\rwritten\tby')).toBe('over⟨U+000D⟩written⟨TAB⟩by');
});

test('half of a surrogate pair is shown too', () => {
  expect(escapeInvisible('a\ud800b')).toBe('a⟨U+D800⟩b');
});

test('visible characters and line breaks stay unchanged', () => {
  const text = 'azAZ09 ~äß€日本語한국어😀→│\nשלום';
  expect(escapeInvisible(text)).toBe(text);
  expect(escapeInvisible('one\r\ntwo')).toBe('one\ntwo');
});

test('prose keeps what joins emoji and shows what reorders', () => {
  expect(escapeInvisible('👩\u200d💻 ❤\ufe0f\ta', 'prose')).toBe('👩\u200d💻 ❤\ufe0f\ta');
  expect(escapeInvisible('a\u202eb\u2066c', 'prose')).toBe('a⟨U+202E⟩b⟨U+2066⟩c');
});

test('a text that imitates a mark is no mark', () => {
  expect(pieces('U+202E')).toEqual([{ text: 'U+202E', hidden: false }]);
  expect(pieces('x\u202e')).toEqual([
    { text: 'x', hidden: false },
    { text: 'U+202E', hidden: true },
  ]);
});

test('nothing else is lost or added', () => {
  for (let n = 0; n < 500; n++) {
    const chars = Array.from({ length: 12 }, () => String.fromCodePoint(Math.floor(Math.random() * 0x3000)));
    const plain = chars.join('').replaceAll('\r\n', '\n');
    const back = pieces(plain).map(({ text, hidden }) =>
      !hidden ? text : text === 'TAB' ? '\t' : String.fromCodePoint(Number.parseInt(text.slice(2), 16)),
    );
    expect(back.join('')).toBe(plain);
  }
});
