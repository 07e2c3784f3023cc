// Storage with other people in Chromium: changes of the same tags and locks, a deleted bucket, a key that may only read.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import type { Platform } from "../../identity/platform.ts";
import { checkPage, goTo, LOOKS, openConsole, openPlatform, takePicture } from "./chromium.ts";
import { joinInstallation } from "./installation.ts";

const TEXT = { "content-type": "text/plain" };
const LOCKED = { "x-amz-bucket-object-lock-enabled": "true" };
const UNTIL = new Date(Date.now() + 9 * 86_400_000).toISOString();

let platform: Platform;
let browser: Browser;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
  await platform.storage("PUT", "/vaulted", "", LOCKED);
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

test(
  "versions that are locked say so, and why they cannot be deleted",
  { skip: chromiumSkip },
  async (t) => {
    for (const body of ["one", "two", "three", "four"])
      await platform.storage("PUT", "/vaulted/plan.txt", body, TEXT);
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await goTo(console, "/storage/buckets/vaulted?key=plan.txt");
    const pane = page.getByRole("complementary", { name: "Details" });
    const lines = pane.locator(".object-version");
    const remove = (at: number) =>
      lines.nth(at).getByRole("button", { name: /^Delete the version/ });
    await lines.nth(3).waitFor();
    await pane.getByRole("button", { name: "Hold" }).click();
    await lines.nth(0).getByText("on hold", { exact: true }).waitFor();
    await lines.nth(1).locator("button.mono").click();
    await pane.getByText("three", { exact: true }).waitFor();
    await pane.getByRole("button", { name: "Change the retention…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await lines.nth(1).getByText("locked", { exact: true }).waitFor();
    await lines.nth(2).locator("button.mono").click();
    await pane.getByText("two", { exact: true }).waitFor();
    await pane.getByRole("button", { name: "Change the retention…" }).click();
    await page.getByRole("dialog").getByLabel("Mode").selectOption("COMPLIANCE");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await lines.nth(2).getByText("locked", { exact: true }).waitFor();
    await checkPage(console, "locked versions");
    await takePicture(console, "locked versions");

    const reasons = [/Release the hold first/, /End the retention first/, /no one can delete it/];
    for (const [at, reason] of reasons.entries()) {
      assert.match(String(await remove(at).getAttribute("title")), reason);
      assert.equal(await remove(at).getAttribute("aria-disabled"), "true");
      await remove(at).press("Enter");
    }
    assert.equal(await page.getByRole("dialog").count(), 0);
    await remove(3).click();
    await page.getByRole("dialog").getByText("will be gone for good").waitFor();
    await page.keyboard.press("Escape");

    const phone = await openPlatform(t, browser, platform, LOOKS[1]);
    await goTo(phone, "/storage/buckets/vaulted?key=plan.txt");
    await phone.page.locator(".object-version").getByText("on hold", { exact: true }).waitFor();
    await checkPage(phone, "locked versions on a phone");
    await takePicture(phone, "locked versions on a phone");
  },
);

test(
  "a key that may only read finds the other actions disabled, each with the missing permission",
  { skip: chromiumSkip },
  async (t) => {
    for (const body of ["old", "new"])
      await platform.storage("PUT", "/vaulted/read.txt", body, TEXT);
    const json = { "content-type": "application/json" };
    const statement = {
      Effect: "Allow",
      Action: ["s3:GetObject", "s3:GetObjectTagging", "s3:ListBucket", "s3:ListBucketVersions"],
      Resource: ["arn:aws:s3:::vaulted", "arn:aws:s3:::vaulted/*"],
    };
    const ofEmpty = {
      Effect: "Allow",
      Action: ["s3:ListBucket", "s3:GetBucketCORS"],
      Resource: "arn:aws:s3:::empty",
    };
    const policies = { read: { Version: "2012-10-17", Statement: [statement, ofEmpty] } };
    await platform.storage("PUT", "/api/v1/users/reader", JSON.stringify({ policies }), json);
    const made = JSON.parse(
      await platform.storage("POST", "/api/v1/keys", JSON.stringify({ user: "reader" }), json),
    ) as { access_key: string; secret_key: string };
    const console = await openConsole(t, browser, {
      url: platform.vaultAdmin.origin,
      token: made.secret_key,
      accessKey: made.access_key,
      path: "/storage/buckets/vaulted?key=read.txt",
    });
    const { page } = console;
    const pane = page.getByRole("complementary", { name: "Details" });
    await pane.getByText("new", { exact: true }).waitFor();
    // The figures of the service are not for this account: nothing is lost.
    await page.locator(".livedot", { hasText: "No access" }).waitFor();
    const line = pane.locator(".object-version").nth(1);
    const needed: readonly [name: RegExp, action: string][] = [
      [/^Delete\b/, "s3:DeleteObject"],
      [/^Edit tags/, "s3:PutObjectTagging"],
      [/^Change the retention/, "s3:GetObjectRetention"],
      [/^Hold\b/, "s3:GetObjectLegalHold"],
      [/^Restore\b/, "s3:PutObject"],
      [/^Delete the version of /, "s3:DeleteObjectVersion"],
    ];
    for (const [name, action] of needed) {
      const reason = `No policy allows ${action} here`;
      const button = pane
        .getByRole("button", { name })
        .and(page.getByTitle(reason, { exact: true }));
      await button.first().waitFor();
      assert.equal(await button.first().getAttribute("aria-disabled"), "true", action);
    }
    assert.equal(await line.getByRole("link").count(), 0, "an older version cannot be downloaded");
    await pane.getByRole("link", { name: "Download" }).waitFor();
    await checkPage(console, "an object for a reader");
    await takePicture(console, "an object for a reader");

    await platform.storage("PUT", "/empty");
    const others: readonly [path: string, name: RegExp, reason: string][] = [
      ["/storage/buckets/vaulted", /^Change\b/, "Requires the permission vault:admin"],
      ["/storage/buckets/-/vaulted", /^Edit tags/, "No policy allows s3:GetBucketTagging here"],
      ["/storage/buckets/empty", /^Delete the bucket/, "No policy allows s3:DeleteBucket here"],
      ["/storage/buckets/-/empty/cors", /^Review/, "No policy allows s3:PutBucketCORS here"],
    ];
    for (const [path, name, reason] of others) {
      await goTo(console, path);
      const button = page.locator("main").getByRole("button", { name });
      await button.and(page.getByTitle(reason, { exact: true })).waitFor();
      await checkPage(console, path);
    }
  },
);

test(
  "a bucket that somebody else deletes is not shown as if it were there",
  { skip: chromiumSkip },
  async (t) => {
    await platform.storage("PUT", "/doomed");
    await platform.storage("PUT", "/doomed/a.txt", "text", TEXT);
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await goTo(console, "/storage/buckets/doomed?key=a.txt");
    const pane = page.getByRole("complementary", { name: "Details" });
    await pane.getByText("text", { exact: true }).waitFor();
    const phone = await openPlatform(t, browser, platform, LOOKS[1]);
    await goTo(phone, "/storage/buckets/doomed");
    await phone.page.locator("main tr[data-row='a.txt']").waitFor();
    await platform.storage("DELETE", "/doomed/a.txt");
    await pane.getByRole("button", { name: "Edit tags…" }).click();
    await page.getByRole("alert").getByText("The specified key does not exist").waitFor();
    assert.equal(await page.getByRole("dialog").count(), 0, "nothing is edited that is not there");
    await platform.storage("DELETE", "/doomed");
    for (const one of [console, phone]) {
      await one.page.getByRole("link", { name: "All buckets" }).waitFor();
      await one.page.locator("main tr[data-row='a.txt']").waitFor({ state: "detached" });
      await checkPage(one, "a deleted bucket");
    }
    assert.equal(await pane.count(), 0);
    await takePicture(phone, "a deleted bucket on a phone");
  },
);

test("keys that no path and no link expresses", { skip: chromiumSkip }, async (t) => {
  await platform.storage("PUT", "/odd");
  const console = await openPlatform(t, browser, platform, LOOKS[1]);
  const { page } = console;
  const api = `${platform.console.origin}/svc/vault/api/v1/buckets/odd/object`;
  const keys = [
    "//",
    "a//b",
    "..",
    "x/../y",
    "%2f",
    "two words",
    "😀/🎉.txt",
    `${"n".repeat(255)}/m`,
  ];
  const pane = page.getByRole("complementary", { name: "Details" });
  for (const key of keys) {
    const query = new URLSearchParams({ key, content_type: "text/plain" }).toString();
    const init = {
      method: "PUT",
      body: `body of ${key}`,
      headers: { "content-type": "application/octet-stream" },
    };
    const status = await page.evaluate(
      `fetch(${JSON.stringify(`${api}?${query}`)}, ${JSON.stringify(init)}).then(({ status }) => status)`,
    );
    assert.equal(status, 200, key);
  }
  for (const key of keys) {
    await goTo(console, "/storage/buckets/odd");
    const folders = key.split("/").slice(0, -1);
    for (const at of folders.keys()) {
      const prefix = `${folders.slice(0, at + 1).join("/")}/`;
      await page.locator(`main tr[data-row="${prefix}"] a`).click();
    }
    await page.locator(`main tr[data-row="${key}"]`).click();
    await pane.locator("pre").getByText(`body of ${key}`, { exact: true }).waitFor();
    await checkPage(console, key);
    const share = pane.getByRole("button", { name: /^Share/ });
    if (key.includes("..")) {
      assert.match(String(await share.getAttribute("title")), /resolve the segments/);
      continue;
    }
    await share.click();
    await page.getByRole("button", { name: "Create the link" }).click();
    const link = await page.locator("dialog .cmd code").innerText();
    assert.equal(await (await fetch(link)).text(), `body of ${key}`);
    await page.keyboard.press("Escape");
  }
});
