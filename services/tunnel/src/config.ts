// The configuration of the relay, and the options of the client.
import { createConsoleKeys } from "@platform/console";
import {
  createDatabaseKeys,
  addressKey,
  addressSchema,
  createOperationKeys,
  createRestoreCommand,
  createServiceKeys,
  createTlsKeys,
  createTokenKeys,
  defineConfig,
  isLoopbackAddress,
  key,
  networkSchema,
  readPackageVersion,
  type ConfigOf,
} from "@platform/kernel/config";
import { z } from "zod";

/** Shown in health responses, `--version` and metrics. */
export const VERSION = readPackageVersion(import.meta.url);

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

const domainName = z
  .string()
  .max(190)
  .toLowerCase()
  .regex(
    /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
    "a domain name without port",
  );

const portRange = z
  .string()
  .regex(/^\d{1,5}-\d{1,5}$/)
  .transform((text) => {
    const [first = 0, last = 0] = text.split("-").map(Number);
    return { first, last };
  })
  .refine(
    ({ first, last }) => first >= 1 && last <= 65_535 && first <= last,
    "first-last, within 1 to 65535",
  );

const LOCAL_FAULT = "an address of the loopback interface";

const listening = {
  addr: addressKey(":8443", {
    description: "Listen address of API, clients and public traffic.",
    env: ["PLATFORM_TUNNEL_ADDR"],
  }),
  domain: key(domainName.default("localhost"), {
    description:
      "Domain of the relay: the API answers on it, tunnels on its subdomains. Browsers resolve all names below localhost to this machine.",
  }),
  public_url: key(
    z
      .url({ protocol: /^https?$/ })
      .transform((text) => new URL(text).origin)
      .optional(),
    {
      description:
        "Public URL of the bare domain, if a proxy in front of the relay changes scheme or port.",
      defaultText: "scheme and port of the listener",
    },
  ),
  ...createTlsKeys(
    "tunnel",
    "Best a wildcard certificate for the domain; with it the listener accepts TLS only.",
  ),
  tls_dir: key(z.string().min(1).max(4096).optional(), {
    description:
      "Folder with certificates by name: NAME.crt and NAME.key, or NAME.pem with both; `_.example.org` is the name of `*.example.org`. With it the listener accepts TLS only; names without a certificate get tls_cert, or without that no connection. Changed, new and removed files are noticed within two seconds.",
  }),
  tls_gateway: key(addressSchema().optional(), {
    description:
      "TLS address of a gateway that obtains certificates by itself, into tls_dir, and whose auto_tls_ask_url is /api/v1/certificates/ask of this relay: tunnels without a certificate get one.",
    allowed: 'an address, like "127.0.0.1:443"',
  }),
  local_addr: key(addressSchema().refine(isLoopbackAddress, LOCAL_FAULT).optional(), {
    description:
      "Listen address for programs on this machine, without TLS: API, clients and tunnels. Without TLS, addr serves them, and there is no such listener.",
    allowed: 'an address, like "127.0.0.1:8444"',
  }),
  tcp_ports: key(portRange.optional(), {
    description: "Ports of TCP tunnels, such as 20000-20999. Without it TCP tunnels are refused.",
    allowed: "first-last",
  }),
  tcp_host: key(z.string().min(1).max(255).optional(), {
    description: "Address on which the ports of TCP tunnels listen.",
    defaultText: "all addresses",
  }),
  trusted_proxies: key(z.array(networkSchema()).max(256).default([]), {
    description:
      "Addresses and CIDR ranges of proxies in front of the relay, whose X-Forwarded-* fields, or Forwarded without X-Forwarded-For, are kept. Those of other peers are replaced.",
  }),
};

const access = {
  auth_token: key(z.string().min(1).max(65_536).optional(), {
    description:
      "Static tokens for clients and the API: [name:]token, separated by commas. The name is the subject that owns the tunnels. A token without a name is the operator's, who manages all tunnels.",
    secret: true,
  }),
  ...createTokenKeys("tunnel", "accepted for connections and the API, in addition to auth_token"),
  open_scope: key(
    z
      .string()
      .regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,255}$/, "one scope")
      .optional(),
    {
      description:
        "Scope that JWTs must have to open and reserve tunnels. Default: none, every valid token may.",
    },
  ),
};

const state = {
  data_dir: key(z.string().min(1).max(4096).default("./data/tunnel"), {
    description: "Data folder: the SQLite database.",
  }),
  ...createDatabaseKeys("tunnel"),
  name_retention_ms: key(
    z
      .int()
      .min(MINUTE_MS)
      .max(3650 * DAY_MS)
      .default(30 * DAY_MS),
    {
      description: "Time for which a subject keeps an unused name.",
      unit: "ms",
    },
  ),
};

