// Rights at every command of the wire protocols: each is sent by callers with and without what its declaration requires.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Requirement } from "../../src/access/requirement.ts";
import type { KafkaBroker } from "../../src/kafka/broker.ts";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import { readResponse } from "../../src/kafka/protocol/frame.ts";
import {
  listOffsets,
  metadata,
  offsetCommit,
  offsetFetch,
  saslAuthenticate,
  saslHandshake,
} from "../../src/kafka/protocol/messages/index.ts";
import { createKafkaRoutes } from "../../src/kafka/routes.ts";
import type { CredentialStore } from "../../src/kafka/sasl/mechanism.ts";
import { PACKET_REQUIREMENTS } from "../../src/mqtt/server/requirements.ts";
import { COMMANDS, type Command } from "../../src/stomp/commands.ts";
import { RIGHTS, type Right } from "../../src/topic/rights.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { makeToken, startFeed } from "../fixture/tokens.ts";
import { KafkaClient } from "../kafka/client.ts";
import { createRequests, type KafkaRequest } from "../kafka/every-request.ts";
import { createConnect, RawClient, type Received } from "../mqtt/client.ts";
import { StompClient, type Answer } from "../stomp/client.ts";

const AUDIENCE = "platform";
const OPERATOR_TOKEN = "operator-token";
const SECRET = "for main only";
const TOPIC = "kept";
const LOST_TOPIC = "lost";
const GROUP = "g";
const LOST_GROUP = "h";
const OFFSET = 5;
const ALL_SCOPES = "pulse:publish pulse:subscribe pulse:manage";
const TIMEOUT_MS = 60_000;

/** Errors of requests whose topics the client may not use; some are as for a missing topic, which hides the topic. */
const KAFKA_REFUSALS: ReadonlySet<number> = new Set([
  ERROR_CODES.topicAuthorizationFailed,
  ERROR_CODES.groupAuthorizationFailed,
  ERROR_CODES.clusterAuthorizationFailed,
  ERROR_CODES.unknownTopicOrPartition,
  ERROR_CODES.unknownTopicId,
]);
const NOT_AUTHORIZED = 0x87;

/** A caller with its password, and what it may do. */
interface Caller {
  readonly name: string;
  /** Undefined: it sends no credentials. */
  readonly password: string | undefined;
  readonly user?: string;
  /** True if its credentials are accepted. */
  readonly signsIn: boolean;
  readonly tenant?: string;
  /** Rights for all topics of its tenant. */
  readonly rights?: readonly Right[];
  /** Rights for another topic, not for those of the requests. */
  readonly rightsNearby?: readonly Right[];
  readonly isOperator?: boolean;
}

/** `elsewhere`: permitted, but in another tenant, which has no such topics. */
type Verdict = "admitted" | "refused" | "elsewhere";

const stranger = (name: string, claims: Record<string, unknown>): Caller => ({
  name,
  password: makeToken({ aud: AUDIENCE, ...claims }),
  signsIn: false,
});

const user = (name: string, scope: string, more: Partial<Caller> = {}): Caller => ({
  name,
  password: makeToken({ aud: AUDIENCE, scope, tenant: more.tenant ?? "main" }),
  signsIn: true,
  tenant: "main",
  rights: RIGHTS.filter((right) => scope.includes(`pulse:${right}`)),
  ...more,
});

/** A user with the rights of roles: all for another topic, some for those of the requests. */
function withRoles(name: string, ...roles: ["neighbour", ...Right[]]): Caller {
  const [, ...rights] = roles;
  const password = makeToken({ aud: AUDIENCE, scope: "", roles });
  return { ...user(name, ""), password, rights, rightsNearby: RIGHTS };
}

const callers: Caller[] = [
  { name: "nobody", password: undefined, signsIn: false },
  stranger("user without roles", { scope: "", roles: [] }),
  stranger("application's token with openid, of an administrator", {
    scope: "openid",
    roles: ["admin"],
    client_id: "shop",
  }),
  stranger("token of another audience", { scope: ALL_SCOPES, aud: "https://orders.example/" }),
  stranger("expired token", { scope: ALL_SCOPES, exp: Math.floor(Date.now() / 1_000) - 600 }),
  stranger("revoked token", { scope: ALL_SCOPES, jti: "gone" }),
  stranger("token of an ended session", { scope: ALL_SCOPES, sid: "ended" }),
  user("application's token with its scopes", "openid pulse:publish pulse:subscribe"),
  ...RIGHTS.map((right) => user(`user who may only ${right}`, `pulse:${right}`)),
  user("user of another tenant", ALL_SCOPES, { tenant: "other" }),
  withRoles("user with a role for another topic", "neighbour"),
  withRoles("user with this role who may publish", "neighbour", "publish"),
  withRoles("user with this role who may subscribe", "neighbour", "subscribe"),
  user("administrator of messaging", "pulse:admin", { rights: RIGHTS }),
  {
    name: "operator for the tenant",
    user: "operator@main",
    password: OPERATOR_TOKEN,
    signsIn: true,
    tenant: "main",
    rights: RIGHTS,
  },
  {
    name: "operator",
    password: OPERATOR_TOKEN,
    signsIn: true,
    tenant: "",
    rights: RIGHTS,
    isOperator: true,
  },
];

