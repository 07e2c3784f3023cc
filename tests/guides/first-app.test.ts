// The page "Build an app in ten minutes": its blocks run as they are, but for the ports.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
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
} from "@platform/testing/platform-process";
import { findProgram } from "../stage/program.ts";
import { findFreePort } from "../stage/process.ts";
import { readBlocks } from "./page.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const missing = ["curl", "jq"].find((name) => findProgram(name) === undefined);
const skip =
  missing === undefined || process.env["PLATFORM_TEST_PEERS"] === "required"
    ? chromiumSkip
    : `${missing} is not installed`;

const folder = makeFolder();
const blocks = readBlocks("first-app.md");
const shell = blocks.filter(({ language }) => language === "sh").map(({ text }) => text);
const [start, register, runApp, listBucket, addRoute, useRoute, publish] = shell;
let up: ReturnType<typeof run>;
let app: ReturnType<typeof spawn> | undefined;
let browser: Browser;
let ports: [fixed: string, actual: string][];
let appUrl: string;

before(async () => {
  if (chromiumSkip !== false) return;
  up = run(["up", "--json", "--data", join(folder, "data"), ...anyPort]);
  const started = await up.waitFor(findStarted);
  const portOf = (name: string): string => new URL(find(started, name).url).port;
  const appPort = String(await findFreePort());
  appUrl = `http://localhost:${appPort}`;
  ports = [
    ["3000", appPort],
    ["8080", portOf("gate")],
    ["8086", portOf("auth")],
    ["9000", portOf("vault")],
  ];
  browser = await startChromium();
});
after(async () => {
  if (chromiumSkip !== false) return;
  app?.kill("SIGKILL");
  await browser.close();
  up.child.kill("SIGTERM");
  await up.exit;
});

function localize(text: string): string {
  return ports.reduce((found, [fixed, actual]) => found.replaceAll(fixed, actual), text);
}

// The script of a clone runs the program of this repository.
const environment = {
  ...process.env,
  PATH: `${dirname(process.execPath)}:${process.env["PATH"]}`,
  PLATFORM_PROGRAM: join(REPOSITORY, "bin/platform.js"),
};
const PRELUDE = "set -eu\n";

/** Runs a block in bash, in the folder of the reader; returns its output. */
function type(block: string | undefined): string {
  assert.ok(block !== undefined, "the page has fewer blocks");
  const script = PRELUDE + localize(block).replaceAll("./platform ", 'node "$PLATFORM_PROGRAM" ');
  const { status, stdout, stderr } = spawnSync("bash", ["-c", script], {
    cwd: folder,
    env: environment,
    encoding: "utf8",
  });
  assert.equal(status, 0, `${script}\n${stdout}\n${stderr}\n${up.output().out}`);
  return stdout;
}

async function signIn(page: Page): Promise<void> {
  const { PLATFORM_USER: user = "", PLATFORM_PASSWORD: password = "" } = parseEnv(
    type("cat ada.env"),
  );
  await page.goto(appUrl);
  await page.getByLabel("Username").first().fill(user);
  await page.getByLabel("Password").first().fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  const allow = page.getByRole("button", { name: "Allow", exact: true });
  const back = page.waitForURL(`${appUrl}/`);
  await Promise.race([back, allow.waitFor().then(() => allow.click())]);
  await back;
  assert.equal(await page.locator("#user").textContent(), "Signed in as ada");
  await page.locator("body[data-live=yes]").waitFor();
}

test("the application of the page works as the page says", { skip }, async (t) => {
  assert.equal(start, "npm ci && npm start\n");
  assert.equal(shell.length, 7);
  type(register);
  const code = blocks.filter(({ language }) => language === "js");
  assert.equal(code.length, 1);
  writeFileSync(join(folder, "notes.mjs"), localize(code[0]!.text));
  assert.match(runApp ?? "", /^node \S+ notes\.mjs &\n$/);
  app = spawn("bash", ["-c", `exec ${localize(runApp!).replace(/ &\n$/, "")}`], {
    cwd: folder,
    env: environment,
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((resolve) => app!.stdout!.once("data", resolve));

  const context = await browser.newContext({ locale: "en" });
  const page = await context.newPage();
  const second = await context.newPage();

  await t.test(
    "a user signs in, adds a note with a file, and sees it in both windows",
    async () => {
      await signIn(page);
      await second.goto(appUrl);
      await second.locator("body[data-live=yes]").waitFor();
      await page.getByPlaceholder("A note").fill("hello <b>");
      await page.locator("input[type=file]").setInputFiles({
        name: "it's (1).txt",
        mimeType: "text/plain",
        buffer: Buffer.from("file"),
      });
      await page.getByRole("button", { name: "Add" }).click();
      for (const window of [page, second]) {
        const item = window.locator("li");
        await item.waitFor();
        assert.equal(await item.textContent(), "ada: hello <b> (it's (1).txt)");
      }
      assert.match(type(listBucket), /<Key>it(?:'|&#39;|&apos;)s \(1\)\.txt<\/Key>/);
    },
  );

  await t.test("the route is refused without a token, and carries the user with one", async () => {
    type(addRoute);
    const [status, body = ""] = type(useRoute).split("\n");
    assert.equal(status, "401");
    const answer = JSON.parse(body) as { for: string; notes: { text: string }[] };
    assert.ok(answer.for.length > 0);
    assert.deepEqual(
      answer.notes.map(({ text }) => text),
      ["hello <b>"],
    );
  });

  await t.test("a program publishes, and open pages show it", async () => {
    type(publish);
    const item = second.locator("li").nth(1);
    await item.waitFor();
    assert.equal(await item.textContent(), "cron: backup done");
  });

  await t.test("after app remove, presigned URLs are refused", async () => {
    const answer = await page.request.get(`${appUrl}/upload?name=x`);
    const { url } = (await answer.json()) as { url: string };
    assert.equal((await page.request.put(url, { data: "x" })).status(), 200);
    type("./platform app remove notes\n");
    // Which of these depends on what storage has heard of first: the role, the client or the session.
    const refused = await page.request.put(url, { data: "y" });
    assert.match(await refused.text(), /<Code>(?:AccessDenied|ExpiredToken|InvalidToken)</);
  });
});
