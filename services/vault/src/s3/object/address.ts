// The object version of a request, and the headers that name one.
import type { ObjectAddress } from "../../model/object.ts";
import type { Header } from "../answer.ts";
import { getBucket, type OperationContext, readVersionId } from "../context.ts";
import { readHostedBucket } from "../wire/address.ts";

/** The object, or the version of it, that a request addresses. */
export function getAddress(context: OperationContext): ObjectAddress {
  const versionId = readVersionId(context.query);
  const address = { bucket: context.bucketName, key: context.key };
  return versionId === undefined ? address : { ...address, versionId };
}

/** The URL of an object in the style of the request: the bucket in the host or in the path. */
export function formatLocation({ api, request, bucketName, key }: OperationContext): string {
  const isHosted = readHostedBucket(request.host, api.domain) !== undefined;
  const path = key.split("/").map(encodeURIComponent).join("/");
  const scheme = request.secure ? "https" : "http";
  return `${scheme}://${request.host}/${isHosted ? "" : `${bucketName}/`}${path}`;
}

/** `x-amz-version-id`, unless the bucket is unversioned. */
export function getVersionHeaders(
  context: OperationContext,
  versionId: string | undefined,
): Header[] {
  if (versionId === undefined || getBucket(context).versioning === "Unset") return [];
  return [["x-amz-version-id", versionId]];
}
