// `platform share`: a client of the relay that `platform up` started, with its credentials.
import assert from "node:assert/strict";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { find, makeFolder, run } from "@platform/testing/platform-process";
import { joinPlatform } from "./running-platform.ts";

const local = createServer((_request, response) => response.end("shared")).listen(0, "127.0.0.1");
after(() => local.close());

function fetchText(port: number, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, headers: { host }, agent: false }, (response) => {
      let text = "";
      response.on("data", (bytes) => void (text += String(bytes)));
      response.on("end", () => resolve(text));
    }).on("error", reject);
  });
}

test("a local port gets a public address with one command", async () => {
  const { started, data } = await joinPlatform();
  const port = Number(new URL(find(started, "tunnel").url).port);
  const { port: localPort } = local.address() as AddressInfo;
  const share = run(["share", `127.0.0.1:${localPort}`, "--data", data, "--subdomain", "demo"], {
    PLATFORM_TUNNEL_DATA_DIR: makeFolder(),
  });
  const url = await share.waitFor((text) => /http:\/\/demo\.localhost:\d+/.exec(text)?.[0]);
  assert.equal(url, `http://demo.localhost:${port}`);
  assert.equal(await fetchText(port, "demo.localhost"), "shared");
  share.child.kill("SIGTERM");
  assert.equal(await share.exit, 0);
});
