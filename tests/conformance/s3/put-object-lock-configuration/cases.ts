// PutObjectLockConfiguration and GetObjectLockConfiguration: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectLockConfiguration.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult, type Scene } from "../case.ts";

const DAY_MS = 86_400_000;

const toBody = (retention: string) =>
  `<ObjectLockConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><ObjectLockEnabled>Enabled</ObjectLockEnabled>${retention === "" ? "" : `<Rule><DefaultRetention>${retention}</DefaultRetention></Rule>`}</ObjectLockConfiguration>`;

async function createLocked(scene: Scene): Promise<string> {
  return `/${await scene.createBucket({ "x-amz-bucket-object-lock-enabled": "true" })}`;
}

export const cases = casesOf(
  "PutObjectLockConfiguration",
  [
    "a bucket without is ObjectLockConfigurationNotFoundError",
    async ({ ask }) => {
      const answer = await ask("GET", "?object-lock");
      assertError(answer, 404, "ObjectLockConfigurationNotFoundError");
    },
  ],
  [
    "keeps a default of days or years",
    async (scene) => {
      const path = await createLocked(scene);
      for (const period of ["<Days>2</Days>", "<Years>1</Years>"]) {
        const body = toBody(`<Mode>GOVERNANCE</Mode>${period}`);
        const put = await scene.client.send("PUT", `${path}?object-lock`, { body });
        assertEmpty(put, 200);
        const answer = await scene.client.send("GET", `${path}?object-lock`);
        const found = readResult(answer, "ObjectLockConfiguration");
        assert.equal(found.get("ObjectLockEnabled"), "Enabled");
        assert.equal(found.get("Rule/DefaultRetention/Mode"), "GOVERNANCE");
        assert.ok(answer.text.includes(period));
      }
    },
  ],
  [
    "gives new objects the default, and leaves them theirs",
    async ({ client, ...scene }) => {
      const path = await createLocked({ client, ...scene });
      const body = toBody("<Mode>COMPLIANCE</Mode><Days>1</Days>");
      await client.send("PUT", `${path}?object-lock`, { body });
      await client.send("PUT", `${path}/a`, { body: "x" });
      const { headers } = await client.send("HEAD", `${path}/a`);
      assert.equal(headers["x-amz-object-lock-mode"], "COMPLIANCE");
      const until = Date.parse(headers["x-amz-object-lock-retain-until-date"]!);
      assert.ok(Math.abs(until - Date.now() - DAY_MS) < 60_000);
      const own = {
        "x-amz-object-lock-mode": "GOVERNANCE",
        "x-amz-object-lock-retain-until-date": new Date(Date.now() + 5 * DAY_MS).toISOString(),
      };
      await client.send("PUT", `${path}/b`, { body: "x", headers: own });
      const second = await client.send("HEAD", `${path}/b`);
      assert.equal(second.headers["x-amz-object-lock-mode"], "GOVERNANCE");
    },
  ],
  [
    "can be switched on for a bucket that is versioned",
    async ({ ask, setVersioning }) => {
      await setVersioning("Enabled");
      assertEmpty(await ask("PUT", "?object-lock", { body: toBody("") }), 200);
      assert.equal((await ask("GET", "?object-lock")).document.get("ObjectLockEnabled"), "Enabled");
    },
  ],
  [
    "InvalidBucketState for a bucket that is not versioned",
    async ({ ask }) => {
      assertError(
        await ask("PUT", "?object-lock", { body: toBody("") }),
        409,
        "InvalidBucketState",
      );
    },
  ],
  [
    "InvalidArgument for periods that are none",
    async (scene) => {
      const path = await createLocked(scene);
      for (const period of ["<Days>0</Days>", "<Days>-1</Days>", "<Years>101</Years>"]) {
        const body = toBody(`<Mode>GOVERNANCE</Mode>${period}`);
        const answer = await scene.client.send("PUT", `${path}?object-lock`, { body });
        assertError(answer, 400, "InvalidArgument");
      }
    },
  ],
  [
    "MalformedXML for days beside years, neither, a mode that is none, and another switch",
    async (scene) => {
      const path = await createLocked(scene);
      const bodies = [
        toBody("<Mode>GOVERNANCE</Mode><Days>1</Days><Years>1</Years>"),
        toBody("<Mode>GOVERNANCE</Mode>"),
        toBody("<Mode>governance</Mode><Days>1</Days>"),
        toBody("<Days>1</Days>"),
        toBody("").replace(">Enabled<", ">Disabled<"),
        "x",
      ];
      for (const body of bodies) {
        const answer = await scene.client.send("PUT", `${path}?object-lock`, { body });
        assertError(answer, 400, "MalformedXML");
      }
    },
  ],
);
