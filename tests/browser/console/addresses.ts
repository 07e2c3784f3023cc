// The addresses on the overview: each is one that a program on this machine reaches.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { chromiumSkip } from "@platform/kernel/testing";
import { checkPage, goTo, openPlatform, takePicture } from "./chromium.ts";
import { developer, useDeveloper } from "./developer.ts";

useDeveloper();

test(
  "addresses for programs are those of the listeners, to copy",
  { skip: chromiumSkip },
  async (t) => {
    const { browser, platform } = developer;
    const console = await openPlatform(t, browser, platform);
    const { page } = console;
    await goTo(console, "/");
    const section = page.locator("section.sec").filter({ hasText: "for your programs" });
    await section.getByText("kafka", { exact: false }).waitFor();
    const terms = await section.locator("dt").allInnerTexts();
    assert.deepEqual(terms, ["HTTP", "S3", "Kafka", "MQTT", "STOMP", "SMTP", "Issuer"]);
    const found = new Map<string, string>();
    for (const [index, term] of terms.entries()) {
      found.set(term, await section.locator("dd .wrap").nth(index).innerText());
    }
    assert.equal(found.get("Kafka"), `localhost:${platform.ports.get("pulse kafka")}`);
    assert.match(found.get("MQTT")!, /^mqtt:\/\/localhost:\d+$/);
    for (const address of found.values()) {
      const { port, hostname } = new URL(address.includes("://") ? address : `tcp://${address}`);
      const socket = connect(Number(port), hostname);
      await once(socket, "connect");
      socket.destroy();
    }
    const configuration = `${found.get("Issuer")}/.well-known/openid-configuration`;
    assert.equal((await fetch(configuration)).status, 200);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await section.getByRole("button", { name: "Copy the address of MQTT" }).click();
    assert.equal(await page.evaluate("navigator.clipboard.readText()"), found.get("MQTT"));
    await checkPage(console, "the overview with addresses");
    await takePicture(console, "addresses");
  },
);

test("an address that others cannot reach says so", { skip: chromiumSkip }, async (t) => {
  const { browser, platform } = developer;
  const console = await openPlatform(t, browser, platform);
  const { page } = console;
  // As on a page that was opened from another machine, by a name of this one.
  await page.route("**/svc/runtime/api/v1/services", async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as { items: { listeners: { host: string }[] }[] };
    for (const { listeners } of body.items) for (const one of listeners) one.host = "192.0.2.9";
    await route.fulfill({ response: answer, json: body });
  });
  await goTo(console, "/");
  const section = page.locator("section.sec").filter({ hasText: "for your programs" });
  await section.getByText("mqtt://192.0.2.9").waitFor();
});
