// The little structure of a model's text that is drawn: paragraphs, fenced code, and code within a line.

export type Block = { code: boolean; text: string };
export type Span = { code: boolean; text: string };

/** Paragraphs and fenced code. A fence that was not closed yet goes to the end. */
export function blocks(text: string): Block[] {
  const out: Block[] = [];
  let lines: string[] = [];
  let code = false;
  const flush = () => {
    const body = lines.join('\n');
    if (code) out.push({ code, text: body });
    else out.push(...body.split(/\n{2,}/).filter(it => it.trim() !== '').map(it => ({ code, text: it.trim() })));
    lines = [];
  };
  for (const line of text.replaceAll('\r\n', '\n').split('\n')) {
    if (!line.trimStart().startsWith('```')) {
      lines.push(line);
      continue;
    }
    flush();
    code = !code;
  }
  if (lines.length > 0) flush();
  return out;
}

/** Code between backticks, within a paragraph. */
export function spans(text: string): Span[] {
  return text
    .split(/(`[^`\n]+`)/)
    .filter(it => it !== '')
    .map(it => (/^`[^`\n]+`$/.test(it) ? { code: true, text: it.slice(1, -1) } : { code: false, text: it }));
}
