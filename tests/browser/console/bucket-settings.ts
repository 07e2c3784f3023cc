// Settings of buckets, and tags, locks and copies of objects in Chromium: both looks, by mouse and by keyboard.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import type { Platform } from "../../identity/platform.ts";
import {
  checkPage,
  goTo,
  HOSTILE,
  LOOKS,
  openPlatform,
  replaceText,
  takePicture,
} from "./chromium.ts";
import { describeReplication, makePlaces, makeRemote, makeVersioned } from "./places.ts";
import { joinInstallation } from "./installation.ts";

const BUCKET = "papers";
const TEXT = { "content-type": "text/plain" };
const POLICY = (action: string) =>
  JSON.stringify(
    {
      Version: "2012-10-17",
      Statement: [
        {
          Effect: "Allow",
          Principal: "*",
          Action: [action],
          Resource: [`arn:aws:s3:::${BUCKET}/*`],
        },
      ],
    },
    null,
    2,
  );

let platform: Platform;
let browser: Browser;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
  await platform.storage("PUT", `/${BUCKET}`);
  await platform.storage("PUT", "/archive");
});

let placed: Promise<void> | undefined;

/** A remote, and a bucket with a second copy and a cold tier. */
function placeOnce(): Promise<void> {
  placed ??= (async () => {
    await makeRemote(platform, "far");
    await makePlaces(platform, "placed", "copies", "far");
  })();
  return placed;
}

test(
  "a policy: the fault at its line, the consequence before it is saved, and the change of another",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await goTo(console, `/storage/buckets/${BUCKET}`);
    await page.getByRole("link", { name: "Open settings" }).click();
    await page.getByRole("link", { name: "Policy" }).click();
    await page.getByText("Not set. The text below is an example.").waitFor();
    await replaceText(page, POLICY("s3:Fly"));
    await page.getByRole("button", { name: "Review and save…" }).click();
    await page.getByText("the action s3:Fly does not exist").waitFor();
    await page.getByRole("button", { name: "Line 7, column 7" }).waitFor();
    await checkPage(console, "fault of a policy");

    await replaceText(page, POLICY("s3:GetObject"));
    await page.getByRole("button", { name: "Review and save…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("The bucket becomes public").waitFor();
    // Somebody else sets the first one.
    await platform.storage("PUT", `/${BUCKET}?policy`, POLICY("s3:DeleteObject"));
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("Somebody else changed it.").waitFor();
    assert.match(await platform.storage("GET", `/${BUCKET}?policy`), /s3:DeleteObject/);
    await platform.storage("DELETE", `/${BUCKET}?policy`);
    await page.getByRole("button", { name: "Compare with the new one" }).click();
    await page.getByText("Somebody else changed it.").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Review and save…" }).click();
    await dialog.getByText("The bucket becomes public").waitFor();
    await checkPage(console, "review of a policy");
    await takePicture(console, "bucket-policy-review");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.locator("main .tag-warn").getByText("public").waitFor();
    await platform.storage("PUT", `/${BUCKET}/open.txt`, "open", TEXT);
    assert.match(await platform.storage("GET", `/${BUCKET}?policy`), /s3:GetObject/);

    // Somebody else saves while this text is being edited.
    await replaceText(page, POLICY("s3:PutObject"));
    await platform.storage("DELETE", `/${BUCKET}?policy`);
    await platform.storage("PUT", `/${BUCKET}?policy`, POLICY("s3:DeleteObject"));
    await page.getByRole("button", { name: "Review and save…" }).click();
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("Somebody else changed it.").waitFor();
    assert.match(await platform.storage("GET", `/${BUCKET}?policy`), /s3:DeleteObject/);
    await page.getByRole("button", { name: "Compare with the new one" }).click();
    await page.getByText("Somebody else changed it.").waitFor({ state: "detached" });
    assert.match(await page.locator(".cm-content").innerText(), /s3:PutObject/, "the text stays");
    await page.getByRole("button", { name: "Review and save…" }).click();
    await dialog.locator("pre .del", { hasText: "s3:DeleteObject" }).waitFor();
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });

    await page.getByRole("button", { name: "Remove…" }).click();
    await dialog.getByText("The bucket is no longer public.").waitFor();
    await dialog.getByRole("button", { name: "Remove" }).click();
    await page.locator("main .tag-warn").waitFor({ state: "detached" });
  },
);

