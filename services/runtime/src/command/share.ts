// `platform share TARGET`: a client of the tunnel's relay, with the credentials of `platform up`.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { readCredentials } from "../credentials/credentials.ts";
import { TUNNEL_MAIN, TUNNEL_TOKEN } from "../services/tunnel.ts";

/** Options of {@link runShare}. */
export interface ShareOptions {
  /** Port, host:port, URL or folder. */
  target: string;
  /** Data directory of `platform up`, which has the token. */
  data: string;
  subdomain: string | undefined;
  relay: string;
  json: boolean;
}

/** Runs the client in place of this process, or as its child where a process cannot be replaced; returns its exit code. */
export async function runShare(options: ShareOptions): Promise<number> {
  const args = [fileURLToPath(TUNNEL_MAIN), "client", options.target, "--relay", options.relay];
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

/** The operator's token, which may be one of several; undefined if `up` has not run here. */
async function readToken(folder: string): Promise<string | undefined> {
  const tokens = (await readCredentials(folder)).get(TUNNEL_TOKEN);
  const [first] = tokens?.split(",") ?? [];
  return first?.replace(/^[^:]*:/, "").trim();
}
