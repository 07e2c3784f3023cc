// Signatures published in the S3 API reference ("Authenticating Requests (AWS Signature Version 4)").
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createManualClock } from "@platform/kernel/time";
import {
  encodeAwsChunked,
  hashHex,
  presignTarget,
  signPolicy,
  signRequest,
} from "@platform/s3/signature";
import { AwsChunkedDecoder } from "../../../src/s3/sigv4/aws-chunked.ts";
import {
  readFormClaim,
  readQuery,
  SignatureVerifier,
  type SignedRequest,
} from "../../../src/s3/sigv4/index.ts";
import { RequestFields } from "../../../src/s3/wire/fields.ts";

const accessKey = "AKIAIOSFODNN7EXAMPLE";
const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const identity = { accessKey, secret, region: "us-east-1" };
const timeMs = Date.UTC(2013, 4, 24);
const host = "examplebucket.s3.amazonaws.com";
const EMPTY = hashHex("");

const HEADER_EXAMPLES = [
  {
    name: "GET Object",
    method: "GET",
    target: "/test.txt",
    headers: { host, range: "bytes=0-9" },
    payloadHash: EMPTY,
    signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  },
  {
    name: "PUT Object",
    method: "PUT",
    target: "/test$file.text",
    headers: {
      host,
      date: "Fri, 24 May 2013 00:00:00 GMT",
      "x-amz-date": "20130524T000000Z",
      "x-amz-storage-class": "REDUCED_REDUNDANCY",
    },
    payloadHash: hashHex("Welcome to Amazon S3."),
    signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
  },
  {
    name: "GET Bucket Lifecycle",
    method: "GET",
    target: "/?lifecycle",
    headers: { host },
    payloadHash: EMPTY,
    signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
  },
  {
    name: "GET Bucket (List Objects)",
    method: "GET",
    target: "/?max-keys=2&prefix=J",
    headers: { host },
    payloadHash: EMPTY,
    signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  },
];

function createVerifier(nowMs = timeMs, secrets: readonly [string, ...string[]] = [secret]) {
  const [present, ...formerSecrets] = secrets;
  const known = { secret: present, formerSecrets, owner: "root" };
  return new SignatureVerifier({
    clock: createManualClock(nowMs),
    findKey: (key) => (key === accessKey ? known : undefined),
  });
}

function toRequest(method: string, target: string, headers: Record<string, string>): SignedRequest {
  const [rawPath, query = ""] = target.split("?");
  return {
    method,
    rawPath: rawPath!,
    query: readQuery(query),
    fields: new RequestFields(Object.entries(headers)),
  };
}

describe("the published header examples", () => {
  for (const example of HEADER_EXAMPLES) {
    test(`${example.name} is signed and accepted as published`, () => {
      const signed = signRequest(identity, { ...example, timeMs });
      assert.equal(signed.signature, example.signature);
      const request = toRequest(example.method, example.target, signed.headers);
      const result = createVerifier().verify(request);
      assert.equal(result.kind === "signed" && result.owner, "root");
    });
  }
});

test("while a key gets another secret, both sign, in headers and addresses", () => {
  const verifiers = [createVerifier(timeMs, ["next", secret]), createVerifier(timeMs, ["next"])];
  const [both, ended] = verifiers as [SignatureVerifier<string>, SignatureVerifier<string>];
  for (const ownSecret of [secret, "next", secret]) {
    const signer = { ...identity, secret: ownSecret };
    const [example] = HEADER_EXAMPLES;
    const { headers } = signRequest(signer, { ...example!, timeMs });
    const target = presignTarget(signer, {
      method: "GET",
      target: "/test.txt",
      headers: { host },
      timeMs,
      expiresSeconds: 60,
    });
    for (const request of [
      toRequest(example!.method, example!.target, headers),
      toRequest("GET", target, { host }),
    ]) {
      assert.equal(both.verify(request).kind, "signed");
      if (ownSecret === "next") ended.verify(request);
      else assert.throws(() => ended.verify(request), { code: "SignatureDoesNotMatch" });
    }
  }
});