test(
  "an edited setting is not lost without a question, and a saved one is left at once",
  { skip: chromiumSkip },
  async (t) => {
    const { page } = await openPlatform(
      t,
      browser,
      platform,
      LOOKS[0],
      `/storage/buckets/-/${BUCKET}/policy`,
    );
    const question = page.getByRole("dialog", { name: "Leave without saving?" });
    await page.getByText("Not set. The text below is an example.").waitFor();
    for (const kind of ["Lifecycle", "Cross-origin access", "Events"]) {
      await page.getByRole("link", { name: kind, exact: true }).last().click();
      await page.getByRole("textbox", { name: `${kind} as JSON` }).waitFor();
      for (const text of ["null", "[]", '"text"']) {
        await replaceText(page, text);
        await page.getByRole("button", { name: "Review and save…" }).click();
        await page.getByText("A setting is a JSON object").waitFor();
      }
      await page.getByRole("link", { name: "Policy" }).click();
      await question.getByRole("button", { name: "Leave" }).click();
      await page.getByRole("textbox", { name: "Policy as JSON" }).waitFor();
    }
    // The example is nobody's work.
    await page.getByRole("link", { name: "Website" }).click();
    await page.getByRole("textbox", { name: "Website as JSON" }).waitFor();
    await page.getByRole("link", { name: "Policy" }).click();
    await page.getByRole("textbox", { name: "Policy as JSON" }).waitFor();
    await replaceText(page, POLICY("s3:GetObject"));
    await page.getByRole("link", { name: "Website" }).click();
    await question.getByRole("button", { name: "Stay" }).click();
    await question.waitFor({ state: "detached" });
    assert.match(await page.locator(".cm-content").innerText(), /s3:GetObject/, "the text stays");
    await page.getByRole("button", { name: "Review and save…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    await page.getByRole("link", { name: "Website" }).click();
    await page.getByRole("textbox", { name: "Website as JSON" }).waitFor();
    assert.equal(await question.count(), 0);
    await platform.storage("DELETE", `/${BUCKET}?policy`);
  },
);

test(
  "forms by keyboard: versions, lock and tags with their consequences",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await goTo(console, "/storage/buckets/-/archive");
    const dialog = page.getByRole("dialog");
    const section = (name: string) =>
      page.locator("main section", { has: page.getByRole("heading", { name, exact: true }) });
    await section("Versions").getByRole("button", { name: "Switch on" }).press("Enter");
    await dialog.getByText("cannot be switched off again").waitFor();
    await dialog.getByRole("button", { name: "Switch on" }).press("Enter");
    await page.getByText("each write is kept").waitFor();

    await section("Object lock").getByRole("button", { name: "Switch on" }).press("Enter");
    await dialog.getByText("Object lock cannot be switched off again").waitFor();
    await dialog.getByLabel("New objects").selectOption("GOVERNANCE");
    await dialog.getByLabel("Period").fill("0");
    await dialog.getByRole("button", { name: "Save" }).press("Enter");
    await dialog.getByText("must be a positive integer").waitFor();
    await checkPage(console, "fault of a lock");
    await dialog.getByLabel("Period").fill("2");
    await dialog.getByRole("button", { name: "Save" }).press("Enter");
    await page.getByText("locked for 2 days (GOVERNANCE)").waitFor();

    await section("Tags").getByRole("button", { name: "Edit tags…" }).press("Enter");
    await page.locator("dialog input:focus").waitFor();
    await page.keyboard.type("owner");
    await page.keyboard.press("Tab");
    await page.keyboard.type("billing");
    await page.keyboard.press("Enter");
    await page.locator("main .tags").getByText("owner=billing").waitFor();
    assert.match(await platform.storage("GET", "/archive?tagging"), /<Value>billing<\/Value>/);
    await takePicture(console, "bucket-settings");
  },
);

test(
  "an object with a hostile name is tagged, copied, moved and held",
  { skip: chromiumSkip },
  async (t) => {
    const name = `${HOSTILE} \u202e..`;
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await platform.storage("PUT", `/${BUCKET}/${encodeURIComponent(name)}`, "text", TEXT);
    await goTo(console, `/storage/buckets/${BUCKET}?key=${encodeURIComponent(name)}`);
    const pane = page.getByRole("complementary", { name: "Details" });
    const dialog = page.getByRole("dialog");
    await pane.getByRole("button", { name: "Edit tags…" }).click();
    await page.getByLabel("Key of tag 1").fill("year");
    await page.getByLabel("Value of tag 1").fill("<b>");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("Allowed are letters").waitFor();
    await checkPage(console, "refused tag");
    await page.getByLabel("Value of tag 1").fill("2026");
    await dialog.getByRole("button", { name: "Save" }).click();
    await pane.getByText("year=2026").waitFor();
    await pane.getByText("⟨U+202E⟩..").first().waitFor();
    await takePicture(console, "object-tags");

    await pane.getByRole("button", { name: "Copy or move…" }).click();
    await dialog.getByLabel("Action").selectOption("move");
    await dialog.getByLabel("Bucket").selectOption("archive");
    await dialog.getByLabel("Key", { exact: true }).fill("moved.txt");
    await checkPage(console, "move");
    await dialog.getByRole("button", { name: "Move", exact: true }).click();
    await page.getByText("Moved to archive.").waitFor();
    assert.equal(await platform.storage("GET", "/archive/moved.txt"), "text");
    assert.doesNotMatch(await platform.storage("GET", `/${BUCKET}?list-type=2`), /onerror/);

    await goTo(console, "/storage/buckets/archive?key=moved.txt");
    await pane.getByText("year=2026").waitFor();
    await pane.getByRole("button", { name: "Hold" }).click();
    await pane.getByRole("button", { name: "Release" }).waitFor();
    assert.match(await platform.storage("GET", "/archive/moved.txt?legal-hold"), />ON</);
    await pane.getByRole("button", { name: "Change the retention…" }).click();
    await dialog.getByLabel("Mode").selectOption("COMPLIANCE");
    await dialog.getByText("not even by root").waitFor();
    await checkPage(console, "retention");
    await page.keyboard.press("Escape");
  },
);

test(
  "a remote is added, checked and removed, and has buckets of its own",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform, LOOKS[1], "/storage/remotes");
    const { page } = console;
    const dialog = page.getByRole("dialog");
    await page.getByText("No remotes yet").waitFor();
    await page.getByRole("button", { name: "New remote" }).click();
    // Nothing listens at this port.
    const values = { Name: "attic", Address: "http://127.0.0.1:9", "Access key": "k" };
    for (const [label, value] of Object.entries(values)) await dialog.getByLabel(label).fill(value);
    await dialog.getByLabel("Secret key").fill("never shown again");
    await dialog.getByRole("button", { name: "Add" }).click();
    await page.locator("main tr", { hasText: "attic" }).waitFor();
    assert.ok(!(await page.content()).includes("never shown again"));
    await checkPage(console, "remotes");
    await takePicture(console, "remotes");
    await page.getByRole("button", { name: "New rule" }).click();
    await dialog.getByLabel("Beginning of the names").fill("attic-");
    await dialog.getByRole("button", { name: "Add" }).click();
    await page.getByRole("button", { name: "Remove the rule attic-*" }).click();
    await page.getByText("All buckets are in this storage.").waitFor();
    await page.locator("main tr", { hasText: "attic" }).click();
    const pane = page.getByRole("complementary", { name: "Details" });
    await pane.getByRole("button", { name: "Check…" }).click();
    await dialog.getByLabel("Bucket").fill("copies");
    await dialog.getByRole("button", { name: "Check" }).click();
    await dialog.locator("li").first().waitFor();
    await checkPage(console, "the check of a remote");
    await takePicture(console, "remote-check");
    await page.keyboard.press("Escape");
    await pane.getByRole("button", { name: "Remove…" }).click();
    await dialog.getByRole("textbox").fill("attic");
    await dialog.getByRole("button", { name: "Remove" }).click();
    await page.getByText("No remotes yet").waitFor();
  },
);

