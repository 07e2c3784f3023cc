// Configuration from file, environment and flags: precedence and error messages.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import {
  ConfigError,
  addressKey,
  createServiceKeys,
  createTlsKeys,
  defineConfig,
  formatReference,
  key,
  loadConfig,
} from "@platform/kernel/config";

const definition = defineConfig({
  service: "gate",
  program: "platform-gate",
  version: "1.0.0",
  summary: "Routes traffic.",
  keys: {
    addr: addressKey(":8080", {
      description: "Listens here.",
      env: ["PLATFORM_GATE_ADDR", "PORT"],
    }),
    auth_token: key(z.string().min(8).optional(), { description: "The operator's token." }),
    session_idle_ms: key(z.int().default(1_000), { description: "Idle timeout.", unit: "ms" }),
    workers: key(z.union([z.literal("auto"), z.int().min(1).max(64)]).default("auto"), {
      description: "Threads.",
      defaultText: "one per core",
    }),
    proxies: key(z.array(z.string()).max(3).default([]), { description: "Trusted proxies." }),
    dev: key(z.boolean().default(false), { description: "Development." }),
    routes: key(
      z
        .array(
          z.strictObject({
            prefix: z.string().describe("Path prefix."),
            max_body_size: z.int().min(0).default(10),
            auth: z.strictObject({ token: z.string().min(3) }).optional(),
            require_api_key: z.boolean().optional(),
          }),
        )
        .default([]),
      { description: "Routes.", env: [], flag: false },
    ),
    ...createServiceKeys("gate"),
  },
  file: { flag: "config", env: ["PLATFORM_GATE_CONFIG"], default: "config.json" },
  commands: {
    validate: { summary: "Checks." },
    "overlay show": { summary: "Shows." },
    replay: {
      summary: "Replays.",
      synonyms: ["again"],
      examples: [["platform-gate replay log", "the platform-gate with platform-gate validate"]],
      standalone: true,
      arguments: ["file", "more..."],
      options: {
        shadow: key(z.boolean().default(false), {
          description: "Compare.",
          env: [],
          short: "s",
          otherFlags: ["compare"],
        }),
      },
    },
  },
});

interface Input {
  argv?: string[];
  env?: Record<string, string>;
  files?: Record<string, string>;
}

function load({ argv = [], env = {}, files = {} }: Input) {
  const readFile = (path: string): string => {
    if (Object.hasOwn(files, path)) return files[path]!;
    throw Object.assign(new Error("open"), { code: "ENOENT" });
  };
  return loadConfig(definition, { argv, env, readFile });
}

function run(input: Input) {
  const loaded = load(input);
  assert.ok(loaded.kind === "run" && loaded.command === "");
  return loaded;
}

function explain(input: Input): string {
  try {
    load(input);
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.message;
  }
  return assert.fail("loaded");
}

test("an empty secret in the file is none, like an empty variable", () => {
  const files = { "config.json": JSON.stringify({ auth_token: "", metrics_token: "" }) };
  const { config } = run({ files });
  assert.equal(config.auth_token, undefined);
  assert.equal(config.metrics_token, undefined);
});

test("without input the defaults apply, and a missing default file is not an error", () => {
  const { config, file, sources } = run({});
  assert.deepEqual(config.addr, { host: undefined, port: 8080 });
  assert.equal(config.workers, "auto");
  assert.deepEqual(file, { path: "config.json", explicit: false, document: undefined });
  assert.equal(sources.get("addr"), "default");
});

test("the environment overrides the file, and a flag overrides both", () => {
  const files = { "config.json": '{"workers": 1, "dev": true, "proxies": ["a"]}' };
  const fromFile = run({ files });
  assert.equal(fromFile.config.workers, 1);
  assert.equal(fromFile.sources.get("workers"), "config.json:1:13");
  const env = {
    PLATFORM_GATE_WORKERS: "2",
    PLATFORM_GATE_PROXIES: "b, c",
    PLATFORM_GATE_DEV: "off",
  };
  const fromEnv = run({ files, env });
  assert.deepEqual(
    [fromEnv.config.workers, fromEnv.config.dev, fromEnv.config.proxies],
    [2, false, ["b", "c"]],
  );
  const fromFlag = run({
    files,
    env,
    argv: ["--workers=3", "--dev", "--proxies", "d", "--proxies", "e"],
  });
  assert.deepEqual(
    [fromFlag.config.workers, fromFlag.config.dev, fromFlag.config.proxies],
    [3, true, ["d", "e"]],
  );
  assert.equal(fromFlag.sources.get("workers"), "--workers");
});

