// Certificates of the gateway in Chromium: their end, by shape, word and colour, and the chosen one.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { chromiumSkip } from "@platform/kernel/testing";
import { makeCertificate } from "@platform/testing/certificates";
import { checkPage, HOSTILE, LOOKS, takePicture } from "./chromium.ts";
import { ask, joinGateway, openGateway, type Gateway } from "./gateway-alone.ts";

const PATH = "/gateway/certificates";
/** Kept while the gateway runs, which reads them with each change. */
const folder = mkdtempSync(join(tmpdir(), "console-certificates-"));

after(() => rmSync(folder, { recursive: true, force: true }));

const organization = HOSTILE.slice(0, 20).replaceAll("/", "");

/** Writes a certificate with two names and a hostile organization. */
function makeHostile(name: string, days: number): string {
  const subject = `/CN=${name}/O=${organization}`;
  const names = `DNS:${name}.example,DNS:www.${name}.example`;
  return makeCertificate(folder, name, { subject, names, days }).cert;
}

/** The gateway with two certificates that end on different days. */
async function joinWithCertificates(): Promise<Gateway> {
  const gate = await joinGateway();
  for (const [prefix, days] of [
    ["/long", 400],
    ["/soon", 5],
  ] as const) {
    const root_ca_path = makeHostile(prefix.slice(1), days);
    await ask(gate, "POST", "/routes", { prefix, root_ca_path, target: "https://127.0.0.1:9" });
  }
  return gate;
}

for (const look of LOOKS) {
  test(
    `certificates are listed with their end: ${look.name}`,
    { skip: chromiumSkip },
    async (t) => {
      const opened = await openGateway(t, await joinWithCertificates(), look, PATH);
      const { page } = opened;
      const rows = page.getByRole("table", { name: "Certificates" }).locator("tbody tr");
      const soon = rows.filter({ hasText: "soon.example, www.soon.example" });
      await soon.getByText(/ends in [45] days/).waitFor();
      assert.equal(await soon.locator("svg.st-warn").count(), 1);
      const long = rows.filter({ hasText: "long.example" });
      assert.equal(await long.locator("svg.st-ok").count(), 1);
      assert.match(await long.innerText(), /valid/);
      await checkPage(opened, "certificates");
      await takePicture(opened, `certificates-${look.width}`);
      await page.keyboard.press("j");
      await page.keyboard.press("Enter");
      const pane = page.getByRole("complementary", { name: "Details" });
      await pane.getByText("verifies upstreams").waitFor();
      await pane.getByText(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/).waitFor();
      await pane.getByText("/long").first().waitFor();
      await checkPage(opened, "certificate");
      await takePicture(opened, `certificate-${look.width}`);
    },
  );
}

test("a gateway without certificates says how to set them", { skip: chromiumSkip }, async (t) => {
  const opened = await openGateway(t, await joinGateway(), LOOKS[0], PATH);
  await opened.page.getByText("No certificate is in use").waitFor();
  await checkPage(opened, "no certificates");
});
