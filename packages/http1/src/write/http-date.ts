// The Date field, formatted once a second (RFC 9110 §5.6.7).

/** Caches the field of the current second. One per thread. */
export class HttpDate {
  private second = -1;
  private bytes = Buffer.alloc(0);

  /** The whole line with name and CRLF for `nowMs`, milliseconds since 1970. */
  field(nowMs: number): Buffer {
    const second = Math.floor(nowMs / 1000);
    if (second !== this.second) {
      this.second = second;
      this.bytes = Buffer.from(`Date: ${new Date(second * 1000).toUTCString()}\r\n`, "latin1");
    }
    return this.bytes;
  }
}
