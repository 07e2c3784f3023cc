// Connected clients without requests, run as a child: `idle-clients.ts PORT COUNT`. Each has a connection, a key and a name.
// Prints "open N" when all are connected, and "lost" whenever one is not. Exits on SIGTERM.
import { TunnelClient } from "../../services/tunnel/src/client/tunnel-client.ts";

const OPENING_AT_ONCE_MAX = 16;

if (import.meta.main) {
  const [port = "", count = "0"] = process.argv.slice(2);
  await openClients(Number(port), Number(count));
  console.log(`open ${count}`);
  setInterval(() => undefined, 60_000);
}

async function openClients(port: number, count: number): Promise<void> {
  let opened = 0;
  const openInTurn = async (): Promise<void> => {
    while (opened < count) {
      opened += 1;
      await openOne(port, opened);
    }
  };
  await Promise.all(Array.from({ length: OPENING_AT_ONCE_MAX }, openInTurn));
}

function openOne(port: number, number: number): Promise<void> {
  const target = {
    kind: "service",
    host: "127.0.0.1",
    port: 9,
    secure: false,
    verify: false,
    authority: "127.0.0.1:9",
  } as const;
  return new Promise((resolve, reject) => {
    const client = new TunnelClient({
      relay: `ws://127.0.0.1:${port}/ws/connect`,
      token: undefined,
      ca: undefined,
      key: `idle-client-${String(number).padStart(20, "0")}`,
      tunnels: [
        {
          target,
          offer: {
            kind: "http",
            target: "127.0.0.1:9",
            host_header: target.authority,
            auth_required: false,
            subdomain: `idle-${number}`,
          },
        },
      ],
      listener: {
        onWelcome: ({ tunnels: [grant] }) => {
          if (grant !== undefined && "error" in grant) reject(new Error(grant.error.detail));
          else resolve();
        },
        onRequests: () => {},
        onLost: (reason) => console.log(`lost: ${reason}`),
        onRefused: (reason) => reject(new Error(reason)),
      },
    });
    client.start();
  });
}
