// Certificates of the listener: the files of the active configuration are followed, those of a new one are read; other sources
// add theirs.
import { X509Certificate } from "node:crypto";
import { ConfigError } from "@platform/kernel/config";
import type { Logger } from "@platform/kernel/log";
import {
  type CertificateFiles,
  CertificateWatch,
  listDnsNames,
  pickCertificateFiles,
  readCertificatePair,
} from "@platform/kernel/tls";
import type { GateConfig } from "../config/document.ts";
import type { CertificateSource, TlsContextSpec, TlsSpec } from "../shared-state/index.ts";

type Files = Pick<GateConfig, "tls_cert" | "tls_key" | "certificates">;

/** State of the renewal of a certificate. */
export interface RenewalState {
  /** ms since 1970; undefined if another program renews it. */
  renewAtMs: number | undefined;
  lastError: string | undefined;
}

/** Another source of certificates than files. */
export interface CertificateProvider {
  /** Its certificates, in the order of their precedence. */
  list: () => readonly TlsContextSpec[];
  /** The state of the renewal of one of them, by its `file`. */
  findRenewal: (file: string) => RenewalState | undefined;
}

interface Pair extends CertificateFiles {
  /** Its key in the configuration. */
  path: string;
  /** Configured names. */
  names: readonly string[] | undefined;
}

interface Opened {
  pairs: readonly Pair[];
  watch: CertificateWatch;
}

/** Reads and follows the certificates. */
export class ListenerCertificate {
  readonly #log: Logger;
  readonly #providers = new Map<CertificateSource, CertificateProvider>();
  /** Warnings that were logged. */
  readonly #warned = new Set<string>();
  #active: Opened | undefined;
  /** That of a configuration which is not active yet. */
  #opened: Opened | undefined;
  #renew: (() => Promise<void>) | undefined;
  #stop: (() => Promise<void>) | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Adds certificates of another source, which those of files and of earlier sources take precedence over. */
  addProvider(source: CertificateSource, provider: CertificateProvider): void {
    this.#providers.set(source, provider);
  }

  /** The state of the renewal of a certificate. */
  findRenewal(source: CertificateSource, file: string): RenewalState | undefined {
    if (source !== "file") return this.#providers.get(source)?.findRenewal(file);
    return { renewAtMs: undefined, lastError: this.#active?.watch.findFault(file) };
  }

  /** Returns the certificates for a configuration; undefined if it has none, and no other source. Throws ConfigError. */
  read(config: Files): TlsSpec | undefined {
    const pairs = listPairs(config);
    if (pairs.length === 0 && this.#providers.size === 0) return undefined;
    const read: TlsContextSpec[] = [];
    if (pairs.length > 0) {
      const { watch } = isSame(this.#active, pairs) ? this.#active : this.#open(pairs);
      for (const [index, { cert, names }] of pairs.entries()) {
        const pair = watch.current.pairs[index]!;
        const certPem = pair.cert.toString();
        const keyPem = pair.key.toString();
        const used = names ?? listDnsNames(new X509Certificate(certPem));
        read.push({ source: "file", names: [...used], certPem, keyPem, file: cert });
      }
    }
    const fallback = config.tls_cert === undefined ? undefined : read[0];
    // A certificate of its own for a name is used rather than the fallback.
    const contexts = fallback === undefined ? read : [...read.slice(1), fallback];
    for (const provider of this.#providers.values()) contexts.push(...provider.list());
    const distinct = this.#dropSharedNames(contexts, fallback);
    return { ...(fallback === undefined ? {} : { fallback }), contexts: distinct };
  }

  /** The files of the active configuration; undefined without a certificate. */
  get watch(): CertificateWatch | undefined {
    return this.#active?.watch;
  }

  /** Reads the files of the active configuration again. Throws ConfigError, and keeps what it has, if they are invalid. */
  async refresh(): Promise<void> {
    if (this.#active === undefined) return;
    const { watch, pairs } = this.#active;
    await watch.check(true);
    if (watch.fault !== undefined) throw refuse(watch.fault, pairs);
  }

  /** Follows the files of a configuration, which is active from now on. */
  async follow(config: Files): Promise<void> {
    const pairs = listPairs(config);
    if (pairs.length > 0 && isSame(this.#active, pairs)) return;
    await this.#stop?.();
    this.#active =
      pairs.length === 0
        ? undefined
        : isSame(this.#opened, pairs)
          ? this.#opened
          : this.#open(pairs);
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

  #open(pairs: readonly Pair[]): Opened {
    try {
      this.#opened = { pairs, watch: new CertificateWatch({ pairs, log: this.#log }) };
      return this.#opened;
    } catch (cause) {
      throw refuse(cause instanceof Error ? cause.message : String(cause), pairs);
    }
  }

  #dropSharedNames(
    contexts: readonly TlsContextSpec[],
    fallback: TlsContextSpec | undefined,
  ): TlsContextSpec[] {
    const owners = new Map<string, TlsContextSpec>();
    return contexts.map((context) => {
      const names = context.names.filter((name) => {
        const owner = owners.get(name);
        if (owner === undefined) owners.set(name, context);
        else if (context !== fallback) this.#warn(name, owner, context);
        return owner === undefined;
      });
      return { ...context, names };
    });
  }

  #warn(name: string, { file: used }: TlsContextSpec, { file: ignored }: TlsContextSpec): void {
    const text = `${name} ${used} ${ignored}`;
    if (used === ignored || this.#warned.has(text)) return;
    this.#warned.add(text);
    this.#log.warn("two certificates have the same name; the first is used", {
      name,
      used,
      ignored,
    });
  }
}

function listPairs(config: Files): Pair[] {
  const own = pickCertificateFiles(config);
  return [
    ...(own === undefined ? [] : [{ ...own, path: "tls_cert", names: undefined }]),
    ...config.certificates.map(({ names, ...files }, index) => ({
      ...files,
      path: `certificates[${index}]`,
      names,
    })),
  ];
}

function isSame(opened: Opened | undefined, pairs: readonly Pair[]): opened is Opened {
  return JSON.stringify(opened?.pairs) === JSON.stringify(pairs);
}

/** Names the key of the first pair with a fault. */
function refuse(message: string, pairs: readonly Pair[]): ConfigError {
  const faulty = pairs.find((pair) => {
    try {
      readCertificatePair(pair);
      return false;
    } catch {
      return true;
    }
  });
  const path = faulty?.path ?? "tls_cert";
  return new ConfigError([{ source: "configuration", path, message }]);
}
