// Public access blocks.
import type { PublicAccessBlock } from "../../model/bucket-settings.ts";
import { answerXml } from "../answer.ts";
import { receiveDocument } from "../payload.ts";
import { malformedXml, parseXml, tag, xmlDocument } from "../wire/xml.ts";
import { defineSetting } from "./setting.ts";

const SWITCHES = [
  ["BlockPublicAcls", "blockPublicAcls"],
  ["IgnorePublicAcls", "ignorePublicAcls"],
  ["BlockPublicPolicy", "blockPublicPolicy"],
  ["RestrictPublicBuckets", "restrictPublicBuckets"],
] as const;

/** The operations of the public access block. */
export const publicAccessBlockSetting = defineSetting({
  kind: "publicAccessBlock",
  missing: "NoSuchPublicAccessBlockConfiguration",
  receive: async (context) => {
    const body = await receiveDocument(context);
    const root = parseXml(body, "PublicAccessBlockConfiguration");
    root.allow(...SWITCHES.map(([element]) => element));
    return Object.fromEntries(
      SWITCHES.map(([element, name]) => {
        const text = root.findText(element)?.trim().toLowerCase() ?? "false";
        if (text !== "true" && text !== "false")
          throw malformedXml(`${element} must be true or false`);
        return [name, text === "true"];
      }),
    ) as unknown as PublicAccessBlock;
  },
  answer: (block) => {
    const inner = SWITCHES.map(([element, name]) => tag(element, block[name])).join("");
    return answerXml(xmlDocument("PublicAccessBlockConfiguration", inner));
  },
});
