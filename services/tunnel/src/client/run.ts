// Runs the client as a program: settings, key, targets, output, signals.
import { readFileSync } from "node:fs";
import type { ClientOptions } from "../config.ts";
import type { TunnelOffer } from "../frame/messages.ts";
import { startInspector, type Inspector } from "../inspect/inspector.ts";
import { loadClientKey } from "./client-key.ts";
import { createOutput } from "./output.ts";
import {
  resolveSettings,
  SettingsError,
  type ClientSettings,
  type TunnelSettings,
} from "./settings.ts";
import { serveFolder, type FileServer } from "./static-files.ts";
import { TargetError, type ServiceTarget } from "./target.ts";
import { TunnelClient, type ServedTunnel } from "./tunnel-client.ts";

const STOP_GRACE_MS = 5_000;

/** Runs the client until it is stopped; resolves to the exit code. `typed` is the target on the command line. */
export async function runClient(
  options: ClientOptions,
  typed: string | undefined,
): Promise<number> {
  try {
    return await run(options, typed);
  } catch (error) {
    if (!(error instanceof SettingsError) && !(error instanceof TargetError)) throw error;
    for (const line of error.message.split("\n"))
      process.stderr.write(`platform-tunnel: ${line}\n`);
    return 2;
  }
}

async function run(options: ClientOptions, typed: string | undefined): Promise<number> {
  const settings = resolveSettings(options, typed);
  const folders: FileServer[] = [];
  const tunnels: ServedTunnel[] = [];
  for (const tunnel of settings.tunnels) {
    const target = await openTarget(tunnel, folders);
    tunnels.push({ target, offer: describeOffer(tunnel, target) });
  }
  let isRefused = false;
  const ca = options.relay_ca === undefined ? undefined : readFileSync(options.relay_ca, "utf8");
  const key = loadClientKey(options.data_dir);
  const inspector = await openInspector(options, settings, ca);
  const output = createOutput({
    json: options.json,
    isTerminal: process.stdout.isTTY,
    relay: settings.relay,
    targets: settings.tunnels.map(({ targetText }) => targetText),
    inspector: inspector?.url,
    write: (text) => void process.stdout.write(text),
    now: () => new Date(),
  });
  const client = new TunnelClient({
    relay: settings.relay,
    token: settings.token,
    ca,
    key,
    tunnels,
    listener: {
      onWelcome: (welcome) => {
        inspector?.onWelcome(welcome);
        output.onWelcome(welcome);
      },
      onRequests: (events) => {
        inspector?.onRequests(events);
        output.onRequests(events);
      },
      onLost: (reason, retryMs) => {
        inspector?.onLost();
        output.onLost(reason, retryMs);
      },
      onRefused: (reason) => {
        isRefused = true;
        output.onRefused(reason);
      },
    },
  });
  stopOnSignals(client);
  client.start();
  await client.ended;
  await inspector?.close();
  for (const folder of folders) folder.close();
  return isRefused ? 1 : 0;
}

/** Starts the inspector unless it is disabled. Only HTTP tunnels have requests to show. */
async function openInspector(
  { inspect_port: port }: ClientOptions,
  { relay, token, tunnels }: ClientSettings,
  ca: string | undefined,
): Promise<Inspector | undefined> {
  if (port === 0 || tunnels.every(({ kind }) => kind === "tcp")) return undefined;
  const targets = tunnels.map(({ targetText }) => targetText);
  try {
    return await startInspector({ port, relay, token, ca, targets });
  } catch (error) {
    throw new SettingsError(`--inspect-port ${port}: ${(error as Error).message}`);
  }
}

/** The first signal stops gracefully, a second one at once. */
function stopOnSignals(client: TunnelClient): void {
  let isStopping = false;
  const stop = (): void => {
    if (isStopping) process.exit(130);
    isStopping = true;
    void client.stop(STOP_GRACE_MS);
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
}

async function openTarget(
  { target }: TunnelSettings,
  folders: FileServer[],
): Promise<ServiceTarget> {
  if (target.kind === "service") return target;
  const server = await serveFolder(target.path);
  folders.push(server);
  return {
    kind: "service",
    host: "127.0.0.1",
    port: server.port,
    secure: false,
    authority: `127.0.0.1:${server.port}`,
    verify: true,
  };
}

function describeOffer(tunnel: TunnelSettings, target: ServiceTarget): TunnelOffer {
  return {
    kind: tunnel.kind,
    target: tunnel.targetText,
    host_header: tunnel.hostHeader === "rewrite" ? target.authority : tunnel.hostHeader,
    auth_required: tunnel.authRequired,
    ...(tunnel.subdomain === undefined ? {} : { subdomain: tunnel.subdomain }),
    ...(tunnel.customDomain === undefined ? {} : { custom_domain: tunnel.customDomain }),
    ...(tunnel.remotePort === undefined ? {} : { remote_port: tunnel.remotePort }),
    ...(tunnel.shareAuth === undefined ? {} : { share_auth: tunnel.shareAuth }),
  };
}
