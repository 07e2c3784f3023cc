// Clients that disconnect at any stage of a request: all their resources are freed, including upstream connections.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import {
  ask,
  openRaw,
  startUpstream,
  type RawClient,
  type RawUpstream,
} from "../../packages/http1/test/rig/raw.ts";
import { countOpenFiles, readMetric, RUNTIMES, skipRuntime } from "../stage/gateway-state.ts";
import { Stage, type StagedGateway } from "../stage/stage.ts";

const CLIENTS = 10;
const UPSTREAM_CONNECTIONS_MAX = 100;
const WAITING_CLIENTS = 50;
/** Generous, for busy machines. */
const SETTLE_TIMEOUT_MS = 30_000;
/** The gateway counts its connections once a second; polling more often would dominate the counts. */
const HOLDINGS_EVERY_MS = 250;
const HOST = "Host: a.example\r\n";
const UPGRADE = `${HOST}Connection: Upgrade\r\nUpgrade: echo\r\n\r\n`;
const SOUND_REQUEST = `GET /sound HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`;
const SOUND = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsound";

/** A stage at which clients disconnect. */
interface Vanishing {
  readonly stage: string;
  /** Bytes sent by each client; the path is unique to this stage. */
  readonly sends: string;
  /** The path, if the request reaches the upstream before its client disconnects. */
  readonly reaches?: string;
  /** Received bytes of each client before it disconnects. */
  readonly gets?: string;
}

const VANISHINGS: readonly Vanishing[] = [
  { stage: "before a word", sends: "" },
  { stage: "in the head", sends: `GET /head HTTP/1.1\r\n${HOST}X-Cut: ` },
  {
    stage: "in a body with a length",
    sends: `POST /length HTTP/1.1\r\n${HOST}Content-Length: 1000\r\n\r\nhalf`,
    reaches: "/length",
  },
  {
    stage: "in a chunked body",
    sends: `POST /chunked HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n`,
    reaches: "/chunked",
  },
  {
    stage: "while it waits for an answer",
    sends: `GET /silent HTTP/1.1\r\n${HOST}\r\n`,
    reaches: "/silent",
  },
  {
    stage: "with further requests behind the one that is answered",
    sends: `GET /pipelined HTTP/1.1\r\n${HOST}\r\n`.repeat(20),
    reaches: "/pipelined",
  },
  {
    stage: "in an answer that it does not read",
    sends: `GET /endless HTTP/1.1\r\n${HOST}\r\n`,
    reaches: "/endless",
    gets: "\r\n\r\n",
  },
  {
    stage: "in a stream of events",
    sends: `GET /events HTTP/1.1\r\n${HOST}\r\n`,
    reaches: "/events",
    gets: "data: 1\n\n",
  },
  {
    stage: "in an upgrade that is not answered",
    sends: `GET /upgrade-silent HTTP/1.1\r\n${UPGRADE}`,
    reaches: "/upgrade-silent",
  },
  {
    stage: "in an upgraded connection",
    sends: `GET /upgrade HTTP/1.1\r\n${UPGRADE}`,
    reaches: "/upgrade",
    gets: "welcome",
  },
];

