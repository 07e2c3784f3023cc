// Parsing of messages: their parts for the API, and an HTML view without scripts and remote content. Synchronous for seconds
// with large ones: `view.ts` does that on a thread.
import { z } from "zod";
import { parseExactMail } from "../message/exact-mail.ts";

/** A parsed message, for the API. */
export const parsedMail = z.object({
  subject: z.string(),
  headers: z.array(z.object({ name: z.string(), value: z.string() })),
  text: z.string().optional(),
  html: z.string().optional(),
  attachments: z.array(
    z.object({
      filename: z.string(),
      content_type: z.string(),
      content_id: z.string().nullable(),
      size_bytes: z.int(),
    }),
  ),
});

/** A parsed message. */
export type ParsedMail = z.infer<typeof parsedMail>;

const NESTING_MAX = 10;
const INLINE_BYTES_MAX = 5 * 1024 * 1024;

/** Parses a message. */
export async function parseMail(content: Uint8Array): Promise<ParsedMail> {
  const mail = await parse(content);
  return {
    subject: mail.subject ?? "",
    headers: mail.headers.map(({ key, value }) => ({ name: key, value })),
    text: mail.text,
    html: mail.html,
    attachments: mail.attachments.map(({ filename, mimeType, contentId, content: bytes }) => ({
      filename: filename ?? "",
      content_type: mimeType,
      content_id: contentId ?? null,
      size_bytes: sizeOf(bytes),
    })),
  };
}

/** Returns the HTML of a message, without a doctype, for a response with `VIEW_POLICY`; parts that `cid:` names are embedded. */
export async function renderView(content: Uint8Array): Promise<string> {
  const mail = await parse(content);
  if (mail.html === undefined) return `<pre>${escapeHtml(mail.text ?? "")}</pre>`;
  let left = INLINE_BYTES_MAX;
  const inline = new Map<string, string>();
  for (const { contentId, mimeType, content: bytes } of mail.attachments) {
    const size = sizeOf(bytes);
    const isImage = /^image\/(?:png|jpeg|gif|webp)$/i.test(mimeType);
    if (contentId === undefined || !isImage || size > left) continue;
    left -= size;
    const data = Buffer.from(bytes as ArrayBuffer).toString("base64");
    inline.set(contentId.replaceAll(/[<>]/g, ""), `data:${mimeType};base64,${data}`);
  }
  const html = mail.html.replaceAll(
    /cid:([^"'\s)>]+)/gi,
    (whole, id: string) => inline.get(id) ?? whole,
  );
  return html;
}

/** Escapes text for HTML. */
function escapeHtml(text: string): string {
  const escapes: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replaceAll(/[&<>"]/g, (character) => escapes[character]!);
}

function sizeOf(content: ArrayBuffer | Uint8Array | string): number {
  return typeof content === "string" ? Buffer.byteLength(content) : content.byteLength;
}

function parse({ buffer, byteOffset, byteLength }: Uint8Array) {
  return parseExactMail(Buffer.from(buffer, byteOffset, byteLength), {
    maxNestingDepth: NESTING_MAX,
  });
}
