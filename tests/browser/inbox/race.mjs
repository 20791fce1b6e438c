// Two people click at the same moment, in many rounds: one wins, and the other gets the winner and the decision.

import assert from "node:assert/strict";

import { checked, scenario } from "../lib/harness.mjs";
import { button, card, comeIn, elsewhere, freeze, notice, waiting } from "../lib/inbox.mjs";

const ROUNDS = 6;

await scenario(async ({ url, others, person }) => {
  const ann = await elsewhere(url, "ann");
  let last = null;
  for (let round = 1; round <= ROUNDS; round += 1) {
    await ann.start(`delete_file {"path": "race-${round}"}`);
    const bob = await comeIn(await person("bob"));
    const carol = await comeIn(await person("carol", others[0] ?? url));
    for (const clicker of [bob, carol]) {
      await waiting(clicker, 1);
      await freeze(clicker);
    }
    const denies = button(card(carol, "delete_file"), /^Deny /);
    const yes = button(card(bob, "delete_file"), /^Approve /);
    // Every other time both say yes, otherwise one says no.
    let other = button(card(carol, "delete_file"), /^Approve /);
    if (round % 2) {
      await denies.click();
      other = button(card(carol, "delete_file"), /^Deny$/);
    }
    const clicks = [() => yes.click(), () => other.click()];
    if (round % 3 === 0) clicks.reverse();
    await Promise.all(clicks.map((click) => click()));
    const won = (clicker) => notice(clicker, /delete_file: (approved|denied)\./);
    const lost = (clicker, by) => notice(clicker, new RegExp(`already decided by ${by}: (approved|denied), \\d\\d:\\d\\d\\.`));
    await Promise.all([won(bob).or(lost(bob, "carol")).waitFor(), won(carol).or(lost(carol, "bob")).waitFor()]);
    const winners = [await won(bob).count(), await won(carol).count()];
    assert.equal(winners[0] + winners[1], 1, `one wins: ${winners}`);
    assert.equal(await lost(bob, "carol").count() + await lost(carol, "bob").count(), 1);
    last = winners[0] ? "bob" : "carol";
    checked(`round ${round}: ${last} won, and the other got the decision`);
    for (const clicker of [bob, carol]) {
      clicker.quiet(/status of 409/);
      await clicker.context.close();
    }
  }
});
