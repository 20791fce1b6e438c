import { pieces, type Kind } from './escape';

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
