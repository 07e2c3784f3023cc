// Tags, retention and legal hold of objects in Chromium, while other people change them, too.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform } from "../../identity/platform.ts";
import { checkPage, goTo, openPlatform, takePicture } from "./chromium.ts";

const TEXT = { "content-type": "text/plain" };
const LOCKED = { "x-amz-bucket-object-lock-enabled": "true" };
const UNTIL = new Date(Date.now() + 9 * 86_400_000).toISOString();

let platform: Platform;
let browser: Browser;

before(async () => {
  if (chromiumSkip !== false) return;
  [platform, browser] = await Promise.all([Platform.start(), startChromium()]);
  await platform.storage("PUT", "/vaulted", "", LOCKED);
});

after(async () => {
  await browser?.close();
  await platform?.stop();
});

/** Changes a lock with S3. */
function putRetention(key: string, mode: string, until: string): Promise<string> {
  const body = `<Retention><Mode>${mode}</Mode><RetainUntilDate>${until}</RetainUntilDate></Retention>`;
  return platform.storage("PUT", `/vaulted/${key}?retention`, body);
}

function putHold(key: string, status: "ON" | "OFF"): Promise<string> {
  const body = `<LegalHold><Status>${status}</Status></LegalHold>`;
  return platform.storage("PUT", `/vaulted/${key}?legal-hold`, body);
}

test(
  "two people who edit tags or a lock see both values before one replaces the other",
  { skip: chromiumSkip },
  async (t) => {
    await platform.storage("PUT", "/vaulted/shared.txt", "text", TEXT);
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await goTo(console, "/storage/buckets/vaulted?key=shared.txt");
    const pane = page.getByRole("complementary", { name: "Details" });
    const dialog = page.getByRole("dialog");
    const save = dialog.getByRole("button", { name: "Save" });
    const compare = dialog.getByRole("button", { name: "Compare with the new one" });

    await pane.getByRole("button", { name: "Edit tags…" }).click();
    await page.getByLabel("Key of tag 1").fill("team");
    await page.getByLabel("Value of tag 1").fill("mine");
    const theirs =
      "<Tagging><TagSet><Tag><Key>team</Key><Value>theirs</Value></Tag></TagSet></Tagging>";
    await platform.storage("PUT", "/vaulted/shared.txt?tagging", theirs);
    await save.click();
    await dialog.getByText("Somebody else changed it.").waitFor();
    assert.match(await platform.storage("GET", "/vaulted/shared.txt?tagging"), />theirs</);
    await compare.click();
    await dialog.getByText("team=theirs").waitFor();
    await dialog.getByText("team=mine").waitFor();
    await checkPage(console, "tags of two people");
    await save.click();
    await pane.getByText("team=mine").waitFor();

    await pane.getByRole("button", { name: "Change the retention…" }).click();
    await dialog.getByLabel("Until").fill("2001-01-01");
    await save.click();
    await dialog.getByText("must be in the future").waitFor();
    await dialog.getByLabel("Until").fill(UNTIL.slice(0, 10));
    await putRetention("shared.txt", "GOVERNANCE", UNTIL);
    await save.click();
    await dialog.getByText("Somebody else changed it.").waitFor();
    await compare.click();
    await dialog.getByText(UNTIL).first().waitFor();
    assert.equal(await dialog.getByText("must be in the future").count(), 0);
    await checkPage(console, "retention of two people");
    await takePicture(console, "retention of two people");
    await dialog.getByLabel("Mode").selectOption("COMPLIANCE");
    await dialog.getByLabel("Shorten or end it").check();
    await save.click();
    await pane.getByText("(COMPLIANCE)").waitFor();
    // The day was not changed, so the moment is not either.
    assert.ok((await platform.storage("GET", "/vaulted/shared.txt?retention")).includes(UNTIL));

    await putHold("shared.txt", "ON");
    await pane.getByRole("button", { name: "Hold" }).click();
    await page.getByText("The page shows it as it is now.").waitFor();
    await pane.getByRole("button", { name: "Release" }).click();
    await pane.getByText("not held").waitFor();
    assert.match(await platform.storage("GET", "/vaulted/shared.txt?legal-hold"), />OFF</);
    await platform.storage("PUT", "/vaulted/shared.txt", "another version", TEXT);
    await pane.getByRole("button", { name: "Hold" }).click();
    await pane.getByText("not locked").waitFor();
    await assert.rejects(
      platform.storage("GET", "/vaulted/shared.txt?legal-hold"),
      /NoSuchObjectLockConfiguration/,
    );
  },
);
