import { same } from './args';
import { isObject, type Json } from './approval';
import { Visible } from './Visible';

/** One value: a text of several lines as its lines, anything else as JSON. */
function Value({ value }: { value: Json | undefined }) {
  if (typeof value === 'string' && value.includes('\n')) {
    const lines = value.split('\n').length;
    return (
      <>
        <span className="note">
          {lines} lines, {[...value].length} characters
        </span>
        <pre tabIndex={0}>
          <Visible text={value} />
        </pre>
      </>
    );
  }
  return (
    <code>
      <Visible text={JSON.stringify(value, null, isObject(value) || Array.isArray(value) ? 2 : 0) ?? ''} />
    </code>
  );
}

/** Arguments by name, whole; what differs from `before` is marked. */
export function Args({ input, before, label }: { input: unknown; before?: unknown; label: string }) {
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
              <Value value={input[name]} />
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