/** The declared answer. `hasTopic`: the command names a topic of the tenant `main`. */
function expectVerdict(requires: Requirement, hasTopic: boolean, caller: Caller): Verdict {
  const { signsIn, tenant, rights = [], rightsNearby = [], isOperator = false } = caller;
  if (requires === "public") return "admitted";
  if (!signsIn) return "refused";
  if (requires === "caller") return "admitted";
  if (requires === "operator") return isOperator ? "admitted" : "refused";
  const sufficient = requires === "any" ? RIGHTS : [requires];
  const isCovered = sufficient.some((right) => rights.includes(right));
  if (isCovered) return hasTopic && tenant !== "main" ? "elsewhere" : "admitted";
  const isNearby = sufficient.some((right) => rightsNearby.includes(right));
  return isNearby && !hasTopic ? "admitted" : "refused";
}

/** A broker with topics, groups and rules, and a connection of its operator that observes them. */
interface Stage {
  pulse: PulseHere;
  operator: KafkaClient;
  topicId: string;
}

async function start(t: TestContext): Promise<Stage> {
  const feed = await startFeed(t);
  feed.revoke("ended", "sid");
  feed.revoke("gone", "jti");
  const pulse = await startPulseHere(t, {
    ...feed.env,
    PLATFORM_JWT_AUDIENCE: AUDIENCE,
    PLATFORM_PULSE_ANONYMOUS: "never",
  });
  await setRule(pulse, "neighbour", "theirs", RIGHTS);
  await setRule(pulse, "publish", "*", ["publish"]);
  await setRule(pulse, "subscribe", "*", ["subscribe"]);
  await createTopic(pulse, TOPIC);
  await createTopic(pulse, LOST_TOPIC);
  const operator = await KafkaClient.connect(pulse.kafkaPort);
  t.after(() => operator.socket.destroy());
  await operator.ask(saslHandshake, 1, { mechanism: "PLAIN" });
  const authBytes = Buffer.from(`\0operator@main\0${OPERATOR_TOKEN}`);
  assert.equal((await operator.ask(saslAuthenticate, 2, { authBytes })).errorCode, 0);
  await commit(operator, GROUP);
  await waitForRevocations(pulse);
  const { topics } = await operator.ask(metadata, 12, { topics: [{ name: TOPIC }] });
  return { pulse, operator, topicId: topics[0]!.topicId };
}

async function setRule(
  pulse: PulseHere,
  role: string,
  topics: string,
  allow: readonly Right[],
): Promise<void> {
  const { status } = await pulse.get(`/api/v1/access/roles/${role}`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ rules: [{ topics, allow }] }),
  });
  assert.equal(status, 200);
}

async function createTopic(pulse: PulseHere, topic: string): Promise<void> {
  const headers = { authorization: `Bearer ${makeToken({ aud: AUDIENCE, scope: ALL_SCOPES })}` };
  const { status } = await pulse.post("/api/v1/publish", { topic, payload: SECRET }, headers);
  assert.equal(status, 200);
}

async function commit(operator: KafkaClient, groupId: string): Promise<void> {
  const partition = { partitionIndex: 0, committedOffset: OFFSET, committedMetadata: "" };
  await operator.ask(offsetCommit, 7, {
    groupId,
    generationId: -1,
    memberId: "",
    topics: [{ name: TOPIC, partitions: [partition] }],
  });
}

