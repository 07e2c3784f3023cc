// Automatic certificates: account and certificates on disk, pending challenges, and the names that the routes have.
import { createHash, hkdfSync, randomUUID } from "node:crypto";
import { ConfigError } from "@platform/kernel/config";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import { createSecretBox } from "@platform/kernel/secrets";
import { every } from "@platform/kernel/time";
import { AcmeFiles } from "../acme/acme-files.ts";
import { CertificateFolder } from "../acme/certificate-folder.ts";
import { AskedNames } from "../acme/asked-names.ts";
import { type AcmeSettings, CertificateManager } from "../acme/certificate-manager.ts";
import { ChallengeBoard, type PendingChallenges } from "../acme/challenge-board.ts";
import type { Proof } from "../acme/order.ts";
import { SharedCertificates } from "../acme/shared-certificates.ts";
import { DnsChallenges } from "../acme/dns-challenge.ts";
import { GATE_VERSION, type GateConfig } from "../config/document.ts";
import { parseNameServer } from "../config/discovery-address.ts";
import { parseTsigKey } from "../config/tsig-key.ts";
import type { Controller } from "../control/controller.ts";
import type { GateState } from "../control/gate-state.ts";
import { isServerName } from "../shared-state/index.ts";
import { readAuthorities } from "../config/authorities.ts";

const NAMES_CHECK_MS = 1_000;

/** Options of {@link openAutomaticTls}. */
interface AutomaticTlsOptions {
  config: GateConfig;
  /** Folder of the gateway's state. */
  folder: string;
  lock: () => Promise<void>;
  log: Logger;
}

/** Reads account and certificates; undefined without `auto_tls`. Throws if the account is damaged. */
export async function openAutomaticTls(
  options: AutomaticTlsOptions,
): Promise<AutomaticTls | undefined> {
  if (!options.config.auto_tls) return undefined;
  const automatic = new AutomaticTls(options);
  await automatic.manager.load();
  return automatic;
}

/** Certificates of the configured names, of hosts of routes, and of names that were asked for. */
export class AutomaticTls {
  readonly manager: CertificateManager;
  readonly #config: GateConfig;
  readonly #board: ChallengeBoard;
  readonly #asked: AskedNames | undefined;
  readonly #shared: SharedCertificates | undefined;
  #controller: Controller | undefined;
  /** State whose names are set. */
  #known: GateState | undefined;
  /** True if the workers may lack a stored certificate. */
  #isPending = false;

