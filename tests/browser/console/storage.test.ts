// Objects in Chromium, in the console of the platform: upload in parts, names that attack, preview, link, versions, deletion.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform } from "../../identity/platform.ts";
import { checkPage, goTo, HOSTILE, openPlatform } from "./chromium.ts";

const MIB = 1024 * 1024;
const BUCKET = "pictures";
const TEXT = { "content-type": "text/plain" };

let platform: Platform;
let browser: Browser;
const folder = mkdtempSync(join(tmpdir(), "console-objects-"));

before(async () => {
  if (chromiumSkip !== false) return;
  [platform, browser] = await Promise.all([Platform.start(), startChromium()]);
  await platform.storage("PUT", `/${BUCKET}`);
});

after(async () => {
  await browser?.close();
  await platform?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function writeFile(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** The listing of the bucket as S3 answers it. */
function readListing(): Promise<string> {
  return platform.storage("GET", `/${BUCKET}?list-type=2`);
}

test("upload, preview, share and delete, by mouse", { skip: chromiumSkip }, async (t) => {
  const console = await openPlatform(t, browser, platform);
  const { page } = console;
  const rail = page.getByRole("navigation", { name: "Console" });
  await rail.getByRole("link", { name: "Storage" }).click();
  await page.getByRole("link", { name: BUCKET }).first().click();
  await page.getByText("Drop files here").waitFor();
  const files = [
    writeFile("notes.json", JSON.stringify({ note: HOSTILE })),
    writeFile("<img src=x onerror='globalThis.ran=1'>.txt", HOSTILE),
    writeFile("page.html", HOSTILE),
  ];
  await page.locator("input[type=file]").setInputFiles(files);
  await page.getByText("3 uploaded").waitFor();
  await page.locator("main tr[data-row='notes.json']").click();
  const pane = page.getByRole("complementary", { name: "Details" });
  await pane.locator("pre").filter({ hasText: "onerror" }).waitFor();
  await checkPage(console, "preview");
  await page.locator("main tr[data-row='page.html']").click();
  await pane.locator("pre").waitFor();
  await checkPage(console, "preview of HTML");

  await pane.getByRole("button", { name: "Share…" }).click();
  await page.getByRole("button", { name: "Create the link" }).click();
  const link = await page.locator("dialog .cmd code").innerText();
  const shared = await fetch(link);
  assert.deepEqual([shared.status, await shared.text()], [200, HOSTILE]);
  await checkPage(console, "share");
  await page.keyboard.press("Escape");

  const download = page.waitForEvent("download");
  await pane.getByRole("link", { name: "Download" }).click();
  assert.equal((await download).suggestedFilename(), "page.html");

  // A name that exists is never replaced without a question.
  await page.locator("input[type=file]").setInputFiles([writeFile("page.html", "other")]);
  await page.getByText("An object with this name exists").waitFor();
  assert.equal(await platform.storage("GET", `/${BUCKET}/page.html`), HOSTILE);
  await page.getByRole("button", { name: "Replace" }).click();
  await page.getByText("An object with this name exists").waitFor({ state: "detached" });
  await page.getByText("4 uploaded").waitFor();
  assert.equal(await platform.storage("GET", `/${BUCKET}/page.html`), "other");

  await page.getByLabel("Select all").check();
  await page.getByRole("button", { name: "Delete 3…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("3 objects").waitFor();
  await dialog.getByRole("textbox").fill(BUCKET);
  await checkPage(console, "deletion");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await page.getByText("Drop files here").waitFor();
  assert.doesNotMatch(await readListing(), /<Key>/);
});

test(
  "a large file goes up in parts: a failed part is repeated alone, the rest is resumed after a reload",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    const content = randomBytes(33 * MIB);
    const path = writeFile("large.bin", content);
    const sent: string[] = [];
    let isBroken = true;
    await page.route("**/uploads/*/*", (route) => {
      const part = route.request().url().split("/").at(-1)!;
      sent.push(part);
      // Part 2 fails once, part 4 until the page is loaded again.
      if (part === "2" && sent.filter((one) => one === "2").length === 1) return route.abort();
      if (part === "4" && isBroken) return route.fulfill({ status: 403, json: { detail: "no" } });
      return route.continue();
    });
    await goTo(console, `/storage/buckets/${BUCKET}`);
    await page.locator("input[type=file]").setInputFiles([path]);
    await page.getByText("No policy allows s3:PutObject here").waitFor();
    await checkPage(console, "failed upload");
    isBroken = false;
    await page.getByRole("button", { name: "Retry" }).click();
    await page.getByText("1 uploaded").waitFor();
    const stored = await platform.storage("GET", `/${BUCKET}?list-type=2&prefix=large.bin`);
    assert.match(stored, new RegExp(`<Size>${content.length}</Size>`));

    // The second try of another file with the same name and size must not take parts of the first.
    isBroken = true;
    sent.length = 0;
    await page.locator("input[type=file]").setInputFiles([writeFile("again.bin", content)]);
    await page.getByText("No policy allows s3:PutObject here").waitFor();
    page.on("dialog", (dialog) => void dialog.accept());
    await page.reload();
    await page.locator("main#content h1").first().waitFor({ state: "attached" });
    isBroken = false;
    sent.length = 0;
    const other = Buffer.from(content);
    other.fill(7, 0, 1_000);
    await page.locator("input[type=file]").setInputFiles([writeFile("again.bin", other)]);
    await page.getByText("1 uploaded").waitFor();
    assert.ok(sent.includes("1"), "the first part differs");
    assert.ok(!sent.includes("3"), `a part that storage has is not sent again: ${sent.join()}`);
    const url = new URL(`/svc/vault/api/v1/buckets/${BUCKET}/object`, platform.console);
    url.searchParams.set("key", "again.bin");
    const hash = await page.evaluate(
      `fetch(${JSON.stringify(url.href)}).then((response) => response.arrayBuffer())
        .then((bytes) => crypto.subtle.digest("SHA-256", bytes))
        .then((digest) => [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join(""))`,
    );
    assert.equal(hash, createHash("sha256").update(other).digest("hex"));
  },
);

test(
  "by keyboard: bucket, folder, object, versions and their restoration",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await platform.storage("PUT", "/versioned");
    await platform.storage(
      "PUT",
      "/versioned?versioning",
      "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>",
    );
    await platform.storage("PUT", "/versioned/a/b.txt", "first", TEXT);
    await platform.storage("PUT", "/versioned/a/b.txt", "second", TEXT);
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.locator("main tr[data-row='versioned']").waitFor();
    while ((await page.locator("main tr[data-row='versioned']:focus").count()) === 0) {
      await page.keyboard.press("j");
    }
    await page.keyboard.press("Enter");
    await page.locator("main tr[data-row='a/']").waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/ui/storage/buckets/versioned/a");
    await page.locator("main tr[data-row='a/b.txt']").waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    const pane = page.getByRole("complementary", { name: "Details" });
    await pane.getByText("second").waitFor();
    await pane.getByRole("button", { name: "Restore" }).press("Enter");
    await pane.getByText("first").waitFor();
    await checkPage(console, "versions");
    assert.equal(await platform.storage("GET", "/versioned/a/b.txt"), "first");
  },
);
