// Concurrent requests: https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel
import assert from "node:assert/strict";
import { assertEmpty, casesOf, type Scene } from "../case.ts";
import { askToComplete, begin, putPart } from "../upload.ts";

const SIZE = 400_000;

async function readLetter({ ask }: Scene, target: string): Promise<string> {
  const { body, headers } = await ask("GET", target);
  assert.equal(body.length, SIZE);
  const letter = String.fromCharCode(body[0]!);
  assert.ok(body.equals(Buffer.alloc(SIZE, letter)), "the bytes of two puts are mixed");
  assert.equal(headers["content-length"], String(SIZE));
  return letter;
}

export const cases = casesOf(
  "Requests at the same time",
  [
    "a reader gets one put's bytes, never a mixture",
    async (scene) => {
      await scene.put("key", Buffer.alloc(SIZE, "a"));
      const puts = ["b", "c", "d", "e", "f"].map((letter) =>
        scene.put("key", Buffer.alloc(SIZE, letter)),
      );
      const reads = Array.from({ length: 12 }, () => readLetter(scene, "/key"));
      for (const letter of await Promise.all(reads)) assert.ok("abcdef".includes(letter));
      await Promise.all(puts);
      assert.notEqual(await readLetter(scene, "/key"), "a");
    },
  ],
  [
    "of puts at the same time one is the object in the end, whole",
    async (scene) => {
      const letters = ["a", "b", "c", "d", "e", "f", "g", "h"];
      const answers = await Promise.all(
        letters.map((letter) => scene.put("key", Buffer.alloc(SIZE, letter))),
      );
      const letter = await readLetter(scene, "/key");
      const { headers } = await scene.ask("HEAD", "/key");
      assert.equal(headers["etag"], answers[letters.indexOf(letter)]!.headers["etag"]);
    },
  ],
  [
    "If-Match lets one of several writers through for each state",
    async ({ ask, put }) => {
      const etag = (await put("key", "start")).headers["etag"]!;
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          ask("PUT", "/key", { body: `writer ${index}`, headers: { "if-match": etag } }),
        ),
      );
      assert.equal(answers.filter(({ status }) => status === 200).length, 1);
      assert.equal(answers.filter(({ status }) => status === 412 || status === 409).length, 7);
    },
  ],
  [
    "a counter that writers raise by If-Match loses nothing",
    async ({ ask, put }) => {
      await put("counter", "0");
      const raise = async (): Promise<void> => {
        for (;;) {
          const { text, headers } = await ask("GET", "/counter");
          const answer = await ask("PUT", "/counter", {
            body: String(Number(text) + 1),
            headers: { "if-match": headers["etag"]! },
          });
          if (answer.status === 200) return;
        }
      };
      await Promise.all(Array.from({ length: 6 }, raise));
      assert.equal((await ask("GET", "/counter")).text, "6");
    },
  ],
  [
    "an upload is completed once, however many complete it",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const id = await begin(scene, "key");
      const parts = [await putPart(scene, "key", id, 1, "x")];
      const answers = await Promise.all(
        Array.from({ length: 4 }, () => askToComplete(scene, "key", id, parts)),
      );
      assert.ok(answers.every(({ status }) => status === 200 || status === 404));
      const { document } = await scene.ask("GET", "?versions");
      assert.equal(document.all("Version").length, 1);
    },
  ],
  [
    "an upload that is completed and aborted at once is one of both",
    async (scene) => {
      const id = await begin(scene, "key");
      const parts = [await putPart(scene, "key", id, 1, "x")];
      const [done, aborted] = await Promise.all([
        askToComplete(scene, "key", id, parts),
        scene.ask("DELETE", `/key?uploadId=${id}`),
      ]);
      const { status } = await scene.ask("HEAD", "/key");
      assert.equal(status, done.status === 200 ? 200 : 404);
      assert.ok(done.status === 200 || aborted.status === 204);
    },
  ],
  [
    "a bucket is made once, however many make it",
    async ({ client, bucket }) => {
      // In us-east-1, creating your own bucket again succeeds.
      const body = `<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><LocationConstraint>eu-central-1</LocationConstraint></CreateBucketConfiguration>`;
      const answers = await Promise.all(
        Array.from({ length: 4 }, () => client.send("PUT", `/${bucket}-2`, { body })),
      );
      assert.equal(answers.filter(({ status }) => status === 200).length, 1);
      assert.equal(answers.filter(({ status }) => status === 409).length, 3);
    },
  ],
  [
    "a bucket is never deleted with an object in it",
    async ({ ask, client, bucket }) => {
      await client.send("PUT", `/${bucket}-2`);
      const [deleted, put] = await Promise.all([
        client.send("DELETE", `/${bucket}-2`),
        client.send("PUT", `/${bucket}-2/key`, { body: "x" }),
      ]);
      const isThere = (await client.send("HEAD", `/${bucket}-2`)).status === 200;
      assert.equal(isThere, deleted.status === 409);
      assert.equal(put.status, isThere ? 200 : 404);
      assertEmpty(await ask("HEAD"), 200);
    },
  ],
);
