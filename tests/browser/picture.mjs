// Makes docs/images/deny.gif, the moving picture of the README: a coding agent wants to run `git push --force`, the inbox shows
// it on a phone, a person denies it with a reason, and the agent is told. The hook, the store and the inbox are the program's,
// and the page is in a real browser; only the words of the agent around its call are written here, as no model is asked.
//
//     cargo build -p countersign-cli && .ci/browser && node tests/browser/picture.mjs [FOLDER for the single frames]
//
// The programs see a home folder `/srv/ann`, so that the picture shows no folder of this machine: `unshare` of util-linux makes a
// view of the files in which a temporary folder stands there.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chromium } from "playwright-core";
import gifenc from "gifenc";
import { PNG } from "pngjs";

const PROGRAM = process.env.COUNTERSIGN ?? new URL("../../target/debug/countersign", import.meta.url).pathname;
const PICTURE = new URL("../../docs/images/deny.gif", import.meta.url).pathname;
const BROWSER = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/google-chrome"].find((it) => it && existsSync(it));
const REASON = "Never force-push main. Push a branch, and open a pull request.";
const PHONE = { width: 380, height: 620 };
const STAGE = { width: 980, height: 660 };

const RULES = `version = 1

[[rule]]
id = "force"
ask = "shell"
where.command.runs = ["git push --force", "git push -f"]
reason = "rewrites a branch that others use"
`;

/** The folder that the programs see as `/srv`. The program is in it, as that of this checkout may be below the real one. */
const top = mkdtempSync(join(tmpdir(), "picture-"));
copyFileSync(PROGRAM, join(top, "countersign"));
mkdirSync(join(top, "ann/shop"), { recursive: true });
mkdirSync(join(top, "ann/.config/countersign"), { recursive: true });
writeFileSync(join(top, "ann/.config/countersign/rules.toml"), RULES);
const home = "/srv/ann";
const project = `${home}/shop`;
// Nothing else of the environment is the agent's.
const env = { PATH: "/usr/bin:/bin", HOME: home };

/** Starts the program with this folder as `/srv`. */
function start(args, more) {
  const within = ["-rm", "sh", "-c", 'mount --bind "$0" /srv && cd /srv/ann/shop && exec /srv/countersign "$@"', top];
  return spawn("unshare", [...within, ...args], { env: { ...env, CLAUDE_PROJECT_DIR: project }, ...more });
}

/** The first line that a program prints. */
function firstLine(child) {
  return new Promise((done) => {
    let text = "";
    child.stdout.on("data", (data) => {
      text += data;
      if (text.includes("\n")) done(text.split("\n")[0].trim());
    });
  });
}

/** The call of the agent, which ends once a person has decided. */
function hook() {
  const child = start(["hook", "claude", "--home", home, "--principal", "ann", "--rules", `${home}/.config/countersign/rules.toml`]);
  const ended = new Promise((done) => {
    let out = "";
    child.stdout.on("data", (data) => (out += data));
    child.stderr.on("data", (data) => process.stderr.write(data));
    child.on("close", () => done(out));
  });
  child.stdin.end(JSON.stringify({
    session_id: "8d1f0c9e-5a3e-4a53-9d0f-2f8a1e0c7b11",
    transcript_path: join(home, ".claude/projects/shop/8d1f.jsonl"),
    cwd: project,
    permission_mode: "default",
    hook_event_name: "PreToolUse",
    tool_name: "Bash",
    tool_input: { command: "git push --force origin main", description: "Push the rewritten history" },
    tool_use_id: "toolu_01A09q90qw90lq917835lq9",
  }));
  return ended;
}

/** The terminal of the agent on the left, the phone on the right. */
function stage(lines, phone) {
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const rows = lines.map(([kind, text]) => `<p class="${kind}">${escaped(text)}</p>`).join("");
  const screen = phone ? `<img src="data:image/png;base64,${phone.toString("base64")}">` : `<div class="off"></div>`;
  return `<!doctype html><style>
    * { margin: 0; box-sizing: border-box }
    body { background: #d9dee5; width: ${STAGE.width}px; height: ${STAGE.height}px; padding: 20px; display: flex; gap: 24px;
      font: 15px/1.5 ui-monospace, "DejaVu Sans Mono", monospace }
    .terminal { flex: 1; background: #14181d; color: #dfe5ec; border-radius: 10px; padding: 18px 20px }
    p { margin-bottom: 12px; white-space: pre-wrap }
    .user { color: #8fc7ff } .call { color: #f2c76e } .wait { color: #8a94a0 } .no { color: #ff8f8f }
    .phone { width: ${PHONE.width + 16}px; border: 8px solid #14181d; border-radius: 22px; overflow: hidden; background: #fff }
    img, .off { display: block; width: ${PHONE.width}px; height: ${PHONE.height - 16}px; object-fit: cover; object-position: top }
    .off { background: #2a3038 }
  </style><div class="terminal">${rows}</div><div class="phone">${screen}</div>`;
}