  constructor({ config, folder, lock, log }: AutomaticTlsOptions) {
    this.#config = config;
    const apply = async (): Promise<void> => this.#controller?.renew();
    this.#board = new ChallengeBoard(apply, Date.now);
    const settings = readSettings(config);
    const dns = openDns(config, log);
    const { directoryUrl } = settings;
    const { certificates_dir: dir } = config;
    const isEphemeral = config.ephemeral;
    this.manager = new CertificateManager({
      settings,
      files: new AcmeFiles({ folder, directoryUrl, isEphemeral, log, readNowMs: Date.now }),
      userAgent: `platform-gate/${GATE_VERSION}`,
      lock,
      folder: dir === undefined ? undefined : new CertificateFolder({ folder: dir, log }),
      publish: (proof, signal) =>
        proof.type === "dns-01" ? dns!.add(proof, signal) : this.#publish(proof),
      shared: () => this.#shared,
      onChanged: apply,
      log,
    });
    this.#shared = this.#openShared(log);
    const { auto_tls_ask_url: url } = config;
    if (url === undefined) return;
    this.#asked = new AskedNames({
      url,
      // They are set at the next look.
      onAdded: () => (this.#known = undefined),
      log,
      readNowMs: Date.now,
    });
  }

  /** Challenges that the workers answer. */
  listChallenges(): PendingChallenges {
    return this.#board.list();
  }

  /** Sets the names of the first state. Throws ConfigError if there are none. */
  begin(state: GateState): void {
    this.#asked?.adopt(this.manager.listAsked());
    if (listNames(this.#config, state).length === 0 && this.#asked === undefined) {
      const message =
        "there is no name for a certificate: set auto_tls_domain, or `host` of routes";
      throw new ConfigError([{ source: "configuration", path: "auto_tls", message }]);
    }
    this.#setNames(state);
  }

  /** Notes the name of a handshake that no certificate fits. */
  noteUnknown(name: string): void {
    void this.#asked?.note(name);
  }

  /** Starts orders; changes reach the workers through the controller. Resolves when they use all stored certificates. */
  async start(
    controller: Controller,
    lifecycle: Pick<Lifecycle, "onDrain">,
    log: Logger,
  ): Promise<void> {
    this.#controller = controller;
    const follow = async (): Promise<void> => {
      if (controller.state !== this.#known) this.#setNames(controller.state);
      if (!this.#isPending) return;
      await this.manager.install();
      this.#isPending = false;
    };
    const names = every(NAMES_CHECK_MS, follow, (error) =>
      log.error("cannot use stored certificates", { error: String(error) }),
    );
    await names.run();
    this.#shared?.start();
    this.manager.start();
    lifecycle.onDrain("automatic certificates", async () => {
      await names.stop();
      await this.manager.stop();
      await this.#shared?.stop();
    });
  }

  async #publish(proof: Proof): Promise<() => Promise<void>> {
    const withdraw = await this.#board.add(proof);
    const withdrawShared = await this.#shared?.addProof(proof);
    return async () => {
      await withdrawShared?.();
      await withdraw();
    };
  }

  #openShared(log: Logger): SharedCertificates | undefined {
    const { limits_redis_url: url, cookie_keys: keys = [] } = this.#config;
    if (url === undefined) return undefined;
    if (keys.length === 0) {
      log.warn("certificates are not shared with other gateways: that requires cookie_keys", {});
      return undefined;
    }
    const derived = keys.map((key) =>
      Buffer.from(
        hkdfSync("sha256", Buffer.from(key, "base64url"), "", "platform-gate certificates", 32),
      ),
    );
    const { acme_directory_url: directory } = this.#config;
    return new SharedCertificates({
      url,
      scope: createHash("sha256").update(directory).digest("hex").slice(0, 16),
      gateway: randomUUID(),
      box: createSecretBox("gate", derived),
      setProofs: (proofs) => this.#board.setOthers(proofs),
      adopt: (certificate) => this.manager.adopt(certificate),
      list: () => this.manager.listStored(),
      log,
    });
  }

  #setNames(state: GateState): void {
    this.#known = state;
    const names = listNames(this.#config, state).map((name) => ({ name, isAsked: false }));
    const others = (this.#asked?.list() ?? []).map((name) => ({ name, isAsked: true }));
    if (this.manager.setNames([...others, ...names])) this.#isPending = true;
  }
}

/** The configured names, and the hosts of the routes. */
function listNames(
  { auto_tls_domain: domains, auto_tls_hosts: usesHosts = domains.length === 0 }: GateConfig,
  { routes }: GateState,
): string[] {
  const hosts = usesHosts ? [...routes.values()].flatMap(({ host }) => host ?? []) : [];
  const names = hosts.filter((host) => isServerName(host) && host.includes("."));
  return [...new Set([...domains, ...names])];
}

/** Undefined without `acme_dns`. */
function openDns({ acme_dns: dns }: GateConfig, log: Logger): DnsChallenges | undefined {
  if (dns === undefined) return undefined;
  const readNowMs = Date.now;
  if (dns.type === "hook") return new DnsChallenges({ settings: dns, log, readNowMs });
  const { type, zone, tsig_key: key } = dns;
  const server = parseNameServer(dns.server)!;
  const settings = { type, zone, server, key: key === undefined ? undefined : parseTsigKey(key) };
  return new DnsChallenges({ settings, log, readNowMs });
}

function readSettings(config: GateConfig): AcmeSettings {
  const { acme_eab_kid: kid, acme_eab_hmac_key: hmacKey } = config;
  return {
    directoryUrl: config.acme_directory_url,
    ca: config.acme_ca === undefined ? undefined : readAuthorities(config.acme_ca, "acme_ca"),
    email: config.acme_email,
    binding: kid === undefined || hmacKey === undefined ? undefined : { kid, hmacKey },
    profile: config.acme_profile,
    keyType: config.acme_key_type,
    challenges: config.acme_challenges,
  };
}
