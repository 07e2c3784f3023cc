// A second node in its own process.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";

/** A node that runs. */
export interface Node {
  origin: string;
  stop(): Promise<void>;
  /** Kills it with SIGKILL. */
  kill(): Promise<void>;
}

/** Starts `node-main.ts` on the database. */
export async function startNode(options: { url: string; issuer: string }): Promise<Node> {
  const child: ChildProcess = fork(new URL("node-main.ts", import.meta.url), {
    env: { ...process.env, NODE_URL: options.url, NODE_ISSUER: options.issuer },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const [message] = (await once(child, "message")) as [{ origin: string }];
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  };
  return { origin: message.origin, stop: () => end("SIGTERM"), kill: () => end("SIGKILL") };
}