test("the first environment variable that is set and not empty is used", () => {
  assert.equal(run({ env: { PORT: "3000" } }).config.addr.port, 3000);
  assert.equal(run({ env: { PORT: "3000", PLATFORM_GATE_ADDR: ":4000" } }).config.addr.port, 4000);
  assert.equal(run({ env: { PORT: "3000", PLATFORM_GATE_ADDR: "" } }).config.addr.port, 3000);
});

test("a secret is read from the file in its _FILE variable", () => {
  const files = { "/run/secrets/token": "abcdefgh\n" };
  const env = { PLATFORM_GATE_AUTH_TOKEN_FILE: "/run/secrets/token" };
  assert.equal(run({ env, files }).config.auth_token, "abcdefgh");
  assert.match(explain({ env }), /PLATFORM_GATE_AUTH_TOKEN_FILE: .*cannot be read: no such file/);
});

const wrong: [name: string, input: Input, message: string | RegExp][] = [
  [
    "a value in the file is named with path, position, value and what is allowed",
    { files: { "config.json": '{"routes": [\n {"prefix": "/", "max_body_size": -5}]}' } },
    "config.json:2:35: routes[0].max_body_size: -5 is not allowed: expected an integer of at least 0",
  ],
  [
    "an unknown key is named with the nearest one there is",
    { files: { "config.json": '{\n "routs": []}' } },
    'config.json:2:2: routs: unknown key; did you mean "routes"?',
  ],
  [
    "an unknown key of a nested object, too",
    { files: { "config.json": '{"routes": [{"prefix": "/", "max_body_sise": 1}]}' } },
    'config.json:1:29: routes[0].max_body_sise: unknown key; did you mean "max_body_size"?',
  ],
  [
    "a missing key says where it is missing",
    { files: { "config.json": '{"routes": [{}]}' } },
    "config.json:1:13: routes[0].prefix: is required: a string",
  ],
  [
    "an environment value is named by its variable",
    { env: { PLATFORM_GATE_WORKERS: "99" } },
    'environment PLATFORM_GATE_WORKERS: workers: 99 is not allowed: expected "auto", or an integer from 1 to 64',
  ],
  [
    "a flag's value by the flag",
    { argv: ["--addr", "::1:80"] },
    /^--addr: addr: "::1:80" is not allowed: expected an address such as/,
  ],
  [
    "a secret's value is hidden",
    { env: { PLATFORM_GATE_AUTH_TOKEN: "short" } },
    "environment PLATFORM_GATE_AUTH_TOKEN: auth_token: [redacted] is not allowed: expected a string of at least 8 characters",
  ],
  [
    "so is a secret deep in the file",
    { files: { "config.json": '{"routes": [{"prefix": "/", "auth": {"token": "zz"}}]}' } },
    /routes\[0\]\.auth\.token: \[redacted\] is not allowed/,
  ],
  [
    "a value that cannot be a secret is shown, whatever the name of its key",
    { files: { "config.json": '{"routes": [{"prefix": "/", "require_api_key": "maybe"}]}' } },
    /routes\[0\]\.require_api_key: "maybe" is not allowed: expected true \| false/,
  ],
  [
    "a key that was pasted where a switch belongs is hidden",
    {
      files: { "config.json": '{"routes": [{"prefix": "/", "require_api_key": "sk_live_4711"}]}' },
    },
    /routes\[0\]\.require_api_key: \[redacted\] is not allowed/,
  ],
  [
    "a file that is no JSON is named with its position",
    { files: { "config.json": '{\n"a" 1}' } },
    'config.json:2:5: expected ":" after the key "a"',
  ],
  [
    "a file that is no object is refused",
    { files: { "config.json": "[]" } },
    "config.json:1:1: expected an object",
  ],
  [
    "an explicit file that is missing is refused",
    { argv: ["--config", "x.json"] },
    "x.json: cannot be read: no such file",
  ],
  [
    "an unknown flag",
    { argv: ["--wrokers", "1"] },
    '--wrokers: unknown flag; did you mean --workers?\nsee "platform-gate --help"',
  ],
  ["a flag without its value", { argv: ["--addr"] }, /^--addr: requires a value\n/],
  ["a duplicate flag", { argv: ["--workers", "1", "--workers", "2"] }, "--workers: duplicate flag"],
  [
    "an unknown command",
    { argv: ["validte"] },
    'validte: unknown command; did you mean "validate"?\nsee "platform-gate --help"',
  ],
  [
    "a command after flags",
    { argv: ["--dev", "validate"] },
    /^validate: a command comes before its flags\n/,
  ],
  [
    "a missing argument, with the usage",
    { argv: ["replay"] },
    "replay: needs <file>\nusage: platform-gate replay <file> [more...] [flags]; --help lists the flags",
  ],
  [
    "a word that other programs have for a command",
    { argv: ["again"] },
    /^again: unknown command; did you mean "replay"\?/,
  ],
  [
    "a group without its command",
    { argv: ["overlay"] },
    /^overlay: expected one of: overlay show\n/,
  ],
  ["an argument too many", { argv: ["validate", "x"] }, /^validate: unexpected argument "x"\n/],
  [
    "a flag of the service on a standalone command",
    { argv: ["replay", "f", "--addr", ":1"] },
    /--addr: unknown flag/,
  ],
];
for (const [name, input, message] of wrong) {
  test(`rejected: ${name}`, () => {
    const text = explain(input);
    if (typeof message === "string") assert.equal(text, message);
    else assert.match(text, message);
  });
}

