// Multipart uploads, for several operations.
import { readResult, type Scene } from "./case.ts";

/** Minimum size of all parts except the last. */
export const PART = Buffer.alloc(5 * 1024 ** 2, "part;");

/** A part as in its response. */
export interface Part {
  number: number;
  etag: string;
}

/** Creates an upload; returns its id. */
export async function begin(
  { must }: Scene,
  key: string,
  headers: Record<string, string> = {},
): Promise<string> {
  return (await must("POST", `/${key}?uploads`, { headers })).document.get("UploadId")!;
}

/** Uploads a part. */
export async function putPart(
  { must }: Scene,
  key: string,
  id: string,
  number: number,
  body: string | Buffer,
  headers: Record<string, string> = {},
): Promise<Part> {
  const target = `/${key}?partNumber=${number}&uploadId=${id}`;
  const answer = await must("PUT", target, { body, headers });
  return { number, etag: answer.headers["etag"]! };
}

/** Formats the document that completes an upload. */
export function toList(parts: readonly Part[], extra = ""): string {
  const items = parts.map(
    ({ number, etag }) =>
      `<Part><PartNumber>${number}</PartNumber><ETag>${etag.replaceAll('"', "&quot;")}</ETag>${extra}</Part>`,
  );
  return `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${items.join("")}</CompleteMultipartUpload>`;
}

/** Requests the completion of an upload. */
export function askToComplete(
  { ask }: Scene,
  key: string,
  id: string,
  parts: readonly Part[],
  headers: Record<string, string> = {},
) {
  return ask("POST", `/${key}?uploadId=${id}`, { body: toList(parts), headers });
}

/** Completes an upload. */
export async function complete(scene: Scene, key: string, id: string, parts: readonly Part[]) {
  const answer = await askToComplete(scene, key, id, parts);
  return { answer, result: readResult(answer, "CompleteMultipartUploadResult") };
}

/** Uploads an object in parts with these bodies. */
export async function upload(
  scene: Scene,
  key: string,
  bodies: readonly (string | Buffer)[],
  headers: Record<string, string> = {},
) {
  const id = await begin(scene, key, headers);
  const parts = await Promise.all(
    bodies.map((body, index) => putPart(scene, key, id, index + 1, body)),
  );
  return { id, parts, ...(await complete(scene, key, id, parts)) };
}
