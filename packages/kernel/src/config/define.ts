// Declaration of a service's configuration: one table of keys, from which everything else is derived.
import { z } from "zod";
import { isSecretName, LOG_LEVELS } from "../log/index.ts";
import { ADDRESS_FORMS, addressSchema } from "./address.ts";

/** These tokens are generated, so a short one is a mistake. */
const OPERATION_TOKEN_LENGTH_MIN = 16;

/** Options of a key besides its schema. */
export interface KeyOptions {
  /** One sentence: meaning and consequences. */
  description: string;
  /** `ms`, `bytes`, `requests/min` … */
  unit?: string;
  /** Environment variables, of which the first that is set is used; default `PLATFORM_<SERVICE>_<KEY>`. */
  env?: readonly string[];
  /** Flag without its dashes; `false` disables it. Default: the key with dashes; secrets have no flag. */
  flag?: string | false;
  /** Letter of a short form of the flag: `o` for `-o`. */
  short?: string;
  /** Further names of the flag without dashes, which are accepted but not listed. */
  otherFlags?: readonly string[];
  /** Further names in the configuration file, which are accepted but not listed. */
  otherNames?: readonly string[];
  /** Stands for the value in `--help`: `ADDR`. Default: derived from the schema. */
  placeholder?: string;
  /** The value is never shown. Default: derived from the key's name. */
  secret?: boolean;
  /** Default as shown in the reference if the schema has none, such as "one per core". */
  defaultText?: string;
  /** Allowed values as shown in messages and the reference; default: derived from the schema. */
  allowed?: string;
}

export interface ConfigKey<Schema extends z.ZodType = z.ZodType> extends KeyOptions {
  schema: Schema;
}

/** Keys by name (snake_case), as in the configuration file; `smtp.host` is the member `host` of the group `smtp`. */
export type ConfigKeys = Record<string, ConfigKey>;

/** Type of the loaded configuration. */
export type ConfigOf<Keys extends ConfigKeys> = {
  [Name in keyof Keys]: z.output<Keys[Name]["schema"]>;
};

/** A subcommand. */
export interface CommandDefinition<Keys extends ConfigKeys = ConfigKeys> {
  summary: string;
  /** Keys of this command, set by flags and environment but not in the file. */
  options?: Keys;
  /** Names of its positional arguments; `name?` is optional, `name...` accepts the remaining ones. */
  arguments?: readonly string[];
  /** The command does not use the program's keys and configuration file. */
  standalone?: boolean;
  /** Words that users type in its place, for which it is suggested. */
  synonyms?: readonly string[];
  /** Commands to type, with their meaning, for `--help`. */
  examples?: readonly (readonly [command: string, meaning: string])[];
}

/** Commands by name; a name of two words (`overlay show`) is a subcommand. */
export type Commands = Record<string, CommandDefinition>;

/** Location of the configuration file. */
interface FileDefinition {
  /** Flag for its path, such as `config`. */
  flag: string;
  env: readonly string[];
  /** Default path; this file may be missing. An explicitly named file must exist. */
  default?: string;
}

/** Configuration of a program. */
export interface ConfigDefinition<
  Keys extends ConfigKeys = ConfigKeys,
  Subcommands extends Commands = Commands,
> {
  /** For example `gate`; part of environment variables and log lines. */
  service: string;
  /** `platform-gate` */
  program: string;
  version: string;
  /** One line for `--help`. */
  summary: string;
  keys: Keys;
  commands?: Subcommands;
  file?: FileDefinition;
  /** False if the program requires a command; default true. */
  runs?: boolean;
}

/** Declares a key. */
export function key<Schema extends z.ZodType>(
  schema: Schema,
  options: KeyOptions,
): ConfigKey<Schema> {
  return { schema, ...options };
}

/** Declares a listening address; the value is a ListenAddress. */
export function addressKey(defaultAddress: string, options: KeyOptions) {
  return key(addressSchema().prefault(defaultAddress), {
    allowed: `an address: ${ADDRESS_FORMS}`,
    placeholder: "ADDR",
    ...options,
  });
}

