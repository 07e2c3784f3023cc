// Hostile text in every field of mail, with rules for received mail and DMARC reports: shown, never run.
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import type { Stage } from "../../../../services/notify/test/stage.ts";
import { HOSTILE, LOOKS, openConsole } from "../chromium.ts";
import { ask, fillMail, startMail, TOKEN } from "../mail-fixture.ts";
import { checkHarmless, checkScreen, poison, stopPoison } from "./hostile.ts";
import { checkCovered, MAIL_SCREENS } from "./screens.ts";

let browser: Browser;
let stage: Stage;

before(async () => {
  if (chromiumSkip !== false) return;
  [stage, browser] = await Promise.all([startMail(), startChromium()]);
  await fillMail(stage);
  // A frame reports the HTML that it blocks; `mail.test.ts` has the attacks in HTML.
  const html = "<p>Hello</p>";
  const mail = { to: "eve@example.org", subject: HOSTILE, text: HOSTILE, html };
  await ask(stage, "POST", "/send", mail);
});

after(async () => {
  await browser?.close();
  await stage?.close(0);
});

test("each screen shows hostile text as it is", { skip: chromiumSkip }, async (t) => {
  const url = new URL(stage.url).origin;
  const console = await openConsole(t, browser, { url, token: TOKEN, look: LOOKS[0] });
  const { page } = console;
  await checkCovered(console);
  await poison(t, console);
  for (const path of MAIL_SCREENS) await checkScreen(console, path);
  await checkScreen(console, "/mail/inbox");
  // The findings about the mail.
  await page.locator(".mail-checks li").first().waitFor();
  await checkHarmless(console, "checks");
  await page.locator(".mail-checks").getByText("onerror").first().waitFor();
  await stopPoison(page);
});
