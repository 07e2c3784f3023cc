// Two gateways that share their certificates through Redis: one order, and challenges that the other one answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { findRedisSkip, killRedis, startRedis } from "@platform/redis/testing";
import { pebbleSkip } from "@platform/testing/pebble";
import { waitFor } from "@platform/testing/wait";
import { request } from "node:https";
import { once } from "node:events";
import { connect } from "node:tls";
import { type GateProcess, makeEdgeFolder, prepareEdge, readPeer, startEdge } from "./edge.ts";

const skip = pebbleSkip === false ? findRedisSkip() : pebbleSkip;
const KEY = Buffer.alloc(32, 7).toString("base64url");

/** True if a session of one gateway is resumed at another one. */
async function isResumed(from: number, to: number, ca: string): Promise<boolean> {
  const options = { host: "127.0.0.1", servername: "one.test", ca };
  const socket = connect({ ...options, port: from });
  const [session] = (await once(socket, "session")) as [Buffer];
  socket.destroy();
  const again = connect({ ...options, port: to, session });
  await once(again, "secureConnect");
  const isReused = again.isSessionReused();
  again.destroy();
  return isReused;
}

/** Has a gateway order a new certificate now. */
async function renew(port: number, ca: string): Promise<void> {
  const asked = request({
    host: "127.0.0.1",
    port,
    servername: "one.test",
    ca,
    method: "POST",
    path: "/api/v1/admin/certificates/one.test/renew",
    headers: { Authorization: "Bearer token", "Content-Type": "application/json" },
    checkServerIdentity: () => undefined,
  }).end("{}");
  const [answer] = (await once(asked, "response")) as [{ statusCode: number; resume: () => void }];
  answer.resume();
  assert.ok(answer.statusCode < 300, String(answer.statusCode));
}

const count = (gate: GateProcess, msg: string): number =>
  gate.lines().filter((line) => line.msg === msg).length;

test(
  "one orders, both answer and get the certificate; without Redis each goes on",
  { skip },
  async (context) => {
    const redis = await startRedis(context, await findFreePort());
    const edge = await prepareEdge(context);
    const shared = {
      workers: 1,
      limits_redis_url: redis.url,
      cookie_keys: [KEY],
      auth_token: "token",
    };
    const names = { auto_tls_domain: ["one.test", "two.test"] };
    const [port, plainPort] = [await findFreePort(), await findFreePort()];
    const other = {
      ...edge,
      folder: makeEdgeFolder(context),
      config: { ...edge.config, addr: `127.0.0.1:${port}`, http_addr: `127.0.0.1:${plainPort}` },
    };
    // The authority validates at the first one, whoever orders.
    const first = await startEdge(context, edge, { ...shared, ...names });
    const second = await startEdge(context, other, { ...shared, ...names });
    const gates = [first, second];
    const sum = (msg: string): number => gates.reduce((total, gate) => total + count(gate, msg), 0);
    await waitFor(
      () => sum("certificate of another gateway adopted") === 2,
      () => JSON.stringify(gates.map((gate) => gate.lines())),
    );
    assert.equal(sum("certificate obtained"), 2);
    assert.equal(sum("cannot obtain a certificate"), 0);
    const root = await edge.pebble.readRoot();
    const readSerial = async (gate: { port: number }): Promise<string> =>
      (await readPeer(gate.port, "one.test", root)).serialNumber;
    const before = await readSerial(first);
    assert.equal(await readSerial(second), before);
    assert.equal(await isResumed(first.port, second.port, root), true);

    await renew(port, root);
    await waitFor(async () => (await readSerial(first)) !== before, "the renewed certificate");
    assert.equal(await readSerial(first), await readSerial(second));
    assert.equal(count(second, "cannot obtain a certificate"), 0);

    await killRedis(redis);
    await second.waitForLine(({ msg }) => /certificates are not shared: Redis/.test(msg));
    const common = await readSerial(first);
    assert.match(common, /^[0-9A-F]+$/);
    // Its own certificate meanwhile, which the other one takes over when Redis is back: the later start wins.
    await renew(first.port, root);
    await waitFor(async () => (await readSerial(first)) !== common, "a certificate without Redis");
    assert.equal(await readSerial(second), common);
    const newest = await readSerial(first);
    await startRedis(context, redis.port);
    await waitFor(
      async () => (await readSerial(second)) === newest,
      () => JSON.stringify(gates.map((gate) => gate.lines())),
    );
    assert.equal(await readSerial(first), newest);
  },
);
