// Certificates for other programs of this machine: one file each, which is replaced as a whole.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "@platform/kernel/files";
import type { Logger } from "@platform/kernel/log";
import type { StoredCertificate } from "./acme-files.ts";

/** Options of {@link CertificateFolder}. */
export interface CertificateFolderOptions {
  folder: string;
  log: Logger;
}

/**
 * Writes `NAME.pem` with chain and key: two files could not be replaced at the same moment, and a program that starts between
 * would find a pair that does not match. Files of other names are left alone.
 */
export class CertificateFolder {
  readonly #options: CertificateFolderOptions;
  /** Content of the files, by name. */
  readonly #written = new Map<string, string>();
  #fault = "";

  constructor(options: CertificateFolderOptions) {
    this.#options = options;
  }

  /** Writes the certificates that have changed. Does not reject: a fault is logged once, and the next call tries again. */
  async write(certificates: readonly StoredCertificate[]): Promise<void> {
    const { folder, log } = this.#options;
    try {
      for (const { name, certPem, keyPem } of certificates) {
        const content = `${certPem.trimEnd()}\n${keyPem.trimEnd()}\n`;
        if (this.#written.get(name) === content) continue;
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await replaceFile(join(folder, `${name.replace(/^\*/, "_")}.pem`), content);
        this.#written.set(name, content);
      }
      this.#fault = "";
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== this.#fault) log.error("cannot write a certificate for others", { reason });
      this.#fault = reason;
    }
  }
}
