// Two stores of the same build on loopback, for cases about what is between them.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createUrlSigner } from "@platform/s3/signature";
import { findFreePort } from "../../tests/stage/process.ts";
import type { BenchContext, Workspace } from "../harness/case.ts";
import { CREDENTIALS, createPresigner } from "./presign.ts";
import type { ObjectStore } from "./stores/store.ts";

const READS = 300;
/** Requests of a client at the same time. */
export const LANES = 8;

/** Sends a signed request to one store; throws unless it succeeds. */
export type Ask = (
  method: string,
  path: string,
  query?: Record<string, string>,
  more?: { body?: string | Uint8Array<ArrayBuffer>; headers?: Record<string, string> },
) => Promise<Response>;

/** A running store. */
export interface OpenStore {
  readonly origin: string;
  readonly pid: number;
  readonly ask: Ask;
  /** Asks the admin listener. */
  readonly admin: Ask;
}

/** Starts two stores; the workspace ends them. */
export async function openTwoStores(
  context: BenchContext,
  store: ObjectStore,
  workspace: Workspace,
): Promise<{ near: OpenStore; far: OpenStore }> {
  const open = async (name: string): Promise<OpenStore> => {
    const folder = join(workspace.folder, name);
    mkdirSync(folder);
    const [port, adminPort] = [await findFreePort(), await findFreePort()];
    const { all: cores } = context.cores;
    const [pid] = await store.start({ port, adminPort, cores, folder, workspace });
    const origin = `http://127.0.0.1:${port}`;
    return {
      origin,
      pid: pid!,
      ask: createAsk(origin),
      admin: createAdminAsk(`http://127.0.0.1:${adminPort}`),
    };
  };
  return { near: await open("near"), far: await open("far") };
}

/** Asks one listener of a store. */
function createAsk(origin: string): Ask {
  const sign = createPresigner(new URL(origin).host, CREDENTIALS);
  return async (method, path, query = {}, more = {}) => {
    const answer = await fetch(origin + sign(method, path, query), { method, ...more });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
}

// The admin API takes signatures in headers.
function createAdminAsk(origin: string): Ask {
  const { accessKey, secretKey: secret } = CREDENTIALS;
  const sign = createUrlSigner({ accessKey, secret, region: "us-east-1" });
  return async (method, path, _query = {}, { body = "", headers = {} } = {}) => {
    const url = new URL(path, origin);
    const signed = { ...headers, ...sign(method, url, body) };
    const sent = method === "GET" ? {} : { body };
    const answer = await fetch(url, { method, ...sent, headers: signed });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
}

/** Works on keys in eight lanes. */
export async function inLanes(keys: readonly string[], work: (key: string) => Promise<void>) {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let key = keys[next++]; key !== undefined; key = keys[next++]) await work(key);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

/** Milliseconds of some work. */
export async function time(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

/** Median of the milliseconds of 300 reads, one after another. */
export async function takeP50(read: () => Promise<Response>): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < READS; index += 1)
    times.push(await time(async () => (await read()).arrayBuffer()));
  return times.sort((a, b) => a - b)[READS / 2]!;
}
