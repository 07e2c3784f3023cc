// The steps of replacing a credential, when a program does not follow or the disk is full.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createIdSource } from "@platform/kernel/ids";
import { isSecretsMessage, type SecretsMessage } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { LiveSecrets } from "@platform/kernel/secrets";
import { CredentialRotation } from "../../src/control/credential-rotation.ts";
import { SecretBroadcast } from "../../src/control/secret-broadcast.ts";
import { CredentialStore } from "../../src/credentials/credential-store.ts";
import { loadCredentials } from "../../src/credentials/credentials.ts";

const NAME = "PLATFORM_PULSE_TOKEN";
const DAY_MS = 86_400_000;

/** A program that has the credential. */
interface Program {
  label: string;
  isProject?: boolean;
  answer: "follows" | "refuses" | "has ended" | "ends later";
}

async function open(t: TestContext, programs: readonly Program[]) {
  const root = mkdtempSync(join(tmpdir(), "rotation-"));
  t.after(() => rmSync(root, { recursive: true }));
  const folder = join(root, "data");
  const ids = createIdSource();
  await loadCredentials(folder, [{ credentials: [NAME] }], {}, ids);
  const store = await CredentialStore.open({ folder, env: {}, ids, now: Date.now });
  const broadcast = new SecretBroadcast();
  const sent: SecretsMessage[] = [];
  const lines: string[] = [];
  const presented: string[] = [];
  const rotation = new CredentialRotation({
    store,
    broadcast,
    listHolders: () =>
      programs.map(({ label, isProject = false, answer }) => ({
        name: label,
        label,
        isProject,
        process: {
          send(message) {
            assert.ok(isSecretsMessage(message));
            sent.push(message);
            const { id } = message;
            if (answer === "has ended") return false;
            const refused = answer === "refuses" ? { refused: "its log names the reason" } : {};
            setImmediate(() => {
              if (answer === "ends later") broadcast.forget(label);
              else broadcast.note({ type: "secrets_followed", id, ...refused });
            });
            return true;
          },
        },
      })),
    own: new LiveSecrets([]),
    onCommitted: (_name, value) => {
      presented.push(value);
      return Promise.resolve();
    },
    logger: createLogger({ service: "test", format: "json", write: (line) => lines.push(line) }),
    now: Date.now,
  });
  const readFile = (): string => readFileSync(join(folder, "credentials.env"), "utf8");
  return { rotation, store, sent, lines, presented, readFile, folder };
}

test("all programs accept the next value before one presents it", async (t) => {
  const programs: Program[] = [
    { label: "messaging", answer: "follows" },
    { label: "storage", answer: "ends later" },
    { label: "tunnel", answer: "has ended" },
  ];
  const { rotation, store, sent, presented } = await open(t, programs);
  const former = store.find(NAME)!;
  const report = await rotation.rotate(NAME, DAY_MS, "operator");
  assert.deepEqual([report.followed, report.pending], [["messaging"], []]);
  const next = store.find(NAME)!;
  assert.deepEqual(presented, [next]);
  const values = sent.map(({ states: [state] }) => state!.value);
  assert.deepEqual(values, [former, former, former, next, next, next]);
  for (const { states } of sent) {
    const accepted = states[0]!.accepted.map(({ value }) => value);
    assert.deepEqual(accepted.toSorted(), [former, next].toSorted());
  }
});

test("a service that does not accept the next value leaves everything as it was", async (t) => {
  const programs: Program[] = [
    { label: "messaging", answer: "follows" },
    { label: "storage", answer: "refuses" },
  ];
  const { rotation, store, sent, lines, presented, readFile } = await open(t, programs);
  const [former, text] = [store.find(NAME)!, readFile()];
  await assert.rejects(rotation.rotate(NAME, DAY_MS, "operator"), {
    code: "unavailable",
    message: /storage does not accept the next value of PLATFORM_PULSE_TOKEN; nothing has changed/,
  });
  assert.equal(readFile(), text);
  assert.deepEqual(presented, []);
  assert.deepEqual(lines, []);
  const last = sent.slice(-2).map(({ states: [state] }) => state!.accepted);
  assert.deepEqual(last, [[{ value: former }], [{ value: former }]]);
});

test("a project of a version that does not know the messages is named", async (t) => {
  const programs: Program[] = [{ label: "shop", isProject: true, answer: "refuses" }];
  const { rotation, lines } = await open(t, programs);
  const { pending } = await rotation.rotate(NAME, DAY_MS, "operator");
  assert.deepEqual(pending, ["shop"]);
  const [entry] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(
    [entry?.["audit"], entry?.["target"], entry?.["pending"]],
    [true, NAME, ["shop"]],
  );
});

test("a file that cannot be written leaves everything as it was", async (t) => {
  const { rotation, store, presented, folder } = await open(t, []);
  const former = store.find(NAME);
  rmSync(folder, { recursive: true });
  await assert.rejects(rotation.rotate(NAME, DAY_MS, "operator"), /ENOENT/);
  assert.equal(store.find(NAME), former);
  assert.equal(store.describe(NAME)?.accepted.length, 1);
  assert.deepEqual(presented, []);
  mkdirSync(folder);
  await rotation.rotate(NAME, DAY_MS, "operator");
  assert.notEqual(store.find(NAME), former);
});

test("two replacements at once are one and a refusal", async (t) => {
  const { rotation } = await open(t, [{ label: "messaging", answer: "follows" }]);
  const both = await Promise.allSettled([
    rotation.rotate(NAME, DAY_MS, "operator"),
    rotation.rotate(NAME, DAY_MS, "operator"),
  ]);
  assert.deepEqual(both.map(({ status }) => status).toSorted(), ["fulfilled", "rejected"]);
});

test("former values are removed from the file when they have ended", async (t) => {
  const { rotation, store, readFile } = await open(t, []);
  const former = store.find(NAME)!;
  await rotation.rotate(NAME, 30, "operator");
  assert.match(readFile(), new RegExp(`# former ${NAME}=${former} until 20`));
  await new Promise((resolve) => setTimeout(resolve, 40));
  store.sweep();
  assert.ok(!readFile().includes(former));
});
