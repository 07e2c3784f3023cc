// PutBucketLifecycleConfiguration and related operations:
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLifecycleConfiguration.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult, type Scene } from "../case.ts";

const toBody = (...rules: string[]) =>
  `<LifecycleConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${rules.map((rule) => `<Rule>${rule}</Rule>`).join("")}</LifecycleConfiguration>`;

const ALL = "<Filter><Prefix></Prefix></Filter>";
const ENABLED = "<Status>Enabled</Status>";
const DAYS = "<Expiration><Days>30</Days></Expiration>";
const RULE = `<ID>a</ID>${ENABLED}${ALL}${DAYS}`;

function put({ ask }: Scene, ...rules: string[]) {
  return ask("PUT", "?lifecycle", { body: toBody(...rules) });
}

async function read({ ask }: Scene) {
  return readResult(await ask("GET", "?lifecycle"), "LifecycleConfiguration");
}

export const cases = casesOf(
  "PutBucketLifecycleConfiguration",
  [
    "a bucket without rules is NoSuchLifecycleConfiguration",
    async ({ ask }) => {
      assertError(await ask("GET", "?lifecycle"), 404, "NoSuchLifecycleConfiguration");
    },
  ],
  [
    "keeps a rule",
    async (scene) => {
      assertEmpty(await put(scene, RULE), 200);
      const found = await read(scene);
      assert.equal(found.get("Rule/ID"), "a");
      assert.equal(found.get("Rule/Status"), "Enabled");
      assert.equal(found.get("Rule/Expiration/Days"), "30");
    },
  ],
  [
    "keeps rules for earlier versions, markers and uploads",
    async (scene) => {
      await put(
        scene,
        `<ID>a</ID>${ENABLED}${ALL}<NoncurrentVersionExpiration><NoncurrentDays>3</NoncurrentDays><NewerNoncurrentVersions>2</NewerNoncurrentVersions></NoncurrentVersionExpiration>`,
        `<ID>b</ID>${ENABLED}${ALL}<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>`,
        `<ID>c</ID>${ENABLED}${ALL}<AbortIncompleteMultipartUpload><DaysAfterInitiation>7</DaysAfterInitiation></AbortIncompleteMultipartUpload>`,
      );
      const [a, b, c] = (await read(scene)).all("Rule");
      assert.equal(a!.get("NoncurrentVersionExpiration/NoncurrentDays"), "3");
      assert.equal(a!.get("NoncurrentVersionExpiration/NewerNoncurrentVersions"), "2");
      assert.equal(b!.get("Expiration/ExpiredObjectDeleteMarker"), "true");
      assert.equal(c!.get("AbortIncompleteMultipartUpload/DaysAfterInitiation"), "7");
    },
  ],
  [
    "keeps a date",
    async (scene) => {
      const date = "<Expiration><Date>2099-10-12T00:00:00.000Z</Date></Expiration>";
      assertEmpty(await put(scene, `<ID>a</ID>${ENABLED}${ALL}${date}`), 200);
      assert.equal((await read(scene)).get("Rule/Expiration/Date"), "2099-10-12T00:00:00.000Z");
    },
  ],
  [
    "keeps filters by prefix, tag, size and several together",
    async (scene) => {
      const filters = [
        "<Prefix>logs/</Prefix>",
        "<Tag><Key>k</Key><Value>v</Value></Tag>",
        "<ObjectSizeGreaterThan>500</ObjectSizeGreaterThan>",
        "<ObjectSizeLessThan>64000</ObjectSizeLessThan>",
        "<And><Prefix>a/</Prefix><Tag><Key>k</Key><Value>v</Value></Tag><Tag><Key>l</Key><Value>w</Value></Tag><ObjectSizeGreaterThan>1</ObjectSizeGreaterThan></And>",
      ];
      const rules = filters.map(
        (filter, index) => `<ID>${index}</ID>${ENABLED}<Filter>${filter}</Filter>${DAYS}`,
      );
      assertEmpty(await put(scene, ...rules), 200);
      const found = (await read(scene)).all("Rule");
      assert.equal(found[0]!.get("Filter/Prefix"), "logs/");
      assert.equal(found[1]!.get("Filter/Tag/Key"), "k");
      assert.equal(found[2]!.get("Filter/ObjectSizeGreaterThan"), "500");
      assert.equal(found[3]!.get("Filter/ObjectSizeLessThan"), "64000");
      assert.deepEqual(found[4]!.texts("Filter/And/Tag/Key"), ["k", "l"]);
      assert.equal(found[4]!.get("Filter/And/ObjectSizeGreaterThan"), "1");
    },
  ],
  [
    "takes the older form with a prefix beside the filter",
    async (scene) => {
      assertEmpty(await put(scene, `<ID>a</ID><Prefix>logs/</Prefix>${ENABLED}${DAYS}`), 200);
      const found = await read(scene);
      assert.equal(found.get("Rule/Prefix"), "logs/");
      assert.equal(found.get("Rule/Filter"), undefined, "it is told as it was put");
    },
  ],
  [
    "an empty filter is for all objects",
    async (scene) => {
      assertEmpty(await put(scene, RULE.replace(ALL, "<Filter/>")), 200);
      assert.equal((await read(scene)).get("Rule/Expiration/Days"), "30");
    },
  ],
  [
    "InvalidStorageClass for a transition to a class that no remote has, and keeps the rules before",
    async (scene) => {
      assertEmpty(await put(scene, RULE), 200);
      const inner = "<Transition><Days>30</Days><StorageClass>GLACIER</StorageClass></Transition>";
      assertError(await put(scene, RULE.replace(DAYS, inner)), 400, "InvalidStorageClass");
      assert.equal((await read(scene)).get("Rule/Expiration/Days"), "30");
    },
  ],
  [
    "gives a rule without an id one",
    async (scene) => {
      await put(scene, `${ENABLED}${ALL}${DAYS}`);
      assert.ok((await read(scene)).get("Rule/ID")!.length > 0);
    },
  ],
  [
    "keeps a rule that is switched off",
    async (scene) => {
      await put(scene, RULE.replace("Enabled", "Disabled"));
      assert.equal((await read(scene)).get("Rule/Status"), "Disabled");
    },
  ],
  [
    "DELETE removes the rules",
    async (scene) => {
      await put(scene, RULE);
      assertEmpty(await scene.ask("DELETE", "?lifecycle"), 204);
      assertError(await scene.ask("GET", "?lifecycle"), 404, "NoSuchLifecycleConfiguration");
    },
  ],
  [
    "InvalidArgument for an id that comes twice or is longer than 255",
    async (scene) => {
      assertError(await put(scene, RULE, RULE), 400, "InvalidArgument");
      const long = RULE.replace(">a<", `>${"a".repeat(256)}<`);
      assertError(await put(scene, long), 400, "InvalidArgument");
    },
  ],
  [
    "InvalidArgument for numbers of days that are none",
    async (scene) => {
      for (const days of ["0", "-1", "x"]) {
        assertError(await put(scene, RULE.replace("30", days)), 400, "InvalidArgument");
      }
    },
  ],
  [
    "InvalidArgument for a date that is not midnight",
    async (scene) => {
      for (const date of ["2099-10-12T01:00:00Z", "20200101"]) {
        const expiration = `<Expiration><Date>${date}</Date></Expiration>`;
        const answer = await put(scene, `<ID>a</ID>${ENABLED}${ALL}${expiration}`);
        assert.equal(answer.status, 400);
      }
    },
  ],
  [
    "InvalidRequest for a rule without action",
    async (scene) => {
      assertError(await put(scene, `<ID>a</ID>${ENABLED}${ALL}`), 400, "InvalidRequest");
    },
  ],
  [
    "MalformedXML for no rules, a status that is none, neither filter nor prefix, and both",
    async (scene) => {
      const bad = [
        [],
        [RULE.replace("Enabled", "enabled")],
        [RULE.replace(ENABLED, "")],
        [`<ID>a</ID>${ENABLED}${DAYS}`],
        [`${RULE}<Prefix>a</Prefix>`],
        [RULE.replace(DAYS, "<Expiration/>")],
        [
          RULE.replace(
            DAYS,
            "<Expiration><Days>1</Days><Date>2099-10-12T00:00:00Z</Date></Expiration>",
          ),
        ],
      ];
      for (const rules of bad) assertError(await put(scene, ...rules), 400, "MalformedXML");
    },
  ],
  [
    "an object to which a rule applies tells when it expires",
    async (scene) => {
      await put(scene, RULE);
      const answers = [
        await scene.put("key", "x"),
        await scene.ask("HEAD", "/key"),
        await scene.ask("GET", "/key"),
      ];
      for (const { headers } of answers) {
        const match = /^expiry-date="([^"]+)", rule-id="a"$/.exec(headers["x-amz-expiration"]!);
        const expiresMs = Date.parse(match![1]!);
        assert.equal(expiresMs % 86_400_000, 0);
        const days = (expiresMs - Date.now()) / 86_400_000;
        assert.ok(days > 29.9 && days <= 31, `${days} days`);
      }
    },
  ],
  [
    "an object to which no rule applies tells nothing",
    async (scene) => {
      await put(scene, `<ID>a</ID>${ENABLED}<Filter><Prefix>logs/</Prefix></Filter>${DAYS}`);
      await scene.put("key", "x");
      assert.equal((await scene.ask("HEAD", "/key")).headers["x-amz-expiration"], undefined);
    },
  ],
  [
    "MalformedXML for a transition to a class that there is none of",
    async (scene) => {
      const inner = "<Transition><Days>30</Days><StorageClass>FASTEST</StorageClass></Transition>";
      assertError(await put(scene, `${ENABLED}${ALL}${inner}`), 400, "MalformedXML");
    },
  ],
  [
    "InvalidStorageClass for a transition on a date without such a remote, MalformedXML for one with days as well",
    async (scene) => {
      const date = "2099-10-12T00:00:00.000Z";
      const inner = `<Transition><Date>${date}</Date><StorageClass>GLACIER</StorageClass></Transition>`;
      assertError(await put(scene, RULE.replace(DAYS, inner)), 400, "InvalidStorageClass");
      const both = RULE.replace(DAYS, inner.replace("<Date>", "<Days>1</Days><Date>"));
      assertError(await put(scene, both), 400, "MalformedXML");
    },
  ],
  [
    "InvalidStorageClass for transitions of earlier versions without such a remote",
    async (scene) => {
      const inner =
        "<NoncurrentVersionTransition><NoncurrentDays>30</NoncurrentDays><NewerNoncurrentVersions>5</NewerNoncurrentVersions><StorageClass>STANDARD_IA</StorageClass></NoncurrentVersionTransition><NoncurrentVersionTransition><NoncurrentDays>60</NoncurrentDays><StorageClass>GLACIER</StorageClass></NoncurrentVersionTransition>";
      assertError(await put(scene, RULE.replace(DAYS, inner)), 400, "InvalidStorageClass");
    },
  ],
  [
    "a marker that is not to expire may be said, alone and beside days",
    async (scene) => {
      const no = "<ExpiredObjectDeleteMarker>false</ExpiredObjectDeleteMarker>";
      const beside = RULE.replace("</Days>", `</Days>${no}`);
      assertEmpty(await put(scene, beside), 200);
      assert.equal((await read(scene)).get("Rule/Expiration/Days"), "30");
      assertEmpty(await put(scene, RULE.replace("<Days>30</Days>", no)), 200);
      const found = await read(scene);
      assert.equal(found.get("Rule/Expiration/ExpiredObjectDeleteMarker"), "false");
      const yes = beside.replace("false", "true");
      assertError(await put(scene, yes), 400, "MalformedXML");
    },
  ],
  [
    "keeps from which size objects are moved, and tells it in both answers",
    async (scene) => {
      const name = "x-amz-transition-default-minimum-object-size";
      const body = toBody(RULE);
      const first = await scene.must("PUT", "?lifecycle", { body });
      assert.equal(first.headers[name], "all_storage_classes_128K");
      const headers = { [name]: "varies_by_storage_class" };
      const second = await scene.must("PUT", "?lifecycle", { body, headers });
      assert.equal(second.headers[name], "varies_by_storage_class");
      const read = await scene.must("GET", "?lifecycle");
      assert.equal(read.headers[name], "varies_by_storage_class");
      const bad = { [name]: "any" };
      const answer = await scene.ask("PUT", "?lifecycle", { body, headers: bad });
      assertError(answer, 400, "InvalidRequest");
    },
  ],
  [
    "rules without ids get different ones, also beside those that have some",
    async (scene) => {
      const nameless = `${ENABLED}${ALL}${DAYS}`;
      assertEmpty(await put(scene, `<ID>rule-2</ID>${nameless}`, nameless, nameless), 200);
      const ids = (await read(scene)).texts("Rule/ID");
      assert.equal(new Set(ids).size, 3, ids.join());
    },
  ],
  [
    "InvalidRequest for what uploads and markers cannot be told by: tags and sizes",
    async (scene) => {
      const actions = [
        "<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>",
        "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>",
      ];
      const filters = [
        "<Tag><Key>k</Key><Value>v</Value></Tag>",
        "<ObjectSizeGreaterThan>1</ObjectSizeGreaterThan>",
      ];
      for (const action of actions) {
        for (const filter of filters) {
          const answer = await put(scene, `${ENABLED}<Filter>${filter}</Filter>${action}`);
          assertError(answer, 400, "InvalidRequest");
        }
      }
    },
  ],
  [
    "InvalidRequest for sizes that nothing has, a class twice, and dates beside days",
    async (scene) => {
      const toGlacier = (time: string) =>
        `<Transition>${time}<StorageClass>GLACIER</StorageClass></Transition>`;
      const sizes =
        "<Filter><And><ObjectSizeGreaterThan>9</ObjectSizeGreaterThan><ObjectSizeLessThan>9</ObjectSizeLessThan></And></Filter>";
      const bad = [
        RULE.replace(ALL, sizes),
        `${ENABLED}${ALL}${toGlacier("<Days>1</Days>")}${toGlacier("<Days>2</Days>")}`,
        `${ENABLED}${ALL}${DAYS}${toGlacier("<Date>2099-10-12T00:00:00Z</Date>")}`,
      ];
      for (const rule of bad) assertError(await put(scene, rule), 400, "InvalidRequest");
    },
  ],
  [
    "InvalidArgument for moving what has expired, and for moving too early to a class",
    async (scene) => {
      const move = (days: number, name: string) =>
        `<Transition><Days>${days}</Days><StorageClass>${name}</StorageClass></Transition>`;
      const bad = [
        `${ENABLED}${ALL}${DAYS}${move(30, "GLACIER")}`,
        `${ENABLED}${ALL}${move(29, "STANDARD_IA")}`,
        `${ENABLED}${ALL}${move(1, "ONEZONE_IA")}`,
      ];
      for (const rule of bad) assertError(await put(scene, rule), 400, "InvalidArgument");
      const right = `${ENABLED}${ALL}${DAYS}${move(0, "GLACIER_IR")}`;
      assertError(await put(scene, right), 400, "InvalidStorageClass");
    },
  ],
  [
    "InvalidTag for a filter's tag that no object can have",
    async (scene) => {
      const filter = "<Filter><Tag><Key></Key><Value>v</Value></Tag></Filter>";
      assertError(await put(scene, RULE.replace(ALL, filter)), 400, "InvalidTag");
    },
  ],
);