test("one message lists several problems, up to a limit", () => {
  const routes = Array.from({ length: 30 }, () => ({ prefix: 1 }));
  const lines = explain({ files: { "config.json": JSON.stringify({ routes }) } }).split("\n");
  assert.equal(lines.length, 11);
  assert.equal(lines.at(-1), "… and 20 more");
});

test("commands of one and two words have their own options and arguments", () => {
  const replay = load({ argv: ["replay", "--shadow", "a", "--", "--b"] });
  assert.ok(replay.kind === "run" && replay.command === "replay");
  assert.deepEqual(
    [replay.options.shadow, replay.positionals, replay.config],
    [true, ["a", "--b"], undefined],
  );
  const show = load({ argv: ["overlay", "show"] });
  assert.ok(show.kind === "run" && show.command === "overlay show");
  assert.equal(show.config.workers, "auto");
});

test("help and version take precedence over the rest of the line", () => {
  assert.deepEqual(load({ argv: ["--wrong", "--version"] }), {
    kind: "print",
    text: "platform-gate 1.0.0\n",
    exitCode: 0,
  });
  const help = load({ argv: ["replay", "--help"] });
  assert.ok(help.kind === "print");
  assert.match(help.text, /Usage: platform-gate replay <file> \[more\.\.\.\] \[flags\]/);
  assert.match(help.text, /--shadow +Compare\./);
  assert.doesNotMatch(help.text, /--addr/);
});

test("a flag has further names, which help does not list", () => {
  for (const flag of ["--shadow", "-s", "--compare"]) {
    const loaded = load({ argv: ["replay", "f", flag] });
    assert.ok(loaded.kind === "run" && loaded.command === "replay");
    assert.equal(loaded.options.shadow, true, flag);
  }
  const help = load({ argv: ["replay", "--help"] });
  assert.ok(help.kind === "print");
  assert.doesNotMatch(help.text, /--compare/);
});

test("help and version are also words", () => {
  assert.deepEqual(load({ argv: ["help", "replay"] }), load({ argv: ["replay", "--help"] }));
  assert.deepEqual(load({ argv: ["help"] }), load({ argv: ["--help"] }));
  assert.deepEqual(load({ argv: ["version"] }), load({ argv: ["--version"] }));
});