for (const look of LOOKS) {
  test(`the pages of settings: ${look.name}`, { skip: chromiumSkip }, async (t) => {
    const console = await openPlatform(t, browser, platform, look);
    const { page } = console;
    await platform.storage("PUT", `/${BUCKET}/${"k".repeat(1_000)}`, "x", TEXT);
    for (const tab of ["general", "policy", "lifecycle", "cors", "website", "events"]) {
      await goTo(console, `/storage/buckets/-/${BUCKET}/${tab}`);
      if (tab !== "general") await page.locator(".cm-content").waitFor();
      await checkPage(console, `${tab} ${look.name}`);
    }
    await takePicture(console, `bucket-events-${look.width}`);
    await placeOnce();
    for (const tab of ["replication", "cold-tier"]) {
      await goTo(console, `/storage/buckets/-/placed/${tab}`);
      await page.locator("main .st").first().waitFor();
      await page.locator(".cm-content").waitFor();
      await checkPage(console, `${tab} ${look.name}`);
    }
    await goTo(console, `/storage/buckets/${BUCKET}?key=${"k".repeat(1_000)}`);
    await page.getByRole("button", { name: "Edit tags…" }).waitFor();
    await checkPage(console, `object ${look.name}`);
    await takePicture(console, `object-${look.width}`);
  });
}

