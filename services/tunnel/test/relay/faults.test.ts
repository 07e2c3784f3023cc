// Lines that are cut, clients that are stopped, relays that are killed: nothing hangs, and names come back.
// PLATFORM_TUNNEL_FAULT_SECONDS=60 is the long form: the line is cut for 10 s and longer, the client stopped for 60 s.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runProgram, startRelayProgram } from "../fixture/programs.ts";
import { startLine } from "../fixture/line.ts";
import {
  Cleanup,
  send,
  startLocal,
  startTestClient,
  startTestRelay,
  type PublicResponse,
} from "../fixture/stage.ts";

const cleanup = new Cleanup();
after(() => cleanup.run());

const longSeconds = Number(process.env["PLATFORM_TUNNEL_FAULT_SECONDS"] ?? 0);
const CUT_MS: readonly number[] = longSeconds > 0 ? [10_000, longSeconds * 1_000] : [5_000];
const STOP_MS = longSeconds > 0 ? longSeconds * 1_000 : 5_000;
const timeout = 120_000 + longSeconds * 4_000;
/** Time until a silent client is noticed: a ping after 2 s, an answer within 3 s, checked each second. */
const NOTICED_MS = 9_000;
const BACK_MS = 10_000;
/** A client that dialed into a cut line gives up after 10 s, and waits for up to half a second more. */
const BACK_AFTER_DIALING_MS = 16_000;

async function timed<T>(work: Promise<T>): Promise<{ result: T; ms: number }> {
  const startedMs = performance.now();
  const result = await work;
  return { result, ms: performance.now() - startedMs };
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Requests fail at once while the client is unreachable, until `untilMs`. */
async function expectRefusals(request: () => Promise<PublicResponse>, untilMs: number) {
  do {
    const { result, ms } = await timed(request());
    assert.equal(result.status, 502);
    // A request that waits takes as long as the client is away.
    assert.ok(ms < 4_000, `refused after ${ms} ms`);
    await wait(250);
  } while (performance.now() < untilMs);
}

for (const cutMs of CUT_MS) {
  test(
    `a line that is cut for ${cutMs / 1_000} s: requests get 502, and the tunnel serves again`,
    { timeout },
    async () => {
      const { port } = await startTestRelay(cleanup);
      const local = await startLocal(cleanup, (_request, response) => response.end("here"));
      const line = await startLine(cleanup, port);
      const subdomain = `cut-${cutMs}`;
      const client = await startTestClient(cleanup, {
        port: line.port,
        tunnels: [{ target: `127.0.0.1:${local}`, subdomain }],
      });
      const request = () => send({ port, host: `${subdomain}.localhost` });
      assert.equal((await request()).status, 200);

      line.cut();
      const cutAtMs = performance.now();
      const waiting = await timed(Promise.all(Array.from({ length: 20 }, request)));
      for (const { status } of waiting.result) assert.equal(status, 502);
      assert.ok(waiting.ms < NOTICED_MS, `noticed after ${waiting.ms} ms`);
      await expectRefusals(request, cutAtMs + cutMs);

      line.restore();
      const restoredMs = performance.now();
      const bound = cutMs > 25_000 ? BACK_AFTER_DIALING_MS : BACK_MS;
      while ((await request()).status !== 200) {
        assert.ok(performance.now() - restoredMs < bound, "the tunnel does not come back");
        await wait(50);
      }
      for (const grant of client.welcomes.flatMap(({ tunnels }) => tunnels)) {
        assert.ok("url" in grant && grant.subdomain === subdomain, JSON.stringify(grant));
      }
    },
  );
}

test(
  `a client that is stopped for ${STOP_MS / 1_000} s has its name back within 5 s`,
  { timeout },
  async () => {
    const relay = await startRelayProgram(cleanup, makeFolder(cleanup));
    const local = await startLocal(cleanup, (_request, response) => response.end("awake"));
    const url = `ws://127.0.0.1:${relay.port}/ws/connect`;
    const client = runProgram(
      cleanup,
      [`127.0.0.1:${local}`, "-s", "stopped", "-r", url, "-i", "0"],
      { PLATFORM_TUNNEL_DATA_DIR: makeFolder(cleanup) },
    );
    const request = () => send({ port: relay.port, host: "stopped.localhost" });
    // The program starts.
    await waitFor(async () => (await request()).status === 200, undefined, timeout);

    client.child.kill("SIGSTOP");
    const stoppedMs = performance.now();
    const first = await timed(request());
    assert.equal(first.result.status, 502);
    assert.ok(first.ms < NOTICED_MS, `noticed after ${first.ms} ms`);
    await expectRefusals(request, stoppedMs + STOP_MS);

    client.child.kill("SIGCONT");
    const continuedMs = performance.now();
    while ((await request()).status !== 200) {
      assert.ok(performance.now() - continuedMs < BACK_MS, "the name does not come back");
      await wait(50);
    }
  },
);

test("a relay that is killed during uploads, downloads and event streams ends all of them, and serves again", async () => {
  const folder = makeFolder(cleanup);
  const relay = await startRelayProgram(cleanup, folder);
  let openLocally = 0;
  const local = await startLocal(cleanup, (request, response) => {
    openLocally++;
    response.on("close", () => openLocally--);
    if (request.url === "/small") response.end("small");
    else if (request.method === "POST") request.resume();
    else response.write("the beginning");
  });
  const line = await startLine(cleanup, relay.port);
  await startTestClient(cleanup, {
    port: line.port,
    tunnels: [{ target: `127.0.0.1:${local}`, subdomain: "killed" }],
  });
  const { port } = relay;
  const host = "killed.localhost";
  const open = Array.from({ length: 10 }, (_, index) =>
    index % 2 === 0
      ? send({ port, host, path: "/endless" })
      : send({ port, host, method: "POST", body: Buffer.alloc(3_000_000) }),
  ).map((work) => work.then(() => "complete").catch(() => "broken off"));
  await waitFor(() => openLocally === open.length);

  relay.child.kill("SIGKILL");
  const { result, ms } = await timed(Promise.all(open));
  assert.deepEqual(new Set(result), new Set(["broken off"]));
  assert.ok(ms < 8_000, `ended after ${ms} ms`);
  await waitFor(() => openLocally === 0);
  await startRelayProgram(cleanup, folder, port);
  await waitFor(async () => {
    const answer = await send({ port, host, path: "/small" }).catch(() => undefined);
    return answer?.status === 200 && answer.body.toString() === "small";
  });
});
