// Prepared HTTP/1.1 status lines.

// An import reads all exports, of which WebSocket loads undici: 25 ms of each start of a process or worker.
const { STATUS_CODES } = process.getBuiltinModule("node:http");
const lines: (Buffer | undefined)[] = [];
for (const [status, reason] of Object.entries(STATUS_CODES)) {
  lines[Number(status)] = Buffer.from(`HTTP/1.1 ${status} ${reason}\r\n`, "latin1");
}

/** The status line with CRLF; the reason phrase is empty for unregistered statuses. */
export function statusLineOf(status: number): Buffer {
  return lines[status] ?? Buffer.from(`HTTP/1.1 ${status} \r\n`, "latin1");
}
