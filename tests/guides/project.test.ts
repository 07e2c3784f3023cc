// The page "A project in ten minutes": its commands, its excerpts, and the sample in Chromium.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import {
  anyPort,
  find,
  findStarted,
  makeFolder,
  parseEnv,
  run,
  type Started,
} from "@platform/testing/platform-process";
import { findProgram } from "../stage/program.ts";
import { readBlocks } from "./page.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const isMissing =
  findProgram("curl") === undefined && process.env["PLATFORM_TEST_PEERS"] !== "required";
const skip = isMissing ? "curl is not installed" : chromiumSkip;
const WAIT_MS = 120_000;

const blocks = readBlocks("project.md");
const shell = blocks.filter(({ language }) => language === "sh").map(({ text }) => text);
const [checkAndTest, start, joinPlatform, addUser, look, readInbox, edit] = shell;
const folder = realpathSync(makeFolder());
const project = join(folder, "notes");
const state = { XDG_STATE_HOME: join(folder, "state") };
let platform: ReturnType<typeof run>;
let up: ReturnType<typeof run>;
let started: Started;
let browser: Browser;
let origin: string;

before(async () => {
  if (chromiumSkip !== false) return;
  type(checkAndTest, folder);
  assert.equal(start, "mkdir -p ../platform && cd ../platform && platform up\n");
  mkdirSync(join(folder, "platform"));
  platform = run(["up", "--json", ...anyPort], state, "", join(folder, "platform"));
  started = await platform.waitFor(findStarted);
  assert.equal(joinPlatform, "platform up\n");
  up = run(["up", "--json"], state, "", project);
  await up.waitFor((text) => (text.includes('{"type":"joined"') ? true : undefined));
  origin = `http://notes.localhost:${new URL(find(started, "gate").url).port}`;
  browser = await startChromium();
});
after(async () => {
  if (chromiumSkip !== false) return;
  await browser.close();
  for (const { child, exit } of [up, platform]) {
    child.kill("SIGTERM");
    await exit;
  }
});

/** Runs a block in bash; returns its output. */
function type(block: string | undefined, cwd = project): string {
  assert.ok(block !== undefined, "the page has fewer blocks");
  const mail = started === undefined ? "8094" : new URL(find(started, "notify").url).port;
  const prelude = 'set -eu\nplatform() { node "$REPOSITORY/bin/platform.js" "$@"; }\n';
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(
    "bash",
    ["-c", prelude + block.replace("8094", mail)],
    {
      cwd,
      env: { ...env, ...state, PATH: `${dirname(process.execPath)}:${env["PATH"]}`, REPOSITORY },
      encoding: "utf8",
    },
  );
  assert.equal(status, 0, `${block}\n${stdout}\n${stderr}`);
  return stdout;
}

async function signIn(page: Page, password: string): Promise<void> {
  page.setDefaultTimeout(WAIT_MS);
  await page.goto(origin);
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.getByLabel("Username").first().fill("ada");
  await page.getByLabel("Password").first().fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  const allow = page.getByRole("button", { name: "Allow", exact: true });
  const back = page.waitForURL(`${origin}/`);
  await Promise.race([back, allow.waitFor().then(() => allow.click())]);
  await back;
  await page.locator("#live:not([hidden])").waitFor();
}

test("the excerpts of the page are lines of the sample", () => {
  // Indentation differs.
  const dedent = (text: string): string => text.replaceAll(/^ +/gm, "");
  const source = dedent(readFileSync(join(REPOSITORY, "examples/notes/main.service.ts"), "utf8"));
  const excerpts = blocks.filter(({ language }) => language === "ts");
  assert.equal(excerpts.length, 6);
  for (const { text } of excerpts) assert.ok(source.includes(dedent(text)), text);
});

test("the test of the page passes", { skip }, () => {
  const [code] = blocks.filter(({ language }) => language === "js");
  writeFileSync(join(project, "hello.test.ts"), code!.text);
  assert.match(type("platform test hello.test.ts"), /pass 1$/m);
});

test(
  "a user signs in, writes, uploads, sees it live in a second window, and gets the mail",
  { skip },
  async (t) => {
    assert.equal(shell.length, 7);
    type(addUser);
    const { PLATFORM_PASSWORD: password = "" } = parseEnv(
      readFileSync(join(project, "ada.env"), "utf8"),
    );
    const context = await browser.newContext();
    t.after(() => context.close());
    const first = await context.newPage();
    const problems: string[] = [];
    first.on("console", (message) => {
      if (message.type() === "error" && !message.text().includes("401"))
        problems.push(message.text());
    });
    await signIn(first, password);
    const second = await context.newPage();
    second.setDefaultTimeout(WAIT_MS);
    await second.goto(origin);
    await second.locator("#live:not([hidden])").waitFor();

    await first.getByLabel("New note").fill("Water the plants");
    const file = { name: "plan é.txt", mimeType: "text/plain", buffer: Buffer.from("every day") };
    await first.getByLabel("File").setInputFiles(file);
    await first.getByLabel("Remind me").fill("2020-01-01T08:00");
    await first.getByRole("button", { name: "Add note" }).click();
    const seen = second.locator("#notes li", { hasText: "Water the plants" });
    await seen.waitFor();
    assert.equal(await first.locator("#notes li").count(), 1);

    const download = second.waitForEvent("download");
    await seen.getByRole("link", { name: "plan é.txt" }).click();
    const saved = join(mkdtempSync(join(folder, "saved-")), "file");
    await (await download).saveAs(saved);
    assert.equal(readFileSync(saved, "utf8"), "every day");
    assert.equal((await download).suggestedFilename(), "plan é.txt");

    const endsMs = performance.now() + WAIT_MS;
    for (;;) {
      const inbox = type(readInbox);
      const count = inbox.split("Reminder: Water the plants").length - 1;
      if (count > 0) {
        assert.ok(inbox.includes("ada@example.com"), inbox);
        break;
      }
      assert.ok(performance.now() < endsMs, inbox);
    }

    await second.getByRole("button", { name: "Delete Water the plants" }).click();
    await first.locator("#notes li").waitFor({ state: "detached" });
    assert.deepEqual(problems, []);
    await first.getByRole("button", { name: "Sign out" }).click();
    await first.getByRole("link", { name: "Sign in" }).waitFor();
  },
);

test("an edit is served without a restart", { skip }, async () => {
  assert.match(type(look), /^notes +up /m);
  type(edit);
  await up.waitFor((text) => (text.includes('"msg":"platform: reloaded') ? true : undefined));
  assert.match(readFileSync(join(project, "main.service.ts"), "utf8"), /LIST_MAX = 50/);
  writeFileSync(join(project, "main.service.ts"), "export route FETCH / { }\n");
  await up.waitFor((text) => (text.includes("the running version stays") ? true : undefined));
  assert.match(type(look), /^notes +up /m);
});
