// Our store for cases that use both of its APIs.
import { mkdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { signRequest } from "@platform/s3/signature";
import { findFreePort } from "../../tests/stage/process.ts";
import type { BenchContext, Workspace } from "../harness/case.ts";
import { CREDENTIALS, createPresigner } from "./presign.ts";
import { makePlatformVaultd } from "./stores/platform-vaultd.ts";

/** Requests at a time. */
export const LANES = 16;

/** A running store, with functions for both of its APIs. */
export interface BenchStore {
  readonly origin: string;
  readonly folder: string;
  /** Its processes. */
  readonly pids: readonly number[];
  readonly send: (method: string, path: string, options?: Sent) => Promise<Response>;
  readonly admin: (method: string, path: string, body?: object | Uint8Array) => Promise<string>;
}

interface Sent {
  body?: string | Uint8Array<ArrayBuffer>;
  query?: Record<string, string>;
}

/** Starts the first build in an empty folder, with known credentials. */
export async function startStore(
  context: BenchContext,
  workspace: Workspace,
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<BenchStore> {
  mkdirSync(folder, { recursive: true });
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  const pids = await makePlatformVaultd(context.builds[0]!).start({
    port,
    adminPort,
    env,
    cores: context.cores.all,
    folder,
    workspace,
  });
  // The listener of the admin API is the second one.
  while (!(await fetch(`http://127.0.0.1:${adminPort}/healthz`).then(isOk, () => false)))
    await sleep(20);
  const origin = `http://127.0.0.1:${port}`;
  const sign = createPresigner(new URL(origin).host, CREDENTIALS);
  const send: BenchStore["send"] = async (method, path, { body, query = {} } = {}) => {
    const answer = await fetch(origin + sign(method, path, query), {
      method,
      ...(body === undefined ? {} : { body }),
    });
    if (answer.ok) return answer;
    throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  };
  return { origin, folder, pids, send, admin: createAdmin(adminPort) };
}

const isOk = ({ ok }: Response): boolean => ok;

function createAdmin(port: number): BenchStore["admin"] {
  const host = `127.0.0.1:${port}`;
  const { accessKey, secretKey: secret } = CREDENTIALS;
  return async (method, path, body) => {
    const isModule = body instanceof Uint8Array;
    const bytes = isModule ? Buffer.from(body) : Buffer.from(body ? JSON.stringify(body) : "");
    const payloadHash = Buffer.from(await crypto.subtle.digest("SHA-256", bytes)).toString("hex");
    const type = isModule ? "application/wasm" : "application/json";
    const { headers } = signRequest(
      { accessKey, secret, region: "us-east-1" },
      {
        method,
        target: path,
        headers: { host, ...(body ? { "content-type": type } : {}) },
        payloadHash,
        timeMs: Date.now(),
      },
    );
    const answer = await fetch(`http://${host}${path}`, {
      method,
      headers,
      ...(body ? { body: bytes } : {}),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text;
  };
}

/** Does work for each of `count` numbers, some at a time. */
export async function inLanes(count: number, work: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}