test(
  "a replication rule and a cold tier are set, and their pages count what they have done",
  { skip: chromiumSkip },
  async (t) => {
    await placeOnce();
    for (const name of ["sent", "second"]) await makeVersioned(platform, name);
    const page = (
      await openPlatform(t, browser, platform, undefined, "/storage/buckets/-/sent/replication")
    ).page;
    const save = async (document: object): Promise<void> => {
      await page.getByText("Not set. The text below is an example.").waitFor();
      await replaceText(page, JSON.stringify(document, null, 2));
      await page.getByRole("button", { name: "Review and save…" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    };
    await save(describeReplication("second"));
    await page.getByText("0 waiting, 0 refused").waitFor();
    await platform.storage("PUT", "/sent/one.txt", "text", TEXT);
    await page.getByText("1 sent (4 B) since").waitFor();
    await page.getByRole("link", { name: "Cold tier" }).click();
    await save({ days: 0, remote: "far", bucket: "cold", minimum_size: 0 });
    await page.getByText("none since the start of storage").waitFor();
    await page.getByRole("button", { name: "Move what is due now" }).click();
    await page.getByText("0 moved (0 B), 1 stayed, 0 failed").waitFor();
    await page.getByRole("list", { name: "Objects that stayed" }).getByText("one.txt").waitFor();
  },
);

test(
  "an encryption key is made, rotated, disabled and planned for deletion",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openPlatform(t, browser, platform, undefined, "/storage/encryption");
    const { page } = console;
    const dialog = page.getByRole("dialog");
    await page.getByText("No named keys yet").waitFor();
    await page.getByRole("button", { name: "New key" }).click();
    await dialog.getByLabel("Name").fill("invoices");
    await dialog.getByLabel("Description").fill(HOSTILE);
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.locator("main tr", { hasText: "invoices" }).click();
    const pane = page.getByRole("complementary", { name: "Details" });
    await pane.getByText(/^arn:/).waitFor();
    await checkPage(console, "an encryption key");
    await takePicture(console, "encryption-key");
    const versions = pane.locator("section", { hasText: "Versions" }).locator("li");
    // A version that no object needs is gone with its rotation.
    const before = await versions.first().locator(".mono").innerText();
    await pane.getByRole("button", { name: "Rotate" }).click();
    await versions.getByText(before).waitFor({ state: "detached" });
    await versions.first().waitFor();
    await pane.getByRole("button", { name: "Disable" }).click();
    await pane.getByRole("button", { name: "Enable" }).waitFor();
    const rotate = pane.getByRole("button", { name: "Rotate" });
    assert.equal(await rotate.getAttribute("title"), "The key is disabled");
    await pane.getByRole("button", { name: "Enable" }).click();
    await pane.getByRole("button", { name: "Delete…" }).click();
    await dialog.getByLabel(/^Days/).fill("3");
    await dialog.getByRole("textbox").first().fill("invoices");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await dialog.locator(".problem, .hint-bad").first().waitFor();
    await dialog.getByLabel(/^Days/).fill("7");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.locator("main tr", { hasText: "Deletion on" }).waitFor();
    await pane.getByRole("button", { name: "Enable" }).waitFor();
    await page.getByRole("button", { name: "Rotate the key of SSE-S3" }).click();
    await page.getByText("There is a new version").waitFor();
  },
);