/** Declares a program's configuration. Returns its argument with exact types. */
export function defineConfig<
  const Keys extends ConfigKeys,
  const Subcommands extends Commands = Record<never, never>,
>(definition: ConfigDefinition<Keys, Subcommands>): ConfigDefinition<Keys, Subcommands> {
  return definition;
}

/** Schema of a configuration file with these keys; unknown keys are rejected. */
export function buildSchema<Keys extends ConfigKeys>(keys: Keys): z.ZodType<ConfigOf<Keys>> {
  const shape = Object.fromEntries(Object.entries(keys).map(([name, item]) => [name, item.schema]));
  return z.strictObject(shape) as unknown as z.ZodType<ConfigOf<Keys>>;
}

/** Keys of every service: logs, traces, shutdown. */
export function createServiceKeys(service: string) {
  const prefix = `PLATFORM_${service.toUpperCase()}`;
  return {
    log_level: key(z.enum(LOG_LEVELS).default("info"), {
      description: "Minimum severity of logged events.",
      env: [`${prefix}_LOG_LEVEL`, "PLATFORM_LOG_LEVEL"],
    }),
    log_format: key(z.enum(["auto", "json", "pretty"]).default("auto"), {
      description: "Log format; auto means readable lines on a terminal and JSON otherwise.",
      env: [`${prefix}_LOG_FORMAT`, "PLATFORM_LOG_FORMAT"],
    }),
    otlp_endpoint: key(z.url({ protocol: /^https?$/ }).optional(), {
      description: "OTLP/HTTP collector that receives spans; without it spans are not sent.",
      env: [`${prefix}_OTEL_ENDPOINT`, "PLATFORM_OTLP_ENDPOINT"],
    }),
    metrics_token: key(z.string().min(16).max(1024).optional(), {
      description:
        "Bearer token for reading /metrics from other machines; programs on this machine need none.",
      env: [`${prefix}_METRICS_TOKEN`, "PLATFORM_METRICS_TOKEN"],
      secret: true,
    }),
    drain_timeout_ms: key(z.int().min(0).max(3_600_000).default(30_000), {
      description: "Graceful shutdown timeout.",
      unit: "ms",
    }),
  };
}

/** Keys of the static tokens of operators' tools: backups and scraping. */
export function createOperationKeys(service: string) {
  const prefix = `PLATFORM_${service.toUpperCase()}`;
  const token = (name: string, description: string) =>
    key(z.string().min(OPERATION_TOKEN_LENGTH_MIN).max(4096).optional(), {
      description,
      env: [`${prefix}_${name}`, `PLATFORM_${name}`],
      secret: true,
    });
  return {
    backup_token: token(
      "BACKUP_TOKEN",
      "Bearer token that may fetch backups, which contain all data and private keys; without it backups of the running service are disabled.",
    ),
  };
}

/** Options of the command `restore`. */
export function createRestoreKeys() {
  return {
    passphrase_file: key(z.string().min(1).max(4096).optional(), {
      description: "File with the passphrase of an encrypted backup.",
      secret: false,
      flag: "passphrase-file",
      env: [],
    }),
    dry_run: key(z.boolean().default(false), {
      description: "Only verify the backup.",
      env: [],
    }),
  };
}

/** The command `restore` of services whose state is one database. */
export function createRestoreCommand() {
  return {
    summary:
      "Verify a backup and restore it to the configured data folder, which must be missing or empty; on PostgreSQL also to the configured database, which must not have the service's tables. The service must be stopped.",
    arguments: ["folder"],
    options: createRestoreKeys(),
  };
}

/** Form of `database_url`. */
export const DATABASE_URL = /^(?:postgres(?:ql)?:\/\/|sqlite:).+/;

/** Key that lets the SQLite databases of a program start without what they have lost. */
export function createLossKey() {
  return key(z.boolean().default(false), {
    description:
      "For one start: SQLite databases that are missing, older than they were, or changed by another program start as they are. Restore a backup instead if there is one.",
    env: ["PLATFORM_ACCEPT_LOSS"],
  });
}

