// Receives messages: recipient check, authentication, DMARC policy, storage. The SMTP server calls it.
import type { IdSource } from "@platform/kernel/ids";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { Span, Tracer } from "@platform/kernel/trace";
import type { BounceReports } from "../bounce/bounce-reports.ts";
import type { InboundKind, InboundRow, InboundStatus } from "../database/inbound.ts";
import { decodeHeaderBytes } from "../message/exact-mail.ts";
import { splitMessage } from "../message/header-fields.ts";
import type { NotifyMetrics } from "../metrics.ts";
import type { AuthenticationResults, CheckAuthentication, MailSource } from "./authentication.ts";
import { addTrace } from "./header.ts";
import type { InboundRules } from "./rules.ts";
import { SmtpError } from "./smtp-error.ts";
import type { InboundStore } from "./store.ts";
import { checkStructure } from "./structure.ts";

/** Options of {@link Receiver}. */
export interface ReceiverOptions {
  rules: InboundRules;
  store: InboundStore;
  /** Undefined without a bounce domain. */
  bounceReports: BounceReports | undefined;
  authenticate: CheckAuthentication;
  /** Enforces DMARC policies of senders. */
  isDmarcEnforced: boolean;
  /** True for domains of this service, whose service addresses are accepted. */
  isOwnDomain: (domain: string) => boolean;
  hostname: string;
  metrics: NotifyMetrics;
  tracer: Tracer;
  clock: Clock;
  ids: IdSource;
  log: Logger;
  /** Called after a message was stored. */
  onStored: (row: InboundRow) => void;
}

/** Destination of a recipient. */
export type Route = { kind: "mail"; ruleId: string } | { kind: Exclude<InboundKind, "mail"> };

/** A completely received message. */
export interface ReceivedMail extends MailSource {
  recipients: readonly { address: string; route: Route }[];
  content: Buffer;
  /** `ESMTP` or `ESMTPS`, for the Received field. */
  protocol: string;
}

/** Local parts of service addresses; rules take precedence over them. */
const SERVICE_ADDRESSES: Readonly<Record<string, Exclude<InboundKind, "mail" | "bounce">>> = {
  "dmarc-reports": "dmarc_report",
  complaints: "complaint",
  postmaster: "postmaster",
};
const TEXT_CHARACTERS_MAX = 998;

/** Receives messages. */
export class Receiver {
  readonly #options: ReceiverOptions;

  constructor(options: ReceiverOptions) {
    this.#options = options;
  }

  /** Returns the destination of a recipient; throws SmtpError 550 if it is unknown. */
  findRoute(recipient: string): Route {
    const { rules, bounceReports, isOwnDomain } = this.#options;
    const address = recipient.toLowerCase();
    if (bounceReports?.accepts(address) === true) return { kind: "bounce" };
    if (bounceReports !== undefined && address.startsWith("bounce+")) {
      throw new SmtpError(550, "5.1.1 This bounce address is invalid or expired");
    }
    const rule = rules.match(address);
    if (rule !== undefined) return { kind: "mail", ruleId: rule.id };
    const at = address.lastIndexOf("@");
    const kind = SERVICE_ADDRESSES[address.slice(0, at).replace(/\+.*$/, "")];
    if (kind !== undefined && isOwnDomain(address.slice(at + 1))) return { kind };
    throw new SmtpError(550, "5.1.1 This recipient does not exist here");
  }

  /** Stores a message and returns its id; throws SmtpError if it is refused. */
  async receive(mail: ReceivedMail): Promise<string> {
    const span = this.#options.tracer.startSpan({ name: "notify.inbound.receive", kind: "server" });
    try {
      return await this.#receive(mail, span);
    } catch (error) {
      span.setStatus("error");
      throw error;
    } finally {
      span.end();
    }
  }