test("help shows commands as they can be typed, on lines that end at words", () => {
  const sources = {
    argv: ["replay", "--help"],
    env: {},
    nameProgram: (name: string) => `npx ${name}`,
  };
  const help = loadConfig(definition, sources);
  assert.ok(help.kind === "print");
  assert.match(help.text, /^Usage: npx platform-gate replay <file>/m);
  assert.match(
    help.text,
    /^ {2}npx platform-gate replay log\n {6}the platform-gate with npx platform-gate validate$/m,
  );
  const all = load({ argv: ["--help"] });
  assert.ok(all.kind === "print");
  const lines = all.text.split("\n");
  assert.ok(
    lines.every((line) => line.length <= 110),
    "no line is longer",
  );
  assert.match(all.text, /Bearer token for reading \/metrics [^]*programs on this\n {32}\w+/);
});

test("an idle timeout of sessions is not taken for a session id: it has a flag and is shown", () => {
  const help = load({ argv: ["--help"] });
  assert.ok(help.kind === "print");
  assert.match(help.text, /--session-idle-ms/);
  const row = formatReference(definition).match(/^\| `session_idle_ms`.*$/m)?.[0];
  assert.doesNotMatch(row!, /Secret/);
});

test("help lists all flags and environment variables, and no flag for a secret", () => {
  const help = load({ argv: ["--help"] });
  assert.ok(help.kind === "print");
  for (const text of [
    "--addr",
    "PORT",
    "PLATFORM_OTLP_ENDPOINT",
    "validate",
    "overlay show",
    "PLATFORM_GATE_AUTH_TOKEN",
  ]) {
    assert.ok(help.text.includes(text), text);
  }
  assert.ok(!help.text.includes("--auth-token"));
});

test("a misspelled environment variable causes a warning, variables of orchestrators do not", () => {
  const env = {
    PLATFORM_GATE_WORKER: "1",
    PLATFORM_GATE_SERVICE_HOST: "x",
    PLATFORM_GATE_PORT_80_TCP: "x",
  };
  assert.deepEqual(run({ env }).warnings, [
    `the environment variable PLATFORM_GATE_WORKER is not used by platform-gate; did you mean "PLATFORM_GATE_WORKERS"?`,
  ]);
});

test("no source can modify a prototype", () => {
  explain({ files: { "config.json": '{"__proto__": {"dev": true}}' } });
  explain({ argv: ["--__proto__", "x"] });
  explain({ argv: ["constructor"] });
  assert.equal(({} as Record<string, unknown>)["dev"], undefined);
});

test("the reference has a row for every key and every member", () => {
  const page = formatReference(definition);
  for (const name of Object.keys(definition.keys))
    assert.ok(page.includes(`| \`${name}\` |`), name);
  assert.ok(page.includes("| `[].auth.token` |"));
  assert.ok(page.includes("| `[].prefix` | a string | required | Path prefix. |"));
  assert.ok(page.includes("`one per core`"));
});

test("a key has other names in the file, the environment and flags, of which messages show the one in use", () => {
  const named = defineConfig({
    service: "pulse",
    program: "platform-pulse",
    version: "1.0.0",
    summary: "Messages.",
    keys: createTlsKeys("pulse", "For all listeners."),
    file: { flag: "config", env: [], default: "config.json" },
  });
  const load = (text: string, env = {}, argv: string[] = []) => {
    const loaded = loadConfig(named, { argv, env, readFile: () => text });
    assert.ok(loaded.kind === "run");
    return loaded.config;
  };
  assert.deepEqual(load('{"tls_cert_file": "a", "tls_key": "b"}'), { tls_cert: "a", tls_key: "b" });
  assert.equal(load('{"tls_cert": ""}').tls_cert, undefined);
  const env = { PLATFORM_PULSE_TLS_KEY_FILE: "c", PLATFORM_PULSE_TLS_CERT: "d" };
  assert.deepEqual(load('{"tls_cert_file": "a"}', env), { tls_cert: "d", tls_key: "c" });
  assert.equal(load("{}", env, ["--tls-key-file", "e"]).tls_key, "e");
  assert.throws(
    () => load('{\n  "tls_cert_file": 7\n}'),
    /^ConfigError: config\.json:2:20: tls_cert: 7 is not allowed/,
  );
  assert.throws(
    () => load('{\n  "tls_cert_file": "a",\n  "tls_cert": "b"\n}'),
    /^ConfigError: config\.json:3:15: tls_cert: is the same setting as tls_cert_file; remove one/,
  );
  assert.doesNotMatch(formatReference(named), /`tls_cert_file`/);
});