class Film {
  constructor(page) {
    this.page = page;
    this.frames = [];
  }

  /** Adds a picture that is shown for so many milliseconds. */
  async take(milliseconds, lines, phone) {
    await this.page.setContent(stage(lines, phone));
    const data = await this.page.screenshot();
    this.frames.push({ milliseconds, data });
  }

  write(path, folder) {
    const gif = gifenc.GIFEncoder();
    const images = this.frames.map(({ data }) => PNG.sync.read(data));
    // One palette for all, so that nothing flickers.
    const all = Buffer.concat(images.map((image) => image.data));
    const palette = gifenc.quantize(all, 128);
    for (const [at, image] of images.entries()) {
      const pixels = gifenc.applyPalette(image.data, palette);
      gif.writeFrame(pixels, image.width, image.height, { palette, delay: this.frames[at].milliseconds });
      if (folder) writeFileSync(join(folder, `frame-${String(at).padStart(2, "0")}.png`), this.frames[at].data);
    }
    gif.finish();
    writeFileSync(path, gif.bytes());
    const seconds = this.frames.reduce((sum, frame) => sum + frame.milliseconds, 0) / 1000;
    console.log(`${path}: ${images.length} frames, ${seconds} seconds, ${gif.bytes().length} bytes`);
  }
}

const inbox = start(["inbox", "--principal", "ann"], { stdio: ["ignore", "pipe", "inherit"] });
const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--disable-gpu"] });
try {
  const url = await firstLine(inbox);
  const secret = readFileSync(join(top, "ann/.local/state/countersign/inbox.secret"), "utf8").trim();
  const phone = await (await browser.newContext({ viewport: { width: PHONE.width, height: PHONE.height - 16 } })).newPage();
  const film = new Film(await (await browser.newContext({ viewport: STAGE })).newPage());
  const shot = () => phone.screenshot();

  await phone.goto(`${url}#secret=${secret}`);
  await phone.getByText("Deciding as").waitFor({ state: "attached" });
  await phone.waitForTimeout(500);
  const idle = await shot();
  const said = [["user", "> Clean up the last ten commits and push them."]];
  await film.take(900, said, idle);
  said.push(["", "● I squashed them. The branch has diverged, so I push with --force."]);
  await film.take(1100, said, idle);
  const reply = hook();
  said.push(["call", "● Bash(git push --force origin main)"], ["wait", "  └ waiting for an answer …"]);
  await phone.getByText("git push --force").first().waitFor();
  // A button works only once it has been on the screen for a moment.
  await phone.waitForTimeout(1000);
  await film.take(2200, said, await shot());

  await phone.getByRole("button", { name: /^Deny/ }).first().click();
  const field = phone.getByLabel("What the agent is told");
  await field.waitFor();
  await film.take(600, said, await shot());
  for (const part of [0.35, 0.7, 1]) {
    await field.fill(REASON.slice(0, Math.ceil(REASON.length * part)));
    // At the end the button works again.
    if (part === 1) await phone.waitForTimeout(1000);
    await film.take(part < 1 ? 350 : 1000, said, await shot());
  }
  await phone.getByRole("button", { name: /^Deny$/ }).last().click();
  const told = JSON.parse(await reply).hookSpecificOutput;
  assert.equal(told.permissionDecision, "deny");
  assert.ok(told.permissionDecisionReason.includes(REASON), told.permissionDecisionReason);
  await phone.waitForTimeout(500);
  const after = await shot();
  said.splice(3, 1, ["no", `  └ Denied: ${told.permissionDecisionReason}`]);
  await film.take(1900, said, after);
  said.push(["", "● Understood. I push to `squashed-history` and open a pull request instead of rewriting main."]);
  await film.take(2600, said, after);

  const [folder] = process.argv.slice(2);
  if (folder) mkdirSync(folder, { recursive: true });
  film.write(PICTURE, folder);
} finally {
  await browser.close();
  inbox.kill();
  rmSync(top, { recursive: true, force: true });
}
