// The gateway with few file descriptors: connections are shed before upstreams lack any, and a shortage has a name.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createServer, type RequestListener, type Server } from "node:http";
import { test, type TestContext } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { openClient, readMetric, type RawClient } from "../fixture/raw-client.ts";
import { serve } from "../fixture/serve.ts";

const skip = process.platform === "linux" ? false : "prlimit is a tool of Linux";
const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

async function startUpstream(
  context: TestContext,
  answer: RequestListener,
): Promise<{ server: Server; url: string }> {
  const server = createServer({ keepAliveTimeout: 120_000 }, answer);
  return { server, url: await serve(context, server) };
}

/** Changes the soft limit of a running process. */
function limitDescriptors(pid: number, soft: number, hard: number): void {
  execFileSync("prlimit", ["--pid", String(pid), `--nofile=${soft}:${hard}`]);
}

for (const runtime of runtimesOfRules) {
  test(
    `${runtime.name}: below the reserve clients get 503, probes are answered, others keep their upstreams`,
    { skip },
    async (context) => {
      const waiting: (() => void)[] = [];
      const { url: target } = await startUpstream(context, (_request, response) => {
        waiting.push(() => response.end("done"));
      });
      const config = {
        workers: 1,
        max_connections_per_address: 1_000,
        routes: [{ prefix: "/", target }],
      };
      const gate = await startGate(context, { runtime, config, descriptors: 200 });
      const warning = gate
        .lines()
        .find(({ msg }) => msg === "the file descriptor limit is too low for max_connections");
      assert.ok(warning !== undefined, "the start says that the limit is too low");
      assert.equal(warning["limit"], 200);
      assert.equal(warning["max_connections"], 20_000);
      const accepted = Number(warning["connections_accepted"]);
      assert.ok(accepted >= 40, `${accepted}`);

      const served: RawClient[] = [];
      while (served.length < accepted) served.push(await openClient(context, gate.port));
      for (const client of served) client.send(GET);
      await waitFor(() => waiting.length === accepted);

      const shed = await openClient(context, gate.port);
      shed.send(GET);
      const refused = await shed.expect(/\r\n\r\n\{.*\}$/s);
      assert.match(refused, /^HTTP\/1\.1 503 .*Retry-After: 1\r\n.*"code":"overloaded"/s);
      shed.send("GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n");
      await shed.expect(/^HTTP\/1\.1 200 /);
      // Beyond what is left for answers of that kind, connections are closed at once.
      const beyond: RawClient[] = [];
      for (let count = 0; count < accepted; count++) {
        beyond.push(await openClient(context, gate.port));
      }
      await waitFor(() => beyond.filter((client) => client.isClosed()).length > accepted / 2);
      shed.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
      await shed.expect(/^HTTP\/1\.1 200 /);

      for (const answer of waiting.splice(0)) answer();
      for (const client of served) await client.expect(/^HTTP\/1\.1 200 .*done$/s);
      for (const client of [...served, ...beyond, shed]) client.socket.destroy();
      await waitFor(async () => {
        const client = await openClient(context, gate.port);
        client.send(GET);
        await waitFor(
          () => waiting.length > 0 || client.isClosed() || client.text().includes(" 503 "),
        );
        for (const answer of waiting.splice(0)) answer();
        await waitFor(() => client.isClosed() || /(done|\})$/.test(client.text()));
        return client.text().endsWith("done");
      });
      assert.ok((await readMetric(gate.url, "platform_gate_shed_total")) > accepted / 2);
      assert.equal(await readMetric(gate.url, "platform_gate_descriptor_errors_total"), 0);
      assert.equal(await readMetric(gate.url, "platform_gate_bad_requests_total"), 0);
    },
  );

  test(
    `${runtime.name}: idle connections to other upstreams are closed before one needs their descriptors`,
    { skip },
    async (context) => {
      const answer: RequestListener = (_request, response) => {
        setTimeout(() => response.end("done"), 20);
      };
      const upstreams = await Promise.all(
        Array.from({ length: 6 }, () => startUpstream(context, answer)),
      );
      const config = {
        workers: 1,
        max_connections_per_address: 1_000,
        routes: upstreams.map(({ url }, index) => ({ prefix: `/${index}`, target: url })),
      };
      const gate = await startGate(context, { runtime, config, descriptors: 200 });
      const clients: RawClient[] = [];
      while (clients.length < 40) clients.push(await openClient(context, gate.port));
      for (const index of upstreams.keys()) {
        for (const client of clients) client.send(`GET /${index} HTTP/1.1\r\nHost: a\r\n\r\n`);
        for (const client of clients) await client.expect(/^HTTP\/1\.1 200 .*done$/s);
      }
      assert.equal(await readMetric(gate.url, "platform_gate_descriptor_errors_total"), 0);
    },
  );

  test(
    `${runtime.name}: a lack of descriptors is 503, logged and counted, and no fault of the upstream`,
    { skip: skip || (runtime.name === "bun" && "Bun reports EMFILE as ECONNREFUSED") },
    async (context) => {
      const { url: target } = await startUpstream(context, (_request, response) => {
        response.setHeader("Connection", "close").end("done");
      });
      const config = { workers: 1, routes: [{ prefix: "/", target }] };
      const gate = await startGate(context, { runtime, config, descriptors: 400 });
      const client = await openClient(context, gate.port);
      client.send(GET);
      await client.expect(/^HTTP\/1\.1 200 .*done$/s);

      limitDescriptors(gate.pid, 3, 400);
      client.send(GET);
      const refused = await client.expect(/\r\n\r\n\{.*\}$/s);
      limitDescriptors(gate.pid, 400, 400);
      assert.match(refused, /^HTTP\/1\.1 503 .*Retry-After: 1\r\n.*"code":"overloaded"/s);
      const line = await gate.waitForLine(({ msg }) => msg === "out of file descriptors");
      assert.equal(line["level"], "error");
      assert.equal(line["code"], "EMFILE");

      client.send(GET);
      await client.expect(/^HTTP\/1\.1 200 .*done$/s);
      assert.ok((await readMetric(gate.url, "platform_gate_descriptor_errors_total")) > 0);
      const text = await (await fetch(`${gate.url}/metrics`)).text();
      assert.match(text, /^platform_gate_upstream_errors_total\{.*\} 0$/m);
      assert.match(text, /^platform_gate_ejections_total 0$/m);
    },
  );
}
