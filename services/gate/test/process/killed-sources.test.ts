// Sources that are killed within an answer: the gateway goes on with what it has, and takes the change when they are back.
// Only a long form: PLATFORM_SOURCE_KILLS=all.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { connect } from "node:tls";
import { waitFor } from "@platform/testing/wait";
import { createCleanup } from "@platform/testing/cleanup";
import { makeFolder, runtimes, startGate, type GateProcess } from "../fixture/gate-process.ts";
import { openSources, type Sources, sourcesSkip } from "../fixture/sources.ts";

const isLong = process.env["PLATFORM_SOURCE_KILLS"] === "all";
const skip = isLong ? sourcesSkip : "PLATFORM_SOURCE_KILLS is not set";
const context = createCleanup();
after(() => context.run());

interface Stage extends Sources {
  gate: GateProcess & { ports: Record<string, number>; port: number };
  local: string;
}

let stage: Stage;

const CONFIG = {
  addr: "127.0.0.1:0",
  local_addr: "127.0.0.1:0",
  workers: 1,
  no_route_status: 502,
};

const describeRoutes = (prefix: string) => ({ routes: [{ prefix, target: "service://orders" }] });

before(async () => {
  if (skip !== false) return;
  const first = {
    remote: describeRoutes("/first"),
    urls: ["http://127.0.0.1:9"],
    config: CONFIG,
  };
  const sources = await openSources(context, makeFolder(context), first);
  sources.writeCertificate("first", "one.test");
  const { folder, env } = sources;
  const gate = await startGate(context, { runtime: runtimes[0]!, folder, env });
  stage = { ...sources, gate, local: `http://127.0.0.1:${gate.ports["local"]}` };
});

async function listRoutes(): Promise<string> {
  const answer = await fetch(`${stage.local}/api/v1/routes`);
  const routes = (await answer.json()) as {
    prefix: string;
    status: { targets: { url: string }[] };
  }[];
  return JSON.stringify(
    routes.map(({ prefix, status }) => [prefix, ...status.targets.map(({ url }) => url)]),
  );
}

async function readName(): Promise<string> {
  const place = { host: "127.0.0.1", port: stage.gate.port, servername: "one.test" };
  const socket = connect({ ...place, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return String(subject.CN);
}

async function pull(): Promise<number> {
  const answer = await fetch(`${stage.local}/api/v1/gitops/webhook`, { method: "POST" });
  await answer.arrayBuffer();
  return answer.status;
}

/** Each source: its change, what shows it, and what causes a read of it; the others are polled. */
const SOURCES: Record<
  keyof Sources["mortal"],
  { change: () => unknown; read: () => Promise<string>; ask?: () => Promise<unknown> }
> = {
  bucket: { change: () => stage.put(describeRoutes("/second")), read: listRoutes },
  discovery: {
    change: () => stage.documents.setUrls(["http://127.0.0.1:10"]),
    read: listRoutes,
  },
  secrets: {
    change: () => stage.writeCertificate("second", "one.test"),
    read: readName,
  },
  git: {
    change: () => stage.repository.push(JSON.stringify({ ...CONFIG, no_route_status: 404 })),
    read: async () => String((await fetch(`${stage.local}/unknown`)).status),
    ask: pull,
  },
};

for (const [name, { change, read, ask }] of Object.entries(SOURCES)) {
  test(
    `kill -9 of ${name} within an answer leaves the former state, until it is back`,
    { skip },
    async () => {
      const source = stage.mortal[name as keyof Sources["mortal"]];
      const before = await read();
      await source.kill();
      await source.start("hold");
      await change();
      await source.killWithinAnswer(ask ?? (() => Promise.resolve()));
      assert.equal(await read(), before);
      if (ask !== undefined) assert.equal(await pull(), 502);
      await source.start();
      if (ask !== undefined) assert.equal(await pull(), 200);
      await waitFor(
        async () => (await read()) !== before,
        () => JSON.stringify(stage.gate.lines()),
      );
      assert.equal((await fetch(`${stage.local}/readyz`)).status, 200);
    },
  );
}
