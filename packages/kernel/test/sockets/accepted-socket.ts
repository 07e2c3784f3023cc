// An accepted socket on loopback and its client, which end with the test.
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { afterEach } from "node:test";

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** Connects a client, which is paused until somebody reads it. */
export async function acceptOne(): Promise<{ client: Socket; accepted: Socket }> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stops.push(() => server.close());
  const connection = once(server, "connection") as Promise<[Socket]>;
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [accepted] = await connection;
  stops.push(
    () => client.destroy(),
    () => accepted.destroy(),
  );
  return { client, accepted };
}
