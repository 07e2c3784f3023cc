// RestoreObject: a temporary local copy of an object in a remote
import type { ObjectInfo } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, type Header } from "../answer.ts";
import { type OperationHandler, readVersionId } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { malformedXml, parseXml } from "../wire/xml.ts";
import { getVersionHeaders } from "./address.ts";

const DAYS_MAX = 36_500;
const TIERS: ReadonlySet<string> = new Set(["Standard", "Bulk", "Expedited"]);

/** 202 for a restore that begins, 200 for a new end of a copy that exists. */
export const restoreObject: OperationHandler = async (context) => {
  const { api, bucketName: bucket, key, query } = context;
  const versionId = readVersionId(query);
  const root = parseXml(await receiveDocument(context), "RestoreRequest");
  root.allow("Days", "GlacierJobParameters", "Tier", "Description");
  const tier =
    root.read("GlacierJobParameters", (parameters) => parameters.getText("Tier")) ??
    root.findText("Tier");
  if (tier !== undefined && !TIERS.has(tier)) throw malformedXml("Tier is unknown", ["Tier"]);
  const days = Number(root.getText("Days"));
  if (!Number.isInteger(days) || days < 1 || days > DAYS_MAX)
    throw new S3Error("InvalidArgument", `'Days' must be an integer from 1 to ${DAYS_MAX}`);
  const address = { bucket, key, ...(versionId === undefined ? {} : { versionId }) };
  const result = await api.store.tiers.requestRestore(address, days);
  const headers = getVersionHeaders(context, result.versionId);
  return answerEmpty(result.isRestored ? 200 : 202, headers);
};

/** `x-amz-restore`, while a copy is made or exists. */
export function getRestoreHeaders({ restore }: ObjectInfo): Header[] {
  if (restore === undefined) return [];
  const { untilMs } = restore;
  if (untilMs === undefined) return [["x-amz-restore", 'ongoing-request="true"']];
  const date = new Date(untilMs).toUTCString();
  return [["x-amz-restore", `ongoing-request="false", expiry-date="${date}"`]];
}
