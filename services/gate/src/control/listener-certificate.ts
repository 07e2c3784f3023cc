// The certificate of the listener: the files of the active configuration are followed, those of a new one are read.
import { X509Certificate } from "node:crypto";
import { ConfigError } from "@platform/kernel/config";
import type { Logger } from "@platform/kernel/log";
import {
  type CertificateFiles,
  CertificateWatch,
  pickCertificateFiles,
} from "@platform/kernel/tls";
import type { GateConfig } from "../config/document.ts";
import type { TlsContextSpec } from "../shared-state/index.ts";

type Files = Pick<GateConfig, "tls_cert" | "tls_key">;

interface Opened {
  files: CertificateFiles;
  watch: CertificateWatch;
}

/** Reads and follows the certificate. */
export class ListenerCertificate {
  readonly #log: Logger;
  #active: Opened | undefined;
  /** That of a configuration which is not active yet. */
  #opened: Opened | undefined;
  #renew: (() => Promise<void>) | undefined;
  #stop: (() => Promise<void>) | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Returns the certificate for a configuration; undefined if it has none. Throws ConfigError. */
  read(config: Files): TlsContextSpec | undefined {
    const files = pickCertificateFiles(config);
    if (files === undefined) return undefined;
    const [pair] = (isSame(this.#active, files) ? this.#active : this.#open(files)).watch.current
      .pairs;
    const certPem = pair!.cert.toString();
    return {
      names: listNames(new X509Certificate(certPem)),
      certPem,
      keyPem: pair!.key.toString(),
    };
  }

  /** The files of the active configuration; undefined without a certificate. */
  get watch(): CertificateWatch | undefined {
    return this.#active?.watch;
  }

  /** Reads the files of the active configuration again. Throws ConfigError, and keeps what it has, if they are invalid. */
  async refresh(): Promise<void> {
    if (this.#active === undefined) return;
    const { watch } = this.#active;
    await watch.check(true);
    if (watch.fault !== undefined) throw refuse(watch.fault);
  }

  /** Follows the files of a configuration, which is active from now on. */
  async follow(config: Files): Promise<void> {
    const files = pickCertificateFiles(config);
    if (files !== undefined && isSame(this.#active, files)) return;
    await this.#stop?.();
    this.#active = files && (isSame(this.#opened, files) ? this.#opened : this.#open(files));
    this.#opened = undefined;
    this.#start();
  }

  /** Calls `renew` when the files of the active configuration have changed. */
  start(renew: () => Promise<void>): void {
    this.#renew = renew;
    this.#start();
  }

  /** Ends the checks. */
  async stop(): Promise<void> {
    this.#renew = undefined;
    await this.#stop?.();
  }

  #start(): void {
    if (this.#renew === undefined) return;
    const checks = this.#active?.watch.start(this.#renew);
    this.#stop = checks && (() => checks.stop());
  }

  #open(files: CertificateFiles): Opened {
    try {
      this.#opened = { files, watch: new CertificateWatch({ pairs: [files], log: this.#log }) };
      return this.#opened;
    } catch (cause) {
      throw refuse(cause instanceof Error ? cause.message : String(cause));
    }
  }
}

function isSame(opened: Opened | undefined, { cert, key }: CertificateFiles): opened is Opened {
  return opened?.files.cert === cert && opened.files.key === key;
}

function listNames({ subjectAltName = "" }: X509Certificate): string[] {
  return subjectAltName
    .split(", ")
    .filter((name) => name.startsWith("DNS:"))
    .map((name) => name.slice(4).toLowerCase());
}

function refuse(message: string): ConfigError {
  return new ConfigError([{ source: "configuration", path: "tls_cert", message }]);
}
