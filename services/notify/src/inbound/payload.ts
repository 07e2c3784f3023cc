// The JSON document of a received message that is posted to webhooks.
import { decodeWords, type Address } from "postal-mime";
import type { InboundRow } from "../database/inbound.ts";
import { parseExactMail } from "../message/exact-mail.ts";

// Above the bounds of `checkStructure`, so that every accepted message can be parsed.
const NESTING_MAX = 256;

/** Returns the document of a message for a rule. Attachments are base64. */
export async function createPayload(
  row: InboundRow,
  content: Buffer,
  forward: { ruleId: string; recipients: readonly string[] },
): Promise<object> {
  const mail = await parseExactMail(content, {
    maxNestingDepth: NESTING_MAX,
    attachmentEncoding: "base64",
  });
  return {
    id: row.id,
    rule_id: forward.ruleId,
    from: decodeWords(mail.headers.find(({ key }) => key === "from")?.value ?? ""),
    to: formatAddresses(mail.to),
    cc: formatAddresses(mail.cc),
    subject: mail.subject ?? "",
    text: mail.text ?? null,
    html: mail.html ?? null,
    headers: mail.headers.map(({ originalKey, value }) => ({ name: originalKey, value })),
    attachments: mail.attachments.map((one) => ({
      filename: one.filename ?? "",
      content_type: one.mimeType,
      content_id: one.contentId ?? null,
      method: one.method ?? null,
      content: typeof one.content === "string" ? one.content : "",
    })),
    envelope: { from: row.sender, to: forward.recipients },
    spf: row.spf,
    dkim: row.dkim,
    dmarc: row.dmarc,
    arc: row.arc,
    arc_domain: row.arc_domain,
    message_id: row.message_id,
    received_at: new Date(row.received_at).toISOString(),
  };
}

function formatAddresses(addresses: readonly Address[] | undefined): string[] {
  return (addresses ?? []).flatMap((one) =>
    one.group === undefined ? [one.address] : one.group.map(({ address }) => address),
  );
}
