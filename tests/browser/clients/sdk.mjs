// One published version of the AI SDK's client, unmodified, without a framework.
export const VERSIONS = ['6.0.0', '6.0.230', '6.0.326', '7.0.31', '7.0.173'];

/** Those that put a resumed stream in the place of the message they have. */
const REPLACES = ['6.0.326', '7.0.173'];

/** What every binding of the AI SDK brings: where the messages are kept. */
class State {
  status = 'ready';
  error = undefined;

  constructor(messages = []) {
    this.messages = messages;
  }

  pushMessage = message => {
    this.messages = [...this.messages, message];
  };

  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };

  replaceMessage = (at, message) => {
    this.messages = this.messages.map((it, n) => (n === at ? structuredClone(message) : it));
  };

  snapshot = value => structuredClone(value);
}

export async function load(version) {
  if (!VERSIONS.includes(version)) throw new Error(`--sdk is one of ${VERSIONS.join(', ')}`);
  const ai = await import(`ai-${version}`);
  class Chat extends ai.AbstractChat {
    constructor({ messages, ...init }) {
      super({ ...init, state: new State(messages) });
    }
  }
  const schema = typeof ai.uiMessageChunkSchema === 'function' ? ai.uiMessageChunkSchema() : ai.uiMessageChunkSchema;
  /** Why this version refuses a chunk, if it does. */
  const refuses = async chunk => {
    const result = await schema.validate(chunk);
    return result.success ? undefined : String(result.error?.message ?? result.error).replace(/\s+/g, ' ').slice(0, 200);
  };
  return { version, ai, Chat, refuses, replaces: REPLACES.includes(version) };
}
