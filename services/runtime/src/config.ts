// Flags and environment variables of `platform`.
import { z } from "zod";
import {
  addressKey,
  createRestoreKeys,
  createLossKey,
  createServiceKeys,
  defineConfig,
  key,
  readPackageVersion,
} from "@platform/kernel/config";
import { LOG_LEVELS } from "@platform/kernel/log";
import { ALLOW_KEYS, APP_KEYS } from "./client/app-keys.ts";
import { CREDENTIAL_COMMANDS } from "./command/credential-commands.ts";
import { DATA_KEY } from "./command/data-key.ts";
import { PROJECT_COMMANDS } from "./command/project-commands.ts";
import { DEPLOY_KEYS } from "./deploy/deploy-keys.ts";
import { LISTENER_KEYS } from "./services/listener-keys.ts";
import { SERVICES } from "./services/index.ts";
import { PROJECT_ADDRESS, PROJECT_KEY } from "./services/project.ts";

/** Version of the platform. */
export const VERSION = readPackageVersion(import.meta.url);

const { log_level, drain_timeout_ms } = createServiceKeys("runtime");

const PROJECT_KEYS = {
  [PROJECT_KEY]: addressKey(PROJECT_ADDRESS, {
    description: "Listening address of the project in the working directory.",
    env: ["PLATFORM_PROJECT_ADDR"],
  }),
};

const LABELS = SERVICES.map(({ label }) => label).join(", ");

