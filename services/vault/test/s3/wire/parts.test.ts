// Headers, XML, forms and unsigned chunks.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { AwsChunkedDecoder } from "../../../src/s3/sigv4/aws-chunked.ts";
import { computeChecksum } from "../../../src/hash/checksum.ts";
import { readChecksumClaim } from "../../../src/s3/wire/checksum.ts";
import { RequestFields } from "../../../src/s3/wire/fields.ts";
import { FormReader, readBoundary } from "../../../src/s3/wire/form-data.ts";
import { escapeXml, parseXml, tag, xmlDocument } from "../../../src/s3/wire/xml.ts";

describe("x-store- names", () => {
  test("are found under the x-amz- name and are listed among those to be signed", () => {
    const fields = new RequestFields([
      ["X-Store-Meta-A", "1"],
      ["x-amz-acl", "private"],
    ]);
    assert.equal(fields.get("x-amz-meta-a"), "1");
    assert.deepEqual(fields.extensionNames, ["x-store-meta-a", "x-amz-acl"]);
  });

  test("may repeat the x-amz- name's value but not contradict it", () => {
    const both = (value: string): RequestFields =>
      new RequestFields([
        ["x-amz-tagging", "a=1"],
        ["x-store-tagging", value],
      ]);
    assert.equal(both("a=1").get("x-amz-tagging"), "a=1");
    both("a=1").requireConsistent();
    assert.throws(() => both("a=2").requireConsistent(), { code: "InvalidRequest" });
  });

  test("are folded in trailers as well", () => {
    const fields = new RequestFields([["x-amz-checksum-crc32", "AAAAAA=="]]);
    assert.throws(() => fields.addTrailer("x-store-checksum-crc32", "BBBBBA=="));
  });

  test("added by a trailer or a presigned URL are not among the headers as sent", () => {
    const fields = new RequestFields([["Host", "localhost"]]);
    fields.addParameter("x-amz-acl", "private");
    fields.addParameter("host", "elsewhere");
    fields.addTrailer("x-store-checksum-crc32", "AAAAAA==");
    assert.equal(fields.get("x-amz-acl"), "private");
    assert.equal(fields.get("host"), "localhost");
    assert.equal(fields.get("x-amz-checksum-crc32"), "AAAAAA==");
    assert.equal(fields.getRaw("x-amz-acl"), undefined);
    assert.equal(fields.getRaw("x-amz-checksum-crc32"), undefined);
    assert.equal(fields.getRaw("host"), "localhost");
  });
});

describe("XML from clients", () => {
  const parse = (text: string) => parseXml(Buffer.from(text), "A");

  test("is read with namespaces, CDATA, comments and entities", () => {
    const root = parse(
      '<?xml version="1.0"?><!-- x --><s:A xmlns:s="u"><B a="1&amp;2">x&lt;&#x41;&#66;</B><C><![CDATA[<&]]></C><D/></s:A>\n',
    );
    assert.equal(root.getText("B"), "x<AB");
    assert.equal(root.find("B")!.attributes.get("a"), "1&2");
    assert.equal(root.getText("C"), "<&");
    assert.equal(root.getText("D"), "");
  });

  const BAD: [what: string, text: string][] = [
    ["a DTD", '<!DOCTYPE A [<!ENTITY x "y">]><A>&x;</A>'],
    ["an entity bomb", "<A>&lol;</A>"],
    ["a forbidden reference", "<A>&#0;</A>"],
    ["a control character", "<A>\u0001</A>"],
    ["another root", "<B/>"],
    ["an element that does not end", "<A><B></A>"],
    ["two roots", "<A/><A/>"],
    ["white space alone", " "],
    ["JSON", "{}"],
    ["a processing instruction", "<A><?php x ?></A>"],
    ["an attribute without quotes", "<A b=c/>"],
    ["depth", "<A>".repeat(100) + "</A>".repeat(100)],
    ["elements without end", `<A>${"<B/>".repeat(10_001)}</A>`],
  ];
  for (const [what, text] of BAD) {
    test(`with ${what} is refused`, () => {
      assert.throws(() => parse(text), { code: "MalformedXML" });
    });
  }

  test("that is not UTF-8 is refused", () => {
    assert.throws(() => parseXml(Buffer.from([0x3c, 0x41, 0xff]), "A"), { code: "MalformedXML" });
  });

  test("is missing where there is nothing", () => {
    assert.throws(() => parse(""), { code: "MissingRequestBodyError" });
  });

  test("is parsed or refused with MalformedXML, for any input", () => {
    const piece = fc.constantFrom(
      "<A>",
      "</A>",
      "<B x='1'>",
      "</B>",
      "<!--",
      "-->",
      "&lt;",
      "&",
      "x",
      "<![CDATA[",
      "]]>",
      "<",
      ">",
    );
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 30 }), (pieces) => {
        try {
          parse(pieces.join(""));
        } catch (error) {
          assert.equal((error as { code?: string }).code, "MalformedXML");
        }
      }),
    );
  });

  test("any text survives formatting and parsing", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }).filter((text) => !FORBIDDEN.test(text)),
        (text) => {
          const document = xmlDocument("A", tag("B", text));
          assert.equal(parseXml(Buffer.from(document), "A").getText("B"), text);
        },
      ),
    );
    assert.equal(escapeXml("a\u0001b"), "a&#x1;b");
  });
});

// oxlint-disable-next-line no-control-regex -- XML forbids these characters
const FORBIDDEN = /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\p{Surrogate}/u;

