// Tunnels and their names: stored in the database, kept in memory for lookups by request.
import { createHash } from "node:crypto";
import { isUniqueViolation } from "@platform/kernel/db";
import { PlatformError } from "@platform/kernel/errors";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import type { TunnelDatabase, TunnelRow } from "../database/schema.ts";
import { OPERATOR } from "../identity.ts";
import { generateLabel, judgeLabel } from "./labels.ts";

/** Options of {@link TunnelStore}. */
export interface TunnelStoreOptions {
  database: TunnelDatabase;
  clock: Clock;
  ids: IdSource;
  /** Names that a subject can choose. */
  namesPerSubjectMax: number;
  retentionMs: number;
  /** Ports of TCP tunnels; undefined if there are none. */
  tcpPorts: { readonly first: number; readonly last: number } | undefined;
}

/** A name or port to be claimed. */
export interface Claim {
  readonly subject: string;
  readonly kind: "http" | "tcp";
  readonly target: string;
  readonly authRequired: boolean;
  readonly subdomain?: string | undefined;
  readonly port?: number | undefined;
  /** Secret of the client; absent for reservations by the API. */
  readonly clientKey?: string;
}

/** Seen times are written at most this often. */
const SEEN_EVERY_MS = 60_000;
const ROWS_PER_UPDATE = 500;
const GENERATED_PER_SUBJECT_MAX = 200;
const GENERATED_RETENTION_MS = 86_400_000;
const GENERATE_TRIES_MAX = 20;

/** All tunnels. One relay process owns the database's tunnels at a time. */
export class TunnelStore {
  readonly #options: TunnelStoreOptions;
  readonly #byId = new Map<string, TunnelRow>();
  readonly #byLabel = new Map<string, TunnelRow>();
  readonly #byPort = new Map<number, TunnelRow>();
  /** Chosen names that are being inserted, by subject: they count against the quota. */
  readonly #inserting = new Map<string, number>();

  constructor(options: TunnelStoreOptions) {
    this.#options = options;
  }

  /** Reads all tunnels into memory. */
  async load(): Promise<void> {
    const rows = await this.#options.database.db.selectFrom("tunnel_tunnels").selectAll().execute();
    for (const row of rows) this.#remember(row);
  }

  findLabel(label: string): TunnelRow | undefined {
    return this.#byLabel.get(label);
  }

  find(id: string): TunnelRow | undefined {
    return this.#byId.get(id);
  }

  /** Tunnels of a subject, of all subjects if it is undefined, oldest first. */
  list(subject: string | undefined): TunnelRow[] {
    const rows = [...this.#byId.values()];
    const own = subject === undefined ? rows : rows.filter((row) => row.subject === subject);
    return own.sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  /**
   * Claims a name or port for a subject, or finds the one that it already has. `isBusy` tells whether a tunnel is being
   * served: a generated name or a port that is in use is not given out again. Throws 400, 403 or 409.
   */
  async claim(claim: Claim, isBusy: (row: TunnelRow) => boolean): Promise<TunnelRow> {
    if (claim.kind === "tcp") return this.#claimPort(claim, isBusy);
    return claim.subdomain === undefined
      ? this.#claimGenerated(claim, isBusy)
      : this.#claimLabel(claim, claim.subdomain);
  }

  /** Records that a client serves the tunnel. */
  async noteSeen(row: TunnelRow, clientHash: string): Promise<void> {
    const nowMs = this.#options.clock.now();
    if (row.client_hash === clientHash && nowMs - row.last_seen_at < SEEN_EVERY_MS) return;
    row.last_seen_at = nowMs;
    row.client_hash = clientHash;
    await this.#options.database.db
      .updateTable("tunnel_tunnels")
      .set({ last_seen_at: nowMs, client_hash: clientHash })
      .where("id", "=", row.id)
      .execute();
  }

  /** Deletes a tunnel with its domains and shares; its name is free again. */
  async remove(row: TunnelRow): Promise<void> {
    await this.#options.database.db.deleteFrom("tunnel_tunnels").where("id", "=", row.id).execute();
    this.#forget(row);
  }

  /** Deletes names that have not been used for the retention time. Those that `isBusy` names are in use now. */
  async sweep(isBusy: (row: TunnelRow) => boolean): Promise<void> {
    const nowMs = this.#options.clock.now();
    const busy: TunnelRow[] = [];
    for (const row of this.#byId.values()) {
      const keptMs = row.generated === 1 ? GENERATED_RETENTION_MS : this.#options.retentionMs;
      if (isBusy(row)) busy.push(row);
      else if (nowMs - row.last_seen_at > keptMs) await this.remove(row);
    }
    await this.#noteBusy(busy, nowMs);
  }

  /** Without it, a client that is connected for longer than the retention time would lose its name when it disconnects. */
  async #noteBusy(rows: readonly TunnelRow[], nowMs: number): Promise<void> {
    for (let at = 0; at < rows.length; at += ROWS_PER_UPDATE) {
      const batch = rows.slice(at, at + ROWS_PER_UPDATE);
      const ids = batch.map(({ id }) => id);
      await this.#options.database.db
        .updateTable("tunnel_tunnels")
        .set({ last_seen_at: nowMs })
        .where("id", "in", ids)
        .execute();
      for (const row of batch) row.last_seen_at = nowMs;
    }
  }

  async #claimLabel(claim: Claim, label: string): Promise<TunnelRow> {
    const fault = judgeLabel(label);
    if (fault !== undefined) throw new PlatformError("validation_failed", fault);
    const known = this.#byLabel.get(label);
    if (known !== undefined) return this.#reclaim(known, claim);
    this.#expectRoom(claim.subject);
    const row = await this.#insert(claim, { subdomain: label, port: null, generated: 0 });
    if (row === undefined) throw createTakenError(label);
    return row;
  }

