// The official TypeScript client of the earlier revisions: connects to a command, makes calls, and prints one line of
// JSON for each.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const given = JSON.parse(process.argv[2]);
const require = createRequire(path.join(given.packages, 'x.js'));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
const { ElicitRequestSchema } = await load('@modelcontextprotocol/sdk/types.js');

let asked = 0;
const capabilities = given.answer ? { elicitation: {} } : {};
const client = new Client({ name: 'test', version: '1' }, { capabilities });
if (given.answer) {
    client.setRequestHandler(ElicitRequestSchema, async () => {
        asked += 1;
        if (given.answer === 'approve') return { action: 'accept', content: { decision: 'approve' } };
        return { action: given.answer };
    });
}
const [command, ...args] = given.command;
await client.connect(new StdioClientTransport({ command, args, env: { ...process.env, ...given.env } }));
const { tools } = await client.listTools();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name).sort() }));
for (const [name, args] of given.calls) {
    try {
        const result = await client.callTool({ name, arguments: args }, undefined, { timeout: given.timeout ?? 20000 });
        const text = result.content.map((block) => block.text ?? '').join('\n');
        console.log(JSON.stringify({ text, error: result.isError === true, structured: result.structuredContent ?? null, asked }));
    } catch (error) {
        console.log(JSON.stringify({ raised: String(error), asked }));
    }
}
await client.close();
