// PostObject: uploads from browser forms, signed by a policy.
import type { Caller } from "../../access/authorizer.ts";
import type { ObjectAttributes } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, type Header, type S3Answer } from "../answer.ts";
import { authorize } from "../authorization.ts";
import { getActor, type OperationContext, type OperationHandler } from "../context.ts";
import { checkDigests, OBJECT_BYTES_MAX, planForm } from "../payload.ts";
import {
  checkPostPolicy,
  parsePostPolicy,
  type PostPolicy,
  readFormClaim,
} from "../sigv4/index.ts";
import { OBJECT_TAGS_MAX, parseTagging } from "../tagging-document.ts";
import { foldName, RequestFields } from "../wire/fields.ts";
import { FormReader, readBoundary } from "../wire/form-data.ts";
import { tag, wrap, XML_DECLARATION } from "../wire/xml.ts";
import { formatLocation } from "./address.ts";
import { readAttributes } from "./attributes-in.ts";
import { FormFile, type FormFileOptions } from "./form-file.ts";
import { findExpirationHeaders } from "./object-headers.ts";
import { getPutHeaders } from "./put-object.ts";

/** Limit of a form without its file. */
const FIELDS_BYTES_MAX = 1024 ** 2;

export const postObject: OperationHandler = async (context) => {
  const reader = new FormReader(readBoundary(context.fields.get("content-type") ?? ""));
  const first: Buffer[] = [];
  let form: Admitted | undefined;
  let file: FormFile | undefined;
  try {
    await context.request.body.receive((chunk) => {
      reader.execute(Buffer.from(chunk), (data) => {
        if (file === undefined) first.push(data);
        else file.add(data);
      });
      if (file !== undefined) return file.pass();
      if (reader.file === undefined) return undefined;
      // The signature is verified as soon as the fields are complete, before the file arrives.
      return admit(context, reader).then((admitted) => {
        form = admitted;
        file = new FormFile(toFileOptions(context, admitted, reader), first.splice(0));
        return file.start();
      });
    }, OBJECT_BYTES_MAX + FIELDS_BYTES_MAX);
    if (!reader.done || form === undefined || file === undefined) {
      throw new S3Error("MalformedPOSTRequest");
    }
    return await finish(context, form, file);
  } catch (error) {
    await file?.abort();
    throw error;
  }
};

function toFileOptions(
  { api, request, bucketName, tenant }: OperationContext,
  { context, policy, attributes }: Admitted,
  reader: FormReader,
): FormFileOptions {
  const { contentLength } = request.body;
  return {
    bytesMax: contentLength === undefined ? undefined : reader.predictFileBytes(contentLength),
    begin: (bytes) => {
      if (policy !== undefined) checkSize(policy, bytes, false);
      return api.store.objects.beginPut({
        ...attributes,
        bucket: bucketName,
        key: context.key,
        contentLength: bytes,
        checksum: planForm(context.fields, bytes).checksum?.algorithm ?? "CRC64NVME",
        actor: getActor(context),
        tenant: context.tenant,
        event: "ObjectCreated:Post",
      });
    },
    hold: (bytes) => request.holdWhenRoom(bytes, tenant),
    release: () => request.release(),
    checkSoFar: (bytes) => {
      if (policy !== undefined) checkSize(policy, bytes, true);
    },
  };
}

async function finish(
  context: OperationContext,
  form: Admitted,
  file: FormFile,
): Promise<S3Answer> {
  const { fields, key } = form.context;
  const result = await file.commit((digests, bytes) =>
    checkDigests(fields, planForm(fields, bytes), digests),
  );
  const expiring = await findExpirationHeaders(context, key, result.versionId);
  return answerForm(form, [...getPutHeaders(context, result), ...expiring], result.etag);
}

interface Admitted {
  context: OperationContext;
  form: ReadonlyMap<string, string>;
  policy: PostPolicy | undefined;
  attributes: ObjectAttributes;
}

