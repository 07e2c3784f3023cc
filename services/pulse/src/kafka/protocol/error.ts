// What is wrong with bytes that claim to be a Kafka message.

/**
 * A message that cannot be read: cut short, a length that lies, a bound exceeded, text that is not
 * UTF-8. Where the rest of the frame begins is unknown then, so the connection is to be closed.
 */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}
