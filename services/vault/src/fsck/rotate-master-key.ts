// `platform-vaultd rotate-master-key`: of a stopped store in its folder, of a running one by its admin API.
import { existsSync, readFileSync } from "node:fs";
import { type IncomingMessage, request as sendHttp, type RequestOptions } from "node:http";
import { request as sendHttps } from "node:https";
import { FileLockedError } from "@platform/kernel/files";
import { hashHex, signRequest } from "@platform/s3/signature";
import { isDrive } from "../blob/drive/identity.ts";
import type { VaultConfig } from "../config.ts";
import { StoreFolders } from "../disk/files.ts";
import { lockStore } from "../index/store-lock.ts";
import { openKeys } from "../keys/open-keys.ts";
import { StoreError } from "../model/store-error.ts";

const KEY_BYTES = 32;
const TARGET = "/admin/encryption-keys/master/rotate";
const TIMEOUT_MS = 60_000;

/** Options of the command. */
export interface RotateMasterOptions {
  /** File with the next key in base64, where the present one is in the configuration. */
  key_file?: string | undefined;
}

/** Replaces the master key. Rejects if the store is in use and its admin API does not answer. */
export async function rotateMasterKey(
  config: VaultConfig,
  { key_file: file }: RotateMasterOptions,
  print: (line: string) => void,
): Promise<void> {
  const given = file === undefined ? undefined : readKeyFile(file);
  const unlock = lockFolders(config);
  if (unlock === undefined) {
    if (given !== undefined)
      throw new Error("--key-file needs a stopped store: another process has it open");
    await rotateRunning(config);
    print("the master key of the running store was replaced");
    return;
  }
  try {
    const { ring } = await openKeys(config, { isWriting: true });
    await ring.rotateMaster(given);
    print(
      given === undefined
        ? "the master key was replaced"
        : "both master keys open the store: set the next one, and start it, after which only that one does",
    );
  } finally {
    unlock();
  }
}

function readKeyFile(path: string): Buffer {
  const key = Buffer.from(readFileSync(path, "utf8").trim(), "base64");
  if (key.length === KEY_BYTES) return key;
  throw new Error(`${path} is not a key of ${KEY_BYTES} bytes in base64 (openssl rand -base64 32)`);
}

// Undefined if another process has the store open.
function lockFolders({ data_dir: dataDir, drives }: VaultConfig): (() => void) | undefined {
  const folders = (drives.length === 0 ? [dataDir] : drives).map((path) => new StoreFolders(path));
  const isStore = drives.length === 0 ? existsSync(folders[0]!.index) : drives.some(isDrive);
  if (!isStore) throw new Error(`${dataDir} is not the data folder of a store`);
  const locks: (() => void)[] = [];
  const unlock = (): void => {
    for (const one of locks) one();
  };
  try {
    for (const { lock, root } of folders) if (existsSync(root)) locks.push(lockStore(lock));
    return unlock;
  } catch (error) {
    unlock();
    const isLocked = error instanceof StoreError && error.cause instanceof FileLockedError;
    if (isLocked) return undefined;
    throw error;
  }
}

async function rotateRunning(config: VaultConfig): Promise<void> {
  const { access_key_id: accessKey, secret_access_key: secret, region } = config;
  const { host, name } = locateAdmin(config);
  const { headers } = signRequest(
    { accessKey, secret, region },
    {
      method: "POST",
      target: TARGET,
      headers: { host: name, "content-length": "0" },
      payloadHash: hashHex(Buffer.alloc(0)),
      timeMs: Date.now(),
    },
  );
  const { port } = config.admin_addr;
  const options = { host, port, method: "POST", path: TARGET, headers, timeout: TIMEOUT_MS };
  const { status, text } = await send(options, config.tls_cert).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`the store is in use, and its admin API at ${name} fails: ${reason}`, {
      cause: error,
    });
  });
  if (status < 300) return;
  throw new Error(`the admin API at ${name} answered ${status}: ${text.slice(0, 500)}`);
}

// A listener on all addresses is reached at loopback.
function locateAdmin({ admin_addr: { host, port } }: VaultConfig): { host: string; name: string } {
  const isAny = host === undefined || host === "0.0.0.0";
  const reached = isAny ? "127.0.0.1" : host === "::" ? "::1" : host;
  return { host: reached, name: `${reached.includes(":") ? `[${reached}]` : reached}:${port}` };
}

function send(
  options: RequestOptions,
  certificate: string | undefined,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const onAnswer = (answer: IncomingMessage): void => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("error", reject);
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
      );
    };
    // The certificate is that of this store, whatever name it has.
    const trust = certificate && {
      ca: readFileSync(certificate),
      checkServerIdentity: () => undefined,
    };
    const sent = trust
      ? sendHttps({ ...options, ...trust }, onAnswer)
      : sendHttp(options, onAnswer);
    sent.on("timeout", () => sent.destroy(new Error("no answer")));
    sent.on("error", reject);
    sent.end();
  });
}
