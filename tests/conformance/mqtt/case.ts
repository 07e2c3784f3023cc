// A conformance case: a behaviour that normative statements of MQTT ask for.
import { RawClient, type Received } from "../../../services/pulse/test/mqtt/client.ts";
import type { PulseProcess } from "../../../services/pulse/test/fixture/pulse-process.ts";

/** A broker, and names that no other case uses. */
export interface Scene {
  pulse: PulseProcess;
  version: 4 | 5;
  /** A connection without CONNECT. */
  open(): Promise<RawClient>;
  /** A connected client. */
  connect(packet?: Received): Promise<RawClient>;
  /** A connected client whose session is kept. */
  connectKept(clientId: string, packet?: Received): Promise<RawClient>;
  createName(prefix?: string): string;
}

/** A case. It throws if the server does not behave as the title says. */
export interface Case {
  title: string;
  versions: readonly (4 | 5)[];
  /** Numbers of the statements, without `MQTT-`, by version. */
  statements: { 4?: readonly string[]; 5?: readonly string[] };
  run(scene: Scene): Promise<void>;
}

/** Creates a case for both versions. */
export function both(
  title: string,
  v4: string,
  v5: string,
  run: (scene: Scene) => Promise<void>,
): Case {
  return { title, versions: [4, 5], statements: { 4: split(v4), 5: split(v5) }, run };
}

/** Creates a case for MQTT 5 only. */
export function five(title: string, v5: string, run: (scene: Scene) => Promise<void>): Case {
  return { title, versions: [5], statements: { 5: split(v5) }, run };
}

/** Creates a case for MQTT 3.1.1 only. */
export function four(title: string, v4: string, run: (scene: Scene) => Promise<void>): Case {
  return { title, versions: [4], statements: { 4: split(v4) }, run };
}

function split(text: string): string[] {
  return text.split(" ").filter((number) => number !== "");
}

let names = 0;

/** Creates the scene of a run. The clients are closed by `end`. */
export function setScene(pulse: PulseProcess, version: 4 | 5): { scene: Scene; end: () => void } {
  const clients: RawClient[] = [];
  const open = async () => {
    const client = await RawClient.open(pulse.mqttPort, version);
    clients.push(client);
    return client;
  };
  const connect = async (packet: Received = {}) => {
    const client = await open();
    await client.connect(packet);
    return client;
  };
  const kept = version === 5 ? { properties: { sessionExpiryInterval: 600 } } : {};
  const scene: Scene = {
    pulse,
    version,
    open,
    connect,
    connectKept: (clientId, packet = {}) => connect({ clientId, clean: false, ...kept, ...packet }),
    createName: (prefix = "c") => `${prefix}${++names}v${version}`,
  };
  return {
    scene,
    end: () => {
      for (const { socket } of clients) socket.destroy();
    },
  };
}
