// Creates the transport of mail from the configuration.
import { readFileSync } from "node:fs";
import { getCACertificates } from "node:tls";
import { createAddressPolicy, createEgress } from "@platform/kernel/egress";
import type { Clock } from "@platform/kernel/time";
import type { NotifyConfig } from "../config.ts";
import type { DnsResolver } from "../dns/resolver.ts";
import { DirectDelivery } from "./direct/direct-delivery.ts";
import { StsPolicies } from "./direct/mta-sts.ts";
import { MxResolver } from "./direct/mx.ts";
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

/** Options of {@link createMailTransport}. */
export interface MailTransportOptions {
  config: NotifyConfig;
  dns: DnsResolver;
  prepare: PrepareMail;
  clock: Clock;
}

/** True if mail leaves the service; false if it is kept in the development inbox. */
export function sendsMail(config: NotifyConfig): boolean {
  const { "smtp.mode": mode } = config;
  return mode === "auto" ? listRelays(config).length > 0 : mode !== "inbox";
}

/** Creates the transport of mail; undefined for the development inbox. Throws if no relay is configured for relay mode. */
export function createMailTransport(
  options: MailTransportOptions,
): RelayGroup | DirectDelivery | undefined {
  const { config } = options;
  const relays = listRelays(config);
  switch (config["smtp.mode"]) {
    case "inbox":
      return undefined;
    case "direct":
      return createDirectDelivery(options);
    case "relay":
      if (relays.length === 0) throw new Error("smtp.mode relay requires smtp.host or smtp.relays");
      return createRelayGroup(options);
    case "auto":
      return relays.length === 0 ? undefined : createRelayGroup(options);
    default:
      return config["smtp.mode"] satisfies never;
  }
}

function createRelayGroup({ config, prepare, clock }: MailTransportOptions): RelayGroup {
  const now = (): number => clock.monotonicMs();
  const relays = readRelays(config);
  return new RelayGroup({ relays, prepare, now, random: Math.random });
}

/** The configured relays; empty without any. Throws if the file of authorities cannot be read. */
export function readRelays(config: NotifyConfig): RelayOptions[] {
  const ca = readAuthorities(config["smtp.tls_ca_file"]);
  return listRelays(config).map(({ host, port, user, pass, tls, weight }) => ({
    ...readConnectionOptions(config),
    endpoint: { host, port, user, pass, ca, tls: tls === "auto" ? chooseTls(port, user) : tls },
    weight,
  }));
}

function createDirectDelivery(options: MailTransportOptions): DirectDelivery {
  const { config, dns, prepare, clock } = options;
  const allowed = config.allow_private_targets ? ["0.0.0.0/0", "::/0"] : [];
  const resolver = new MxResolver({
    dns,
    policy: createAddressPolicy(allowed),
    random: Math.random,
  });
  const policies = new StsPolicies({
    readTexts: (name) => dns.readTexts(name),
    fetch: createEgress({
      allowedNetworks: allowed,
      resolve: (host) => dns.resolveHost(host),
      ca: readAuthorities(config.mta_sts_ca),
    }),
    clock,
  });
  return new DirectDelivery({
    resolver,
    policies,
    prepare,
    port: config["smtp.direct_port"],
    server: readConnectionOptions(config),
    ca: readAuthorities(config["smtp.tls_ca_file"]),
  });
}

function readConnectionOptions(config: NotifyConfig) {
  return {
    hostname: config["smtp.hostname"],
    connectTimeoutMs: config["smtp.connect_timeout_ms"],
    commandTimeoutMs: config["smtp.command_timeout_ms"],
    contentTimeoutMs: config["smtp.content_timeout_ms"],
    messagesPerConnectionMax: config["smtp.messages_per_connection_max"],
    idleMs: IDLE_MS,
  };
}

// A list replaces the authorities that are trusted by default, so that it contains them.
function readAuthorities(file: string | undefined): string[] | undefined {
  return file === undefined
    ? undefined
    : [...getCACertificates("default"), readFileSync(file, "utf8")];
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
