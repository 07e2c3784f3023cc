// kill -9 of the source at each request to the destination, and a destination that dies at each: afterwards every acknowledged
// version is there once, byte-equal. VAULT_REPLICATION_KILLS=all adds 50 kills at random moments under load.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request as sendHttp } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { LyingS3 } from "@platform/testing/lying-s3";
import { waitFor } from "@platform/testing/wait";
import { makeBytes } from "../store/fixture.ts";
import {
  addRemote,
  makeBucket,
  replicate,
  requireSame,
  settle,
  startTwoStores,
  type TwoStores,
} from "./stores.ts";

const VERSIONED = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
const isLong = process.env["VAULT_REPLICATION_KILLS"] === "all";

let stores: TwoStores;

before(async () => {
  stores = await startTwoStores();
});
after(() => stores[Symbol.asyncDispose]());

test("kill -9 at each request to a foreign store neither loses a version nor sends it twice", async () => {
  const { near } = stores;
  await using other = await LyingS3.start();
  other.settings.set("versioning", VERSIONED);
  await addRemote(near, "other", other.endpoint);
  await makeBucket(near, "killed");
  await replicate(near, "killed", "other");
  const versions = new Map<string, number>();
  for (const step of isLong ? [1, 2, 3] : [1, 2]) {
    for (const isBefore of [true, false]) {
      const key = `k${step}${isBefore}`;
      let count = 0;
      let killing: Promise<void> | undefined;
      other.judge = async ({ method, key: seen }) => {
        if (seen !== key) return undefined;
        count += 1;
        if (count === step && killing === undefined) {
          killing = near.vault.kill();
          if (isBefore) await killing;
          if (isBefore) return { kind: "refuse", status: 500, code: "InternalError" };
        }
        if (method === "PUT") versions.set(key, (versions.get(key) ?? 0) + 1);
        return undefined;
      };
      await near.s3.must("PUT", `/killed/${key}`, { body: `body of ${key}` });
      await waitFor(() => killing !== undefined, "the request", 2_000).catch(() => undefined);
      await (killing ?? near.vault.kill());
      await near.vault.start();
      await settle(near, "killed");
      assert.equal(versions.get(key), 1, `${key} was stored once`);
      assert.equal(other.objects.get(`killed/${key}`)?.bytes.toString(), `body of ${key}`);
    }
  }
});

test("kill -9 of either store under load loses no version and makes none twice", async () => {
  const { near, far } = stores;
  await makeBucket(near, "load");
  await makeBucket(far, "load");
  await replicate(near, "load", "far");
  const body = makeBytes(60_000);
  const over = new AbortController();
  let acknowledged = 0;
  const writers = [1, 2, 3].map(async (writer) => {
    for (let n = 0; !over.signal.aborted; n += 1) {
      const target = `/load/${writer}-${n % 7}`;
      const sent =
        n % 5 === 4
          ? near.s3.must("DELETE", target)
          : near.s3.must("PUT", target, { body: n % 3 === 0 ? body : "x" });
      const isDone = await sent.then(
        () => true,
        () => false,
      );
      if (isDone) acknowledged += 1;
      else await sleep(20);
    }
  });
  for (let kill = 0; kill < (isLong ? 50 : 2); kill += 1) {
    const before = acknowledged;
    await waitFor(() => acknowledged > before + 5, "some writes");
    await sleep(Math.random() * 50);
    const { vault } = kill % 2 === 0 ? near : far;
    await vault.kill();
    await vault.start();
  }
  over.abort();
  await Promise.all(writers);
  await settle(near, "load");
  await requireSame(near, far, "load");
});

test("a destination that dies at each step of an object of parts gets it whole, once", async () => {
  const { near } = stores;
  await using other = await LyingS3.start();
  other.settings.set("versioning", VERSIONED);
  await addRemote(near, "dying", other.endpoint);
  await makeBucket(near, "steps");
  await replicate(near, "steps", "dying");
  for (const step of [1, 2, 3]) {
    let count = 0;
    other.judge = () => {
      count += 1;
      return count === step ? { kind: "drop" } : undefined;
    };
    const { text } = await near.s3.must("POST", `/steps/${step}?uploads`);
    const upload = /<UploadId>(.*?)</.exec(text)![1]!;
    const part = await near.s3.must("PUT", `/steps/${step}?uploadId=${upload}&partNumber=1`, {
      body: `step ${step}`,
    });
    await near.s3.must("POST", `/steps/${step}?uploadId=${upload}`, {
      body: `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${String(part.headers["etag"])}</ETag></Part></CompleteMultipartUpload>`,
    });
    await settle(near, "steps");
    assert.equal(other.objects.get(`steps/${step}`)?.bytes.toString(), `step ${step}`);
  }
});

