// Objects in Chromium, in the console of the platform: upload in parts, names that attack, preview, link, versions, deletion.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform } from "../../identity/platform.ts";
import { checkPage, goTo, HOSTILE, LOOKS, openPlatform, takePicture } from "./chromium.ts";

const MIB = 1024 * 1024;
const BUCKET = "pictures";
const TEXT = { "content-type": "text/plain" };
const VERSIONING = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";

let platform: Platform;
let browser: Browser;
const folder = mkdtempSync(join(tmpdir(), "console-objects-"));

before(async () => {
  if (chromiumSkip !== false) return;
  [platform, browser] = await Promise.all([Platform.start(), startChromium("optimized")]);
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

  const image = { "content-type": "image/png" };
  await platform.storage("PUT", `/${BUCKET}/broken.png`, "no image", image);
  await goTo(console, `/storage/buckets/${BUCKET}?key=broken.png`);
  await pane.getByText("The bytes are no image of this type.").waitFor();
  assert.equal(await pane.locator("img").count(), 0, "nothing beside the words");
  await platform.storage("DELETE", `/${BUCKET}/broken.png`);
  await goTo(console, `/storage/buckets/${BUCKET}?key=page.html`);

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

/** Each part goes through the test, which a busy machine does slowly. */
const LARGE = { timeout: 180_000 };

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
    await page.getByText("No policy allows s3:PutObject here").waitFor(LARGE);
    await checkPage(console, "failed upload");
    isBroken = false;
    await page.getByRole("button", { name: "Retry" }).click();
    await page.getByText("1 uploaded").waitFor(LARGE);
    const stored = await platform.storage("GET", `/${BUCKET}?list-type=2&prefix=large.bin`);
    assert.match(stored, new RegExp(`<Size>${content.length}</Size>`));

    // The second try of another file with the same name and size must not take parts of the first.
    isBroken = true;
    sent.length = 0;
    await page.locator("input[type=file]").setInputFiles([writeFile("again.bin", content)]);
    await page.getByText("No policy allows s3:PutObject here").waitFor(LARGE);
    page.on("dialog", (dialog) => void dialog.accept());
    await page.reload();
    await page.locator("main#content.body h1").first().waitFor({ state: "attached" });
    isBroken = false;
    sent.length = 0;
    const other = Buffer.from(content);
    other.fill(7, 0, 1_000);
    await page.locator("input[type=file]").setInputFiles([writeFile("again.bin", other)]);
    await page.getByText("1 uploaded").waitFor(LARGE);
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
  "several uploads survive a lost network and lost answers, and nobody is asked about their own objects",
  { skip: chromiumSkip },
  async (t) => {
    await platform.storage("PUT", "/unsteady");
    const console = await openPlatform(t, browser, platform, LOOKS[1]);
    const { page } = console;
    await goTo(console, "/storage/buckets/unsteady");
    // Storage has written the object, and its answer is lost.
    const lost = { whole: 0, completion: 0 };
    const small = "x".repeat(MIB);
    await page.route("**/object?key=small.bin**", async (route) => {
      if (route.request().method() !== "PUT" || lost.whole > 0) return route.continue();
      lost.whole += 1;
      await platform.storage("PUT", "/unsteady/small.bin", small);
      return route.abort();
    });
    await page.route("**/uploads/*", async (route) => {
      if (route.request().method() !== "POST" || lost.completion > 0) return route.continue();
      lost.completion += 1;
      await route.fetch();
      return route.abort();
    });
    const sizes = { "small.bin": MIB, "other.bin": 2 * MIB, "parts.bin": 17 * MIB };
    const files = Object.entries(sizes).map(([name, size]) =>
      writeFile(name, name === "small.bin" ? small : randomBytes(size)),
    );
    const started = page.waitForRequest((request) => request.url().includes("small.bin"));
    await page.locator("input[type=file]").setInputFiles(files);
    await started;
    await page.context().setOffline(true);
    await page.getByText(/^Uploading \d of 3/).waitFor();
    await checkPage(console, "uploads without a network");
    await page.context().setOffline(false);
    await page.getByText("3 uploaded").waitFor();
    assert.deepEqual(lost, { whole: 1, completion: 1 });
    for (const [name, size] of Object.entries(sizes)) {
      const listed = await platform.storage("GET", `/unsteady?list-type=2&prefix=${name}`);
      assert.match(listed, new RegExp(`<Size>${size}</Size>`), name);
    }
    const left = await platform.storage("GET", "/unsteady?uploads");
    assert.doesNotMatch(left, /<UploadId>/, "no parts are left behind");
  },
);

test(
  "by keyboard: bucket, folder, object, versions and their restoration",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await platform.storage("PUT", "/versioned");
    await platform.storage("PUT", "/versioned?versioning", VERSIONING);
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

test(
  "a deleted object is found, and its versions are downloaded, restored and deleted one by one",
  { skip: chromiumSkip },
  async (t) => {
    await platform.storage("PUT", "/kept");
    await platform.storage("PUT", "/kept?versioning", VERSIONING);
    for (const body of ["one", "two", "three"])
      await platform.storage("PUT", "/kept/plan.txt", body, TEXT);
    await platform.storage("PUT", "/kept/plan.txt.old", "another key", TEXT);
    await platform.storage("DELETE", "/kept/plan.txt");
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await goTo(console, "/storage/buckets/kept");
    await page.locator("main tr[data-row='plan.txt.old']").waitFor();
    const row = page.locator("main tr[data-row='plan.txt']");
    assert.equal(await row.count(), 0);
    await page.getByRole("checkbox", { name: "Deleted too" }).check();
    await row.getByText("deleted").waitFor();
    await row.click();
    assert.match(page.url(), /deleted=1/);
    const pane = page.getByRole("complementary", { name: "Details" });
    await pane.getByText("The object is deleted. Its versions can be restored.").waitFor();
    const lines = pane.locator(".object-version");
    const sizes = async (): Promise<string[]> =>
      (await lines.allInnerTexts()).map((text) => /deleted|\d(?=\sB)/.exec(text)?.[0] ?? text);
    await lines.nth(3).waitFor();
    assert.deepEqual(await sizes(), ["deleted", "5", "3", "3"]);
    await checkPage(console, "a deleted object");
    await takePicture(console, "a deleted object");

    await lines.nth(3).locator("button.mono").click();
    await page.waitForURL(/version=/);
    await pane.getByText("one", { exact: true }).waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      lines
        .nth(2)
        .getByRole("link", { name: /^Download the version of / })
        .click(),
    ]);
    assert.equal(readFileSync(await download.path(), "utf8"), "two");
    assert.equal(download.suggestedFilename(), "plan.txt");

    const remove = async (at: number, loss: RegExp): Promise<void> => {
      const count = await lines.count();
      await lines
        .nth(at)
        .getByRole("button", { name: /^Delete the version of / })
        .click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText(loss).waitFor();
      await dialog.getByRole("textbox").fill("plan.txt");
      await dialog.getByRole("button", { name: "Delete" }).click();
      await lines.nth(count - 1).waitFor({ state: "detached" });
    };
    await remove(3, /^The version of .*, 3\sB, will be gone for good\.$/);
    assert.ok(!page.url().includes("version="), "the version that was shown is gone");
    await remove(0, /the version before it is current again/);
    assert.deepEqual(await sizes(), ["5", "3"]);
    await row.getByText(/^5\sB$/).waitFor();
    assert.equal(await platform.storage("GET", "/kept/plan.txt"), "three");
    await lines.nth(1).getByRole("button", { name: "Restore" }).click();
    await lines.nth(2).waitFor();
    assert.equal(await platform.storage("GET", "/kept/plan.txt"), "two");
    await remove(0, /^The current version, of .*, 3\sB, will be gone for good; what came before/);
    assert.equal(await platform.storage("GET", "/kept/plan.txt"), "three");
    await checkPage(console, "versions");
    await takePicture(console, "versions");

    const phone = await openPlatform(t, browser, platform, LOOKS[1]);
    await goTo(phone, "/storage/buckets/kept?deleted=1&key=plan.txt");
    await phone.page.locator(".object-version").first().waitFor();
    await checkPage(phone, "versions on a phone");
    await takePicture(phone, "versions on a phone");
    await goTo(phone, "/storage/buckets/kept?deleted=1");
    await checkPage(phone, "objects with deleted ones");
    await takePicture(phone, "objects with deleted ones");
  },
);

