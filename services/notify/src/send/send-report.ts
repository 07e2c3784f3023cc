// Reports that the service sends itself: through the same queue as all mail, in a stream of their own.
import type { Tracer } from "@platform/kernel/trace";
import type { ReportMail } from "../dmarc/report-sender.ts";
import { sendRequest } from "./request.ts";
import type { Sender } from "./sender.ts";

/** Client of reports, so that they have lanes of their own in the queue. */
const CLIENT = "dmarc-reports";

/** Queues a report. Throws PlatformError, `conflict` if another report was queued with its key. */
export async function sendReport(sender: Sender, tracer: Tracer, mail: ReportMail): Promise<void> {
  const { from, to, subject, text, filename, content, key } = mail;
  const request = sendRequest.parse({
    from,
    to,
    subject,
    text,
    attachments: [
      { filename, content: content.toString("base64"), content_type: "application/gzip" },
    ],
    // RFC 3834: no automatic answers.
    headers: { "Auto-Submitted": "auto-generated" },
    track_opens: false,
    track_clicks: false,
  });
  const span = tracer.startSpan({ name: "notify.dmarc.report" });
  try {
    const context = { client: CLIENT, isOperator: true, idempotencyKey: key, span, path: "" };
    await sender.send({ ...request, stream: "report" }, context);
  } finally {
    span.end();
  }
}
