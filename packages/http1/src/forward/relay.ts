// Writes what an upstream has sent to the client's socket.
import type { UpstreamConnection } from "../upstream/connection.ts";
import type { ForwardClient } from "./client.ts";

/** Chunks up to this size are copied for a slow client, because each would retain a whole read buffer. */
const COPIED_BYTES_MAX = 16_384;

/** Writes bytes of an upstream to the client; leaves the buffer to the client's socket if that retains it. */
export function relayToClient<U>(
  exchange: ForwardClient<U>,
  upstream: UpstreamConnection,
  bytes: Buffer,
  start: number,
  end: number,
): void {
  const { socket } = exchange;
  if (end - start <= COPIED_BYTES_MAX && socket.writableLength > 0 && !upstream.readsKept) {
    socket.write(Buffer.from(bytes.subarray(start, end)));
    exchange.outflow.settle();
    return;
  }
  socket.write(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end));
  if (socket.writableLength === 0) return;
  exchange.outflow.settle();
  // A paused socket continues only after the client has read everything, so it keeps its buffer. The buffer of a stream
  // is shared with others, which are not paused.
  if (upstream.stream !== null || !socket.writableNeedDrain) upstream.abandonReads();
}
