// Certificates and the JWT secret of a secret service: read at the start and by version afterwards, with a sealed copy for
// starts while the service is down.
import { createPrivateKey, hkdfSync, X509Certificate } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { replaceFile } from "@platform/kernel/files";
import type { Logger } from "@platform/kernel/log";
import { SecretService, SecretServiceError } from "@platform/kernel/secret-service";
import { createSecretBox, type SecretBox } from "@platform/kernel/secrets";
import { checkUsable, listDnsNames } from "@platform/kernel/tls";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { z } from "zod";
import { makeFolder, readTextFile } from "../access/durable-file.ts";
import { isServerName, type TlsContextSpec } from "../shared-state/index.ts";
import type { SourceView } from "./source-view.ts";

/** Options of {@link SecretSource}. */
export interface SecretSourceOptions {
  url: string;
  apiKey: string;
  /** Undefined for the default tenant. */
  namespace: string | undefined;
  ca: string | undefined;
  mount: string;
  certificatesPath: string;
  jwtPath: string;
  refreshMs: number;
  /** Folder of the gateway's state. */
  folder: string;
  /** No copy is written. */
  isEphemeral: boolean;
  log: Logger;
  readNowMs?: () => number;
}

const START_TRIES = 3;
const START_PAUSE_MS = 4_000;
/** Both secrets verify for this time after a change. */
const OVERLAP_MS = 300_000;
const CERTIFICATES_MAX = 1_000;
const COPY_BYTES_MAX = 64 * 1_048_576;
const PLACE = "secrets.sealed";

const certificateSchema = z.strictObject({
  name: z.string(),
  version: z.int(),
  certPem: z.string(),
  keyPem: z.string(),
});
const copySchema = z.strictObject({
  certificates: z.array(certificateSchema),
  jwt: z.strictObject({ version: z.int(), secret: z.string() }).nullable(),
});

type SecretCertificate = z.output<typeof certificateSchema>;
type Content = z.output<typeof copySchema>;

/** Certificates and JWT secret of one gateway. */
export class SecretSource {
  readonly name = "secret service";
  readonly #options: SecretSourceOptions;
  readonly #service: SecretService;
  readonly #box: SecretBox;
  readonly #readNowMs: () => number;
  #content: Content = { certificates: [], jwt: null };
  #former: { secret: string; untilMs: number } | undefined;
  #readAtMs: number | undefined;
  #fault: string | undefined;
  /** Faults of certificates by their places. */
  #faults = new Map<string, string>();
  #renewAtMs: number | undefined = 0;
  #timer: RepeatingTimer | undefined;
  #onChanged: () => Promise<void> = () => Promise.resolve();

  constructor(options: SecretSourceOptions) {
    this.#options = options;
    this.#readNowMs = options.readNowMs ?? Date.now;
    const { url, apiKey, namespace, ca } = options;
    this.#service = new SecretService({ url, token: () => apiKey, namespace, ca });
    const key = hkdfSync("sha256", apiKey, url, "platform-gate sealed secrets", 32);
    this.#box = createSecretBox("gate", [Buffer.from(key)]);
  }

