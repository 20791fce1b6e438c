// One browser, two tabs, and another login in one of them: the other tab does not decide under the new name.

import assert from "node:assert/strict";

import { eventually, scenario } from "../lib/harness.mjs";
import { approve, card, comeIn, decided, elsewhere, freeze, notice, waiting } from "../lib/inbox.mjs";

await scenario(async ({ url, person }) => {
  await (await elsewhere(url, "carol")).start('delete_file {"path": "a.log"}');
  const ann = await comeIn(await person("ann"));
  await waiting(ann, 1);
  await freeze(ann);
  const tab = await ann.context.newPage();
  await tab.goto(url);
  await tab.getByRole("link", { name: "Log out" }).click();
  await tab.getByLabel("Your name").fill("bob");
  await tab.getByRole("button", { name: "Continue" }).click();
  await tab.getByText("Deciding as bob").waitFor();
  await tab.close();

  await approve(ann, "delete_file");
  await card(ann, "delete_file").getByText("You are now logged in as bob, and the page shows another name.").waitFor();
  await waiting(ann, 1);
  await ann.page.unrouteAll();
  await approve(ann, "delete_file");
  await notice(ann, "You are now logged in as bob").waitFor();
  await eventually("the page says who decides", async () => {
    assert.equal(await ann.page.locator("#name").innerText(), "bob");
  });
  await approve(ann, "delete_file");
  await decided(ann, "ran", "approved by bob");
  ann.quiet(/status of 403/);
});
