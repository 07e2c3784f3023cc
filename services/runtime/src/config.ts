// Flags and environment variables of `platform`.
import { z } from "zod";
import {
  addressKey,
  createRestoreKeys,
  createServiceKeys,
  defineConfig,
  key,
  readPackageVersion,
  type ConfigKey,
} from "@platform/kernel/config";
import { LOG_LEVELS } from "@platform/kernel/log";
import { PROJECT_ADDRESS, PROJECT_KEY } from "./command/project-entry.ts";
import { SERVICES } from "./services/index.ts";
import { RUNTIME_LISTENER } from "./services/runtime.ts";

/** Version of the platform. */
export const VERSION = readPackageVersion(import.meta.url);

const { log_level, drain_timeout_ms } = createServiceKeys("runtime");

const LISTENER_KEYS: Record<
  string,
  ConfigKey<ReturnType<typeof addressKey>["schema"]>
> = Object.fromEntries(
  [...SERVICES.flatMap(({ listeners }) => listeners), RUNTIME_LISTENER].map((listener) => [
    listener.key,
    addressKey(listener.default, { description: listener.description, env: [listener.env] }),
  ]),
);

const PROJECT_KEYS = {
  [PROJECT_KEY]: addressKey(PROJECT_ADDRESS, {
    description: "Listening address of the project in the working directory.",
    env: ["PLATFORM_PROJECT_ADDR"],
  }),
};

const LABELS = SERVICES.map(({ label }) => label).join(", ");

const data = key(z.string().min(1).default("./data"), {
  description: "Data directory of all services.",
  env: ["PLATFORM_DATA_DIR"],
});
const json = key(z.boolean().default(false), { description: "Print JSON.", env: [] });

/** Flags of `platform up` besides the listening addresses. */
const UP_KEYS = {
  only: key(z.array(z.string()).max(64).default([]), {
    description: `Start only these services: ${LABELS}.`,
    env: [],
  }),
  data,
  domain: key(
    z
      .string()
      .regex(/^(?=.{1,240}$)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+$/)
      .optional(),
    {
      description:
        "Public domain. The gateway routes identity at identity.DOMAIN and storage at vault.DOMAIN; identity's public URL is https://identity.DOMAIN. Without it, these names are below localhost.",
      env: ["PLATFORM_DOMAIN"],
      allowed: "a lower-case domain name, like example.com",
    },
  ),
  json: key(z.boolean().default(false), {
    description: "Write the banner and the log as JSON lines.",
    env: [],
  }),
  log_level,
  drain_timeout_ms,
};

const LOGS_KEYS = {
  lines: key(z.int().min(0).max(100_000).default(100), {
    description: "Number of lines to begin with.",
    env: [],
  }),
  level: key(z.enum(LOG_LEVELS).default("debug"), {
    description: "Minimum severity of the lines.",
    env: [],
  }),
  follow: key(z.boolean().default(false), {
    description: "Continue with new lines until ctrl-c.",
    env: [],
  }),
  access: key(z.boolean().default(false), {
    description: "Show the gateway's access log instead.",
    env: [],
  }),
};

const USER_KEYS = {
  email: key(z.string().min(3).max(254).optional(), { description: "Email address.", env: [] }),
  name: key(z.string().min(1).max(256).optional(), { description: "Display name.", env: [] }),
  role: key(z.array(z.string()).max(50).default([]), {
    description: "Roles, such as admin; may be repeated.",
    env: [],
  }),
  password_stdin: key(z.boolean().default(false), {
    description: "Read the password from the standard input instead of generating one.",
    env: [],
    secret: false,
    flag: "password-stdin",
  }),
};

const APP_KEYS = {
  redirect: key(
    z
      .array(z.url({ protocol: /^https?$/ }))
      .max(20)
      .default([]),
    {
      description: "URL to which users return after they have signed in; may be repeated.",
      env: [],
    },
  ),
  bucket: key(z.string().min(3).max(63).optional(), {
    description: "Bucket that the application may read and write; created if it is missing.",
    env: [],
  }),
  topic: key(z.array(z.string().min(1).max(249)).max(50).default([]), {
    description:
      "Topics that it may publish and subscribe: a name, or a pattern in which * is one level and # any number of levels; may be repeated.",
    env: [],
  }),
  mail: key(z.boolean().default(false), {
    description: "Lets the application send mail.",
    env: [],
  }),
};

const BUCKET_KEYS = {
  cors: key(z.array(z.string().min(1).max(255)).max(20).default([]), {
    description:
      "Origin of pages that may use presigned URLs of the bucket, such as https://notes.example.com; may be repeated.",
    env: [],
  }),
};

const SHARE_KEYS = {
  subdomain: key(z.string().min(1).max(63).optional(), {
    description: "Requested subdomain; git derives it from the current branch.",
    env: [],
    defaultText: "generated",
  }),
  relay: key(z.url({ protocol: /^wss?$/ }).optional(), {
    description: "WebSocket URL of the relay.",
    env: ["PLATFORM_TUNNEL_RELAY"],
    defaultText: "that of the running `platform up`",
  }),
};
function passphraseFile(description: string) {
  return { ...createRestoreKeys().passphrase_file, description };
}

const NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const DEPLOY_KEYS = {
  target: key(z.enum(["docker", "k8s"]), {
    description: "Container image, or Kubernetes.",
    env: [],
  }),
  namespace: key(z.string().regex(NAME).optional(), {
    description: "Namespace in Kubernetes.",
    env: [],
    defaultText: "that of kubectl",
    allowed: "lower-case letters, digits and -, like team-a",
  }),
  image: key(
    z
      .string()
      .regex(/^[a-z0-9][a-z0-9._:/-]{0,254}$/)
      .optional(),
    {
      description: "Name of the image, with its registry for Kubernetes.",
      env: [],
      defaultText: "NAME:VERSION of package.json",
      allowed: "a name like registry.example.com/notes:1.0.0",
    },
  ),
  database: key(z.enum(["sqlite", "postgres"]).optional(), {
    description:
      "Database in Kubernetes: SQLite on a volume with one replica, or PostgreSQL by a secret with two.",
    env: [],
    defaultText: "sqlite if the service declares a database",
  }),
  dry_run: key(z.boolean().default(false), {
    description: "Print the file and write nothing.",
    env: [],
  }),
  apply: key(z.boolean().default(false), {
    description: "Build the image; for Kubernetes also push it, apply the manifests and wait.",
    env: [],
  }),
};

/** Command line of `platform`. */
export const runtimeDefinition = defineConfig({
  service: "runtime",
  program: "platform",
  version: VERSION,
  summary: "One self-hosted backend platform.",
  keys: {},
  runs: false,
  commands: {
    up: {
      summary: "Start and supervise all services on this machine.",
      standalone: true,
      options: { ...UP_KEYS, ...PROJECT_KEYS, ...LISTENER_KEYS },
    },
    status: {
      summary: "Show the state of each service. Exits with 1 unless all are up.",
      standalone: true,
      options: { data, json },
    },
    logs: {
      summary: `Show the log of all services, or of one: ${LABELS}.`,
      standalone: true,
      arguments: ["service?"],
      options: { data, ...LOGS_KEYS, json },
    },
    doctor: {
      summary: "Check the machine, the data directory and the services, and say what to do.",
      standalone: true,
      options: { data, json, ...LISTENER_KEYS },
    },
    "user add": {
      summary: "Create a user, and print a generated password.",
      standalone: true,
      arguments: ["name"],
      options: { data, ...USER_KEYS },
    },
    "bucket add": {
      summary: "Create a bucket in storage.",
      standalone: true,
      arguments: ["name"],
      options: { data, ...BUCKET_KEYS },
    },
    "app add": {
      summary:
        "Create an OAuth client, a role, a storage key and topic rules for an application, and print its environment file.",
      standalone: true,
      arguments: ["name"],
      options: { data, ...APP_KEYS },
    },
    "app remove": {
      summary: "Remove an application's client, role, key and topic rules. Its data is kept.",
      standalone: true,
      arguments: ["name"],
      options: { data },
    },
    share: {
      summary: "Give a local service a public address, through the tunnel of `platform up`.",
      standalone: true,
      arguments: ["target"],
      options: { data, json, ...SHARE_KEYS },
    },
    backup: {
      summary:
        "Save the running platform to a new folder: accounts, messages, objects, keys, credentials. Services keep running.",
      standalone: true,
      arguments: ["folder"],
      options: {
        data,
        passphrase_file: passphraseFile("Encrypt the backup with the passphrase in this file."),
      },
    },
    restore: {
      summary: "Verify a backup, and restore it to a data directory that is missing or empty.",
      standalone: true,
      arguments: ["folder"],
      options: { data, ...createRestoreKeys() },
    },
    init: {
      summary: "Create a project: a service and its tests.",
      standalone: true,
      arguments: ["name"],
      options: {
        template: key(z.enum(["api", "web", "worker"]).default("api"), {
          description:
            "Kind of service: routes over a database, a page with sign-in, or messages and schedules.",
          env: [],
        }),
      },
    },
    run: {
      summary: "Run a service file (default main.service.ts).",
      standalone: true,
      arguments: ["file?"],
      options: {
        watch: key(z.boolean().default(false), {
          description: "Run it again after each change, without refusing a connection.",
          env: [],
        }),
      },
    },
    check: {
      summary: "Find errors of a service file without running it: declarations and types.",
      standalone: true,
      arguments: ["file?"],
      options: { json },
    },
    "migrate status": {
      summary: "Show which migrations of a service are applied.",
      standalone: true,
      arguments: ["file?"],
    },
    "migrate up": {
      summary: "Apply pending migrations of a service, as its start does.",
      standalone: true,
      arguments: ["file?"],
    },
    "migrate new": {
      summary: "Create the next file in ./migrations.",
      standalone: true,
      arguments: ["name"],
    },
    test: {
      summary: "Run the tests of a project, by default all *.test.ts.",
      standalone: true,
      arguments: ["file..."],
    },
    build: {
      summary: "Build one self-contained executable of a service (default main.service.ts).",
      standalone: true,
      arguments: ["file?"],
      options: {
        out: key(z.string().min(1).optional(), {
          description: "Path of the executable.",
          env: [],
          short: "o",
          defaultText: "dist/NAME",
        }),
      },
    },
    deploy: {
      summary: "Write or apply a container image or Kubernetes manifests of a service.",
      standalone: true,
      arguments: ["file?"],
      options: DEPLOY_KEYS,
    },
  },
});
