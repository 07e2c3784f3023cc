// The error of a malformed Kafka message.

/**
 * A message that cannot be parsed: truncated, a wrong length, a limit exceeded, text that is not UTF-8. The position in
 * the stream is unknown afterwards, so the connection must be closed.
 */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}