test("a key that was used is refused as soon as its secret is changed or it is removed", () => {
  const keys = new Map([[accessKey, secret]]);
  const verifier = new SignatureVerifier({
    clock: createManualClock(timeMs),
    findKey: (key) => {
      const found = keys.get(key);
      return found === undefined ? undefined : { secret: found, owner: "root" };
    },
  });
  const make = (ownSecret: string) => {
    const signer = { ...identity, secret: ownSecret };
    const target = presignTarget(signer, {
      method: "GET",
      target: "/test.txt",
      headers: { host },
      timeMs,
      expiresSeconds: 60,
    });
    return toRequest("GET", target, { host });
  };
  for (const request of [make(secret), make(secret)]) verifier.verify(request);
  keys.set(accessKey, "another secret");
  assert.throws(() => verifier.verify(make(secret)), { code: "SignatureDoesNotMatch" });
  verifier.verify(make("another secret"));
  keys.delete(accessKey);
  assert.throws(() => verifier.verify(make("another secret")), { code: "InvalidAccessKeyId" });
  keys.set(accessKey, secret);
  verifier.verify(make(secret));
});

describe("the published presigned example", () => {
  const target = presignTarget(identity, {
    method: "GET",
    target: "/test.txt",
    headers: { host },
    timeMs,
    expiresSeconds: 86_400,
  });

  test("it is signed and accepted as published", () => {
    assert.match(
      target,
      /X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404$/,
    );
    const result = createVerifier().verify(toRequest("GET", target, { host }));
    assert.equal(result.kind, "signed");
  });

  test("it is accepted through a trusted proxy that reports the client's Host", () => {
    const request = toRequest("GET", target, { host: "inner:9000" });
    assert.throws(() => createVerifier().verify(request), { code: "SignatureDoesNotMatch" });
    const result = createVerifier().verify({ ...request, forwardedHost: host });
    assert.equal(result.kind, "signed");
  });

  test("it is refused a second after its expiry", () => {
    const late = createVerifier(timeMs + 86_400_000 + 1);
    assert.throws(() => late.verify(toRequest("GET", target, { host })), {
      code: "AccessDenied",
      message: "Request has expired",
    });
  });
});

describe("the published chunked upload of 66 560 bytes", () => {
  const body = Buffer.alloc(66_560, "a");
  const head = {
    method: "PUT",
    target: "/examplebucket/chunkObject.txt",
    headers: {
      host: "s3.amazonaws.com",
      "x-amz-storage-class": "REDUCED_REDUNDANCY",
      "content-encoding": "aws-chunked",
      "x-amz-decoded-content-length": "66560",
      "content-length": "66824",
    },
    payloadHash: "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
    timeMs,
  };
  const signed = signRequest(identity, head);
  const encoded = encodeAwsChunked(body, 65_536, signed);

  test("head and chunks are signed as published", () => {
    assert.equal(
      signed.signature,
      "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
    );
    assert.equal(encoded.length, 66_824);
    const signatures = [...encoded.toString("latin1").matchAll(/chunk-signature=(\w+)/g)];
    assert.deepEqual(
      signatures.map((match) => match[1]),
      [
        "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
      ],
    );
  });

  const decode = (bytes: Buffer, pieceBytes: number): Buffer => {
    const result = createVerifier().verify(toRequest(head.method, head.target, signed.headers));
    assert.equal(result.payload.kind, "signed-chunks");
    const decoder = new AwsChunkedDecoder({
      seed: result.payload.kind === "signed-chunks" ? result.payload.seed : undefined,
      trailerNames: [],
      decodedLength: body.length,
    });
    const out: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      decoder.execute(bytes.subarray(at, at + pieceBytes), (data) => out.push(data));
    }
    decoder.finish();
    return Buffer.concat(out);
  };

  for (const pieceBytes of [1, 7, 1_000, 66_824]) {
    test(`it is decoded to its data in chunks of ${pieceBytes} bytes`, () => {
      assert.ok(decode(encoded, pieceBytes).equals(body));
    });
  }

  test("one changed byte of data is detected", () => {
    const changed = Buffer.from(encoded);
    changed[70_000 - 4_000] = 0x62;
    assert.throws(() => decode(changed, 4_096), { code: "SignatureDoesNotMatch" });
  });

  test("a body that stops early, or continues after its end, is refused", () => {
    assert.throws(() => decode(encoded.subarray(0, 66_700), 4_096), { code: "IncompleteBody" });
    const longer = Buffer.concat([encoded, Buffer.from("x")]);
    assert.throws(() => decode(longer, 4_096), { code: "InvalidRequest" });
  });
});