async function admit(context: OperationContext, reader: FormReader): Promise<Admitted> {
  const { api } = context;
  const form = new Map<string, string>();
  for (const [name, value] of reader.form) form.set(foldName(name), value);
  form.set("bucket", context.bucketName);
  const template = form.get("key");
  if (template === undefined || template === "") {
    throw new S3Error(
      "InvalidArgument",
      "Bucket POST must contain a field named 'key'.  If it is specified, please check the order of the fields.",
    );
  }
  const claim = readFormClaim(form);
  let caller: Caller = { kind: "anonymous" };
  let signature: OperationContext["signature"];
  let policy: PostPolicy | undefined;
  const key = template.replaceAll("${filename}", reader.file!.fileName);
  if (claim !== undefined) {
    const verified = api.verifier.verifyPolicy(claim);
    caller = verified.owner;
    ({ signature } = verified);
    policy = parsePostPolicy(claim.policy);
    checkPostPolicy(policy, new Map([...form, ["key", key]]), api.clock.now());
  }
  const fields = new RequestFields(toFields(form, reader.file!.contentType));
  const admitted: OperationContext = { ...context, caller, signature, key, fields };
  await authorize(admitted);
  return { context: admitted, form, policy, attributes: await readAttributes(admitted) };
}

// The fields of a form that correspond to headers of a PUT.
function* toFields(
  form: ReadonlyMap<string, string>,
  fileType: string | undefined,
): Generator<[string, string]> {
  for (const [name, value] of form) {
    if (name === "acl") yield ["x-amz-acl", value];
    else if (name === "tagging") yield ["x-amz-tagging", toTaggingField(value)];
    else if (name === "policy" || name === "x-amz-signature") continue;
    else if (name.startsWith("x-amz-") || /^(?:content-|cache-control$|expires$)/.test(name))
      yield [name, toFieldValue(name, value)];
  }
  if (!form.has("content-type") && fileType !== undefined) yield ["content-type", fileType];
}

// The tags of a form are a document, not a query.
function toTaggingField(document: string): string {
  return new URLSearchParams(parseTagging(Buffer.from(document), OBJECT_TAGS_MAX)).toString();
}

// Stored values become headers of answers: they are encoded as UTF-8 like those of a PUT, and must be valid in headers.
function toFieldValue(name: string, value: string): string {
  if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name) || /[^\P{Cc}\t]/u.test(value)) {
    throw new S3Error("InvalidArgument", {
      message: "A field of the form cannot be a header of the object.",
      elements: [["ArgumentName", name.slice(0, 128)]],
    });
  }
  return Buffer.from(value).toString("latin1");
}

function checkSize(policy: PostPolicy, size: number, isPartial: boolean): void {
  if (size > policy.lengthMax) {
    throw new S3Error("EntityTooLarge", {
      elements: [
        ["ProposedSize", String(size)],
        ["MaxSizeAllowed", String(policy.lengthMax)],
      ],
    });
  }
  if (!isPartial && size < policy.lengthMin) {
    throw new S3Error("EntityTooSmall", {
      elements: [
        ["ProposedSize", String(size)],
        ["MinSizeAllowed", String(policy.lengthMin)],
      ],
    });
  }
}

function answerForm({ context, form }: Admitted, headers: Header[], etag: string): S3Answer {
  const { bucketName, key } = context;
  const redirect = form.get("success_action_redirect") ?? form.get("redirect");
  const url = redirect === undefined ? null : URL.parse(redirect);
  if (url !== null && (url.protocol === "http:" || url.protocol === "https:")) {
    url.searchParams.set("bucket", bucketName);
    url.searchParams.set("key", key);
    url.searchParams.set("etag", `"${etag}"`);
    return answerEmpty(303, [...headers, ["Location", url.href]]);
  }
  const location = formatLocation(context);
  headers.push(["Location", location]);
  const status = form.get("success_action_status");
  if (status === "200") return answerEmpty(200, headers);
  if (status !== "201") return answerEmpty(204, headers);
  const inner =
    tag("Location", location) +
    tag("Bucket", bucketName) +
    tag("Key", key) +
    tag("ETag", `"${etag}"`);
  return {
    status: 201,
    headers: [["Content-Type", "application/xml"], ...headers],
    body: XML_DECLARATION + wrap("PostResponse", inner),
  };
}