const limits = {
  max_ring_buffer: key(z.int().min(0).max(100_000).default(100), {
    description: "Captured requests per tunnel; the oldest is evicted. 0 disables capture.",
    env: ["PLATFORM_TUNNEL_MAX_RING_BUFFER"],
    unit: "requests",
  }),
  capture_bytes_max: key(
    z
      .int()
      .min(1_048_576)
      .max(64 * 1_073_741_824)
      .default(67_108_864),
    {
      description:
        "Memory for captured requests of all tunnels; the tunnel that holds the most loses its oldest ones first.",
      unit: "bytes",
    },
  ),
  names_per_subject_max: key(z.int().min(1).max(100_000).default(20), {
    description: "Names that a subject can hold; the operator is exempt.",
    unit: "names",
  }),
  clients_per_subject_max: key(z.int().min(1).max(100_000).default(100), {
    description: "Connected clients of one subject; the operator is exempt.",
    unit: "clients",
  }),
  clients_max: key(z.int().min(1).max(1_000_000).default(10_000), {
    description: "Connected clients of all subjects; further ones get 503.",
    unit: "clients",
  }),
  streams_per_client_max: key(z.int().min(1).max(65_536).default(1_024), {
    description:
      "Requests, WebSockets and TCP connections that one client carries at the same time; up to 1,024 further requests wait for 5 s.",
    unit: "streams",
  }),
  connections_max: key(z.int().min(16).max(1_000_000).default(65_536), {
    description: "Maximum number of public connections; further ones are closed immediately.",
    unit: "connections",
  }),
  connections_per_address_max: key(z.int().min(1).max(1_000_000).optional(), {
    description:
      "Maximum number of connections per IPv4 address or IPv6 /64 network; trusted proxies are exempt. Defaults to half of connections_max.",
    unit: "connections",
  }),
  response_timeout_ms: key(z.int().min(1_000).max(3_600_000).default(120_000), {
    description: "Time from the end of a request to the head of its response; then 504.",
    unit: "ms",
  }),
};

const { otlp_endpoint: otelEndpoint, ...serviceKeys } = createServiceKeys("tunnel");

/** Relay of clients that name none. */
export const DEFAULT_RELAY = "ws://localhost:8443/ws/connect";

const CLIENT_OPTIONS = {
  relay: key(z.url({ protocol: /^wss?$/ }).optional(), {
    description: "WebSocket URL of the relay; takes precedence over the one in the file.",
    env: ["PLATFORM_TUNNEL_RELAY"],
    defaultText: DEFAULT_RELAY,
  }),
  token: key(z.string().min(1).max(16_384).optional(), {
    description: "Bearer token for the relay.",
    env: ["PLATFORM_TUNNEL_TOKEN"],
    secret: true,
    flag: "token",
  }),
  subdomain: key(z.string().min(1).max(63).optional(), {
    description: "Requested subdomain; git derives it from the current branch.",
    env: [],
    defaultText: "generated",
  }),
  custom_domain: key(z.string().min(1).max(253).optional(), {
    description: "Public name of your own, proven by a TXT record.",
    env: [],
  }),
  inspect_port: key(z.int().min(0).max(65_535).default(4040), {
    description:
      "Port of the inspector on 127.0.0.1; if it is in use, the next free one. 0 disables it.",
    env: [],
  }),
  share_auth: key(
    z
      .string()
      .max(255)
      .regex(/^[^:]+:.+$/, "user:password")
      .optional(),
    {
      description: "user:password that public requests need (Basic authentication).",
      env: ["PLATFORM_TUNNEL_SHARE_AUTH"],
      secret: true,
      flag: "share-auth",
    },
  ),
  auth_required: key(z.boolean().default(false), {
    description: "Public requests need a share link, Basic credentials or a bearer.",
    env: [],
  }),
  host_header: key(z.string().min(1).max(255).default("rewrite"), {
    description:
      "Host field for the local service: rewrite (that of the target), preserve (the public one), or a value.",
    env: [],
  }),
  tcp: key(z.boolean().default(false), {
    description: "Pass raw TCP through a port of the relay instead of HTTP.",
    env: [],
  }),
  remote_port: key(z.int().min(1).max(65_535).optional(), {
    description: "Requested port of a TCP tunnel.",
    env: [],
    defaultText: "a free port of the relay's range",
  }),
  tls_verify: key(z.boolean().default(true), {
    description: "Verify the certificate of an https target that is not on this machine.",
    env: [],
  }),
  relay_ca: key(z.string().min(1).max(4096).optional(), {
    description: "PEM file with the root certificates for the relay, instead of the system's.",
    env: ["PLATFORM_TUNNEL_RELAY_CA"],
  }),
  config: key(z.string().min(1).max(4096).optional(), {
    description: "YAML or JSON file with relay, token and tunnels.",
    env: [],
  }),
  json: key(z.boolean().default(false), {
    description: "Write one JSON object per line instead of text.",
    env: [],
  }),
  data_dir: key(z.string().min(1).max(4096).optional(), {
    description: "Folder of the client's key, by which it gets its names back.",
    env: ["PLATFORM_TUNNEL_DATA_DIR"],
    defaultText: "~/.local/state/platform-tunnel",
  }),
};

/** Command line and configuration of the tunnel service. */
export const tunnelDefinition = defineConfig({
  service: "tunnel",
  program: "platform-tunnel",
  version: VERSION,
  summary: "The tunnel service: public addresses for local services.",
  keys: {
    ...listening,
    ...access,
    ...state,
    ...limits,
    ...serviceKeys,
    ...createConsoleKeys(),
    ...createOperationKeys("tunnel"),
    otel_endpoint: otelEndpoint,
  },
  file: { flag: "config", env: ["PLATFORM_TUNNEL_CONFIG"] },
  runs: false,
  commands: {
    server: {
      summary: "Run the relay.",
      options: {
        port: key(z.int().min(0).max(65_535).optional(), {
          description: "Port of the listener; takes precedence over addr.",
          env: [],
        }),
      },
    },
    restore: createRestoreCommand(),
    client: {
      summary: "Open tunnels to local services: a port, host:port, an http(s) URL or a folder.",
      standalone: true,
      arguments: ["target?"],
      options: CLIENT_OPTIONS,
    },
  },
});

/** The validated configuration of the relay. */
export type RelayConfig = ConfigOf<typeof tunnelDefinition.keys>;

/** True if the listener accepts TLS only. */
export function usesTls({ tls_cert: cert, tls_dir: folder }: RelayConfig): boolean {
  return cert !== undefined || folder !== undefined;
}

/** The validated options of the client. */
export type ClientOptions = ConfigOf<typeof CLIENT_OPTIONS>;