  async #receive(mail: ReceivedMail, span: Span): Promise<string> {
    const { store, ids, clock, metrics, log, onStored } = this.#options;
    checkStructure(mail.content);
    const id = ids.uuid();
    const results = await this.#validate(mail, span);
    if (this.#options.isDmarcEnforced && results.hasSeveralAuthors && !isBounce(mail)) {
      // RFC 7489 section 6.6.1: otherwise a second address would bypass the policy of the first.
      throw new SmtpError(550, "5.7.26 The addresses in From have several domains");
    }
    const status = this.#decide(mail, results);
    const nowMs = clock.now();
    const row = this.#createRow(id, mail, results, status, nowMs);
    const isRejected = status === "rejected";
    const content = isRejected ? undefined : this.#addTrace(id, mail, results, nowMs);
    const forwards = isRejected ? new Map<string, string[]>() : this.#routeMail(mail, span);
    await store.insert({ row, content, forwards, trace: span.context });
    metrics.countReceived(row.kind, status);
    log.info("message received", {
      inbound_id: id,
      from: mail.sender,
      to: mail.recipients.map(({ address }) => address).join(", "),
      status,
      spf: results.spf,
      dkim: results.dkim,
      dmarc: results.dmarc,
    });
    if (isRejected) {
      const { policyDomain } = results;
      throw new SmtpError(550, `5.7.26 Rejected by the DMARC policy of ${policyDomain}`);
    }
    metrics.countRouted(forwards.size);
    onStored(row);
    return id;
  }

  async #validate(mail: ReceivedMail, { context: parent }: Span): Promise<AuthenticationResults> {
    const { tracer, authenticate } = this.#options;
    const span = tracer.startSpan({ name: "notify.dmarc.validate", parent });
    try {
      const results = await authenticate(mail.content, mail);
      span.setAttribute("notify.dmarc", results.dmarc);
      return results;
    } finally {
      span.end();
    }
  }

  // Bounce addresses are authenticated by their HMAC: a bounce is not lost because a server forwards it.
  #decide(mail: ReceivedMail, { dmarc, policy }: AuthenticationResults): InboundStatus {
    if (!this.#options.isDmarcEnforced || dmarc !== "fail" || isBounce(mail)) return "accepted";
    if (policy === "reject") return "rejected";
    return policy === "quarantine" ? "quarantined" : "accepted";
  }

  #routeMail({ recipients }: ReceivedMail, { context: parent }: Span): Map<string, string[]> {
    const span = this.#options.tracer.startSpan({ name: "notify.inbound.route", parent });
    const forwards = new Map<string, string[]>();
    for (const { address, route } of recipients) {
      if (route.kind !== "mail") continue;
      const known = forwards.get(route.ruleId);
      if (known === undefined) forwards.set(route.ruleId, [address]);
      else known.push(address);
    }
    span.setAttribute("notify.rules", forwards.size);
    span.end();
    return forwards;
  }

  #addTrace(id: string, mail: ReceivedMail, { headers }: AuthenticationResults, nowMs: number) {
    const { hostname } = this.#options;
    const { clientAddress, helo, sender, protocol, content } = mail;
    const date = new Date(nowMs).toUTCString().replace("GMT", "+0000");
    const trace =
      `Return-Path: <${sender}>\r\n${headers}` +
      `Received: from ${toToken(helo)} ([${clientAddress}])\r\n by ${hostname} with ${protocol} id ${id};\r\n ${date}\r\n`;
    return addTrace(content, trace, hostname);
  }

  #createRow(
    id: string,
    { recipients, clientAddress, helo, sender, content }: ReceivedMail,
    results: AuthenticationResults,
    status: InboundStatus,
    nowMs: number,
  ): InboundRow {
    const { fields } = splitMessage(content);
    const read = (name: string): string => {
      const text = fields.find((field) => field.name === name)?.text ?? "";
      const value = text.slice(text.indexOf(":") + 1).replaceAll(/\r\n[ \t]*/g, " ");
      return toStored(decodeHeaderBytes(Buffer.from(value, "latin1")).trim());
    };
    const kind = recipients.find(({ route }) => route.kind !== "mail")?.route.kind ?? "mail";
    const isReport = kind !== "mail" && kind !== "postmaster" && status === "accepted";
    return {
      id,
      kind,
      status,
      sender: toStored(sender),
      recipients: JSON.stringify(recipients.map(({ address }) => address)),
      client_address: clientAddress,
      helo: toStored(helo),
      header_from: read("from"),
      from_domain: toStored(results.fromDomain),
      subject: read("subject"),
      message_id: read("message-id"),
      size_bytes: content.length,
      spf: results.spf,
      spf_domain: toStored(results.spfDomain),
      dkim: results.dkim,
      dkim_results: toText(JSON.stringify(results.signatures)),
      dmarc: results.dmarc,
      arc: results.arc,
      arc_domain: toStored(results.arcDomain),
      spf_aligned: results.spfAligned ? 1 : 0,
      dkim_aligned: results.dkimAligned ? 1 : 0,
      policy_domain: toStored(results.policyDomain),
      policy: results.policy,
      received_at: nowMs,
      unread: isReport ? 1 : 0,
    };
  }
}

function isBounce({ recipients }: ReceivedMail): boolean {
  return recipients.every(({ route }) => route.kind === "bounce");
}

// PostgreSQL cannot store NUL.
function toText(text: string): string {
  return text.replaceAll("\u0000", "");
}

function toStored(text: string): string {
  return toText(text).slice(0, TEXT_CHARACTERS_MAX);
}

function toToken(helo: string): string {
  return helo.replaceAll(/[^A-Za-z0-9.:[\]_-]/g, "?").slice(0, 255) || "unknown";
}
