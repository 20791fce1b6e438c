import { pieces, type Kind } from './escape';
import { spans } from './text';

/** A text whose invisible characters are drawn as marks, which no text can imitate. */
export function Visible({ text, kind }: { text: string; kind?: Kind }) {
  return (
    <bdi>
      {pieces(text, kind).map((piece, n) =>
        piece.hidden ? (
          <span key={n} className="hidden-char" title="A character that cannot be seen">
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </bdi>
  );
}

/** A line written for a reader, with code between backticks. */
export function Line({ text }: { text: string }) {
  return spans(text).map((span, n) =>
    span.code ? (
      <code key={n}>
        <Visible text={span.text} />
      </code>
    ) : (
      <Visible key={n} text={span.text} kind="prose" />
    ),
  );
}
