// "Always …": an approval with a grant for later calls, which is shown before it is made, and which answers no call that
// is pending already.

import assert from "node:assert/strict";

import { checked, eventually, host, scenario } from "../lib/harness.mjs";
import { button, card, comeIn, decided, notice, press, readWhole, sent, waiting } from "../lib/inbox.mjs";

await scenario(async ({ person }) => {
  const bob = await comeIn(await person("bob"));
  const { page } = bob;
  const decisions = sent(bob);
  await waiting(bob, 4);

  assert.equal(await button(card(bob, "transfer"), /^Always /).count(), 0);
  checked("a call that is asked about every time has no such button");

  const report = card(bob, "send_report");
  const ever = button(report, /^Always /);
  assert.ok(await ever.isDisabled(), "some of its text is left out");
  await button(report, "Show everything").click();
  await button(report, "Show everything").waitFor({ state: "detached" });
  assert.ok(await ever.isDisabled(), "its last row was not in sight");
  await readWhole(report);
  await eventually("after the last row a grant may be made", async () => assert.ok(await ever.isEnabled()));
  checked("a call of which something was not seen is granted no more than it is approved");

  const mail = page.locator("article").filter({ hasText: "send_mail" }).first();
  const always = button(mail, /^Always /);
  const approval = button(mail, /^Approve send_mail/);
  const offer = mail.getByLabel("Later calls that are approved without a question");
  assert.ok(await approval.isVisible());
  await press(bob, always);
  await offer.waitFor();
  const offers = await offer.locator("option").allInnerTexts();
  assert.ok(offers.length > 0 && offers.every((it) => it.trim() !== ""), offers.join(" | "));
  const rule = () => mail.locator(".more").innerText();
  assert.match(await rule(), /for at most 1h[^]*tool = "send_mail"[^]*valid_for = "1h"/, "the grant is also shown as a rule");
  const grant = button(mail, "Approve, and grant this");
  await page.waitForFunction((it) => it.getAttribute("aria-disabled") === null, await grant.elementHandle());
  const inert = await offer.evaluate((select) => {
    select.selectedIndex = 1;
    select.dispatchEvent(new Event("change", { bubbles: true }));
    return select.closest(".more").querySelector("button.primary").getAttribute("aria-disabled");
  });
  assert.equal(inert, "true", "another grant is on the screen: the button does not count yet");
  assert.match(await rule(), /for at most 12h[^]*valid_for = "12h"/, "sentence and rule are of the time that is chosen");
  await offer.selectOption({ index: 0 });
  assert.ok(!(await approval.isVisible()) || !(await approval.isEnabled()), "there is one set of buttons");
  await press(bob, button(mail, "Back"));
  await offer.waitFor({ state: "detached" });
  assert.equal(decisions.length, 0);
  checked("the grants are shown as sentences and as rules, and looking at them decides nothing");

  await press(bob, always);
  await offer.waitFor();
  await press(bob, button(mail, "Approve, and grant this"));
  await notice(bob, "send_mail: approved.").waitFor();
  assert.equal(decisions.length, 1);
  await waiting(bob, 3);
  await host("look");
  checked("one click approves this call and makes the grant, and the equal call that was pending stays");

  await host("again");
  await page.reload();
  await page.getByText("Deciding as bob").waitFor();
  await waiting(bob, 3);
  await decided(bob, "send_mail", "approved by grant ", " of bob");
  checked("a later equal call is not pending, and the history says whose grant has answered it");
  bob.quiet();
});
