// Answers with a built file, in the encoding that the client prefers.
import { isNotModified } from "@platform/kernel/http";
import type { Encoding, PageFile } from "./bundle.ts";

/** 200 or 304 (RFC 9110 section 13.1.2) with these further fields. */
export function answerPageFile(
  file: PageFile,
  request: Headers,
  fields: Readonly<Record<string, string>>,
): Response {
  const common = {
    "Content-Type": file.type,
    "Cache-Control": file.isImmutable ? "public, max-age=31536000, immutable" : "no-cache",
    ETag: file.etag,
    Vary: "Accept-Encoding",
    ...fields,
  };
  if (isNotModified(request, file.etag))
    return new Response(null, { status: 304, headers: common });
  const { body, encoding } = chooseEncoding(file, request.get("accept-encoding") ?? "");
  return new Response(body, {
    headers: {
      ...common,
      "Content-Length": String(body.length),
      ...(encoding === undefined ? {} : { "Content-Encoding": encoding }),
    },
  });
}

function chooseEncoding(
  file: PageFile,
  accepted: string,
): { body: Uint8Array<ArrayBuffer>; encoding?: Encoding } {
  const names = accepted
    .toLowerCase()
    .split(",")
    .map((part) => part.trim().split(";"))
    .filter(([, weight = ""]) => !/^\s*q=0(?:\.0*)?\s*$/.test(weight))
    .map(([name]) => name);
  for (const [encoding, body] of file.encoded) {
    if (names.includes(encoding)) return { body, encoding };
  }
  return { body: file.body };
}