describe("a posted form", () => {
  const boundary = readBoundary("multipart/form-data; boundary=xyz");
  const text =
    '--xyz\r\nContent-Disposition: form-data; name="key"\r\n\r\na/${filename}\r\n--xyz\r\nContent-Disposition: form-data; name="empty"\r\n\r\n\r\n--xyz\r\nContent-Disposition: form-data; name="file"; filename="p\\"q.png"\r\nContent-Type: image/png\r\n\r\n\r\n--xy\r\nbytes\r\n--xyz\r\nContent-Disposition: form-data; name="submit"\r\n\r\nx\r\n--xyz--\r\n';

  test("is parsed identically in chunks of any size", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: text.length }), (pieceBytes) => {
        const reader = new FormReader(boundary);
        const out: Buffer[] = [];
        const bytes = Buffer.from(text);
        for (let at = 0; at < bytes.length; at += pieceBytes) {
          reader.execute(bytes.subarray(at, at + pieceBytes), (data) =>
            out.push(Buffer.from(data)),
          );
        }
        assert.ok(reader.done);
        assert.deepEqual(
          [...reader.form],
          [
            ["key", "a/${filename}"],
            ["empty", ""],
          ],
        );
        assert.deepEqual(reader.file, { fileName: 'p"q.png', contentType: "image/png" });
        assert.equal(Buffer.concat(out).toString(), "\r\n--xy\r\nbytes");
      }),
    );
  });

  test("without a boundary, without a file, or with too many fields is refused", () => {
    assert.throws(() => readBoundary("multipart/form-data"), { code: "MalformedPOSTRequest" });
    const take = (body: string): void => new FormReader("xyz").execute(Buffer.from(body), () => {});
    assert.throws(() => take("--xyz--\r\n"), { code: "MalformedPOSTRequest" });
    const field = (size: number): string =>
      `--xyz\r\nContent-Disposition: form-data; name="a"\r\n\r\n${"x".repeat(size)}`;
    assert.throws(() => take(field(70_000)), { code: "MaxPostPreDataLengthExceededError" });
  });
});

describe("unsigned chunks with a trailing checksum", () => {
  const decode = (text: string, trailerNames: string[], decodedLength: number): string => {
    const decoder = new AwsChunkedDecoder({ trailerNames, decodedLength });
    let out = "";
    for (const byte of Buffer.from(text)) {
      decoder.execute(Buffer.from([byte]), (data) => (out += data.toString()));
    }
    decoder.finish();
    return out;
  };
  const crc = "x-amz-checksum-crc32";

  test("yield only their data", () => {
    assert.equal(decode(`5\r\nhello\r\n0\r\n${crc}:NhCmhg==\r\n\r\n`, [crc], 5), "hello");
    assert.equal(decode("5\r\nhello\r\n0\r\n\r\n", [], 5), "hello");
  });

  const BAD: [what: string, text: string, names: string[], code: string][] = [
    ["a chunk head that never ends", "0".repeat(500), [], "InvalidRequest"],
    ["a size that is not a number", "x\r\nhello\r\n0\r\n\r\n", [], "InvalidRequest"],
    ["a chunk longer than its size", "4\r\nhello\r\n0\r\n\r\n", [], "InvalidRequest"],
    ["more data than was declared", "6\r\nhello!\r\n0\r\n\r\n", [], "IncompleteBody"],
    ["less data than was declared", "4\r\nhell\r\n0\r\n\r\n", [], "IncompleteBody"],
    [
      "a trailer that was not announced",
      `5\r\nhello\r\n0\r\n${crc}:x\r\n\r\n`,
      [],
      "MalformedTrailerError",
    ],
    ["a trailer that is missing", "5\r\nhello\r\n0\r\n\r\n", [crc], "MalformedTrailerError"],
    [
      "a trailer that never ends",
      `5\r\nhello\r\n0\r\n${crc}:${"x".repeat(9000)}`,
      [crc],
      "InvalidRequest",
    ],
    ["bare line feeds", "5\nhello\n0\n\n", [], "InvalidRequest"],
  ];
  for (const [what, text, names, code] of BAD) {
    test(`with ${what} are refused`, () => {
      assert.throws(() => decode(text, names, 5), { code });
    });
  }
});

describe("checksums", () => {
  // The check values of the catalogue of parametrised CRC algorithms, for "123456789".
  const VALUES = {
    CRC32: Buffer.from("cbf43926", "hex"),
    CRC32C: Buffer.from("e3069283", "hex"),
    CRC64NVME: Buffer.from("ae8b14860a799888", "hex"),
  } as const;
  for (const [algorithm, value] of Object.entries(VALUES)) {
    test(`${algorithm} has its published check value`, () => {
      const computed = computeChecksum(algorithm as keyof typeof VALUES, Buffer.from("123456789"));
      assert.deepEqual(computed, value);
    });
  }

  test("only one may be sent, and it must be a valid value", () => {
    const read = (headers: Record<string, string>) =>
      readChecksumClaim(new RequestFields(Object.entries(headers)), []);
    assert.deepEqual(read({ "x-amz-checksum-crc32": "NhCmhg==" }), {
      algorithm: "CRC32",
      value: "NhCmhg==",
    });
    assert.throws(() => read({ "x-amz-checksum-crc32": "short" }));
    assert.throws(() =>
      read({ "x-amz-checksum-crc32": "NhCmhg==", "x-amz-checksum-crc32c": "NhCmhg==" }),
    );
    assert.equal(read({}), undefined);
  });
});
