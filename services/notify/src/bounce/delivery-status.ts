// Delivery status notifications (RFC 3464), read as generously as servers write them.

/** State that a report gives to a recipient, by Action (RFC 3464 section 2.3.3). */
type StatusKind = "failed" | "delayed" | "delivered";

/** A recipient of a report. */
export interface RecipientStatus {
  kind: StatusKind;
  /** Status (RFC 3463); "" if there is none. */
  status: string;
  /** Original-Recipient and Final-Recipient. */
  recipients: string[];
  /** The remote server's answer, from Diagnostic-Code. */
  text: string;
}

const RECIPIENT_FIELDS = new Set(["original-recipient", "final-recipient"]);
const STATE_FIELDS = new Set(["action", "status", "diagnostic-code"]);
const GROUPS_MAX = 1_000;
const STATUS = /(?:^|[^\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.])/;
const FOLD =
  /\r?\n[ \t]+(?=\S)(?!(?:(?:final|original)-recipient|action|status|diagnostic-code|(?:remote|reporting)-mta|(?:arrival|last-attempt)-date)[ \t]*:)/gi;
const ACTIONS: Readonly<Record<string, StatusKind>> = {
  failed: "failed",
  delayed: "delayed",
  delivered: "delivered",
  relayed: "delivered",
  expanded: "delivered",
};

/**
 * Parses the fields of `message/delivery-status`. The groups of recipients need no empty line between them, and none before
 * the first: a recipient's field after a complete group begins the next.
 */
export function parseDeliveryStatus(content: string): RecipientStatus[] {
  const groups: Map<string, string>[] = [];
  let group = new Map<string, string>();
  const end = (): void => {
    if ([...group.keys()].some((name) => RECIPIENT_FIELDS.has(name) || STATE_FIELDS.has(name))) {
      groups.push(group);
      group = new Map();
    }
  };
  for (const line of splitLines(content)) {
    if (groups.length >= GROUPS_MAX) break;
    const [, field = "", value = ""] = /^[ \t]*([!-9;-~]+)[ \t]*:(.*)$/.exec(line) ?? [];
    const name = field.toLowerCase();
    if (line.trim() === "" && hasRecipient(group) && hasState(group)) end();
    if (RECIPIENT_FIELDS.has(name) && hasRecipient(group) && (hasState(group) || group.has(name))) {
      end();
    }
    if (name !== "" && !group.has(name)) group.set(name, value.trim());
  }
  end();
  return groups.flatMap((fields) => toStatus(fields) ?? []);
}

/** Returns the address of a field such as `rfc822; ada@example.org` or `<ada@example.org>`; undefined if it has none. */
export function readAddress(value: string | undefined): string | undefined {
  const address = value
    ?.replace(/^[^;@]*;\s*/, "")
    .replaceAll(/[<>]/g, "")
    .trim();
  return address === undefined || !address.includes("@") ? undefined : address.slice(0, 320);
}

// Unfolded. A line with blanks only ends a group, although it would continue the field above; in reports that are only text,
// the fields may be indented.
function splitLines(content: string): string[] {
  return content.replaceAll(FOLD, " ").split(/\r?\n|\r/);
}

function hasRecipient(group: ReadonlyMap<string, string>): boolean {
  return group.has("original-recipient") || group.has("final-recipient");
}

function hasState(group: ReadonlyMap<string, string>): boolean {
  return group.has("action") || group.has("status");
}

function toStatus(fields: ReadonlyMap<string, string>): RecipientStatus | undefined {
  const action = /[a-z]+/.exec((fields.get("action") ?? "").toLowerCase())?.[0] ?? "";
  const text = (fields.get("diagnostic-code") ?? "").replace(/^[A-Za-z0-9-]+\s*;\s*/, "");
  const status = STATUS.exec(fields.get("status") ?? "")?.[1] ?? "";
  const kind = ACTIONS[action] ?? findKind(status, text);
  const recipients = ["original-recipient", "final-recipient"].flatMap(
    (name) => readAddress(fields.get(name)) ?? [],
  );
  return { kind, status, recipients, text };
}

// Without an Action, the first digit decides; a report is about a failure if it says nothing at all.
function findKind(status: string, text: string): StatusKind {
  const digit = (/^[245]/.exec(status) ?? /(?:^|\s)([245])\d\d\b/.exec(text))?.at(-1);
  if (digit === "2") return "delivered";
  return digit === "4" ? "delayed" : "failed";
}
