// The server stops and starts again: the page says so, loses nothing, and continues.

import assert from "node:assert/strict";

import { checked, eventually, host, scenario } from "../lib/harness.mjs";
import { approve, button, card, comeIn, decided, deny, elsewhere, waiting } from "../lib/inbox.mjs";

await scenario(async ({ url, person }) => {
  await (await elsewhere(url, "ann")).start('delete_file {"path": "a.log"}\ndelete_file {"path": "b.log"}\ndelete_file {"path": "c.log"}');
  const bob = await comeIn(await person("bob"));
  await waiting(bob, 3);
  // A person whose page has a clock of this test, so that two seconds are two seconds on any machine.
  const carol = await person("carol");
  await carol.page.clock.install();
  await carol.page.addInitScript(() => {
    // The browser's own limit of a request has no such clock.
    AbortSignal.timeout = (after) => {
      const limit = new AbortController();
      setTimeout(() => limit.abort(new DOMException("too late", "TimeoutError")), after);
      return limit.signal;
    };
  });
  const asking = new Set();
  const isPulse = (request) => request.url().endsWith("/api/alive");
  carol.page.on("request", (request) => isPulse(request) && asking.add(request));
  for (const end of ["requestfinished", "requestfailed"]) carol.page.on(end, (request) => asking.delete(request));
  await comeIn(carol);
  const unseen = carol.page.getByText("The server cannot be reached.", { exact: true });
  /** Stops the clock of that page when the server has answered, and lets two seconds pass after the server was lost. */
  const lost = async (word) => {
    await carol.page.clock.pauseAt(await carol.page.evaluate(() => Date.now() + 1000));
    await eventually("the page has its last answer", async () => assert.equal(asking.size, 0));
    assert.ok(await unseen.isHidden());
    await host(word);
    await carol.page.clock.runFor(2000);
    await unseen.waitFor();
    await carol.page.clock.resume();
  };
  await approve(bob, "delete_file", "a.log");
  await decided(bob, "ran", "a.log");

  const half = card(bob, "delete_file", "b.log");
  await button(half, /^Deny /).click();
  await half.getByLabel("What the agent is told").fill("half a sen");
  await lost("stop");
  const away = bob.page.getByText("The server cannot be reached.", { exact: true });
  await away.waitFor();
  checked("a page whose server is away says so");
  await approve(bob, "delete_file", "c.log");
  await card(bob, "delete_file", "c.log").getByText("It is not known whether this was decided").waitFor();
  assert.equal(await bob.page.locator("article").count(), 2, "nothing is taken away");

  await host("start");
  await away.waitFor({ state: "hidden" });
  assert.equal(await half.getByLabel("What the agent is told").inputValue(), "half a sen", "what was typed is still there");
  checked("it comes back by itself, with what was typed");
  await unseen.waitFor({ state: "hidden" });
  await lost("pause");
  checked("two seconds are enough to see that a server has stopped, or hangs");
  await away.waitFor();
  await host("continue");
  await away.waitFor({ state: "hidden" });
  checked("a server whose connections hang is lost too");
  await half.getByLabel("What the agent is told").fill("half a sentence, and the rest");
  await button(half, /^Deny$/).click();
  await decided(bob, "denied", "b.log", "half a sentence, and the rest");

  await bob.page.reload();
  await waiting(bob, 1);
  await host("restart");
  await eventually("the login is still good", async () => {
    assert.equal(await bob.page.locator("#name").innerText(), "bob");
  });
  await eventually("approving works again", async () => {
    const it = card(bob, "delete_file", "c.log");
    if (await it.count()) await button(it, /^Approve /).click({ timeout: 1000 });
    assert.equal(await it.count(), 0);
  });
  await decided(bob, "ran", "c.log", "approved by bob");
  await waiting(bob, 0);
  await (await elsewhere(url, "ann")).start('delete_file {"path": "d.log"}');
  await waiting(bob, 1);
  checked("new requests arrive live, after all of that");
  await deny(bob, "delete_file", "", "d.log");
  await decided(bob, "denied", "d.log");
  carol.quiet(/ERR_CONNECTION|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|Failed to fetch|status of 4/);
  bob.quiet(/ERR_CONNECTION|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|Failed to fetch|status of 409/);
});
