// A denial with a message, which the agent is told word for word. When it asks the same again, the next person is told.

import assert from "node:assert/strict";

import { eventually, scenario } from "../lib/harness.mjs";
import { card, comeIn, decided, deny, elsewhere, notice, waiting } from "../lib/inbox.mjs";

await scenario(async ({ url, person }) => {
  await (await elsewhere(url, "ann")).start('delete_file {"path": "a.log"}');
  const bob = await comeIn(await person("bob"));
  await waiting(bob, 1);
  await deny(bob, "delete_file", 'Not today: "a.log" <b>stays</b>.\nAsk again on Monday — 日本 ✓');
  await notice(bob, "delete_file: denied.").waitFor();
  await decided(bob, "denied", "denied by bob", "<b>stays</b>");
  await waiting(bob, 0);

  const again = 'delete_file {"path": "b.log"}';
  await (await elsewhere(url, "ann")).start([again, again, again].join("\n\n"));
  for (const said of [null, "Denied once before: Keep\\u{200b} it.", "Denied twice before: Keep\\u{200b} it."]) {
    await waiting(bob, 1);
    await eventually(`it says: ${said}`, async () => {
      const text = await card(bob, "delete_file", "b.log").innerText();
      assert.ok(said ? text.includes(said) : !text.includes("before"), text);
    });
    await deny(bob, "delete_file", "Keep\u200B it.", "b.log");
    await notice(bob, "delete_file: denied.").first().waitFor();
  }
  await waiting(bob, 0);
  bob.quiet();
});
