// The inbox of the example `approvals`, as people use it.

import assert from "node:assert/strict";

import { eventually } from "./harness.mjs";

/** Logs in. */
export async function comeIn(person) {
  const { page, name, url } = person;
  await page.goto(url);
  await page.getByLabel("Your name").fill(name);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("Deciding as").waitFor();
  return person;
}

/** Starts a run on the page of the demo, and returns to the inbox. */
export async function startRun(person, prompt) {
  const { page } = person;
  await page.getByRole("link", { name: "Start a demo run" }).click();
  const field = page.getByLabel("The calls of the scripted agent");
  await page.waitForFunction(() => document.getElementById("prompt").value !== "");
  if (prompt) await field.fill(prompt);
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("Deciding as").waitFor();
}

/** The request about this tool; among several the one whose text has this in it. */
export function card(person, tool, text = "") {
  const title = person.page.getByRole("heading", { name: tool, exact: true });
  return person.page.locator("article").filter({ has: title }).filter({ hasText: text });
}

export const button = (within, name) => within.getByRole("button", { name });

/** Presses a button as a person does: again, as long as the page says that the press did not count (rule S3). */
export async function press(person, control) {
  const early = person.page.locator("#early");
  do {
    await early.evaluate((it) => (it.textContent = ""));
    await control.click();
  } while ((await early.textContent()) !== "");
}

export async function approve(person, tool, text) {
  await press(person, button(card(person, tool, text), /^Approve /));
}

export async function deny(person, tool, message, text) {
  const it = card(person, tool, text);
  await press(person, button(it, /^Deny /));
  await it.getByLabel("What the agent is told").fill(message);
  await press(person, button(it, /^Deny$/));
}

/** Scrolls each text of a call to its last row, as Approve wants it. */
export async function readWhole(it) {
  for (const end of await it.locator(".box > .end:visible, .box > .end").all()) {
    if (await end.evaluate((mark) => mark.checkVisibility())) await end.evaluate((mark) => mark.scrollIntoView({ block: "end" }));
  }
}

/** What stands behind "Details". */
export async function details(it) {
  await it.locator("details.details > summary").click();
  return it.locator("details.details");
}

/** Opens the editor with the arguments of the call. */
export async function change(person, tool, text) {
  const it = card(person, tool, text);
  await press(person, button(it, /^Change /));
  const field = it.getByLabel("What will run instead");
  // The page loads the whole arguments before it opens the editor.
  await field.waitFor();
  return { it, field, approve: button(it, "Approve these arguments") };
}

/** The notices above the inbox. */
export const notice = (person, text) => person.page.locator(".notice").filter({ hasText: text });

/** Waits until a decided request reads like this. */
export async function decided(person, ...texts) {
  const items = person.page.locator("#history li");
  const tab = (name) => person.page.getByRole("button", { name });
  await tab("Decided").click();
  await eventually(`${person.name} sees in the history: ${texts.join(", ")}`, async () => {
    const all = await items.allInnerTexts();
    assert.ok(all.some((item) => texts.every((text) => item.includes(text))), all.join(" | "));
  });
  await tab(/^Pending/).click();
}

/** Waits until so many cards are shown, and shows what is new. */
export async function waiting(person, many) {
  const { page } = person;
  await eventually(`${person.name} sees ${many} waiting`, async () => {
    const fresh = page.locator("#new");
    if (await fresh.isVisible()) await fresh.click({ timeout: 1000 });
    assert.equal(await page.locator("article").count(), many);
  });
}

/** Waits until the control with the focus is armed. */
export async function settled(person) {
  await person.page.waitForFunction(() => document.activeElement.getAttribute("aria-disabled") === null);
}

/** The requests to decide that this person's page has sent, from now on. */
export function sent(person) {
  const all = [];
  person.page.on("request", (request) => {
    if (/\/decisions?$/.test(request.url())) all.push(request.postDataJSON());
  });
  return all;
}

/** The middle of an element, for a mouse that goes there whatever is there. */
export async function middle(locator) {
  const { x, y, width, height } = await locator.boundingBox();
  return [x + width / 2, y + height / 2];
}

/** Stops the updates of the page, as a connection that hangs would. */
export async function freeze(person) {
  const { page } = person;
  const asks = await page.evaluate(async () => (await fetch("/api/asks")).text());
  const json = { contentType: "application/json" };
  await page.route("**/api/states", (route) => route.fulfill({ ...json, body: '{"changed": []}' }));
  await page.route("**/api/changes", () => {});
  await page.route(/\/api\/asks(\?.*)?$/, (route) => route.fulfill({ ...json, body: asks }));
}

/** A person without a browser. */
export async function elsewhere(url, name) {
  const headers = { "Content-Type": "application/json" };
  const post = (path, body) => fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  const login = await post("/api/login", { name });
  assert.equal(login.status, 200);
  headers.Cookie = login.headers.get("set-cookie").split(";")[0];
  const get = async (path) => (await fetch(url + path, { headers })).json();
  const asks = async () => (await get("/api/asks")).asks;
  return {
    get,
    asks,
    start: async (prompt) => assert.equal((await post("/api/runs", { prompt })).status, 201),
    decide: async (tool, body, about) => {
      const ask = about ?? (await asks()).find((ask) => ask.view.tool === tool);
      const decided = await post(`/api/asks/${ask.id}/decision`, { fingerprint: ask.fingerprint, ...body });
      return { status: decided.status, body: await decided.json() };
    },
  };
}
