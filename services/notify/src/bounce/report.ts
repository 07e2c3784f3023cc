// Reports about sent mail: delivery status notifications (RFC 3464) and complaints (ARF, RFC 5965).
import PostalMime, { type Attachment } from "postal-mime";

/** A report. `failed` is permanent, `delayed` temporary; both are classified by Status, not by Action. */
export type MailReport =
  | { kind: "failed" | "delayed"; status: string; recipient: string; text: string }
  | { kind: "complaint"; feedbackType: string; recipient: string | undefined };

const NESTING_MAX = 10;
const TEXT_MAX = 500;
const STATUS = /^[245]\.\d{1,3}\.\d{1,3}$/;

/** Parses a report; undefined if the message is none. A report with several recipients yields several entries. */
export async function parseReports(content: Uint8Array): Promise<MailReport[]> {
  const mail = await PostalMime.parse(content, {
    maxNestingDepth: NESTING_MAX,
    forceRfc822Attachments: true,
    attachmentEncoding: "arraybuffer",
  });
  const status = mail.attachments.find(({ mimeType }) =>
    /^message\/(?:global-)?delivery-status$/i.test(mimeType),
  );
  if (status !== undefined) return parseDeliveryStatus(readText(status));
  const feedback = mail.attachments.find(({ mimeType }) =>
    /^message\/feedback-report$/i.test(mimeType),
  );
  if (feedback === undefined) return [];
  const [fields = new Map<string, string>()] = parseFields(readText(feedback));
  const recipient = readAddress(fields.get("original-rcpt-to") ?? fields.get("removal-recipient"));
  return [{ kind: "complaint", feedbackType: fields.get("feedback-type") ?? "abuse", recipient }];
}

/** Returns the addresses in a complaint that may be the envelope sender of the reported message (RFC 5965 section 3.2). */
export async function findReturnAddresses(content: Uint8Array): Promise<string[]> {
  const { attachments } = await PostalMime.parse(content, {
    maxNestingDepth: NESTING_MAX,
    forceRfc822Attachments: true,
    attachmentEncoding: "arraybuffer",
  });
  const find = (type: RegExp): Map<string, string> | undefined => {
    const part = attachments.find(({ mimeType }) => type.test(mimeType));
    return part === undefined ? undefined : parseFields(readText(part))[0];
  };
  const report = find(/^message\/feedback-report$/i);
  const original = find(/^(?:message\/(?:rfc822|global)|text\/rfc822-headers)$/i);
  const texts = [report?.get("original-mail-from"), original?.get("return-path")];
  return texts.flatMap((text) => readAddress(text) ?? []);
}

// The first group of fields is about the message, each further one about a recipient (RFC 3464 section 2.1).
function parseDeliveryStatus(text: string): MailReport[] {
  return parseFields(text)
    .slice(1)
    .flatMap((fields): MailReport[] => {
      const status = /^\s*(\d\.\d{1,3}\.\d{1,3})/.exec(fields.get("status") ?? "")?.[1] ?? "";
      const recipient = readAddress(
        fields.get("original-recipient") ?? fields.get("final-recipient"),
      );
      if (!STATUS.test(status) || recipient === undefined || status.startsWith("2")) return [];
      const diagnostic = (fields.get("diagnostic-code") ?? "").replace(/^[^;]*;\s*/, "");
      const kind = status.startsWith("5") ? "failed" : "delayed";
      return [{ kind, status, recipient, text: diagnostic.slice(0, TEXT_MAX) }];
    });
}

function parseFields(text: string): Map<string, string>[] {
  const unfolded = text.replaceAll(/\r?\n[ \t]+/g, " ");
  return unfolded
    .split(/\r?\n[ \t]*\r?\n/)
    .filter((group) => group.trim() !== "")
    .map((group) => {
      const fields = new Map<string, string>();
      for (const line of group.split(/\r?\n/)) {
        const colon = line.indexOf(":");
        if (colon > 0)
          fields.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
      }
      return fields;
    });
}

// `rfc822; ada@example.org` or `<ada@example.org>`.
function readAddress(value: string | undefined): string | undefined {
  const address = value
    ?.replace(/^[^;]*;\s*/, "")
    .replaceAll(/[<>]/g, "")
    .trim();
  return address === undefined || !address.includes("@") ? undefined : address.slice(0, 320);
}

function readText({ content }: Attachment): string {
  return typeof content === "string"
    ? content
    : Buffer.from(content as ArrayBuffer).toString("latin1");
}
