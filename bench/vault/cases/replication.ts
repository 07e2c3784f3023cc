// Replication to a second store on loopback, and reads of its buckets through ours, beside a client that copies and reads there.
import { setTimeout as sleep } from "node:timers/promises";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { Row } from "../../harness/report.ts";
import { CREDENTIALS } from "../presign.ts";
import { makePlatformVaultd } from "../stores/platform-vaultd.ts";
import type { ObjectStore } from "../stores/store.ts";
import { type Ask, inLanes, LANES, openTwoStores, time } from "../two-stores.ts";

const KIB = 2 ** 10;
const OBJECTS = 3_000;
const PACED = { perS: 200, seconds: 8, sampleEvery: 8 };
const READS = 3_000;
const VERSIONED = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";

/** A second store of the same build as the destination. */
export const replication: BenchCase = {
  name: "replication",
  title: "A second copy in a second store",
  isOptional: true,
  run: async (context) => {
    const rows: Row[] = [];
    for (const build of context.builds) {
      const store = makePlatformVaultd(build);
      const absence = store.explainAbsence();
      const ours: Row = { name: store.name, isOurs: true, version: "", rounds: [] };
      const other: Row = {
        name: `direct (${build.label})`,
        isOurs: false,
        version: "",
        rounds: [],
      };
      rows.push(ours, other);
      if (absence === undefined) {
        ours.version = store.readVersion();
        const { replicated, client } = await measure(context, store);
        ours.rounds.push(replicated);
        other.rounds.push(client);
      } else ours.note = absence;
    }
    const against = `direct (${context.builds[0]!.label})`;
    return {
      work: `${OBJECTS} objects of 4 KiB, put in ${LANES} lanes, until the last one is there; a sample of objects that are put at ${PACED.perS}/s, from their answer until they are there; and GETs of 64 KiB of a federated bucket in ${LANES} lanes. "Direct" is a client with ${LANES} lanes that puts the same objects into both stores, or reads there. One round; both stores and the load share the cores.`,
      columns: [
        { key: "sentPerS", title: "objects/s", digits: 0 },
        { key: "lagMs", title: "lag p99 at 200/s, ms", digits: 0 },
        { key: "readsPerS", title: "64 KiB GET/s", digits: 0 },
      ],
      rows,
      ratioColumns: ["sentPerS", "readsPerS"],
      goals: [{ column: "readsPerS", against, atLeast: 0.5 }],
    };
  },
};

async function measure(context: BenchContext, store: ObjectStore) {
  await using workspace = new Workspace();
  const { near, far } = await openTwoStores(context, store, workspace);
  const { accessKey: access_key, secretKey: secret_key } = CREDENTIALS;
  const json = { headers: { "content-type": "application/json" } };
  const post = (path: string, body: object) =>
    near.admin("POST", path, {}, { ...json, body: JSON.stringify(body) });
  await post("/admin/remotes", { name: "far", endpoint: far.origin, access_key, secret_key });
  for (const { ask } of [near, far]) {
    await ask("PUT", "/sent");
    await ask("PUT", "/sent", { versioning: "" }, { body: VERSIONED });
  }
  for (const { ask } of [near, far]) await ask("PUT", "/copied");
  const keys = Array.from({ length: OBJECTS }, (_, index) => `/sent/${index}`);
  const body = new Uint8Array(4 * KIB);
  const copiedMs = await time(() =>
    inLanes(keys, async (key) => {
      await near.ask("PUT", key.replace("/sent/", "/copied/"), {}, { body });
      await far.ask("PUT", key.replace("/sent/", "/copied/"), {}, { body });
    }),
  );
  await near.ask("PUT", "/sent", { replication: "" }, { body: describeRule() });
  const sentMs = await time(async () => {
    await inLanes(keys, async (key) => {
      await near.ask("PUT", key, {}, { body });
    });
    await waitForCount(near.ask, OBJECTS);
  });
  const lagMs = await measureLag(near.ask, far.ask);
  const [federated, direct] = await measureReads(post, near.ask, far.ask);
  return {
    replicated: { sentPerS: (OBJECTS * 1_000) / sentMs, lagMs, readsPerS: federated },
    client: { sentPerS: (OBJECTS * 1_000) / copiedMs, readsPerS: direct },
  };
}

function describeRule(): string {
  return (
    "<ReplicationConfiguration><Role></Role><Rule><ID>r</ID><Priority>1</Priority><Status>Enabled</Status>" +
    "<Filter><Prefix></Prefix></Filter><DeleteMarkerReplication><Status>Enabled</Status></DeleteMarkerReplication>" +
    "<Destination><Bucket>arn:objstore:replication::far:sent</Bucket></Destination></Rule></ReplicationConfiguration>"
  );
}

async function waitForCount(ask: Ask, count: number): Promise<void> {
  for (;;) {
    const answer = await ask("GET", "/sent", { replication: "", status: "true" });
    const { rules } = (await answer.json()) as { rules: { completed: number; failed: number }[] };
    if (rules[0]!.failed > 0) throw new Error(JSON.stringify(rules));
    if (rules[0]!.completed >= count) return;
    await sleep(50);
  }
}

async function measureLag(near: Ask, far: Ask): Promise<number> {
  const body = new Uint8Array(4 * KIB);
  const lags: Promise<number>[] = [];
  const begun = performance.now();
  const puts: Promise<unknown>[] = [];
  for (let index = 0; index < PACED.perS * PACED.seconds; index += 1) {
    const waitMs = begun + (index * 1_000) / PACED.perS - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    const key = `/sent/paced-${index}`;
    const put = near("PUT", key, {}, { body });
    puts.push(put);
    if (index % PACED.sampleEvery === 0) lags.push(put.then(() => waitForArrival(far, key)));
  }
  await Promise.all(puts);
  const sorted = (await Promise.all(lags)).sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.99) - 1]!;
}

function waitForArrival(far: Ask, key: string): Promise<number> {
  return time(async () => {
    for (;;) {
      const isThere = await far("HEAD", key).then(
        () => true,
        () => false,
      );
      if (isThere) return;
      await sleep(5);
    }
  });
}

async function measureReads(
  post: (path: string, body: object) => Promise<Response>,
  near: Ask,
  far: Ask,
): Promise<[federated: number, direct: number]> {
  await post("/admin/federation", { prefix: "far-", remote: "far" });
  await far("PUT", "/far-data");
  await far("PUT", "/far-data/a", {}, { body: new Uint8Array(64 * KIB) });
  const keys = Array.from({ length: READS }, () => "/far-data/a");
  const readAll = (ask: Ask): Promise<void> =>
    inLanes(keys, async (key) => {
      await (await ask("GET", key)).arrayBuffer();
    });
  const read = async (ask: Ask): Promise<number> => {
    // Programs are measured when they are warm, as in all other cases.
    await readAll(ask);
    return (READS * 1_000) / (await time(() => readAll(ask)));
  };
  const direct = await read(far);
  return [await read(near), direct];
}
