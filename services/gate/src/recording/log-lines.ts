// The lines of a recording, read as a stream.
import { createReadStream } from "node:fs";

const LF = 0x0a;

/** A line of a file; `text` is undefined if it is longer than the limit. */
export interface LogLine {
  /** Starting at 1. */
  number: number;
  text: string | undefined;
}

/** Reads a file line by line in UTF-8. Throws the system's error if it cannot be read. */
export async function* readLogLines(path: string, lineBytesMax: number): AsyncGenerator<LogLine> {
  let number = 0;
  let pieces: Buffer[] = [];
  let bytes = 0;
  const take = (rest: Buffer): LogLine => {
    const isTooLong = bytes + rest.length > lineBytesMax;
    const text = isTooLong ? undefined : Buffer.concat([...pieces, rest]).toString("utf8");
    pieces = [];
    bytes = 0;
    return { number: ++number, text };
  };
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, from)) {
      yield take(chunk.subarray(from, end));
      from = end + 1;
    }
    bytes += chunk.length - from;
    if (bytes > lineBytesMax) pieces = [];
    else pieces.push(chunk.subarray(from));
  }
  if (bytes > 0) yield take(Buffer.alloc(0));
}
