// Tags of buckets.
import { answerXml } from "../answer.ts";
import { receiveDocument } from "../payload.ts";
import { defineSetting } from "./setting.ts";
import { BUCKET_TAGS_MAX, formatTagging, parseTagging } from "../tagging-document.ts";

/** The operations of the tags. */
export const taggingSetting = defineSetting({
  kind: "tagging",
  missing: "NoSuchTagSet",
  receive: async (context) => {
    return parseTagging(await receiveDocument(context), BUCKET_TAGS_MAX);
  },
  answer: (tags) => answerXml(formatTagging(tags)),
  putStatus: 204,
});
