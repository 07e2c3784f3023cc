// Account and certificates of one ACME directory on disk:
//
//   acme/<hash of the directory's URL>/account.json
//   acme/<hash of the directory's URL>/certificates/<name>.json     chain and key together
import { createHash, createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "@platform/kernel/log";
import { replaceFile } from "@platform/kernel/files";
import { checkUsable } from "@platform/kernel/tls";
import { z } from "zod";
import { makeFolder } from "../access/durable-file.ts";
import { createEphemeralState, createStateFile, type StateFile } from "../access/state-file.ts";
import { isServerName } from "../shared-state/index.ts";

const accountSchema = z.strictObject({
  directory: z.string(),
  key: z.string(),
  /** Null before it is registered. */
  url: z.string().nullable(),
});

const certificateSchema = z.strictObject({
  name: z.string(),
  certPem: z.string(),
  keyPem: z.string(),
  /** True if the name was not configured, but asked for in a handshake. */
  isAsked: z.boolean(),
});

/** An account: its key and, once it is registered, its URL. */
export type StoredAccount = z.output<typeof accountSchema>;

/** A certificate of one name. */
export type StoredCertificate = z.output<typeof certificateSchema>;

/** Options of {@link AcmeFiles}. */
export interface AcmeFilesOptions {
  /** Folder of the gateway's state. */
  folder: string;
  directoryUrl: string;
  /** Nothing is written. */
  isEphemeral: boolean;
  log: Logger;
  readNowMs: () => number;
}

const NAMES_MAX = 10_000;
const END = ".json";

/** The state of one directory. */
export class AcmeFiles {
  /** Folder of this directory. */
  readonly folder: string;
  readonly #options: AcmeFilesOptions;
  readonly #account: StateFile<StoredAccount>;

  constructor(options: AcmeFilesOptions) {
    this.#options = options;
    const hash = createHash("sha256").update(options.directoryUrl).digest("hex").slice(0, 16);
    this.folder = join(options.folder, "acme", hash);
    this.#account = this.#open(join(this.folder, "account.json"), accountSchema);
  }

  /** Returns the account, with a new key before the first start. Throws if it is damaged: its certificates depend on it. */
  async readAccount(): Promise<StoredAccount> {
    const stored = await this.#account.read();
    if (stored !== undefined) {
      createPrivateKey(stored.key);
      return stored;
    }
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = privateKey.export({ type: "pkcs8", format: "pem" });
    return { directory: this.#options.directoryUrl, key, url: null };
  }

  /** Stores the account durably. */
  writeAccount(account: StoredAccount): Promise<void> {
    return this.#account.write(account);
  }

  /** Reads all certificates. Damaged ones are renamed and reported: they are obtained again. */
  async readCertificates(): Promise<StoredCertificate[]> {
    const folder = join(this.folder, "certificates");
    const files = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    const read: StoredCertificate[] = [];
    for (const file of files.slice(0, NAMES_MAX)) {
      const name = file.endsWith(END) ? file.slice(0, -END.length).replace(/^_/, "*") : "";
      if (!isServerName(name, true)) continue;
      const stored = await this.#readCertificate(name);
      if (stored !== undefined) read.push(stored);
    }
    return read;
  }

  /** Stores a certificate durably. */
  async writeCertificate(certificate: StoredCertificate): Promise<void> {
    await this.#open(this.describePlace(certificate.name), certificateSchema).write(certificate);
  }

  /** Path of the file of a name's certificate. */
  describePlace(name: string): string {
    return join(this.folder, "certificates", `${name.replace(/^\*/, "_")}${END}`);
  }

  /** Throws if nothing can be written: better before an order than after it. */
  async checkWritable(): Promise<void> {
    if (this.#options.isEphemeral) return;
    await makeFolder(join(this.folder, "certificates"));
    const path = join(this.folder, "probe");
    await replaceFile(path, "");
    await rm(path, { force: true });
  }

  async #readCertificate(name: string): Promise<StoredCertificate | undefined> {
    const path = this.describePlace(name);
    try {
      const stored = await this.#open(path, certificateSchema).read();
      if (stored === undefined) return undefined;
      const { certPem, keyPem } = stored;
      if (!new X509Certificate(certPem).checkPrivateKey(createPrivateKey(keyPem))) {
        throw new Error(`${path} has the key of another certificate`);
      }
      checkUsable({ cert: certPem, key: keyPem }, path);
      return stored;
    } catch (error) {
      const { log, readNowMs, isEphemeral } = this.#options;
      const reason = error instanceof Error ? error.message : String(error);
      const damaged = `${path}.damaged-${readNowMs()}`;
      if (!isEphemeral) {
        await rename(path, damaged);
        // Its copy is damaged, too, or holds the same.
        await rm(join(this.folder, "certificates", `.${path.split("/").at(-1)}.copy`), {
          force: true,
        });
      }
      log.error("a stored certificate is damaged and will be obtained again", { reason, damaged });
      return undefined;
    }
  }

  #open<T>(path: string, schema: z.ZodType<T>): StateFile<T> {
    const { isEphemeral, log } = this.#options;
    const file = createStateFile(
      path,
      schema,
      isEphemeral ? undefined : (fault) => log.warn("ACME state repaired", { fault }),
    );
    return isEphemeral ? createEphemeralState(file) : file;
  }
}