/** A proxy of a store that calls `judge` before and after each request. */
async function startProxy(
  target: string,
  judge: (isBefore: boolean) => Promise<void>,
): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer((request, answer) => {
    void (async () => {
      await judge(true);
      const { method, url, headers } = request;
      const passed = sendHttp(`${target}${url}`, { method, headers });
      request.pipe(passed);
      const [reply] = (await once(passed, "response")) as [IncomingMessage];
      const body: Buffer[] = [];
      for await (const chunk of reply) body.push(chunk as Buffer);
      await judge(false);
      answer.writeHead(reply.statusCode!, reply.headers).end(Buffer.concat(body));
    })().catch(() => answer.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type Change = (key: string) => Promise<unknown>;

/** Changes of a version that is there, or of none, and the requests to the destination that are their steps. */
const CHANGES: readonly (readonly [name: string, steps: readonly number[], change: Change])[] = [
  ["an object", [1, 2], (key) => stores.near.s3.must("PUT", `/each/${key}`, { body: "new" })],
  ["an object of parts", [2, 1, 3, 4], putInParts],
  ["a delete marker", [1, 2], (key) => stores.near.s3.must("DELETE", `/each/${key}`)],
  [
    "tags and a legal hold",
    [2, 1],
    async (key) => {
      await stores.near.s3.must("PUT", `/each/${key}?tagging`, {
        body: "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>",
      });
      await stores.near.s3.must("PUT", `/each/${key}?legal-hold`, {
        body: "<LegalHold><Status>ON</Status></LegalHold>",
      });
    },
  ],
];

async function putInParts(key: string): Promise<void> {
  const { s3 } = stores.near;
  const { text } = await s3.must("POST", `/each/${key}?uploads`);
  const id = /<UploadId>(.*?)</.exec(text)![1]!;
  const put = await s3.must("PUT", `/each/${key}?uploadId=${id}&partNumber=1`, { body: key });
  const part = `<Part><PartNumber>1</PartNumber><ETag>${String(put.headers["etag"])}</ETag></Part>`;
  const body = `<CompleteMultipartUpload>${part}</CompleteMultipartUpload>`;
  await s3.must("POST", `/each/${key}?uploadId=${id}`, { body });
}

test("kill -9 at each request about any change loses nothing, and makes nothing twice", async () => {
  const { near, far } = stores;
  let onRequest = async (_isBefore: boolean): Promise<void> => undefined;
  await using proxy = await startProxy(far.vault.url, (isBefore) => onRequest(isBefore));
  await addRemote(near, "proxied", proxy.url);
  for (const store of [near, far]) await makeBucket(store, "each", true);
  await replicate(near, "each", "proxied");
  for (const [name, steps, change] of CHANGES) {
    for (const step of isLong ? steps : steps.slice(0, 1)) {
      for (const isBefore of isLong ? [true, false] : [false]) {
        const key = `${name}-${step}-${isBefore}`.replaceAll(" ", "-");
        await near.s3.must("PUT", `/each/${key}`, { body: "first" });
        await settle(near, "each");
        let count = 0;
        let killing: Promise<void> | undefined;
        onRequest = async (isNow) => {
          if (isNow) count += 1;
          if (count !== step || isNow !== isBefore || killing !== undefined) return;
          killing = near.vault.kill();
          await killing;
        };
        await change(key).catch(() => undefined);
        await waitFor(() => killing !== undefined, "the request", 2_000).catch(() => undefined);
        await (killing ?? near.vault.kill());
        onRequest = async () => undefined;
        await near.vault.start();
        await settle(near, "each");
        await requireSame(near, far, "each");
        const [one, other] = await Promise.all(
          [near, far].map(({ s3 }) => s3.send("HEAD", `/each/${key}`)),
        );
        for (const field of ["etag", "x-amz-tagging-count", "x-amz-object-lock-legal-hold"])
          assert.equal(other!.headers[field], one!.headers[field], `${key}: ${field}`);
      }
    }
  }
});
