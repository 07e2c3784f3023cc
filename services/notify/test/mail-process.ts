// The service as a process of its own, which tests can kill.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A running process. */
export interface MailProcess {
  child: ChildProcess;
  url: string;
  /** Returns the port of a listener. */
  portOf: (name: string) => number;
  /** Ends the process by a signal, and resolves when it has ended. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
}

const MAIN = new URL("../../../bin/platform-notify.js", import.meta.url).pathname;

/** Starts the service on a data folder with further variables; resolves when it is ready. */
export async function startMailProcess(
  folder: string,
  variables: Readonly<Record<string, string>>,
): Promise<MailProcess> {
  const env = {
    PATH: process.env["PATH"],
    NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
    PLATFORM_FORM: process.env["PLATFORM_FORM"],
    PLATFORM_NOTIFY_ADDR: "127.0.0.1:0",
    PLATFORM_NOTIFY_DATA_DIR: folder,
    PLATFORM_NOTIFY_FROM_DOMAIN: "shop.example",
    PLATFORM_NOTIFY_LOG_FORMAT: "json",
    ...variables,
  };
  const child = spawn(process.execPath, [MAIN], { env, stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    const event = JSON.parse(line) as { msg: string; listeners?: { name: string; port: number }[] };
    if (event.msg !== "ready") continue;
    child.stdout.resume();
    const portOf = (name: string): number =>
      event.listeners!.find((listener) => listener.name === name)!.port;
    return {
      child,
      url: `http://127.0.0.1:${portOf("http")}`,
      portOf,
      end: async (signal) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const exited = once(child, "exit");
        child.kill(signal);
        await exited;
      },
    };
  }
  throw new Error("the service did not start");
}
