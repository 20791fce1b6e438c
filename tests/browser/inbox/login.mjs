// The login is used before its script has loaded.

import { checked, scenario } from "../lib/harness.mjs";
import { comeIn } from "../lib/inbox.mjs";

await scenario(async ({ person }) => {
  const ann = await person("ann");
  await ann.page.route("**/login.js", async (route) => {
    await new Promise((done) => setTimeout(done, 2_000));
    await route.continue();
  });
  await comeIn(ann);
  ann.quiet();
  checked("a name that is entered early is not lost");
});