test(
  "all versions of an object can be reached, however many there are",
  { skip: chromiumSkip },
  async (t) => {
    await platform.storage("PUT", "/busy");
    await platform.storage("PUT", "/busy?versioning", VERSIONING);
    await platform.storage("PUT", "/busy/state.txt", "the oldest version", TEXT);
    for (let round = 0; round < 23; round++) {
      const puts = Array.from({ length: 10 }, () =>
        platform.storage("PUT", "/busy/state.txt", "x", TEXT),
      );
      await Promise.all(puts);
    }
    await platform.storage("PUT", "/busy/state.txt.old", "another key", TEXT);
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await goTo(console, "/storage/buckets/busy?key=state.txt");
    const pane = page.getByRole("complementary", { name: "Details" });
    await pane.getByText("the newest 200").waitFor();
    const lines = pane.locator(".object-version");
    const older = pane.getByRole("button", { name: "Older versions" });
    for (let shown = 50; shown <= 200; shown *= 2) {
      await lines.nth(shown - 1).waitFor();
      await older.click();
    }
    await pane.getByText("231", { exact: true }).waitFor();
    await lines.nth(230).locator("button.mono").click();
    await pane.getByText("the oldest version").waitFor();
    assert.equal(await lines.count(), 231);

    // A change leaves the user where they are.
    const last = lines.nth(230);
    await last.getByRole("button", { name: "Restore" }).click();
    await pane.getByText("232", { exact: true }).waitFor();
    await lines.nth(231).waitFor();
    assert.equal(await platform.storage("GET", "/busy/state.txt"), "the oldest version");
    const place = await lines.nth(231).boundingBox();
    assert.ok(place !== null && place.y < LOOKS[0].height, `the last line is in view: ${place?.y}`);
    await lines
      .nth(215)
      .getByRole("button", { name: /^Delete the version of / })
      .click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox").fill("state.txt");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await pane.getByText("231", { exact: true }).waitFor();
    assert.equal(await lines.count(), 231);
  },
);
