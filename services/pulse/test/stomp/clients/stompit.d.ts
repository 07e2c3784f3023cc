// The part of stompit that the tests use; the package has no types.
declare module "stompit" {
  import type { Writable } from "node:stream";

  interface Message {
    readString(
      encoding: string,
      done: (error: Error | null, body: string | undefined) => void,
    ): void;
  }

  interface Client {
    send(headers: Record<string, string>): Writable;
    subscribe(
      headers: Record<string, string>,
      receive: (error: Error | null, message: Message) => void,
    ): void;
    ack(message: Message): void;
    disconnect(done: (error: Error | null) => void): void;
  }

  interface ConnectOptions {
    host: string;
    port: number;
    /** With it, the options of `tls.connect` count, too. */
    ssl?: boolean;
    servername?: string;
    ca?: string;
    connectHeaders: Record<string, string>;
  }

  const stompit: {
    connect: (options: ConnectOptions, done: (error: Error | null, client: Client) => void) => void;
  };
  export default stompit;
}
