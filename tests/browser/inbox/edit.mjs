// Edited arguments: invalid JSON and arguments that the tool refuses are reported beside the field; others run.

import assert from "node:assert/strict";

import { checked, scenario } from "../lib/harness.mjs";
import { change, comeIn, decided, elsewhere, waiting } from "../lib/inbox.mjs";

await scenario(async ({ url, person }) => {
  await (await elsewhere(url, "ann")).start('delete_file {"path": "a.log"}');
  const bob = await comeIn(await person("bob"));
  const { it, field, approve } = await change(bob, "delete_file");
  assert.equal(await field.inputValue(), '{\n  "path": "a.log"\n}');

  const problem = it.getByRole("alert");
  for (const [typed, told] of [['{"path": ', "not JSON yet"], ["[1]", "an object"], ["null", "an object"]]) {
    await field.fill(typed);
    await problem.filter({ hasText: told }).waitFor();
    assert.ok(await approve.isDisabled());
    assert.equal(await field.getAttribute("aria-invalid"), "true");
  }
  checked("invalid JSON is reported at once, and cannot be sent");

  for (const [typed, told] of [['{"paths": "b.log"}', "unknown field"], ['{"path": 1}', "expected"], ['{"path": "a", "path": "b"}', "path"]]) {
    await field.fill(typed);
    await approve.click();
    await problem.filter({ hasText: told }).waitFor();
    assert.equal(await field.inputValue(), typed, "what was typed is still there");
  }
  checked("arguments that the tool refuses are reported beside the field");
  await waiting(bob, 1);

  await field.fill('{"path": "b.log"}');
  await approve.click();
  await decided(bob, "ran", 'delete_file(path: "b.log")', 'asked for delete_file(path: "a.log")', "approved with changes by bob", "deleted b.log");
  bob.quiet(/status of 422/);
});
