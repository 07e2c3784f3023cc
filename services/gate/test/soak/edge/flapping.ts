// Sources that change, break, die and return all the time.
import assert from "node:assert/strict";
import type { Sources } from "../../fixture/sources.ts";
import { waitFor } from "@platform/testing/wait";
import { waits } from "../scene.ts";
import type { Outages } from "../tally.ts";
import { SECRET_NAME } from "./load.ts";

/** Numbers of changes and deaths so far. */
export class FlapCounts {
  addresses = 0;
  empties = 0;
  documents = 0;
  certificates = 0;
  pulls: Record<string, number> = {};
  deaths: Record<string, number> = {};
}

/** Parts that every flapping needs. */
export interface Flapping {
  sources: Sources;
  counts: FlapCounts;
  over: AbortSignal;
}

const ADDRESSES_EVERY_MS = 1_000;
/** One document in so many is broken; one in so many has a service without an address. */
const BROKEN_EVERY = 5;
const EMPTY_EVERY = 21;
/** Longer than the gateway needs to read the document: a service has no address for it, too. */
const EMPTY_MS = 7_000;
const BUCKET_EVERY_MS = 1_500;
const CERTIFICATE_EVERY_MS = 5_000;
/** Each of them starts the gateway's program, which checks the commit. */
const PULL_EVERY_MS = 15_000;
const DEATH_EVERY_MS = 3_000;
const DEATH_MS = 800;
const SECRET_FAULTS = [
  { status: 403, body: '{"errors":["permission denied"]}' },
  { status: 200, body: "<html>sign in</html>" },
  { status: 500, body: "" },
];

/** Moves the service between two upstreams, and sometimes to none; `countAddresses` reads what the gateway has. */
export async function flapAddresses(
  { sources: { documents }, counts, over }: Flapping,
  urls: readonly [string, string],
  { empty, countAddresses }: { empty: Outages; countAddresses: () => Promise<number> },
): Promise<void> {
  for (let turn = 1; await waits(ADDRESSES_EVERY_MS, over); turn++) {
    if (turn % EMPTY_EVERY === 0) {
      empty.begin();
      documents.setUrls([]);
      counts.empties++;
      await waits(EMPTY_MS, over);
      documents.setUrls(urls);
      // The endpoint may be dead at that time.
      await waitFor(async () => over.aborted || (await countAddresses()) > 0, "the addresses");
      empty.end();
    } else if (turn % BROKEN_EVERY === 0) documents.setText('{"services": ');
    else documents.setUrls([[urls[0]], [urls[1]], urls][turn % 3]!);
    counts.addresses++;
  }
}

/** Writes documents, some of which are not valid. */
export async function flapBucket(
  { sources, counts, over }: Flapping,
  describe: (turn: number) => object,
): Promise<void> {
  for (let turn = 1; await waits(BUCKET_EVERY_MS, over); turn++) {
    await sources.put(turn % BROKEN_EVERY === 0 ? '{"routes": [{"prefix": ' : describe(turn));
    counts.documents++;
  }
}

/** Writes certificates; at times, the service answers something else. */
export async function flapSecrets({ sources, counts, over }: Flapping): Promise<void> {
  for (let turn = 1; await waits(CERTIFICATE_EVERY_MS, over); turn++) {
    sources.secrets.fail(SECRET_FAULTS[turn % (SECRET_FAULTS.length + 1)]);
    sources.writeCertificate(`turn-${turn % 2}`, SECRET_NAME);
    counts.certificates++;
  }
  sources.secrets.fail(undefined);
}

/** Pushes commits, some of which are not valid, and calls the webhook. */
export async function flapRepository(
  { sources: { repository }, counts, over }: Flapping,
  webhook: string,
  config: object,
): Promise<void> {
  for (let turn = 1; await waits(PULL_EVERY_MS, over); turn++) {
    const isBroken = turn % 3 === 0;
    const status = turn % 2 === 0 ? 502 : 404;
    const next = { ...config, no_route_status: isBroken ? "none" : status };
    repository.push(JSON.stringify(next));
    const answer = await fetch(webhook, { method: "POST" });
    const text = await answer.text();
    // The remote may be dead, and a busy machine may not do it in time.
    const expected = isBroken ? [400, 502, 504] : [200, 502, 504];
    assert.ok(expected.includes(answer.status), `${answer.status} ${text}`);
    counts.pulls[answer.status] = (counts.pulls[answer.status] ?? 0) + 1;
  }
}

/** Kills the sources in turn, each second time within an answer, and starts them again. */
export async function killInTurn({ sources: { mortal }, counts, over }: Flapping): Promise<void> {
  const names = Object.keys(mortal) as (keyof Sources["mortal"])[];
  for (let turn = 0; await waits(DEATH_EVERY_MS, over); turn++) {
    const name = names[turn % names.length]!;
    const source = mortal[name];
    await source.kill();
    if (Math.floor(turn / names.length) % 2 === 1) {
      await source.start("hold");
      await waits(DEATH_MS, over);
      await source.kill();
    }
    await waits(DEATH_MS, over);
    await source.start();
    counts.deaths[name] = (counts.deaths[name] ?? 0) + 1;
  }
}
