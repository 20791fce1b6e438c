// The change of a call is shown as a change, before and after the approval.
import assert from 'node:assert/strict';

import { until } from './page.mjs';
import { ONE, PROMPTS } from './prompts.mjs';

const signed = preview =>
  preview.locator('.line-of').evaluateAll(lines => lines.map(line => [line.className.replace('line-of ', ''), line.querySelector('bdi').textContent]));

export const previews = {
  async 'previews: a change is shown as a coloured difference, with its author'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.change);
    await chat.waits(1);
    const preview = chat.ask().getByRole('figure', { name: 'Preview: todo.txt' });
    assert.match(await preview.locator('figcaption').innerText(), /^tool write_file\s+todo.txt\s+changed\s+you are asked again if this changes$/);
    assert.deepEqual(await signed(preview), [
      ['remark', '@@ -1,3 +1,3 @@'],
      ['removed', '- rotate the logs'],
      ['added', '- rotate the logs, weekly'],
      ['plain', '- thumbnails of very wide photos are blurred'],
      ['removed', '- tidy up this folder'],
      ['added', '- write to Ben'],
    ]);
    const colour = kind => preview.locator(`.line-of.${kind}`).first().evaluate(it => getComputedStyle(it).backgroundColor);
    assert.equal(new Set([await colour('added'), await colour('removed'), await colour('plain')]).size, 3);
    assert.match(await preview.locator('.added').first().textContent(), /added: /, 'the colour is said, too');
    await chat.button(/^Edit/, chat.ask()).click();
    assert.equal(await preview.count(), 0, 'it is not what would run any more');
    await chat.button('Cancel', chat.ask()).click();
    await chat.approve();
    const card = await chat.settled('write_file', 'Approved, done');
    await chat.ready();
    await chat.page.reload();
    await card.locator('summary').click();
    assert.equal((await signed(card.getByRole('figure'))).length, 6, 'it can be read afterwards');
  },

  async 'previews: a text, a table, and what changes by itself are shown as such'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.invoices);
    await chat.waits(1);
    const table = chat.ask().getByRole('figure', { name: 'Preview: transfers' });
    const cells = await table.getByRole('row').evaluateAll(rows => rows.map(row => [...row.cells].map(cell => cell.textContent)));
    assert.deepEqual(cells, [
      ['to', 'euros', 'month'],
      ['Ann\\u{202e}', '1 200.00', 'May'],
      ['Ben & Sons', '80.50', 'May'],
      ['<b>Cleo</b>', '7.00', 'May'],
    ]);
    assert.equal(await chat.ask().locator('b').count(), 0);
    const rate = chat.ask().getByRole('figure', { name: "Preview: today's rate" });
    assert.match(await rate.innerText(), /may change by itself\s+1 euro is 1\.08 dollars/);
    await chat.approve();
    await chat.settled('pay_invoices', 'Approved, done');
    await chat.ready();
  },

  async 'previews: edited arguments are asked about again, with a preview of their own'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.one);
    await chat.waits(1);
    await chat.ready();
    assert.match(await chat.ask().getByRole('figure', { name: 'Preview: a.txt' }).innerText(), /To try things on\./);
    await chat.edit(chat.ask(), { path: 'b.txt' });
    // The question was about another file: an approval of one preview is none of another.
    await chat.settled(ONE.tool, 'Asked again');
    await chat.waits(1);
    assert.equal(await chat.ask().getByRole('figure', { name: 'Preview: b.txt' }).count(), 1);
    assert.equal(await chat.ask().getByRole('figure', { name: 'Preview: a.txt' }).count(), 0);
    await chat.approve();
    await chat.settled(ONE.tool, 'Approved, done', 1);
    await chat.ready();
  },

  async 'elision: a preview that was cut is approved only by itself'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.tooLong);
    await chat.waits(3);
    await chat.ready();
    const [first, second] = [chat.ask('long.txt').nth(0), chat.ask('long.txt').nth(1)];
    assert.equal(await chat.page.getByText('The same call').count(), 0, 'equal ones are not answered together');
    assert.ok(await chat.button(/^Approve/, first).isDisabled(), 'it is folded');
    for (const card of [first, second]) await chat.button('Show the whole preview', card).click();
    await first.getByText('line 1999', { exact: true }).first().waitFor();
    assert.match(await first.getByRole('figure').innerText(), /101 more lines are too much to be kept, and cannot be shown/);
    assert.match(await chat.page.locator('.wait-bar').innerText(), /Left out of “approve all”: 2 with a preview that is too long to be shown whole/);
    await chat.button('Approve 1 of 3').click();
    await chat.waits(2);
    assert.equal(chat.posts.length, 1);
    assert.ok(await chat.button(/^Approve 0 of 2/).isDisabled());
    await chat.approve(first);
    await chat.waits(1);
    await chat.approve(chat.ask('long.txt'));
    await until('the answers are out', async () => chat.posts.length === 2);
    await chat.ready();
  },
};
