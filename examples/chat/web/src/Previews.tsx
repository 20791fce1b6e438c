import type { Preview } from './approval';
import { Box } from './Box';
import { Line } from './Visible';

/** So much of a preview is shown before it is opened. */
const LINES = 200;
const CHARS = 20_000;

const CHANGES = { created: 'new', deleted: 'deleted', changed: 'changed', unchanged: 'stays as it is' } as const;
const SIGNS: Record<string, { kind: string; said?: string }> = {
  '+': { kind: 'added', said: 'added' },
  '-': { kind: 'removed', said: 'removed' },
  '@': { kind: 'remark' },
};

/** The rows that are shown at first: lines, or the rows of a table below their heads. */
function head<Row>(rows: readonly Row[], size: (row: Row) => number): Row[] {
  let left = CHARS;
  const end = rows.findIndex((row, n) => n >= LINES || (left -= size(row)) < 0);
  return rows.slice(0, end < 0 ? rows.length : end);
}

const lines = (preview: Preview) => head(preview.lines, line => line.length);
const rows = (preview: Preview) => head(preview.cells.slice(1), row => row.join('').length);

/** How many lines are left out until the preview is opened. */
function folded(preview: Preview): number {
  if (preview.cells.length > 0) return preview.cells.length - 1 - rows(preview).length;
  return preview.lines.length - lines(preview).length;
}

export function isFolded(preview: Preview): boolean {
  return folded(preview) > 0;
}

type Props = {
  previews: readonly Preview[];
  /** Where it is given, long previews are folded until it was called. */
  onOpen?: () => void;
};

/** What a call would change, or is about (rule S7). The server has made all of its text safe to show. */
export function Previews({ previews, onOpen }: Props) {
  return previews.map((preview, n) => {
    const more = onOpen ? folded(preview) : 0;
    return (
      <figure key={n} className="preview" aria-label={`Preview: ${preview.title}`}>
        <figcaption>
          <span className="asker">
            <Line text={preview.author} />
          </span>
          <code>
            <bdi>{preview.title}</bdi>
          </code>
          {preview.change ? <span className="change" data-change={preview.change}>{CHANGES[preview.change]}</span> : null}
          <span className="note">{preview.pinned ? 'you are asked again if this changes' : 'may change by itself'}</span>
        </figcaption>
        {preview.cells.length > 0 ? <Table preview={preview} rows={onOpen ? rows(preview) : preview.cells.slice(1)} /> : <Lines title={preview.title} lines={onOpen ? lines(preview) : preview.lines} numbers={preview.numbers} />}
        {more > 0 ? (
          <p className="cut">
            {more} {more === 1 ? 'line is' : 'lines are'} left out.{' '}
            <button type="button" onClick={onOpen}>
              Show the whole preview
            </button>
          </p>
        ) : null}
        {preview.cut > 0 ? (
          <p className="cut">
            {preview.cut} more {preview.cut === 1 ? 'line is' : 'lines are'} too much to be kept, and cannot be shown.
          </p>
        ) : null}
      </figure>
    );
  });
}

function Lines({ title, lines, numbers }: { title: string; lines: readonly string[]; numbers: readonly (number | undefined)[] }) {
  if (lines.length === 0) return null;
  const differ = lines.some(line => /^[-+]/.test(line));
  return (
    <Box label={`The lines of ${title}`}>
    <pre>
      {lines.map((line, n) => {
        const { kind, said } = SIGNS[line.charAt(0)] ?? { kind: 'plain' };
        return (
          <span key={n} className={`line-of ${kind}`}>
            {differ ? (
              <span className="number" aria-hidden="true">
                {numbers[n] ?? ''}
              </span>
            ) : null}
            {differ ? (
              <span className="sign" aria-hidden="true">
                {kind === 'remark' ? ' ' : line.charAt(0)}
              </span>
            ) : null}
            <span>
              {said ? <span className="sr-only">{said}: </span> : null}
              <bdi>{line.slice(1) || ' '}</bdi>
            </span>
          </span>
        );
      })}
    </pre>
    </Box>
  );
}

function Table({ preview, rows }: { preview: Preview; rows: readonly string[][] }) {
  return (
    <Box label={`The rows of ${preview.title}`}>
    <div className="table">
      <table>
        <thead>
          <tr>
            {(preview.cells[0] ?? []).map((name, n) => (
              <th key={n} scope="col">
                <bdi>{name}</bdi>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, n) => (
            <tr key={n}>
              {row.map((cell, at) => (
                <td key={at}>
                  <bdi>{cell}</bdi>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
    </Box>
  );
}
