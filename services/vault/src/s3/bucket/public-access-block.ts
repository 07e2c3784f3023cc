// Public-access blocks.
import type { PublicAccessBlock } from "../../access/public-access.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerEmpty, answerXml } from "../answer.ts";
import { getBucket, type OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { malformedXml, parseXml, tag, xmlDocument } from "../wire/xml.ts";

const SWITCHES = [
  ["BlockPublicAcls", "blockPublicAcls"],
  ["IgnorePublicAcls", "ignorePublicAcls"],
  ["BlockPublicPolicy", "blockPublicPolicy"],
  ["RestrictPublicBuckets", "restrictPublicBuckets"],
] as const;

/** GetPublicAccessBlock */
export const getPublicAccessBlock: OperationHandler = (context) => {
  const block = getBucket(context).settings.publicAccessBlock as PublicAccessBlock | undefined;
  if (block === undefined) throw new S3Error("NoSuchPublicAccessBlockConfiguration");
  const inner = SWITCHES.map(([element, name]) => tag(element, block[name])).join("");
  return answerXml(xmlDocument("PublicAccessBlockConfiguration", inner));
};

/** PutPublicAccessBlock */
export const putPublicAccessBlock: OperationHandler = async (context) => {
  const body = await receiveDocument(context);
  const root = parseXml(body, "PublicAccessBlockConfiguration");
  root.allow(...SWITCHES.map(([element]) => element));
  const block = Object.fromEntries(
    SWITCHES.map(([element, name]) => {
      const text = root.findText(element)?.trim().toLowerCase() ?? "false";
      if (text !== "true" && text !== "false")
        throw malformedXml(`${element} is neither true nor false`);
      return [name, text === "true"];
    }),
  );
  await context.api.store.setBucketSetting(context.bucketName, "publicAccessBlock", block);
  return answerEmpty(200);
};

/** DeletePublicAccessBlock */
export const deletePublicAccessBlock: OperationHandler = async (context) => {
  await context.api.store.deleteBucketSetting(context.bucketName, "publicAccessBlock");
  return answerEmpty();
};
