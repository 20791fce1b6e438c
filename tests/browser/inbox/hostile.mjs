// Arguments that try to be more than text: markup, scripts, escapes, characters that hide or turn others around.

import assert from "node:assert/strict";

import { checked, scenario } from "../lib/harness.mjs";
import { button, card, change, comeIn, decided, deny, elsewhere, waiting } from "../lib/inbox.mjs";

const NASTY = [
  "<script>window.pwned = 1; alert(1)</script>",
  '<img src=x onerror="window.pwned = 2">',
  '"><svg onload=window.pwned=3>',
  "javascript:window.pwned=4",
  "{{constructor.constructor('window.pwned=5')()}}",
  "safe\u202Egpj.exe\u2066x\u2069",
  "zero\u200Bwidth\u2060join\u00AD\uFEFF",
  "\u001B[2J\u001B[31mred\u0007\u009B1m",
  "line one\nline two\r\n\u2028line three",
  `${" ".repeat(300)}rm -rf ~`,
  "'; DROP TABLE countersign_rows; --",
];
/** What must never reach a page as it is. */
const HIDDEN = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u200B-\u200F\u2028-\u202E\u2060-\u2069\uFEFF]/;

async function harmless(person, where) {
  const found = await person.page.evaluate(() => ({
    text: document.body.textContent,
    pwned: window.pwned,
    foreign: document.querySelectorAll("main script, main img, main svg, main iframe, main a:not(#login-link, #export), main [onerror], main [onload], main [style]").length,
  }));
  assert.equal(found.pwned, undefined, where);
  assert.equal(found.foreign, 0, where);
  assert.ok(!HIDDEN.test(found.text), `${where}: ${JSON.stringify(found.text.match(HIDDEN)?.[0])}`);
  checked(`${where}: no markup, no script, nothing hidden`);
}

await scenario(async ({ url, person }) => {
  const ann = await elsewhere(url, "ann");
  const bob = await comeIn(await person("bob"));
  for (const [n, path] of NASTY.entries()) {
    const args = JSON.stringify({ path, ...(n === 0 && { '<b onclick="window.pwned=6">name</b>\u202E': 1 }) });
    await ann.start(`send_report ${JSON.stringify({ to: path })}`);
    if (n === 0) await ann.start(`cleaner ${JSON.stringify({ prompt: `delete_file ${JSON.stringify({ path })}` })}\ndelete_file ${args}`);
  }
  await waiting(bob, NASTY.length + 1);
  const text = await bob.page.locator("#cards").innerText();
  for (const part of ["<script>window.pwned = 1; alert(1)</script>", "\\u{202e}", "\\u{200b}", "\\u{1b}[2J", "\\{300 spaces}", "'; DROP TABLE"]) {
    assert.ok(text.includes(part), `${part} in ${text}`);
  }
  await harmless(bob, "the pending calls");

  for (const summary of await bob.page.locator("details.details > summary").all()) await summary.click();
  for (const summary of await bob.page.getByText("As JSON, with nothing masked").all()) await summary.click();
  await bob.page.locator("pre .text").nth(NASTY.length).waitFor();
  const json = await bob.page.locator("pre").allInnerTexts();
  assert.ok(json.some((it) => it.includes("\\u202e")) && json.some((it) => it.includes("\\u001b")));
  await harmless(bob, "the exact JSON");

  const { it, field } = await change(bob, "send_report", "\\u{202e}");
  const typed = await field.inputValue();
  assert.ok(!HIDDEN.test(typed.replaceAll("\n", "")), JSON.stringify(typed));
  assert.equal(JSON.parse(typed).to, NASTY[5], "the editor has the same arguments");
  await button(it, "Back").click();

  await deny(bob, "send_report", `<img src=x onerror="window.pwned=7">\u202Eno\u200B`, "DROP TABLE");
  await decided(bob, "denied", '<img src=x onerror="window.pwned=7">\\u{202e}no\\u{200b}');
  for (const path of ["<script>", "\\u{202e}", "\\u{1b}", "line one", "\\{300 spaces}"]) {
    await button(card(bob, "send_report", path), /^Approve send_report/).click();
    await decided(bob, "ran", "send_report", path);
  }
  await harmless(bob, "the decisions, and the results of the tools");

  // The policy of the page holds even if a text were to become markup.
  const blocked = await bob.page.evaluate(() => {
    const tried = [];
    try {
      document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.pwned=8'>");
    } catch (error) {
      tried.push(error.name);
    }
    return tried;
  });
  assert.deepEqual(blocked, ["TypeError"], "trusted types refuse markup made of text");
  await harmless(bob, "after an attempt to make markup");
  bob.quiet(/TrustedHTML|trusted-types/i);
});
