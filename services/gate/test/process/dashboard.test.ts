// `platform-gate dashboard` beside a real gateway: lines in a pipe, a screen in a terminal, and a gateway that goes away.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "@platform/kernel/testing";
import { waitFor } from "@platform/testing/wait";
import { runtimes, spawnGate } from "../fixture/gate-process.ts";
import { shareGate } from "../fixture/shared-gate.ts";

const TOKEN = "the-operator-token";
const MAIN = new URL("../../../../bin/platform-gate.js", import.meta.url).pathname;
const LINE = /^\S+Z requests=\S+\/s errors=\S+\/s p99=.+ circuits_open=\d+ .* attention=\d+$/;
/** Of util-linux; runs a program in a terminal of its own. */
const SCRIPT = "/usr/bin/script";

/** The address that it has again after a restart. */
const addr = `127.0.0.1:${await findFreePort()}`;
const shared = shareGate({
  runtime: runtimes[0]!,
  config: { workers: 1, auth_token: TOKEN, addr },
});

async function startTarget(context: TestContext): Promise<{ url: string; fail: () => void }> {
  let status = 200;
  const server = createServer((_request, response) => response.writeHead(status).end("x"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, fail: () => (status = 503) };
}

function dashboard(context: TestContext, url: string, args: string[] = [], token = TOKEN) {
  return spawnGate(context, {
    runtime: runtimes[0]!,
    args: ["dashboard", "--url", url, ...args],
    env: { PLATFORM_GATE_AUTH_TOKEN: token },
  });
}

test(
  "in a terminal it draws a screen that fits, and leaves the terminal as it was",
  { skip: existsSync(SCRIPT) ? false : "script is not installed" },
  async (context) => {
    const gate = await shared.use({ routes: [] });
    const run = `stty rows 12 cols 50; exec '${process.execPath}' '${MAIN}' dashboard --url ${gate.url}`;
    const child = spawn(SCRIPT, ["-qec", run, "/dev/null"], {
      env: { ...process.env, SHELL: "/bin/sh", PLATFORM_GATE_AUTH_TOKEN: TOKEN },
    });
    context.after(() => child.kill("SIGKILL"));
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    await waitFor(() => text.split("\u001b[H").length > 2, "a screen");
    await sleep(50);
    child.stdin.write("\u0003");
    const [code] = (await once(child, "exit")) as [number];
    assert.equal(code, 0, text);
    assert.ok(text.startsWith("\u001b[?1049h\u001b[?25l"));
    assert.ok(text.trimEnd().endsWith("\u001b[?25h\u001b[?1049l"), JSON.stringify(text.slice(-80)));
    const [, screen = ""] = text.split("\u001b[H");
    assert.match(screen, /latency {5}p50 .* p99/);
    assert.match(screen, /● nothing needs you/);
    // oxlint-disable-next-line no-control-regex -- the codes of the terminal
    const lines = screen.replaceAll(/\u001b\[[\d;?]*[A-Za-z]|\r/g, "").split("\n");
    assert.ok(lines.length <= 12);
    for (const line of lines) assert.ok(line.length <= 50, line);
  },
);

test("in a pipe, each update is a line with the figures and the open circuits", async (context) => {
  const target = await startTarget(context);
  const gate = await shared.use({
    routes: [
      { prefix: "/", target: target.url, circuit_breaker: { min_requests: 2, open_ms: 60_000 } },
    ],
  });
  target.fail();
  const ask = async (): Promise<void> => {
    const answer = await fetch(gate.url, { headers: { Authorization: `Bearer ${TOKEN}` } });
    await answer.arrayBuffer();
  };
  for (let at = 0; at < 5; at++) await ask();
  const { code, stdout, stderr } = await dashboard(context, gate.url, ["--updates", "7"]).ended;
  assert.equal(code, 0, stderr);
  const lines = stdout.trimEnd().split("\n");
  assert.equal(lines.length, 7);
  for (const line of lines) assert.match(line, LINE);
  assert.match(lines.at(-1)!, /circuits_open=1 circuits_half_open=0 .* attention=1$/);
  assert.ok(!stdout.includes("\u001b"));
});

test("a wrong token, and an address where no gateway is, end it with the reason", async (context) => {
  const target = await startTarget(context);
  const gate = await shared.use({ routes: [] });
  const refused = await dashboard(context, gate.url, [], "wrong").ended;
  assert.deepEqual([refused.code, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /needs a token: set PLATFORM_GATE_AUTH_TOKEN/);
  const nowhere = `http://127.0.0.1:${await findFreePort()}`;
  const alone = await dashboard(context, nowhere).ended;
  assert.deepEqual([alone.code, alone.stdout], [1, ""]);
  assert.match(alone.stderr, /nothing listens at .*: start the gateway, or use --url/);
  const other = await dashboard(context, target.url).ended;
  assert.equal(other.code, 1);
  assert.match(other.stderr, /is it the address of a gateway\?/);
});

test("a gateway that goes away is waited for", { timeout: 120_000 }, async (context) => {
  const first = await shared.use({ routes: [] });
  const child = spawn(process.execPath, [MAIN, "dashboard", "--url", first.url], {
    env: { ...process.env, PLATFORM_GATE_AUTH_TOKEN: TOKEN },
  });
  context.after(() => child.kill("SIGKILL"));
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  await waitFor(() => /requests=/.test(text), "an update");
  first.signal("SIGKILL");
  await waitFor(() => /no updates since/.test(text), "the loss");
  text = "";
  await shared.restart();
  await waitFor(() => /requests=/.test(text), "an update of the next gateway");
  child.kill("SIGINT");
  assert.deepEqual(await once(child, "exit"), [0, null]);
});
