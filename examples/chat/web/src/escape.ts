// Which characters a reader cannot see, or which move what stands around them (rule S1). The server escapes what it
// wrote for display; this is for arguments, results and the model's text, which arrive as they are.

/** Ranges of controls, format characters, odd blanks, fillers, selectors, tags and private use; the space is none. */
const HIDDEN: readonly (readonly [number, number])[] = [
  [0x0, 0x1f], [0x7f, 0xa0], [0xad, 0xad], [0x34f, 0x34f], [0x600, 0x605], [0x61c, 0x61c], [0x6dd, 0x6dd],
  [0x70f, 0x70f], [0x890, 0x891], [0x8e2, 0x8e2], [0x115f, 0x1160], [0x1680, 0x1680], [0x17b4, 0x17b5],
  [0x180b, 0x180f], [0x2000, 0x200f], [0x2028, 0x202f], [0x205f, 0x206f], [0x2800, 0x2800], [0x3000, 0x3000],
  [0x3164, 0x3164], [0xd800, 0xf8ff], [0xfdd0, 0xfdef], [0xfe00, 0xfe0f], [0xfeff, 0xfeff], [0xffa0, 0xffa0],
  [0xfff0, 0xfffb], [0xfffe, 0xffff], [0x110bd, 0x110bd], [0x110cd, 0x110cd], [0x13430, 0x1343f],
  [0x1bca0, 0x1bca3], [0x1d159, 0x1d159], [0x1d173, 0x1d17a], [0x1fffe, 0x1ffff], [0x2fffe, 0x2ffff],
  [0x3fffe, 0x3ffff], [0x40000, 0x10ffff],
];

/** In prose they join emoji and letters, and are not worth a mark. */
const JOINERS = new Set([0x200c, 0x200d, 0xfe0e, 0xfe0f, 0xa0, 0x3000]);

export type Kind = 'exact' | 'prose';
export type Piece = { text: string; hidden: boolean };

function isHidden(code: number, kind: Kind): boolean {
  if (kind === 'prose' && JOINERS.has(code)) return false;
  return HIDDEN.some(([first, last]) => first <= code && code <= last);
}

function named(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Cuts a text into what can be read and what has to be shown by its number. Line breaks stay as they are. */
export function pieces(text: string, kind: Kind = 'exact'): Piece[] {
  const out: Piece[] = [];
  let plain = '';
  for (const char of text.replaceAll('\r\n', '\n')) {
    const code = char.codePointAt(0) ?? 0;
    if (char === '\n' || (kind === 'prose' && char === '\t') || !isHidden(code, kind)) {
      plain += char;
      continue;
    }
    if (plain) out.push({ text: plain, hidden: false });
    plain = '';
    out.push({ text: char === '\t' ? 'TAB' : named(code), hidden: true });
  }
  if (plain) out.push({ text: plain, hidden: false });
  return out;
}

/** The same as one text: hidden characters as `⟨U+202E⟩`. */
export function escapeInvisible(text: string, kind: Kind = 'exact'): string {
  return pieces(text, kind).map(piece => (piece.hidden ? `⟨${piece.text}⟩` : piece.text)).join('');
}