for (const runtime of RUNTIMES) {
  describe(
    `clients that disconnect, the gateway on ${runtime}`,
    { skip: skipRuntime(runtime) },
    () => {
      const stage = new Stage();
      let upstream: RawUpstream;
      let gateway: StagedGateway;
      let openFiles: number;

      before(async () => {
        upstream = await startUpstream(answer);
        gateway = await stage.startGateway(
          [{ prefix: "/", target: `http://127.0.0.1:${upstream.port}` }],
          { workers: 1, max_upstream_connections: UPSTREAM_CONNECTIONS_MAX },
          { PLATFORM_RUNTIME: runtime },
        );
        await ask(gateway.port, SOUND_REQUEST);
        await waitForRest();
        openFiles = countOpenFiles(gateway);
      });
      after(async () => {
        await upstream.stop();
        await stage[Symbol.asyncDispose]();
      });

      test("at any stage, by close or reset: their resources are freed", async () => {
        const clients = await Promise.all(VANISHINGS.map((vanishing) => openClients(vanishing)));
        const { underWay, webSockets } = await waitForHoldings(
          ({ connections: count }) => count >= VANISHINGS.length * CLIENTS,
        );
        assert.equal(
          underWay,
          VANISHINGS.filter(({ reaches }) => reaches !== undefined).length * CLIENTS,
        );
        assert.equal(webSockets, CLIENTS);
        leaveAll(clients.flat());
        for (const { stage: name, reaches } of VANISHINGS) {
          if (reaches === undefined) continue;
          const isFreed = (): boolean => listReached(reaches).every(({ closed }) => closed);
          await settle(isFreed, `${name}: closed connections to the upstream`);
        }
        await waitForRest();
        await settle(() => countOpenFiles(gateway) <= openFiles, `${openFiles} open files`);
      });

      test("in the queue for an upstream connection: the next in the queue takes their place", async () => {
        const request = `GET /queued HTTP/1.1\r\n${HOST}\r\n`;
        const ahead = await Promise.all(
          Array.from({ length: UPSTREAM_CONNECTIONS_MAX }, () => openClient(request)),
        );
        await settle(() => listReached("/queued").length === ahead.length, "a busy upstream");
        const waiting = await Promise.all(
          Array.from({ length: WAITING_CLIENTS }, () => openClient(request)),
        );
        await waitForHoldings(({ connections }) => connections >= ahead.length + waiting.length);
        const last = ask(gateway.port, SOUND_REQUEST);
        leaveAll(waiting);
        leaveAll(ahead);
        assert.match(await last, /^HTTP\/1\.1 200 [^]*sound$/);
        await settle(() => listReached("/queued").every(({ closed }) => closed), "a free upstream");
        await waitForRest();
        await settle(() => countOpenFiles(gateway) <= openFiles, `${openFiles} open files`);
      });

      async function openClients({ sends, reaches, gets = "" }: Vanishing): Promise<RawClient[]> {
        const clients = await Promise.all(Array.from({ length: CLIENTS }, () => openClient(sends)));
        for (const client of clients) {
          await client.untilText(gets);
          if (reaches === "/endless") client.socket.pause();
        }
        if (reaches !== undefined) {
          await settle(() => listReached(reaches).length === CLIENTS, `${reaches} at the upstream`);
        }
        return clients;
      }

      async function openClient(sends: string): Promise<RawClient> {
        const client = await openRaw(gateway.port);
        client.socket.write(sends);
        return client;
      }

      function listReached(path: string): RawClient[] {
        return upstream.connections.filter(({ text }) => text.includes(` ${path} HTTP/1.1\r\n`));
      }

      /** The gateway has no connections except the polling one. */
      async function waitForRest(): Promise<void> {
        await waitForHoldings(
          ({ connections, underWay, webSockets }) =>
            connections <= 1 && underWay === 0 && webSockets === 0,
        );
      }

      /** Polls the gateway's counters until they match. */
      async function waitForHoldings(fits: (holdings: Holdings) => boolean): Promise<Holdings> {
        let holdings: Holdings | undefined;
        await settle(
          async () => {
            const isFitting = fits((holdings = await readHoldings(gateway)));
            if (!isFitting) await sleep(HOLDINGS_EVERY_MS);
            return isFitting;
          },
          () => `what it should hold; it holds ${JSON.stringify(holdings)}`,
        );
        return holdings!;
      }
    },
  );
}

interface Holdings {
  connections: number;
  underWay: number;
  webSockets: number;
}

async function readHoldings(gateway: StagedGateway): Promise<Holdings> {
  const response = await fetch(`${gateway.url}/api/v1/admin/connections`, {
    headers: { connection: "close" },
  });
  const byUpstream = (await response.json()) as Record<string, number>;
  return {
    connections: await readMetric(gateway, "platform_gate_connections_active"),
    underWay: Object.values(byUpstream).reduce((sum, count) => sum + count, 0),
    webSockets: await readMetric(gateway, "platform_gate_websockets_active"),
  };
}

/** One half of the clients closes, the other resets. */
function leaveAll(clients: readonly RawClient[]): void {
  for (const [index, { socket }] of clients.entries()) {
    if (index % 2 === 0) socket.destroy();
    else socket.resetAndDestroy();
  }
}

/** Responds by path; requests without a response stay open. */
function answer({ socket, text }: RawClient): void {
  const path = / (\S+) HTTP\/1\.1\r\n/.exec(text.slice(text.lastIndexOf(" /")))?.[1];
  if (path === "/sound") socket.write(SOUND);
  if (path === "/endless") {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    socket.write(Buffer.alloc(8_000_000));
  }
  if (path === "/events") {
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n");
  }
  if (path === "/upgrade") {
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
    );
    socket.write("welcome");
  }
}

async function settle(
  holds: () => boolean | Promise<boolean>,
  what: string | (() => string),
): Promise<void> {
  await waitFor(holds, what, SETTLE_TIMEOUT_MS);
}
