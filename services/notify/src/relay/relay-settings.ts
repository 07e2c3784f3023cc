// Shows, sets and tries the relay that administrators set through the API.
import { randomUUID } from "node:crypto";
import { createValidationError } from "@platform/kernel/http";
import type { SecretBox } from "@platform/kernel/secrets";
import type { Clock } from "@platform/kernel/time";
import { parseMailbox, type Mailbox } from "../address/mailbox.ts";
import type { NotifyConfig } from "../config.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import type { Outcome } from "../delivery.ts";
import { composeMessage } from "../message/compose.ts";
import { readRelays, sendsMail } from "./create-transport.ts";
import { SmtpServer, type Unreachable } from "./smtp/server.ts";
import {
  applyStoredRelay,
  findHeldKeys,
  readStoredRelay,
  RELAY_KEYS,
  writeStoredRelay,
  type HeldKeys,
  type RelayKey,
  type StoredRelay,
} from "./stored-relay.ts";

/** Options of {@link openRelaySettings}. */
export interface RelaySettingsOptions {
  /** The configuration without the stored relay. */
  config: NotifyConfig;
  /** Source of each key; see `LoadedCommand`. */
  sources: ReadonlyMap<string, string> | undefined;
  database: NotifyDatabase;
  box: SecretBox;
  clock: Clock;
}

/** Values to set. Omitted: those of the configuration, and the stored password for the same server and user. */
export interface RelayChange {
  host?: string | undefined;
  port?: number | undefined;
  user?: string | undefined;
  pass?: string | undefined;
}

/** A key with its value and its source. */
export interface RelayKeyState {
  name: RelayKey;
  /** Null without a value, and for the password. */
  value: string | number | null;
  isSet: boolean;
  source: "configuration" | "stored" | "default";
  /** Place in the configuration; null for other sources. */
  place: string | null;
}

/** The reply of a server to a test, and its sender. */
export type RelayTrial = (Outcome | Unreachable) & { from: string };

type FieldProblem = Parameters<typeof createValidationError>[0][number];

const TRIAL_STEP_MS = 10_000;
const TRIAL_MS = 30_000;
const FIELDS: Readonly<Record<RelayKey, keyof RelayChange>> = {
  "smtp.host": "host",
  "smtp.port": "port",
  "smtp.user": "user",
  "smtp.pass": "pass",
};

/** Opens the settings with what is stored. */
export async function openRelaySettings(options: RelaySettingsOptions): Promise<RelaySettings> {
  const { database, box } = options;
  return new RelaySettings(options, await readStoredRelay(database, box));
}

