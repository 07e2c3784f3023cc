// Creates the transport of mail from the configuration.
import { readFileSync } from "node:fs";
import type { Clock } from "@platform/kernel/time";
import type { NotifyConfig } from "../config.ts";
import type { PrepareMail } from "./prepare.ts";
import { RelayGroup, type RelayOptions } from "./relay-group.ts";
import type { TlsMode } from "./smtp/socket.ts";

const IMPLICIT_TLS_PORT = 465;
const IDLE_MS = 10_000;

interface RelaySettings {
  host: string;
  port: number;
  user?: string | undefined;
  pass?: string | undefined;
  tls: TlsMode | "auto";
  weight: number;
}

/** Creates the relays; undefined if none is configured. */
export function createRelayGroup(
  config: NotifyConfig,
  prepare: PrepareMail,
  clock: Clock,
): RelayGroup | undefined {
  const settings = listRelays(config);
  if (settings.length === 0) return undefined;
  const caFile = config["smtp.tls_ca_file"];
  const ca = caFile === undefined ? undefined : readFileSync(caFile, "utf8");
  const relays = settings.map(({ host, port, user, pass, tls, weight }): RelayOptions => ({
    endpoint: { host, port, user, pass, ca, tls: tls === "auto" ? chooseTls(port, user) : tls },
    weight,
    hostname: config["smtp.hostname"],
    connectTimeoutMs: config["smtp.connect_timeout_ms"],
    commandTimeoutMs: config["smtp.command_timeout_ms"],
    contentTimeoutMs: config["smtp.content_timeout_ms"],
    messagesPerConnectionMax: config["smtp.messages_per_connection_max"],
    idleMs: IDLE_MS,
  }));
  const now = (): number => clock.monotonicMs();
  return new RelayGroup({ relays, prepare, now, random: Math.random });
}

function listRelays(config: NotifyConfig): RelaySettings[] {
  const relays = config["smtp.relays"];
  if (relays !== undefined) return relays;
  const host = config["smtp.host"];
  if (host === undefined) return [];
  const { "smtp.port": port, "smtp.user": user, "smtp.pass": pass, "smtp.tls": tls } = config;
  return [{ host, port, user, pass, tls, weight: 1 }];
}

// A password is sent only over a verified connection.
function chooseTls(port: number, user: string | undefined): TlsMode {
  if (port === IMPLICIT_TLS_PORT) return "implicit";
  return user === undefined ? "opportunistic" : "required";
}
