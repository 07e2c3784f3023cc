// Sends aggregate reports: one per day and policy domain that asks for them, through the queue of the service.
//
//   received mail of a day ─► policy domain ─► record with rua? ─► permitted targets ─► XML, gzip ─► queue
//                                  └─ a row per day and domain: claimed, then sent, skipped or failed
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { PlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { DmarcSentRow } from "../database/dmarc.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import { readDnsCode } from "../dns/resolver.ts";
import { createFeedback } from "./feedback.ts";
import { Observations, type ReportPeriod } from "./observations.ts";
import { findPermitted, type ReadTexts } from "./permission.ts";
import { parsePolicyRecord, type ReportTarget } from "./policy-record.ts";

/** A report as a mail. */
export interface ReportMail {
  from: string;
  to: string;
  subject: string;
  text: string;
  filename: string;
  /** gzip. */
  content: Buffer;
  /** The same for repeated attempts to send this report to this address. */
  key: string;
}

/** Options of {@link ReportSender}. */
export interface ReportSenderOptions {
  database: NotifyDatabase;
  clock: Clock;
  log: Logger;
  /** Domain of this service. */
  orgName: string;
  readTexts: ReadTexts;
  /** Queues a mail. Throws PlatformError if its recipient is suppressed or refuses it. */
  send: (mail: ReportMail) => Promise<void>;
}

type Result = Pick<DmarcSentRow, "status" | "messages" | "recipients" | "detail">;

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** Reports are sent this long after the end of their day, in UTC. */
const DELAY_MS = 30 * MINUTE_MS;
/** Days that are made up for after an interruption. */
const DAYS_MAX = 3;
const LEASE_MS = 10 * MINUTE_MS;
const RETRY_MS = 60 * MINUTE_MS;
const ATTEMPTS_MAX = 24;
/** Reports of a day. */
const REPORTS_MAX = 10_000;
/** Reports that are repeated in a turn. */
const RETRIES_MAX = 100;
const RETENTION_MS = 93 * DAY_MS;
const DETAIL_CHARACTERS_MAX = 300;
/** Header, text and base64 around the attachment. */
const MAIL_OVERHEAD_BYTES = 2_048;
const BASE64_OVERHEAD = 78 / 57;
const compress = promisify(gzip);

/** Sends reports about received mail. */
export class ReportSender {
  readonly #options: ReportSenderOptions;
  readonly #observations: Observations;
  /** Starts of days whose received mail was searched for policy domains: no more mail is added to them. */
  readonly #searched = new Set<number>();
  #timer: RepeatingTimer | undefined;
  #isStopped = false;

  constructor(options: ReportSenderOptions) {
    this.#options = options;
    this.#observations = new Observations(options.database);
  }

  /** Looks for due reports every minute. */
  start(): void {
    const { log } = this.#options;
    const onError = (error: unknown): void => log.error("sending DMARC reports failed", { error });
    this.#timer = every(MINUTE_MS, () => this.#sendDue(), onError);
  }

  /** Sends due reports now. */
  async run(): Promise<void> {
    await this.#timer?.run();
  }

  /** Stops after the report that is being sent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#timer?.stop();
  }

  /** Returns up to `max` reports of days in a time range, newest first. */
  async list(fromMs: number, toMs: number, max: number): Promise<DmarcSentRow[]> {
    return this.#options.database.db
      .selectFrom("notify_dmarc_sent")
      .selectAll()
      .where("begins_at", ">=", fromMs)
      .where("begins_at", "<", toMs)
      .orderBy("begins_at", "desc")
      .orderBy("domain")
      .limit(max)
      .execute();
  }

  async #sendDue(): Promise<void> {
    const { database, clock } = this.#options;
    const nowMs = clock.now();
    await database.db
      .deleteFrom("notify_dmarc_sent")
      .where("begins_at", "<=", nowMs - RETENTION_MS)
      .execute();
    const today = Math.floor((nowMs - DELAY_MS) / DAY_MS);
    for (const beginsAt of this.#searched) {
      if (beginsAt < (today - DAYS_MAX) * DAY_MS) this.#searched.delete(beginsAt);
    }
    for (let day = today - DAYS_MAX; day < today; day += 1) {
      await this.#sendDay({ beginsAt: day * DAY_MS, endsAt: (day + 1) * DAY_MS });
    }
  }

  async #sendDay(period: ReportPeriod): Promise<void> {
    for (;;) {
      const due = await this.#listDue(period);
      if (due.length === 0) break;
      for (const domain of due) {
        if (this.#isStopped) return;
        await this.#sendReport(domain, period);
      }
    }
    this.#searched.add(period.beginsAt);
  }

  // A day is searched once; afterwards only interrupted and failed reports are left.
  async #listDue(period: ReportPeriod): Promise<string[]> {
    const { database, clock } = this.#options;
    if (!this.#searched.has(period.beginsAt) && (await this.#count(period)) < REPORTS_MAX) {
      return this.#observations.listDueDomains(period, clock.now());
    }
    const rows = await database.db
      .selectFrom("notify_dmarc_sent")
      .select("domain")
      .where("begins_at", "=", period.beginsAt)
      .where("due_at", "<=", clock.now())
      .limit(RETRIES_MAX)
      .execute();
    return rows.map(({ domain }) => domain);
  }

  async #sendReport(domain: string, period: ReportPeriod): Promise<void> {
    const { clock, log } = this.#options;
    const row = await this.#claim(domain, period);
    if (row === undefined) return;
    try {
      await this.#finish(row, await this.#create(domain, period), null);
    } catch (error) {
      // Failures of DNS and of the queue pass.
      log.warn("a DMARC report could not be sent", { domain, error });
      const isLast = row.attempts >= ATTEMPTS_MAX;
      const detail = error instanceof PlatformError ? error.detail : `DNS: ${readDnsCode(error)}`;
      const result = { messages: 0, recipients: "[]", detail };
      const status = isLast ? "failed" : "pending";
      await this.#finish(row, { ...result, status }, isLast ? null : clock.now() + RETRY_MS);
    }
  }

  async #create(domain: string, period: ReportPeriod): Promise<Result> {
    const { orgName, readTexts, log } = this.#options;
    const skip = (detail: string): Result => ({
      status: "skipped",
      messages: 0,
      recipients: "[]",
      detail,
    });
    const record = parsePolicyRecord(await readTexts(`_dmarc.${domain}`));
    if (record === undefined) return skip("the domain has no DMARC record any more");
    if (record.rua.length === 0) return skip("the record has no rua with a mailto: address");
    const targets = await findPermitted(domain, record.rua, readTexts);
    if (targets.length === 0) return skip("no address of rua permits reports about this domain");
    const observations = await this.#observations.read(domain, period);
    const email = `postmaster@${orgName}`;
    const options = { ...period, orgName, email, domain, record, observations };
    const { xml, filename, subject, reportId } = createFeedback(options);
    const content = await compress(xml);
    const day = new Date(period.beginsAt).toISOString().slice(0, 10);
    const text = `This is an aggregate DMARC report of ${orgName} about mail from ${domain}\nthat was received on ${day} (UTC).\n`;
    const { sent, failures } = await this.#sendTo(targets, (to) => ({
      from: email,
      to,
      subject,
      text,
      filename,
      content,
      key: `dmarc-${reportId}-${to}`,
    }));
    const messages = observations.reduce((sum, { count }) => sum + count, 0);
    log.info("DMARC report sent", { domain, messages, to: sent.join(", "), failures });
    const status = sent.length === 0 ? "failed" : "sent";
    return { status, messages, recipients: JSON.stringify(sent), detail: failures.join("; ") };
  }

  // An address that refuses its report does not keep the others from theirs.
  async #sendTo(
    targets: readonly ReportTarget[],
    create: (to: string) => ReportMail,
  ): Promise<{ sent: string[]; failures: string[] }> {
    const sent: string[] = [];
    const failures: string[] = [];
    for (const { address, bytesMax } of targets) {
      const mail = create(address);
      const size = mail.content.length * BASE64_OVERHEAD + MAIL_OVERHEAD_BYTES;
      if (size > bytesMax) {
        failures.push(`${address}: the report exceeds its limit of ${bytesMax} bytes`);
        continue;
      }
      try {
        await this.#options.send(mail);
        sent.push(address);
      } catch (error) {
        if (!(error instanceof PlatformError) || error.status >= 500) throw error;
        // An earlier attempt queued it, and then was interrupted.
        if (error.code === "conflict") sent.push(address);
        else failures.push(`${address}: ${error.detail}`);
      }
    }
    return { sent, failures };
  }

  async #count({ beginsAt }: ReportPeriod): Promise<number> {
    const { count } = await this.#options.database.db
      .selectFrom("notify_dmarc_sent")
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .where("begins_at", "=", beginsAt)
      .executeTakeFirstOrThrow();
    return count;
  }

  // One node sends a report: the row is leased until the result is recorded.
  async #claim(domain: string, { beginsAt }: ReportPeriod): Promise<DmarcSentRow | undefined> {
    const { database, clock } = this.#options;
    const nowMs = clock.now();
    return database.db
      .insertInto("notify_dmarc_sent")
      .values({
        domain,
        begins_at: beginsAt,
        status: "pending",
        attempts: 1,
        due_at: nowMs + LEASE_MS,
        messages: 0,
        recipients: "[]",
        detail: "",
        updated_at: nowMs,
      })
      .onConflict((conflict) =>
        conflict
          .columns(["begins_at", "domain"])
          .doUpdateSet((eb) => ({
            attempts: eb("notify_dmarc_sent.attempts", "+", 1),
            due_at: nowMs + LEASE_MS,
          }))
          .where("notify_dmarc_sent.due_at", "<=", nowMs),
      )
      .returningAll()
      .executeTakeFirst();
  }

  async #finish(
    { domain, begins_at, attempts }: DmarcSentRow,
    { detail, ...result }: Result,
    dueAt: number | null,
  ): Promise<void> {
    await this.#options.database.db
      .updateTable("notify_dmarc_sent")
      .set({
        ...result,
        detail: detail.slice(0, DETAIL_CHARACTERS_MAX),
        due_at: dueAt,
        updated_at: this.#options.clock.now(),
      })
      .where("domain", "=", domain)
      .where("begins_at", "=", begins_at)
      .where("attempts", "=", attempts)
      .execute();
  }
}
