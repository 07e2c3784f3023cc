// A real Kafka client in these tests: availability, version, operations.

/** The compressions that a client can write, by the names that clients use. */
export type Codec = "none" | "gzip" | "snappy" | "lz4" | "zstd";

/** One client. `servers` is `host:port`. */
export interface RealKafkaClient {
  name: string;
  /** The Debian package that brings it; absent for what npm brings. */
  debianPackage?: string;
  codecs: readonly Codec[];
  /** Its version; undefined if it is not installed. */
  readVersion(): string | undefined;
  /** Writes `count` messages `<prefix><n>` with acknowledgement of all; throws if one was not acknowledged. */
  produce(
    servers: string,
    topic: string,
    codec: Codec,
    count: number,
    prefix: string,
  ): Promise<void>;
  /** Joins a group, reads from the beginning or from what is committed, commits, leaves; gives what it read. */
  consume(servers: string, topic: string, group: string, count: number): Promise<string[]>;
}