/** The broker fetches revocations in the background. */
async function waitForRevocations(pulse: PulseHere): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  for (const { name, password } of callers) {
    if (!name.startsWith("revoked") && !name.includes("ended session")) continue;
    const headers = { authorization: `Bearer ${password}` };
    while ((await pulse.get("/api/v1/topics", { headers })).status !== 401) {
      assert.ok(performance.now() < deadline, `${name} is accepted`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Topics of the tenant, the end of one, and committed offsets. */
async function observe({ operator }: Stage): Promise<string> {
  const partitions = [{ partitionIndex: 0, timestamp: -1 }];
  const asked = [{ name: TOPIC, partitionIndexes: [0] }];
  return JSON.stringify([
    await operator.ask(metadata, 12, { topics: null }),
    await operator.ask(listOffsets, 6, { replicaId: -1, topics: [{ name: TOPIC, partitions }] }),
    await operator.ask(offsetFetch, 7, { groupId: GROUP, topics: asked }),
    await operator.ask(offsetFetch, 7, { groupId: LOST_GROUP, topics: asked }),
  ]);
}

/** Runs a command as a caller; returns the difference to its declaration, undefined if there is none. */
async function judge(
  stage: Stage,
  command: { name: string; requires: Requirement; hasTopic: boolean },
  caller: Caller,
  run: () => Promise<{ isAdmitted: boolean; answer: unknown }>,
): Promise<string | undefined> {
  const verdict = expectVerdict(command.requires, command.hasTopic, caller);
  const before = verdict === "admitted" ? undefined : await observe(stage);
  const { isAdmitted, answer } = await run();
  const shown = JSON.stringify(answer)?.slice(0, 300);
  const title = `${command.name} (${command.requires}) by ${caller.name}`;
  if (verdict !== "elsewhere" && isAdmitted !== (verdict === "admitted")) {
    return `${title} should be ${verdict}: ${shown}`;
  }
  if (before !== undefined && before !== (await observe(stage))) {
    return `${title} changed the tenant main: ${shown}`;
  }
  return undefined;
}

/** Signs in. */
async function authenticate(client: KafkaClient, caller: Caller): Promise<void> {
  if (caller.password === undefined) return;
  await client.ask(saslHandshake, 1, { mechanism: "PLAIN" });
  const authBytes = Buffer.from(`\0${caller.user ?? "x"}\0${caller.password}`);
  const { errorCode } = await client.ask(saslAuthenticate, 2, { authBytes });
  const wanted = caller.signsIn ? ERROR_CODES.none : ERROR_CODES.saslAuthenticationFailed;
  assert.equal(errorCode, wanted, `Kafka: the sign-in of ${caller.name}`);
}

async function runKafka(
  { pulse }: Stage,
  { message, version, body, refusal }: KafkaRequest,
  requires: Requirement,
  caller: Caller,
) {
  await using client = await KafkaClient.connect(pulse.kafkaPort);
  if (requires !== "public") await authenticate(client, caller);
  else if (message === saslAuthenticate) {
    await client.ask(saslHandshake, 1, { mechanism: "PLAIN" });
  }
  client.send(message, version, body);
  const frame = await client.readFrame();
  if (frame === undefined) return { isAdmitted: false, answer: "the connection was closed" };
  const answer: unknown = readResponse(frame, message, version).body;
  const codes = listCodes(answer);
  const isAdmitted = requires === "public" || !codes.some((code) => KAFKA_REFUSALS.has(code));
  const hasRight = [...(caller.rights ?? []), ...(caller.rightsNearby ?? [])].some(
    (right) => requires === "any" || requires === "caller" || right === requires,
  );
  const isExact = hasRight || refusal === undefined || codes.includes(refusal);
  if (!isAdmitted) assert.ok(isExact, `${message.name} of ${caller.name}: ${codes.join()}`);
  if (caller.tenant !== "main") assert.ok(!frame.includes(SECRET), `${message.name}: a record`);
  return { isAdmitted, answer };
}

/** All error codes in an answer. */
function listCodes(answer: unknown): number[] {
  if (typeof answer !== "object" || answer === null || Buffer.isBuffer(answer)) return [];
  return Object.entries(answer).flatMap(([name, value]) =>
    name === "errorCode" ? [value as number] : listCodes(value),
  );
}

const routes = createKafkaRoutes({} as KafkaBroker, {} as CredentialStore, Buffer.alloc(32));

test("the commands that require no right are these", () => {
  const listOpen = (declared: Iterable<[string, Requirement]>): string[] =>
    [...declared].flatMap(([name, requires]) =>
      requires === "public" || requires === "caller" ? [`${name}: ${requires}`] : [],
    );
  const kafka = routes
    .values()
    .map(({ message, requires }): [string, Requirement] => [message.name, requires]);
  assert.deepEqual(listOpen(kafka).sort(), [
    "ApiVersions: public",
    "DescribeCluster: caller",
    "DescribeGroups: caller",
    "FindCoordinator: caller",
    "ListGroups: caller",
    "SaslAuthenticate: public",
    "SaslHandshake: public",
  ]);
  assert.deepEqual(listOpen(Object.entries(PACKET_REQUIREMENTS)).sort(), [
    "auth: caller",
    "connect: public",
    "disconnect: caller",
    "pingreq: caller",
    "puback: caller",
    "pubcomp: caller",
    "pubrec: caller",
    "pubrel: caller",
    "unsubscribe: caller",
  ]);
  assert.deepEqual(listOpen(Object.entries(COMMANDS)).sort(), [
    "ABORT: caller",
    "ACK: caller",
    "BEGIN: caller",
    "COMMIT: caller",
    "CONNECT: public",
    "DISCONNECT: caller",
    "NACK: caller",
    "STOMP: public",
  ]);
});

/** A packet for each type, and how an answer admits it. */
const mqttPackets: [
  name: string,
  requires: Requirement,
  packet: Received,
  isAdmitted?: (answers: Received[], version: 4 | 5) => boolean,
][] = [
  ["connect", PACKET_REQUIREMENTS.connect, undefined, (answers) => find(answers, "connack")],
  [
    "connect with a will",
    PACKET_REQUIREMENTS.publish,
    undefined,
    (answers) => answers.some(isAccepted),
  ],
  [
    "publish",
    PACKET_REQUIREMENTS.publish,
    { cmd: "publish", topic: TOPIC, payload: "x", qos: 1, messageId: 7 },
    (answers) =>
      answers.some(({ cmd, reasonCode }) => cmd === "puback" && (reasonCode ?? 0) < 0x80),
  ],
  ...(["puback", "pubrec", "pubrel", "pubcomp"] as const).map(
    (cmd): [string, Requirement, Received] => [
      cmd,
      PACKET_REQUIREMENTS[cmd],
      { cmd, messageId: 9, reasonCode: 0 },
    ],
  ),
  [
    "subscribe",
    PACKET_REQUIREMENTS.subscribe,
    { cmd: "subscribe", messageId: 1, subscriptions: [{ topic: TOPIC, qos: 0 }] },
    (answers) => answers.some(({ cmd, granted }) => cmd === "suback" && granted[0] < 0x80),
  ],
  [
    "unsubscribe",
    PACKET_REQUIREMENTS.unsubscribe,
    { cmd: "unsubscribe", messageId: 1, unsubscriptions: [TOPIC] },
    (answers) => find(answers, "unsuback"),
  ],
  [
    "pingreq",
    PACKET_REQUIREMENTS.pingreq,
    { cmd: "pingreq" },
    (answers) => find(answers, "pingresp"),
  ],
  ["disconnect", PACKET_REQUIREMENTS.disconnect, { cmd: "disconnect", reasonCode: 0 }],
  // Only MQTT 5 has it, and no authentication method is supported.
  ["auth", PACKET_REQUIREMENTS.auth, Buffer.from([0xf0, 0])],
];

function find(answers: Received[], type: string): boolean {
  return answers.some(({ cmd }) => cmd === type);
}

function isAccepted({ cmd, reasonCode, returnCode }: Received): boolean {
  return cmd === "connack" && (reasonCode ?? returnCode) === 0;
}

async function runMqtt(
  { pulse }: Stage,
  [name, , packet, isAdmitted]: (typeof mqttPackets)[number],
  version: 4 | 5,
  caller: Caller,
) {
  const client = await RawClient.open(pulse.mqttPort, version);
  const { password, user: username = "x" } = caller;
  const credentials = password === undefined ? {} : { username, password: Buffer.from(password) };
  const will =
    name === "connect with a will" ? { will: { topic: TOPIC, payload: "", qos: 0 } } : {};
  client.send(createConnect(version, { ...credentials, ...will }));
  if (Buffer.isBuffer(packet)) client.socket.write(packet);
  else if (packet !== undefined) client.send(packet);
  // The answer to a PUBLISH comes when it is stored, after those to later packets.
  const last = name === "publish" ? "puback" : "pingresp";
  if (name !== "publish") client.send({ cmd: "pingreq" });
  const answers: Received[] = [];
  while (!find(answers, last)) {
    const answer = await client.next().catch(() => undefined);
    if (answer === undefined) break;
    answers.push(answer);
  }
  client.socket.destroy();
  const hasSignedIn = answers.some(isAccepted);
  if (name !== "connect with a will") {
    assert.equal(hasSignedIn, caller.signsIn, `MQTT: the sign-in of ${caller.name}`);
  }
  if (!hasSignedIn) assert.equal(answers.length, 1, `MQTT: ${name} of ${caller.name}`);
  const isForbidden = answers.some(
    ({ cmd, reasonCode }) => cmd === "disconnect" && reasonCode === NOT_AUTHORIZED,
  );
  const admits = isAdmitted ?? ((): boolean => hasSignedIn && !isForbidden);
  return { isAdmitted: admits(answers, version), answer: answers };
}

const stompHeaders: Record<Command, Record<string, string>> = {
  CONNECT: {},
  STOMP: {},
  SEND: { destination: `/topic/${TOPIC}` },
  SUBSCRIBE: { id: "s", destination: `/topic/${TOPIC}`, from: "earliest" },
  UNSUBSCRIBE: { id: "s", destination: `/topic/${TOPIC}`, "durable-subscription-name": "d" },
  ACK: { id: "1" },
  NACK: { id: "1" },
  BEGIN: { transaction: "t" },
  COMMIT: { transaction: "t" },
  ABORT: { transaction: "t" },
  DISCONNECT: {},
};

async function runStomp({ pulse }: Stage, command: Command, caller: Caller) {
  const client = StompClient.open(pulse.stompPort);
  const { password, user: login = "x" } = caller;
  const credentials = password === undefined ? {} : { login, passcode: password };
  const isConnect = command === "CONNECT" || command === "STOMP";
  const first = isConnect ? command : "CONNECT";
  client.send(first, { "accept-version": "1.2", host: "localhost", ...credentials });
  if (!isConnect) client.send(command, { ...stompHeaders[command], receipt: "r" });
  const answers: Answer[] = [];
  const isLast = ({ command: name }: Answer): boolean =>
    name === "ERROR" || name === "RECEIPT" || (isConnect && name === "CONNECTED");
  while (!answers.some(isLast)) answers.push(await client.next());
  client.close();
  const hasSignedIn = answers[0]!.command === "CONNECTED";
  assert.equal(hasSignedIn, caller.signsIn, `STOMP: the sign-in of ${caller.name}`);
  if (caller.tenant !== "main") {
    assert.ok(!answers.some(({ body }) => body.includes(SECRET)), `STOMP: ${command}`);
  }
  const isForbidden = answers.some(({ body }) => /is not allowed/.test(body));
  const isAdmitted = isConnect || (hasSignedIn && !isForbidden);
  return { isAdmitted, answer: answers.map(({ command: name, body }) => `${name} ${body}`) };
}

test("every command admits callers with its rights, and refuses all others", async (t) => {
  const stage = await start(t);
  const differences: (string | undefined)[] = [];
  const { topicId } = stage;
  const names = {
    topic: TOPIC,
    topicId,
    lostTopic: LOST_TOPIC,
    group: GROUP,
    lostGroup: LOST_GROUP,
  };
  const requests = createRequests(names);
  assert.deepEqual(
    [...new Set(requests.map(({ message }) => message.key))].sort((a, b) => a - b),
    [...routes.keys()].sort((a, b) => a - b),
  );
  for (const caller of callers) {
    for (const request of requests) {
      const { message, version, body } = request;
      const { requires } = routes.get(message.key)!;
      const text = JSON.stringify(body);
      const hasTopic = [TOPIC, `${TOPIC}.new`, LOST_TOPIC, topicId].some((name) =>
        text.includes(JSON.stringify(name)),
      );
      if (message.name === "DeleteTopics") await createTopic(stage.pulse, LOST_TOPIC);
      if (message.name === "OffsetDelete") await commit(stage.operator, LOST_GROUP);
      const command = { name: `Kafka ${message.name} ${version}`, requires, hasTopic };
      const run = () => runKafka(stage, request, requires, caller);
      differences.push(await judge(stage, command, caller, run));
    }
    for (const version of [4, 5] as const) {
      for (const row of mqttPackets) {
        const [name, requires] = row;
        const hasTopic = requires === "publish" || requires === "subscribe";
        const command = { name: `MQTT ${version} ${name}`, requires, hasTopic };
        const run = () => runMqtt(stage, row, version, caller);
        differences.push(await judge(stage, command, caller, run));
      }
    }
    for (const name of Object.keys(COMMANDS) as Command[]) {
      const command = {
        name: `STOMP ${name}`,
        requires: COMMANDS[name],
        hasTopic: stompHeaders[name]["destination"] !== undefined,
      };
      differences.push(await judge(stage, command, caller, () => runStomp(stage, name, caller)));
    }
  }
  const commands = differences.length / callers.length;
  t.diagnostic(`${commands} commands × ${callers.length} callers: ${differences.length} answers`);
  assert.deepEqual(
    differences.filter((text) => text !== undefined),
    [],
  );
});
