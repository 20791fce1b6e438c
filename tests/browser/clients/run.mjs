// Published AI SDK clients, without a browser, against a server that mounts the fixture agent (README.md):
//
//   npm ci
//   node run.mjs --base-url http://127.0.0.1:8080 [--sdk 7.0.173|all] [--only WORDS] [--no-attacks]
//
// One line per scenario; exit status 0 when all have passed, 1 when one has not, 2 for a wrong command line.
import { parseArgs } from 'node:util';

import { attacks } from './attacks.mjs';
import { honest } from './honest.mjs';
import { load, VERSIONS } from './sdk.mjs';
import { oracle } from './wire.mjs';

function wrong(problem) {
  console.error(`error: ${problem}\nusage: node run.mjs --base-url URL [--sdk ${VERSIONS.join('|')}|all] [--only WORDS] [--no-attacks]`);
  process.exit(2);
}

function commandLine() {
  try {
    const { values } = parseArgs({
      options: {
        'base-url': { type: 'string' },
        sdk: { type: 'string', default: '7.0.173' },
        only: { type: 'string' },
        'no-attacks': { type: 'boolean', default: false },
      },
    });
    if (!values['base-url']) wrong('where is the server? --base-url');
    if (values.sdk !== 'all' && !VERSIONS.includes(values.sdk)) wrong(`there is no version ${values.sdk} here`);
    return values;
  } catch (error) {
    return wrong(error.message);
  }
}

const options = commandLine();
const base = options['base-url'].replace(/\/$/, '');
const { reset, ran } = oracle(base);
await ran().catch(error => wrong(`${base}/fixture/executions does not answer: ${error.cause?.code ?? error.message}`));

// An error that escapes a client is not lost among the scenarios.
let escaped = [];
process.on('unhandledRejection', error => escaped.push(error));

const counts = { passed: 0, failed: 0 };
const scenarios = { ...honest, ...(options['no-attacks'] ? {} : attacks) };
for (const version of options.sdk === 'all' ? VERSIONS : [options.sdk]) {
  const sdk = await load(version);
  for (const [name, scenario] of Object.entries(scenarios)) {
    if (options.only && !name.includes(options.only)) continue;
    escaped = [];
    try {
      await reset();
      await scenario({ sdk, base, ran, reset });
      if (escaped.length > 0) throw escaped[0];
      console.log(`passed  ${version}  ${name}`);
      counts.passed++;
    } catch (error) {
      console.log(`FAILED  ${version}  ${name}\n  ${String(error?.message ?? error).replaceAll('\n', '\n  ')}`);
      counts.failed++;
    }
  }
}
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed > 0 ? 1 : 0);