const data = DATA_KEY;
const jsonLines = key(z.boolean().default(false), {
  description: "Print one JSON document a line.",
  env: [],
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
      placeholder: "DOMAIN",
    },
  ),
  auto_tls: key(z.boolean().default(false), {
    description:
      "Obtain and renew certificates for the names of the domain through ACME (Let's Encrypt, or PLATFORM_ACME_DIRECTORY_URL), which accepts the terms of service of the authority. The gateway then listens on :443 and :80 unless other addresses are set. Mail, messaging and tunnels get certificates, too.",
    env: ["PLATFORM_AUTO_TLS"],
  }),
  console_url: key(z.url({ protocol: /^https?$/ }).optional(), {
    description:
      "Address at which browsers open the web console, if a proxy or a public name leads to it.",
    env: ["PLATFORM_GATE_CONSOLE_URL"],
    placeholder: "URL",
    defaultText:
      "http://localhost:PORT; shared: https://console.DOMAIN or http://console.localhost:PORT",
  }),
  accept_loss: createLossKey(),
  keep: key(z.boolean().default(false), {
    description:
      "In a project's folder, while a platform runs: the project stays when this command ends, and starts with the platform.",
    env: [],
  }),
  environment_file: key(z.string().min(1).max(4_096).optional(), {
    description: "With --keep: file with variables of the project's process.",
    env: [],
    placeholder: "FILE",
  }),
  alone: key(z.boolean().default(false), {
    description:
      "Start a platform although another one of this user runs; default ports that are taken are replaced by free ones.",
    env: [],
  }),
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
    short: "n",
  }),
  level: key(z.enum(LOG_LEVELS).default("debug"), {
    description: "Minimum severity of the lines.",
    env: [],
  }),
  follow: key(z.boolean().default(false), {
    description: "Continue with new lines until ctrl-c.",
    env: [],
    short: "f",
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
      summary:
        "Start and supervise all services on this machine; in a project's folder, join the platform that runs.",
      synonyms: ["start", "serve", "server"],
      standalone: true,
      options: { ...UP_KEYS, ...PROJECT_KEYS, ...LISTENER_KEYS },
      examples: [
        ["platform up", "everything, with its data in ./data; ctrl-c stops it"],
        ["platform up --data /srv/platform --only identity,gateway", "two services, elsewhere"],
        ["platform up --gateway-addr 127.0.0.1:8090", "the gateway on another port"],
        [
          "platform up",
          "in a project's folder, while a platform runs: the project joins it until ctrl-c",
        ],
      ],
    },
    status: {
      summary: "Show the state of each service. Exits with 1 unless all are up.",
      synonyms: ["ps", "ls", "list", "info"],
      standalone: true,
      examples: [["platform status --data /srv/platform", "the platform with this data directory"]],
      options: { data, json },
    },
    down: {
      summary: "Stop the platform that runs with this data directory, and wait until it has ended.",
      synonyms: ["stop", "quit", "kill", "shutdown"],
      standalone: true,
      options: {
        data,
        timeout_ms: key(z.int().min(1_000).max(3_600_000).default(60_000), {
          description: "Time to wait.",
          unit: "ms",
          env: [],
        }),
      },
      examples: [["platform down --data /srv/platform", "the platform with this data directory"]],
    },
    logs: {
      summary: `Show the log of all services, or of one: ${LABELS}.`,
      standalone: true,
      arguments: ["service?"],
      options: { data, ...LOGS_KEYS, json },
      examples: [
        ["platform logs identity --level warn", "warnings and errors of identity"],
        ["platform logs --follow", "the log of all services, until ctrl-c"],
        ["platform logs --access --lines 20", "the latest requests at the gateway"],
      ],
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
      examples: [
        ["platform user add ann --email ann@example.com", "a user; prints the password once"],
        ["platform user add bob --role admin", "an administrator"],
      ],
    },
    "user list": {
      summary: "List the users.",
      standalone: true,
      options: { data, json: jsonLines },
    },
    "bucket add": {
      summary: "Create a bucket in storage.",
      standalone: true,
      arguments: ["name"],
      options: { data, ...BUCKET_KEYS },
      examples: [
        ["platform bucket add photos --cors http://localhost:3000", "for pages at port 3000"],
      ],
    },
    "bucket list": {
      summary: "List the buckets in storage, with their objects and bytes.",
      standalone: true,
      options: { data, json: jsonLines },
    },
    "module put": {
      summary: "Register a WebAssembly module that storage runs on objects, and print its hash.",
      standalone: true,
      arguments: ["name", "file"],
      options: { data },
      examples: [
        ["platform module put csv2json csv2json.wasm", "then POST …?transform&module=csv2json"],
      ],
    },
    "job list": {
      summary: "List the batch jobs of storage, the newest first.",
      standalone: true,
      options: { data, json: jsonLines },
    },
    "job show": {
      summary: "Print a batch job with its first failures.",
      standalone: true,
      arguments: ["id"],
      options: { data },
    },
    "job cancel": {
      summary: "Cancel a batch job. What it has done stays.",
      standalone: true,
      arguments: ["id"],
      options: { data },
    },
    "remote list": {
      summary: "List the other S3 services that storage knows, with their state.",
      standalone: true,
      options: { data, json: jsonLines },
    },
    "remote check": {
      summary: "Try a bucket of a remote with an object that is deleted again; exit 1 if it fails.",
      standalone: true,
      arguments: ["name", "bucket?"],
      options: { data },
      examples: [
        ["platform remote check second letters", "the bucket letters of the remote second"],
      ],
    },
    "federation list": {
      summary: "List the names of buckets that are those of remotes.",
      standalone: true,
      options: { data, json: jsonLines },
    },
    "replication show": {
      summary:
        "Print what a bucket's replication rules have sent, what waits, and what has failed.",
      standalone: true,
      arguments: ["bucket"],
      options: { data, json: jsonLines },
    },
    "tier sweep": {
      summary: "Move what is due of a bucket to its cold tier now, and print the counts.",
      standalone: true,
      arguments: ["bucket"],
      options: { data },
    },
    "encryption-key list": {
      summary:
        "List the named keys of storage, the key of SSE-S3 and the master key, with the objects under them.",
      standalone: true,
      options: { data, json: jsonLines },
    },
    "encryption-key create": {
      summary: "Create a key that objects can be encrypted with (aws:kms), and print its ARN.",
      standalone: true,
      arguments: ["name"],
      options: {
        data,
        source: key(z.enum(["local", "secret_service"]).default("local"), {
          description: "Storage makes the key, or the secret service has it under this name.",
          env: [],
        }),
        description: key(z.string().max(1_000).default(""), {
          description: "A text for people.",
          env: [],
        }),
      },
    },
    "encryption-key rotate": {
      summary: "Replace a key of storage by a new version; objects are not written again.",
      standalone: true,
      arguments: ["name"],
      options: { data },
      examples: [
        ["platform encryption-key rotate letters", "a named key"],
        ["platform encryption-key rotate sse-s3", "the key of SSE-S3; master is the master key"],
      ],
    },
    "encryption-key enable": {
      summary: "Enable a key of storage, which also ends its pending deletion.",
      standalone: true,
      arguments: ["name"],
      options: { data },
    },
    "encryption-key disable": {
      summary: "Disable a key of storage: objects under it cannot be read until it is enabled.",
      standalone: true,
      arguments: ["name"],
      options: { data },
    },
    "encryption-key delete": {
      summary: "Plan the deletion of a key of storage, which waits until no object needs it.",
      standalone: true,
      arguments: ["name"],
      options: {
        data,
        days: key(z.int().min(7).max(30).default(30), {
          description: "Days until then, 7 to 30.",
          env: [],
        }),
      },
    },
    "encryption-key rewrap": {
      summary:
        "Wrap the keys of objects with the newest versions now, and print the state of the jobs of rotation.",
      standalone: true,
      options: {
        data,
        heads: key(z.boolean().default(false), {
          description:
            "Write the heads of records again that still have a former version, so that it can go.",
          env: [],
        }),
      },
    },
    "app add": {
      summary:
        "Create an OAuth client, a role, a storage key and topic rules for an application, and print its environment file.",
      standalone: true,
      arguments: ["name"],
      options: { data, ...APP_KEYS },
      examples: [
        [
          "platform app add notes --bucket notes --topic 'notes.#' --out notes.env",
          "credentials for one bucket and the topics notes and notes.…; they are shown only once",
        ],
        [
          "platform app add shop --redirect http://localhost:3000/callback",
          "sign-in of users, who return to this URL",
        ],
      ],
    },
    "app allow": {
      summary:
        "Let an application act with its own role, and others, of the users who sign in to it.",
      standalone: true,
      arguments: ["name"],
      options: { data, ...ALLOW_KEYS },
      examples: [
        ["platform app allow notes", "with the role app-notes of its users"],
        ["platform app allow notes --role editor", "with the role editor as well"],
      ],
    },
    "app remove": {
      summary: "Remove an application's client, role, key and topic rules. Its data is kept.",
      standalone: true,
      arguments: ["name"],
      options: { data },
    },
    "app list": {
      summary: "List the applications.",
      standalone: true,
      options: { data, json: jsonLines },
    },
    ...PROJECT_COMMANDS,
    ...CREDENTIAL_COMMANDS,
    share: {
      summary: "Give a local service a public address, through the tunnel of `platform up`.",
      standalone: true,
      arguments: ["target"],
      options: { data, json, ...SHARE_KEYS },
      examples: [["platform share 3000 --subdomain demo", "local port 3000 at a public address"]],
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
      examples: [["platform backup /backup/2026-11-22", "the folder must be new or empty"]],
    },
    restore: {
      summary: "Verify a backup, and restore it to a data directory that is missing or empty.",
      standalone: true,
      arguments: ["folder"],
      options: { data, ...createRestoreKeys() },
      examples: [
        ["platform restore /backup/2026-11-22 --dry-run", "verify the backup, write nothing"],
        [
          "platform restore /backup/2026-11-22 --data /srv/restored",
          "then start it: platform up --data /srv/restored",
        ],
      ],
    },
    init: {
      summary:
        "Create a project: a service and its tests. In a cloned project: install the platform.",
      synonyms: ["new", "create"],
      standalone: true,
      arguments: ["name"],
      options: {
        template: key(z.enum(["api", "web", "worker"]).default("api"), {
          description:
            "Kind of service: routes over a database, a page with sign-in, or messages and schedules.",
          env: [],
        }),
        language: key(z.boolean().default(false), {
          description: "Write the service in the service language instead of plain TypeScript.",
          env: [],
        }),
      },
    },
    convert: {
      summary: "Print a service file of the service language as plain TypeScript.",
      standalone: true,
      arguments: ["file"],
      options: {
        to: key(z.enum(["plain"]), {
          description: "Writing of the result.",
          env: [],
        }),
        out: key(z.string().optional(), {
          description: "New file in the same folder to write instead of printing.",
          env: [],
          defaultText: "standard output",
        }),
        write: key(z.boolean().default(false), {
          description: "Replace the file.",
          env: [],
        }),
      },
      examples: [
        [
          "platform convert main.service.ts --to plain --write",
          "declarations become calls of @platform/service; databases keep their names and data",
        ],
      ],
    },
    "project update": {
      summary:
        "Put the package of this installation into the project in the working directory, in place of its own.",
      standalone: true,
      examples: [
        [
          "/opt/platform/bin/platform project update",
          "replaces vendor/platform-VERSION.tgz, its line in package.json, and its hash in package-lock.json",
        ],
      ],
    },
    run: {
      summary: "Run a service file (default main.service.ts).",
      synonyms: ["dev", "watch"],
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
      summary:
        "Find errors without running: declarations, statements and types of a service file; default: all files of the project.",
      standalone: true,
      arguments: ["file?"],
      options: { json },
    },
    lsp: {
      summary: "Serve an editor: the Language Server Protocol over standard input and output.",
      standalone: true,
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
      summary:
        "Build one self-contained executable of a service (default main.service.ts), or files for an image with Node.",
      standalone: true,
      arguments: ["file?"],
      options: {
        target: key(z.enum(["executable", "container"]).default("executable"), {
          description:
            "An executable that contains Node, or a folder with a script and a Dockerfile, whose layers of Node services share.",
          env: [],
        }),
        out: key(z.string().min(1).optional(), {
          description: "Path of the executable or of the folder.",
          env: [],
          short: "o",
          placeholder: "FILE",
          defaultText: "dist/NAME, or dist/container",
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