test("the published chunked upload with a trailing checksum is signed and read as published", () => {
  const body = Buffer.alloc(66_560, "a");
  const headers = {
    host: "s3.amazonaws.com",
    "x-amz-storage-class": "REDUCED_REDUNDANCY",
    "content-encoding": "aws-chunked",
    "x-amz-decoded-content-length": "66560",
    "x-amz-trailer": "x-amz-checksum-crc32c",
  };
  const signed = signRequest(identity, {
    method: "PUT",
    target: "/examplebucket/chunkObject.txt",
    headers,
    payloadHash: "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
    timeMs,
  });
  assert.equal(
    signed.signature,
    "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
  );
  const encoded = encodeAwsChunked(body, 65_536, signed, [["x-amz-checksum-crc32c", "sOO8/Q=="]]);
  assert.match(
    encoded.toString("latin1"),
    /x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n$/,
  );
  const decoder = new AwsChunkedDecoder({
    seed: signed,
    trailerNames: ["x-amz-checksum-crc32c"],
    decodedLength: body.length,
  });
  const out: Buffer[] = [];
  decoder.execute(encoded, (data) => out.push(data));
  assert.deepEqual(decoder.finish(), [["x-amz-checksum-crc32c", "sOO8/Q=="]]);
  assert.ok(Buffer.concat(out).equals(body));
});

test("the published form upload's policy is signed as published", () => {
  const policy =
    "eyAiZXhwaXJhdGlvbiI6ICIyMDE1LTEyLTMwVDEyOjAwOjAwLjAwMFoiLA0KICAiY29uZGl0aW9ucyI6IFsNCiAgICB7ImJ1Y2tldCI6ICJzaWd2NGV4YW1wbGVidWNrZXQifSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRrZXkiLCAidXNlci91c2VyMS8iXSwNCiAgICB7ImFjbCI6ICJwdWJsaWMtcmVhZCJ9LA0KICAgIHsic3VjY2Vzc19hY3Rpb25fcmVkaXJlY3QiOiAiaHR0cDovL3NpZ3Y0ZXhhbXBsZWJ1Y2tldC5zMy5hbWF6b25hd3MuY29tL3N1Y2Nlc3NmdWxfdXBsb2FkLmh0bWwifSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRDb250ZW50LVR5cGUiLCAiaW1hZ2UvIl0sDQogICAgeyJ4LWFtei1tZXRhLXV1aWQiOiAiMTQzNjUxMjM2NTEyNzQifSwNCiAgICB7IngtYW16LXNlcnZlci1zaWRlLWVuY3J5cHRpb24iOiAiQUVTMjU2In0sDQogICAgWyJzdGFydHMtd2l0aCIsICIkeC1hbXotbWV0YS10YWciLCAiIl0sDQoNCiAgICB7IngtYW16LWNyZWRlbnRpYWwiOiAiQUtJQUlPU0ZPRE5ON0VYQU1QTEUvMjAxNTEyMjkvdXMtZWFzdC0xL3MzL2F3czRfcmVxdWVzdCJ9LA0KICAgIHsieC1hbXotYWxnb3JpdGhtIjogIkFXUzQtSE1BQy1TSEEyNTYifSwNCiAgICB7IngtYW16LWRhdGUiOiAiMjAxNTEyMjlUMDAwMDAwWiIgfQ0KICBdDQp9";
  const fields = signPolicy(
    identity,
    Buffer.from(policy, "base64").toString(),
    Date.UTC(2015, 11, 29),
  );
  assert.equal(fields["policy"], policy);
  assert.equal(
    fields["x-amz-signature"],
    "8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e",
  );
  const claim = readFormClaim(new Map(Object.entries(fields)))!;
  assert.equal(createVerifier().verifyPolicy(claim).owner, "root");
  assert.equal(createVerifier(timeMs, ["next", secret]).verifyPolicy(claim).owner, "root");
  assert.throws(() => createVerifier(timeMs, ["next"]).verifyPolicy(claim), {
    code: "SignatureDoesNotMatch",
  });
});
