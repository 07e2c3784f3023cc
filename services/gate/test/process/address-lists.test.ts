// Lists of client addresses on routes, inline and in files that change while the gateway runs.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request, type IncomingMessage } from "node:http";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { waitFor } from "@platform/testing/wait";
import {
  makeFolder,
  runtimes,
  runtimesOfRules,
  spawnGate,
  startGate,
} from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

async function startUpstream(context: TestContext): Promise<string> {
  const server = createServer((_request, response) => response.end("served"));
  return await serve(context, server);
}

async function askFrom(
  port: number,
  path: string,
  client: string,
): Promise<{ status: number; body: string }> {
  const headers = { "X-Forwarded-For": client };
  const sent = request({ host: "127.0.0.1", port, path, headers, agent: false }).end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let body = "";
  for await (const chunk of answer) body += String(chunk);
  return { status: answer.statusCode ?? 0, body };
}

for (const runtime of runtimesOfRules) {
  test(`lists refuse addresses, and a changed file applies within seconds (${runtime.name})`, async (context) => {
    const target = await startUpstream(context);
    const folder = makeFolder(context);
    const file = join(folder, "blocked.txt");
    const many = Array.from(
      { length: 100_000 },
      (_, at) => `2001:db8:${(at >> 8).toString(16)}:${(at & 255).toString(16)}::/64`,
    );
    writeFileSync(file, `# scanners\n203.0.113.0/25 # one network\n\n${many.slice(0, 1).join("")}`);
    const gate = await startGate(context, {
      runtime,
      folder,
      config: {
        workers: 1,
        trusted_proxies: ["127.0.0.0/8"],
        routes: [
          {
            prefix: "/inner",
            target,
            ip_allowlist: ["10.0.0.0/8", "2001:db8:ffff::/48"],
            ip_blocklist: ["10.9.0.1"],
          },
          { prefix: "/shop", target, ip_blocklist_file: file },
          { prefix: "/open", target },
        ],
      },
    });
    const statuses = async (path: string, clients: string[]): Promise<number[]> => {
      const answers = clients.map(
        async (client) => (await askFrom(gate.port, path, client)).status,
      );
      return Promise.all(answers);
    };
    const inner = ["10.1.2.3", "::ffff:10.1.2.3", "10.9.0.1", "192.0.2.1", "2001:db8:ffff::1"];
    assert.deepEqual(await statuses("/inner", inner), [200, 200, 403, 403, 200]);
    assert.deepEqual(await statuses("/open", ["192.0.2.1"]), [200]);
    const { body } = await askFrom(gate.port, "/inner", "192.0.2.1");
    assert.equal((JSON.parse(body) as { code: string }).code, "ip_blocked");

    const shop = ["203.0.113.5", "203.0.113.200", "2001:db8:7::1"];
    assert.deepEqual(await statuses("/shop", shop), [403, 200, 200]);
    writeFileSync(file, `203.0.113.128/25\n${many.join("\n")}\n`);
    await waitFor(
      async () => (await askFrom(gate.port, "/shop", "203.0.113.5")).status === 200,
      "the new list",
    );
    assert.deepEqual(await statuses("/shop", shop), [200, 403, 403]);

    writeFileSync(file, "not a network\n");
    const line = await gate.waitForLine(({ msg }) => msg.startsWith("reload refused"));
    assert.match(
      String(line["reason"]),
      /ip_blocklist_file .*"not a network" is not an IP address/,
    );
    assert.deepEqual(await statuses("/shop", shop), [200, 403, 403]);
  });
}

test("a start with a list that cannot be read names the route and the file", async (context) => {
  const gate = spawnGate(context, {
    runtime: runtimes[0]!,
    config: {
      routes: [
        { prefix: "/", target: "http://127.0.0.1:9", ip_allowlist_file: "/nonexistent/list" },
      ],
    },
  });
  gate.ready.catch(() => undefined);
  const { code, stderr, stdout } = await gate.ended;
  assert.equal(code, 1);
  assert.match(
    stderr + stdout,
    /route \/: ip_allowlist_file "\/nonexistent\/list" cannot be used: ENOENT/,
  );
});