  /** Reads everything; the sealed copy if the service does not answer. Throws if there is none. */
  async load(): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#read();
        return;
      } catch (error) {
        this.#note(error);
        if (tries < START_TRIES) {
          await delay(START_PAUSE_MS);
          continue;
        }
        const copy = await this.#readCopy();
        if (copy === undefined) {
          throw new Error(`the secret service is not usable: ${describe(error)}`, { cause: error });
        }
        this.#content = copy;
        this.#options.log.warn("the sealed copy of the secrets is used", { reason: this.#fault });
        return;
      }
    }
  }

  /** Reads changes from now on; `onChanged` brings them to the workers. */
  start(onChanged: () => Promise<void>): void {
    this.#onChanged = onChanged;
    this.#timer = every(
      this.#options.refreshMs,
      () => this.refresh(),
      (error) => this.#note(error),
    );
  }

  async stop(): Promise<void> {
    await this.#timer?.stop();
  }

  /** Reads the present versions. Keeps what it has if that fails. */
  async refresh(): Promise<void> {
    const before = JSON.stringify(this.#content);
    const hadFormer = this.#former !== undefined;
    try {
      await this.#renewToken();
      await this.#read();
    } catch (error) {
      this.#note(error);
    }
    if (hadFormer && this.listJwtSecrets().length < 2) this.#former = undefined;
    const isChanged = JSON.stringify(this.#content) !== before;
    if (isChanged || (hadFormer && this.#former === undefined)) await this.#onChanged();
  }

  /** Certificates for the listener. */
  list(): TlsContextSpec[] {
    return this.#content.certificates.map(({ name, certPem, keyPem }) => ({
      source: "secret",
      names: listNames(new X509Certificate(certPem)),
      certPem,
      keyPem,
      file: this.#describePlace(name),
    }));
  }

  /** Another program renews them; the fault is that of the last version. */
  findRenewal(file: string): { renewAtMs: undefined; lastError: string | undefined } {
    return { renewAtMs: undefined, lastError: this.#faults.get(file) };
  }

  /** Secrets of HS256 tokens that verify now, the present one first; empty without one. */
  listJwtSecrets(): readonly string[] {
    const { jwt } = this.#content;
    if (jwt === null) return [];
    const former = this.#former;
    const isActive = former !== undefined && this.#readNowMs() < former.untilMs;
    return isActive ? [jwt.secret, former.secret] : [jwt.secret];
  }

  /** The warning of `/readyz`; undefined if there is none. */
  describe(): string | undefined {
    return this.#fault;
  }

  collect() {
    return [];
  }

  /** For `GET /api/v1/admin/sources`. */
  view(): SourceView {
    const { certificates, jwt } = this.#content;
    const versions = certificates.map(({ name, version }) => `${name}:${version}`);
    return {
      kind: "secret_service",
      address: this.#options.url,
      version: [...versions, ...(jwt === null ? [] : [`jwt:${jwt.version}`])].join(" "),
      readAtMs: this.#readAtMs,
      error: this.#fault,
    };
  }

  async #read(): Promise<void> {
    const { mount, jwtPath } = this.#options;
    const certificates = await this.#readCertificates();
    const stored = await this.#service.read(mount, jwtPath);
    const secret = stored?.data["secret"];
    if (stored !== undefined && (secret === undefined || secret === "")) {
      throw new SecretServiceError("malformed", `${jwtPath} has no field secret`);
    }
    const jwt = secret === undefined ? null : { version: stored!.version, secret };
    const before = this.#content.jwt;
    if (before !== null && before.secret !== jwt?.secret) {
      this.#former = { secret: before.secret, untilMs: this.#readNowMs() + OVERLAP_MS };
      this.#options.log.info("JWT secret replaced", { version: jwt?.version ?? null });
    }
    const next = { certificates, jwt };
    const isSame = JSON.stringify(next) === JSON.stringify(this.#content);
    this.#content = next;
    this.#readAtMs = this.#readNowMs();
    this.#fault = undefined;
    if (!isSame) await this.#writeCopy();
  }

  // A pair that is not usable leaves its previous version in use, and does not hold the others back.
  async #readCertificates(): Promise<SecretCertificate[]> {
    const { mount, certificatesPath, log } = this.#options;
    const names = await this.#service.list(mount, certificatesPath);
    const read: SecretCertificate[] = [];
    const faults = new Map<string, string>();
    for (const name of names.filter((one) => !one.endsWith("/")).slice(0, CERTIFICATES_MAX)) {
      const before = this.#content.certificates.find((one) => one.name === name);
      const stored = await this.#service.read(mount, `${certificatesPath}/${name}`);
      if (stored === undefined) continue;
      const { version, data } = stored;
      try {
        read.push({ name, version, ...readPair(data) });
      } catch (error) {
        const reason = describe(error);
        if (before !== undefined) read.push(before);
        const place = this.#describePlace(name);
        faults.set(place, `${place}: ${reason}`);
        if (this.#faults.get(place) === faults.get(place)) continue;
        log.error("a certificate of the secret service is not usable", { name, version, reason });
      }
    }
    this.#faults = faults;
    return read;
  }

  async #renewToken(): Promise<void> {
    const now = this.#readNowMs();
    if (this.#renewAtMs === undefined || now < this.#renewAtMs) return;
    const renewed = this.#renewAtMs > 0;
    if (renewed) await this.#service.renewToken();
    const { isRenewable, ttlSeconds } = await this.#service.readToken();
    this.#renewAtMs = isRenewable && ttlSeconds > 0 ? now + ttlSeconds * 500 : undefined;
  }

  async #writeCopy(): Promise<void> {
    const { folder, isEphemeral, log } = this.#options;
    if (isEphemeral) return;
    try {
      await makeFolder(folder);
      const sealed = this.#box.seal(JSON.stringify(this.#content), PLACE);
      await replaceFile(join(folder, PLACE), sealed);
    } catch (error) {
      log.warn("the sealed copy of the secrets cannot be written", { reason: describe(error) });
    }
  }

  async #readCopy(): Promise<Content | undefined> {
    const { folder, log } = this.#options;
    const path = join(folder, PLACE);
    try {
      const sealed = await readTextFile(path, COPY_BYTES_MAX);
      if (sealed === undefined) return undefined;
      return copySchema.parse(JSON.parse(this.#box.open(sealed, PLACE)));
    } catch {
      log.error("the sealed copy of the secrets is not usable", { path });
      return undefined;
    }
  }

  #note(error: unknown): void {
    const reason = describe(error);
    if (reason !== this.#fault) this.#options.log.warn("cannot read secrets", { reason });
    this.#fault = reason;
  }

  #describePlace(name: string): string {
    const { mount, certificatesPath } = this.#options;
    return `${mount}/${certificatesPath}/${name}`;
  }
}

/** Throws an Error without parts of the values. */
function readPair(data: Readonly<Record<string, string>>): { certPem: string; keyPem: string } {
  const certPem = data["cert"] ?? data["certificate"] ?? data["tls.crt"];
  const keyPem = data["key"] ?? data["private_key"] ?? data["tls.key"];
  if (certPem === undefined) throw new Error("it has no certificate");
  if (keyPem === undefined) throw new Error("it has no key");
  const isPair = isPairOf(certPem, keyPem);
  if (isPair === undefined) throw new Error("certificate or key is not PEM");
  if (!isPair) throw new Error("the key belongs to another certificate");
  checkUsable({ cert: certPem, key: keyPem }, "the certificate");
  return { certPem, keyPem };
}

/** Undefined if one of them cannot be parsed. */
function isPairOf(certPem: string, keyPem: string): boolean | undefined {
  try {
    return new X509Certificate(certPem).checkPrivateKey(createPrivateKey(keyPem));
  } catch {
    return undefined;
  }
}

function listNames(certificate: X509Certificate): string[] {
  return listDnsNames(certificate).filter((name) => isServerName(name, true));
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
