// Prepared HTTP/1.1 status lines.
import { STATUS_CODES } from "node:http";

const lines: (Buffer | undefined)[] = [];
for (const [status, reason] of Object.entries(STATUS_CODES)) {
  lines[Number(status)] = Buffer.from(`HTTP/1.1 ${status} ${reason}\r\n`, "latin1");
}

/** The status line with CRLF; the reason phrase is empty for unregistered statuses. */
export function statusLineOf(status: number): Buffer {
  return lines[status] ?? Buffer.from(`HTTP/1.1 ${status} \r\n`, "latin1");
}
