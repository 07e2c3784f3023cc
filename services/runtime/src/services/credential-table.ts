// The generated credentials: what each opens, the programs that have it, and what must be told to whom when it is replaced.
import { CLI_SECRET, CONSOLE_SECRET } from "./auth.ts";
import { BACKUP_TOKEN } from "./backup.ts";
import type { ServiceEntry } from "./entry.ts";
import { GATE_TOKEN } from "./gate.ts";
import { REVOCATIONS_TOKEN } from "./identity.ts";
import { METRICS_TOKEN } from "./metrics.ts";
import { NOTIFY_TOKEN } from "./notify.ts";
import { PULSE_TOKEN } from "./pulse.ts";
import { RUNTIME_TOKEN } from "./runtime.ts";
import { TUNNEL_TOKEN } from "./tunnel.ts";
import { ACCESS_KEY, SECRET_KEY } from "./vault.ts";

/** A credential, for operators. */
export interface CredentialEntry {
  name: string;
  opens: string;
  /** Programs of the platform that present it. */
  users: readonly string[];
  /** Programs outside of the platform that may have it, and what they need; undefined if there are none. */
  tell?: string;
  /** The reason why it is not replaced by `credentials rotate`, and the way to do it. */
  otherwise?: string;
}

const COMMANDS = "commands of platform";

/** All credentials, in the order of the services. */
export const CREDENTIALS: readonly CredentialEntry[] = [
  {
    name: NOTIFY_TOKEN,
    opens: "mail, as the operator",
    users: ["identity"],
    tell: "programs that send mail or read the inbox with it need the new value",
  },
  {
    name: CLI_SECRET,
    opens: "identity, as an administrator (client platform-cli)",
    users: [COMMANDS],
    tell: "scripts that get tokens as platform-cli need the new value",
  },
  { name: CONSOLE_SECRET, opens: "sign-ins of the web console", users: ["gateway"] },
  {
    name: REVOCATIONS_TOKEN,
    opens: "the feed of revoked tokens",
    users: ["all services", "projects"],
    tell: "services on other machines that follow the feed need the new value",
  },
  {
    name: "PLATFORM_AUTH_ADMIN_PASSWORD",
    opens: "the first administrator's account",
    users: [],
    otherwise: "it is the password of a person, who changes it at /account of identity",
  },
  {
    name: ACCESS_KEY,
    opens: "",
    users: [COMMANDS],
    otherwise: `it is the id of a key and no secret: rotate ${SECRET_KEY}`,
  },
  {
    name: SECRET_KEY,
    opens: "storage, as root",
    users: [COMMANDS],
    tell: "S3 clients with root's key need the new value, and links that it has signed end with the former one; applications have keys of their own",
  },
  {
    name: PULSE_TOKEN,
    opens: "messaging, as the operator",
    users: ["storage", COMMANDS],
    tell: "clients of HTTP, Kafka, MQTT and STOMP that sign in with it need the new value",
  },
  {
    name: TUNNEL_TOKEN,
    opens: "the tunnel's relay, as the operator",
    users: ["platform share"],
    tell: "running platform share commands, also on other machines, must be started again with the new value",
  },
  {
    name: GATE_TOKEN,
    opens: "the gateway's API, and its routes that need a token",
    users: [COMMANDS],
    tell: "programs that call the gateway as the operator need the new value",
  },
  {
    name: METRICS_TOKEN,
    opens: "metrics of all services",
    users: [],
    tell: "Prometheus must read prometheus.yml in the data folder again, which has the new value",
  },
  {
    name: RUNTIME_TOKEN,
    opens: "the platform's own API: services, projects, logs",
    users: [COMMANDS],
    tell: "programs that call that API need the new value",
  },
  {
    name: BACKUP_TOKEN,
    opens: "backups of all services",
    users: ["platform backup"],
    tell: "programs that fetch backups from the services themselves need the new value",
  },
];

/** The names of the credentials that the process of a service has: it accepts or presents them. */
export function listHeld(
  entry: Pick<ServiceEntry, "credentials" | "uses" | "probes">,
): readonly string[] {
  // The sample has no metrics.
  const metrics = entry.probes === undefined ? [] : [METRICS_TOKEN];
  return [...new Set([...entry.credentials, ...(entry.uses ?? []), ...metrics])];
}
