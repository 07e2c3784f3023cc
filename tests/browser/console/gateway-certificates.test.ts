// Certificates of the gateway in Chromium: their end, by shape, word and colour, and the chosen one.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import {
  makeFolder,
  runtimes,
  startGate,
} from "../../../services/gate/test/fixture/gate-process.ts";
import { checkPage, HOSTILE, LOOKS, openConsole, takePicture } from "./chromium.ts";

const TOKEN = "operator-token";
let browser: Browser;

before(async () => {
  if (chromiumSkip === false) browser = await startChromium();
});
after(() => browser?.close());

/** Writes a self-signed certificate that is valid for some days. */
function makeCertificate(folder: string, name: string, days: number): string {
  const file = join(folder, `${name}.pem`);
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", "/dev/null"];
  const subject = ["-subj", `/CN=${name}/O=${HOSTILE.slice(0, 20).replaceAll("/", "")}`];
  const names = ["-addext", `subjectAltName=DNS:${name}.example,DNS:www.${name}.example`];
  const options = ["-nodes", "-days", String(days), "-out", file];
  execFileSync("openssl", ["req", "-x509", ...key, ...subject, ...names, ...options], {
    stdio: "ignore",
  });
  return file;
}

async function startWithCertificates(t: TestContext): Promise<string> {
  const folder = makeFolder(t);
  const routes = [
    { prefix: "/long", root_ca_path: makeCertificate(folder, "long", 400) },
    { prefix: "/soon", root_ca_path: makeCertificate(folder, "soon", 5) },
  ].map((route) => ({ ...route, target: "https://127.0.0.1:9" }));
  const gate = await startGate(t, {
    runtime: runtimes[0]!,
    config: { routes },
    env: { PLATFORM_GATE_AUTH_TOKEN: TOKEN, PLATFORM_GATE_CONSOLE_ADDR: "127.0.0.1:0" },
  });
  return `http://localhost:${gate.ports["console"]}`;
}

for (const look of LOOKS) {
  test(
    `certificates are listed with their end: ${look.name}`,
    { skip: chromiumSkip },
    async (t) => {
      const url = await startWithCertificates(t);
      const path = "/gateway/certificates";
      const opened = await openConsole(t, browser, { url, token: TOKEN, look, path });
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
  const gate = await startGate(t, {
    runtime: runtimes[0]!,
    config: {},
    env: { PLATFORM_GATE_AUTH_TOKEN: TOKEN, PLATFORM_GATE_CONSOLE_ADDR: "127.0.0.1:0" },
  });
  const url = `http://localhost:${gate.ports["console"]}`;
  const path = "/gateway/certificates";
  const opened = await openConsole(t, browser, { url, token: TOKEN, path });
  await opened.page.getByText("No certificate is in use").waitFor();
  await checkPage(opened, "no certificates");
});
