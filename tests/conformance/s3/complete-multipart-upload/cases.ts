// CompleteMultipartUpload: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { assertError, casesOf, digest, md5, readResult } from "../case.ts";
import { PART, askToComplete, begin, complete, putPart, toList, upload } from "../upload.ts";

const LAST = Buffer.from("last");
const WHOLE = Buffer.concat([PART, LAST]);

function toEtag(bodies: readonly (string | Buffer)[]): string {
  const hash = createHash("md5");
  for (const body of bodies) hash.update(Buffer.from(md5(body), "hex"));
  return `"${hash.digest("hex")}-${bodies.length}"`;
}

function toBase64(crc: number): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc);
  return bytes.toString("base64");
}

export const cases = casesOf(
  "CompleteMultipartUpload",
  [
    "joins the parts and answers location, bucket, key and the ETag of the parts' MD5s",
    async (scene) => {
      const { result, answer } = await upload(scene, "a%20b", [PART, LAST]);
      assert.equal(result.get("Bucket"), scene.bucket);
      assert.equal(result.get("Key"), "a b");
      assert.equal(result.get("ETag"), toEtag([PART, LAST]));
      assert.equal(result.get("Location"), `http://${scene.client.host}/${scene.bucket}/a%20b`);
      assert.equal(answer.headers["x-amz-version-id"], undefined);
      const got = await scene.ask("GET", "/a%20b");
      assert.ok(got.body.equals(WHOLE));
      assert.equal(got.headers["etag"], toEtag([PART, LAST]));
      assert.equal(got.headers["content-length"], String(WHOLE.length));
    },
  ],
  [
    "a single small part is enough",
    async (scene) => {
      const { result } = await upload(scene, "key", ["small"]);
      assert.equal(result.get("ETag"), toEtag(["small"]));
      assert.equal((await scene.ask("GET", "/key")).text, "small");
    },
  ],
  [
    "keeps what was said of the object when the upload began",
    async (scene) => {
      await upload(scene, "key", ["x"], {
        "content-type": "text/plain",
        "x-amz-meta-k": "v",
        "x-amz-tagging": "t=1",
        "cache-control": "no-store",
      });
      const { headers } = await scene.ask("HEAD", "/key");
      assert.equal(headers["content-type"], "text/plain");
      assert.equal(headers["x-amz-meta-k"], "v");
      assert.equal(headers["x-amz-tagging-count"], "1");
      assert.equal(headers["cache-control"], "no-store");
    },
  ],
  [
    "parts may have any ascending numbers, and come in any order",
    async (scene) => {
      const id = await begin(scene, "key");
      const last = await putPart(scene, "key", id, 9_000, LAST);
      const first = await putPart(scene, "key", id, 3, PART);
      await complete(scene, "key", id, [first, last]);
      assert.ok((await scene.ask("GET", "/key")).body.equals(WHOLE));
    },
  ],
  [
    "leaves parts out that are not listed",
    async (scene) => {
      const id = await begin(scene, "key");
      await putPart(scene, "key", id, 1, "left out");
      const part = await putPart(scene, "key", id, 2, "kept");
      await complete(scene, "key", id, [part]);
      assert.equal((await scene.ask("GET", "/key")).text, "kept");
    },
  ],
  [
    "takes ETags without quotes",
    async (scene) => {
      const id = await begin(scene, "key");
      await putPart(scene, "key", id, 1, "x");
      await complete(scene, "key", id, [{ number: 1, etag: md5("x") }]);
    },
  ],
  [
    "InvalidPart for a part that was never put",
    async (scene) => {
      const id = await begin(scene, "key");
      const part = await putPart(scene, "key", id, 1, "x");
      const answer = await askToComplete(scene, "key", id, [{ ...part, number: 2 }]);
      assertError(answer, 400, "InvalidPart");
    },
  ],
  [
    "InvalidPart for an ETag of other bytes, and the upload goes on",
    async (scene) => {
      const id = await begin(scene, "key");
      const part = await putPart(scene, "key", id, 1, "x");
      const answer = await askToComplete(scene, "key", id, [{ number: 1, etag: md5("y") }]);
      assertError(answer, 400, "InvalidPart");
      await complete(scene, "key", id, [part]);
    },
  ],
  [
    "InvalidPartOrder for parts that do not ascend, or come twice",
    async (scene) => {
      const id = await begin(scene, "key");
      const first = await putPart(scene, "key", id, 1, PART);
      const second = await putPart(scene, "key", id, 2, "x");
      for (const parts of [
        [second, first],
        [first, first],
      ]) {
        assertError(await askToComplete(scene, "key", id, parts), 400, "InvalidPartOrder");
      }
    },
  ],
  [
    "EntityTooSmall for a part before the last that is smaller than 5 MiB",
    async (scene) => {
      const id = await begin(scene, "key");
      const parts = [
        await putPart(scene, "key", id, 1, PART.subarray(1)),
        await putPart(scene, "key", id, 2, "x"),
      ];
      assertError(await askToComplete(scene, "key", id, parts), 400, "EntityTooSmall");
      assertError(await scene.ask("GET", "/key"), 404, "NoSuchKey");
    },
  ],
  [
    "MalformedXML for a document without parts, or that is none",
    async (scene) => {
      const id = await begin(scene, "key");
      const bodies = ["", "x", toList([]), "<Other/>", toList([{ number: 1, etag: "a" }]).slice(9)];
      for (const body of bodies) {
        const answer = await scene.ask("POST", `/key?uploadId=${id}`, { body });
        assertError(answer, 400, "MalformedXML");
      }
    },
  ],
  [
    "NoSuchUpload for an upload that is not there, or of another key",
    async (scene) => {
      const parts = [{ number: 1, etag: md5("x") }];
      assertError(await askToComplete(scene, "key", "made-up", parts), 404, "NoSuchUpload");
      const id = await begin(scene, "key");
      assertError(await askToComplete(scene, "other", id, parts), 404, "NoSuchUpload");
    },
  ],
  [
    "answers the same when it is repeated",
    async (scene) => {
      const { id, parts, result } = await upload(scene, "key", ["x"]);
      const again = await complete(scene, "key", id, parts);
      assert.equal(again.result.get("ETag"), result.get("ETag"));
    },
  ],
  [
    "a repetition does not bring back what was put since",
    async (scene) => {
      const { id, parts } = await upload(scene, "key", ["x"]);
      await scene.put("key", "newer");
      await askToComplete(scene, "key", id, parts);
      assert.equal((await scene.ask("GET", "/key")).text, "newer");
    },
  ],
  [
    "replaces what was there, all at once",
    async (scene) => {
      await scene.put("key", "old");
      const id = await begin(scene, "key");
      const part = await putPart(scene, "key", id, 1, "new");
      assert.equal((await scene.ask("GET", "/key")).text, "old");
      await complete(scene, "key", id, [part]);
      assert.equal((await scene.ask("GET", "/key")).text, "new");
    },
  ],
  [
    "If-None-Match: * completes only where nothing is",
    async (scene) => {
      await scene.put("key", "old");
      const id = await begin(scene, "key");
      const parts = [await putPart(scene, "key", id, 1, "new")];
      const headers = { "if-none-match": "*" };
      const answer = await askToComplete(scene, "key", id, parts, headers);
      assertError(answer, 412, "PreconditionFailed");
      assert.equal((await scene.ask("GET", "/key")).text, "old");
    },
  ],
  [
    "If-Match completes over the very object",
    async (scene) => {
      const etag = (await scene.put("key", "old")).headers["etag"]!;
      const id = await begin(scene, "key");
      const parts = [await putPart(scene, "key", id, 1, "new")];
      const wrong = await askToComplete(scene, "key", id, parts, { "if-match": '"other"' });
      assertError(wrong, 412, "PreconditionFailed");
      const right = await askToComplete(scene, "key", id, parts, { "if-match": etag });
      assert.equal(right.status, 200);
    },
  ],
  [
    "looks at the size of the whole where it is given",
    async (scene) => {
      const id = await begin(scene, "key");
      const parts = [await putPart(scene, "key", id, 1, "12345")];
      const wrong = { "x-amz-mp-object-size": "4" };
      assertError(await askToComplete(scene, "key", id, parts, wrong), 400, "InvalidRequest");
      const right = { "x-amz-mp-object-size": "5" };
      assert.equal((await askToComplete(scene, "key", id, parts, right)).status, 200);
    },
  ],
  [
    "GET and HEAD of a part give its bytes and the number of parts",
    async (scene) => {
      await upload(scene, "key", [PART, LAST]);
      const got = await scene.ask("GET", "/key?partNumber=2");
      assert.equal(`${got.status} ${got.text}`, "206 last");
      assert.equal(got.headers["x-amz-mp-parts-count"], "2");
      assert.equal(
        got.headers["content-range"],
        `bytes ${PART.length}-${WHOLE.length - 1}/${WHOLE.length}`,
      );
      const head = await scene.ask("HEAD", "/key?partNumber=1");
      assert.equal(head.headers["content-length"], String(PART.length));
      assertError(await scene.ask("GET", "/key?partNumber=3"), 416, "InvalidPartNumber");
    },
  ],
  [
    "a range goes across parts",
    async (scene) => {
      await upload(scene, "key", [PART, LAST]);
      const range = `bytes=${PART.length - 2}-${PART.length + 1}`;
      const got = await scene.ask("GET", "/key", { headers: { range } });
      assert.ok(got.body.equals(WHOLE.subarray(PART.length - 2, PART.length + 2)));
    },
  ],
  [
    "a composite checksum is that of the parts' checksums",
    async (scene) => {
      const id = await begin(scene, "key", { "x-amz-checksum-algorithm": "SHA256" });
      const sums = [PART, LAST].map((body) => digest("sha256", body));
      const parts = [];
      for (const [index, body] of [PART, LAST].entries()) {
        const headers = { "x-amz-checksum-sha256": sums[index]! };
        parts.push(await putPart(scene, "key", id, index + 1, body, headers));
      }
      const items = parts.map(
        ({ number, etag }, index) =>
          `<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag><ChecksumSHA256>${sums[index]}</ChecksumSHA256></Part>`,
      );
      const body = `<CompleteMultipartUpload>${items.join("")}</CompleteMultipartUpload>`;
      const answer = await scene.ask("POST", `/key?uploadId=${id}`, { body });
      const result = readResult(answer, "CompleteMultipartUploadResult");
      const all = Buffer.concat(sums.map((sum) => Buffer.from(sum, "base64")));
      assert.equal(result.get("ChecksumSHA256"), `${digest("sha256", all)}-2`);
      assert.equal(result.get("ChecksumType"), "COMPOSITE");
    },
  ],
  [
    "a checksum of the full object is that of its bytes, however they were cut",
    async (scene) => {
      const headers = {
        "x-amz-checksum-algorithm": "CRC32",
        "x-amz-checksum-type": "FULL_OBJECT",
      };
      const { result } = await upload(scene, "key", [PART, LAST], headers);
      assert.equal(result.get("ChecksumCRC32"), toBase64(crc32(WHOLE)));
      assert.equal(result.get("ChecksumType"), "FULL_OBJECT");
      const head = await scene.ask("HEAD", "/key", {
        headers: { "x-amz-checksum-mode": "ENABLED" },
      });
      assert.equal(head.headers["x-amz-checksum-crc32"], toBase64(crc32(WHOLE)));
    },
  ],
  [
    "refuses a checksum of the full object that does not fit",
    async (scene) => {
      const id = await begin(scene, "key", {
        "x-amz-checksum-algorithm": "CRC32",
        "x-amz-checksum-type": "FULL_OBJECT",
      });
      const parts = [await putPart(scene, "key", id, 1, "x")];
      const headers = { "x-amz-checksum-crc32": toBase64(crc32("y")) };
      assertError(await askToComplete(scene, "key", id, parts, headers), 400, "BadDigest");
    },
  ],
  [
    "InvalidPart for a part's checksum that does not fit",
    async (scene) => {
      const id = await begin(scene, "key", { "x-amz-checksum-algorithm": "SHA256" });
      const headers = { "x-amz-checksum-sha256": digest("sha256", "x") };
      const { etag } = await putPart(scene, "key", id, 1, "x", headers);
      const sum = digest("sha256", "y");
      const body = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${etag}</ETag><ChecksumSHA256>${sum}</ChecksumSHA256></Part></CompleteMultipartUpload>`;
      assertError(await scene.ask("POST", `/key?uploadId=${id}`, { body }), 400, "InvalidPart");
    },
  ],
  [
    "makes a new version in a versioned bucket",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const first = (await scene.put("key", "old")).headers["x-amz-version-id"];
      const { answer } = await upload(scene, "key", ["new"]);
      assert.ok(answer.headers["x-amz-version-id"] !== undefined);
      assert.equal((await scene.ask("GET", `/key?versionId=${first}`)).text, "old");
      assert.equal((await scene.ask("GET", "/key")).text, "new");
    },
  ],
  [
    "AccessDenied without a signature, and the upload goes on",
    async (scene) => {
      const id = await begin(scene, "key");
      const part = await putPart(scene, "key", id, 1, "x");
      const answer = await scene.ask("POST", `/key?uploadId=${id}`, {
        body: toList([part]),
        as: "nobody",
      });
      assertError(answer, 403, "AccessDenied");
      await complete(scene, "key", id, [part]);
    },
  ],
  [
    "InvalidPart for a part that is not there, also behind one that is too small; both name the part",
    async (scene) => {
      const id = await begin(scene, "key");
      const part = await putPart(scene, "key", id, 1, "small");
      const missing = { number: 7, etag: part.etag };
      const answer = await askToComplete(scene, "key", id, [part, missing]);
      assertError(answer, 400, "InvalidPart");
      assert.equal(answer.document.get("PartNumber"), "7");
      const last = await putPart(scene, "key", id, 2, "last");
      const small = await askToComplete(scene, "key", id, [part, last]);
      assertError(small, 400, "EntityTooSmall");
      assert.equal(small.document.get("PartNumber"), "1");
      assert.equal(small.document.get("ProposedSize"), "5");
      assert.equal(small.document.get("MinSizeAllowed"), String(5 * 1024 ** 2));
    },
  ],
  [
    "BadDigest for another type of checksum than the upload's, which goes on",
    async (scene) => {
      const id = await begin(scene, "key", { "x-amz-checksum-algorithm": "CRC32" });
      const part = await putPart(scene, "key", id, 1, "x");
      const ask = (type: string) =>
        askToComplete(scene, "key", id, [part], { "x-amz-checksum-type": type });
      assertError(await ask("FULL_OBJECT"), 400, "BadDigest");
      assertError(await ask("PARTIAL"), 400, "InvalidRequest");
      readResult(await ask("COMPOSITE"), "CompleteMultipartUploadResult");
    },
  ],
  [
    "tells when a lifecycle rule will remove the object, and when it would have ended the upload",
    async (scene) => {
      await scene.must("PUT", "?lifecycle", {
        body: "<LifecycleConfiguration><Rule><ID>r 1</ID><Status>Enabled</Status><Filter><Prefix>k</Prefix></Filter><Expiration><Days>3</Days></Expiration><AbortIncompleteMultipartUpload><DaysAfterInitiation>2</DaysAfterInitiation></AbortIncompleteMultipartUpload></Rule></LifecycleConfiguration>",
      });
      const begun = await scene.must("POST", "/key?uploads");
      const date = begun.headers["x-amz-abort-date"]!;
      const days = (Date.parse(date) - Date.now()) / 86_400_000;
      assert.ok(days > 2 && days <= 3, date);
      assert.equal(Date.parse(date) % 86_400_000, 0);
      assert.equal(begun.headers["x-amz-abort-rule-id"], "r%201");
      const id = begun.document.get("UploadId")!;
      const parts = await scene.must("GET", `/key?uploadId=${id}`);
      assert.equal(parts.headers["x-amz-abort-date"], date);
      const part = await putPart(scene, "key", id, 1, "x");
      const { answer } = await complete(scene, "key", id, [part]);
      assert.match(answer.headers["x-amz-expiration"] ?? "", /rule-id="r%201"/);
      const other = await scene.must("POST", "/other?uploads");
      assert.equal(other.headers["x-amz-abort-date"], undefined);
    },
  ],
  [
    "InvalidRequest for a checksum that is none, and for two, and the upload goes on",
    async (scene) => {
      const id = await begin(scene, "key", { "x-amz-checksum-algorithm": "SHA256" });
      const part = await putPart(scene, "key", id, 1, "x");
      const ask = (headers: Record<string, string>) =>
        askToComplete(scene, "key", id, [part], headers);
      const sum = `${digest("sha256", createHash("sha256").update("x").digest())}-1`;
      for (const headers of [
        { "x-amz-checksum-sha256": "bad" },
        { "x-amz-checksum-sha256": sum, "x-amz-checksum-crc32": "AAAAAA==" },
      ]) {
        assertError(await ask(headers), 400, "InvalidRequest");
      }
      const done = await ask({ "x-amz-checksum-sha256": sum });
      readResult(done, "CompleteMultipartUploadResult");
    },
  ],
  [
    "MalformedXML for a completion without a document, and the upload goes on",
    async (scene) => {
      const id = await begin(scene, "key");
      const part = await putPart(scene, "key", id, 1, "x");
      assertError(await scene.ask("POST", `/key?uploadId=${id}`), 400, "MalformedXML");
      await complete(scene, "key", id, [part]);
    },
  ],
);
