// The inbox of the program: the secret is exchanged for a session, and is in no address from then on.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import { checked, eventually, host, scenario } from "../lib/harness.mjs";

await scenario(async ({ url, others: [file, deploy], person }) => {
  const secret = () => readFileSync(file, "utf8").trim();
  const ann = await person("ann");
  const { page } = ann;
  const requests = [];
  page.on("request", (request) => requests.push(request));

  await page.goto(url);
  await page.getByText("You are not logged in").waitFor();
  assert.equal(await page.getByText("send_report").count(), 0);
  checked("without the secret there is nothing to see");

  await page.goto("about:blank");
  await page.goto(`${url}#secret=${secret()}`);
  await page.getByText("Deciding as").waitFor();
  assert.equal(page.url(), url, "the secret has left the address");
  const sent = await Promise.all(requests.map(async (request) => [request.url(), JSON.stringify(await request.allHeaders())]));
  assert.ok(!sent.flat().some((text) => text.includes(secret())), "no request line and no header has it");
  assert.equal(requests.filter((request) => request.postData()?.includes(secret())).length, 1, "one body has it");
  checked("the secret is sent once, in a body");
  const [cookie] = await page.context().cookies();
  assert.ok(cookie.httpOnly && cookie.sameSite === "Strict" && !cookie.value.includes(secret()));
  assert.equal(await page.evaluate(() => document.cookie), "", "no script reads the cookie");
  assert.ok(!JSON.stringify(await page.evaluate(() => ({ ...localStorage }))).includes(secret()), "the browser does not keep it");
  await page.reload();
  await page.getByText("Deciding as").waitFor();
  checked("a reload is still logged in");

  // Cookies do not know ports: a server of another user at this host is sent the cookie by a link to it.
  let stolen = "";
  const other = createServer((request, reply) => {
    stolen = request.headers.cookie ?? stolen;
    reply.setHeader("Content-Type", "text/html");
    reply.end("<h1>another user's page</h1>");
  });
  await new Promise((done) => other.listen(0, "127.0.0.1", done));
  other.unref();
  const thief = await page.context().newPage();
  await thief.goto(`http://127.0.0.1:${other.address().port}/`);
  await thief.getByText("another user's page").waitFor();
  assert.ok(stolen.includes(cookie.value), "the browser has sent it");
  const replayed = await fetch(`${url}api/asks`, { headers: { Cookie: stolen } });
  assert.equal(replayed.status, 401);
  checked("a cookie that a server at another port was sent opens nothing");
  const tried = await thief.evaluate(async ([url, guess]) => {
    const tries = [
      () => fetch(`${url}api/asks`, { credentials: "include" }),
      () => fetch(`${url}api/session`, { method: "POST", credentials: "include", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ secret: guess }) }),
    ];
    const read = tries.map((one) => one().then((reply) => reply.text(), () => "refused"));
    const blind = await fetch(`${url}api/session`, { method: "POST", mode: "no-cors", credentials: "include", body: JSON.stringify({ secret: guess }) }).then((reply) => reply.type, () => "refused");
    return [...await Promise.all(read), blind];
  }, [url, secret()]);
  assert.deepEqual(tried, ["refused", "refused", "refused"]);
  await thief.setContent(`<iframe src="${url}"></iframe>`);
  await thief.waitForTimeout(500);
  assert.equal(await thief.frames()[1].locator("#tabs").count().catch(() => 0), 0, "no page frames the inbox");
  await thief.close();
  checked("a page of another origin reads, exchanges and frames nothing");

  // An ask by its address, in a new tab, among more than are shown as cards.
  const linked = await page.context().newPage();
  await linked.goto(`${url}#ask=${deploy}`);
  const card = linked.locator(`article[data-ask="${deploy}"]`);
  await card.getByRole("button", { name: /^Approve / }).waitFor();
  assert.ok(await card.evaluate((it) => it.contains(document.activeElement)), "it has the focus");
  checked("an ask has an address, which opens it");
  await linked.goto(`${url}#ask=no-such-ask`);
  await linked.getByText("The request of this address:").waitFor();
  await linked.close();

  // Rows of sub-agents say what the call is, and the current one is visible.
  const row = page.locator(`article[data-ask="${deploy}"]`);
  await row.waitFor();
  assert.equal(await row.locator("h3").textContent(), "deploy");
  assert.equal(await row.locator(".line").textContent(), '(environment: "staging")');
  await page.getByLabel("Compact").uncheck();
  await eventually("cards", async () => assert.equal(await page.locator("article.row-card").count(), 0));
  await page.keyboard.press("Escape");
  await page.locator("body").click({ position: { x: 5, y: 300 } });
  await page.keyboard.press("j");
  const ring = await page.evaluate(() => {
    const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement.closest("article"));
    return `${outlineStyle} ${outlineWidth}`;
  });
  assert.equal(ring, "solid 2px");
  checked("the call that keys are for is visible");

  // S6: "more than 10 are approved together only once their number is typed, … and equal ones".
  const equal = page.locator("article").filter({ hasText: "12 equal calls" });
  const all = equal.getByRole("button", { name: /^Approve all 12/ });
  await all.scrollIntoViewIfNeeded();
  await page.waitForTimeout(800);
  await all.click();
  const act = equal.getByRole("button", { name: "Approve these 12" });
  assert.ok(await act.isDisabled(), "one click approves none of them");
  await equal.getByLabel("Type 12 to confirm").fill("12");
  await page.waitForTimeout(800);
  await act.click();
  await page.locator(".notice").filter({ hasText: "12 approved" }).waitFor();
  checked("many equal calls are approved once their number is typed");

  await page.getByRole("button", { name: "Decided" }).click();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Export" }).click()]);
  const text = readFileSync(await download.path(), "utf8");
  assert.ok(text.includes("send_report") && !text.includes(secret()));
  await page.getByRole("button", { name: /^Pending/ }).click();
  checked("the log is exported");

  await host("restart");
  await eventually("a page continues after a restart", async () => {
    assert.equal(await page.locator("#away").isVisible(), false);
    assert.equal(await page.locator("#live").innerText(), "Live");
    assert.ok(await page.getByText("Deciding as").isVisible());
  });

  // S5: "Unfinished text survives …", also that of a denial of many.
  const deny = async () => {
    const chosen = page.locator("article").filter({ hasText: "send_report" });
    for (const n of [0, 1]) await chosen.nth(n).getByRole("checkbox").check();
    await page.waitForTimeout(800);
    await page.locator("#bulk").getByRole("button", { name: "Deny …" }).click();
    return page.getByLabel("What the agents are told");
  };
  await (await deny()).fill("not this wee");
  const old = secret();
  await host("new-secret");
  await page.getByText("You are not logged in").waitFor();
  assert.notEqual(secret(), old);
  assert.ok(!(await page.locator("body").innerText()).includes("send_report"));
  checked("a new secret logs out a page that was open");
  const field = page.getByLabel("The secret of this inbox");
  await field.fill(old);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("not the secret of the inbox").waitFor();
  await field.fill(secret());
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("Deciding as").waitFor();
  checked("the new one can be entered");
  assert.equal(await (await deny()).inputValue(), "not this wee");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  checked("what was written about many calls survives the login");
  await page.goto(`${url}#secret=0123456789abcdef0123456789abcdef`);
  await page.locator(".notice").filter({ hasText: "not the secret of the inbox" }).waitFor();
  assert.ok(await page.getByText("Deciding as").isVisible());
  assert.equal(page.url(), url);
  checked("a link with a wrong secret leaves the session as it is");

  await page.setViewportSize({ width: 380, height: 800 });
  await page.goto(`${url}#ask=${deploy}`);
  assert.equal(await page.getByRole("heading", { level: 1 }).count(), 1);
  assert.ok(await page.getByText("Deciding as").isVisible() && await page.locator("#live").isVisible());
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than the screen");
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/phone.png` });
  const yes = card.page() === page ? card : page.locator(`article[data-ask="${deploy}"]`);
  await page.waitForTimeout(1000);
  await yes.getByRole("button", { name: /^Approve / }).click();
  await page.locator(".notice").filter({ hasText: "approved" }).waitFor();
  checked("a call is approved from a phone");
  other.close();
  ann.quiet(/status of 40[134]/, /ERR_CONNECTION|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|Failed to fetch/);
});
