// Follows the files of certificates: a new pair is delivered once it is complete and valid, otherwise the previous one stays.
import { existsSync, readdirSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Lifecycle } from "../lifecycle/index.ts";
import type { Logger } from "../log/index.ts";
import { every, type RepeatingTimer } from "../time/index.ts";
import {
  type CertificateFiles,
  type CertificatePair,
  checkPair,
  checkSize,
  describeReadError,
  readCertificatePair,
} from "./certificate-pair.ts";

/** Certificates that a {@link CertificateWatch} delivers. */
export interface Certificates {
  /** In the order of the option `pairs`; an awaited one that does not exist yet is left out. */
  readonly pairs: readonly CertificatePair[];
  /** Those of the folder, by the names of their files without `.crt`, `.key` and `.pem`. */
  readonly named: ReadonlyMap<string, CertificatePair>;
}

/** Uses new certificates. */
export type ApplyCertificates = (certificates: Certificates) => void | Promise<void>;

/** Options of {@link CertificateWatch}. */
export interface CertificateWatchOptions {
  /** Pairs that must be valid at the start. Certificate and key may be in one file, with the same path. */
  pairs?: readonly CertificateFiles[];
  /** True if another program writes the files of `pairs` later: until they exist, there is no such pair. */
  isAwaited?: boolean;
  /**
   * Folder with `NAME.crt` and `NAME.key` for each name, or with both in `NAME.pem`, at most 10 000. Invalid pairs are logged
   * and left out.
   */
  folder?: string | undefined;
  /** False for names in the folder that are ignored. Default: all are used. */
  isName?: (name: string) => boolean;
  log: Logger;
}

/** With the second check that a fault has to last, changes are loaded or reported within two seconds. */
const CHECK_MS = 1_000;
/** Checks after a change that read the files regardless: two writes can be within one tick of a file system's clock. */
const SETTLING_CHECKS = 2;
/** A check of a large folder is followed by a pause of this many times its duration. */
const PAUSE_FACTOR = 4;
const NAMES_MAX = 10_000;
/** Mark of a file that does not exist. */
const MISSING = "ENOENT";
/** Files looked at in parallel. */
const PARALLEL = 64;

/** One pair and what is known of its files. */
interface Followed {
  readonly files: CertificateFiles;
  pair: CertificatePair | undefined;
  /** Sizes and times of both files at the last check. */
  mark: string;
  settling: number;
  /** The present fault; it is logged once. */
  fault: { reason: string; isLogged: boolean } | undefined;
}

/**
 * Reads certificates and notices changes:
 *
 *     const watch = new CertificateWatch({ pairs: [{ cert, key }], log });
 *     server.setTls(watch.current.pairs[0]);
 *     watch.follow(lifecycle, ({ pairs }) => server.setTls(pairs[0]));
 */
export class CertificateWatch {
  readonly #options: CertificateWatchOptions;
  readonly #pairs: readonly Followed[];
  readonly #first: Certificates;
  #named = new Map<string, Followed>();
  #current: Certificates;
  #folderFault = "";
  #checking: Promise<void> | undefined;
  #pausedUntilMs = 0;

