// Certificates of the listener: the relay's own, and those of custom domains; read again when files change.
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { ServerTls, TlsIdentity } from "@platform/http1";
import { isDomain } from "../name/hosts.ts";

/** Files of the certificates. */
export interface CertificateFiles {
  cert: string;
  key: string;
  /** Folder with NAME.crt and NAME.key. */
  directory: string | undefined;
}

const NAMES_MAX = 10_000;

/** Reads certificates, and notices changes. */
export class Certificates {
  readonly #files: CertificateFiles;
  #mark = "";

  constructor(files: CertificateFiles) {
    this.#files = files;
  }

  /** Reads all files. Throws if one is missing. */
  async load(): Promise<ServerTls> {
    this.#mark = await this.#readMark();
    return this.#read();
  }

  /** The new certificates if a file has changed since the last call, otherwise undefined. */
  async reload(): Promise<ServerTls | undefined> {
    const mark = await this.#readMark();
    if (mark === this.#mark) return undefined;
    const tls = await this.#read();
    this.#mark = mark;
    return tls;
  }

  async #read(): Promise<ServerTls> {
    const { cert, key, directory } = this.#files;
    const names = new Map<string, TlsIdentity>();
    for (const name of await this.#listNames()) {
      const base = join(directory!, name);
      names.set(name.replace(/^_\./, "*."), await readIdentity(`${base}.crt`, `${base}.key`));
    }
    return { fallback: await readIdentity(cert, key), names };
  }

  /** Names with a certificate; `_.example.org` stands for `*.example.org`. */
  async #listNames(): Promise<string[]> {
    const { directory } = this.#files;
    if (directory === undefined) return [];
    const files = await readdir(directory);
    const names = files.filter((file) => file.endsWith(".crt")).map((file) => file.slice(0, -4));
    return names.filter((name) => isDomain(name)).slice(0, NAMES_MAX);
  }

  async #readMark(): Promise<string> {
    const { cert, key, directory } = this.#files;
    const paths = [cert, key];
    for (const name of await this.#listNames()) {
      paths.push(join(directory!, `${name}.crt`), join(directory!, `${name}.key`));
    }
    const marks = await Promise.all(
      paths.map(async (path) => {
        const { mtimeMs, size, ino } = await stat(path);
        return `${path} ${mtimeMs} ${size} ${ino}`;
      }),
    );
    return marks.join("\n");
  }
}

async function readIdentity(cert: string, key: string): Promise<TlsIdentity> {
  return { cert: await readFile(cert), key: await readFile(key) };
}
