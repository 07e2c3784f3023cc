// The inspector of the client as a program.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runProgram, startRelayProgram } from "../fixture/programs.ts";
import { Cleanup, send, startLocal } from "../fixture/stage.ts";

const cleanup = new Cleanup();
after(() => cleanup.run());

test("the client names its inspector, which shows its requests and ends with it", async () => {
  const relay = await startRelayProgram(cleanup, makeFolder(cleanup));
  const local = await startLocal(cleanup, (_request, response) => response.end("hello"));
  const client = runProgram(
    cleanup,
    ["client", `127.0.0.1:${local}`, "-s", "seen", "-r", `ws://127.0.0.1:${relay.port}/ws/connect`],
    { PLATFORM_TUNNEL_DATA_DIR: makeFolder(cleanup) },
  );
  await waitFor(() => /inspector http:\/\/127\.0\.0\.1:\d+/.test(client.out()));
  const port = Number(/inspector http:\/\/127\.0\.0\.1:(\d+)/.exec(client.out())?.[1]);
  assert.ok(port >= 4_040);
  const host = `127.0.0.1:${port}`;
  const page = await send({ port, host });
  assert.match(page.body.toString(), /Tunnel inspector/);
  await send({ port: relay.port, host: "seen.localhost", path: "/captured" });
  const api = await send({
    port: relay.port,
    host: `localhost:${relay.port}`,
    path: "/api/v1/tunnels",
  });
  const { tunnels } = JSON.parse(api.body.toString()) as { tunnels: { id: string }[] };
  const path = `/api/tunnels/${tunnels[0]?.id}/requests`;
  const { requests } = JSON.parse((await send({ port, host, path })).body.toString()) as {
    requests: { path: string }[];
  };
  assert.deepEqual(
    requests.map((request) => request.path),
    ["/captured"],
  );
  client.child.kill("SIGTERM");
  assert.equal(await client.exit, 0);
  await assert.rejects(send({ port, host }));
});

test("with --inspect-port 0 there is none", async () => {
  const client = runProgram(
    cleanup,
    ["client", "127.0.0.1:9", "-i", "0", "--json", "-r", "ws://127.0.0.1:9/ws/connect"],
    { PLATFORM_TUNNEL_DATA_DIR: makeFolder(cleanup) },
  );
  await waitFor(() => client.out().includes("disconnected"));
  assert.doesNotMatch(client.out(), /inspector/);
});