  /** The tunnel of a name that exists, if the claim may use it. */
  async #reclaim(row: TunnelRow, claim: Claim): Promise<TunnelRow> {
    if (row.subject !== claim.subject) throw createTakenError(row.subdomain ?? String(row.port));
    if (claim.clientKey === undefined) {
      throw new PlatformError(
        "conflict",
        `You already have the tunnel ${row.subdomain ?? row.port}.`,
      );
    }
    if (row.reserved === 1 && row.target !== "" && row.target !== claim.target) {
      throw new PlatformError(
        "conflict",
        `The tunnel ${row.subdomain ?? row.port} is reserved for the target ${row.target}.`,
      );
    }
    // A reservation that requires credentials cannot be opened up by a client.
    const authRequired = claim.authRequired || (row.reserved === 1 && row.auth_required === 1);
    if (row.target !== claim.target || (row.auth_required === 1) !== authRequired) {
      const change = { target: claim.target, auth_required: authRequired ? 1 : 0 } as const;
      await this.#options.database.db
        .updateTable("tunnel_tunnels")
        .set(change)
        .where("id", "=", row.id)
        .execute();
      Object.assign(row, change);
    }
    return row;
  }

  /** A client gets the generated name back that it had for the same target. */
  async #claimGenerated(claim: Claim, isBusy: (row: TunnelRow) => boolean): Promise<TunnelRow> {
    const hash = claim.clientKey === undefined ? "" : hashKey(claim.clientKey);
    const own = this.list(claim.subject).filter((row) => row.generated === 1);
    const former = own.find(
      (row) =>
        row.client_hash === hash && row.target === claim.target && hash !== "" && !isBusy(row),
    );
    if (former !== undefined) return this.#reclaim(former, claim);
    const idle = own.filter((row) => !isBusy(row));
    if (own.length >= GENERATED_PER_SUBJECT_MAX && claim.subject !== OPERATOR) {
      const oldest = idle.reduce<TunnelRow | undefined>(
        (least, row) =>
          least === undefined || row.last_seen_at < least.last_seen_at ? row : least,
        undefined,
      );
      if (oldest === undefined) throw createQuotaError(GENERATED_PER_SUBJECT_MAX);
      await this.remove(oldest);
    }
    for (let tries = 0; tries < GENERATE_TRIES_MAX; tries++) {
      const subdomain = generateLabel();
      if (this.#byLabel.has(subdomain)) continue;
      const row = await this.#insert(claim, { subdomain, port: null, generated: 1 });
      if (row !== undefined) return row;
    }
    throw new PlatformError("unavailable", "No free name was found; try again.");
  }

  async #claimPort(claim: Claim, isBusy: (row: TunnelRow) => boolean): Promise<TunnelRow> {
    const range = this.#options.tcpPorts;
    if (range === undefined) {
      throw new PlatformError("forbidden", "This relay has no ports for TCP tunnels (tcp_ports).");
    }
    const wanted = claim.port ?? this.#findFormerPort(claim, isBusy) ?? this.#findFreePort(range);
    if (wanted < range.first || wanted > range.last) {
      throw new PlatformError(
        "validation_failed",
        `The port must be within ${range.first} to ${range.last}.`,
      );
    }
    const known = this.#byPort.get(wanted);
    if (known !== undefined) return this.#reclaim(known, claim);
    this.#expectRoom(claim.subject);
    const generated = claim.port === undefined ? 1 : 0;
    const row = await this.#insert(claim, { subdomain: null, port: wanted, generated });
    if (row === undefined) throw createTakenError(String(wanted));
    return row;
  }

  #findFormerPort(claim: Claim, isBusy: (row: TunnelRow) => boolean): number | undefined {
    const hash = claim.clientKey === undefined ? "" : hashKey(claim.clientKey);
    const former = this.list(claim.subject).find(
      (row) =>
        row.kind === "tcp" &&
        row.client_hash === hash &&
        row.target === claim.target &&
        hash !== "" &&
        !isBusy(row),
    );
    return former?.port ?? undefined;
  }

  #findFreePort({ first, last }: { first: number; last: number }): number {
    for (let port = first; port <= last; port++) if (!this.#byPort.has(port)) return port;
    throw new PlatformError("unavailable", "All ports for TCP tunnels are in use.");
  }

  #expectRoom(subject: string): void {
    if (subject === OPERATOR) return;
    const most = this.#options.namesPerSubjectMax;
    const chosen = this.list(subject).filter((row) => row.generated === 0);
    const inserting = this.#inserting.get(subject) ?? 0;
    if (chosen.length + inserting >= most) throw createQuotaError(most);
  }

  async #insert(
    claim: Claim,
    name: Pick<TunnelRow, "subdomain" | "port" | "generated">,
  ): Promise<TunnelRow | undefined> {
    const { subject } = claim;
    this.#inserting.set(subject, (this.#inserting.get(subject) ?? 0) + 1);
    try {
      return await this.#insertRow(claim, name);
    } finally {
      const left = (this.#inserting.get(subject) ?? 1) - 1;
      if (left === 0) this.#inserting.delete(subject);
      else this.#inserting.set(subject, left);
    }
  }

  async #insertRow(
    claim: Claim,
    name: Pick<TunnelRow, "subdomain" | "port" | "generated">,
  ): Promise<TunnelRow | undefined> {
    const { database, clock, ids } = this.#options;
    const nowMs = clock.now();
    const row: TunnelRow = {
      id: ids.uuid(),
      subject: claim.subject,
      kind: claim.kind,
      ...name,
      target: claim.target,
      auth_required: claim.authRequired ? 1 : 0,
      reserved: claim.clientKey === undefined ? 1 : 0,
      client_hash: claim.clientKey === undefined ? "" : hashKey(claim.clientKey),
      created_at: nowMs,
      last_seen_at: nowMs,
    };
    try {
      await database.db.insertInto("tunnel_tunnels").values(row).execute();
    } catch (error) {
      if (isUniqueViolation(error)) return undefined;
      throw error;
    }
    this.#remember(row);
    return row;
  }

  #remember(row: TunnelRow): void {
    this.#byId.set(row.id, row);
    if (row.subdomain !== null) this.#byLabel.set(row.subdomain, row);
    if (row.port !== null) this.#byPort.set(row.port, row);
  }

  #forget(row: TunnelRow): void {
    this.#byId.delete(row.id);
    if (row.subdomain !== null) this.#byLabel.delete(row.subdomain);
    if (row.port !== null) this.#byPort.delete(row.port);
  }
}

/** Digest by which a client's key is stored. */
export function hashKey(clientKey: string): string {
  return createHash("sha256").update(clientKey).digest("base64url");
}

function createTakenError(name: string): PlatformError {
  return new PlatformError("conflict", `The name ${name} is taken.`);
}

function createQuotaError(most: number): PlatformError {
  return new PlatformError("forbidden", `A subject can hold at most ${most} names.`);
}