  /** Reads all files. Throws if one of `pairs` is invalid, or the folder cannot be read. */
  constructor(options: CertificateWatchOptions) {
    this.#options = options;
    this.#pairs = (options.pairs ?? []).map((files) => ({
      ...createFollowed(files),
      pair: this.#isMissing(files) ? undefined : readCertificatePair(files),
    }));
    for (const [name, files] of this.#listFolder()) {
      const followed = createFollowed(files);
      this.#named.set(name, followed);
      try {
        followed.pair = readCertificatePair(files);
      } catch (error) {
        this.#noteFault(followed, error, true);
      }
    }
    this.#current = this.#collect();
    this.#first = this.#current;
  }

  /** The valid certificates; another object after each change. */
  get current(): Certificates {
    return this.#current;
  }

  /** Paths of the certificates of `current.pairs`. */
  get paths(): string[] {
    return this.#pairs.flatMap(({ files, pair }) => (pair === undefined ? [] : files.cert));
  }

  /** The fault of one of `pairs` at the last check: its previous version is still in use. */
  get fault(): string | undefined {
    return this.#pairs.find(({ fault }) => fault !== undefined)?.fault?.reason;
  }

  /** The fault of one of `pairs`, by the path of its certificate. */
  findFault(path: string): string | undefined {
    return this.#pairs.find(({ files }) => files.cert === path)?.fault?.reason;
  }

  /** Passes changes to `apply`, also at SIGHUP, until the service stops. If `apply` fails, it is called again. */
  follow(lifecycle: Pick<Lifecycle, "onDrain" | "onReload">, apply: ApplyCertificates): void {
    const checks = this.start(apply);
    lifecycle.onReload("certificates", () => checks.run());
    lifecycle.onDrain("certificates", () => checks.stop());
  }

  /** As {@link follow}, until it is stopped; `run` looks at the files now. */
  start(apply: ApplyCertificates): RepeatingTimer {
    let applied = this.#first;
    const update = async (): Promise<void> => {
      const next = this.#current;
      if (next === applied) return;
      await apply(next);
      applied = next;
    };
    const timer = every(
      CHECK_MS,
      async () => {
        if (performance.now() < this.#pausedUntilMs) return;
        await this.check(false);
        await update();
      },
      (error) => this.#options.log.error("certificates could not be replaced", { error }),
    );
    return {
      run: async () => {
        await this.check(true);
        await update();
      },
      stop: () => timer.stop(),
    };
  }

  /** Looks at the files; with `isRequested` it reads all of them and logs faults immediately. */
  async check(isRequested: boolean): Promise<void> {
    while (this.#checking !== undefined) await this.#checking;
    this.#checking = this.#check(isRequested).finally(() => (this.#checking = undefined));
    await this.#checking;
  }

  async #check(isRequested: boolean): Promise<void> {
    const startedMs = performance.now();
    let isChanged = this.#updateNames();
    const followed = [...this.#pairs, ...this.#named.values()];
    for (let at = 0; at < followed.length; at += PARALLEL) {
      const some = followed.slice(at, at + PARALLEL);
      const changes = await Promise.all(some.map((one) => this.#checkPair(one, isRequested)));
      isChanged ||= changes.includes(true);
    }
    if (isChanged) this.#current = this.#collect();
    const endedMs = performance.now();
    this.#pausedUntilMs = endedMs + PAUSE_FACTOR * (endedMs - startedMs) - CHECK_MS;
  }

  /** Follows new names of the folder and forgets those without files; true if a certificate is gone. */
  #updateNames(): boolean {
    let listed: Map<string, CertificateFiles>;
    try {
      listed = this.#listFolder();
      this.#folderFault = "";
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== this.#folderFault) {
        this.#options.log.error("the folder of certificates cannot be read; all stay active", {
          reason,
        });
      }
      this.#folderFault = reason;
      return false;
    }
    let isChanged = false;
    for (const [name, { files, pair }] of this.#named) {
      if (listed.has(name)) continue;
      this.#named.delete(name);
      if (pair === undefined) continue;
      isChanged = true;
      this.#options.log.info("certificate removed", { path: files.cert });
    }
    for (const [name, files] of listed) {
      const known = this.#named.get(name);
      if (known?.files.cert === files.cert) continue;
      // Its pair stays until the other files have been read.
      this.#named.set(name, { ...createFollowed(files), pair: known?.pair });
    }
    return isChanged;
  }

  #isMissing({ cert, key }: CertificateFiles): boolean {
    const isMissing = this.#options.isAwaited === true && !(existsSync(cert) && existsSync(key));
    if (isMissing) this.#options.log.info("the certificate is awaited", { path: cert });
    return isMissing;
  }

  #listFolder(): Map<string, CertificateFiles> {
    const { folder, isName, log } = this.#options;
    if (folder === undefined) return new Map();
    const found = new Map<string, string>();
    for (const file of readdirSync(folder)) {
      const [, name = "", end = ""] = /^(.+)\.(crt|key|pem)$/.exec(file) ?? [];
      // A pair of files takes precedence.
      if (name !== "" && (end !== "pem" || !found.has(name))) found.set(name, end);
    }
    const used = [...found.keys()].filter((name) => isName?.(name) ?? true).sort();
    if (used.length > NAMES_MAX && this.#named.size < NAMES_MAX) {
      log.warn("the folder has too many certificates; the rest is ignored", {
        path: folder,
        ignored: used.length - NAMES_MAX,
      });
    }
    return new Map(
      used.slice(0, NAMES_MAX).map((name) => {
        const base = join(folder, name);
        const isWhole = found.get(name) === "pem";
        const [cert, key] = isWhole ? ["pem", "pem"] : ["crt", "key"];
        return [name, { cert: `${base}.${cert}`, key: `${base}.${key}` }];
      }),
    );
  }

  /** Loads a pair if its files have changed; true if there is a new one. */
  async #checkPair(followed: Followed, isRequested: boolean): Promise<boolean> {
    const { files } = followed;
    const marks = await Promise.all([readMark(files.cert), readMark(files.key)]);
    const isAwaited = this.#options.isAwaited === true && followed.pair === undefined;
    if (isAwaited && marks.includes(MISSING)) return false;
    const mark = marks.join(" ");
    if (mark !== followed.mark) {
      followed.mark = mark;
      followed.settling = SETTLING_CHECKS;
    } else if (followed.settling > 0) {
      followed.settling -= 1;
    } else if (!isRequested) {
      return false;
    }
    try {
      const pair = await readPair(files);
      const { pair: before } = followed;
      if (before?.cert.equals(pair.cert) === true && before.key.equals(pair.key)) {
        followed.fault = undefined;
        return false;
      }
      const certificate = checkPair(pair, files);
      followed.pair = pair;
      followed.fault = undefined;
      this.#logLoaded(files, certificate.validFrom, certificate.validTo);
      return true;
    } catch (error) {
      this.#noteFault(followed, error, isRequested);
      return false;
    }
  }

  #logLoaded({ cert: path }: CertificateFiles, validFrom: string, validTo: string): void {
    const [startMs, endMs, nowMs] = [Date.parse(validFrom), Date.parse(validTo), Date.now()];
    const fields = { path, not_after: new Date(endMs).toISOString() };
    if (startMs <= nowMs && nowMs < endMs) this.#options.log.info("certificate loaded", fields);
    else this.#options.log.warn("certificate loaded, but it is not valid now", fields);
  }

  // While a renewal replaces both files, they do not match: a fault counts if the next check finds it as well.
  #noteFault(followed: Followed, error: unknown, isImmediate: boolean): void {
    const reason = error instanceof Error ? error.message : String(error);
    const { fault, files, pair } = followed;
    if (fault?.reason === reason && fault.isLogged) return;
    const isLogged = isImmediate || fault?.reason === reason;
    followed.fault = { reason, isLogged };
    followed.settling = Math.max(1, followed.settling);
    if (!isLogged) return;
    this.#options.log.error(
      pair === undefined
        ? "the certificate is invalid and not used"
        : "the new certificate is invalid; the previous one stays active",
      { path: files.cert, reason },
    );
  }

  #collect(): Certificates {
    const named = [...this.#named].flatMap(([name, { pair }]) =>
      pair === undefined ? [] : [[name, pair] as const],
    );
    return { pairs: this.#pairs.flatMap(({ pair }) => pair ?? []), named: new Map(named) };
  }
}

function createFollowed(files: CertificateFiles): Followed {
  return { files, pair: undefined, mark: "", settling: 0, fault: undefined };
}

// The time of the last change of the inode is also that of a file which was copied with its old times.
async function readMark(path: string): Promise<string> {
  try {
    const { mtimeMs, ctimeMs, size, ino } = await stat(path);
    return `${mtimeMs} ${ctimeMs} ${size} ${ino}`;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "unreadable";
  }
}

async function readPair(files: CertificateFiles): Promise<CertificatePair> {
  const [cert, key] = await Promise.all(
    [files.cert, files.key].map(async (path) => {
      try {
        checkSize((await stat(path)).size);
        return await readFile(path);
      } catch (cause) {
        throw new Error(describeReadError(path, cause), { cause });
      }
    }),
  );
  return { cert: cert!, key: key! };
}
