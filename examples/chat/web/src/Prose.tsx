import { blocks, spans } from './text';
import { Visible } from './Visible';

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
            {spans(block.text).map((span, m) =>
              span.code ? (
                <code key={m}>
                  <Visible text={span.text} />
                </code>
              ) : (
                <Visible key={m} text={span.text} kind="prose" />
              ),
            )}
          </p>
        ),
      )}
    </div>
  );
}
