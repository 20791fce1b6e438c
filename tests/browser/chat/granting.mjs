// "Always …": an approval with a grant for equal later calls of the chat.
import assert from 'node:assert/strict';

import { EXPLODE, ONE, PROMPTS } from './prompts.mjs';

const OFFERS = 'Later calls that are approved without a question';
const always = (chat, card) => chat.button('Always …', card);

export const granting = {
  async 'granting: a call that no layer lets people grant has no such button'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.one);
    await chat.waits(1);
    assert.equal(await always(chat, chat.ask()).count(), 0);
    await chat.deny(chat.ask());
    await chat.settled(ONE.tool, 'Denied');
  },

  async 'granting: a grant is shown as a sentence and as a rule, in one set of buttons, and Back makes none'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.explode);
    await chat.waits(1);
    const card = chat.ask();
    await always(chat, card).click();
    const choice = card.getByLabel(OFFERS);
    const says = await choice.locator('option').allInnerTexts();
    assert.deepEqual(
      says.map(it => it.trim()),
      ['exactly these', 'any'].flatMap(which =>
        ['1h', '12h'].map(time => `\`${EXPLODE.tool}\` with ${which} arguments, in this session, for at most ${time}`),
      ),
    );
    const rule = () => card.locator('.answer pre').innerText();
    assert.match(await rule(), /tool = "move_file"\s+in = "session [^"]+"\s+valid_for = "1h"/);
    await choice.selectOption({ index: 1 });
    assert.match(await rule(), /valid_for = "12h"/, 'the rule is made again for the time that is chosen');
    assert.deepEqual(await card.locator('.actions button').allInnerTexts(), ['Approve, and grant this', 'Back']);
    await chat.button('Back', card).click();
    await choice.waitFor({ state: 'detached' });
    await always(chat, card).click();
    await choice.press('Escape');
    await choice.waitFor({ state: 'detached' });
    assert.equal(chat.posts.length, 1, 'looking at it sends nothing');
    await chat.approve(card);
    const moved = await chat.settled(EXPLODE.tool, 'Failed');
    await chat.ready();
    assert.equal(chat.posts[1].approvalGrants, undefined, 'once is the default');
    assert.doesNotMatch(await moved.innerText(), /grant/);
  },

  async 'granting: after it, equal calls of the chat run, and the transcript says by whose grant'({ visit }) {
    const chat = await visit.open();
    await chat.say(PROMPTS.explode);
    await chat.waits(1);
    await chat.settles(always(chat, chat.ask()));
    // Within the page, as a click from here may come when the button has stood still already.
    const early = await chat.page.evaluate(async () => {
      const find = text => [...document.querySelectorAll('.ask button')].find(it => it.textContent.startsWith(text));
      find('Always').click();
      await new Promise(requestAnimationFrame);
      find('Approve, and grant').click();
      return find('Approve, and grant').getAttribute('aria-disabled');
    });
    assert.equal(early, 'true', 'a click does nothing before the button has stood still');
    const make = chat.button('Approve, and grant this', chat.ask());
    await chat.ask().getByLabel(OFFERS).selectOption({ index: 1 });
    await make.click();
    const first = await chat.settled(EXPLODE.tool, 'Failed');
    await chat.ready();
    const [grant] = Object.values(chat.posts[1].approvalGrants);
    assert.deepEqual({ pattern: grant.pattern, seconds: grant.seconds }, { pattern: 0, seconds: 12 * 3600 });
    const id = /Later calls like it are approved by grant (\w+)\./.exec(await first.innerText())?.[1];
    assert.ok(id, await first.innerText());

    await chat.say(PROMPTS.explode);
    const second = await chat.settled(EXPLODE.tool, 'Failed', 1);
    await chat.ready();
    assert.equal(chat.posts.length, 3, 'it was not asked about');
    assert.match(await second.innerText(), new RegExp(`Approved by grant ${id} of you, \\d{4}-\\d\\d-\\d\\d\\.`));
    await chat.page.reload();
    await chat.sees(new RegExp(`Approved by grant ${id} of you`));

    const other = await visit.open();
    await other.say(PROMPTS.explode);
    await other.waits(1);
    await other.deny(other.ask());
  },
};