/** Keys of the database of a service that keeps it in SQLite or PostgreSQL. */
export function createDatabaseKeys(service: string) {
  return {
    database_url: key(z.string().regex(DATABASE_URL).optional(), {
      description: "postgres://… or sqlite:path. A SQLite file belongs to one process.",
      env: [`PLATFORM_${service.toUpperCase()}_DATABASE_URL`, "DATABASE_URL"],
      secret: true,
      defaultText: `sqlite:${service}.db in the data folder`,
    }),
    accept_loss: createLossKey(),
  };
}

/**
 * Keys of token verification, read by `createConfiguredVerifier` of the identity module. `use` is a clause for the
 * description: the purpose of the tokens.
 */
export function createTokenKeys(service: string, use: string) {
  const listNames = (name: string) => [
    `PLATFORM_${service.toUpperCase()}_${name}`,
    `PLATFORM_${name}`,
  ];
  return {
    jwt_secret: key(z.string().min(1).optional(), {
      description: `Key of HS256 tokens; ${use}.`,
      env: listNames("JWT_SECRET"),
      secret: true,
    }),
    jwks_url: key(z.url({ protocol: /^https?$/ }).optional(), {
      description:
        "URL of the key set (JWKS) of tokens signed with RSA, ECDSA or Ed25519; requires jwt_issuer and jwt_audience.",
      env: listNames("JWKS_URL"),
    }),
    jwt_issuer: key(z.string().min(1).optional(), {
      description: "Required value of `iss`.",
      env: listNames("JWT_ISSUER"),
    }),
    jwt_audience: key(z.string().min(1).optional(), {
      description: "Required value in `aud`.",
      env: listNames("JWT_AUDIENCE"),
    }),
    revocations_url: key(z.url({ protocol: /^https?$/ }).optional(), {
      description:
        "URL of the issuer's revocation feed, read every second: revoked tokens are rejected, and what they opened ends. Requires revocations_token and jwt_issuer.",
      env: listNames("REVOCATIONS_URL"),
    }),
    revocations_token: key(z.string().min(1).optional(), {
      description: "Bearer token for the revocation feed.",
      env: listNames("REVOCATIONS_TOKEN"),
      secret: true,
    }),
  };
}

/**
 * Keys of the certificate of a service's listeners, which a `CertificateWatch` of the tls module follows. `use` is a
 * sentence about the listeners. `shared`: variables without the service's prefix.
 */
export function createTlsKeys(
  service: string,
  use: string,
  shared: { cert: readonly string[]; key: readonly string[] } = { cert: [], key: [] },
) {
  const prefix = `PLATFORM_${service.toUpperCase()}`;
  const path = () =>
    z.preprocess(
      (value) => (value === "" ? undefined : value),
      z.string().min(1).max(4096).optional(),
    );
  return {
    tls_cert: key(path(), {
      description: `File with the certificate chain (PEM). ${use} A changed file is loaded within two seconds.`,
      env: [`${prefix}_TLS_CERT`, `${prefix}_TLS_CERT_FILE`, ...shared.cert],
      otherNames: ["tls_cert_file"],
      otherFlags: ["tls-cert-file"],
      allowed: "a path",
    }),
    tls_key: key(path(), {
      description: "File with the unencrypted private key of tls_cert (PEM).",
      env: [`${prefix}_TLS_KEY`, `${prefix}_TLS_KEY_FILE`, ...shared.key],
      otherNames: ["tls_key_file"],
      otherFlags: ["tls-key-file"],
      allowed: "a path",
      secret: false,
      flag: "tls-key",
    }),
  };
}

/** Returns the environment variables of a key, in order of precedence. */
export function listEnvNames(service: string, name: string, item: ConfigKey): readonly string[] {
  return item.env ?? [`PLATFORM_${service}_${name}`.toUpperCase().replaceAll(/[.-]/g, "_")];
}

/** Returns the flag of a key, or undefined. */
export function getFlagName(name: string, item: ConfigKey): string | undefined {
  if (item.flag === false) return undefined;
  if (item.flag === undefined && isSecretKey(name, item)) return undefined;
  return item.flag ?? name.replaceAll(/[._]/g, "-");
}

/** True if the value of a key is never shown. */
export function isSecretKey(name: string, item: ConfigKey): boolean {
  return item.secret ?? isSecretName(name);
}
