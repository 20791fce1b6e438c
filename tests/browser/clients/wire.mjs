// A record of all bytes on the wire.

/** A `fetch` that remembers every request and every byte of every response. `lose` may break a response for the client. */
export function recorder({ lose } = {}) {
  const exchanges = [];
  let open = 0;
  async function keep(url, init = {}) {
    const exchange = {
      url: String(url),
      method: init.method ?? 'GET',
      raw: init.body,
      body: typeof init.body === 'string' ? JSON.parse(init.body) : undefined,
      text: '',
    };
    exchanges.push(exchange);
    open++;
    try {
      const response = await fetch(url, init);
      exchange.status = response.status;
      exchange.headers = Object.fromEntries(response.headers);
      const how = lose?.(exchange, exchanges.length - 1);
      if (how) {
        if (how === 'all') exchange.text = await response.text();
        else await response.body.cancel();
        exchange.lost = true;
        throw new TypeError('network error');
      }
      if (!response.body) return response;
      const [mine, theirs] = response.body.tee();
      exchange.read = read(mine, exchange);
      return new Response(theirs, { status: response.status, headers: response.headers });
    } finally {
      // the body is counted by `read`
      open--;
    }
  }
  async function read(stream, exchange) {
    open++;
    const decoder = new TextDecoder();
    try {
      for await (const bytes of stream) exchange.text += decoder.decode(bytes, { stream: true });
    } catch (error) {
      exchange.broken = String(error);
    } finally {
      open--;
    }
  }
  return { fetch: keep, exchanges, busy: () => open > 0 };
}

/** The chunks of an event stream, and what is wrong with its form. */
export function chunks(text) {
  const found = [];
  const wrong = [];
  const events = text.split('\n\n');
  if (events.pop() !== '') wrong.push('the stream ends within an event');
  let done = false;
  for (const event of events) {
    if (event.split('\n').every(line => line.startsWith(':'))) continue;
    if (done) wrong.push(`something follows [DONE]: ${event.slice(0, 80)}`);
    if (event === 'data: [DONE]') done = true;
    else if (!event.startsWith('data: ') || event.includes('\n')) wrong.push(`an event is not one line of data: ${event.slice(0, 80)}`);
    else found.push(JSON.parse(event.slice(6)));
  }
  if (!done) wrong.push('the stream does not end with [DONE]');
  return { found, wrong };
}

/** A request by hand. */
export async function post(base, body) {
  const text = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  const response = await fetch(`${base}/api/chat`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: text });
  return { status: response.status, text: await response.text() };
}

/** The fixture's own account of what has run. */
export function oracle(base) {
  return {
    reset: () => fetch(`${base}/fixture/reset`, { method: 'POST' }),
    async ran() {
      const executions = await (await fetch(`${base}/fixture/executions`)).json();
      return executions.map(({ tool, input }) => `${tool}(${JSON.stringify(input)})`);
    },
  };
}