/** The settings. With several nodes on one database, the others read a change when they start. */
export class RelaySettings {
  readonly #options: RelaySettingsOptions;
  readonly #held: HeldKeys;
  /** False if mail was kept in the development inbox when the service started. */
  readonly isSending: boolean;
  #stored: StoredRelay | undefined;
  #onChange: ((config: NotifyConfig) => void) | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: RelaySettingsOptions, stored: StoredRelay | undefined) {
    this.#options = options;
    this.#held = findHeldKeys(options.config, options.sources);
    this.#stored = stored;
    this.isSending = sendsMail(this.config);
  }

  /** The configuration with the stored relay. */
  get config(): NotifyConfig {
    return applyStoredRelay(this.#options.config, this.#held, this.#stored);
  }

  /** The person who set the stored relay, and the time. Undefined without one. */
  get setBy(): Pick<StoredRelay, "setBy" | "setAtMs"> | undefined {
    return this.#stored;
  }

  /** True if mail starts or stops to leave the service only with a restart. */
  get isRestartNeeded(): boolean {
    return sendsMail(this.config) !== this.isSending;
  }

  /** The key of the configuration because of which a relay that is set here has no effect, and its place. */
  get obstacle(): { key: string; place: string } | undefined {
    const { "smtp.mode": mode } = this.#options.config;
    const isOther = mode === "direct" || mode === "inbox";
    const key = this.#held.has("smtp.relays") ? "smtp.relays" : isOther ? "smtp.mode" : undefined;
    return key === undefined ? undefined : { key, place: this.#held.get(key) ?? "" };
  }

  /** Calls the listener with each new configuration whose mail leaves the service as before. */
  onChange(listener: (config: NotifyConfig) => void): void {
    this.#onChange = listener;
  }

  /** Describes each key. */
  list(): RelayKeyState[] {
    const { config } = this;
    return RELAY_KEYS.map((name) => {
      const value = config[name] ?? null;
      const place = this.#held.get(name) ?? null;
      const isStored = this.#stored?.[FIELDS[name]] !== undefined && value !== null;
      const source = place !== null ? "configuration" : isStored ? "stored" : "default";
      const isSecret = name === "smtp.pass";
      return { name, value: isSecret ? null : value, isSet: value !== null, source, place };
    });
  }

  /** Stores a relay. Throws PlatformError if a value is missing, or is that of the configuration. */
  async set(change: RelayChange, setBy: string): Promise<void> {
    await this.#write(() => this.#plan(change, setBy));
  }

  /** Removes the stored relay. */
  async remove(): Promise<void> {
    await this.#write(() => undefined);
  }

  /** Sends a mail through a relay without storing it. Throws as {@link set}; waits for at most a minute. */
  async try(
    change: RelayChange,
    to: Mailbox,
    sign: (content: Buffer, domain: string) => Promise<string>,
  ): Promise<RelayTrial> {
    const { clock, config: base } = this.#options;
    const config = applyStoredRelay(base, this.#held, this.#plan(change, ""));
    const from = chooseSender(config, to);
    const content = composeMessage({
      headerId: `<${randomUUID()}@${from.domain}>`,
      dateMs: clock.now(),
      from,
      to: [to],
      cc: [],
      replyTo: [],
      subject: "Test of the mail relay",
      text: "This mail was sent to try the relay. If you read it, the relay delivers.\n",
      attachments: [],
      headers: [["Auto-Submitted", "auto-generated"]],
    });
    const signature = Buffer.from(await sign(content, from.domain), "latin1");
    const server = new SmtpServer({
      ...readRelays(config)[0]!,
      connectTimeoutMs: Math.min(config["smtp.connect_timeout_ms"], TRIAL_STEP_MS),
      commandTimeoutMs: Math.min(config["smtp.command_timeout_ms"], TRIAL_STEP_MS),
      contentTimeoutMs: Math.min(config["smtp.content_timeout_ms"], TRIAL_STEP_MS),
    });
    try {
      const envelope = { sender: from.address, recipient: to.address };
      const parts = signature.length === 0 ? [content] : [signature, content];
      return {
        ...(await server.send(envelope, parts, AbortSignal.timeout(TRIAL_MS))),
        from: from.address,
      };
    } finally {
      server.close();
    }
  }

  // One after another, so that the last answer is what is stored.
  async #write(plan: () => StoredRelay | undefined): Promise<void> {
    const { database, box } = this.#options;
    const write = this.#last.then(async () => {
      const relay = plan();
      await writeStoredRelay(database, box, relay);
      this.#stored = relay;
      if (this.isSending && !this.isRestartNeeded) this.#onChange?.(this.config);
    });
    this.#last = write.catch(() => undefined);
    await write;
  }

  #plan(change: RelayChange, setBy: string): StoredRelay {
    const { config, clock } = this.#options;
    const problems = this.#listConflicts(change);
    const host = this.#held.has("smtp.host") ? config["smtp.host"] : change.host;
    const port = this.#held.has("smtp.port") ? config["smtp.port"] : (change.port ?? 587);
    const user = this.#held.has("smtp.user") ? config["smtp.user"] : change.user;
    const stored = this.#stored;
    const isKept = stored?.host === host && stored?.port === port && stored?.user === user;
    const pass = change.pass ?? (isKept ? stored?.pass : undefined);
    const add = (path: string, message: string): void =>
      void problems.push({ in: "body", path, message });
    if (host === undefined) add("host", "required");
    if (user === undefined && change.pass !== undefined) add("user", "required with a password");
    if (user !== undefined && pass === undefined && !this.#held.has("smtp.pass"))
      add("pass", "required: the stored password is for another server or user, or there is none");
    if (problems.length > 0) throw createValidationError(problems);
    const credentials = user === undefined ? {} : { user, ...(pass === undefined ? {} : { pass }) };
    return { host: host!, port, ...credentials, setBy, setAtMs: clock.now() };
  }

  #listConflicts(change: RelayChange): FieldProblem[] {
    const { config } = this.#options;
    const { obstacle } = this;
    const found = RELAY_KEYS.filter(
      (key) =>
        this.#held.has(key) &&
        change[FIELDS[key]] !== undefined &&
        change[FIELDS[key]] !== config[key],
    ).map((key) => ({
      in: "body" as const,
      path: FIELDS[key],
      message: `${key} is set by ${this.#held.get(key)}, which takes precedence`,
    }));
    if (obstacle === undefined) return found;
    const message = `${obstacle.key} is set by ${obstacle.place}, which takes precedence over a relay`;
    return [...found, { in: "body", path: "host", message }];
  }
}

// A relay refuses senders of domains that are not its user's.
function chooseSender(config: NotifyConfig, to: Mailbox): Mailbox {
  const { from_domain: domain, "smtp.user": user = "" } = config;
  const wanted = parseMailbox(domain === undefined ? user : `no-reply@${domain}`);
  return wanted.ok ? wanted.mailbox : to;
}
