// SelectObjectContent: https://docs.aws.amazon.com/AmazonS3/latest/API/API_SelectObjectContent.html
import assert from "node:assert/strict";
import { crc32, gzipSync } from "node:zlib";
import { assertError, casesOf, type Scene } from "../case.ts";
import type { Answer } from "../client.ts";

const CSV = "id,name\n1,Ann\n2,Bob\n";
const FROM_CSV = "<CSV><FileHeaderInfo>USE</FileHeaderInfo></CSV>";
const TO_JSON = "<JSON/>";

interface Question {
  input?: string;
  output?: string;
  more?: string;
  key?: string;
}

function select(
  { ask }: Scene,
  expression: string,
  { input = FROM_CSV, output = TO_JSON, more = "", key = "key" }: Question = {},
): Promise<Answer> {
  const text = expression.replaceAll("<", "&lt;");
  return ask("POST", `/${key}?select&select-type=2`, {
    body:
      `<SelectObjectContentRequest xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Expression>${text}</Expression>` +
      `<ExpressionType>SQL</ExpressionType><InputSerialization>${input}</InputSerialization>` +
      `<OutputSerialization>${output}</OutputSerialization>${more}</SelectObjectContentRequest>`,
  });
}

/** The types of the events, and the records, of an event stream whose checksums are right. */
function readEvents(bytes: Buffer): { types: string[]; records: string } {
  const types: string[] = [];
  let records = "";
  for (let at = 0; at < bytes.length;) {
    const size = bytes.readUInt32BE(at);
    const payloadAt = at + 12 + bytes.readUInt32BE(at + 4);
    const end = at + size - 4;
    assert.equal(bytes.readUInt32BE(at + 8), crc32(bytes.subarray(at, at + 8)));
    assert.equal(bytes.readUInt32BE(end), crc32(bytes.subarray(at, end)));
    const headers = bytes.toString("latin1", at + 12, payloadAt);
    // Three bytes between the name and the value: the type, and the length.
    const type = /(?:event-type|error-code)[^]{3}(\w+)/.exec(headers)?.[1] ?? "";
    types.push(type);
    if (type === "Records") records += bytes.toString("utf8", payloadAt, end);
    at += size;
  }
  return { types, records };
}

export const cases = casesOf(
  "SelectObjectContent",
  [
    "answers the records that match, statistics and the end",
    async (scene) => {
      await scene.put("key", CSV);
      const { status, body } = await select(scene, "SELECT * FROM S3Object s WHERE s.id > 1");
      assert.equal(status, 200);
      assert.deepEqual(readEvents(body), {
        types: ["Records", "Stats", "End"],
        records: '{"id":"2","name":"Bob"}\n',
      });
    },
  ],
  [
    "writes CSV with the delimiters of the request",
    async (scene) => {
      await scene.put("key", CSV);
      const output =
        "<CSV><FieldDelimiter>|</FieldDelimiter><RecordDelimiter>;</RecordDelimiter><QuoteFields>ALWAYS</QuoteFields></CSV>";
      const { body } = await select(scene, "SELECT name, id FROM S3Object", { output });
      assert.equal(readEvents(body).records, '"Ann"|"1";"Bob"|"2";');
    },
  ],
  [
    "reads compressed objects and JSON",
    async (scene) => {
      await scene.put("key", gzipSync('{"a":{"b":[1,2]}}\n{"a":3}\n'));
      const input = "<CompressionType>GZIP</CompressionType><JSON><Type>LINES</Type></JSON>";
      const { body } = await select(scene, "SELECT s.a.b[1] AS x FROM S3Object s", { input });
      assert.equal(readEvents(body).records, '{"x":2}\n{}\n');
    },
  ],
  [
    "reports progress if it is wanted",
    async (scene) => {
      await scene.put("key", CSV);
      const more = "<RequestProgress><Enabled>true</Enabled></RequestProgress>";
      const { body } = await select(scene, "SELECT COUNT(*) FROM S3Object", { more });
      assert.deepEqual(readEvents(body).types, ["Records", "Progress", "Stats", "End"]);
    },
  ],
  [
    "a scan range selects the records that begin in it",
    async (scene) => {
      await scene.put("key", CSV);
      const more = "<ScanRange><Start>9</Start><End>20</End></ScanRange>";
      const { body } = await select(scene, "SELECT name FROM S3Object", { more });
      assert.equal(readEvents(body).records, '{"name":"Bob"}\n');
    },
  ],
  [
    "faults of the expression have their codes",
    async (scene) => {
      await scene.put("key", CSV);
      assertError(await select(scene, "SELECT FROM S3Object"), 400, "ParseEmptySelect");
      assertError(await select(scene, "SELECT FOO(1) FROM S3Object"), 400, "UnsupportedFunction");
      assertError(
        await select(scene, "SELECT x FROM S3Object"),
        400,
        "EvaluatorBindingDoesNotExist",
      );
    },
  ],
  [
    "a fault after the first records is an error message",
    async (scene) => {
      await scene.put("key", `${"1\n".repeat(100_000)}x\n`);
      const question = { input: "<CSV/>" };
      const { status, body } = await select(
        scene,
        "SELECT CAST(_1 AS INT) FROM S3Object",
        question,
      );
      assert.equal(status, 200);
      assert.equal(readEvents(body).types.at(-1), "CastFailed");
    },
  ],
  [
    "NoSuchKey for what is not there",
    async (scene) => {
      assertError(await select(scene, "SELECT 1 FROM S3Object"), 404, "NoSuchKey");
    },
  ],
  [
    "MalformedXML and MissingRequiredParameter for documents that are none",
    async (scene) => {
      const { ask, put } = scene;
      await put("key", CSV);
      const send = (body: string) => ask("POST", "/key?select&select-type=2", { body });
      assertError(await send("<SelectObjectContentRequest>"), 400, "MalformedXML");
      const empty = "<SelectObjectContentRequest></SelectObjectContentRequest>";
      assertError(await send(empty), 400, "MissingRequiredParameter");
    },
  ],
  [
    "AccessDenied for who may not read the object",
    async (scene) => {
      const { ask, bucket, createUser, put } = scene;
      await put("key", CSV);
      const user = await createUser({
        Effect: "Allow",
        Action: "s3:ListBucket",
        Resource: `arn:aws:s3:::${bucket}`,
      });
      const body = "<SelectObjectContentRequest></SelectObjectContentRequest>";
      const answer = await ask("POST", "/key?select&select-type=2", { body, as: user });
      assertError(answer, 403, "AccessDenied");
    },
  ],
);
