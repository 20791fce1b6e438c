import { blocks } from './text';
import { Line, Visible } from './Visible';

/** What the model says: text, and nothing but text. */
export function Prose({ text }: { text: string }) {
  return (
    <div className="prose">
      {blocks(text).map((block, n) =>
        block.code ? (
          <pre key={n} tabIndex={0}>
            <Visible text={block.text} kind="prose" />
          </pre>
        ) : (
          <p key={n}>
            <Line text={block.text} />
          </p>
        ),
      )}
    </div>
  );
}
