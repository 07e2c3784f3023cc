// The relay that administrators set through the API.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startSink, type Sink } from "../sink.ts";
import { STAGE_KINDS, startStage, startStageOn } from "../stage.ts";

const PATH = "/api/v1/settings/relay";
const MAIL = { to: "ada@example.org", subject: "Hello", text: "Hello" };
const SECRET = "5up3r-s3cret";

let first: Sink;
let second: Sink;
before(async () => {
  [first, second] = await Promise.all([
    startSink({ features: ["AUTH PLAIN", "ENHANCEDSTATUSCODES"] }),
    startSink(),
  ]);
});
after(() => Promise.all([first.close(), second.close()]));

const at = (sink: Sink) => ({ host: "127.0.0.1", port: sink.port });

for (const { kind, skip, prepare } of STAGE_KINDS) {
  test(
    `a relay is used after a restart, and its successor immediately: ${kind}`,
    { skip },
    async () => {
      let stage = await startStageOn({ ...(await prepare()), from_domain: "shop.example" });
      const empty = (await stage.call("GET", PATH)).body;
      assert.deepEqual([empty.sends, empty.restart_needed, empty.set_by], [false, false, null]);
      const set = await stage.call("PUT", PATH, at(second));
      assert.equal(set.status, 200, set.text);
      assert.equal(set.body.restart_needed, true);
      assert.equal((await stage.call("POST", "/api/v1/send", MAIL)).status, 200);
      assert.equal(second.accepted.length, 0, "mail stays in the inbox until the restart");
      await stage.close();

      stage = await startStageOn(stage.settings);
      const { body } = await stage.call("GET", PATH);
      assert.deepEqual([body.sends, body.restart_needed, body.set_by], [true, false, "operator"]);
      await stage.call("POST", "/api/v1/send", MAIL);
      assert.equal(second.accepted.length, 1);
      const other = await startSink();
      const replaced = await stage.call("PUT", PATH, at(other));
      assert.equal(replaced.body.restart_needed, false);
      await stage.call("POST", "/api/v1/send", MAIL);
      assert.deepEqual([second.accepted.length, other.accepted.length], [1, 1]);
      assert.equal((await stage.call("DELETE", PATH)).status, 204);
      assert.equal((await stage.call("GET", PATH)).body.restart_needed, true);
      await Promise.all([stage.close(), other.close()]);
      second.accepted.length = 0;
    },
  );
}

test("the password is kept for its server and user alone, and never answered", async () => {
  const stage = await startStage({ from_domain: "shop.example" });
  const whole = { ...at(first), user: "shop", pass: SECRET };
  const missing = await stage.call("PUT", PATH, { ...at(first), user: "shop" });
  assert.equal(missing.status, 400);
  assert.deepEqual(missing.body.errors[0].path, "pass");
  assert.equal((await stage.call("PUT", PATH, whole)).status, 200);
  const kept = await stage.call("PUT", PATH, { ...at(first), user: "shop" });
  assert.equal(kept.status, 200);
  const shown = kept.body.keys.find(({ name }: { name: string }) => name === "smtp.pass");
  assert.deepEqual(shown, {
    name: "smtp.pass",
    value: null,
    set: true,
    source: "stored",
    place: null,
  });
  assert.ok(!kept.text.includes(SECRET));
  const { rows } = {
    rows: await stage.database.db.selectFrom("notify_settings").selectAll().execute(),
  };
  assert.ok(!JSON.stringify(rows).includes(SECRET));
  // Another server would learn it.
  for (const change of [
    { ...at(second), user: "shop" },
    { ...at(first), user: "other" },
  ]) {
    assert.equal((await stage.call("PUT", PATH, change)).status, 400);
    assert.equal(
      (await stage.call("POST", `${PATH}/test`, { ...change, to: MAIL.to })).status,
      400,
    );
  }
  const trial = await stage.call("POST", `${PATH}/test`, {
    ...at(first),
    user: "shop",
    to: MAIL.to,
  });
  assert.equal(trial.status, 200, trial.text);
  // The sink refuses all credentials.
  assert.deepEqual([trial.body.outcome, trial.body.code], ["unreachable", 500]);
  const credentials = Buffer.from(`\0shop\0${SECRET}`).toString("base64");
  assert.ok(first.commands.includes(`AUTH PLAIN ${credentials}`), first.commands.join("\n"));
  assert.ok(!stage.log.join("").includes(SECRET));
  await stage.close();
});

test("a test answers the reply of the server, and is limited", async () => {
  const refusing = await startSink({
    reply: (step) => (step === "RCPT" ? "550 5.7.1 relaying denied" : undefined),
  });
  const stage = await startStage();
  const run = (change: object) => stage.call("POST", `${PATH}/test`, { to: MAIL.to, ...change });
  const sent = await run(at(second));
  assert.equal(sent.body.outcome, "sent", sent.text);
  assert.match(second.accepted.at(-1)!.data, /Subject: Test of the mail relay/);
  const refused = await run(at(refusing));
  assert.deepEqual(
    [refused.body.outcome, refused.body.code, refused.body.enhanced],
    ["rejected", 550, "5.7.1"],
  );
  await refusing.close();
  const gone = await run(at(refusing));
  assert.equal(gone.body.outcome, "unreachable");
  assert.match(gone.body.text, /^connect: /);
  assert.equal((await run({ ...at(second), to: "no address" })).status, 400);
  assert.equal((await run({ host: "a b", port: 25 })).status, 400);
  const statuses = new Set<number>();
  for (let n = 0; n < 10; n += 1) statuses.add((await run(at(refusing))).status);
  assert.deepEqual([...statuses], [200, 429]);
  assert.equal((await stage.call("GET", PATH)).body.set_by, null, "a test stores nothing");
  await stage.close();
});

test("keys of the configuration take precedence and are named", async () => {
  const stage = await startStage({ "smtp.host": "127.0.0.1", "smtp.port": second.port });
  const { body } = await stage.call("GET", PATH);
  assert.deepEqual(
    body.keys.map(({ source }: { source: string }) => source),
    ["configuration", "configuration", "default", "default"],
  );
  const refused = await stage.call("PUT", PATH, at(first));
  assert.equal(refused.status, 400);
  assert.match(refused.body.errors[0].message, /smtp\.port is set by the configuration/);
  // The others can be set beside them.
  const credentials = { user: "shop", pass: SECRET };
  assert.equal((await stage.call("PUT", PATH, credentials)).status, 200);
  await stage.close();
  const inbox = await startStage({ "smtp.mode": "inbox" });
  assert.equal((await inbox.call("GET", PATH)).body.obstacle.key, "smtp.mode");
  assert.equal((await inbox.call("PUT", PATH, at(first))).status, 400);
  await inbox.close();
});
