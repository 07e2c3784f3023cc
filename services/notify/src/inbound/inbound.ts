// Inbound mail: creates its parts, and connects them with the SMTP server.
import type { EgressFetch } from "@platform/kernel/egress";
import type { IdSource } from "@platform/kernel/ids";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import type { SecretBox } from "@platform/kernel/secrets";
import type { Clock } from "@platform/kernel/time";
import type { CertificateWatch } from "@platform/kernel/tls";
import type { Tracer } from "@platform/kernel/trace";
import type { BounceReports } from "../bounce/bounce-reports.ts";
import type { NotifyConfig } from "../config.ts";
import type { InboundRow } from "../database/inbound.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import type { DnsLookup } from "../dns/resolver.ts";
import type { NotifyMetrics } from "../metrics.ts";
import { SigningSecrets } from "../webhook/signing-secrets.ts";
import { createAuthentication } from "./authentication.ts";
import { Forwarder } from "./forwarder.ts";
import { Receiver } from "./receiver.ts";
import { ReportReader } from "./report-reader.ts";
import { InboundRules } from "./rules.ts";
import { startInboundServer } from "./server.ts";
import { InboundStore } from "./store.ts";

/** Options of {@link Inbound}. */
export interface InboundOptions {
  config: NotifyConfig;
  database: NotifyDatabase;
  /** See `claimMark`. */
  leaseMark: number;
  /** For STARTTLS; undefined without a certificate. */
  certificates: CertificateWatch | undefined;
  box: SecretBox;
  bounceReports: BounceReports | undefined;
  /** See `ReceiverOptions`. */
  isOwnDomain: (domain: string) => boolean;
  /** See `ReportReaderOptions`. */
  readAggregate: (row: InboundRow, content: Buffer) => Promise<void>;
  lookup: DnsLookup;
  /** Sends requests with the egress guard. */
  fetch: EgressFetch;
  metrics: NotifyMetrics;
  tracer: Tracer;
  clock: Clock;
  ids: IdSource;
  log: Logger;
}

const IDLE_MS = 60_000;
/** Time kept of the drain to record what was sent. */
const RELEASE_MS = 2_000;

/** Inbound mail. */
export class Inbound {
  readonly rules: InboundRules;
  readonly store: InboundStore;
  readonly forwarder: Forwarder;
  readonly fetch: EgressFetch;
  readonly #options: InboundOptions;
  readonly #reports: ReportReader;

  constructor(options: InboundOptions) {
    const { config, database, leaseMark, box, clock, ids, log, metrics, tracer, fetch } = options;
    this.#options = options;
    this.fetch = fetch;
    const secrets = new SigningSecrets({ box, clock, table: "notify_inbound_rules" });
    this.rules = new InboundRules({ database, clock, ids, secrets });
    this.store = new InboundStore({
      database,
      leaseMark,
      clock,
      retentionMs: config.inbound_retention_ms,
    });
    const { rules, store } = this;
    this.forwarder = new Forwarder({
      database,
      leaseMark,
      rules,
      store,
      fetch,
      metrics,
      tracer,
      clock,
      log,
    });
    const { bounceReports, readAggregate } = options;
    this.#reports = new ReportReader({ store, bounceReports, readAggregate, log });
  }

  /** Starts the SMTP server, if a port is configured, the forwards and the reading of reports. */
  async start(
    lifecycle: Pick<Lifecycle, "onDrain" | "onReload" | "reportListener">,
  ): Promise<void> {
    await this.rules.load();
    await this.store.releaseOwn();
    this.forwarder.start();
    this.#reports.start();
    lifecycle.onDrain("inbound forwards", (drain) =>
      this.forwarder.stop(Math.max(0, drain.remainingMs() - RELEASE_MS)),
    );
    lifecycle.onDrain("reports", () => this.#reports.stop());
    const { inbound_port: port, inbound_host: host } = this.#options.config;
    if (port === undefined) return;
    const server = await this.#listen(host, port);
    this.#options.certificates?.follow(lifecycle, ({ pairs: [pair] }) => {
      if (pair !== undefined) server.setTls(pair);
    });
    lifecycle.onDrain(
      "smtp",
      (drain) => server.close(Math.max(0, drain.remainingMs() - RELEASE_MS)),
      "listeners",
    );
    lifecycle.reportListener({ name: "smtp", host: server.host, port: server.port });
  }

  /** Deletes what has expired, and reads changes of other nodes. */
  async sweep(): Promise<void> {
    await this.rules.load();
    await this.store.sweep();
  }

  async #listen(host: string | undefined, port: number) {
    const { config, lookup, isOwnDomain, bounceReports } = this.#options;
    const { metrics, tracer, clock, ids, log } = this.#options;
    const hostname = config["smtp.hostname"];
    const receiver = new Receiver({
      rules: this.rules,
      store: this.store,
      bounceReports,
      authenticate: createAuthentication(lookup, hostname),
      isDmarcEnforced: config.dmarc_enabled,
      isOwnDomain,
      hostname,
      metrics,
      tracer,
      clock,
      ids,
      log,
      onStored: ({ unread }) => {
        this.forwarder.wake();
        if (unread === 1) this.#reports.wake();
      },
    });
    const tls = this.#options.certificates?.current.pairs[0];
    if (this.#options.certificates === undefined) {
      log.warn("inbound mail is received without TLS: inbound_tls_cert and tls_cert are not set");
    }
    return startInboundServer({
      receiver,
      host,
      port,
      hostname,
      tls,
      messageBytesMax: config.inbound_bytes_max,
      bodyBytesMax: config.body_bytes_max,
      recipientsMax: config.inbound_recipients_max,
      connectionsMax: config.inbound_connections_max,
      connectionsPerAddressMax: config.inbound_connections_per_address_max,
      ratePerMinute: config.inbound_rate_per_minute,
      idleMs: IDLE_MS,
      clock,
      log,
    });
  }
}
