import { cut, same, written } from './args';
import { isObject, type Json } from './approval';
import { Box } from './Box';
import { Visible } from './Visible';

/** One value: a text of several lines as its lines, anything else as JSON. */
function Value({ value, onOpen }: { value: Json | undefined; onOpen?: () => void }) {
  const text = written(value);
  const part = onOpen && cut(text);
  const shown = part ? part.head : text;
  const more = part ? (
    <p className="cut">
      {part.left} characters are left out.{' '}
      <button type="button" onClick={onOpen}>
        Show everything
      </button>
    </p>
  ) : null;
  if (typeof value === 'string' && value.includes('\n')) {
    const lines = value.split('\n').length;
    return (
      <>
        <span className="note">
          {lines} lines, {[...value].length} characters
        </span>
        <Box label="The text of the argument">
          <pre>
            <Visible text={shown} />
          </pre>
        </Box>
        {more}
      </>
    );
  }
  return (
    <>
      <code>
        <Visible text={shown} />
      </code>
      {more}
    </>
  );
}

type Props = {
  input: unknown;
  before?: unknown;
  label: string;
  /** If set, long values are cut until it is called. */
  onOpen?: () => void;
  /** The arguments that a preview shows. */
  repeated?: readonly string[];
};

/** Arguments by name; what differs from `before` is marked. */
export function Args({ input, before, label, onOpen, repeated = [] }: Props) {
  if (!isObject(input)) return <Result label={label} value={input} />;
  const names = Object.keys(input);
  const gone = isObject(before) ? Object.keys(before).filter(name => !Object.hasOwn(input, name)) : [];
  const differs = (name: string) => isObject(before) && !(Object.hasOwn(before, name) && same(before[name], input[name]));
  return (
    <section className="args" aria-label={label}>
      <h4>{label}</h4>
      {names.length === 0 ? <p className="note">no arguments</p> : null}
      <dl>
        {names.map(name => (
          <div key={name} className={differs(name) ? 'arg differs' : 'arg'}>
            <dt>
              <Visible text={name} />
            </dt>
            <dd>
              {repeated.some(it => it === name || it.startsWith(`${name}.`) || it.startsWith(`${name}[`)) ? (
                <details className="repeated">
                  <summary>shown in the change above</summary>
                  <Value value={input[name]} />
                </details>
              ) : (
                <Value value={input[name]} onOpen={onOpen} />
              )}
            </dd>
          </div>
        ))}
        {gone.map(name => (
          <div key={name} className="arg gone">
            <dt>
              <Visible text={name} />
            </dt>
            <dd className="note">left out</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** What a tool returned. */
export function Result({ value, label }: { value: unknown; label: string }) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'nothing');
  return (
    <section className="args" aria-label={label}>
      <h4>{label}</h4>
      <pre tabIndex={0}>
        <Visible text={text} />
      </pre>
    </section>
  );
}
