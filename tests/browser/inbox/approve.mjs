// A person opens an empty inbox, starts a run, and approves; the page is reloaded in between.

import assert from "node:assert/strict";

import { checked, scenario } from "../lib/harness.mjs";
import { approve, card, comeIn, decided, details, notice, startRun, waiting } from "../lib/inbox.mjs";

await scenario(async ({ person }) => {
  const ann = await comeIn(await person("ann"));
  await ann.page.getByText("Nothing is pending.").waitFor();
  const search = ann.page.getByRole("search", { name: "Search and filter" });
  assert.ok(!(await search.isVisible()), "an empty inbox has nothing to search");
  await startRun(ann);
  await waiting(ann, 5);
  assert.ok(await search.isVisible());
  assert.equal(await ann.page.title(), "(5) Approvals");

  const file = card(ann, "delete_file", "logs/2024-archive.tar");
  const text = await file.innerText();
  for (const part of ["Agent root · wanted by ann", '"logs/2024-archive.tar"', "Policy", "deletes a file for good"]) {
    assert.ok(text.includes(part), `${part} in ${text}`);
  }
  assert.ok((await card(ann, "delete_file", "session-cache").innerText()).includes("Agent root/cleaner"));
  const first = await card(ann, "transfer").innerText();
  assert.match(first, /^[^]*An agent wants to call transfer\(/, "who wants what, in one line");
  assert.ok(first.indexOf("moves money") < first.indexOf("12500"), "the reason stands above the arguments");
  assert.doesNotMatch(first, /[0-9a-f]{16}|unverified|Pays one invoice|asks again if/, "no digest, and no notes");
  await details(card(ann, "transfer"));
  const transfer = await card(ann, "transfer").innerText();
  for (const part of ["moves money out of the company", "Limits", "more than 10 000 EUR", "asks again if list of known accounts changes"]) {
    assert.ok(transfer.includes(part), `${part} in ${transfer}`);
  }
  assert.ok(transfer.indexOf("12500") < transfer.indexOf("Pays one invoice"), "what will run stands above what others wrote");
  assert.match(await card(ann, "restart_server").innerText(), /\d:\d\d left/);
  checked("tool, agent, who wants it, deadline, what will run, every question with who asks, and what others wrote below");

  await approve(ann, "delete_file", "logs/2024-archive.tar");
  await notice(ann, "delete_file: approved.").waitFor();
  await decided(ann, "ran", "logs/2024-archive.tar", "approved by ann", "deleted logs/2024-archive.tar");
  await waiting(ann, 4);

  await ann.page.reload();
  await ann.page.getByText("Deciding as ann").waitFor();
  await waiting(ann, 4);
  await decided(ann, "ran", "logs/2024-archive.tar");
  await approve(ann, "delete_file", "session-cache");
  await decided(ann, "ran", "root/cleaner/delete_file", "deleted tmp/session-cache");
  await waiting(ann, 3);
  ann.quiet();
});
