// `platform share TARGET`: a client of the tunnel's relay, with the credentials of `platform up`.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { readCredentials } from "../credentials/credentials.ts";
import { readRunning } from "../data-folder/running-file.ts";
import { TUNNEL_MAIN, TUNNEL_TOKEN } from "../services/tunnel.ts";

/** Options of {@link runShare}. */
export interface ShareOptions {
  /** Port, host:port, URL or folder. */
  target: string;
  /** Data directory of `platform up`, which has the token. */
  data: string;
  subdomain: string | undefined;
  /** URL of the relay; by default that of the running `platform up`. */
  relay: string | undefined;
  json: boolean;
}

const DEFAULT_RELAY = "ws://localhost:8443/ws/connect";

/** Runs the client in place of this process, or as its child where a process cannot be replaced; returns its exit code. */
export async function runShare(options: ShareOptions): Promise<number> {
  const relay = options.relay ?? findRelay(options.data);
  const args = [fileURLToPath(TUNNEL_MAIN), "client", options.target, "--relay", relay];
  if (options.subdomain !== undefined) args.push("--subdomain", options.subdomain);
  if (options.json) args.push("--json");
  const token = process.env["PLATFORM_TUNNEL_TOKEN"] || (await readToken(options.data));
  const env = { ...process.env, ...(token === undefined ? {} : { PLATFORM_TUNNEL_TOKEN: token }) };
  if (process.platform !== "win32" && typeof process.execve === "function") {
    process.execve(process.execPath, [process.execPath, ...args], env);
  }
  const child = spawn(process.execPath, args, { stdio: "inherit", env });
  const stop = (signal: NodeJS.Signals): void => void child.kill(signal);
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  });
}

/** URL of the relay that runs with this data directory, otherwise the default. */
function findRelay(folder: string): string {
  const { services = [] } = readRunning(folder) ?? {};
  const { url = "" } = services.find(({ name }) => name === "tunnel") ?? {};
  return url === "" ? DEFAULT_RELAY : `${url.replace(/^http/, "ws")}/ws/connect`;
}

/** The operator's token, which may be one of several; undefined if `up` has not run here. */
async function readToken(folder: string): Promise<string | undefined> {
  const tokens = (await readCredentials(folder)).get(TUNNEL_TOKEN);
  const [first] = tokens?.split(",") ?? [];
  return first?.replace(/^[^:]*:/, "").trim();
}
