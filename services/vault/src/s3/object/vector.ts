// The vector of an object: PutObjectVector, GetObjectVector, DeleteObjectVector
import { S3Error } from "../../model/s3-error.ts";
import { decodeVector, DIMENSION_MAX, FLOAT_BYTES } from "../../model/vector.ts";
import { answerEmpty } from "../answer.ts";
import { hideMissing } from "../authorization.ts";
import type { OperationHandler } from "../context.ts";
import { answerJson } from "../json-document.ts";
import { receiveDocument } from "../payload.ts";
import { readVectorText, requireFloats } from "../vector-value.ts";
import { getAddress, getVersionHeaders } from "./address.ts";

/** Numbers in JSON have about 22 characters at most. */
const BODY_BYTES_MAX = DIMENSION_MAX * 24 + 1_024;
const BINARY_TYPE = "application/octet-stream";

export const putObjectVector: OperationHandler = async (context) => {
  const { api, fields } = context;
  const body = await receiveDocument(context, { bytesMax: BODY_BYTES_MAX });
  const [type = ""] = (fields.get("content-type") ?? "").toLowerCase().split(";");
  const vector =
    type.trim() === BINARY_TYPE ? requireFloats(body) : readVectorText(body.toString());
  const { versionId } = await api.store.objects.setVector(getAddress(context), vector);
  return answerEmpty(200, getVersionHeaders(context, versionId));
};

/** JSON, or floats for clients that accept `application/octet-stream`. */
export const getObjectVector: OperationHandler = async (context) => {
  const { api, fields } = context;
  try {
    const found = api.store.objects.readVector(getAddress(context));
    if (found === undefined) throw new S3Error("NoSuchVector");
    const headers = getVersionHeaders(context, found.versionId);
    if (fields.get("accept")?.toLowerCase().includes(BINARY_TYPE) === true) {
      const body = Buffer.from(found.data);
      return { status: 200, headers: [["Content-Type", BINARY_TYPE], ...headers], body };
    }
    const dimension = found.data.length / FLOAT_BYTES;
    return answerJson({ dimension, vector: [...decodeVector(found.data)] }, headers);
  } catch (error) {
    throw await hideMissing(context, error);
  }
};

export const deleteObjectVector: OperationHandler = async (context) => {
  const { versionId } = await context.api.store.objects.setVector(getAddress(context), undefined);
  return answerEmpty(204, getVersionHeaders(context, versionId));
};
