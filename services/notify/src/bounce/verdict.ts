// The consequence of reports for the delivery that their bounce address names.
import { toAddressKey } from "../address/mailbox.ts";
import type { BounceType } from "../database/message.ts";
import { concernsAddress } from "./classify.ts";
import type { RecipientStatus } from "./delivery-status.ts";
import type { MailReport } from "./report.ts";

/** A consequence. */
export interface ReportVerdict {
  /** Event of the delivery. `bounced` ends it. */
  event: "bounced" | "delayed" | "complained" | "unsubscribed" | "feedback";
  detail: string;
  /** Status and answer of a failure. */
  enhanced: string | null;
  text: string;
  /** `hard` if the address does not exist; undefined unless the mail bounced. */
  bounceType?: BounceType | undefined;
  suppression?: "hard_bounce" | "complaint" | "unsubscribe" | undefined;
  feedbackType?: string | undefined;
  /** True for reports of fraud and viruses: the sender may be misused. */
  isAlarm?: boolean;
}

/** Types of feedback (RFC 5965 section 7.3, RFC 6650) that say that the recipient wants no more mail. */
const COMPLAINTS = new Set(["abuse", "fraud", "virus"]);
const ALARMS = new Set(["fraud", "virus"]);
const OPT_OUTS = new Set(["opt-out", "opt-out-list"]);

/** Returns the consequence of the reports of a message; undefined if they have none. `address` is that of the delivery. */
export function judgeReports(
  reports: readonly MailReport[],
  address: string,
): ReportVerdict | undefined {
  const feedback = reports.find((report) => report.kind === "feedback");
  if (feedback !== undefined) return judgeFeedback(feedback.feedbackType);
  const about = reports.filter((report) => report.kind !== "feedback");
  return judgeStatus(findOwn(about, address));
}

function judgeFeedback(type: string): ReportVerdict {
  const base = { detail: type, enhanced: null, text: "", feedbackType: type };
  if (OPT_OUTS.has(type)) return { ...base, event: "unsubscribed", suppression: "unsubscribe" };
  if (!COMPLAINTS.has(type)) return { ...base, event: "feedback" };
  return { ...base, event: "complained", suppression: "complaint", isAlarm: ALARMS.has(type) };
}

// A list that the mail was sent to reports about its members: it exists as long as one of them does.
function findOwn(reports: readonly RecipientStatus[], address: string): readonly RecipientStatus[] {
  const key = toAddressKey(address);
  const own = reports.filter(({ recipients }) =>
    recipients.some((one) => toAddressKey(one) === key),
  );
  return own.length > 0 ? own : reports;
}

function judgeStatus(reports: readonly RecipientStatus[]): ReportVerdict | undefined {
  if (reports.some(({ kind }) => kind === "delivered")) return undefined;
  const delayed = reports.find(({ kind }) => kind === "delayed");
  const failed = reports.find((report) => !isAbsent(report)) ?? reports[0];
  const report = delayed ?? failed;
  if (report === undefined) return undefined;
  const { status, text } = report;
  const detail = [text.startsWith(status) ? "" : status, text].filter(Boolean).join(" ");
  const base = { detail, enhanced: status === "" ? null : status, text };
  if (report.kind === "delayed") return { ...base, event: "delayed" };
  return isAbsent(report)
    ? { ...base, event: "bounced", bounceType: "hard", suppression: "hard_bounce" }
    : { ...base, event: "bounced", bounceType: "soft" };
}

function isAbsent({ status, text }: RecipientStatus): boolean {
  return concernsAddress({ enhanced: status === "" ? undefined : status, text });
}
