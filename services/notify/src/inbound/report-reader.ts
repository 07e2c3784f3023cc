// Reads the reports in received messages: bounces, complaints, DMARC aggregate reports.
import type { Logger } from "@platform/kernel/log";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { BounceReports } from "../bounce/bounce-reports.ts";
import { isDamaged } from "../database/checksum.ts";
import type { InboundRow } from "../database/inbound.ts";
import type { InboundStore } from "./store.ts";

/** Options of {@link ReportReader}. */
export interface ReportReaderOptions {
  store: InboundStore;
  /** Undefined without a bounce domain. */
  bounceReports: BounceReports | undefined;
  /** Reads an aggregate report; rejects with a reason if it is invalid. */
  readAggregate: (row: InboundRow, content: Buffer) => Promise<void>;
  log: Logger;
}

const POLL_MS = 5_000;
const BATCH = 50;

/** A report that will not be readable later either. */
export class InvalidReportError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "InvalidReportError";
  }
}

/** Reads reports after their message is stored. A report whose reading was interrupted is read again. */
export class ReportReader {
  readonly #options: ReportReaderOptions;
  #timer: RepeatingTimer | undefined;
  #isAgain = false;

  constructor(options: ReportReaderOptions) {
    this.#options = options;
  }

  /** Starts to read. */
  start(): void {
    const onError = (error: unknown): void =>
      this.#options.log.error("reading reports failed", { error });
    this.#timer = every(POLL_MS, () => this.#readAll(), onError);
    this.wake();
  }

  /** Looks for unread reports now. */
  wake(): void {
    this.#isAgain = true;
    void this.#timer?.run();
  }

  /** Stops after the report that is being read. */
  async stop(): Promise<void> {
    await this.#timer?.stop();
  }

  // Reports that fail for other reasons than their content, such as a lost database connection, stay unread.
  async #readAll(): Promise<void> {
    const { store, log } = this.#options;
    do {
      this.#isAgain = false;
      for (const row of await store.listUnread(BATCH)) {
        try {
          await this.#read(row);
        } catch (error) {
          log.warn("a report could not be read", { inbound_id: row.id, error });
          if (!(error instanceof InvalidReportError || isDamaged(error))) continue;
        }
        await store.setRead(row.id);
        this.#isAgain = true;
      }
    } while (this.#isAgain);
  }

  async #read(row: InboundRow): Promise<void> {
    const { store, bounceReports, readAggregate } = this.#options;
    const content = await store.readContent(row.id);
    if (content === undefined) return;
    switch (row.kind) {
      case "bounce":
        for (const recipient of JSON.parse(row.recipients) as string[]) {
          await bounceReports?.receive(recipient, content, row);
        }
        return;
      case "complaint":
        if ((await bounceReports?.receiveComplaint(content, row)) === true) return;
        throw new InvalidReportError("the complaint does not contain a valid bounce address");
      case "dmarc_report":
        return readAggregate(row, content);
      case "mail":
      case "postmaster":
        return;
      default:
        row.kind satisfies never;
    }
  }
}
