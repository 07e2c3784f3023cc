// Sources of the master key: a file in the data folder, the configuration, or a secret service.
import { randomBytes } from "node:crypto";
import { replaceFileSync } from "@platform/kernel/files";
import type { SecretService } from "@platform/kernel/secret-service";
import { loadMasterKey } from "../access/secret-box.ts";
import type { MasterKey } from "./sealed-content.ts";

/** A place of the master key: read at the start, and replaced by a rotation. */
export interface MasterSource {
  readonly kind: "file" | "setting" | "secret_service";
  /** The present key. Throws an Error that says what to do if there is none. */
  read(): Promise<MasterKey>;
  /** An earlier version of a secret; `undefined` if it is gone. */
  readVersion?(version: number): Promise<MasterKey | undefined>;
  /** Replaces the key durably. Absent where somebody else does that. */
  install?(key: Buffer): void;
}

const KEY_BYTES = 32;

/** A random key. */
export function makeKey(): Buffer {
  return randomBytes(KEY_BYTES);
}

/** A file of 32 bytes, created on the first start; `isNeeded` refuses that, because existing data needs the key. */
export function createFileSource(path: string, isNeeded: () => boolean): MasterSource {
  return {
    kind: "file",
    read: () => Promise.resolve().then(() => ({ key: loadMasterKey(path, isNeeded()) })),
    install: (key) => replaceFileSync(path, key),
  };
}

/** A key in the configuration, in base64. */
export function createSettingSource(text: string): MasterSource {
  const key = Buffer.from(text, "base64");
  return { kind: "setting", read: () => Promise.resolve({ key }) };
}

/** A secret with the field `key`: 32 bytes in base64. */
export function createSecretSource(
  service: SecretService,
  mount: string,
  path: string,
): MasterSource {
  return {
    kind: "secret_service",
    async read() {
      const found = await service.read(mount, path);
      if (found !== undefined)
        return { version: found.version, key: readSecretKey(found.data, `${mount}/${path}`) };
      throw new Error(
        `the secret ${mount}/${path} does not exist: write the master key there, as the field key ` +
          "(openssl rand -base64 32)",
      );
    },
    async readVersion(version) {
      const found = await service.read(mount, path, version);
      if (found?.version !== version) return undefined;
      return { version, key: readSecretKey(found.data, `${mount}/${path}`) };
    },
  };
}

/** The key of a secret. Throws an Error without parts of the value. */
export function readSecretKey(data: Readonly<Record<string, string>>, place: string): Buffer {
  const text = data["key"];
  const key = Buffer.from(text ?? "", "base64");
  if (key.length === KEY_BYTES && key.toString("base64") === text?.trim()) return key;
  throw new Error(`the field key of the secret ${place} is not ${KEY_BYTES} bytes in base64`);
}
