// The page of the chat example in Chromium, against a running server with the scripted model of `prompts.mjs`:
//
//   node chat/run.mjs http://127.0.0.1:8080 [--only WORDS] [--chromium PATH] [--restart stdin|URL]
//
// --restart: how the server is restarted while a call waits. `stdin`: prints RESTART and waits for a line; a URL: POSTs
// there. Without it that scenario is skipped. One line per scenario; exit status 0 when all have passed.
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';

import { answering } from './answering.mjs';
import { lasting } from './lasting.mjs';
import { launch, Visit } from './page.mjs';
import { showing } from './showing.mjs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string' }, chromium: { type: 'string', default: '/usr/bin/chromium' }, restart: { type: 'string' } },
});
const [base] = positionals;
if (!base) {
  console.error('usage: node chat/run.mjs BASE_URL [--only WORDS] [--chromium PATH] [--restart stdin|URL]');
  process.exit(2);
}

async function restart() {
  if (options.restart !== 'stdin') {
    const response = await fetch(options.restart, { method: 'POST' });
    if (!response.ok) throw new Error(`the restart answered ${response.status}`);
    return;
  }
  const lines = createInterface({ input: process.stdin });
  console.log('RESTART');
  await lines.question('');
  lines.close();
}

const browser = await launch(options.chromium);
const counts = { passed: 0, failed: 0, skipped: 0 };
for (const [name, scenario] of Object.entries({ ...answering, ...lasting, ...showing })) {
  if (options.only && !name.includes(options.only)) continue;
  if (name.includes('restarted') && !options.restart) {
    console.log(`skipped  ${name}`);
    counts.skipped++;
    continue;
  }
  const visit = await Visit.start(browser, base);
  const phone = await Visit.start(browser, base, { viewport: { width: 375, height: 720 }, isMobile: true, hasTouch: true });
  try {
    await scenario({ visit, phone, restart });
    await visit.end();
    await phone.end();
    console.log(`passed   ${name}`);
    counts.passed++;
  } catch (error) {
    console.log(`FAILED   ${name}\n  ${String(error.stack ?? error).replaceAll('\n', '\n  ')}`);
    if (visit.wrong.length > 0) console.log(`  and ${visit.wrong.join('\n  and ')}`);
    counts.failed++;
  } finally {
    await visit.context.close();
    await phone.context.close();
  }
}
await browser.close();
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exitCode = counts.failed > 0 ? 1 : 0;
