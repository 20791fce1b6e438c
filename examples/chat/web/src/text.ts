// The little structure that is drawn of a line: code between backticks.

export type Span = { code: boolean; text: string };

/** Code between backticks, within a paragraph. */
export function spans(text: string): Span[] {
  return text
    .split(/(`[^`\n]+`)/)
    .filter(it => it !== '')
    .map(it => (/^`[^`\n]+`$/.test(it) ? { code: true, text: it.slice(1, -1) } : { code: false, text: it }));
}
