// The gateway as a process while the address of an upstream's name changes, and while its lookup fails.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimes, startGate } from "../fixture/gate-process.ts";

const hook = new URL("../fixture/own-hosts.ts", import.meta.url).href;
// Workers of Bun load nothing ahead of their own module.
const runtime = runtimes.find(({ name }) => name === "node")!;
const skip = process.platform === "linux" ? false : "all of 127.0.0.0/8 is this machine on Linux";

/** An upstream that answers with its address, on the same port as another one. */
async function startUpstream(context: TestContext, address: string, port: number): Promise<number> {
  const server = createServer((_request, response) => response.end(address));
  server.listen(port, address);
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

test(
  "requests follow a changed address without an error, and a failed lookup keeps the last one",
  { skip },
  async (context) => {
    const [before, after] = ["127.0.0.2", "127.0.0.3"];
    const port = await startUpstream(context, before, 0);
    await startUpstream(context, after, port);
    const hosts = join(makeFolder(context), "hosts");
    writeFileSync(hosts, before);
    const gate = await startGate(context, {
      runtime,
      config: { workers: 1, routes: [{ prefix: "/", target: `http://upstream.test:${port}` }] },
      env: { NODE_OPTIONS: `--import ${hook}`, TEST_HOSTS: hosts },
    });
    const ask = async (): Promise<string> => {
      const answer = await fetch(gate.url);
      assert.equal(answer.status, 200);
      return answer.text();
    };
    assert.equal(await ask(), before);
    writeFileSync(hosts, after);
    await waitFor(async () => (await ask()) === after, "the new address");
    writeFileSync(hosts, "");
    const line = await gate.waitForLine(({ msg }) => msg === "DNS lookup of an upstream failed");
    assert.equal(line["name"], "upstream.test");
    for (let count = 0; count < 20; count++) assert.equal(await ask(), after);
  },
);
