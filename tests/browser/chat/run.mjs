// The page of the chat example in Chromium, against a running server with the scripted model of `prompts.mjs`:
//
//   node chat/run.mjs http://127.0.0.1:8080 [--of answering|careful|granting|lasting|many|previews|showing] [--only WORDS] [--restart host|URL]
//
// --restart: how the server is restarted while a call waits. `host`: prints `@restart` and waits for a line; a URL: POSTs
// there. Without it that scenario is skipped. One line per scenario; exit status 0 when all have passed. $CHROMIUM may
// name the browser.
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { answering } from './answering.mjs';
import { careful } from './careful.mjs';
import { granting } from './granting.mjs';
import { lasting } from './lasting.mjs';
import { many } from './many.mjs';
import { launch, Visit } from './page.mjs';
import { previews } from './previews.mjs';
import { showing } from './showing.mjs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { of: { type: 'string' }, only: { type: 'string' }, restart: { type: 'string' } },
});
const [base] = positionals;
if (!base) {
  console.error('usage: node chat/run.mjs BASE_URL [--of answering|careful|granting|lasting|many|previews|showing] [--only WORDS] [--restart host|URL]');
  process.exit(2);
}

let lines;

async function restart() {
  if (options.restart === 'host') return host('restart');
  const response = await fetch(options.restart, { method: 'POST' });
  if (!response.ok) throw new Error(`the restart answered ${response.status}`);
}

/** Asks the test around the scenarios for an action on the server that only the test can do: `restart`, `pause`, `continue`. */
async function host(word) {
  lines ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  console.log(`@${word}`);
  await lines.next();
}

const browser = await launch();
const counts = { passed: 0, failed: 0, skipped: 0 };
const all = { answering, careful, granting, lasting, many, previews, showing };
const played = options.of ? all[options.of] : Object.assign({}, ...Object.values(all));
for (const [name, scenario] of Object.entries(played)) {
  if (options.only && !name.includes(options.only)) continue;
  if ((name.includes('restarted') && !options.restart) || (name.includes('hangs') && options.restart !== 'host')) {
    console.log(`skipped: ${name}`);
    counts.skipped++;
    continue;
  }
  const visit = await Visit.start(browser, base);
  const phone = await Visit.start(browser, base, { viewport: { width: 375, height: 720 }, isMobile: true, hasTouch: true });
  try {
    await scenario({ visit, phone, restart, host });
    await visit.end();
    await phone.end();
    console.log(`checked: ${name}`);
    counts.passed++;
  } catch (error) {
    console.log(`FAILED:  ${name}\n  ${String(error.stack ?? error).replaceAll('\n', '\n  ')}`);
    if (visit.wrong.length > 0) console.log(`  and ${visit.wrong.join('\n  and ')}`);
    counts.failed++;
  } finally {
    await visit.context.close();
    await phone.context.close();
  }
}
await browser.close();
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.stdin.destroy();
process.exitCode = counts.failed > 0 ? 1 : 0;
