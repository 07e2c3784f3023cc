// Invalid requests, independent of the operation: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
import assert from "node:assert/strict";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { assertEmpty, assertError, casesOf } from "../case.ts";

const UNBUILT = [
  ["PUT", "?analytics&id=a"],
  ["PUT", "?inventory&id=a"],
  ["PUT", "?intelligent-tiering&id=a"],
  ["PUT", "/key?id=a"],
  ["PUT", "?metadataTable"],
  ["PUT", "/key?unheard-of"],
  ["DELETE", "?unheard-of"],
] as const;

const MISPLACED = [
  ["PATCH", "/key"],
  ["POST", "/key"],
  ["PATCH", ""],
  ["POST", "?versioning"],
  ["DELETE", "?versioning"],
  ["DELETE", "/key?acl"],
] as const;

export const cases = casesOf(
  "Bad input",
  [
    "operations that are not built are NotImplemented and never taken for others",
    async ({ ask, put }) => {
      await put("key", "x");
      for (const [method, target] of UNBUILT) {
        assertError(await ask(method, target), 501, "NotImplemented");
      }
      assert.equal((await ask("GET", "/key")).text, "x");
    },
  ],
  [
    "MethodNotAllowed for methods that an object or a bucket does not have",
    async ({ ask }) => {
      for (const [method, target] of MISPLACED) {
        assertError(await ask(method, target), 405, "MethodNotAllowed");
      }
    },
  ],
  [
    "InvalidArgument for two subresources at once",
    async ({ ask, put }) => {
      await put("key", "x");
      assertError(await ask("GET", "/key?acl&tagging"), 400, "InvalidArgument");
      assertError(await ask("GET", "?versioning&policy"), 400, "InvalidArgument");
    },
  ],
  [
    "InvalidURI for a percent sign that two hexadecimal digits do not follow",
    async ({ client, bucket }) => {
      for (const key of ["%", "%zz", "a%2"]) {
        const answer = await client.send("GET", `/${bucket}/${key}`, { as: "nobody" });
        assertError(answer, 400, "InvalidURI");
      }
    },
  ],
  [
    "RequestHeaderSectionTooLarge for fields or a target beyond what is read",
    async ({ client, bucket }) => {
      const headers = { "x-amz-meta-a": "x".repeat(40_000) };
      const answer = await client.send("GET", `/${bucket}/key`, { as: "nobody", headers });
      assertError(answer, 400, "RequestHeaderSectionTooLarge");
      const text = await client.sendRaw(`GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`);
      assert.match(text, /^HTTP\/1\.1 400 [^]*<Code>RequestHeaderSectionTooLarge<\/Code>/);
    },
  ],
  [
    "what is no HTTP/1.1 is refused with an error document, and HEAD without one",
    async ({ client, bucket }) => {
      const refused: [request: string, status: number, code: string][] = [
        [`GET /${bucket} HTTP/1.1`, 400, "BadRequest"],
        [`GET /${bucket} HTTP/3.0\r\nHost: a`, 505, "BadRequest"],
        [`CONNECT ${bucket}:80 HTTP/1.1\r\nHost: ${bucket}:80`, 405, "MethodNotAllowed"],
        [`PUT /${bucket}/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip`, 501, "NotImplemented"],
        [`PUT /${bucket}/a HTTP/1.1\r\nHost: a\r\nContent-Length: x`, 400, "BadRequest"],
        [`GET /${bucket}/ü HTTP/1.1\r\nHost: a`, 400, "InvalidURI"],
      ];
      for (const [request, status, code] of refused) {
        const text = await client.sendRaw(`${request}\r\n\r\n`);
        assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} [^]*<Code>${code}</Code>`), request);
        assert.match(text, /^x-amz-request-id: [0-9A-F]{16}\r$/m);
      }
      const head = await client.sendRaw(`HEAD /${bucket}/% HTTP/1.1\r\nHost: a\r\n\r\n`);
      assert.match(head, /^HTTP\/1\.1 400 [^]*\r\n\r\n$/);
    },
  ],
  [
    "InvalidURI for a path that is no UTF-8",
    async ({ client, bucket }) => {
      for (const key of ["%C3", "%E2%28%A1", "%ED%A0%80"]) {
        const answer = await client.send("GET", `/${bucket}/${key}`, { as: "nobody" });
        assertError(answer, 400, "InvalidURI");
      }
    },
  ],
  [
    "MalformedXML for entities that are declared, whatever they would become",
    async ({ ask }) => {
      const bomb = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>';
      const file = '<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>';
      for (const head of [bomb, file]) {
        const body = `${head}<Tagging><TagSet><Tag><Key>&a;</Key><Value>v</Value></Tag></TagSet></Tagging>`;
        const answer = await ask("PUT", "?tagging", { body });
        assertError(answer, 400, "MalformedXML");
        assert.ok(!answer.text.includes("root:"));
      }
    },
  ],
  [
    "MalformedXML for what is nested too deeply, is no UTF-8, or does not end",
    async ({ ask }) => {
      const deep = "<a>".repeat(5_000);
      const bodies = [deep, Buffer.from([0x3c, 0x61, 0x3e, 0xff, 0xfe]), "<Tagging><TagSet>", "<"];
      for (const body of bodies) {
        assertError(await ask("PUT", "?tagging", { body }), 400, "MalformedXML");
      }
    },
  ],
  [
    "takes documents with a declaration, comments, CDATA, prefixes and character references",
    async ({ ask }) => {
      const body =
        '<?xml version="1.0" encoding="UTF-8"?>\n<!-- a --><s:Tagging xmlns:s="http://s3.amazonaws.com/doc/2006-03-01/"><s:TagSet><s:Tag><s:Key><![CDATA[k]]></s:Key><s:Value>&#118;</s:Value></s:Tag></s:TagSet></s:Tagging>\n';
      assert.equal((await ask("PUT", "?tagging", { body })).status, 204);
      const { document } = await ask("GET", "?tagging");
      assert.equal(document.get("TagSet/Tag/Key"), "k");
      assert.equal(document.get("TagSet/Tag/Value"), "v");
    },
  ],
  [
    "refuses a document above a megabyte",
    async ({ ask }) => {
      const body = `<Tagging>${" ".repeat(1_100_000)}</Tagging>`;
      assertError(await ask("PUT", "?tagging", { body }), 400, "MaxMessageLengthExceeded");
    },
  ],
  [
    "a body that breaks off leaves nothing",
    async ({ ask, client, bucket }) => {
      const target = client.presign("PUT", `/${bucket}/key`);
      const socket = connect(client.port, "127.0.0.1");
      socket.write(
        `PUT ${target} HTTP/1.1\r\nHost: ${client.host}\r\nContent-Length: 100\r\n\r\nhalf`,
      );
      await sleep(20);
      socket.destroy();
      assertError(await ask("GET", "/key"), 404, "NoSuchKey");
      assert.deepEqual((await ask("GET")).document.texts("Contents/Key"), []);
    },
  ],
  [
    "two lengths of one body are 400, and nothing is stored",
    async ({ ask, client, bucket }) => {
      const target = client.presign("PUT", `/${bucket}/key`);
      const answer = await client.sendRaw(
        `PUT ${target} HTTP/1.1\r\nHost: ${client.host}\r\nContent-Length: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab`,
      );
      assert.match(answer, /^HTTP\/1.1 400 /);
      assert.equal((await ask("HEAD", "/key")).status, 404);
    },
  ],
  [
    "two framings of one body are 400",
    async ({ client, bucket }) => {
      const target = client.presign("PUT", `/${bucket}/key`);
      const answer = await client.sendRaw(
        `PUT ${target} HTTP/1.1\r\nHost: ${client.host}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n`,
      );
      assert.match(answer, /^HTTP\/1.1 400 /);
    },
  ],
  [
    "gives each request an id of its own",
    async ({ ask }) => {
      const answers = await Promise.all(Array.from({ length: 10 }, () => ask("HEAD")));
      assert.equal(new Set(answers.map(({ headers }) => headers["x-amz-request-id"])).size, 10);
    },
  ],
  [
    "answers Date and Server, and nothing of the machine",
    async ({ ask }) => {
      const { headers, text } = await ask("GET", "/key");
      assert.ok(Math.abs(Date.parse(headers["date"]!) - Date.now()) < 60_000);
      assert.equal(headers["server"], "platform-vault");
      assert.ok(!/\/tmp|sqlite|\.ts\b/i.test(text));
    },
  ],
  [
    "keeps a connection after an error, the body that nobody wanted read away",
    async ({ client, bucket }) => {
      const target = client.presign("PUT", `/${bucket}-not/key`);
      const put = `PUT ${target} HTTP/1.1\r\nHost: ${client.host}\r\nContent-Length: 5\r\n\r\nhello`;
      const get = `GET /healthz HTTP/1.1\r\nHost: ${client.host}\r\nConnection: close\r\n\r\n`;
      const answer = await client.sendRaw(put + get);
      assert.match(answer, /^HTTP\/1.1 404 [\s\S]*NoSuchBucket[\s\S]*HTTP\/1.1 200 /);
    },
  ],
  [
    "/healthz needs no signature, and with one is a bucket like any other",
    async ({ client }) => {
      const probe = await client.send("GET", "/healthz", { as: "nobody" });
      assert.equal(probe.status, 200);
      assert.equal((JSON.parse(probe.text) as { status: string }).status, "UP");
      assertError(await client.send("GET", "/healthz"), 404, "NoSuchBucket");
    },
  ],
  [
    "what an error repeats of the request is escaped",
    async ({ client, bucket }) => {
      const answer = await client.send("GET", `/${bucket}/a&b'c`);
      assertError(answer, 404, "NoSuchKey");
      assert.equal(answer.document.get("Key"), "a&b'c");
    },
  ],
  [
    "control characters of keys come back escaped",
    async ({ ask, put }) => {
      await put("a%01b", "x");
      assert.equal((await ask("GET", "/a%01b")).text, "x");
      assert.match((await ask("GET")).text, /a&#x1;b/);
      const encoded = await ask("GET", "?encoding-type=url");
      assert.equal(encoded.document.get("Contents/Key"), "a%01b");
    },
  ],
  [
    "answers HTTP/1.0",
    async ({ client, bucket, put }) => {
      await put("key", "hello");
      const target = client.presign("GET", `/${bucket}/key`);
      const answer = await client.sendRaw(`GET ${target} HTTP/1.0\r\nHost: ${client.host}\r\n\r\n`);
      assert.match(answer, /^HTTP\/1\.[01] 200 [\s\S]*hello$/);
    },
  ],
  [
    "an error of HEAD has no body",
    async ({ ask }) => assertEmpty(await ask("HEAD", "/key?acl"), 405),
  ],
  [
    "MethodNotAllowed names the methods that there are",
    async ({ ask }) => {
      for (const [method, target, allowed, type] of [
        ["PATCH", "/key", "DELETE, GET, HEAD, PUT", "OBJECT"],
        ["PATCH", "/key?acl", "GET, PUT", "OBJECT"],
        ["PUT", "/key?uploads", "POST", "OBJECT"],
        ["POST", "?versioning", "GET, PUT", "BUCKET"],
      ] as const) {
        const answer = await ask(method, target);
        const names = answer.headers["allow"]?.split(", ").sort().join(", ");
        assert.equal(names, allowed);
        assert.equal(answer.document.get("Method"), method);
        assert.equal(answer.document.get("ResourceType"), type);
      }
    },
  ],
  [
    "parameters that begin with x- are notes for the access log and mean nothing",
    async ({ ask, must }) => {
      await must("PUT", "/key?x-user=joe", { body: "x" });
      assert.equal((await ask("GET", "/key?x-user=joe&x-note")).text, "x");
      assertEmpty(await ask("DELETE", "/key?x-user=joe"), 204);
    },
  ],
  [
    "MissingRequestBodyError for a configuration without a body",
    async ({ ask }) => {
      const names =
        "cors encryption lifecycle notification ownershipControls publicAccessBlock tagging versioning website";
      for (const name of names.split(" ")) {
        assertError(await ask("PUT", `?${name}`), 400, "MissingRequestBodyError");
      }
      assertError(await ask("PUT", "/key?tagging"), 400, "MissingRequestBodyError");
      assertError(await ask("POST", "?delete"), 400, "MissingRequestBodyError");
    },
  ],
  [
    "MalformedXML for elements that a configuration does not have: they are never ignored",
    async (scene) => {
      const locked = await scene.createBucket({ "x-amz-bucket-object-lock-enabled": "true" });
      const index = "<IndexDocument><Suffix>i</Suffix></IndexDocument>";
      const bad = [
        ["versioning", "VersioningConfiguration", "<Status>Enabled</Status><X/>"],
        ["tagging", "Tagging", "<TagSet><X/></TagSet>"],
        ["tagging", "Tagging", "<TagSet><Tag><Key>a</Key><Value>b</Value><X/></Tag></TagSet>"],
        [
          "ownershipControls",
          "OwnershipControls",
          "<Rule><ObjectOwnership>ObjectWriter</ObjectOwnership><X/></Rule>",
        ],
        [
          "encryption",
          "ServerSideEncryptionConfiguration",
          "<Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault><X/></Rule>",
        ],
        ["website", "WebsiteConfiguration", index.replace("<S", "<X/><S")],
        ["website", "WebsiteConfiguration", `${index}<RoutingRules><X/></RoutingRules>`],
        [
          "object-lock",
          "ObjectLockConfiguration",
          "<ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days><X/></DefaultRetention></Rule>",
        ],
      ];
      for (const [name, root, inner] of bad) {
        const body = `<${root}>${inner}</${root}>`;
        const answer = await scene.client.send("PUT", `/${locked}?${name}`, { body });
        assertError(answer, 400, "MalformedXML");
      }
    },
  ],
);
