// Table entry of storage.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatAddress } from "@platform/kernel/config";
import { allowBackups, BACKUP_TOKEN } from "./backup.ts";
import {
  formatHost,
  formatLocalHost,
  formatUrl,
  getAddress,
  type EntryContext,
  type ServiceEntry,
} from "./entry.ts";
import { REVOCATIONS_TOKEN, trustGateway, wireIdentity } from "./identity.ts";
import { PULSE_TOKEN } from "./pulse.ts";

/** Id of the root key. */
export const ACCESS_KEY = "STORE_ACCESS_KEY_ID";
/** Secret of the root key. */
export const SECRET_KEY = "STORE_SECRET_ACCESS_KEY";

const PUBLIC_URL = "PLATFORM_VAULT_PUBLIC_URL";
/** Variables of messaging's certificate, in its order. */
const BROKER_CERTIFICATES = [
  "PLATFORM_PULSE_TLS_CERT",
  "PLATFORM_PULSE_TLS_CERT_FILE",
  "TLS_CERT_FILE",
];

/** Storage. */
export const vaultEntry: ServiceEntry = {
  name: "vault",
  label: "storage",
  main: import.meta.resolve("@platform/vault/main"),
  listeners: [
    {
      name: "http",
      key: "storage_addr",
      env: "PLATFORM_VAULT_ADDR",
      default: "127.0.0.1:9000",
      description: "Listening address of storage for S3 clients.",
    },
    {
      name: "admin",
      key: "storage_admin_addr",
      env: "PLATFORM_VAULT_ADMIN_ADDR",
      default: "127.0.0.1:9001",
      description: "Listening address of the admin API and the metrics of storage.",
    },
  ],
  probes: "admin",
  after: ["auth"],
  backup: { listener: "admin" },
  credentials: [ACCESS_KEY, SECRET_KEY, BACKUP_TOKEN],
  uses: [PULSE_TOKEN, REVOCATIONS_TOKEN],
  // Clients sign their requests; signatures cover path and Host, so the gateway must not change them.
  routes: [
    {
      prefix: "/",
      subdomain: "vault",
      stripPrefix: false,
      open: true,
      passesAsIs: true,
      listener: "http",
    },
  ],
  prepare: prepareConfig,
  configure: (context) => ({
    args: [],
    env: {
      PLATFORM_VAULT_ADDR: formatAddress(getAddress(context, "storage_addr")),
      PLATFORM_VAULT_ADMIN_ADDR: formatAddress(getAddress(context, "storage_admin_addr")),
      // The default, config.json in the working directory, may be an unrelated file.
      PLATFORM_VAULT_CONFIG: join(context.dataDir, "vault", "config.json"),
      PLATFORM_VAULT_DATA_DIR: join(context.dataDir, "vault"),
      ...describeAddress(context),
      ...wireEvents(context),
      ...allowBackups(context),
      [ACCESS_KEY]: context.credentials[ACCESS_KEY] ?? "",
      [SECRET_KEY]: context.credentials[SECRET_KEY] ?? "",
      ...wireIdentity("vault", context, process.env),
      ...trustGateway("vault", ["storage_addr", "storage_admin_addr"], context, process.env),
    },
  }),
  describe: (context) =>
    `S3 · admin ${formatUrl(getAddress(context, "storage_admin_addr"))} · keys ${context.dataDirShown}/credentials.env`,
  trials(context) {
    const host = formatLocalHost(getAddress(context, "storage_addr"));
    const user = `-u "$${ACCESS_KEY}:$${SECRET_KEY}" -H x-amz-content-sha256:UNSIGNED-PAYLOAD`;
    return [
      {
        command: `(. ${context.credentialsShown}; curl --aws-sigv4 aws:amz:us-east-1:s3 ${user} -X PUT ${host}/photos)`,
        meaning: "create a bucket",
      },
    ];
  },
};

/** Links to objects are opened by everyone: at the public name, or at the port of this machine. */
function describeAddress(context: EntryContext): Record<string, string> {
  if (context.domain === undefined || (process.env[PUBLIC_URL] ?? "") !== "") return {};
  return { [PUBLIC_URL]: `https://${formatHost("vault", context)}` };
}

/** Events of buckets can go to messaging: subscriptions with the URL `stomp://platform`. */
function wireEvents({ running, addresses, credentials }: EntryContext): Record<string, string> {
  const address = addresses.get("messaging_stomp_addr");
  if (address === undefined || !running.some(({ name }) => name === "pulse")) return {};
  // Messaging serves STOMP with TLS if it has a certificate, which is then the one to trust.
  const certificate =
    BROKER_CERTIFICATES.map((name) => process.env[name] ?? "").find((path) => path !== "") ?? "";
  return {
    PLATFORM_VAULT_EVENT_BROKER_URL: `${certificate === "" ? "stomp" : "stomps"}://${formatLocalHost(address)}`,
    ...(certificate === "" ? {} : { PLATFORM_VAULT_EVENT_BROKER_CA_FILE: certificate }),
    PLATFORM_VAULT_EVENT_BROKER_USER: "storage",
    PLATFORM_VAULT_EVENT_BROKER_PASSWORD: credentials[PULSE_TOKEN] ?? "",
  };
}

// An existing file belongs to the operator.
async function prepareConfig(context: EntryContext): Promise<string[]> {
  const folder = join(context.dataDir, "vault");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    await writeFile(join(folder, "config.json"), "{}\n", { flag: "wx", mode: 0o600 });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
  return [];
}
