// The listener without TLS: programs on this machine reach routes and the gateway's own API beside a listener with TLS.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";
import { makeFolder, runtimes, spawnGate, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

for (const runtime of runtimes) {
  test(
    `${runtime.name}: routes and API without TLS, for this machine`,
    { skip },
    async (context) => {
      const folder = makeFolder(context);
      makeCertificate(folder, "cert", { names: "DNS:one.test" });
      const target = await serve(
        context,
        createServer((_request, response) => response.end("up")),
      );
      const gate = await startGate(context, {
        runtime,
        folder,
        config: {
          workers: runtime.name === "node" ? 2 : 1,
          tls_cert: join(folder, "cert.crt"),
          tls_key: join(folder, "cert.key"),
          local_addr: "127.0.0.1:0",
          auth_token: "operator-token",
          routes: [{ prefix: "/up", target, auth: { type: "none" } }],
        },
      });
      const local = `http://127.0.0.1:${gate.ports["local"]}`;
      assert.notEqual(gate.ports["local"], gate.ports["https"]);
      assert.equal((await fetch(`${local}/readyz`)).status, 200);
      assert.equal((await fetch(`${local}/up`)).status, 200);
      assert.equal((await fetch(`${local}/api/v1/routes`)).status, 401);
      const headers = { authorization: "Bearer operator-token" };
      const routes = await fetch(`${local}/api/v1/routes`, { headers });
      assert.equal(((await routes.json()) as object[]).length, 1);
      await assert.rejects(fetch(`http://127.0.0.1:${gate.port}/readyz`), "the main one has TLS");
      gate.signal("SIGTERM");
      assert.equal((await gate.ended).code, 0);
      await assert.rejects(fetch(`${local}/readyz`));
    },
  );
}

test("others cannot reach it, and without TLS there is none", async (context) => {
  const [runtime] = runtimes;
  const wide = spawnGate(context, { runtime: runtime!, config: { local_addr: "0.0.0.0:0" } });
  const { code, stderr } = await wide.ended;
  assert.equal(code, 2);
  assert.match(stderr, /local_addr.*expected an address of the loopback interface/);
  const plain = await startGate(context, {
    runtime: runtime!,
    config: { local_addr: "127.0.0.1:0" },
  });
  assert.deepEqual(Object.keys(plain.ports), ["http"]);
});
